// A kernel that direct.c starts: work-items with other numbers go through the loop a different number of times.
#include <hip/hip_runtime.h>

extern "C" __global__ void steps(unsigned *out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = i * 7 + 1, count = 0;
    while (value != 1) {
        value = value % 2 ? 3 * value + 1 : value / 2;
        ++count;
    }
    atomicAdd(&out[i], count);
}

// Another one in the same object, with LDS of its own.
extern "C" __global__ void backwards(unsigned *out) {
    __shared__ unsigned values[256];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    values[threadIdx.x] = i;
    __syncthreads();
    if (i % 3) atomicAdd(&out[i], values[blockDim.x - 1 - threadIdx.x]);
}
