// Floating point where the result is exactly rounded: the same bits everywhere.
#include "shim/kernel.h"

KERNEL(arithmetic_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 8 * i;
    f32 a = get_f32(in + 3 * i), b = get_f32(in + 3 * i + 1), c = get_f32(in + 3 * i + 2);
    o[0] = bits(a + b);
    o[1] = bits(a - b);
    o[2] = bits(a * b);
    o[3] = bits(__builtin_fmaf(a, b, c));
    o[4] = bits(a * b + c);
    o[5] = bits(-a * __builtin_fabsf(b) - c);
    o[6] = bits(a * 2.0f + 1.0f);
    o[7] = bits(__builtin_copysignf(a, b));
}
TEST(arithmetic_f32, .grid = {512}, .group = {64}, .in = 1536, .out = 4096, .input = "f32", .on = "gfx9* gfx1*");

KERNEL(arithmetic_f64)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 12 * i;
    f64 a = get_f64(in + 6 * i), b = get_f64(in + 6 * i + 2), c = get_f64(in + 6 * i + 4);
    put64(o, bits(a + b));
    put64(o + 2, bits(a - b));
    put64(o + 4, bits(a * b));
    put64(o + 6, bits(__builtin_fma(a, b, c)));
    put64(o + 8, bits(a * b - c));
    put64(o + 10, bits(__builtin_copysign(a, b) * 0.5));
}
TEST(arithmetic_f64, .grid = {512}, .group = {64}, .in = 3072, .out = 6144, .input = "f64");

KERNEL(arithmetic_f16)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 6 * i;
    f16 a = get_f16(in[2 * i]), b = get_f16(in[2 * i] >> 16), c = get_f16(in[2 * i + 1]);
    o[0] = bits(a + b);
    o[1] = bits(a - b);
    o[2] = bits(a * b);
    o[3] = bits((f16)(a * b) + c);
    o[4] = bits(-(f16)__builtin_fabsf(a) - b);
    o[5] = bits(a * (f16)2 + (f16)0.5f);
}
TEST(arithmetic_f16, .grid = {512}, .group = {64}, .in = 1024, .out = 3072, .input = "f16");

// Values small enough that the sum of product and addend is exact in a double.
KERNEL(fused_f16)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    f16 a = get_f16(in[2 * i] & 0xbfff), b = get_f16(in[2 * i] >> 16 & 0xbfff), c = get_f16(in[2 * i + 1] & 0xbfff);
#ifdef __AMDGCN__
    out[i] = bits(__builtin_elementwise_fma(a, b, c));
#else
    // Rounding to odd first makes the second rounding right.
    f64 product = (f64)a * (f64)b, sum = product + (f64)c, rest = (sum - product) - (f64)c;
    f64 error = (product - (sum - (sum - product))) + ((f64)c - (sum - product));
    u64 word = as<u64>(sum);
    if (sum == sum && error != 0 && !(word & 1)) word += (error > 0) == (sum > 0) ? 1 : -1;
    out[i] = bits((f16)as<f64>(word));
#endif
}
TEST(fused_f16, .grid = {512}, .group = {64}, .in = 1024, .out = 512, .input = "random");

typedef f16 f16x2 __attribute__((ext_vector_type(2)));
INLINE u32 pair(f16x2 v) { return bits(v.x) | bits(v.y) << 16; }
KERNEL(packed_f16)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 5 * i;
    f16x2 a = as<f16x2>(in[2 * i]), b = as<f16x2>(in[2 * i + 1]);
    o[0] = pair(a + b);
    o[1] = pair(a * b);
    o[2] = pair(a - b.yx);
    o[3] = pair(a * b.xx + b);
    o[4] = pair(-a * (f16)3);
}
TEST(packed_f16, .grid = {512}, .group = {64}, .in = 1024, .out = 2560, .input = "f16");

typedef f32 f32x2 __attribute__((ext_vector_type(2)));
KERNEL(pairs_of_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 6 * i;
    f32x2 a = {get_f32(in + 4 * i), get_f32(in + 4 * i + 1)}, b = {get_f32(in + 4 * i + 2), get_f32(in + 4 * i + 3)};
    f32x2 sum = a + b, product = a * b.yx, fused = __builtin_elementwise_fma(a, b, -a);
    o[0] = bits(sum.x);
    o[1] = bits(sum.y);
    o[2] = bits(product.x);
    o[3] = bits(product.y);
    o[4] = bits(fused.x);
    o[5] = bits(fused.y);
}
TEST(pairs_of_f32, .grid = {512}, .group = {64}, .in = 2048, .out = 3072, .input = "f32", .on = "gfx9* gfx1*");

