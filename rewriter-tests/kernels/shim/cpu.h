// The CPU's side of kernel.h: the work-items of a workgroup are fibers. A fiber runs until it comes to a barrier or to
// an operation of the whole wave.
//
// Lanes of a wave that wait at the same operation (the same line of the source) do it together. When lanes of a wave
// wait at different ones, those at the earliest line go first: that is how lanes meet again behind a branch.
#pragma once
#include <stddef.h>

#define KERNEL(name) extern "C" void name
#define SHARED static
#define DYNAMIC_SHARED(type, name) type *name = (type *)cpu::dynamic_shared()
#define TABLE static const
#define GLOBAL_VARIABLE
#define WAVE (cpu::wave_size)
#define RDNA 1

// What TEST says.
struct Shape {
    u32 grid[3];
    u32 group[3];
    // Bytes of LDS that the launch adds.
    u32 dynamic;
    // Words of the buffers.
    u32 in, out;
    // What `in` holds: "random" bits, "edges32", "edges64", "f16", "f32", "f64" (random values and edge cases of a
    // type), "below N", "range LOW HIGH" (f32), "range64 LOW HIGH" (f64), "text".
    const char *input;
    // How the words of `out` are compared: "bits", "f16 ulp N", "f32 ulp N", "f64 ulp N", "f32 near E", "f64 near E"
    // (absolute or relative).
    const char *compare;
    // Targets that have what the kernel uses, separated by spaces, `*` at the end for all that start so. None: every
    // target.
    const char *on;
    // The words of `out` start as this value instead of the pattern.
    const u32 *start;
};

struct Test {
    const char *name;
    const char *file;
    void (*run)(const u32 *in, u32 *out, u32 n);
    Shape shape;
    const void *extra;
    size_t extra_size;
    Test *next;
    static Test *first;
    Test(const char *name, const char *file, void (*run)(const u32 *, u32 *, u32), Shape shape,
        const void *extra = nullptr, size_t size = 0)
        : name(name), file(file), run(run), shape(shape), extra(extra), extra_size(size), next(first) {
        first = this;
    }
};

#define TEST(kernel, ...)                                                                                              \
    static Test kernel##_test(                                                                                         \
        #kernel, __FILE_NAME__, [](const u32 *in, u32 *out, u32 n) { kernel(in, out, n); }, Shape{__VA_ARGS__})
// With one more argument, passed by value: a variable.
#define TEST_WITH(kernel, extra, ...)                                                                                  \
    static Test kernel##_test(                                                                                         \
        #kernel, __FILE_NAME__, [](const u32 *in, u32 *out, u32 n) { kernel(in, out, n, extra); }, Shape{__VA_ARGS__}, \
        &extra, sizeof extra)

namespace cpu {
// What the lanes of a wave that do an operation together have brought; lanes that take no part have no bit in `active`.
struct Together {
    u64 active;
    u64 values[64];
};
extern u32 wave_size;
void *dynamic_shared();
u32 coordinate(u32 what, u32 axis);
u32 lane();
const Together &meet(u64 value, int line);
void wait();
// A wave's lane, wrapped around; a lane that takes no part gives zero.
inline u64 of_lane(const Together &all, u32 from) {
    from &= wave_size - 1;
    return all.active >> from & 1 ? all.values[from] : 0;
}
}

#define HERE int line = __builtin_LINE()
INLINE u32 local_id(u32 axis = 0) { return cpu::coordinate(0, axis); }
INLINE u32 group_id(u32 axis = 0) { return cpu::coordinate(1, axis); }
INLINE u32 group_size(u32 axis = 0) { return cpu::coordinate(2, axis); }
INLINE u32 grid_size(u32 axis = 0) { return cpu::coordinate(3, axis); }
INLINE void barrier() { cpu::wait(); }
INLINE void fence_device() {}

