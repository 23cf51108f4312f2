// What the hardware approximates: within the error that AMD's ISA guides give, against the CPU's libm in double
// precision.
#include "shim/kernel.h"

#ifdef __AMDGCN__
INLINE f32 reciprocal(f32 x) { return __builtin_amdgcn_rcpf(x); }
INLINE f32 root(f32 x) { return __builtin_amdgcn_sqrtf(x); }
INLINE f32 inverse_root(f32 x) { return __builtin_amdgcn_rsqf(x); }
INLINE f32 power_of_two(f32 x) { return __builtin_amdgcn_exp2f(x); }
INLINE f32 logarithm(f32 x) { return __builtin_amdgcn_logf(x); }
INLINE f32 sine(f32 turns) { return __builtin_amdgcn_sinf(__builtin_amdgcn_fractf(turns)); }
INLINE f32 cosine(f32 turns) { return __builtin_amdgcn_cosf(__builtin_amdgcn_fractf(turns)); }
INLINE f64 reciprocal(f64 x) { return __builtin_amdgcn_rcp(x); }
INLINE f64 inverse_root(f64 x) { return __builtin_amdgcn_rsq(x); }
INLINE f16 reciprocal(f16 x) { return __builtin_amdgcn_rcph(x); }
INLINE f16 root(f16 x) { return __builtin_amdgcn_sqrth(x); }
INLINE f16 inverse_root(f16 x) { return __builtin_amdgcn_rsqh(x); }
INLINE f16 sine(f16 turns) { return __builtin_amdgcn_sinh(turns); }
INLINE f16 cosine(f16 turns) { return __builtin_amdgcn_cosh(turns); }
#else
#include <math.h>
INLINE f32 reciprocal(f32 x) { return (f32)(1 / (f64)x); }
INLINE f32 root(f32 x) { return (f32)sqrt((f64)x); }
INLINE f32 inverse_root(f32 x) { return (f32)(1 / sqrt((f64)x)); }
INLINE f32 power_of_two(f32 x) { return (f32)exp2((f64)x); }
INLINE f32 logarithm(f32 x) { return (f32)log2((f64)x); }
INLINE f32 sine(f32 turns) { return (f32)sin((f64)turns * 2 * M_PI); }
INLINE f32 cosine(f32 turns) { return (f32)cos((f64)turns * 2 * M_PI); }
INLINE f64 reciprocal(f64 x) { return 1 / x; }
INLINE f64 inverse_root(f64 x) { return 1 / sqrt(x); }
INLINE f16 reciprocal(f16 x) { return (f16)(1 / (f64)x); }
INLINE f16 root(f16 x) { return (f16)sqrt((f64)x); }
INLINE f16 inverse_root(f16 x) { return (f16)(1 / sqrt((f64)x)); }
INLINE f16 sine(f16 turns) { return (f16)sin((f64)turns * 2 * M_PI); }
INLINE f16 cosine(f16 turns) { return (f16)cos((f64)turns * 2 * M_PI); }
#endif

KERNEL(approximate_roots_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 3 * i;
    f32 a = get_f32(in + i);
    o[0] = bits(reciprocal(a - 20.0f));
    o[1] = bits(root(a));
    o[2] = bits(inverse_root(a * a * a));
}
TEST(approximate_roots_f32, .grid = {1024}, .group = {256}, .in = 1024, .out = 3072, .input = "range 0.0001 50",
    .compare = "f32 ulp 1");

KERNEL(approximate_powers_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    out[2 * i] = bits(power_of_two(get_f32(in + i)));
    out[2 * i + 1] = bits(logarithm(get_f32(in + i) + 130.0f));
}
TEST(approximate_powers_f32, .grid = {1024}, .group = {256}, .in = 1024, .out = 2048, .input = "range -120 120",
    .compare = "f32 ulp 2");

KERNEL(approximate_waves_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    out[2 * i] = bits(sine(get_f32(in + i)));
    out[2 * i + 1] = bits(cosine(get_f32(in + i)));
}
TEST(approximate_waves_f32, .grid = {1024}, .group = {256}, .in = 1024, .out = 2048, .input = "range -16 16",
    .compare = "f32 near 1e-5");

// (2^29)^-1 of relative error.
KERNEL(approximate_f64)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    f64 a = get_f64(in + 2 * i);
    put64(out + 4 * i, bits(reciprocal(a)));
    put64(out + 4 * i + 2, bits(inverse_root(a)));
}
TEST(approximate_f64, .grid = {512}, .group = {256}, .in = 1024, .out = 2048, .input = "range64 0.01 1000",
    .compare = "f64 near 1e-6");

KERNEL(approximate_f16)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    f16 a = (f16)get_f32(in + i);
    u16 *o = (u16 *)out + 4 * i;
    o[0] = (u16)bits(reciprocal(a));
    o[1] = (u16)bits(root(a));
    o[2] = (u16)bits(inverse_root(a));
    o[3] = 0;
}
TEST(approximate_f16, .grid = {512}, .group = {256}, .in = 512, .out = 1024, .input = "range 0.01 1000",
    .compare = "f16 ulp 1");

KERNEL(approximate_waves_f16)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    f16 a = (f16)get_f32(in + i);
    out[2 * i] = bits((f32)sine(a));
    out[2 * i + 1] = bits((f32)cosine(a));
}
TEST(approximate_waves_f16, .grid = {512}, .group = {256}, .in = 512, .out = 1024, .input = "range -8 8",
    .compare = "f32 near 0.002");
