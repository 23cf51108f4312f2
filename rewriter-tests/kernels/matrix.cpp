// Matrix instructions. Whole numbers so small that every sum is exact: the order of additions does not matter. Which
// lane and register holds which element is written out for the CPU (AMD ISA guides, "Matrix Arithmetic Instructions").
#include "shim/kernel.h"

#if defined(__AMDGCN__) && (defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx940__) ||                       \
                               defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__))
#define MFMA 1
#endif
#if defined(__AMDGCN__) &&                                                                                             \
    (defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__))
#define MFMA_90A 1
#endif
#if defined(__AMDGCN__) && (defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__))
#define MFMA_94X 1
#endif
// gfx950 has no more those that round their operands to XF32.
#if MFMA_94X && !defined(__gfx950__)
#define MFMA_XF32 1
#endif
#ifndef __AMDGCN__
#define MFMA 1
#define MFMA_90A 1
#define MFMA_94X 1
#define MFMA_XF32 1
#endif

template <class T, u32 n> using vec = T __attribute__((ext_vector_type(n)));

INLINE i32 small(u32 word, u32 n) { return (i32)(word >> 5 * n & 15) - 7; }
INLINE u64 bytes_of(u32 a, u32 b) {
    u64 all = 0;
    for (u32 k = 0; k < 8; k++) all |= (u64)(u8)small(k < 4 ? a : b, k % 4) << 8 * k;
    return all;
}
INLINE u64 halves_of(u32 a) {
    u64 all = 0;
    for (u32 k = 0; k < 4; k++) all |= (u64)bits((f16)small(a, k)) << 16 * k;
    return all;
}
INLINE u64 bfloats_of(u32 a) {
    u64 all = 0;
    for (u32 k = 0; k < 4; k++) all |= (u64)(as<u32>((f32)small(a, k)) >> 16) << 16 * k;
    return all;
}

#ifndef __AMDGCN__
// Element `n` of what a lane brings.
struct OfBytes { static i32 get(u64 v, u32 n) { return (i8)(v >> 8 * n); } };
struct OfHalves { static f32 get(u64 v, u32 n) { return (f32)get_f16((u32)(v >> 16 * n)); } };
struct OfBfloats { static f32 get(u64 v, u32 n) { return as<f32>((u32)(v >> 16 * n) << 16); } };
struct OfSingles { static f32 get(u64 v, u32 n) { return as<f32>((u32)(v >> 32 * n)); } };
struct OfDoubles { static f64 get(u64 v, u32 n) { return as<f64>(v); } };

// D = A x B + C for square blocks of `size`, each lane with `count` elements of A and of B.
template <class Of, u32 size, u32 blocks, u32 count, class V> V product(u64 a, u64 b, V c) {
    const u32 registers = size * size * blocks / 64, inner = blocks > 1 ? count : count * (64 / size), l = lane();
    constexpr bool is_double = sizeof(c[0]) == 8;
    u64 left[64];
    __builtin_memcpy(left, cpu::meet(a, __LINE__).values, sizeof left);
    const cpu::Together &right = cpu::meet(b, __LINE__);
    for (u32 r = 0; r < registers; r++) {
        u32 block = size == 4 ? l / 4 : r / (size * size / 64), q = r % (size * size / 64 + (size == 4) * 4),
            j = l % size;
        u32 i = size == 4 ? r : is_double ? 4 * r + l / 16 : q / 4 * (256 / size) + 4 * (l / size) + q % 4;
        for (u32 k = 0; k < inner; k++) {
            u32 group = blocks > 1 ? block : k / count;
            c[r] += Of::get(left[group * size + i], k % count) * Of::get(right.values[group * size + j], k % count);
        }
    }
    return c;
}
#define MATRIX(instruction, Of, size, blocks, count, A, V, a, b, c) product<Of, size, blocks, count, V>(a, b, c)
#else
template <class A> INLINE A taken(u64 v) {
    if constexpr (sizeof(A) == 8) return as<A>(v);
    else return as<A>((u32)v);
}
#define MATRIX(instruction, Of, size, blocks, count, A, V, a, b, c)                                                    \
    __builtin_amdgcn_mfma_##instruction(taken<A>(a), taken<A>(b), c, 0, 0, 0)
#endif

// Starts C, multiplies twice (the second time on top of the first), stores.
#define MATRIX_KERNEL(instruction, Of, size, blocks, count, A, T, left, right, targets)                                \
    KERNEL(matrix_##instruction)(const u32 *in, u32 *out, u32 n) {                                                     \
        const u32 registers = size * size * blocks / 64;                                                               \
        u32 i = global_id();                                                                                           \
        u64 a = left, b = right;                                                                                       \
        typedef vec<T, registers> V;                                                                                   \
        V c;                                                                                                           \
        for (u32 r = 0; r < registers; r++) c[r] = (T)(i32)((i * 3 + r * 5) % 64);                                     \
        c = MATRIX(instruction, Of, size, blocks, count, A, V, a, b, c);                                               \
        c = MATRIX(instruction, Of, size, blocks, count, A, V, b, a, c);                                               \
        for (u32 r = 0; r < registers; r++) ((T *)out)[i * registers + r] = c[r];                                      \
    }                                                                                                                  \
    TEST(matrix_##instruction, .grid = {128}, .group = {64}, .in = 512,                                                \
        .out = (u32)(2 * size * size * blocks * sizeof(T) / 4), .on = targets)
