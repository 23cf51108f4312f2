// Conversions between all types.
#include "shim/kernel.h"

// Out of range is undefined in the language; these stay inside.
template <class F> INLINE F limited(F x, F low, F high) { return x > low ? x < high ? x : high : low; }

KERNEL(integers_to_floats)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a = in[2 * i], *o = out + 16 * i;
    u64 x = get64(in + 2 * i);
    o[0] = bits((f32)a);
    o[1] = bits((f32)(i32)a);
    o[2] = bits((f32)x);
    o[3] = bits((f32)(i64)x);
    put64(o + 4, bits((f64)a));
    put64(o + 6, bits((f64)(i32)a));
    put64(o + 8, bits((f64)x));
    put64(o + 10, bits((f64)(i64)x));
    o[12] = bits((f16)(u16)a);
    o[13] = bits((f16)(i16)a);
    o[14] = bits((f32)(u8)(a >> 8)) ^ bits((f32)(u8)(a >> 24)) << 1;
    o[15] = bits((f32)(i8)a) ^ bits((f32)(u16)a) << 1;
}
TEST(integers_to_floats, .grid = {256}, .group = {64}, .in = 512, .out = 4096, .input = "edges64");

KERNEL(floats_to_integers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 8 * i;
    f32 x = get_f32(in + i);
    x = x * (f32)(1u << (i % 31));
    o[0] = (u32)limited(x, 0.0f, 4294967040.0f);
    o[1] = (u32)(i32)limited(x, -2147483648.0f, 2147483520.0f);
    o[2] = (u32)(u16)limited(x, 0.0f, 65535.0f) | (u32)(u8)limited(x, 0.0f, 255.0f) << 16;
    o[3] = (u32)(i32)(i16)limited(x, -32768.0f, 32767.0f) ^ (u32)(i32)(i8)limited(x, -128.0f, 127.0f);
    f32 wide = x * 1e9f;
    put64(o + 4, (u64)limited(wide, 0.0f, 18446742974197923840.0f));
    put64(o + 6, (u64)(i64)limited(wide, -9223372036854775808.0f, 9223371487098961920.0f));
}
TEST(floats_to_integers, .grid = {512}, .group = {64}, .in = 512, .out = 4096, .input = "range -9 9");

KERNEL(doubles_to_integers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 8 * i;
    f64 x = get_f64(in + 2 * i) * (f64)(1ul << (i % 60));
    o[0] = (u32)limited(x, 0.0, 4294967295.0);
    o[1] = (u32)(i32)limited(x, -2147483648.0, 2147483647.0);
    put64(o + 2, (u64)limited(x, 0.0, 18446744073709549568.0));
    put64(o + 4, (u64)(i64)limited(x, -9223372036854775808.0, 9223372036854774784.0));
    o[6] = (u32)(u16)limited(x, 0.0, 65535.0);
    o[7] = (u32)(i32)(i8)limited(x, -128.0, 127.0);
}
TEST(doubles_to_integers, .grid = {512}, .group = {64}, .in = 1024, .out = 4096, .input = "range64 -90 90");

KERNEL(between_f32_f64)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    put64(out + 3 * i, bits((f64)get_f32(in + 2 * i)));
    out[3 * i + 2] = bits((f32)get_f64(in + 2 * i));
}
TEST(between_f32_f64, .grid = {1024}, .group = {256}, .in = 2048, .out = 3072, .input = "f64");

// A double rounds to the singles' denormals too.
KERNEL(f64_to_small_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    out[i] = bits((f32)(get_f64(in + 2 * i) * 0x1p-140));
}
TEST(f64_to_small_f32, .grid = {256}, .group = {64}, .in = 512, .out = 256, .input = "range64 -100 100",
    .on = "gfx9* gfx1*");

KERNEL(between_f16_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 3 * i;
    o[0] = bits((f32)get_f16(in[i]));
    o[1] = bits((f32)get_f16(in[i] >> 16));
    o[2] = bits((f16)get_f32(in + i));
}
TEST(between_f16_f32, .grid = {1024}, .group = {256}, .in = 1024, .out = 3072, .input = "f16");

KERNEL(f32_to_f16_rounds)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    f32 x = get_f32(in + i) * (i & 1 ? 0x1p-20f : 1.0f);
    out[i] = bits((f16)x) | bits((f16)-x) << 16;
}
TEST(f32_to_f16_rounds, .grid = {512}, .group = {64}, .in = 512, .out = 512, .input = "range -100 100");

KERNEL(f16_to_integers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 2 * i;
    f16 x = get_f16(in[i]);
    x = x == x ? x : (f16)1;
    o[0] = (u32)(u16)limited<f32>(x, 0, 65504) | (u32)(i16)limited<f32>(x, -32768, 32752) << 16;
    o[1] = (u32)(i32)limited<f32>(x, -65504, 65504);
}
TEST(f16_to_integers, .grid = {256}, .group = {64}, .in = 256, .out = 512, .input = "f16");

KERNEL(between_bf16_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 2 * i;
    o[0] = bits((bf16)get_f32(in + i));
    o[1] = bits((f32)as<bf16>((u16)(in[i] >> 16)));
}
TEST(between_bf16_f32, .grid = {1024}, .group = {256}, .in = 1024, .out = 2048, .input = "f32");

KERNEL(f64_to_f16)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    out[i] = bits((f32)(f16)(f32)get_f64(in + 2 * i));
}
TEST(f64_to_f16, .grid = {512}, .group = {64}, .in = 1024, .out = 512, .input = "range64 -70000 70000");
