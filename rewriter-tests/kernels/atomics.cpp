// Atomic operations, by results that do not depend on the order.
#include "shim/kernel.h"

// One cell per operation; a workgroup starts them, the others wait in no way: only cells that start with a known value
// are used.
template <class T> INLINE void integer_cells(T *cells, T v, u32 l) {
    atomic_add(cells + 0, v);
    atomic_sub(cells + 1, v);
    atomic_and(cells + 2, (T)(v | ~(T)0xff));
    atomic_or(cells + 3, (T)(v & 0xf0f0));
    atomic_xor(cells + 4, v);
    atomic_min(cells + 5, v);
    atomic_max(cells + 6, v);
    if (l == 77) atomic_exchange(cells + 7, v);
}
__attribute__((unused)) static const u32 zero = 0;
KERNEL(global_atomics_32)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    integer_cells<u32>(out, in[i], i);
    integer_cells<i32>((i32 *)out + 8, (i32)in[i], i);
    atomic_inc(out + 16, 37u);
    atomic_dec(out + 17, 41u);
    if (i == 5) {
        u32 expected = 0;
        out[19] = atomic_swap_if(out + 18, &expected, in[i]);
        out[20] = expected;
        expected = ~in[i];
        out[21] = atomic_swap_if(out + 18, &expected, 1u);
        out[22] = expected;
    }
}
TEST(global_atomics_32, .grid = {512}, .group = {128}, .in = 512, .out = 24, .start = &zero);

KERNEL(global_atomics_64)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    u64 *cells = (u64 *)out, v = get64(in + 2 * i);
    integer_cells<u64>(cells, v, i);
    integer_cells<i64>((i64 *)cells + 8, (i64)v, i);
    atomic_inc(cells + 16, 37ul);
    atomic_dec(cells + 17, 41ul);
    if (i == 5) {
        u64 expected = 0;
        cells[19] = atomic_swap_if(cells + 18, &expected, v);
        cells[20] = expected;
        expected = ~v;
        cells[21] = atomic_swap_if(cells + 18, &expected, 1ul);
        cells[22] = expected;
    }
}
TEST(global_atomics_64, .grid = {512}, .group = {128}, .in = 1024, .out = 48, .start = &zero);

template <class T> INLINE void shared_cells(T *cells, T v) {
    atomic_add_shared(cells + 0, v);
    atomic_sub_shared(cells + 1, v);
    atomic_and_shared(cells + 2, (T)(v | ~(T)0xff));
    atomic_or_shared(cells + 3, (T)(v & 0xf0f0));
    atomic_xor_shared(cells + 4, v);
    atomic_min_shared(cells + 5, v);
    atomic_max_shared(cells + 6, v);
    if (local_id() == 77) atomic_exchange_shared(cells + 7, v);
}
KERNEL(lds_atomics)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 words[20];
    SHARED u64 wide[20];
    u32 i = global_id(), l = local_id();
    if (l < 20) {
        words[l] = 0x1000 * l;
        wide[l] = 0x100000000ul * l;
    }
    barrier();
    u64 v = (u64)in[i] << 20 | in[n - 1 - i];
    shared_cells<u32>(words, in[i]);
    shared_cells<i32>((i32 *)words + 8, (i32)in[i]);
    shared_cells<u64>(wide, v);
    shared_cells<i64>((i64 *)wide + 8, (i64)v);
    u32 expected = 0x1000 * 18;
    atomic_swap_if(words + 18, &expected, 4u);
    barrier();
    if (l < 20) {
        out[60 * group_id() + l] = words[l];
        put64(out + 60 * group_id() + 20 + 2 * l, wide[l]);
    }
}
TEST(lds_atomics, .grid = {512}, .group = {256}, .in = 512, .out = 120);

