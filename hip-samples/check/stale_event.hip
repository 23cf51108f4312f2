// ROCm/clr 157 is of this kind (an event is used when its stream no longer exists): an event is destroyed before the
// other stream waits for it.
#include "check.h"

__global__ void work(int *out) { out[threadIdx.x] = threadIdx.x; }

static bool run(bool mended) {
    Array<int> out(64);
    hipStream_t first, second;
    hipEvent_t ready;
    HIP(hipStreamCreate(&first));
    HIP(hipStreamCreate(&second));
    HIP(hipEventCreate(&ready));
    work<<<1, 64, 0, first>>>(out.device);
    HIP(hipGetLastError());
    HIP(hipEventRecord(ready, first));
    if (mended) {
        HIP(hipStreamWaitEvent(second, ready, 0));
        HIP(hipEventDestroy(ready));
    } else {
        HIP(hipEventDestroy(ready));
        (void)hipStreamWaitEvent(second, ready, 0); // there is none any more
    }
    HIP(hipStreamSynchronize(second));
    HIP(hipStreamSynchronize(first));
    HIP(hipStreamDestroy(first));
    HIP(hipStreamDestroy(second));
    out.receive();
    bool right = true;
    for (int i = 0; i < 64; ++i) right &= out.host[i] == i;
    return right;
}
