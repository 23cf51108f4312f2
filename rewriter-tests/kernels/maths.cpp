// ROCm's library of mathematical functions, by the bounds of OpenCL's full profile, against the CPU's libm.
#include "shim/kernel.h"

#ifdef __AMDGCN__
#define FUNCTION(name) \
    extern "C" __attribute__((device, const)) f32 __ocml_##name##_f32(f32); \
    extern "C" __attribute__((device, const)) f64 __ocml_##name##_f64(f64); \
    INLINE f32 name##_of(f32 x) { return __ocml_##name##_f32(x); } \
    INLINE f64 name##_of(f64 x) { return __ocml_##name##_f64(x); }
#define FUNCTION_OF_TWO(name) \
    extern "C" __attribute__((device, const)) f32 __ocml_##name##_f32(f32, f32); \
    extern "C" __attribute__((device, const)) f64 __ocml_##name##_f64(f64, f64); \
    INLINE f32 name##_of(f32 x, f32 y) { return __ocml_##name##_f32(x, y); } \
    INLINE f64 name##_of(f64 x, f64 y) { return __ocml_##name##_f64(x, y); }
#else
#include <math.h>
#define FUNCTION(name) \
    INLINE f32 name##_of(f32 x) { return (f32)name((f64)x); } \
    INLINE f64 name##_of(f64 x) { return name(x); }
#define FUNCTION_OF_TWO(name) \
    INLINE f32 name##_of(f32 x, f32 y) { return (f32)name((f64)x, (f64)y); } \
    INLINE f64 name##_of(f64 x, f64 y) { return name(x, y); }
#endif
FUNCTION(sin)
FUNCTION(cos)
FUNCTION(tan)
FUNCTION(exp)
FUNCTION(log)
FUNCTION(atan)
FUNCTION(tanh)
FUNCTION(erf)
FUNCTION(cbrt)
FUNCTION_OF_TWO(pow)
FUNCTION_OF_TWO(fmod)
FUNCTION_OF_TWO(hypot)

template <class F> INLINE void waves(F x, F *o) {
    o[0] = sin_of(x);
    o[1] = cos_of(x);
    o[2] = tan_of(x);
    o[3] = atan_of(x);
}
KERNEL(library_waves_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    waves<f32>(get_f32(in + i), (f32 *)out + 4 * i);
}
TEST(library_waves_f32, .grid = {256}, .group = {64}, .in = 256, .out = 1024, .input = "range -100 100",
    .compare = "f32 ulp 5");

KERNEL(library_large_waves_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    waves<f32>(get_f32(in + i) * 1e20f, (f32 *)out + 4 * i);
}
TEST(library_large_waves_f32, .grid = {64}, .group = {64}, .in = 64, .out = 256, .input = "range -100 100",
    .compare = "f32 ulp 5");

KERNEL(library_waves_f64)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    waves<f64>(get_f64(in + 2 * i), (f64 *)out + 4 * i);
}
TEST(library_waves_f64, .grid = {128}, .group = {64}, .in = 256, .out = 1024, .input = "range64 -100 100",
    .compare = "f64 ulp 5");

template <class F> INLINE void powers(F x, F y, F *o) {
    o[0] = exp_of(x);
    o[1] = log_of(y);
    o[2] = pow_of(y, x);
    o[3] = cbrt_of(x);
    o[4] = tanh_of(x);
    o[5] = erf_of(x);
    o[6] = hypot_of(x, y);
    o[7] = fmod_of(y, x);
}
KERNEL(library_powers_f32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    powers<f32>(get_f32(in + i), get_f32(in + n - 1 - i) + 7.0f, (f32 *)out + 8 * i);
}
TEST(library_powers_f32, .grid = {256}, .group = {64}, .in = 256, .out = 2048, .input = "range -6 6",
    .compare = "f32 ulp 16");

KERNEL(library_powers_f64)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    powers<f64>(get_f64(in + 2 * i), get_f64(in + 2 * (n - 1 - i)) + 7.0, (f64 *)out + 8 * i);
}
TEST(library_powers_f64, .grid = {64}, .group = {64}, .in = 128, .out = 1024, .input = "range64 -6 6",
    .compare = "f64 ulp 16");
