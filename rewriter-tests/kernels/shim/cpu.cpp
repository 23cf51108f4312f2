// Runs every test kernel on the CPU: `kernels-on-cpu WAVE_SIZE FOLDER` writes what each reads, what its output starts
// with and what it must be, and tests.json with the launches.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "kernel.h"

Test *Test::first;

namespace cpu {
u32 wave_size;

enum State { READY, AT_OPERATION, AT_BARRIER, DONE };

struct Fiber {
    ucontext_t context;
    char *stack;
    State state;
    int line;
    u64 value;
    Together together;
    u32 local[3];
};

static const u32 MAX_ITEMS = 1024;
static const size_t STACK = 256 << 10;
static Fiber fibers[MAX_ITEMS];
static ucontext_t scheduler;
static u32 current, items;
static u32 group[3];
static const Test *running;
static const u32 *input;
static u32 *output;
static char shared[65536];

void *dynamic_shared() { return shared; }
u32 coordinate(u32 what, u32 axis) {
    const Shape &s = running->shape;
    return what == 0 ? fibers[current].local[axis] : what == 1 ? group[axis] : what == 2 ? s.group[axis] : s.grid[axis];
}
u32 lane() { return current % wave_size; }

static void pause(State state) {
    fibers[current].state = state;
    swapcontext(&fibers[current].context, &scheduler);
}
const Together &meet(u64 value, int line) {
    Fiber &fiber = fibers[current];
    fiber.value = value;
    fiber.line = line;
    pause(AT_OPERATION);
    return fiber.together;
}
void wait() { pause(AT_BARRIER); }

static void start() {
    running->run(input, output, running->shape.grid[0]);
    pause(DONE);
}

// Lets the lanes of a wave that wait at the earliest line go on; false if none waits.
static bool release(u32 first, u32 end) {
    int line = 0;
    for (u32 i = first; i < end; i++)
        if (fibers[i].state == AT_OPERATION && (line == 0 || fibers[i].line < line)) line = fibers[i].line;
    if (line == 0) return false;
    Together all = {};
    for (u32 i = first; i < end; i++)
        if (fibers[i].state == AT_OPERATION && fibers[i].line == line) all.active |= 1ul << (i - first);
    // A lane that is read by number need not take part.
    for (u32 i = first; i < end; i++) all.values[i - first] = fibers[i].value;
    for (u32 i = first; i < end; i++)
        if (all.active >> (i - first) & 1) {
            fibers[i].together = all;
            fibers[i].state = READY;
        }
    return true;
}

static void run_wave(u32 first, u32 end) {
    do {
        for (current = first; current < end; current++)
            while (fibers[current].state == READY) swapcontext(&scheduler, &fibers[current].context);
    } while (release(first, end));
}

static void run_group(const Shape &shape) {
    // A workgroup at the end of a row may be smaller; its lanes are numbered in its own size.
    u32 size[3];
    for (u32 axis = 0; axis < 3; axis++) {
        u32 left = shape.grid[axis] - group[axis] * shape.group[axis];
        size[axis] = left < shape.group[axis] ? left : shape.group[axis];
    }
    items = size[0] * size[1] * size[2];
    for (u32 i = 0; i < items; i++) {
        Fiber &fiber = fibers[i];
        if (!fiber.stack) fiber.stack = (char *)malloc(STACK);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack;
        fiber.context.uc_stack.ss_size = STACK;
        makecontext(&fiber.context, start, 0);
        fiber.state = READY;
        fiber.value = 0;
        fiber.local[0] = i % size[0];
        fiber.local[1] = i / size[0] % size[1];
        fiber.local[2] = i / size[0] / size[1];
    }
    memset(shared, 0xcc, sizeof shared);
    for (;;) {
        for (u32 first = 0; first < items; first += wave_size)
            run_wave(first, first + wave_size < items ? first + wave_size : items);
        u32 waiting = 0;
        for (u32 i = 0; i < items; i++)
            if (fibers[i].state == AT_BARRIER) {
                fibers[i].state = READY;
                waiting++;
            }
        if (!waiting) return;
    }
}

static u64 random_state;
static u64 next_random() {
    u64 z = random_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
static f64 unit() { return (f64)(next_random() >> 11) * 0x1p-53; }

// One of the values at the ends and the seams of a floating-point format, by its widths.
static u64 float_edge(u32 fraction, u32 exponent) {
    u64 one = ((1ul << (exponent - 1)) - 1) << fraction, infinity = ((1ul << exponent) - 1) << fraction,
        tiny = 1ul << fraction;
    const u64 edges[] = {0, 1, tiny - 1, tiny, tiny + 1, one - 1, one, one + 1, infinity - 1, infinity,
        infinity | 1ul << (fraction - 1), one + tiny, one + tiny / 2, tiny / 2};
    return edges[next_random() % (sizeof edges / 8)] | (next_random() & 1) << (fraction + exponent);
}
static u64 int_edge(u32 width) {
    const u64 edges[] = {0, 1, 2, ~0ul, ~1ul, 1ul << (width - 1), (1ul << (width - 1)) - 1, 0x55, 0xff, 0x80, 0x7f,
        0x8000, 0x7fff, 0xffff, 31, 32, 33};
    return edges[next_random() % (sizeof edges / 8)];
}
// Random bits, values around one, or edge cases.
static u64 float_value(u32 fraction, u32 exponent) {
    u64 bits = next_random(), bias = (1ul << (exponent - 1)) - 1;
    switch (next_random() % 4) {
    case 0: return float_edge(fraction, exponent);
    case 1: return bits;
    default:
        return (bits & ((1ul << fraction) - 1)) | (bias - 8 + (bits >> 58) % 16) << fraction |
               (bits >> 57 & 1) << (fraction + exponent);
    }
}

static void fill(u32 *at, u32 words, const char *kind) {
    f64 low, high;
    u32 limit;
    for (u32 i = 0; i < words; i++) {
        if (!strcmp(kind, "random")) at[i] = (u32)next_random();
        else if (!strcmp(kind, "edges32")) at[i] = (u32)(next_random() % 3 ? next_random() : int_edge(32));
        else if (!strcmp(kind, "f32")) at[i] = (u32)float_value(23, 8);
        else if (!strcmp(kind, "f16")) at[i] = (u32)(float_value(10, 5) & 0xffff) | (u32)(float_value(10, 5) << 16);
        else if (!strcmp(kind, "text")) ((u8 *)at)[i] = 'a' + next_random() % 3;
        else if (sscanf(kind, "below %u", &limit) == 1) at[i] = next_random() % limit;
        else if (sscanf(kind, "range %lf %lf", &low, &high) == 2) at[i] = as<u32>((f32)(low + (high - low) * unit()));
        else if (i + 1 < words && !strcmp(kind, "edges64"))
            put64(at + i, next_random() % 3 ? next_random() : int_edge(64)), i++;
        else if (i + 1 < words && !strcmp(kind, "f64")) put64(at + i, float_value(52, 11)), i++;
        else if (i + 1 < words && sscanf(kind, "range64 %lf %lf", &low, &high) == 2)
            put64(at + i, as<u64>(low + (high - low) * unit())), i++;
        else {
            fprintf(stderr, "no such input: %s\n", kind);
            exit(2);
        }
    }
    if (!strcmp(kind, "text"))
        for (u32 i = words; i < 4 * words; i++) ((u8 *)at)[i] = 'a' + next_random() % 3;
}

static void write_file(const char *folder, const char *name, const char *what, const void *data, size_t size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, what);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file)) {
        perror(path);
        exit(2);
    }
}

