// What is rewritten and then damaged: little code, so that each damage is checked quickly, with a bit of everything.
#include "shim/kernel.h"

// Ends in several places, a loop that lanes leave one by one, one that the whole wave leaves.
KERNEL(loops)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    if (i >= n) return;
    u32 sum = in[i];
    for (u32 a = 0; a < in[i] % 7; a++) {
        for (u32 b = 0; b < n; b++) {
            sum = sum * 5 + b;
            if (b % 3 == 1) sum ^= in[b];
        }
        if (sum % 11 == 0) break;
    }
    if (sum & 1) {
        out[i] = in[sum % n] + in[(sum + 7) % n] + in[(sum + 13) % n] + group_id(1);
        return;
    }
    out[i] = sum;
}

KERNEL(in_lds)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 tile[128];
    u32 i = global_id(), l = local_id();
    tile[l] = in[i];
    barrier();
    u32 sum = 0;
    for (u32 k = 0; k <= l % 8; k++) {
        if (tile[(l + k) % 128] % 3) sum += tile[(l * 5 + k) % 128];
    }
    out[i] = sum;
}

NOINLINE u32 power(u32 a, u32 b) {
    u32 r = 1;
    for (u32 k = 0; k < b % 10; k++) r *= a;
    return r;
}
NOINLINE u32 powers(u32 a, u32 b) {
    u32 x = power(a, b);
    return x & 1 ? x + power(b, a) : x;
}
KERNEL(calls)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = powers(in[i], i);
    if (i % 3) x = power(x, 7);
    out[i] = x;
}

// VCC holds a lane's part of a division, and what a branch of the whole wave asks for.
KERNEL(ratios)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    f32 ratio = (f32)in[i];
    for (u32 k = 0; k < n % 5; k++) ratio = ratio / (f32)(k + 3);
    f32 scale = (f32)n / (f32)group_size();
    if (scale > 2.5f) ratio += scale;
    out[i] = bits(ratio);
}

// Behind branches of the whole wave, on a scalar and on what a vector instruction compares, stores with a scalar base.
KERNEL(guarded)(const u32 *in, u32 *out, u32 n) {
    u32 l = local_id(), x = in[l];
    if (__builtin_expect(n == 3, 1)) out[l] = x;
    if (get_f32(in) > 2.5f) out[l] = x + 1;
}

// All scalar registers, and what is in them is needed behind the branches. The compiler takes the lowest ones for the
// little that there is of its own.
#if RDNA
#define SCALARS "106"
#define LAST_SCALAR "s105"
#else
#define SCALARS "102"
#define LAST_SCALAR "s101"
#endif
KERNEL(many_scalars)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i];
    asm volatile(".set at, 24\n.rept " SCALARS " - 24\ns_mov_b32 s[at], %0\n.set at, at + 1\n.endr" ::"s"(n)
        : LAST_SCALAR);
    for (u32 k = 0; k < x % 4; k++)
        if (n % 5 == k) x = x * 3 + k;
    asm volatile(".set at, 0\n.rept " SCALARS "\nv_xor_b32 %0, s[at], %0\n.set at, at + 1\n.endr" : "+v"(x));
    out[i] = x;
}

#if defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__)
typedef f32 row __attribute__((ext_vector_type(4)));
KERNEL(products)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    row sum = {0, 0, 0, 0};
    f32 a = get_f32(in + i), b = get_f32(in + n - 1 - i);
    for (u32 k = 0; k < n; k++) sum = __builtin_amdgcn_mfma_f32_4x4x1f32(a, b, sum, 0, 0, 0);
    for (u32 k = 0; k < 4; k++) out[4 * i + k] = bits(sum[k]);
}
#endif

// The same with vector registers. Those of the compiler are set, too: what nothing has set need not be kept.
KERNEL(many_vectors)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i];
    asm volatile(".set at, 0\n.rept 16\nv_mov_b32 v[at], v[at]\n.set at, at + 1\n.endr");
    asm volatile(".set at, 16\n.rept 240\nv_mov_b32 v[at], %0\n.set at, at + 1\n.endr" ::"v"(x) : "v255");
    for (u32 k = 0; k < x % 4; k++)
        if (n % 5 == k) x = x * 3 + k;
    asm volatile(".set at, 0\n.rept 256\nv_xor_b32 %0, v[at], %0\n.set at, at + 1\n.endr" : "+v"(x));
    out[i] = x;
}

