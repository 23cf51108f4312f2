// sarchlab/mgpusim, gpu_perf_scripts/conv2d.cpp: a product in tiles of 16 rows stores all rows of the last tile, also
// those after the end of the result.
#include "check.h"

template <bool MENDED> __global__ void gemm(const float *a, const float *b, float *c, int m, int n, int k) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    int source = row < m ? row : m - 1;
    float sum = 0;
    for (int i = 0; i < k; ++i) sum += a[source * k + i] * b[i * n + column];
    if constexpr (MENDED) {
        if (row < m) c[row * n + column] = sum;
    } else {
        c[row * n + column] = sum; // no guard
    }
}

static bool run(bool mended) {
    const int m = 100, n = 64, k = 8;
    Array<float> a(m * k), b(k * n), c(m * n);
    fill(a.host);
    fill(b.host, 5);
    a.send();
    b.send();
    dim3 grid(n / 16, (m + 15) / 16), block(16, 16);
    if (mended) gemm<true><<<grid, block>>>(a.device, b.device, c.device, m, n, k);
    else gemm<false><<<grid, block>>>(a.device, b.device, c.device, m, n, k);
    finished();
    c.receive();
    bool right = true;
    for (int row = 0; row < m; ++row)
        for (int column = 0; column < n; ++column) {
            float sum = 0;
            for (int i = 0; i < k; ++i) sum += a.host[row * k + i] * b.host[i * n + column];
            right &= sum == c.host[row * n + column];
        }
    return right;
}
