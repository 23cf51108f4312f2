// ROCm/aiter 2551 (and rocm-libraries 5225): of the output of a product that is split along K too few bytes are set to
// zero, and the atomics that follow add to what was there before.
#include "check.h"

__global__ void gemm_part(const int *a, int *out, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&out[column], a[blockIdx.y * n + column]); // adds to memory that may have no value
}

static bool run(bool mended) {
    const int tokens = 4, top = 2, width = 64, n = tokens * top * width, parts = 3;
    Array<int> a(parts * n);
    fill(a.host);
    a.send();
    int *out = nullptr;
    HIP(hipMalloc((void **)&out, n * sizeof(int)));
    if (mended) HIP(hipMemset(out, 0, n * sizeof(int)));
    else HIP(hipMemset(out, 0, tokens * width * sizeof(int))); // `top` is forgotten
    gemm_part<<<dim3(n / 128, parts), 128>>>(a.device, out, n);
    finished();
    std::vector<int> back(n);
    HIP(hipMemcpy(back.data(), out, n * sizeof(int), hipMemcpyDeviceToHost));
    HIP(hipFree(out));
    bool right = true;
    for (int i = 0; i < n; ++i) right &= back[i] == a.host[i] + a.host[n + i] + a.host[2 * n + i];
    return right;
}