static void run_test(const Test &test, const char *folder) {
    const Shape &s = test.shape;
    // A launch that leaves axes out has one work-item there.
    random_state = 0;
    for (const char *c = test.name; *c; c++) random_state = random_state * 131 + *c;
    u32 *in = (u32 *)calloc(s.in + 1, 4), *out = (u32 *)calloc(s.out + 1, 4);
    fill(in, s.in, s.input);
    for (u32 i = 0; i < s.out; i++) out[i] = s.start ? *s.start : 0xa5c3f00d ^ i * 0x9e3779b1;
    write_file(folder, test.name, "in", in, 4ul * s.in);
    write_file(folder, test.name, "start", out, 4ul * s.out);
    running = &test;
    input = in;
    output = out;
    for (group[2] = 0; group[2] * s.group[2] < s.grid[2]; group[2]++)
        for (group[1] = 0; group[1] * s.group[1] < s.grid[1]; group[1]++)
            for (group[0] = 0; group[0] * s.group[0] < s.grid[0]; group[0]++) run_group(s);
    write_file(folder, test.name, "expected", out, 4ul * s.out);
    free(in);
    free(out);
}

int run_all(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/tests.json", folder);
    FILE *json = fopen(path, "w");
    if (!json) return perror(path), 2;
    fprintf(json, "[");
    for (Test *test = Test::first; test; test = test->next) {
        Shape &s = test->shape;
        for (u32 axis = 0; axis < 3; axis++) {
            if (!s.grid[axis]) s.grid[axis] = 1;
            if (!s.group[axis]) s.group[axis] = 1;
        }
        if (!s.input) s.input = "random";
        run_test(*test, folder);
        fprintf(json,
            "%s\n{\"name\":\"%s\",\"file\":\"%s\",\"grid\":[%u,%u,%u],\"group\":[%u,%u,%u],\"dynamic\":%u,\"compare\":"
            "\"%s\",\"on\":\"%s\",\"extra\":[",
            test == Test::first ? "" : ",", test->name, test->file, s.grid[0], s.grid[1], s.grid[2], s.group[0],
            s.group[1], s.group[2], s.dynamic, s.compare ? s.compare : "bits", s.on ? s.on : "");
        for (size_t i = 0; i < test->extra_size; i++) fprintf(json, "%s%u", i ? "," : "", ((const u8 *)test->extra)[i]);
        fprintf(json, "]}");
    }
    fprintf(json, "\n]\n");
    return fclose(json) ? 2 : 0;
}
}

int main(int count, char **arguments) {
    if (count != 3 || (strcmp(arguments[1], "32") && strcmp(arguments[1], "64")))
        return fprintf(stderr, "usage: kernels-on-cpu 32|64 FOLDER\n"), 2;
    cpu::wave_size = (u32)atoi(arguments[1]);
    return cpu::run_all(arguments[2]);
}
