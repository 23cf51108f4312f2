// 1bit-MONSTER/1bit-MONSTER 1010: workgroups wait in a loop for one that may not have begun, because they take all the
// room of the GPU. Without the limit to its rounds the loop may never end. The mended version lets the first workgroup
// that runs be the one that the others wait for.
#include "check.h"

const int PATIENCE = 100;

template <bool MENDED> __global__ void phases(unsigned *tickets, int *flag, int *out, unsigned *gave_up) {
    extern __shared__ int room[];
    unsigned me = blockIdx.x;
    if constexpr (MENDED) {
        if (threadIdx.x == 0) room[0] = gridDim.x - 1 - atomicAdd(tickets, 1u);
        __syncthreads();
        me = room[0];
    }
    if (threadIdx.x != 0) return;
    if (me == gridDim.x - 1) {
        __hip_atomic_store(flag, 7, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
        out[me] = 7;
        return;
    }
    int seen = 0;
    for (int tries = 0; MENDED || tries < PATIENCE; ++tries) {
        seen = __hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT); // set by the last workgroup
        if (seen != 0) break;
        __builtin_amdgcn_s_sleep(2);
    }
    if (seen == 0) atomicAdd(gave_up, 1u);
    out[me] = seen;
}

static bool run(bool mended) {
    hipDeviceProp_t device;
    HIP(hipGetDeviceProperties(&device, 0));
    const int groups = 4 * device.multiProcessorCount, room = 48 << 10;
    Array<unsigned> tickets(1), gave_up(1);
    Array<int> flag(1), out(groups);
    if (mended) phases<true><<<groups, 64, room>>>(tickets.device, flag.device, out.device, gave_up.device);
    else phases<false><<<groups, 64, room>>>(tickets.device, flag.device, out.device, gave_up.device);
    finished();
    out.receive();
    bool right = true;
    for (int value : out.host) right &= value == 7;
    return right;
}
