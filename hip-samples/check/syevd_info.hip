// ROCm/rocSOLVER 956: kernels read flags in a workspace that were never set; results are NaN when the memory was used
// before.
#include "check.h"

__global__ void solve(const int *info, const float *in, float *out) {
    int i = threadIdx.x;
    if (info[i] != 0) return; // no step has failed, but no flag says so
    out[i] = in[i];
}

static bool run(bool mended) {
    const int n = 128;
    Array<float> in(n), out(n);
    fill(in.host);
    in.send();
    int *info = nullptr;
    HIP(hipMalloc((void **)&info, n * sizeof(int)));
    if (mended) HIP(hipMemset(info, 0, n * sizeof(int)));
    solve<<<1, n>>>(info, in.device, out.device);
    finished();
    out.receive();
    HIP(hipFree(info));
    return out.host == in.host;
}
