// pytorch/pytorch 2038: rows are copied to given places, some of which are named twice: lanes of one instruction store
// different values to one address, and one of them wins.
#include "check.h"

__global__ void winners(const int *index, int *winner) { atomicMax(&winner[index[threadIdx.x]], int(threadIdx.x)); }

template <bool MENDED> __global__ void index_copy(const int *index, const int *winner, const int *in, int *out) {
    int i = threadIdx.x, to = index[i];
    if constexpr (MENDED) {
        if (winner[to] == i) out[to] = in[i];
    } else {
        out[to] = in[i]; // two lanes may have the same place
    }
}

static bool run(bool mended) {
    const int n = 32;
    Array<int> index(n), winner(n, -1), in(n), out(n, -1);
    for (int i = 0; i < n; ++i) index.host[i] = i / 2, in.host[i] = 100 + i;
    index.send();
    in.send();
    winners<<<1, n>>>(index.device, winner.device);
    if (mended) index_copy<true><<<1, n>>>(index.device, winner.device, in.device, out.device);
    else index_copy<false><<<1, n>>>(index.device, winner.device, in.device, out.device);
    finished();
    out.receive();
    bool right = true;
    for (int i = 0; i < n; ++i) right &= out.host[i] == (i < n / 2 ? 101 + 2 * i : -1);
    return right;
}
