// A kernel that stores to an address that is not mapped, after one that does nothing wrong.

#include <cstdio>
#include <hip/hip_runtime.h>

__global__ void fill(float* values) { values[blockIdx.x * blockDim.x + threadIdx.x] = 1; }

__global__ void copy(float* values, float* to) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] += 1;
    to[i] = values[i]; // wrong
}

int main() {
    float* values;
    if (hipMalloc(&values, 4096) != hipSuccess) {
        return 1;
    }
    fill<<<4, 256>>>(values);
    if (hipDeviceSynchronize() != hipSuccess) {
        return 1;
    }
    copy<<<4, 256>>>(values, reinterpret_cast<float*>(0x123456780000));
    std::printf("%s\n", hipGetErrorString(hipDeviceSynchronize()));
}
