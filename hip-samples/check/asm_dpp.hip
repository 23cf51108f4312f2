// ROCm/AMDMIGraphX 951: reductions in inline assembly need wait states between an instruction that writes a register
// and a move between lanes that reads it.
// targets: gfx90a gfx942
#include "check.h"

template <bool MENDED> __global__ void shift(const int *in, int *out) {
    int value = in[threadIdx.x], twice, moved = 0;
    if constexpr (MENDED) {
        asm volatile("v_add_u32 %0, %2, %2\n s_nop 1\n v_mov_b32_dpp %1, %0 row_shr:1"
                     : "=&v"(twice), "+v"(moved)
                     : "v"(value));
    } else {
        asm volatile("v_add_u32 %0, %2, %2\n v_mov_b32_dpp %1, %0 row_shr:1"
                     : "=&v"(twice), "+v"(moved)
                     : "v"(value));
    }
    out[threadIdx.x] = twice + moved;
}

static bool run(bool mended) {
    const int n = 64;
    Array<int> in(n), out(n);
    fill(in.host);
    in.send();
    if (mended) shift<true><<<1, n>>>(in.device, out.device);
    else shift<false><<<1, n>>>(in.device, out.device);
    finished();
    out.receive();
    bool right = true;
    for (int i = 0; i < n; ++i) right &= out.host[i] == 2 * in.host[i] + (i % 16 ? 2 * in.host[i - 1] : 0);
    return right;
}
