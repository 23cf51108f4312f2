// What a test kernel is written with. The same source is compiled for a GPU (device.h) and for the CPU (cpu.h), where
// every work-item is a fiber; nothing here is shared with the emulator.
//
// A kernel reads words from `in` and writes words to `out`, which starts with a pattern that no kernel writes by
// chance:
//
//     KERNEL(twice)(const u32 *in, u32 *out, u32 n) {
//         u32 i = global_id();
//         if (i < n) out[i] = 2 * in[i];
//     }
//     TEST(twice, .grid = {256}, .group = {64}, .in = 256, .out = 256);
//
// `n` is the number of work-items in x. What TEST says is Shape in cpu.h; on the GPU it is nothing.
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long i64;
typedef unsigned long u64;
typedef _Float16 f16;
typedef __bf16 bf16;
typedef float f32;
typedef double f64;

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))

#ifdef __AMDGCN__
#include "device.h"
#else
#include "cpu.h"
#endif

INLINE u32 global_id(u32 axis = 0) { return group_id(axis) * group_size(axis) + local_id(axis); }

// The same bits as another type.
template <class To, class From> INLINE To as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    return __builtin_bit_cast(To, from);
}
// Which of several NaNs an operation gives is the machine's business.
INLINE u32 bits(f32 x) { return x != x ? 0x7fc00000u : as<u32>(x); }
INLINE u64 bits(f64 x) { return x != x ? 0x7ff8000000000000ul : as<u64>(x); }
INLINE u32 bits(f16 x) { return x != x ? 0x7e00u : as<u16>(x); }
INLINE u32 bits(bf16 x) { return (f32)x != (f32)x ? 0x7fc0u : as<u16>(x); }
INLINE void put64(u32 *out, u64 value) {
    out[0] = (u32)value;
    out[1] = (u32)(value >> 32);
}
INLINE u64 get64(const u32 *in) { return in[0] | (u64)in[1] << 32; }
INLINE f64 get_f64(const u32 *in) { return as<f64>(get64(in)); }
INLINE f32 get_f32(const u32 *in) { return as<f32>(in[0]); }
INLINE f16 get_f16(u32 word) { return as<f16>((u16)word); }
INLINE u32 rotl(u32 x, u32 by) { return x << (by & 31) | x >> (-by & 31); }
INLINE u64 rotl64(u64 x, u32 by) { return x << (by & 63) | x >> (-by & 63); }
