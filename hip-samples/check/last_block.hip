// kokkos/kokkos 2681 (and pytorch/pytorch 193321): the last workgroup of a scan adds what all have stored, and nothing
// makes the stores visible before they count as done: the fence is missing.
#include "check.h"

template <bool MENDED> __global__ void reduce(const int *in, int *partial, unsigned *done, int *total) {
    if (threadIdx.x != 0) return;
    int sum = 0;
    for (int i = 0; i < 64; ++i) sum += in[blockIdx.x * 64 + i];
    partial[blockIdx.x] = sum;
    if constexpr (MENDED) __threadfence();
    unsigned before = atomicAdd(done, 1u);
    if (before != gridDim.x - 1) return;
    if constexpr (MENDED) __threadfence();
    int all = 0;
    for (int group = 0; group < gridDim.x; ++group) all += partial[group] * (group + 1);
    *total = all;
}

static bool run(bool mended) {
    const int groups = 12;
    Array<int> in(groups * 64), partial(groups), total(1);
    Array<unsigned> done(1);
    for (int n = 0; n < groups * 64; ++n) in.host[n] = n % 13 + 1;
    in.send();
    if (mended) reduce<true><<<groups, 64>>>(in.device, partial.device, done.device, total.device);
    else reduce<false><<<groups, 64>>>(in.device, partial.device, done.device, total.device);
    finished();
    total.receive();
    int expected = 0;
    for (int n = 0; n < groups * 64; ++n) expected += in.host[n] * (n / 64 + 1);
    return total.host[0] == expected;
}
