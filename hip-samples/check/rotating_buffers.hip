// ROCm/rocm-libraries 11654 (TensileLite): buffers in LDS take turns, and a fast wave fills the one again that a slow
// wave still reads. There is a barrier for what was written, and none for what was read.
#include "check.h"

const int TILE = 128, TILES = 6;

template <bool MENDED> __global__ void product(const int *a, int *out) {
    __shared__ int buffers[2][TILE];
    int tid = threadIdx.x, sum = 0;
    buffers[0][tid] = a[tid];
    buffers[1][tid] = a[TILE + tid];
    for (int t = 0; t < TILES; ++t) {
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += buffers[t % 2][i] * (i + tid);
        if constexpr (MENDED) __syncthreads();
        if (t + 2 < TILES) buffers[t % 2][tid] = a[(t + 2) * TILE + tid];
    }
    out[tid] = sum;
}

static bool run(bool mended) {
    Array<int> a(TILE * TILES), out(TILE);
    fill(a.host);
    a.send();
    if (mended) product<true><<<1, TILE>>>(a.device, out.device);
    else product<false><<<1, TILE>>>(a.device, out.device);
    finished();
    out.receive();
    bool right = true;
    for (int t = 0; t < TILE; ++t) {
        int sum = 0;
        for (int i = 0; i < TILE * TILES; ++i) sum += a.host[i] * (i % TILE + t);
        right &= out.host[t] == sum;
    }
    return right;
}