#define SINGLES as<u32>((f32)small(in[i], 0)), as<u32>((f32)small(in[i], 1))
#define HALVES halves_of(in[i]), halves_of(in[n + i])
#define BFLOATS bfloats_of(in[i]), bfloats_of(in[n + i])
#define BYTES bytes_of(in[i], in[n + i]), bytes_of(in[2 * n + i], in[3 * n + i])

typedef vec<f32, 2> f32x2;
typedef vec<f16, 4> f16x4;
typedef vec<short, 4> i16x4;
typedef vec<short, 2> i16x2;
// The macros that make two arguments are expanded before the kernel's.
#define EXPANDED(...) MATRIX_KERNEL(__VA_ARGS__)
#if MFMA
EXPANDED(f32_32x32x2f32, OfSingles, 32, 1, 1, f32, f32, SINGLES, "gfx908 gfx90a gfx94* gfx950");
EXPANDED(f32_16x16x4f32, OfSingles, 16, 1, 1, f32, f32, SINGLES, "gfx908 gfx90a gfx94* gfx950");
EXPANDED(f32_32x32x1f32, OfSingles, 32, 2, 1, f32, f32, SINGLES, "gfx908 gfx90a gfx94* gfx950");
EXPANDED(f32_16x16x1f32, OfSingles, 16, 4, 1, f32, f32, SINGLES, "gfx908 gfx90a gfx94* gfx950");
EXPANDED(f32_4x4x1f32, OfSingles, 4, 16, 1, f32, f32, SINGLES, "gfx908 gfx90a gfx94* gfx950");
EXPANDED(f32_32x32x8f16, OfHalves, 32, 1, 4, f16x4, f32, HALVES, "gfx908 gfx90a gfx94* gfx950");
EXPANDED(f32_16x16x16f16, OfHalves, 16, 1, 4, f16x4, f32, HALVES, "gfx908 gfx90a gfx94* gfx950");
EXPANDED(f32_32x32x4f16, OfHalves, 32, 2, 4, f16x4, f32, HALVES, "gfx908 gfx90a gfx94* gfx950");
EXPANDED(f32_16x16x4f16, OfHalves, 16, 4, 4, f16x4, f32, HALVES, "gfx908 gfx90a gfx94* gfx950");
EXPANDED(f32_4x4x4f16, OfHalves, 4, 16, 4, f16x4, f32, HALVES, "gfx908 gfx90a gfx94* gfx950");
EXPANDED(i32_4x4x4i8, OfBytes, 4, 16, 4, i32, i32, BYTES, "gfx908 gfx90a gfx94* gfx950");
EXPANDED(i32_16x16x4i8, OfBytes, 16, 4, 4, i32, i32, BYTES, "gfx908 gfx90a gfx94* gfx950");
EXPANDED(i32_32x32x4i8, OfBytes, 32, 2, 4, i32, i32, BYTES, "gfx908 gfx90a gfx94* gfx950");
#endif
#if MFMA && !(defined(__AMDGCN__) && MFMA_94X)
EXPANDED(f32_4x4x2bf16, OfBfloats, 4, 16, 2, i16x2, f32, BFLOATS, "gfx908 gfx90a");
EXPANDED(f32_16x16x8bf16, OfBfloats, 16, 1, 2, i16x2, f32, BFLOATS, "gfx908 gfx90a");
EXPANDED(f32_32x32x4bf16, OfBfloats, 32, 1, 2, i16x2, f32, BFLOATS, "gfx908 gfx90a");
EXPANDED(i32_16x16x16i8, OfBytes, 16, 1, 4, i32, i32, BYTES, "gfx908 gfx90a");
EXPANDED(i32_32x32x8i8, OfBytes, 32, 1, 4, i32, i32, BYTES, "gfx908 gfx90a");
#endif
#if MFMA_90A
EXPANDED(f64_16x16x4f64, OfDoubles, 16, 1, 1, f64, f64, as<u64>((f64)small(in[i], 2)), as<u64>((f64)small(in[i], 3)),
    "gfx90a gfx94* gfx950");
