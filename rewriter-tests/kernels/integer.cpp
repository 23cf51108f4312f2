// Integers of every width.
#include "shim/kernel.h"

KERNEL(arithmetic_u32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a = in[2 * i], b = in[2 * i + 1];
    u32 *o = out + 8 * i;
    o[0] = a + b;
    o[1] = a - b;
    o[2] = a * b;
    o[3] = a * 3 + b * 5 - 7;
    o[4] = (a & b) | (~a ^ 0x1234567);
    o[5] = a << (b & 31);
    o[6] = a >> (b & 31);
    o[7] = (u32)((i32)a >> (b & 31));
}
TEST(arithmetic_u32, .grid = {256}, .group = {64}, .in = 512, .out = 2048, .input = "edges32");

KERNEL(arithmetic_u64)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    u64 a = get64(in + 4 * i), b = get64(in + 4 * i + 2);
    u32 *o = out + 18 * i;
    put64(o, a + b);
    put64(o + 2, a - b);
    put64(o + 4, a * b);
    put64(o + 6, (a & b) ^ (a | ~b));
    put64(o + 8, a << (b & 63));
    put64(o + 10, a >> (b & 63));
    put64(o + 12, (u64)((i64)a >> (b & 63)));
    put64(o + 14, a < b ? a : b);
    put64(o + 16, (i64)a > (i64)b ? a - 1 : b + 1);
}
TEST(arithmetic_u64, .grid = {256}, .group = {64}, .in = 1024, .out = 256 * 18, .input = "edges64");

template <class T> INLINE u32 narrow(T a, T b) {
    T sum = a + b, product = a * b, difference = a - b;
    T shifted = (T)(a << (b & (8 * sizeof(T) - 1))), right = (T)(a >> (b & (8 * sizeof(T) - 1)));
    T quotient = b ? (T)(a / b) : 7, rest = b ? (T)(a % b) : 9;
    T least = a < b ? a : b, most = a > b ? a : b;
    u32 hash = 0;
    const T all[] = {sum, product, difference, shifted, right, quotient, rest, least, most};
    for (T v : all) hash = hash * 31 + (u32)v;
    return hash;
}
KERNEL(narrow_integers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a = in[2 * i], b = in[2 * i + 1];
    u32 *o = out + 4 * i;
    o[0] = narrow<u8>((u8)a, (u8)b);
    o[1] = narrow<i8>((i8)a, (i8)b);
    o[2] = narrow<u16>((u16)a, (u16)b);
    o[3] = narrow<i16>((i16)a, (i16)b);
}
TEST(narrow_integers, .grid = {256}, .group = {128}, .in = 512, .out = 1024, .input = "edges32");

// Loads and stores of bytes and halves, aligned and not.
KERNEL(bytes_and_halves)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    const u8 *bytes = (const u8 *)in;
    u8 *o = (u8 *)out;
    o[i] = (u8)(bytes[i] + bytes[n - 1 - i]);
    ((u16 *)(o + n))[i] = (u16)((i8)bytes[i] * (i16)((const u16 *)in)[i]);
    u32 odd;
    __builtin_memcpy(&odd, bytes + i, 4);
    __builtin_memcpy(o + 4 * n + 5 * i + 1, &odd, 4);
    o[4 * n + 5 * i] = (u8)(odd >> 3);
}
TEST(bytes_and_halves, .grid = {256}, .group = {64}, .in = 160, .out = 576);

KERNEL(multiply_high)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    u32 a = in[4 * i], b = in[4 * i + 1];
    u64 x = get64(in + 4 * i), y = get64(in + 4 * i + 2);
    u32 *o = out + 10 * i;
    o[0] = (u32)((u64)a * b >> 32);
    o[1] = (u32)((i64)(i32)a * (i32)b >> 32);
    o[2] = (a & 0xffffff) * (b & 0xffffff);
    o[3] = (u32)((i32)(a << 8) >> 8) * (u32)((i32)(b << 8) >> 8);
    put64(o + 4, (u64)a * b + x);
    put64(o + 6, (u64)((unsigned __int128)x * y >> 64));
    put64(o + 8, (u64)((__int128)(i64)x * (i64)y >> 64));
}
TEST(multiply_high, .grid = {256}, .group = {64}, .in = 1024, .out = 2560, .input = "edges32");

