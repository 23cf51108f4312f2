// Small programs of the kinds that GPUs are bought for.
#include "shim/kernel.h"

KERNEL(bitonic_sort)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 keys[256];
    u32 l = local_id();
    keys[l] = in[global_id()];
    for (u32 k = 2; k <= 256; k <<= 1)
        for (u32 j = k >> 1; j > 0; j >>= 1) {
            barrier();
            u32 other = l ^ j;
            u32 a = keys[l], b = keys[other];
            barrier();
            bool lower = other > l, up = (l & k) == 0;
            keys[l] = (a < b) == (lower == up) ? a : b;
        }
    barrier();
    out[global_id()] = keys[l];
}
TEST(bitonic_sort, .grid = {512}, .group = {256}, .in = 512, .out = 512);

// Sums of everything before, over a workgroup; the total goes to everybody.
INLINE u32 exclusive_scan(u32 x, u32 *sums, u32 size, u32 *total) {
    u32 l = local_id();
    sums[l] = x;
    barrier();
    for (u32 k = 1; k < size; k <<= 1) {
        u32 other = l >= k ? sums[l - k] : 0;
        barrier();
        sums[l] += other;
        barrier();
    }
    *total = sums[size - 1];
    u32 before = l == 0 ? 0 : sums[l - 1];
    barrier();
    return before;
}
KERNEL(radix_sort)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 keys[128], sums[128];
    u32 l = local_id();
    keys[l] = in[global_id()] & 0xffff;
    barrier();
    for (u32 bit = 0; bit < 16; bit++) {
        u32 key = keys[l], one = key >> bit & 1, zeros;
        u32 before = exclusive_scan(!one, sums, 128, &zeros);
        u32 place = one ? zeros + l - before : before;
        keys[place] = key;
        barrier();
    }
    out[global_id()] = keys[l];
}
TEST(radix_sort, .grid = {256}, .group = {128}, .in = 256, .out = 256);

KERNEL(merge_sort)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 a[128], b[128];
    u32 l = local_id(), *from = a, *to = b;
    a[l] = in[l];
    barrier();
    for (u32 width = 1; width < 128; width *= 2) {
        // Where each key goes is found by searching the other run.
        u32 run = l / width, start = (run ^ 1) * width, low = 0, high = width, key = from[l];
        while (low < high) {
            u32 middle = (low + high) / 2, other = from[start + middle];
            if (other < key || (other == key && (run & 1))) low = middle + 1;
            else high = middle;
        }
        to[(run & ~1u) * width + l % width + low] = key;
        barrier();
        u32 *swap = from;
        from = to;
        to = swap;
    }
    out[l] = from[l];
}
TEST(merge_sort, .grid = {128}, .group = {128}, .in = 128, .out = 128, .input = "below 50");

KERNEL(prefix_sums)(const u32 *in, u32 *out, u32 n) {
    // Up and down a tree.
    SHARED u32 tree[256];
    u32 l = local_id(), i = global_id();
    tree[l] = in[i];
    for (u32 k = 1; k < 256; k *= 2) {
        barrier();
        u32 at = (l + 1) * 2 * k - 1;
        if (at < 256) tree[at] += tree[at - k];
    }
    if (l == 0) tree[255] = 0;
    for (u32 k = 128; k > 0; k /= 2) {
        barrier();
        u32 at = (l + 1) * 2 * k - 1;
        if (at < 256) {
            u32 left = tree[at - k];
            tree[at - k] = tree[at];
            tree[at] += left;
        }
    }
    barrier();
    out[i] = tree[l];
}
TEST(prefix_sums, .grid = {512}, .group = {256}, .in = 512, .out = 512);

KERNEL(reduction)(const u32 *in, u32 *out, u32 n) {
    SHARED u64 sums[256];
    SHARED u32 least[256];
    u32 l = local_id(), i = global_id();
    u64 sum = 0;
    u32 smallest = ~0u;
    for (u32 k = i; k < 2048; k += n) {
        sum += in[k];
        smallest = in[k] < smallest ? in[k] : smallest;
    }
    sums[l] = sum;
    least[l] = smallest;
    for (u32 k = 128; k > 0; k >>= 1) {
        barrier();
        if (l < k) {
            sums[l] += sums[l + k];
            if (least[l + k] < least[l]) least[l] = least[l + k];
        }
    }
    if (l == 0) {
        put64(out + 3 * group_id(), sums[0]);
        out[3 * group_id() + 2] = least[0];
    }
}
TEST(reduction, .grid = {512}, .group = {256}, .in = 2048, .out = 6);

// What is kept stays in order, one workgroup.
KERNEL(compaction)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 sums[256];
    u32 l = local_id(), x = in[l], kept;
    bool keep = x % 3 == 0;
    u32 place = exclusive_scan(keep, sums, 256, &kept);
    if (keep) out[1 + place] = x;
    if (l == 0) out[0] = kept;
}
TEST(compaction, .grid = {256}, .group = {256}, .in = 256, .out = 257);

