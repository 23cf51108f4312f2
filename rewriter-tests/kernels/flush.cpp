// device flags: -fgpu-flush-denormals-to-zero
// Single precision without denormals: they are zero as operands and as results, with their sign.
#include "shim/kernel.h"

#ifdef __AMDGCN__
INLINE f32 flushed(f32 x) { return x; }
#else
INLINE f32 flushed(f32 x) { return as<u32>(x) & 0x7f800000 ? x : as<f32>(as<u32>(x) & 0x80000000); }
#endif

// Products of a thousandth and less would be denormals; what is flushed is the rounded result.
KERNEL(flushed_arithmetic)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), *o = out + 4 * i;
    f32 a = flushed(get_f32(in + 2 * i)), b = flushed(get_f32(in + 2 * i + 1));
    o[0] = bits(flushed(a + b));
    o[1] = bits(flushed(a - b));
    o[2] = bits(flushed(a * 0.25f));
    o[3] = a == 0 ? 1 : a < b ? 2 : 3;
}
TEST(flushed_arithmetic, .grid = {1024}, .group = {256}, .in = 2048, .out = 4096, .input = "f32");

// Doubles and halves keep theirs.
KERNEL(kept_in_other_formats)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    f64 a = get_f64(in + 2 * i);
    f16 b = get_f16(in[2 * i]), c = get_f16(in[2 * i + 1]);
    put64(out + 3 * i, bits(a * 0.375));
    out[3 * i + 2] = bits((f16)(b * c));
}
TEST(kept_in_other_formats, .grid = {512}, .group = {256}, .in = 1024, .out = 1536, .input = "f64");
