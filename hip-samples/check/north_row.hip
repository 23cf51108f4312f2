// ROCm/legacy-rocm-build 383: a stencil loads the neighbour to the north of the first row, too, which is before the
// array, and only then discards it.
#include "check.h"

template <bool MENDED> __global__ void stencil(const int *cells, const int *weights, int *out, int width) {
    int y = blockIdx.x, i = y * width + threadIdx.x;
    if constexpr (MENDED) {
        int north = i < width ? i : i - width;
        out[i] = cells[i] + weights[y] * cells[north];
    } else {
        out[i] = cells[i] + weights[y] * cells[i - width]; // the weight of the first row is 0
    }
}

static bool run(bool mended) {
    const int width = 64, height = 6;
    Array<int> weights(height, 3), cells(width * height), out(width * height);
    weights.host[0] = 0;
    weights.send();
    fill(cells.host);
    cells.send();
    if (mended) stencil<true><<<height, width>>>(cells.device, weights.device, out.device, width);
    else stencil<false><<<height, width>>>(cells.device, weights.device, out.device, width);
    finished();
    out.receive();
    bool right = true;
    for (int i = 0; i < width * height; ++i)
        right &= out.host[i] == cells.host[i] + (i < width ? 0 : 3 * cells.host[i - width]);
    return right;
}
