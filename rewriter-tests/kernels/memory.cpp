// Scratch, LDS and global memory, by pointers whose kind the compiler knows and by pointers whose kind it does not;
// grids and arguments.
#include "shim/kernel.h"

KERNEL(arrays_in_scratch)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a[32];
    u8 b[40];
    for (u32 k = 0; k < 32; k++) a[k] = in[(i + k) % n] % 32;
    for (u32 k = 0; k < 40; k++) b[k] = (u8)(a[k % 32] * 3 + k);
    u32 at = i % 32, hash = 0;
    for (u32 k = 0; k < 50; k++) {
        hash = hash * 31 + at;
        a[at] = (a[at] + b[(at * 7 + k) % 40]) % 32;
        at = a[(at + k) % 32];
    }
    out[i] = hash;
}
TEST(arrays_in_scratch, .grid = {256}, .group = {64}, .in = 256, .out = 256);

KERNEL(wide_scratch)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    u64 a[12];
    f64 d[4];
    u16 h[8];
    for (u32 k = 0; k < 12; k++) a[k] = (u64)in[(i + k) % n] << (in[k] % 20);
    for (u32 k = 0; k < 4; k++) d[k] = (f64)in[(i + k) % n];
    for (u32 k = 0; k < 8; k++) h[k] = (u16)in[(i * 3 + k) % n];
    u32 s = in[i];
    a[s % 12] += h[s % 8];
    d[s % 4] += (f64)h[(s + 1) % 8];
    h[s % 8]++;
    put64(out + 4 * i, a[(s >> 8) % 12] + a[s % 12]);
    put64(out + 4 * i + 2, (u64)(d[(s >> 4) % 4] + h[(s >> 9) % 8]));
}
TEST(wide_scratch, .grid = {256}, .group = {64}, .in = 256, .out = 1024);

KERNEL(reversed_in_lds)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 tile[256];
    SHARED u64 wide[256];
    SHARED u8 bytes[256];
    SHARED u16 halves[256];
    u32 i = global_id(), l = local_id(), r = 255 - l;
    tile[l] = in[i];
    wide[l] = (u64)in[i] * in[i];
    bytes[l] = (u8)in[i];
    halves[l] = (u16)(in[i] >> 3);
    barrier();
    put64(out + 4 * i, wide[r] + 1);
    out[4 * i + 2] = tile[r] ^ tile[(l * 17) % 256];
    out[4 * i + 3] = bytes[r] << 16 | halves[(l + 100) % 256];
}
TEST(reversed_in_lds, .grid = {512}, .group = {256}, .in = 512, .out = 2048);

KERNEL(dynamic_lds)(const u32 *in, u32 *out, u32 n) {
    DYNAMIC_SHARED(u32, words);
    SHARED u32 fixed[64];
    u32 i = global_id(), l = local_id(), size = group_size();
    fixed[l % 64] = l % 64;
    words[l] = in[i];
    words[l + size] = ~in[i];
    barrier();
    u32 sum = 0;
    for (u32 k = 0; k < 8; k++) sum += words[(l * 5 + k * 33) % (2 * size)];
    out[i] = sum ^ fixed[(l + 1) % 64];
}
TEST(dynamic_lds, .grid = {256}, .group = {128}, .in = 256, .out = 256, .dynamic = 1024);

struct alignas(16) Quad {
    u32 x, y, z, w;
};
KERNEL(wide_accesses)(const u32 *in, u32 *out, u32 n) {
    SHARED Quad tile[64];
    u32 i = global_id(), l = local_id();
    Quad q = ((const Quad *)in)[i];
    tile[l] = {q.w, q.z, q.y, q.x};
    barrier();
    Quad r = tile[63 - l];
    ((Quad *)out)[i] = {r.x + q.x, r.y - q.y, r.z ^ q.z, r.w * q.w};
}
TEST(wide_accesses, .grid = {256}, .group = {64}, .in = 1024, .out = 1024);

// The kind of memory behind the pointer is known when the program runs, and differs from lane to lane.
NOINLINE u32 sum_through(volatile u32 *at, u32 count) {
    u32 sum = 0;
    for (u32 k = 0; k < count; k++) {
        sum = sum * 3 + at[k];
        at[k] = sum;
    }
    return sum;
}
KERNEL(flat_pointers)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 tile[64 * 4];
    u32 i = global_id(), l = local_id(), own[4];
    for (u32 k = 0; k < 4; k++) {
        own[k] = in[4 * i + k];
        tile[4 * l + k] = in[4 * i + k] + 1;
        out[4 * i + k] = in[4 * i + k] + 2;
    }
    barrier();
    u32 *where = i % 3 == 0 ? own : i % 3 == 1 ? tile + 4 * l : out + 4 * i;
    u32 sum = sum_through(where, 4);
    barrier();
    out[4 * n + i] = sum + own[3] * 5 + tile[4 * l + 3] * 7;
}
TEST(flat_pointers, .grid = {256}, .group = {64}, .in = 1024, .out = 1280);

KERNEL(volatile_memory)(const u32 *in, u32 *out, u32 n) {
    SHARED volatile u32 cells[64];
    volatile u32 own[8];
    u32 i = global_id(), l = local_id();
    for (u32 k = 0; k < 8; k++) own[(k + i) % 8] = in[i] + k;
    cells[l] = own[l % 8];
    barrier();
    cells[l] = cells[l] + own[(l + 1) % 8];
    barrier();
    volatile u32 *o = out;
    o[i] = cells[(l + 9) % 64];
    o[i] = o[i] + 1;
}
TEST(volatile_memory, .grid = {128}, .group = {64}, .in = 128, .out = 128);

