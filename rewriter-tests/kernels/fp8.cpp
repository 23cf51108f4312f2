// Floating point of eight bits, in both of its kinds: gfx94x has no infinities and no negative zero, gfx950 and gfx12
// have OCP's.
#include "shim/kernel.h"

#if defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
#define FNUZ 1
#endif
#ifndef __AMDGCN__
// The value of a byte with so many bits of fraction; NaN where it has none.
inline f32 decoded(u8 byte, u32 fraction, bool fnuz) {
    u32 exponent_bits = 7 - fraction, e = byte >> fraction & ((1 << exponent_bits) - 1),
        m = byte & ((1 << fraction) - 1);
    i32 bias = (1 << (exponent_bits - 1)) - (fnuz ? 0 : 1);
    if (fnuz && byte == 0x80) return __builtin_nanf("");
    if (!fnuz && fraction == 3 && (byte & 0x7f) == 0x7f) return __builtin_nanf("");
    if (!fnuz && fraction == 2 && e == 31)
        return m ? __builtin_nanf("") : byte & 0x80 ? -__builtin_inff() : __builtin_inff();
    f32 magnitude = e ? __builtin_ldexpf((f32)((1 << fraction) + m), (i32)e - bias - (i32)fraction)
                      : __builtin_ldexpf((f32)m, 1 - bias - (i32)fraction);
    return byte & 0x80 ? -magnitude : magnitude;
}
// The nearest value, of two as near the even one; the caller stays in range.
inline u8 encoded(f32 x, u32 fraction, bool fnuz) {
    u8 best = 0;
    f64 least = 1e30;
    for (u32 byte = 0; byte < 128; byte++) {
        f64 away = __builtin_fabs((f64)decoded((u8)byte, fraction, fnuz) - __builtin_fabs((f64)x));
        if (away < least || (away == least && !(byte & 1))) {
            best = (u8)byte;
            least = away;
        }
    }
    bool negative = __builtin_signbit(x) && !(fnuz && best == 0);
    return best | (negative ? 0x80 : 0);
}
#define DEFINE_SIDE(kind, fnuz)                                                                                        \
    INLINE u32 encode_##kind(f32 a, f32 b) {                                                                           \
        return encoded(a, 3, fnuz) | encoded(b, 3, fnuz) << 8 | encoded(a, 2, fnuz) << 16 |                            \
               (u32)encoded(b, 2, fnuz) << 24;                                                                         \
    }                                                                                                                  \
    INLINE f32 fp8_##kind(u32 word, u32 n) { return decoded((u8)(word >> 8 * n), 3, fnuz); }                           \
    INLINE f32 bf8_##kind(u32 word, u32 n) { return decoded((u8)(word >> 8 * n), 2, fnuz); }
DEFINE_SIDE(fnuz, true)
DEFINE_SIDE(ocp, false)
#elif FNUZ || defined(__gfx950__) || defined(__GFX12__)
#define DEFINE_SIDE(kind)                                                                                              \
    INLINE u32 encode_##kind(f32 a, f32 b) {                                                                           \
        return __builtin_amdgcn_cvt_pk_bf8_f32(a, b, __builtin_amdgcn_cvt_pk_fp8_f32(a, b, 0, false), true);           \
    }                                                                                                                  \
    INLINE f32 fp8_##kind(u32 word, u32 n) {                                                                           \
        return n == 0   ? __builtin_amdgcn_cvt_f32_fp8(word, 0)                                                        \
               : n == 1 ? __builtin_amdgcn_cvt_f32_fp8(word, 1)                                                        \
               : n == 2 ? __builtin_amdgcn_cvt_f32_fp8(word, 2)                                                        \
                        : __builtin_amdgcn_cvt_f32_fp8(word, 3);                                                       \
    }                                                                                                                  \
    INLINE f32 bf8_##kind(u32 word, u32 n) {                                                                           \
        auto low = __builtin_amdgcn_cvt_pk_f32_bf8(word, false), high = __builtin_amdgcn_cvt_pk_f32_bf8(word, true);   \
        return n == 0 ? low[0] : n == 1 ? low[1] : n == 2 ? high[0] : high[1];                                         \
    }
DEFINE_SIDE(fnuz)
DEFINE_SIDE(ocp)
#endif

#define EIGHT_BITS(kind, targets) \
    KERNEL(eight_bits_##kind)(const u32 *in, u32 *out, u32 n) { \
        u32 i = global_id(), word = in[i], *o = out + 9 * i; \
        _Pragma("unroll") for (u32 k = 0; k < 4; k++) { \
            o[k] = bits(fp8_##kind(word, k)); \
            o[4 + k] = bits((f32)bf8_##kind(word, k)); \
        } \
        o[8] = encode_##kind((f32)(i32)(word % 400001 - 200000) * 0.001f, (f32)(word >> 9 & 0xfff) * 0x1p-12f); \
    } \
    TEST(eight_bits_##kind, .grid = {256}, .group = {64}, .in = 256, .out = 2304, .on = targets)
#if !defined(__AMDGCN__) || FNUZ
EIGHT_BITS(fnuz, "gfx94*");
#endif
#if !defined(__AMDGCN__) || defined(__gfx950__) || defined(__GFX12__)
EIGHT_BITS(ocp, "gfx950 gfx12*");
#endif