KERNEL(divide_32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a = in[2 * i], b = in[2 * i + 1] >> (i & 31);
    b = b ? b : 3;
    i32 x = (i32)a, y = (i32)b;
    bool overflows = a == 0x80000000u && b == ~0u;
    u32 *o = out + 6 * i;
    o[0] = a / b;
    o[1] = a % b;
    o[2] = overflows ? 1 : (u32)(x / y);
    o[3] = overflows ? 2 : (u32)(x % y);
    o[4] = a / 10 + a % 7 * 3;
    o[5] = (u32)(x / -13 + x % 641);
}
TEST(divide_32, .grid = {512}, .group = {64}, .in = 1024, .out = 3072, .input = "edges32");

KERNEL(divide_64)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    u64 a = get64(in + 4 * i), b = get64(in + 4 * i + 2) >> (i & 63);
    b = b ? b : 3;
    bool overflows = a == 1ul << 63 && b == ~0ul;
    u32 *o = out + 10 * i;
    put64(o, a / b);
    put64(o + 2, a % b);
    put64(o + 4, overflows ? 1 : (u64)((i64)a / (i64)b));
    put64(o + 6, overflows ? 2 : (u64)((i64)a % (i64)b));
    put64(o + 8, a / 1000000007 + a % 97);
}
TEST(divide_64, .grid = {128}, .group = {64}, .in = 512, .out = 1280, .input = "edges64");

KERNEL(bit_counts)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a = in[2 * i];
    u64 x = get64(in + 2 * i);
    u32 *o = out + 12 * i;
    o[0] = __builtin_popcount(a);
    o[1] = __builtin_popcountl(x);
    o[2] = a ? __builtin_clz(a) : 32;
    o[3] = a ? __builtin_ctz(a) : 32;
    o[4] = x ? __builtin_clzl(x) : 64;
    o[5] = x ? __builtin_ctzl(x) : 64;
    o[6] = __builtin_bitreverse32(a);
    put64(o + 7, __builtin_bitreverse64(x));
    o[9] = __builtin_bswap32(a);
    o[10] = __builtin_parity(a);
    o[11] = (i32)a == 0 || (i32)a == -1 ? 32 : __builtin_clrsb(a);
}
TEST(bit_counts, .grid = {256}, .group = {64}, .in = 512, .out = 3072, .input = "edges32");

KERNEL(bit_fields)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
    u32 offset = b & 15, width = 1 + (c & 15);
    u32 *o = out + 8 * i;
    o[0] = a >> offset & ((1u << width) - 1);
    o[1] = (u32)((i32)(a << (32 - offset - width)) >> (32 - width));
    o[2] = (a & b) | (~a & c);
    o[3] = rotl(a, b);
    o[4] = (u32)(((u64)a << 32 | b) >> (c & 31));
    o[5] = ((1u << width) - 1) << offset;
    o[6] = (a >> 5 & 0x7ff) | (b << 11 & 0xfff800);
    o[7] = (u32)(i32)(i8)(a >> 8) ^ (u32)(i32)(i16)(b >> 16) ^ (c >> 24);
}
TEST(bit_fields, .grid = {256}, .group = {64}, .in = 768, .out = 2048, .input = "edges32");

