// ROCm/hip 13: the host reads what hipMemcpyAsync copies into its memory without waiting for the copy.
#include "check.h"

__global__ void square(int *values) { values[threadIdx.x] = threadIdx.x * threadIdx.x; }

static bool run(bool mended) {
    const int n = 256;
    Array<int> values(n);
    int *back = nullptr;
    hipStream_t stream;
    HIP(hipHostMalloc((void **)&back, n * sizeof(int), hipHostMallocDefault));
    memset(back, 0, n * sizeof(int));
    HIP(hipStreamCreate(&stream));
    square<<<1, n, 0, stream>>>(values.device);
    HIP(hipGetLastError());
    HIP(hipMemcpyAsync(back, values.device, n * sizeof(int), hipMemcpyDeviceToHost, stream));
    long sum = 0;
    if (mended) {
        HIP(hipStreamSynchronize(stream));
        for (int i = 0; i < n; ++i) sum += back[i];
    } else {
        for (int i = 0; i < n; ++i) sum += back[i]; // the copy may not have begun
        HIP(hipStreamSynchronize(stream));
    }
    HIP(hipStreamDestroy(stream));
    HIP(hipHostFree(back));
    return sum == long(n - 1) * n * (2 * n - 1) / 6;
}
