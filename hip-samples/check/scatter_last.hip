// pytorch/pytorch 88096: a scatter with an index that comes more than once keeps what happens to be written last. The
// mended version keeps that of the largest number.
#include "check.h"

template <bool MENDED> __global__ void scatter(const int *index, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x >= 8) return;
    if constexpr (MENDED) atomicMax(&out[index[i]], i);
    else atomicExch(&out[index[i]], i); // the last one stays
}

static bool run(bool mended) {
    const int groups = 32;
    Array<int> index(groups * 64), out(8, -1);
    for (int n = 0; n < groups * 64; ++n) index.host[n] = n % 8;
    index.send();
    if (mended) scatter<true><<<groups, 64>>>(index.device, out.device);
    else scatter<false><<<groups, 64>>>(index.device, out.device);
    finished();
    out.receive();
    bool right = true;
    for (int n = 0; n < 8; ++n) right &= out.host[n] == (groups - 1) * 64 + n;
    return right;
}
