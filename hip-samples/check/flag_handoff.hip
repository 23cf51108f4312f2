// ROCm/rocSPARSE 360 (csric0): a row of a factorisation is handed over by a flag, and without a fence the flag may be
// seen before the row.
#include "check.h"

const int PATIENCE = 1 << 16;

template <bool MENDED> __global__ void rows(int *values, int *flags, int *gave_up) {
    if (threadIdx.x != 0) return;
    int row = blockIdx.x;
    if (row == 0) {
        values[0] = 41;
        if constexpr (MENDED) __threadfence();
        __hip_atomic_store(&flags[0], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        return;
    }
    int tries = 0;
    while (__hip_atomic_load(&flags[0], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0)
        if (++tries == PATIENCE) {
            *gave_up = 1;
            return;
        }
    if constexpr (MENDED) __threadfence();
    values[1] = values[0] + 1;
}

static bool run(bool mended) {
    Array<int> values(2), flags(1), gave_up(1);
    if (mended) rows<true><<<2, 64>>>(values.device, flags.device, gave_up.device);
    else rows<false><<<2, 64>>>(values.device, flags.device, gave_up.device);
    finished();
    values.receive();
    gave_up.receive();
    return gave_up.host[0] == 0 && values.host[1] == 42;
}