// What a byte permutation, an alignment of bytes and sums of absolute differences are is written out for the CPU.
#ifdef __AMDGCN__
INLINE u32 permute(u32 a, u32 b, u32 s) { return __builtin_amdgcn_perm(a, b, s); }
INLINE u32 align_byte(u32 a, u32 b, u32 by) { return __builtin_amdgcn_alignbyte(a, b, by); }
INLINE u32 align_bit(u32 a, u32 b, u32 by) { return __builtin_amdgcn_alignbit(a, b, by); }
INLINE u32 sad(u32 a, u32 b, u32 c) { return __builtin_amdgcn_sad_u8(a, b, c); }
INLINE u32 sad16(u32 a, u32 b, u32 c) { return __builtin_amdgcn_sad_u16(a, b, c); }
INLINE u32 masked_sad(u32 a, u32 b, u32 c) { return __builtin_amdgcn_msad_u8(a, b, c); }
INLINE u32 lerp(u32 a, u32 b, u32 c) { return __builtin_amdgcn_lerp(a, b, c); }
INLINE u32 extract(u32 a, u32 offset, u32 width) { return __builtin_amdgcn_ubfe(a, offset, width); }
INLINE u32 extract_signed(u32 a, u32 offset, u32 width) { return __builtin_amdgcn_sbfe(a, offset, width); }
#else
INLINE u32 byte(u32 word, u32 n) { return word >> 8 * n & 255; }
INLINE u32 permute(u32 a, u32 b, u32 s) {
    u32 result = 0;
    for (u32 n = 0; n < 4; n++) {
        u32 from = byte(s, n), value;
        if (from < 8) value = byte(from < 4 ? b : a, from & 3);
        else if (from == 8) value = b >> 15 & 1 ? 255 : 0;
        else if (from == 9) value = b >> 31 ? 255 : 0;
        else if (from == 10) value = a >> 15 & 1 ? 255 : 0;
        else if (from == 11) value = a >> 31 ? 255 : 0;
        else value = from == 12 ? 0 : 255;
        result |= value << 8 * n;
    }
    return result;
}
INLINE u32 align_byte(u32 a, u32 b, u32 by) { return (u32)(((u64)a << 32 | b) >> 8 * (by & 3)); }
INLINE u32 align_bit(u32 a, u32 b, u32 by) { return (u32)(((u64)a << 32 | b) >> (by & 31)); }
INLINE u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }
INLINE u32 sad(u32 a, u32 b, u32 c) {
    for (u32 n = 0; n < 4; n++) c += distance(byte(a, n), byte(b, n));
    return c;
}
INLINE u32 sad16(u32 a, u32 b, u32 c) { return c + distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16); }
INLINE u32 masked_sad(u32 a, u32 b, u32 c) {
    for (u32 n = 0; n < 4; n++) c += byte(b, n) ? distance(byte(a, n), byte(b, n)) : 0;
    return c;
}
INLINE u32 lerp(u32 a, u32 b, u32 c) {
    u32 result = 0;
    for (u32 n = 0; n < 4; n++) result |= (byte(a, n) + byte(b, n) + (c >> 8 * n & 1)) / 2 << 8 * n;
    return result;
}
INLINE u32 extract(u32 a, u32 offset, u32 width) { return a >> (offset & 31) & ((1u << (width & 31)) - 1); }
INLINE u32 extract_signed(u32 a, u32 offset, u32 width) {
    offset &= 31;
    width &= 31;
    if (width == 0) return 0;
    if (offset + width >= 32) return (u32)((i32)a >> offset);
    return (u32)((i32)(a << (32 - offset - width)) >> (32 - width));
}
#endif
KERNEL(byte_tricks)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
    u32 *o = out + 10 * i;
    o[0] = permute(a, b, c & 0x0f0f0f0f);
    o[1] = permute(a, b, 0x01060300);
    o[2] = align_byte(a, b, c);
    o[3] = align_bit(a, b, c);
    o[4] = sad(a, b, c);
    o[5] = sad16(a, b, c);
    o[6] = masked_sad(a, b, c);
    o[7] = lerp(a, b, c);
    o[8] = extract(a, b & 31, c & 31);
    o[9] = extract_signed(a, b & 31, c & 31);
}
TEST(byte_tricks, .grid = {256}, .group = {64}, .in = 768, .out = 2560, .input = "edges32");

