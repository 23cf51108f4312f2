// mumax/3 415: the workgroups of a sum of floating-point numbers add what they have by an atomic, so that its last bits
// depend on which of them is first. The mended version adds what they have in a fixed order.
#include "check.h"

template <bool MENDED> __global__ void sum(const float *energy, float *partial, float *total) {
    float mine = 0;
    if (threadIdx.x != 0) return;
    for (int i = 0; i < 64; ++i) mine += energy[blockIdx.x * 64 + i];
    if constexpr (MENDED) partial[blockIdx.x] = mine;
    else atomicAdd(total, mine); // in any order
}

__global__ void add_up(const float *partial, int count, float *total) {
    if (threadIdx.x != 0) return;
    float all = 0;
    for (int i = 0; i < count; ++i) all += partial[i];
    *total = all;
}

static bool run(bool mended) {
    const int groups = 48;
    Array<float> energy(groups * 64), partial(groups), total(1);
    double expected = 0;
    for (int n = 0; n < groups * 64; ++n) {
        energy.host[n] = 1.0f / float(n % 97 + 3);
        expected += energy.host[n];
    }
    energy.send();
    if (mended) {
        sum<true><<<groups, 64>>>(energy.device, partial.device, total.device);
        add_up<<<1, 64>>>(partial.device, groups, total.device);
    } else {
        sum<false><<<groups, 64>>>(energy.device, partial.device, total.device);
    }
    finished();
    total.receive();
    return std::fabs(total.host[0] - expected) < 1e-3;
}