// Sums of small whole numbers are exact in any order.
KERNEL(float_atomics)(const u32 *in, u32 *out, u32 n) {
    SHARED f32 sum, least, most;
    SHARED f64 wide;
    u32 i = global_id(), l = local_id();
    if (l == 0) {
        sum = 0;
        least = 1e9f;
        most = -1e9f;
        wide = 0;
    }
    barrier();
    f32 v = (f32)(i32)(in[i] % 2001) - 1000.0f;
    atomic_add_shared(&sum, v);
    atomic_add_shared(&wide, (f64)v * 0.5);
    atomic_min_shared(&least, v);
    atomic_max_shared(&most, v);
    atomic_add((f32 *)out, v);
    atomic_add((f64 *)(out + 2), (f64)v * 4096);
    atomic_min((f64 *)(out + 4), (f64)v);
    atomic_max((f32 *)(out + 6), v);
    barrier();
    if (l == 0) {
        u32 *o = out + 8 + 6 * group_id();
        o[0] = bits(sum + 0.0f);
        o[1] = bits(least);
        o[2] = bits(most);
        put64(o + 3, bits(wide + 0.0));
    }
}
TEST(float_atomics, .grid = {512}, .group = {128}, .in = 512, .out = 32, .start = &zero);

KERNEL(old_values)(const u32 *in, u32 *out, u32 n) {
    // Every old value of a counter is given once: tickets, marked in a table.
    u32 i = global_id(), ticket = atomic_add(out, 1u);
    if (ticket < n) atomic_or(out + 1 + ticket / 32, 1u << ticket % 32);
    u32 other = atomic_inc(out + 40, n - 1);
    atomic_xor(out + 41 + other / 32, 1u << other % 32);
}
TEST(old_values, .grid = {512}, .group = {64}, .in = 1, .out = 64, .start = &zero);

KERNEL(histogram)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 bins[32];
    u32 l = local_id();
    if (l < 32) bins[l] = 0;
    barrier();
    for (u32 k = global_id(); k < 2048; k += n) atomic_add_shared(bins + in[k] % 32, 1u);
    barrier();
    if (l < 32) atomic_add(out + l, bins[l]);
}
TEST(histogram, .grid = {512}, .group = {128}, .in = 2048, .out = 32, .start = &zero);

// A loop around compare-and-swap: any function can be made atomic.
KERNEL(compare_and_swap_loop)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), old = atomic_load(out);
    while (!atomic_swap_if(out, &old, (old & 0xffff0000) | ((old + in[i]) & 0xffff))) {}
    f64 *product = (f64 *)(out + 2), seen = atomic_load(product);
    while (true) {
        u64 expected = as<u64>(seen);
        if (atomic_swap_if((u64 *)product, &expected, as<u64>(seen + (f64)(in[i] & 255)))) break;
        seen = as<f64>(expected);
    }
}
TEST(compare_and_swap_loop, .grid = {192}, .group = {64}, .in = 192, .out = 4, .start = &zero);

// The last workgroup to come adds up what all have left: fences between workgroups.
KERNEL(last_workgroup)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 sums[64];
    SHARED bool last;
    u32 l = local_id(), groups = n / 64;
    sums[l] = in[global_id()];
    barrier();
    for (u32 k = 32; k > 0; k >>= 1) {
        if (l < k) sums[l] += sums[l + k];
        barrier();
    }
    if (l == 0) {
        atomic_store(out + 2 + group_id(), sums[0]);
        fence_device();
        last = atomic_add(out, 1u) == groups - 1;
    }
    barrier();
    if (last && l == 0) {
        fence_device();
        u32 sum = 0;
        for (u32 k = 0; k < groups; k++) sum += atomic_load(out + 2 + k);
        out[1] = sum;
    }
}
TEST(last_workgroup, .grid = {512}, .group = {64}, .in = 512, .out = 10, .start = &zero);

// A lock that waves take from each other, one lane of a wave at a time: lanes that wait in a loop would keep the one
// that has it from giving it back.
KERNEL(lock)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    for (u32 turn = 0; turn < WAVE; turn++) {
        if (lane() != turn) continue;
        u32 free = 0;
        while (!atomic_swap_if(out, &free, 1u)) free = 0;
        fence_device();
        atomic_store(out + 1, atomic_load(out + 1) + in[i]);
        atomic_store(out + 2, atomic_load(out + 2) + 1);
        fence_device();
        atomic_store(out, 0u);
    }
}
TEST(lock, .grid = {192}, .group = {96}, .in = 192, .out = 3, .start = &zero);