KERNEL(arithmetic_bf16)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 4 * i;
    bf16 a = as<bf16>((u16)in[2 * i]), b = as<bf16>((u16)(in[2 * i] >> 16)), c = as<bf16>((u16)in[2 * i + 1]);
    o[0] = bits(a + b);
    o[1] = bits(a * b);
    o[2] = bits((bf16)(a - b) * c);
    o[3] = a < b ? 1 : a == c ? 2 : 3;
}
// Not on gfx125x: LLVM 22 multiplies by `v_fma_mixlo_bf16` with 0 added, which makes a product of -0 a 0.
TEST(arithmetic_bf16, .grid = {512}, .group = {64}, .in = 1024, .out = 2048, .input = "edges32",
    .on = "gfx9* gfx10* gfx11* gfx120* gfx12-generic");

KERNEL(divide_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 3 * i;
    f32 a = get_f32(in + 2 * i), b = get_f32(in + 2 * i + 1);
    o[0] = bits(a / b);
    o[1] = bits(1.0f / b);
    o[2] = bits(a / 3.0f);
}
TEST(divide_f32, .grid = {1024}, .group = {256}, .in = 2048, .out = 3072, .input = "f32", .on = "gfx9* gfx1*");

KERNEL(square_root_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    out[i] = bits(__builtin_sqrtf(get_f32(in + i)));
}
TEST(square_root_f32, .grid = {1024}, .group = {256}, .in = 1024, .out = 1024, .input = "f32", .on = "gfx9* gfx1*");

KERNEL(divide_f64)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 4 * i;
    f64 a = get_f64(in + 4 * i), b = get_f64(in + 4 * i + 2);
    put64(o, bits(a / b));
    put64(o + 2, bits(b / 7.0));
}
TEST(divide_f64, .grid = {1024}, .group = {256}, .in = 4096, .out = 4096, .input = "f64");

KERNEL(square_root_f64)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    put64(out + 2 * i, bits(__builtin_sqrt(get_f64(in + 2 * i))));
}
TEST(square_root_f64, .grid = {1024}, .group = {256}, .in = 2048, .out = 2048, .input = "f64");

KERNEL(divide_f16)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    f16 a = get_f16(in[i]), b = get_f16(in[i] >> 16);
    out[i] = bits((f16)(a / b)) | bits((f16)__builtin_sqrtf((f32)a)) << 16;
}
TEST(divide_f16, .grid = {1024}, .group = {256}, .in = 1024, .out = 1024, .input = "f16");

KERNEL(round_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 6 * i;
    f32 a = get_f32(in + i);
    o[0] = bits(__builtin_floorf(a));
    o[1] = bits(__builtin_ceilf(a));
    o[2] = bits(__builtin_truncf(a));
    o[3] = bits(__builtin_rintf(a));
    o[4] = bits(__builtin_roundf(a));
    o[5] = bits(a - __builtin_floorf(a));
}
TEST(round_f32, .grid = {512}, .group = {256}, .in = 512, .out = 3072, .input = "f32", .on = "gfx9* gfx1*");

KERNEL(round_f64)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 10 * i;
    f64 a = get_f64(in + 2 * i);
    put64(o, bits(__builtin_floor(a)));
    put64(o + 2, bits(__builtin_ceil(a)));
    put64(o + 4, bits(__builtin_trunc(a)));
    put64(o + 6, bits(__builtin_rint(a)));
    put64(o + 8, bits(__builtin_round(a)));
}
TEST(round_f64, .grid = {512}, .group = {256}, .in = 1024, .out = 5120, .input = "f64");

KERNEL(round_f16)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 2 * i;
    f16 a = get_f16(in[i]);
    o[0] = bits((f16)__builtin_floorf((f32)a)) | bits((f16)__builtin_ceilf((f32)a)) << 16;
    o[1] = bits((f16)__builtin_truncf((f32)a)) | bits((f16)__builtin_rintf((f32)a)) << 16;
}
TEST(round_f16, .grid = {512}, .group = {256}, .in = 512, .out = 1024, .input = "f16");

KERNEL(order_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), mask = 0;
    f32 a = get_f32(in + 2 * i), b = i % 5 ? get_f32(in + 2 * i + 1) : a;
    const int all[] = {a<b, a <= b, a> b, a >= b, a == b, a != b, !(a < b), !(a >= b), __builtin_isunordered(a, b),
        __builtin_islessgreater(a, b), a != a, __builtin_isinf(b), __builtin_isfinite(a), __builtin_isnormal(b),
        __builtin_signbit(a) != 0};
    for (int one : all) mask = mask << 1 | (one != 0);
    out[i] = mask;
}
TEST(order_f32, .grid = {1024}, .group = {256}, .in = 2048, .out = 1024, .input = "f32", .on = "gfx9* gfx1*");

