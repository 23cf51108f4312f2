// After 1bit-MONSTER/1bit-MONSTER 1010: the counter of a barrier for all workgroups, which all have room, still has
// what the launch before left in it. None of the second launch ever sees the number that it waits for.
#include "check.h"

__global__ void phases(unsigned *arrived, const int *in, int *middle, int *out) {
    if (threadIdx.x != 0) return;
    middle[blockIdx.x] = in[blockIdx.x] + 1;
    __hip_atomic_fetch_add(arrived, 1u, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
    while (__hip_atomic_load(arrived, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) != gridDim.x) { // of this launch
        __builtin_amdgcn_s_sleep(1);
    }
    out[blockIdx.x] = middle[(blockIdx.x + 1) % gridDim.x];
}

static bool run(bool mended) {
    const int groups = 24;
    Array<unsigned> arrived(1);
    Array<int> in(groups), middle(groups), out(groups);
    fill(in.host);
    in.send();
    for (int launch = 0; launch < 2; ++launch) {
        if (mended) HIP(hipMemset(arrived.device, 0, arrived.bytes()));
        phases<<<groups, 64>>>(arrived.device, in.device, middle.device, out.device);
    }
    finished();
    out.receive();
    bool right = true;
    for (int n = 0; n < groups; ++n) right &= out.host[n] == in.host[(n + 1) % groups] + 1;
    return right;
}