KERNEL(smallest_largest)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
    i32 x = (i32)a, y = (i32)b, z = (i32)c;
    u32 *o = out + 8 * i;
    u32 low = a < b ? a : b, high = a < b ? b : a;
    i32 least = x < y ? x : y, most = x < y ? y : x;
    o[0] = low < c ? low : c;
    o[1] = high > c ? high : c;
    o[2] = (u32)(least < z ? least : z);
    o[3] = (u32)(most > z ? most : z);
    // The middle of three.
    u32 capped = c < high ? c : high;
    o[4] = capped > low ? capped : low;
    i32 limited = z < most ? z : most;
    o[5] = (u32)(limited > least ? limited : least);
    // Clamped to constants.
    i32 up = x > -100 ? x : -100;
    o[6] = (u32)(up < 1000 ? up : 1000);
    o[7] = x < 0 ? -a : a;
}
TEST(smallest_largest, .grid = {256}, .group = {64}, .in = 768, .out = 2048, .input = "edges32");

KERNEL(saturating)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a = in[2 * i], b = in[2 * i + 1], *o = out + 8 * i;
    o[0] = __builtin_elementwise_add_sat(a, b);
    o[1] = __builtin_elementwise_sub_sat(a, b);
    o[2] = (u32)__builtin_elementwise_add_sat((i32)a, (i32)b);
    o[3] = (u32)__builtin_elementwise_sub_sat((i32)a, (i32)b);
    o[4] = __builtin_elementwise_add_sat((u16)a, (u16)b);
    o[5] = (u32)__builtin_elementwise_sub_sat((i16)a, (i16)b);
    u32 sum, product;
    o[6] = __builtin_add_overflow(a, b, &sum) ? 1 : sum;
    o[7] = __builtin_mul_overflow((i32)a, (i32)b, (i32 *)&product) ? 1 : product;
}
TEST(saturating, .grid = {256}, .group = {64}, .in = 512, .out = 2048, .input = "edges32");

typedef i16 i16x2 __attribute__((ext_vector_type(2)));
typedef u16 u16x2 __attribute__((ext_vector_type(2)));
KERNEL(packed_halves)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    u16x2 a = as<u16x2>(in[2 * i]), b = as<u16x2>(in[2 * i + 1]);
    i16x2 x = as<i16x2>(a), y = as<i16x2>(b);
    u16x2 by = b & (u16)15;
    u32 *o = out + 11 * i;
    o[0] = as<u32>(a + b);
    o[1] = as<u32>(a - b);
    o[2] = as<u32>(a * b);
    o[3] = as<u32>((u16x2)(a << by));
    o[4] = as<u32>((u16x2)(a >> by));
    o[5] = as<u32>((i16x2)(x >> as<i16x2>(by)));
    o[6] = as<u32>(__builtin_elementwise_min(a, b));
    o[7] = as<u32>(__builtin_elementwise_max(x, y));
    o[8] = as<u32>((u16x2)(a * b + a));
    o[9] = as<u32>(__builtin_elementwise_add_sat(a, b));
    o[10] = as<u32>(__builtin_elementwise_sub_sat(x, y));
}
TEST(packed_halves, .grid = {256}, .group = {64}, .in = 512, .out = 2816, .input = "edges32");

KERNEL(compares)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a = in[4 * i], b = in[4 * i + 1] & 3 ? in[4 * i + 1] : a, mask = 0;
    u64 x = get64(in + 4 * i), y = in[4 * i + 3] & 3 ? get64(in + 4 * i + 2) : x;
    i32 p = (i32)a, q = (i32)b;
    i64 r = (i64)x, s = (i64)y;
    const int all[] = {a<b, a <= b, a> b, a >= b, a == b, a != b, p<q, p <= q, p> q, p >= q, x<y, x <= y, x> y, x >= y,
        x == y, x != y, r<s, r <= s, r> s, r >= s, (i16)a < (i16)b, (u16)a >= (u16)b, (u16)a == (u16)b, (i8)a > (i8)b};
    for (int one : all) mask = mask << 1 | (one != 0);
    out[i] = mask;
}
TEST(compares, .grid = {512}, .group = {256}, .in = 2048, .out = 512, .input = "edges32");

