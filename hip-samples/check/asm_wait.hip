// ROCm/rocm-systems 8721 (rocSHMEM): a load in inline assembly and the wait for it are two statements. The compiler
// does not know that the first one is a load, and puts others in between. Here the wait is missing altogether.
// targets: gfx90a gfx942 gfx1030 gfx1100
#include "check.h"

template <bool MENDED> __global__ void get(const int *in, int *out) {
    const int *from = in + threadIdx.x;
    int value;
    if constexpr (MENDED) {
        asm volatile("global_load_dword %0, %1, off\n s_waitcnt vmcnt(0)" : "=&v"(value) : "v"(from));
        value = value * 3;
    } else {
        asm volatile("global_load_dword %0, %1, off" : "=&v"(value) : "v"(from));
        value = value * 3; // may still be the register's old value
    }
    out[threadIdx.x] = value;
}

static bool run(bool mended) {
    const int n = 64;
    Array<int> in(n), out(n);
    fill(in.host);
    in.send();
    if (mended) get<true><<<1, n>>>(in.device, out.device);
    else get<false><<<1, n>>>(in.device, out.device);
    finished();
    out.receive();
    bool right = true;
    for (int i = 0; i < n; ++i) right &= out.host[i] == in.host[i] * 3;
    return right;
}
