// Branches, loops, calls.
#include "shim/kernel.h"

KERNEL(nested_loops)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), sum = in[i];
    for (u32 a = 0; a < in[i] % 7; a++)
        for (u32 b = a; b < 5; b++) {
            if ((a + b + i) % 3 == 0) continue;
            for (u32 c = 0; c < (b ^ i) % 4; c++) {
                sum = sum * 5 + c;
                if (sum % 11 == 0) break;
            }
            if (sum % 13 == 0) goto end;
        }
end:
    out[i] = sum;
}
TEST(nested_loops, .grid = {256}, .group = {64}, .in = 256, .out = 256);

KERNEL(switches)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i], state = x % 11;
    for (u32 step = 0; step < 20; step++) {
        switch (state) {
        case 0: x += 3; state = x % 11; break;
        case 1: x ^= 0x55; state = 3; break;
        case 2: x *= 7; // falls through
        case 3: x -= 9; state = x & 7; break;
        case 4: x = rotl(x, 5); state = 10; break;
        case 5: state = x >> 29; x++; break;
        case 6: x = ~x; state = 8; break;
        case 8: x += step; state = x % 5; break;
        case 10: x = x * x + 1; state = x >> 28 & 7; break;
        default: x += 77; state = (state + 3) % 11;
        }
    }
    out[i] = x;
}
TEST(switches, .grid = {256}, .group = {64}, .in = 256, .out = 256);

KERNEL(early_exits)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    if (i >= n - 9) return;
    if (in[i] % 4 == 0) {
        out[i] = 1;
        return;
    }
    u32 x = in[i];
    while (true) {
        x = x * 1664525 + 1013904223;
        if (x % 8 == 0) break;
        if (x % 16 == 5) {
            out[i] = 2;
            return;
        }
    }
    out[i] = x;
}
TEST(early_exits, .grid = {320}, .group = {64}, .in = 320, .out = 320);

// Counters in a loop whose first instruction waits for scalar loads: a program that waits for a flag in memory.
KERNEL(waits_for_flag)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    while (*(volatile const u32 *)in == 0x9e3779b9) {
    }
    out[i] = in[i] + 1;
}
TEST(waits_for_flag, .grid = {256}, .group = {64}, .in = 256, .out = 256);

// A loop that is entered in its middle.
KERNEL(jumps_into_loops)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i], left = 12;
    if (x & 1) goto middle;
top:
    x = x * 3 + 1;
    if (x % 5 == 2) x += i;
middle:
    x ^= x >> 7;
    if (--left == 0) goto end;
    if (x % 3 == 0) goto middle;
    if (x % 7 != 0) goto top;
    x += 1000;
    if (left > 2) goto top;
end:
    out[i] = x;
}
TEST(jumps_into_loops, .grid = {256}, .group = {64}, .in = 256, .out = 256);

KERNEL(collatz)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), steps = 0;
    u64 x = in[i] + 1;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x >> 1;
        steps++;
    }
    out[i] = steps;
}
TEST(collatz, .grid = {128}, .group = {64}, .in = 128, .out = 128, .input = "below 1000");

// Nobody, somebody, everybody: code that no lane of a wave may run, and that one does.
KERNEL(rare_branches)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i];
    if (group_id() == 1 && x == 0xffffffff) {
        out[0] = 1;
        x = 5;
    }
    if (i % 64 == 17) {
        for (u32 k = 0; k < 9; k++) x = x * 33 + k;
        if (group_id() == 2) x = ~x;
    } else if (group_id() != 3) {
        x += group_id() * 1000;
    }
    if (group_id() & 1) x ^= in[n - 1 - i];
    if (x != x * 1) out[1] = 2;
    out[i] = x;
}
TEST(rare_branches, .grid = {256}, .group = {64}, .in = 256, .out = 256);

KERNEL(short_circuits)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a = in[3 * i] % 16, b = in[3 * i + 1] % 16, c = in[3 * i + 2] % 16, r = 0;
    if ((a < b && b < c) || (c < a && in[(a * b) % n] % 2)) r |= 1;
    if (!(a == 3 || (b == 4 && c != 5)) && (a ^ b) > c) r |= 2;
    bool found = false;
    for (u32 k = 0; k < a && !found; k++) found = (k * b) % 16 == c;
    if (found) r |= 4;
    out[i] = r | a << 8;
}
TEST(short_circuits, .grid = {256}, .group = {64}, .in = 768, .out = 256);

