// ROCm/composable_kernel 1554: events that measure the time of a kernel are never destroyed.
#include "check.h"

__global__ void work(int *out) { out[threadIdx.x] = threadIdx.x; }

static bool run(bool mended) {
    Array<int> out(64);
    hipEvent_t begin, end;
    HIP(hipEventCreate(&begin));
    HIP(hipEventCreate(&end));
    HIP(hipEventRecord(begin, nullptr));
    work<<<1, 64>>>(out.device);
    HIP(hipGetLastError());
    HIP(hipEventRecord(end, nullptr));
    HIP(hipEventSynchronize(end));
    float time = -1;
    HIP(hipEventElapsedTime(&time, begin, end));
    if (mended) {
        HIP(hipEventDestroy(begin));
        HIP(hipEventDestroy(end));
    }
    return time >= 0;
}
