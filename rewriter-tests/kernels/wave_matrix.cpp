// Matrix instructions of gfx11 and gfx12 (WMMA). Whole numbers so small that every sum is exact: the order of additions
// does not matter. On the CPU a lane of the result is computed from rows of A and columns of B that are looked up in
// the lanes that bring them (RDNA3 ISA guide, "Wave matrix multiply accumulate"; RDNA4 ISA guide, "Matrix element
// storage in VGPRs").
#include "shim/kernel.h"

template <class T, u32 n> using vec = T __attribute__((ext_vector_type(n)));

// On gfx11 every lane brings a whole row, and on gfx12 the part that its sixteen lanes have. Which of the two, the
// kernel's name says.
#if defined(__GFX11__)
#define WMMA_11 1
// gfx125x has others: sixteen times sixteen times 32 and more.
#elif defined(__GFX12__) && !defined(__gfx1250__) && !defined(__gfx1251__)
#define WMMA_12 1
#elif !defined(__AMDGCN__)
#define WMMA_11 1
#define WMMA_12 1
#endif

INLINE i32 small(u32 word, u32 n) { return (i32)(word >> 5 * n & 15) - 7; }

// What a lane brings of a row of sixteen: all of it, or `WAVE / 16` lanes share it.
struct Row { u32 word[8]; };

#ifdef __AMDGCN__
#define LANES (__AMDGCN_WAVEFRONT_SIZE__)
#if __AMDGCN_WAVEFRONT_SIZE__ == 32
#define WMMA_OF_11(name) __builtin_amdgcn_wmma_##name##_w32
#define WMMA_OF_12(name) __builtin_amdgcn_wmma_##name##_w32_gfx12
#else
#define WMMA_OF_11(name) __builtin_amdgcn_wmma_##name##_w64
#define WMMA_OF_12(name) __builtin_amdgcn_wmma_##name##_w64_gfx12
#endif
typedef vec<f32, 256 / LANES> Singles;
typedef vec<i32, 256 / LANES> Integers;
template <class V> INLINE V taken(const Row &row) {
    V v;
    __builtin_memcpy(&v, row.word, sizeof v);
    return v;
}
#else
#define LANES WAVE
struct Singles { f32 n[8]; f32 &operator[](u32 i) { return n[i]; } };
struct Integers { i32 n[8]; i32 &operator[](u32 i) { return n[i]; } };

struct OfHalves { enum { bits = 16 }; static f32 get(u32 v) { return (f32)get_f16(v); } };
struct OfBfloats { enum { bits = 16 }; static f32 get(u32 v) { return as<f32>(v << 16); } };
struct OfBytes { enum { bits = 8 }; static i32 get(u32 v) { return (i8)v; } };
struct OfFours { enum { bits = 4 }; static i32 get(u32 v) { return (i32)(v << 28) >> 28; } };

// `each`: numbers of a row that a lane brings, out of `inner`.
template <class Of, class V> V wmma(const Row &a, const Row &b, V c, u32 inner, u32 each, bool twelve) {
    u32 left[8][64], right[8][64], words = (each * Of::bits + 31) / 32;
    for (u32 w = 0; w < words; w++) {
        const auto &l = cpu::meet(a.word[w], __LINE__);
        for (u32 i = 0; i < WAVE; i++) left[w][i] = (u32)l.values[i];
        const auto &r = cpu::meet(b.word[w], __LINE__);
        for (u32 i = 0; i < WAVE; i++) right[w][i] = (u32)r.values[i];
    }
    auto element = [&](const u32(&of)[8][64], u32 line, u32 k) {
        u32 at = k % each * Of::bits;
        u32 word = of[at / 32][line + 16 * (k / each)] >> at % 32;
        return Of::get(Of::bits == 32 ? word : word & ((1u << Of::bits) - 1));
    };
    u32 l = lane(), registers = 256 / WAVE, groups = WAVE / 16;
    for (u32 r = 0; r < registers; r++) {
        u32 row = !twelve ? groups * r + l / 16 : WAVE == 32 ? 8 * (l / 16) + r : 8 * (l / 16 % 2) + 4 * (l / 32) + r;
        for (u32 k = 0; k < inner; k++) c[r] += element(left, row, k) * element(right, l % 16, k);
    }
    return c;
}
#endif

// A row of small numbers, made from words that all lanes of that row read.
template <class Make> INLINE Row made(const u32 *in, u32 n, u32 per_word, Make make) {
    Row row = {};
    for (u32 k = 0; k < n; k++) row.word[k / per_word] |= make(small(in[k], k % 6)) << 32 / per_word * (k % per_word);
    return row;
}
INLINE u32 half_of(i32 x) { return bits((f16)x); }
INLINE u32 bfloat_of(i32 x) { return as<u32>((f32)x) >> 16; }
INLINE u32 byte_of(i32 x) { return (u8)x; }
INLINE u32 four_of(i32 x) { return (u32)x & 15; }

#ifdef __AMDGCN__
#define SINGLE(version, name, Of, V, a, b, c, inner, each) WMMA_OF_##version(name)(taken<V>(a), taken<V>(b), c)
#define INTEGER(version, name, Of, V, a, b, c, inner, each)                                                            \
    WMMA_OF_##version(name)(true, taken<V>(a), true, taken<V>(b), c, false)
#else
#define SINGLE(version, name, Of, V, a, b, c, inner, each) wmma<Of>(a, b, c, inner, each, version == 12)
#define INTEGER SINGLE
#endif

