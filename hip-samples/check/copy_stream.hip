// ROCm/MIOpen 3655: results of a kernel in a stream of its own are copied in the default stream, which does not wait
// for it.
#include "check.h"

__global__ void convolve(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = 0;
    for (int tap = 0; tap < 9; ++tap) sum += in[(i + tap) % n] * (tap + 1);
    out[i] = sum; // what the copy takes
}

static bool run(bool mended) {
    const int n = 2048;
    Array<int> in(n), out(n);
    fill(in.host);
    in.send();
    HIP(hipDeviceSynchronize());
    hipStream_t stream;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    convolve<<<n / 256, 256, 0, stream>>>(in.device, out.device, n);
    HIP(hipGetLastError());
    if (mended) {
        HIP(hipStreamSynchronize(stream));
        HIP(hipMemcpy(out.host.data(), out.device, out.bytes(), hipMemcpyDeviceToHost));
    } else {
        HIP(hipMemcpy(out.host.data(), out.device, out.bytes(), hipMemcpyDeviceToHost)); // in the default stream
        HIP(hipStreamSynchronize(stream));
    }
    HIP(hipStreamDestroy(stream));
    bool right = true;
    for (int i = 0; i < n; ++i) {
        int sum = 0;
        for (int tap = 0; tap < 9; ++tap) sum += in.host[(i + tap) % n] * (tap + 1);
        right &= out.host[i] == sum;
    }
    return right;
}