INLINE u32 lane() { return cpu::lane(); }
INLINE u64 ballot(bool p, HERE) {
    const cpu::Together &all = cpu::meet(p, line);
    u64 mask = 0;
    for (u32 i = 0; i < WAVE; i++) mask |= cpu::of_lane(all, i) << i;
    return mask;
}
INLINE u32 bits_below(u64 mask) { return __builtin_popcountl(mask & ((1ul << lane()) - 1)); }
INLINE u32 first_lane(u32 v, HERE) {
    const cpu::Together &all = cpu::meet(v, line);
    return (u32)all.values[__builtin_ctzl(all.active)];
}
INLINE u32 read_lane(u32 v, u32 from, HERE) { return (u32)cpu::meet(v, line).values[from]; }
INLINE u32 shuffle32(u32 v, u32 from, HERE) {
    return (u32)cpu::of_lane(cpu::meet(v, line), (lane() & 32) | (from & 31));
}
INLINE u32 push32(u32 v, u32 to, HERE) {
    const cpu::Together &all = cpu::meet((u64)(to & 31) << 32 | v, line);
    u32 result = 0;
    // The highest lane that pushes to a place wins.
    for (u32 i = lane() & 32; i < (lane() & 32) + 32; i++)
        if (i < WAVE && all.active >> i & 1 && all.values[i] >> 32 == (lane() & 31)) result = (u32)all.values[i];
    return result;
}
INLINE u32 shuffle(u32 v, u32 from, HERE) { return (u32)cpu::of_lane(cpu::meet(v, line), from); }
// AMD ISA guides, "DS_SWIZZLE_B32".
template <u32 pattern> INLINE u32 swizzle(u32 v, HERE) {
    const cpu::Together &all = cpu::meet(v, line);
    u32 l = lane(), from;
    if (pattern & 0x8000) from = (l & ~3u) | (pattern >> 2 * (l & 3) & 3);
    else from = (l & 32) | ((((l & 31) & (pattern & 31)) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31));
    return (u32)cpu::of_lane(all, from);
}
// AMD ISA guides, "DPP": which lane a control reads; none is out of bounds.
inline int dpp_source(u32 control, u32 l) {
    u32 row = l & ~15u, at = l & 15, by = control & 15;
    auto in_row = [&](int p) { return p < 0 || p > 15 ? -1 : (int)row + p; };
    if (control <= 0xff) return (int)((l & ~3u) | (control >> 2 * (l & 3) & 3));
    if (control >= 0x101 && control <= 0x10f) return in_row((int)at + (int)by);
    if (control >= 0x111 && control <= 0x11f) return in_row((int)at - (int)by);
    if (control >= 0x121 && control <= 0x12f) return in_row((int)((at - by) & 15));
    if (control == 0x130) return l + 1 < WAVE ? (int)l + 1 : -1;
    if (control == 0x134) return (int)((l + 1) % WAVE);
    if (control == 0x138) return (int)l - 1;
    if (control == 0x13c) return (int)((l + WAVE - 1) % WAVE);
    if (control == 0x140) return in_row(15 - (int)at);
    if (control == 0x141) return (int)(row | (at & 8) | (7 - (at & 7)));
    if (control == 0x142) return row == 0 ? -1 : (int)row - 1;
    if (control == 0x143) return l < 32 ? -1 : 31;
    if (control >= 0x150 && control <= 0x15f) return in_row((int)by);
    if (control >= 0x160 && control <= 0x16f) return in_row((int)(at ^ by));
    __builtin_trap();
}
template <u32 control, u32 rows = 15, u32 banks = 15, bool bound = false> INLINE u32 dpp(u32 old, u32 v, HERE) {
    const cpu::Together &all = cpu::meet(v, line);
    u32 l = lane();
    if (!(rows >> (l / 16) & 1) || !(banks >> (l % 16 / 4) & 1)) return old;
    int from = dpp_source(control, l);
    bool valid = from >= 0 && all.active >> from & 1;
    return valid ? (u32)all.values[from] : bound ? 0 : old;
}
template <u32 selectors> INLINE u32 dpp8(u32 v, HERE) {
    return (u32)cpu::of_lane(cpu::meet(v, line), (lane() & ~7u) | (selectors >> 3 * (lane() & 7) & 7));
}
INLINE u32 permute_row(u32 v, u32 low, u32 high, u32 other, int line) {
    u32 l = lane(), nibble = (l & 8 ? high : low) >> 4 * (l & 7) & 15;
    return (u32)cpu::of_lane(cpu::meet(v, line), ((l & ~15u) ^ other) | nibble);
}
INLINE u32 permlane16(u32 old, u32 v, u32 low, u32 high, HERE) { return permute_row(v, low, high, 0, line); }
INLINE u32 permlanex16(u32 old, u32 v, u32 low, u32 high, HERE) { return permute_row(v, low, high, 16, line); }

// One fiber runs at a time, so an atomic is a read and a write.
template <class T, class F> INLINE T replace(T *at, F f) {
    T old = *at;
    *at = f(old);
    return old;
}
#define DEFINE_ATOMIC(name, expression) \
    template <class T> INLINE T name(T *at, T v) { return replace(at, [v](T old) -> T { return expression; }); } \
    template <class T> INLINE T name##_shared(T *at, T v) { return name(at, v); }
DEFINE_ATOMIC(atomic_add, old + v)
DEFINE_ATOMIC(atomic_sub, old - v)
DEFINE_ATOMIC(atomic_and, old & v)
DEFINE_ATOMIC(atomic_or, old | v)
DEFINE_ATOMIC(atomic_xor, old ^ v)
DEFINE_ATOMIC(atomic_min, v < old ? v : old)
DEFINE_ATOMIC(atomic_max, v > old ? v : old)
DEFINE_ATOMIC(atomic_exchange, v)
#undef DEFINE_ATOMIC
template <class T> INLINE T atomic_inc(T *at, T limit) {
    return replace(at, [limit](T old) -> T { return old >= limit ? 0 : old + 1; });
}
template <class T> INLINE T atomic_dec(T *at, T limit) {
    return replace(at, [limit](T old) -> T { return old == 0 || old > limit ? limit : old - 1; });
}
template <class T> INLINE T atomic_load(T *at) { return *at; }
template <class T> INLINE void atomic_store(T *at, T v) { *at = v; }
template <class T> INLINE bool atomic_swap_if(T *at, T *expected, T v) {
    T old = *at;
    bool same = old == *expected;
    if (same) *at = v;
    *expected = old;
    return same;
}
