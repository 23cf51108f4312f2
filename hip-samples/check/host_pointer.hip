// ROCm/rocm-systems 3439: a kernel gets the host's pointer, not the device's for the same memory. Here the memory was
// not even registered.
#include "check.h"

__global__ void sum(const int *values, int *total, int n) {
    int part = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) part += values[i];
    atomicAdd(total, part);
}

static bool run(bool mended) {
    const int n = 1024;
    Array<int> total(1);
    int *values = (int *)aligned_alloc(4096, n * sizeof(int)), expected = 0;
    for (int i = 0; i < n; ++i) expected += values[i] = i % 9;
    if (mended) {
        void *there = nullptr;
        HIP(hipHostRegister(values, n * sizeof(int), hipHostRegisterMapped));
        HIP(hipHostGetDevicePointer(&there, values, 0));
        sum<<<1, 128>>>((const int *)there, total.device, n);
        finished();
        HIP(hipHostUnregister(values));
    } else {
        sum<<<1, 128>>>(values, total.device, n);
        finished();
    }
    total.receive();
    free(values);
    return total.host[0] == expected;
}
