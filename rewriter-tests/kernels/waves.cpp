// What lanes of a wave do together. The CPU runs it with the same number of lanes.
#include "shim/kernel.h"

KERNEL(ballots)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i], *o = out + 8 * i;
    u64 all = ballot(x & 1);
    put64(o, all);
    o[2] = bits_below(all);
    u64 some = 0;
    if (x % 3 == 0) {
        some = ballot(x & 2);
    } else {
        some = ~ballot(x & 4) << 1;
    }
    put64(o + 3, some);
    o[5] = all == 0 ? 99 : (u32)__builtin_ctzl(all);
    o[6] = lane();
    o[7] = WAVE;
}
TEST(ballots, .grid = {256}, .group = {128}, .in = 256, .out = 2048);

KERNEL(reading_lanes)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i], *o = out + 4 * i;
    o[0] = first_lane(x);
    o[1] = read_lane(x, WAVE - 1) + read_lane(x, 5);
    u32 sum = 0;
    for (u32 k = 0; k < WAVE; k += 7) sum = sum * 3 + read_lane(x, k);
    o[2] = sum;
    o[3] = 0;
    if (i % 5 == 2) o[3] = first_lane(x);
}
TEST(reading_lanes, .grid = {256}, .group = {128}, .in = 256, .out = 1024);

KERNEL(shuffles)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i], *o = out + 6 * i;
    o[0] = shuffle(x, lane() ^ 1);
    o[1] = shuffle(x, in[n - 1 - i]);
    o[2] = shuffle32(x, x >> 7);
    o[3] = push32(x, lane() * 5 + 3);
    o[4] = shuffle32(x, lane() + 31);
    o[5] = i % 3 ? shuffle32(x, lane() ^ 2) : 7;
}
TEST(shuffles, .grid = {256}, .group = {128}, .in = 256, .out = 1536);

KERNEL(swizzles)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i], *o = out + 6 * i;
    o[0] = swizzle<0x041f>(x);
    o[1] = swizzle<0x7c1f>(x);
    o[2] = swizzle<0x0018>(x);
    o[3] = swizzle<0x0260>(x);
    o[4] = swizzle<0x801b>(x);
    o[5] = swizzle<0x80e4>(x) ^ swizzle<0x8000>(x);
}
TEST(swizzles, .grid = {128}, .group = {64}, .in = 128, .out = 768);

KERNEL(data_parallel_rows)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i], old = ~x, *o = out + 12 * i;
    o[0] = dpp<0x1b>(old, x);
    o[1] = dpp<0xb1>(old, x);
    o[2] = dpp<0x101>(old, x);
    o[3] = dpp<0x105, 15, 15, true>(old, x);
    o[4] = dpp<0x112>(old, x);
    o[5] = dpp<0x11f, 15, 15, true>(old, x);
    o[6] = dpp<0x124>(old, x);
    o[7] = dpp<0x140>(old, x);
    o[8] = dpp<0x141>(old, x);
    o[9] = dpp<0x111, 5, 15>(old, x);
    o[10] = dpp<0x1b, 10, 6>(old, x);
    o[11] = 1;
    if (x % 3) o[11] = dpp<0x112, 15, 15, true>(old, x) + dpp<0x4e>(old, x);
}
TEST(data_parallel_rows, .grid = {128}, .group = {64}, .in = 128, .out = 1536);

// The compiler folds these movements into the instructions that use them.
KERNEL(data_parallel_arithmetic)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i];
    x += dpp<0x111, 15, 15, true>(0, x);
    x += dpp<0x112, 15, 15, true>(0, x);
    x += dpp<0x114, 15, 15, true>(0, x);
    x += dpp<0x118, 15, 15, true>(0, x);
    out[2 * i] = x;
    f32 f = (f32)(in[i] & 255);
    f = f + as<f32>(dpp<0xb1>(0, as<u32>(f)));
    f = f * 0.5f - as<f32>(dpp<0x141>(0, as<u32>(f)));
    out[2 * i + 1] = bits(f);
}
TEST(data_parallel_arithmetic, .grid = {128}, .group = {64}, .in = 128, .out = 256);