// Complex numbers by pairs, 64 points, with a table of roots in LDS computed by rotation.
struct Complex {
    f32 re, im;
};
INLINE Complex times(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
KERNEL(fast_fourier_transform)(const u32 *in, u32 *out, u32 n) {
    SHARED Complex data[128], roots[64];
    u32 l = local_id();
    if (l == 0) {
        Complex step = {0.99879545620517239271f, -0.049067674327418014255f}, root = {1, 0};
        for (u32 k = 0; k < 64; k++) {
            roots[k] = root;
            root = times(root, step);
        }
    }
    for (u32 k = l; k < 128; k += 64) data[__builtin_bitreverse32(k) >> 25] = {get_f32(in + k), get_f32(in + 128 + k)};
    for (u32 half = 1; half < 128; half *= 2) {
        barrier();
        u32 at = l / half * 2 * half + l % half;
        Complex a = data[at], b = times(data[at + half], roots[l % half * (64 / half)]);
        data[at] = {a.re + b.re, a.im + b.im};
        data[at + half] = {a.re - b.re, a.im - b.im};
    }
    barrier();
    for (u32 k = l; k < 128; k += 64) {
        out[2 * k] = bits(data[k].re);
        out[2 * k + 1] = bits(data[k].im);
    }
}
TEST(fast_fourier_transform, .grid = {64}, .group = {64}, .in = 256, .out = 256, .input = "range -1 1");

KERNEL(matrix_product)(const u32 *in, u32 *out, u32 n) {
    u32 x = global_id(0), y = global_id(1);
    const f32 *a = (const f32 *)in, *b = a + 32 * 24;
    f32 sum = 0;
    for (u32 k = 0; k < 24; k++) sum += a[y * 24 + k] * b[k * 32 + x];
    out[y * 32 + x] = bits(sum);
}
TEST(matrix_product, .grid = {32, 32}, .group = {16, 8}, .in = 1536, .out = 1024, .input = "range -3 3");

template <class F> INLINE void tiled_product(const F *a, const F *b, F *c) {
    SHARED F left[8][9], right[8][9];
    u32 x = local_id(0), y = local_id(1), column = global_id(0), row = global_id(1);
    F sum = 0;
    for (u32 t = 0; t < 4; t++) {
        left[y][x] = a[row * 32 + t * 8 + x];
        right[y][x] = b[(t * 8 + y) * 32 + column];
        barrier();
        for (u32 k = 0; k < 8; k++) sum += left[y][k] * right[k][x];
        barrier();
    }
    c[row * 32 + column] = sum;
}
KERNEL(tiled_matrix_product)(const u32 *in, u32 *out, u32 n) {
    tiled_product((const f32 *)in, (const f32 *)in + 512, (f32 *)out);
}
TEST(tiled_matrix_product, .grid = {32, 32}, .group = {8, 8}, .in = 1536, .out = 1024, .input = "range -3 3");
KERNEL(tiled_matrix_product_f64)(const u32 *in, u32 *out, u32 n) {
    tiled_product((const f64 *)in, (const f64 *)in + 512, (f64 *)out);
}
TEST(tiled_matrix_product_f64, .grid = {32, 32}, .group = {8, 8}, .in = 3072, .out = 2048, .input = "range64 -3 3");

KERNEL(many_bodies)(const u32 *in, u32 *out, u32 n) {
    SHARED f32 px[64], py[64], pz[64], mass[64];
    u32 i = global_id(), l = local_id();
    f32 x = get_f32(in + 4 * i), y = get_f32(in + 4 * i + 1), z = get_f32(in + 4 * i + 2), ax = 0, ay = 0, az = 0;
    for (u32 tile = 0; tile < n; tile += 64) {
        px[l] = get_f32(in + 4 * (tile + l));
        py[l] = get_f32(in + 4 * (tile + l) + 1);
        pz[l] = get_f32(in + 4 * (tile + l) + 2);
        mass[l] = get_f32(in + 4 * (tile + l) + 3) + 2.0f;
        barrier();
        for (u32 k = 0; k < 64; k++) {
            f32 dx = px[k] - x, dy = py[k] - y, dz = pz[k] - z;
            f32 d = dx * dx + dy * dy + dz * dz + 0.01f, pull = mass[k] / (d * __builtin_sqrtf(d));
            ax += dx * pull;
            ay += dy * pull;
            az += dz * pull;
        }
        barrier();
    }
    out[3 * i] = bits(ax);
    out[3 * i + 1] = bits(ay);
    out[3 * i + 2] = bits(az);
}
TEST(many_bodies, .grid = {128}, .group = {64}, .in = 512, .out = 384, .input = "range -1 1", .on = "gfx9* gfx1*");

KERNEL(sparse_matrix_times_vector)(const u32 *in, u32 *out, u32 n) {
    // Rows of different lengths, by a formula instead of an index of rows.
    u32 i = global_id(), length = (i * 7) % 13;
    f64 sum = 0;
    for (u32 k = 0; k < length; k++)
        sum += (f64)(in[(i * 13 + k) % 512] % 100) * (f64)get_f32(in + 512 + in[(i * 31 + k) % 512] % 512);
    put64(out + 2 * i, bits(sum));
}
TEST(sparse_matrix_times_vector, .grid = {256}, .group = {64}, .in = 1024, .out = 512, .input = "range 1 2");

KERNEL(lu_decomposition)(const u32 *in, u32 *out, u32 n) {
    SHARED f64 m[16][17];
    u32 x = local_id(0), y = local_id(1);
    m[y][x] = get_f64(in + 2 * (y * 16 + x)) + (x == y ? 40.0 : 0.0);
    for (u32 k = 0; k < 15; k++) {
        barrier();
        if (y > k && x == k) m[y][k] = m[y][k] / m[k][k];
        barrier();
        if (y > k && x > k) m[y][x] -= m[y][k] * m[k][x];
    }
    barrier();
    put64(out + 2 * (y * 16 + x), bits(m[y][x]));
}
TEST(lu_decomposition, .grid = {16, 16}, .group = {16, 16}, .in = 512, .out = 512, .input = "range64 -2 2");

// The distances of many pairs of words, a word pair for each work-item, rows in scratch.
KERNEL(edit_distance)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    const u8 *a = (const u8 *)in + i, *b = (const u8 *)in + 200 + i * 2;
    u8 row[17];
    for (u32 k = 0; k <= 16; k++) row[k] = (u8)k;
    for (u32 y = 1; y <= 12; y++) {
        u8 diagonal = row[0];
        row[0] = (u8)y;
        for (u32 x = 1; x <= 16; x++) {
            u8 up = row[x], left = row[x - 1], best = diagonal + (a[y - 1] != b[x - 1]);
            if (up + 1 < best) best = up + 1;
            if (left + 1 < best) best = left + 1;
            diagonal = up;
            row[x] = best;
        }
    }
    out[i] = row[16];
}
TEST(edit_distance, .grid = {128}, .group = {64}, .in = 128, .out = 128, .input = "text");

