// Fills memory with HIP, for which AMD's runtime has a kernel, and runs one of its own if its argument is "kernel".
#include <hip/hip_runtime.h>

#include <cstring>

__global__ void fill(unsigned* out) { out[threadIdx.x] = threadIdx.x; }

int main(int argc, char** argv) {
    unsigned* out;
    if (hipMalloc(reinterpret_cast<void**>(&out), 256) != hipSuccess) return 3;
    if (hipMemset(out, 1, 256) != hipSuccess) return 6;
    if (argc > 1 && strcmp(argv[1], "kernel") == 0) fill<<<1, 64>>>(out);
    if (hipDeviceSynchronize() != hipSuccess) return 4;
    return hipFree(out) == hipSuccess ? 0 : 5;
}
