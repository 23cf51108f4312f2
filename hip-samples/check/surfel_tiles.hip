// ORNL/HeCBench 253 (surfel): a tile in LDS is loaded again while other waves still read the last one; the barrier at
// the end of the loop is missing.
#include "check.h"

const int TILE = 256;

template <bool MENDED> __global__ void render(const int *surfels, int *out, int n) {
    __shared__ int tile[TILE];
    int sum = 0;
    for (int base = 0; base < n; base += TILE) {
        tile[threadIdx.x] = surfels[base + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += tile[i] * (i + int(threadIdx.x));
        if constexpr (MENDED) __syncthreads();
    }
    out[threadIdx.x] = sum;
}

static bool run(bool mended) {
    const int n = 4 * TILE;
    Array<int> surfels(n), out(TILE);
    fill(surfels.host);
    surfels.send();
    if (mended) render<true><<<1, TILE>>>(surfels.device, out.device, n);
    else render<false><<<1, TILE>>>(surfels.device, out.device, n);
    finished();
    out.receive();
    bool right = true;
    for (int t = 0; t < TILE; ++t) {
        int sum = 0;
        for (int i = 0; i < n; ++i) sum += surfels.host[i] * (i % TILE + t);
        right &= out.host[t] == sum;
    }
    return right;
}