#if !defined(__AMDGCN__) || !RDNA
KERNEL(whole_wave_shifts)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i], *o = out + 6 * i;
    o[0] = dpp<0x130>(7, x);
    o[1] = dpp<0x134>(7, x);
    o[2] = dpp<0x138, 15, 15, true>(7, x);
    o[3] = dpp<0x13c>(7, x);
    o[4] = dpp<0x142, 10>(x, x);
    o[5] = dpp<0x143, 12>(x, x);
}
TEST(whole_wave_shifts, .grid = {128}, .group = {64}, .in = 128, .out = 768, .on = "gfx8* gfx9*");
#endif

#if !defined(__AMDGCN__) || RDNA
KERNEL(permuted_rows)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i], low = first_lane(in[n - 1]), high = first_lane(in[n - 2]), *o = out + 6 * i;
    o[0] = permlane16(x, x, low, high);
    o[1] = permlanex16(x, x, 0x76543210, 0xfedcba98);
    o[2] = permlanex16(x, x, high, low);
    o[3] = dpp8<0x53977 & 0xffffff>(x);
    o[4] = dpp<0x153>(0, x) + dpp<0x15f>(0, x);
    o[5] = dpp<0x165>(0, x);
}
TEST(permuted_rows, .grid = {128}, .group = {64}, .in = 128, .out = 768, .on = "gfx10* gfx11* gfx12*");
#endif

INLINE u32 wave_sum(u32 x) {
    for (u32 k = 1; k < WAVE; k <<= 1) x += shuffle(x, lane() ^ k);
    return x;
}
INLINE u32 wave_scan(u32 x) {
    for (u32 k = 1; k < WAVE; k <<= 1) {
        u32 other = shuffle(x, lane() - k);
        if (lane() >= k) x += other;
    }
    return x;
}
KERNEL(sums_and_scans)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i];
    out[3 * i] = wave_sum(x);
    out[3 * i + 1] = wave_scan(x);
    // Lanes that hold the same key find each other.
    u32 key = x % 4, count = 0;
    for (u32 k = 0; k < 4; k++) {
        u64 same = ballot(key == k);
        if (key == k) count = (u32)__builtin_popcountl(same) << 8 | bits_below(same);
    }
    out[3 * i + 2] = count;
}
TEST(sums_and_scans, .grid = {128}, .group = {64}, .in = 128, .out = 384);

// A loop for each different value among the lanes.
KERNEL(waterfall)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i], rounds = 0, result = 0;
    bool done = false;
    while (!done) {
        u32 chosen = first_lane(x);
        if (x == chosen) {
            result = chosen * 1000 + rounds;
            done = true;
        }
        rounds++;
    }
    out[i] = result;
}
TEST(waterfall, .grid = {128}, .group = {64}, .in = 128, .out = 128, .input = "below 9");

// Sorts the values of a wave's first 32 lanes, and its last, by exchanges between lanes.
KERNEL(bitonic_in_registers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i], l = lane() & 31;
    for (u32 k = 2; k <= 32; k <<= 1)
        for (u32 j = k >> 1; j > 0; j >>= 1) {
            u32 other = shuffle32(x, l ^ j);
            bool up = (l & k) == 0, lower = (l & j) == 0;
            u32 least = x < other ? x : other, most = x < other ? other : x;
            x = up == lower ? least : most;
        }
    out[i] = x;
}
TEST(bitonic_in_registers, .grid = {256}, .group = {64}, .in = 256, .out = 256);

// A workgroup that is no whole number of waves.
KERNEL(partial_waves)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i], *o = out + 4 * i;
    put64(o, ballot(true));
    o[2] = shuffle32(x, lane() ^ 3);
    o[3] = dpp<0x101, 15, 15, true>(0, x);
}
TEST(partial_waves, .grid = {174}, .group = {100}, .in = 174, .out = 696);