// Multiplies twice, the second time on top of the first with A and B exchanged. `each` is what a lane brings.
#define WMMA_KERNEL(version, kind, name, Of, Sum, V, per_word, make, inner, whole, targets) \
    KERNEL(wave_matrix_##version##_##name)(const u32 *in, u32 *out, u32 n) { \
        u32 i = global_id(), each = whole ? inner : inner * 16 / LANES; \
        u32 place = lane() % 16 * 16 + (whole ? 0 : lane() / 16 * each) + group_id() * 64; \
        Row a = made(in + place, each, per_word, make), b = made(in + 300 + place, each, per_word, make); \
        Sum c; \
        for (u32 r = 0; r < 256 / LANES; r++) c[r] = (i32)((i * 3 + r * 5) % 64) - 20; \
        c = kind(version, name, Of, V, a, b, c, inner, each); \
        c = kind(version, name, Of, V, b, a, c, inner, each); \
        for (u32 r = 0; r < 256 / LANES; r++) out[8 * i + r] = as<u32>(c[r]); \
    } \
    TEST(wave_matrix_##version##_##name, .grid = {128}, .group = {64}, .in = 1024, .out = 1024, .on = targets)

#if WMMA_11
typedef vec<f16, 16> Halves11;
typedef vec<short, 16> Bfloats11;
typedef vec<i32, 4> Bytes11;
typedef vec<i32, 2> Fours11;
WMMA_KERNEL(11, SINGLE, f32_16x16x16_f16, OfHalves, Singles, Halves11, 2, half_of, 16, true, "gfx11*");
WMMA_KERNEL(11, SINGLE, f32_16x16x16_bf16, OfBfloats, Singles, Bfloats11, 2, bfloat_of, 16, true, "gfx11*");
WMMA_KERNEL(11, INTEGER, i32_16x16x16_iu8, OfBytes, Integers, Bytes11, 4, byte_of, 16, true, "gfx11*");
WMMA_KERNEL(11, INTEGER, i32_16x16x16_iu4, OfFours, Integers, Fours11, 8, four_of, 16, true, "gfx11*");
#endif
#if WMMA_12
#ifdef __AMDGCN__
typedef vec<f16, 256 / LANES> Halves12;
typedef vec<short, 256 / LANES> Bfloats12;
#if __AMDGCN_WAVEFRONT_SIZE__ == 32
typedef vec<i32, 2> Bytes12;
#else
typedef i32 Bytes12;
#endif
#endif
WMMA_KERNEL(12, SINGLE, f32_16x16x16_f16, OfHalves, Singles, Halves12, 2, half_of, 16, false, "gfx120* gfx12-generic");
WMMA_KERNEL(
    12, SINGLE, f32_16x16x16_bf16, OfBfloats, Singles, Bfloats12, 2, bfloat_of, 16, false, "gfx120* gfx12-generic");
WMMA_KERNEL(12, INTEGER, i32_16x16x16_iu8, OfBytes, Integers, Bytes12, 4, byte_of, 16, false, "gfx120* gfx12-generic");
WMMA_KERNEL(12, INTEGER, i32_16x16x32_iu4, OfFours, Integers, Bytes12, 8, four_of, 32, false, "gfx120* gfx12-generic");
#endif

// A product of 32 x 32 x 64 by tiles of 16, as a library would do it: operands through LDS, sums in registers, each
// wave with a tile of its own.
#define GEMM(version, V, whole, row_of, targets)                                                                       \
    KERNEL(wave_matrix_##version##_by_tiles)(const u32 *in, u32 *out, u32 n) {                                         \
        SHARED f16 left_tiles[2][16][18], right_tiles[2][16][18];                                                      \
        u32 l = lane(), tile = global_id() / LANES, wave = local_id() / LANES;                                         \
        u32 row = tile / 2 % 2 * 16, column = tile % 2 * 16, each = whole ? 16 : 256 / LANES;                          \
        f16(*a)[18] = left_tiles[wave], (*b)[18] = right_tiles[wave];                                                  \
        Singles c;                                                                                                     \
        for (u32 r = 0; r < 256 / LANES; r++) c[r] = 0;                                                                \
        for (u32 t = 0; t < 64; t += 16) {                                                                             \
            for (u32 k = l; k < 256; k += LANES) {                                                                     \
                a[k / 16][k % 16] = (f16)small(in[(row + k / 16) * 64 + t + k % 16], 0);                               \
                b[k % 16][k / 16] = (f16)small(in[(t + k / 16) * 32 + column + k % 16], 1);                            \
            }                                                                                                          \
            barrier();                                                                                                 \
            Row left = {}, right = {};                                                                                 \
            for (u32 k = 0; k < each; k++) {                                                                           \
                u32 from = whole ? k : l / 16 * each + k;                                                              \
                left.word[k / 2] |= (u32)bits(a[l % 16][from]) << 16 * (k % 2);                                        \
                right.word[k / 2] |= (u32)bits(b[l % 16][from]) << 16 * (k % 2);                                       \
            }                                                                                                          \
            c = SINGLE(version, f32_16x16x16_f16, OfHalves, V, left, right, c, 16, each);                              \
            barrier();                                                                                                 \
        }                                                                                                              \
        for (u32 r = 0; r < 256 / LANES; r++)                                                                          \
            out[tile / 4 * 1024 + (row + (row_of)) * 32 + column + l % 16] = bits(c[r]);                               \
    }                                                                                                                  \
    TEST(wave_matrix_##version##_by_tiles, .grid = {256}, .group = {64}, .in = 2048, .out = 2048, .on = targets)
#if WMMA_11
GEMM(11, Halves11, true, LANES / 16 * r + l / 16, "gfx11*");
#endif
#if WMMA_12
GEMM(
    12, Halves12, false, LANES == 32 ? 8 * (l / 16) + r : 8 * (l / 16 % 2) + 4 * (l / 32) + r, "gfx120* gfx12-generic");
#endif
