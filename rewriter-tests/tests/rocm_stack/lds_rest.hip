// A kernel that goes past the end of its LDS, within the last allocation unit: each lane stores a value there and loads
// what its neighbour stored. `beyond` goes past the unit instead.

#include <cstdio>
#include <cstring>
#include <hip/hip_runtime.h>

constexpr int OWN = 65;
constexpr int LANES = 32;

__global__ void past_the_end(int *out, int offset) {
  __shared__ int lds[OWN];
  int lane = threadIdx.x;
  lds[lane] = lane;
  __syncthreads();
  lds[offset + lane] = 100 + lds[lane];
  __syncthreads();
  out[lane] = lds[offset + (lane + 1) % LANES];
}

int main(int argc, char **argv) {
  // 65 dwords are 260 of 512 bytes.
  int offset = argc > 1 && !strcmp(argv[1], "beyond") ? 128 : OWN;
  int *out, found[LANES], wrong = 0;
  if (hipMalloc(&out, sizeof found) != hipSuccess)
    return 2;
  for (int n = 0; n < 2; n++) {
    past_the_end<<<1, LANES>>>(out, offset);
    if (hipMemcpy(found, out, sizeof found, hipMemcpyDeviceToHost) != hipSuccess) {
      puts("an error");
      return 1;
    }
    for (int lane = 0; lane < LANES; lane++)
      wrong += found[lane] != (offset == OWN ? 100 + (lane + 1) % LANES : 0);
  }
  puts(wrong ? "FAIL" : "PASS");
  return wrong != 0;
}