// 512-bit numbers: schoolbook product with carries, then a subtraction with borrows.
KERNEL(big_integers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a[8], b[8], product[16] = {};
    for (u32 k = 0; k < 8; k++) {
        a[k] = in[16 * i + k];
        b[k] = in[16 * i + 8 + k];
    }
    for (u32 j = 0; j < 8; j++) {
        u64 carry = 0;
        for (u32 k = 0; k < 8; k++) {
            carry += (u64)a[j] * b[k] + product[j + k];
            product[j + k] = (u32)carry;
            carry >>= 32;
        }
        product[j + 8] = (u32)carry;
    }
    bool borrow = false;
    for (u32 k = 0; k < 16; k++) {
        u64 difference = (u64)product[k] - (k < 8 ? a[k] : b[k - 8]) - borrow;
        out[16 * i + k] = (u32)difference;
        borrow = difference >> 63;
    }
}
TEST(big_integers, .grid = {64}, .group = {64}, .in = 1024, .out = 1024, .input = "edges32");

// Modular powers: 64-bit products reduced by Montgomery's method.
KERNEL(montgomery_powers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    u64 m = get64(in + 4 * i) | 1, inverse = m;
    u64 base = get64(in + 4 * i + 2) % m;
    for (u32 k = 0; k < 5; k++) inverse *= 2 - m * inverse;
    auto times = [&](u64 a, u64 b) {
        unsigned __int128 t = (unsigned __int128)a * b;
        u64 q = (u64)t * inverse, high = (u64)((unsigned __int128)q * m >> 64), top = (u64)(t >> 64);
        return top - high + (top < high ? m : 0);
    };
    u64 result = base;
    for (u32 e = 0x1d; e > 1; e >>= 1) {
        result = times(result, result);
        if (e & 1) result = times(result, base);
    }
    put64(out + 2 * i, result);
}
TEST(montgomery_powers, .grid = {128}, .group = {64}, .in = 512, .out = 256, .input = "edges64");

// Dot products of bytes and halves, by instruction where there is one.
#if defined(__AMDGCN__) &&                                                                                             \
    (defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx940__) ||                       \
        defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__))
#define HAS_SIGNED_DOT 1
#elif defined(__AMDGCN__) && (defined(__gfx1011__) || defined(__gfx1012__) || defined(__GFX10_3__))
#define HAS_SIGNED_DOT 1
#elif defined(__AMDGCN__)
#define HAS_SIGNED_DOT 0
#endif
KERNEL(dot_of_bytes)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
    u32 sums = c;
    i32 signed_sums = (i32)c, halves = (i32)c;
#if defined(__AMDGCN__) && HAS_SIGNED_DOT
    sums = __builtin_amdgcn_udot4(a, b, c, false);
    signed_sums = __builtin_amdgcn_sdot4(a, b, c, false);
    typedef short pair __attribute__((ext_vector_type(2)));
    halves = __builtin_amdgcn_sdot2(as<pair>(a), as<pair>(b), c, false);
#else
    for (u32 k = 0; k < 4; k++) {
        sums += (a >> 8 * k & 255) * (b >> 8 * k & 255);
        signed_sums += (i32)(i8)(a >> 8 * k) * (i32)(i8)(b >> 8 * k);
    }
    halves += (i32)(i16)a * (i16)b + (i32)(i16)(a >> 16) * (i16)(b >> 16);
#endif
    out[3 * i] = sums;
    out[3 * i + 1] = (u32)signed_sums;
    out[3 * i + 2] = (u32)halves;
}
TEST(dot_of_bytes, .grid = {256}, .group = {64}, .in = 768, .out = 768, .input = "edges32");