EXPANDED(f32_16x16x16bf16_1k, OfBfloats, 16, 1, 4, i16x4, f32, BFLOATS, "gfx90a gfx94* gfx950");
EXPANDED(f32_32x32x8bf16_1k, OfBfloats, 32, 1, 4, i16x4, f32, BFLOATS, "gfx90a gfx94* gfx950");
EXPANDED(f32_32x32x4bf16_1k, OfBfloats, 32, 2, 4, i16x4, f32, BFLOATS, "gfx90a gfx94* gfx950");
EXPANDED(f32_16x16x4bf16_1k, OfBfloats, 16, 4, 4, i16x4, f32, BFLOATS, "gfx90a gfx94* gfx950");
EXPANDED(f32_4x4x4bf16_1k, OfBfloats, 4, 16, 4, i16x4, f32, BFLOATS, "gfx90a gfx94* gfx950");
#endif
#if MFMA_94X
EXPANDED(i32_16x16x32_i8, OfBytes, 16, 1, 8, i64, i32, BYTES, "gfx94* gfx950");
EXPANDED(i32_32x32x16_i8, OfBytes, 32, 1, 8, i64, i32, BYTES, "gfx94* gfx950");
#endif
#if MFMA_XF32
#define PAIRS                                                                                                          \
    (u64) as<u32>((f32)small(in[i], 0)) | (u64)as<u32>((f32)small(in[i], 1)) << 32,                                    \
        (u64)as<u32>((f32)small(in[i], 2)) | (u64)as<u32>((f32)small(in[i], 3)) << 32
EXPANDED(f32_16x16x8_xf32, OfSingles, 16, 1, 2, f32x2, f32, PAIRS, "gfx94*");
EXPANDED(f32_32x32x4_xf32, OfSingles, 32, 1, 2, f32x2, f32, PAIRS, "gfx94*");
#endif

// A product of 64 x 64 x 64 by tiles of 16, as a library would do it: operands through LDS, sums in registers.
#if MFMA
// A's tile at a row, and B's at a column, from t on along K: numbers from two parts of the words.
INLINE void load_tiles(const u32 *in, f32 (&a)[16][17], f32 (&b)[16][17], u32 row, u32 column, u32 t, u32 part) {
    for (u32 k = local_id(); k < 256; k += 64) {
        a[k / 16][k % 16] = (f32)small(in[(row + k / 16) * 64 + t + k % 16], part);
        b[k / 16][k % 16] = (f32)small(in[(t + k / 16) * 64 + column + k % 16], part + 1);
    }
}

KERNEL(matrix_by_tiles)(const u32 *in, u32 *out, u32 n) {
    SHARED f32 a[16][17], b[16][17];
    u32 l = local_id(), row = group_id() / 4 * 16, column = group_id() % 4 * 16;
    typedef vec<f32, 4> Quad;
    Quad c = {0, 0, 0, 0};
    for (u32 t = 0; t < 64; t += 16) {
        load_tiles(in, a, b, row, column, t, 0);
        barrier();
        for (u32 k = 0; k < 16; k += 4)
            c = MATRIX(f32_16x16x4f32, OfSingles, 16, 1, 1, f32, Quad, as<u32>(a[l % 16][k + l / 16]),
                as<u32>(b[k + l / 16][l % 16]), c);
        barrier();
    }
    for (u32 r = 0; r < 4; r++) out[(row + 4 * (l / 16) + r) * 64 + column + l % 16] = bits(c[r]);
}
TEST(matrix_by_tiles, .grid = {1024}, .group = {64}, .in = 4096, .out = 4096, .on = "gfx908 gfx90a gfx94* gfx950");
#endif

// The same in XF32: whole numbers that 11 bits hold are multiplied exactly.
#if MFMA_XF32
KERNEL(matrix_by_tiles_xf32)(const u32 *in, u32 *out, u32 n) {
    SHARED f32 a[16][17], b[16][17];
    u32 l = local_id(), row = group_id() / 4 * 16, column = group_id() % 4 * 16;
    typedef vec<f32, 4> Quad;
    Quad c = {0, 0, 0, 0};
    for (u32 t = 0; t < 64; t += 16) {
        load_tiles(in, a, b, row, column, t, 2);
        barrier();
        for (u32 k = 0; k < 16; k += 8) {
            u32 from = k + l / 16 * 2;
            u64 left = (u64)as<u32>(a[l % 16][from]) | (u64)as<u32>(a[l % 16][from + 1]) << 32;
            u64 right = (u64)as<u32>(b[from][l % 16]) | (u64)as<u32>(b[from + 1][l % 16]) << 32;
            c = MATRIX(f32_16x16x8_xf32, OfSingles, 16, 1, 2, f32x2, Quad, left, right, c);
        }
        barrier();
    }
    for (u32 r = 0; r < 4; r++) out[(row + 4 * (l / 16) + r) * 64 + column + l % 16] = bits(c[r]);
}
TEST(matrix_by_tiles_xf32, .grid = {1024}, .group = {64}, .in = 4096, .out = 4096, .on = "gfx94*");
#endif
