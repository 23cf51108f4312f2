// ScaleX-IO/uGDS 20: hipMemset returns before the memory is set, and a stream that does not wait for the default one
// uses it.
#include "check.h"

__global__ void count(const int *keys, int *bins) { atomicAdd(&bins[keys[blockIdx.x * blockDim.x + threadIdx.x]], 1); }

static bool run(bool mended) {
    const int n = 1024, kinds = 16;
    Array<int> keys(n), bins(kinds, -1);
    for (int i = 0; i < n; ++i) keys.host[i] = i % kinds;
    keys.send();
    hipStream_t stream;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    if (mended) HIP(hipMemsetAsync(bins.device, 0, bins.bytes(), stream));
    else HIP(hipMemset(bins.device, 0, bins.bytes())); // in the default stream
    count<<<n / 256, 256, 0, stream>>>(keys.device, bins.device);
    HIP(hipGetLastError());
    HIP(hipStreamSynchronize(stream));
    bins.receive();
    HIP(hipStreamDestroy(stream));
    bool right = true;
    for (int each : bins.host) right &= each == n / kinds;
    return right;
}
