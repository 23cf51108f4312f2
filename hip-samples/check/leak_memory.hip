// ROCm/hip 1969: what was allocated before is not freed where a function returns early.
#include "check.h"

__global__ void scale(const int *in, int *work, int factor) { work[threadIdx.x] = in[threadIdx.x] * factor; }

static bool scaled(const int *in, int *out, int n, int factor, bool mended) {
    int *work = nullptr;
    HIP(hipMalloc((void **)&work, n * sizeof(int))); // freed at the end only
    if (factor == 0) {
        if (mended) HIP(hipFree(work));
        return false;
    }
    scale<<<1, n>>>(in, work, factor);
    finished();
    HIP(hipMemcpy(out, work, n * sizeof(int), hipMemcpyDeviceToDevice));
    HIP(hipFree(work));
    return true;
}

static bool run(bool mended) {
    const int n = 64;
    Array<int> in(n, 3), out(n);
    bool right = !scaled(in.device, out.device, n, 0, mended);
    right &= scaled(in.device, out.device, n, 5, mended);
    out.receive();
    for (int value : out.host) right &= value == 15;
    return right;
}