// Anti-diagonals in LDS, a workgroup for one pair.
KERNEL(longest_common_subsequence)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 lengths[3][65];
    u32 l = local_id();
    const u8 *a = (const u8 *)in, *b = (const u8 *)in + 64 + group_id();
    for (u32 k = 0; k < 3; k++)
        for (u32 j = l; j < 65; j += 64) lengths[k][j] = 0;
    barrier();
    for (u32 d = 0; d < 127; d++) {
        u32 *now = lengths[d % 3], *last = lengths[(d + 2) % 3], *before = lengths[(d + 1) % 3];
        if (l <= d && d - l < 64) {
            u32 up = last[l], left = last[l + 1];
            now[l + 1] = a[l] == b[d - l] ? before[l] + 1 : up > left ? up : left;
        }
        barrier();
    }
    if (l == 63) out[group_id()] = lengths[126 % 3][64];
}
TEST(longest_common_subsequence, .grid = {192}, .group = {64}, .in = 64, .out = 3, .input = "text");

KERNEL(game_of_life)(const u32 *in, u32 *out, u32 n) {
    SHARED u8 cells[2][16][16];
    u32 x = local_id(0), y = local_id(1), now = 0;
    cells[0][y][x] = in[y * 16 + x] % 3 == 0;
    for (u32 generation = 0; generation < 8; generation++, now ^= 1) {
        barrier();
        u32 alive = 0;
        for (u32 dy = 15; dy <= 17; dy++)
            for (u32 dx = 15; dx <= 17; dx++)
                if (dx != 16 || dy != 16) alive += cells[now][(y + dy) % 16][(x + dx) % 16];
        cells[now ^ 1][y][x] = alive == 3 || (alive == 2 && cells[now][y][x]);
    }
    barrier();
    out[y * 16 + x] = cells[now][y][x];
}
TEST(game_of_life, .grid = {16, 16}, .group = {16, 16}, .in = 256, .out = 256);

// Distances from node 0, level by level, in a graph of 256 nodes with 4 edges each.
KERNEL(breadth_first_search)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 distance[256], changed;
    u32 l = local_id();
    distance[l] = l == 0 ? 0 : ~0u;
    for (u32 level = 0; level < 32; level++) {
        barrier();
        if (l == 0) changed = 0;
        barrier();
        if (distance[l] == level)
            for (u32 k = 0; k < 4; k++) {
                u32 to = in[4 * l + k] % (k == 0 ? 256 : 64) / (1 + k), expected = ~0u;
                to = (to + l) % 256;
                if (atomic_swap_if(distance + to, &expected, level + 1)) atomic_store(&changed, 1u);
            }
        barrier();
        if (!changed) break;
    }
    out[l] = distance[l];
}
TEST(breadth_first_search, .grid = {256}, .group = {256}, .in = 1024, .out = 256);