KERNEL(order_f64_f16)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), mask = 0;
    f64 a = get_f64(in + 4 * i), b = i % 5 ? get_f64(in + 4 * i + 2) : a;
    f16 c = get_f16(in[4 * i]), d = i % 3 ? get_f16(in[4 * i + 1]) : c;
    const int all[] = {a<b, a <= b, a> b, a >= b, a == b, a != b, !(a < b), a != a, __builtin_isinf(a),
        c<d, c <= d, c> d, c >= d, c == d, c != d, !(c > d)};
    for (int one : all) mask = mask << 1 | (one != 0);
    out[i] = mask;
}
TEST(order_f64_f16, .grid = {1024}, .group = {256}, .in = 4096, .out = 1024, .input = "f64");

// The language leaves open which zero is the smaller.
template <class F> INLINE F plain(F x) { return x == 0 ? 0 : x; }
KERNEL(least_and_most)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 8 * i;
    f32 a = plain(get_f32(in + 2 * i)), b = plain(get_f32(in + 2 * i + 1));
    o[0] = bits(__builtin_fminf(a, b));
    o[1] = bits(__builtin_fmaxf(a, b));
    o[2] = bits(__builtin_fminf(__builtin_fmaxf(a, -1.5f), 2.5f));
    o[3] = bits(__builtin_fminf(__builtin_fmaxf(a * b, 0.0f), 1.0f) + 1.0f);
    f64 x = (f64)a * 3, y = (f64)b;
    put64(o + 4, bits(__builtin_fmin(x, y)));
    put64(o + 6, bits(__builtin_fmax(x, y)));
}
TEST(least_and_most, .grid = {1024}, .group = {256}, .in = 2048, .out = 8192, .input = "f32", .on = "gfx9* gfx1*");

// Exponents taken apart and put together.
#ifdef __AMDGCN__
INLINE f32 fraction(f32 x) { return __builtin_amdgcn_frexp_mantf(x); }
INLINE i32 exponent(f32 x) { return __builtin_amdgcn_frexp_expf(x); }
INLINE f64 fraction(f64 x) { return __builtin_amdgcn_frexp_mant(x); }
INLINE i32 exponent(f64 x) { return __builtin_amdgcn_frexp_exp(x); }
INLINE f32 scaled(f32 x, i32 by) { return __builtin_amdgcn_ldexpf(x, by); }
INLINE f64 scaled(f64 x, i32 by) { return __builtin_amdgcn_ldexp(x, by); }
#else
template <class F> INLINE F fraction(F x) {
    int e;
    return __builtin_isfinite(x) ? (F)__builtin_frexp((f64)x, &e) : x;
}
template <class F> INLINE i32 exponent(F x) {
    int e = 0;
    return __builtin_isfinite(x) ? (__builtin_frexp((f64)x, &e), e) : 0;
}
INLINE f32 scaled(f32 x, i32 by) { return __builtin_ldexpf(x, by); }
INLINE f64 scaled(f64 x, i32 by) { return __builtin_ldexp(x, by); }
#endif
KERNEL(exponents)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 9 * i;
    f64 a = get_f64(in + 2 * i);
    f32 b = get_f32(in + 2 * i);
    o[0] = bits(fraction(b));
    o[1] = (u32)exponent(b);
    o[2] = bits(scaled(b, (i32)(in[2 * i + 1] % 400) - 200));
    put64(o + 3, bits(fraction(a)));
    o[5] = (u32)exponent(a);
    put64(o + 6, bits(scaled(a, (i32)(in[2 * i] % 3000) - 1500)));
    o[8] = bits(scaled(b, 1 << 20));
}
TEST(exponents, .grid = {1024}, .group = {256}, .in = 2048, .out = 9216, .input = "f64", .on = "gfx9* gfx1*");

// Sums that lose and find again what rounding takes.
KERNEL(compensated_sum)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    f32 sum = 0, lost = 0;
    for (u32 k = 0; k < 64; k++) {
        f32 x = get_f32(in + (i * 17 + k) % n) - lost, next = sum + x;
        lost = (next - sum) - x;
        sum = next;
    }
    out[2 * i] = bits(sum);
    out[2 * i + 1] = bits(lost);
}
TEST(compensated_sum, .grid = {256}, .group = {64}, .in = 256, .out = 512, .input = "range -1 1000");

KERNEL(mandelbrot)(const u32 *in, u32 *out, u32 n) {
    u32 x = global_id(0), y = global_id(1);
    f32 cr = -2.0f + (f32)x * (3.0f / 32.0f), ci = -1.25f + (f32)y * (2.5f / 24.0f), zr = 0, zi = 0;
    u32 steps = 0;
    while (zr * zr + zi * zi < 4.0f && steps < 64) {
        f32 next = zr * zr - zi * zi + cr;
        zi = 2.0f * zr * zi + ci;
        zr = next;
        steps++;
    }
    out[y * 32 + x] = steps;
}
TEST(mandelbrot, .grid = {32, 24}, .group = {8, 8}, .in = 1, .out = 768);
