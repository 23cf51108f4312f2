// turboderp-org/exllamav2 279: the first workgroup sets the output to zero, the others add to it, and nothing says that
// the first one runs first.
#include "check.h"

template <bool MENDED> __global__ void gemm_half(const int *a, int *out, int n) {
    int column = threadIdx.x;
    if constexpr (!MENDED) {
        if (blockIdx.x == 0) out[column] = 0; // thought to be first
    }
    int sum = 0;
    for (int i = 0; i < 8; ++i) sum += a[(blockIdx.x * 8 + i) * n + column];
    atomicAdd(&out[column], sum);
}

static bool run(bool mended) {
    const int n = 64, groups = 6;
    Array<int> a(groups * 8 * n), out(n, mended ? 0 : -7);
    for (size_t i = 0; i < a.host.size(); ++i) a.host[i] = i % 17 + 1;
    a.send();
    if (mended) gemm_half<true><<<groups, n>>>(a.device, out.device, n);
    else gemm_half<false><<<groups, n>>>(a.device, out.device, n);
    finished();
    out.receive();
    bool right = true;
    for (int column = 0; column < n; ++column) {
        int sum = 0;
        for (int row = 0; row < groups * 8; ++row) sum += a.host[row * n + column];
        right &= out.host[column] == sum;
    }
    return right;
}