NOINLINE u32 mixed(u32 a, u32 b) { return (a ^ rotl(b, 7)) * 0x9e3779b1; }
NOINLINE u32 called_twice(u32 a, u32 b) { return mixed(a, b) + mixed(b, a + 1); }
KERNEL(calls)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = called_twice(in[i], i);
    if (i % 3) x = called_twice(x, 7);
    out[i] = mixed(x, i);
}
TEST(calls, .grid = {128}, .group = {64}, .in = 128, .out = 128);

NOINLINE u32 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
KERNEL(recursion)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    out[i] = fibonacci(in[i]);
}
TEST(recursion, .grid = {64}, .group = {64}, .in = 64, .out = 64, .input = "below 11");

NOINLINE u32 odd(u32 n);
NOINLINE u32 even(u32 n) { return n == 0 ? 1000 : odd(n - 1) + 1; }
NOINLINE u32 odd(u32 n) { return n == 0 ? 2000 : even(n - 1) + 3; }
KERNEL(mutual_recursion)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    out[i] = in[i] % 2 ? odd(in[i]) : even(in[i] + 1);
}
TEST(mutual_recursion, .grid = {64}, .group = {64}, .in = 64, .out = 64, .input = "below 20");

NOINLINE u32 plus(u32 a, u32 b) { return a + b; }
NOINLINE u32 times(u32 a, u32 b) { return a * b; }
NOINLINE u32 power(u32 a, u32 b) {
    u32 r = 1;
    for (u32 k = 0; k < b % 10; k++) r *= a;
    return r;
}
typedef u32 (*operation)(u32, u32);
NOINLINE operation chosen(u32 x) { return x % 3 == 0 ? plus : x % 3 == 1 ? times : power; }
KERNEL(function_pointers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i];
    // First the whole wave calls one function, then each lane its own.
    x = chosen(group_id())(x, 3);
    for (u32 k = 0; k < 3; k++) x = chosen(x + k)(x, i + k);
    out[i] = x;
}
TEST(function_pointers, .grid = {192}, .group = {64}, .in = 192, .out = 192);

struct Shapes {
    u32 kind, a, b;
    u64 sum;
};
NOINLINE Shapes grown(Shapes s, const u32 *table, u32 depth) {
    u32 local[6];
    for (u32 k = 0; k < 6; k++) local[k] = table[(s.a + k) % 32] + depth;
    s.sum += (u64)local[s.b % 6] * local[s.a % 6];
    s.a = s.a * 5 + local[depth % 6];
    s.b ^= s.a >> 3;
    s.kind++;
    return depth == 0 ? s : grown(s, table, depth - 1);
}
// Structures in and out of calls, with arrays on the stack.
KERNEL(structures_in_calls)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    Shapes s = grown({i, in[i], in[n - 1 - i], 0}, in, 3);
    out[5 * i] = s.kind;
    out[5 * i + 1] = s.a;
    out[5 * i + 2] = s.b;
    put64(out + 5 * i + 3, s.sum);
}
TEST(structures_in_calls, .grid = {64}, .group = {64}, .in = 64, .out = 320);

// More arguments than registers for them.
NOINLINE u64 many(u32 a, u64 b, f32 c, f64 d, u8 e, i16 f, const u32 *g, u32 h, u64 j, u64 k, u64 l, u64 m, u64 o,
    u64 p, u64 q, u64 r, u64 s, u64 t) {
    return a + b * 3 + (u64)(c * 4) + (u64)(d * 5) + e * 7 + (u64)(i64)f + *g + h * 11 + j * 13 + k * 17 + l * 19 +
           m * 23 + o * 29 + p * 31 + q * 37 + r * 41 + s * 43 + t * 47;
}
KERNEL(many_arguments)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    const u32 *w = in + i;
    u64 r = many(w[0], w[1], (f32)(w[2] & 0xffff), (f64)w[3], (u8)w[4], (i16)w[5], w + 6, w[7], w[8], w[9], w[10],
        w[11], w[12], w[13], w[14], w[15], w[16], w[17]);
    put64(out + 2 * i, r);
}
TEST(many_arguments, .grid = {64}, .group = {64}, .in = 96, .out = 128);

// Many values alive at once: registers spill.
KERNEL(much_alive)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), v[96];
#pragma unroll
    for (u32 k = 0; k < 96; k++) v[k] = in[(i * 7 + k * 13) % n] + k;
    for (u32 round = 0; round < 2; round++) {
#pragma unroll
        for (u32 k = 0; k < 96; k++) v[k] = v[k] * v[(k + 37) % 96] + v[(k + 51) % 96];
    }
    u32 hash = 0;
#pragma unroll
    for (u32 k = 0; k < 96; k++) hash = hash * 31 + v[k];
    out[i] = hash;
}
TEST(much_alive, .grid = {64}, .group = {64}, .in = 64, .out = 64);
