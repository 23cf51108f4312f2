// Calls of a function that is not copied on gfx8, with branches before and behind them.
#include "shim/kernel.h"

NOINLINE u32 power(u32 a, u32 b) {
    u32 r = 1;
    for (u32 k = 0; k < b % 10; k++) r *= a;
    return r;
}

// More scratch memory than the offset of an instruction reaches.
KERNEL(one_call)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i];
    volatile u32 own[1100];
    own[n % 1100] = 7;
    own[x % 1100] = x;
    for (u32 k = 0; k < x % 4; k++) x = x * 3 + k;
    x += power(x, i);
    if (x % 3) x = x * 5 + 1;
    out[i] = x + own[n % 1100];
}

KERNEL(call_in_loop)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i] + n;
    for (u32 k = 0; k < x % 5; k++) {
        x += power(x, k);
        if (x % 3) x = x * 5 + 1;
    }
    out[i] = x;
}
