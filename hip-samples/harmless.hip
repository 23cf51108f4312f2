// Kernels with findings of the strict mode that do not matter, and one that does. What to run is an argument.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstring>

// Lanes past the end of the data decide EXEC by what their registers happen to hold, and take part in a vote that masks
// them out.
__global__ void votes(const float* in, unsigned* count, int n) {
    float x;
    asm volatile("; undefined %0" : "=v"(x));
    bool valid = threadIdx.x < n;
    if (valid) x = in[threadIdx.x];
    if (x >= 0 && x < 8) {
        unsigned long long voters = __ballot(valid);
        if (valid && __popcll(voters & ((1ull << threadIdx.x) - 1)) == 0) *count = __popcll(voters);
    }
}

// The last lane of a wave reads what another wave may be writing, and does not use it.
__global__ void reads_one_more(const int* in, int* out) {
    __shared__ int tile[129];
    if (threadIdx.x == 0) tile[128] = 0;
    __syncthreads();
    tile[threadIdx.x] = in[threadIdx.x];
    __builtin_amdgcn_wave_barrier();
    int next = ((volatile int*)tile)[threadIdx.x + 1];
    out[threadIdx.x] = threadIdx.x % 64 == 63 ? -1 : next;
}

__global__ void writes_outside(int* out) { out[1 << 20] = 1; }

int main(int count, char** arguments) {
    const char* what = count > 1 ? arguments[1] : "";
    int *in, *out, result[128];
    hipMalloc(&in, sizeof result);
    hipMalloc(&out, sizeof result);
    hipMemset(in, 0, sizeof result);
    hipMemset(out, 0, sizeof result);
    if (!strcmp(what, "votes")) votes<<<1, 64>>>((float*)in, (unsigned*)out, 60);
    if (!strcmp(what, "reads")) for (int n = 0; n < 3; ++n) reads_one_more<<<1, 128>>>(in, out);
    if (!strcmp(what, "writes")) writes_outside<<<1, 1>>>(out);
    bool good = hipMemcpy(result, out, sizeof result, hipMemcpyDeviceToHost) == hipSuccess;
    if (!strcmp(what, "votes")) good &= result[0] == 60;
    if (!strcmp(what, "reads")) good &= result[62] == 0 && result[63] == -1;
    puts(good ? "PASS" : "FAIL");
    return good ? 0 : 3;
}
