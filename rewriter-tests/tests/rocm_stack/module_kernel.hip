// What modules.hip loads.
#include <hip/hip_runtime.h>

extern "C" __device__ int factor;
__device__ int factor = 1;

extern "C" __global__ void scale(int* values, int count) {
    int item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item < count) values[item] += item * factor;
}
