// One kernel for each kind of work that `emulate.rs` measures: each does nearly nothing else.
#define KERNEL extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(256, 256)))
#define SHARED __attribute__((shared))

static inline __attribute__((device)) unsigned item() {
    return __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
}

KERNEL void compute_f32(float *data, unsigned rounds) {
    float a = data[item()], b = a + 1.0f, c = a * 0.5f, d = a - 3.0f;
    for (unsigned i = 0; i < rounds; ++i) {
        a = __builtin_fmaf(a, 0.999f, b);
        b = __builtin_fmaf(b, 0.499f, c);
        c = __builtin_fmaf(c, 0.333f, d);
        d = d * 0.5f + a;
    }
    data[item()] = a + b + c + d;
}

KERNEL void compute_i32(unsigned *data, unsigned rounds) {
    unsigned a = data[item()], b = a ^ 0x9e3779b9u, c = a * 7;
    for (unsigned i = 0; i < rounds; ++i) {
        a = (a << 5 | a >> 27) + b;
        b = (b ^ a) * 0x85ebca6bu;
        c += a & b;
    }
    data[item()] = a + b + c;
}

KERNEL void compute_f64(double *data, unsigned rounds) {
    double a = data[item()], b = a + 1.0;
    for (unsigned i = 0; i < rounds; ++i) {
        a = __builtin_fma(a, 0.999, b);
        b = b * 0.5 + a;
    }
    data[item()] = a + b;
}

// Streams through memory: a load, a little work and a store for each element.
KERNEL void stream(float *data, unsigned rounds) {
    for (unsigned i = 0; i < rounds; ++i) {
        float *place = data + (item() + i * 4096) % (1u << 20);
        *place = *place * 2.0f + 1.0f;
    }
}

// Every lane reads from another part of memory.
KERNEL void gather(unsigned *data, unsigned rounds) {
    unsigned at = data[item()];
    for (unsigned i = 0; i < rounds; ++i)
        at = data[(at * 2654435761u + i) % (1u << 20)] + item();
    data[item()] = at;
}

KERNEL void local(unsigned *data, unsigned rounds) {
    SHARED unsigned shared[256];
    unsigned lane = __builtin_amdgcn_workitem_id_x(), sum = 0;
    shared[lane] = data[item()];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    for (unsigned i = 0; i < rounds; ++i)
        sum += shared[(lane + i) & 255];
    data[item()] = sum;
}

KERNEL void diverge(unsigned *data, unsigned rounds) {
    unsigned a = data[item()] | 1, steps = 0;
    while (a != 1 && steps < rounds) {
        a = a & 1 ? 3 * a + 1 : a >> 1;
        ++steps;
    }
    data[item()] = steps;
}

// Small launches, again and again: what programs do that have a step for each column, pair or diagonal.
KERNEL void empty(unsigned *) {}

// A column of Gaussian elimination on a square matrix of `n`, in two steps: the multipliers, then the rest of the
// matrix.
KERNEL void multipliers(float *m, float *factors, unsigned n, unsigned column) {
    unsigned row = item();
    if (row < n - 1 - column) factors[row + column + 1] = m[(row + column + 1) * n + column] / m[column * n + column];
}
KERNEL void eliminate(float *m, float *factors, unsigned n, unsigned column) {
    unsigned cell = item(), row = cell / (n - column) + column + 1, at = cell % (n - column) + column;
    if (row < n) m[row * n + at] -= factors[row] * m[column * n + at];
}

// Two elements change places, through LDS.
KERNEL void reverse(unsigned *data, unsigned n) {
    SHARED unsigned staged[256];
    unsigned lane = __builtin_amdgcn_workitem_id_x();
    if (lane < n) staged[lane] = data[lane];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    if (lane < n) data[lane] = staged[n - 1 - lane];
}

// A row of a dynamic program: the least of three cells of the row before, and a cost.
KERNEL void sweep(unsigned *cost, unsigned *rows, unsigned n, unsigned row) {
    unsigned at = item(), *from = rows + (row & 1) * n, *to = rows + (~row & 1) * n;
    if (at >= n) return;
    unsigned least = from[at], left = at > 0 ? from[at - 1] : least, right = at + 1 < n ? from[at + 1] : least;
    least = left < least ? left : least;
    least = right < least ? right : least;
    to[at] = least + cost[(row * n + at) & 0xfffff];
}
