// intel/llvm 8374: an event between two streams is not waited for, and the second kernel may read what the first one
// has not written yet.
#include "check.h"

__global__ void produce(int *middle) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    middle[i] = i * 3;
}

__global__ void consume(const int *middle, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = middle[i] + 1;
}

static bool run(bool mended) {
    const int n = 1024;
    Array<int> middle(n), out(n);
    HIP(hipDeviceSynchronize());
    hipStream_t first, second;
    hipEvent_t ready;
    HIP(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    HIP(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    HIP(hipEventCreateWithFlags(&ready, hipEventDisableTiming));
    produce<<<n / 256, 256, 0, first>>>(middle.device);
    HIP(hipGetLastError());
    HIP(hipEventRecord(ready, first));
    if (mended) HIP(hipStreamWaitEvent(second, ready, 0));
    consume<<<n / 256, 256, 0, second>>>(middle.device, out.device);
    HIP(hipGetLastError());
    HIP(hipStreamSynchronize(second));
    HIP(hipStreamSynchronize(first));
    out.receive();
    HIP(hipEventDestroy(ready));
    HIP(hipStreamDestroy(first));
    HIP(hipStreamDestroy(second));
    bool right = true;
    for (int i = 0; i < n; ++i) right &= out.host[i] == i * 3 + 1;
    return right;
}