KERNEL(shortest_paths)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 d[16][16];
    u32 x = local_id(0), y = local_id(1);
    d[y][x] = x == y ? 0 : in[y * 16 + x] % 1000 + (in[y * 16 + x] % 3 ? 100000 : 0);
    for (u32 k = 0; k < 16; k++) {
        barrier();
        u32 through = d[y][k] + d[k][x];
        barrier();
        if (through < d[y][x]) d[y][x] = through;
    }
    out[y * 16 + x] = d[y][x];
}
TEST(shortest_paths, .grid = {16, 16}, .group = {16, 16}, .in = 256, .out = 256);

KERNEL(union_find)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 parent[256];
    u32 l = local_id();
    parent[l] = l;
    barrier();
    u32 other = in[l] % 3 == 0 ? in[l] / 3 % 256 : l, a = l, b = other;
    while (true) {
        while (true) {
            u32 up = atomic_load(parent + a);
            if (up == a) break;
            a = up;
        }
        while (true) {
            u32 up = atomic_load(parent + b);
            if (up == b) break;
            b = up;
        }
        if (a == b) break;
        u32 high = a > b ? a : b, low = a > b ? b : a, expected = high;
        if (atomic_swap_if(parent + high, &expected, low)) break;
    }
    barrier();
    u32 root = l;
    while (parent[root] != root) root = parent[root];
    out[l] = root;
}
TEST(union_find, .grid = {256}, .group = {256}, .in = 256, .out = 256);

KERNEL(string_search)(const u32 *in, u32 *out, u32 n) {
    // How often each three-letter word of a pattern occurs in a text, and where first.
    u32 i = global_id(), first = ~0u, count = 0;
    const u8 *text = (const u8 *)in, *word = (const u8 *)in + 1024 + i;
    for (u32 k = 0; k < 200; k++) {
        u32 j = 0;
        while (j < 4 && text[k + j] == word[j]) j++;
        if (j == 4) {
            if (count++ == 0) first = k;
        }
    }
    out[2 * i] = count;
    out[2 * i + 1] = first;
}
TEST(string_search, .grid = {128}, .group = {64}, .in = 300, .out = 256, .input = "text");

// All of a list that divide, by trial; how many queens stand on a board, by search with a stack of its own.
KERNEL(primes_and_queens)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = i * 2 + 3;
    bool prime = true;
    for (u32 d = 3; d * d <= x && prime; d += 2) prime = x % d != 0;
    u32 size = 4 + i % 3, columns[8], row = 0, solutions = 0;
    columns[0] = 0;
    while (true) {
        bool safe = columns[row] < size;
        for (u32 k = 0; k < row && safe; k++) {
            u32 a = columns[k], b = columns[row], apart = a > b ? a - b : b - a;
            safe = apart != 0 && apart != row - k;
        }
        if (columns[row] >= size) {
            if (row == 0) break;
            columns[--row]++;
        } else if (!safe) {
            columns[row]++;
        } else if (row + 1 == size) {
            solutions++;
            columns[row]++;
        } else {
            columns[++row] = 0;
        }
    }
    out[i] = solutions << 1 | prime;
}
TEST(primes_and_queens, .grid = {64}, .group = {64}, .in = 1, .out = 64);

// Machine in a machine: bytes of code, a stack, a jump for each.
KERNEL(interpreter)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), stack[8], top = 0, pc = 0, fuel = 120, steps = 0;
    const u8 *code = (const u8 *)(in + i % 16);
    stack[0] = in[i];
    while (fuel-- > 0) {
        u8 op = code[pc % 64];
        pc++;
        steps = steps * 3 + op;
        switch (op % 9) {
        case 0: if (top < 7) stack[top + 1] = stack[top] + op, top++; break;
        case 1: if (top > 0) top--, stack[top] += stack[top + 1]; break;
        case 2: if (top > 0) top--, stack[top] ^= stack[top + 1] * 5; break;
        case 3: stack[top] = rotl(stack[top], op); break;
        case 4: if (stack[top] & 1) pc += op >> 5; break;
        case 5: if (stack[top] & 2) pc -= op & 3; break;
        case 6: stack[top]++; break;
        case 7: if (top < 7) stack[top + 1] = pc, top++; break;
        default: stack[top] = ~stack[top] - steps;
        }
    }
    out[i] = stack[top] + steps;
}
TEST(interpreter, .grid = {64}, .group = {64}, .in = 96, .out = 64);