struct Parameters {
    u8 a;
    u64 b;
    f32 c[3];
    u16 d;
    struct {
        i32 x;
        f64 y;
    } inner;
};
static Parameters parameters __attribute__((unused)) = {7, 0x123456789abcdef0, {1.5f, -2.25f, 3.0f}, 999, {-5, 0.125}};
KERNEL(structure_by_value)(const u32 *in, u32 *out, u32 n, Parameters p) {
    u32 i = global_id();
    f32 c = p.c[in[i] % 3];
    out[3 * i] = p.a * in[i] + p.d + (u32)p.inner.x;
    out[3 * i + 1] = bits(c + (f32)p.inner.y * (f32)i);
    out[3 * i + 2] = (u32)(p.b >> (in[i] & 31));
}
TEST_WITH(structure_by_value, parameters, .grid = {128}, .group = {64}, .in = 128, .out = 384);

KERNEL(three_dimensions)(const u32 *in, u32 *out, u32 n) {
    u32 x = global_id(0), y = global_id(1), z = global_id(2);
    u32 at = (z * grid_size(1) + y) * grid_size(0) + x;
    out[2 * at] = local_id(0) | local_id(1) << 8 | local_id(2) << 16 | group_size(0) << 24;
    out[2 * at + 1] = group_id(0) | group_id(1) << 8 | group_id(2) << 16 | grid_size(2) << 24;
}
// No size is a multiple of the workgroup's.
TEST(three_dimensions, .grid = {13, 7, 5}, .group = {4, 3, 2}, .in = 1, .out = 910);

KERNEL(transpose)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 tile[16][17];
    u32 x = group_id(0) * 16 + local_id(0), y = group_id(1) * 16 + local_id(1);
    tile[local_id(1)][local_id(0)] = in[y * 48 + x];
    barrier();
    out[(group_id(0) * 16 + local_id(1)) * 32 + group_id(1) * 16 + local_id(0)] = tile[local_id(0)][local_id(1)];
}
TEST(transpose, .grid = {48, 32}, .group = {16, 16}, .in = 1536, .out = 1536);

// A five-point stencil with a border, five times between two buffers in LDS.
KERNEL(stencil)(const u32 *in, u32 *out, u32 n) {
    SHARED f32 field[2][18][18];
    u32 x = local_id(0) + 1, y = local_id(1) + 1, now = 0;
    for (u32 k = local_id(1) * 16 + local_id(0); k < 2 * 18 * 18; k += 256) (&field[0][0][0])[k] = 0.5f;
    barrier();
    field[0][y][x] = get_f32(in + (y - 1) * 16 + x - 1);
    barrier();
    for (u32 k = 0; k < 5; k++, now ^= 1) {
        f32(*f)[18] = field[now];
        field[now ^ 1][y][x] = 0.5f * f[y][x] + 0.125f * (f[y - 1][x] + f[y + 1][x] + f[y][x - 1] + f[y][x + 1]);
        barrier();
    }
    out[(y - 1) * 16 + x - 1] = bits(field[now][y][x]);
}
TEST(stencil, .grid = {16, 16}, .group = {16, 16}, .in = 256, .out = 256, .input = "range 0 1");

TABLE u32 primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
GLOBAL_VARIABLE u32 counters[4] = {100, 200, 300, 400};
KERNEL(tables_and_variables)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i];
    out[i] = primes[x % 16] * x + primes[group_id() % 16] + counters[x % 4];
    barrier();
    if (i < 4) atomic_add(counters + i, i + 1);
    barrier();
    out[n + i] = atomic_load(counters + i % 4);
}
// One workgroup: every launch of a test begins with the variables as they were compiled.
TEST(tables_and_variables, .grid = {64}, .group = {64}, .in = 64, .out = 128);

KERNEL(copies_and_fills)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    struct { u32 w[19]; } a, b;
    __builtin_memcpy(&a, in + i, sizeof a);
    __builtin_memset(&b, (int)(i & 15), sizeof b);
    __builtin_memcpy((u8 *)&b + 9, (u8 *)&a + 3, 41);
    if (in[i] & 1) a = b;
    u32 hash = 0;
    for (u32 k = 0; k < 19; k++) hash = hash * 37 + a.w[k] + b.w[(k * 5) % 19];
    out[i] = hash;
}
TEST(copies_and_fills, .grid = {128}, .group = {64}, .in = 160, .out = 128);

KERNEL(linked_lists)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 next[256];
    u32 l = local_id();
    next[l] = in[l];
    barrier();
    u32 at = l, sum = 0;
    for (u32 k = 0; k < 40 && at != l + 1; k++) {
        sum = sum * 3 + at;
        at = next[at];
    }
    out[l] = sum;
}
TEST(linked_lists, .grid = {256}, .group = {256}, .in = 256, .out = 256, .input = "below 256");

// The first access has an offset of -4 in the instruction: the sum may wrap around, so it is not folded.
KERNEL(before_the_pointer)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), after = i + 1;
    const u32 *next = in + (u64)after;
    u32 here = next[-1];
    out[i] = here * 5 + (here % 3 == 0 ? next[-1 + (i32)(here % 2)] : 7);
}
TEST(before_the_pointer, .grid = {256}, .group = {64}, .in = 512, .out = 256);