// Three of them hold nothing while there are branches: a probe borrows those, and a pair of the others for addresses,
// which gfx8 needs.
KERNEL(most_vectors)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i];
    asm volatile(".set at, 0\n.rept 16\nv_mov_b32 v[at], v[at]\n.set at, at + 1\n.endr");
    asm volatile(".set at, 16\n.rept 237\nv_mov_b32 v[at], %0\n.set at, at + 1\n.endr" ::"v"(x) : "v252");
    for (u32 k = 0; k < x % 4; k++)
        if (n % 5 == k) x = x * 3 + k;
    asm volatile(".set at, 253\n.rept 3\nv_mov_b32 v[at], %0\n.set at, at + 1\n.endr" ::"v"(x) : "v255");
    asm volatile(".set at, 0\n.rept 256\nv_xor_b32 %0, v[at], %0\n.set at, at + 1\n.endr" : "+v"(x));
    out[i] = x;
}

// Both, but for so few scalar registers that whole vector registers have to go elsewhere. It has more scratch memory
// than an instruction's offset reaches.
KERNEL(many_of_both)(const u32 *in, u32 *out, u32 n) {
    volatile u32 own[1100];
    u32 i = global_id(), x = in[i];
    own[x % 1100] = x;
    asm volatile(".set at, 0\n.rept 16\nv_mov_b32 v[at], v[at]\n.set at, at + 1\n.endr");
    asm volatile(".set at, 16\n.rept 240\nv_mov_b32 v[at], %0\n.set at, at + 1\n.endr" ::"v"(x) : "v255");
    asm volatile(".set at, 0\n.rept 24\ns_mov_b32 s[at], s[at]\n.set at, at + 1\n.endr");
    asm volatile(".set at, 24\n.rept 92 - 24\ns_mov_b32 s[at], %0\n.set at, at + 1\n.endr" ::"s"(n) : "s91");
    asm volatile(".set at, 98\n.rept " SCALARS " - 98\ns_mov_b32 s[at], %0\n.set at, at + 1\n.endr" ::"s"(n)
        : LAST_SCALAR);
    for (u32 k = 0; k < x % 4; k++)
        if (n % 5 == k) x = x * 3 + k;
    asm volatile(".set at, 0\n.rept 256\nv_xor_b32 %0, v[at], %0\n.set at, at + 1\n.endr" : "+v"(x));
    asm volatile(".set at, 0\n.rept 92\nv_xor_b32 %0, s[at], %0\n.set at, at + 1\n.endr" : "+v"(x));
    asm volatile(".set at, 98\n.rept " SCALARS " - 98\nv_xor_b32 %0, s[at], %0\n.set at, at + 1\n.endr" : "+v"(x));
    out[i] = x + own[n % 1100];
}

// The same where an original function is called, which knows nothing of the registers that inserted code has for good.
#if defined(__gfx803__)
KERNEL(many_and_calls)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i];
    asm volatile(".set at, 0\n.rept 16\nv_mov_b32 v[at], v[at]\n.set at, at + 1\n.endr");
    asm volatile(".set at, 16\n.rept 240\nv_mov_b32 v[at], %0\n.set at, at + 1\n.endr" ::"v"(x) : "v255");
    asm volatile(".set at, 34\n.rept 92 - 34\ns_mov_b32 s[at], %0\n.set at, at + 1\n.endr" ::"s"(n) : "s91");
    asm volatile(".set at, 98\n.rept " SCALARS " - 98\ns_mov_b32 s[at], %0\n.set at, at + 1\n.endr" ::"s"(n)
        : LAST_SCALAR);
    if (x % 7 == 3) out[i] = x;
    x = power(x, n);
    asm volatile(".set at, 0\n.rept 256\nv_xor_b32 %0, v[at], %0\n.set at, at + 1\n.endr" : "+v"(x));
    asm volatile(".set at, 34\n.rept 92 - 34\nv_xor_b32 %0, s[at], %0\n.set at, at + 1\n.endr" : "+v"(x));
    asm volatile(".set at, 98\n.rept " SCALARS " - 98\nv_xor_b32 %0, s[at], %0\n.set at, at + 1\n.endr" : "+v"(x));
    out[i] = x;
}
#endif

// What a loader has to fill in, and constants.
GLOBAL_VARIABLE u32 filled[4] = {1, 2, 3, 4};
GLOBAL_VARIABLE u32 *at_filled = filled + 1;
TABLE u32 constants[] = {0x57a71c00, 3, 1, 4, 1, 5, 9, 2};
KERNEL(relocated)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    if (in[i] % 2) out[i] = *at_filled + constants[in[i] % 8];
}
