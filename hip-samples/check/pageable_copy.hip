// ROCm/rocMLIR 2457: an asynchronous copy from memory that is not page-locked. It waits for the host, or, there, was
// lost.
#include "check.h"

static bool run(bool mended) {
    const int n = 1024;
    Array<int> values(n), check(1);
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    int *from = (int *)aligned_alloc(4096, n * sizeof(int));
    for (int i = 0; i < n; ++i) from[i] = i;
    if (mended) {
        HIP(hipHostRegister(from, n * sizeof(int), hipHostRegisterDefault));
        HIP(hipMemcpyAsync(values.device, from, n * sizeof(int), hipMemcpyHostToDevice, stream));
        HIP(hipStreamSynchronize(stream));
        HIP(hipHostUnregister(from));
    } else {
        HIP(hipMemcpyAsync(values.device, from, n * sizeof(int), hipMemcpyHostToDevice, stream)); // not page-locked
        HIP(hipStreamSynchronize(stream));
    }
    HIP(hipStreamDestroy(stream));
    free(from);
    values.receive();
    bool right = true;
    for (int i = 0; i < n; ++i) right &= values.host[i] == i;
    return right;
}
