// The kernels of programs that people run, made small: what `emulate.rs` measures under `programs`. Each mixes kinds of
// work that the kernels of `emulate.hip` have alone.
#define KERNEL extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(256, 256)))
#define SHARED __attribute__((shared))

typedef float Four __attribute__((ext_vector_type(4)));

static inline __attribute__((device)) unsigned lane_of_group() { return __builtin_amdgcn_workitem_id_x(); }
static inline __attribute__((device)) unsigned item() {
    return __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
}
static inline __attribute__((device)) void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// The pull of all bodies on each, in tiles of a workgroup: a division and a square root for each pair. A body is a
// place and a mass.
KERNEL void n_body(const Four *bodies, Four *pulls, unsigned n) {
    SHARED Four tile[256];
    Four own = bodies[item()], sum = 0;
    for (unsigned first = 0; first < n; first += 256) {
        tile[lane_of_group()] = bodies[first + lane_of_group()];
        barrier();
        for (unsigned other = 0; other < 256; ++other) {
            Four way = tile[other] - own;
            float inverse = 1.0f / __builtin_sqrtf(way.x * way.x + way.y * way.y + way.z * way.z + 0.001f);
            sum += way * (tile[other].w * inverse * inverse * inverse);
        }
        barrier();
    }
    pulls[item()] = sum;
}

// A product of square matrices. A workgroup makes 64 by 64 numbers and an item 4 by 4 of them; it takes the first
// matrix through LDS and the second one from memory.
KERNEL void matrix_product(const Four *a, Four *c, unsigned n) {
    SHARED Four tile[64][16];
    const Four *b = a + n * n / 4;
    unsigned x = lane_of_group() & 15, y = lane_of_group() >> 4, width = n / 4, groups = n / 64;
    unsigned row = __builtin_amdgcn_workgroup_id_x() / groups * 64 + 4 * y;
    unsigned column = __builtin_amdgcn_workgroup_id_x() % groups * 16 + x;
    Four sums[4] = {0, 0, 0, 0};
    for (unsigned at = 0; at < width; at += 16) {
        for (unsigned i = 0; i < 4; ++i) tile[4 * y + i][x] = a[(row + i) * width + at + x];
        barrier();
        for (unsigned k = 0; k < 16; ++k) {
            Four of_b[4];
            for (unsigned i = 0; i < 4; ++i) of_b[i] = b[(4 * (at + k) + i) * width + column];
            for (unsigned i = 0; i < 4; ++i) {
                Four of_a = tile[4 * y + i][k];
                sums[i] += of_a.x * of_b[0] + of_a.y * of_b[1] + of_a.z * of_b[2] + of_a.w * of_b[3];
            }
        }
        barrier();
    }
    for (unsigned i = 0; i < 4; ++i) c[(row + i) * width + column] = sums[i];
}

// The nearest of some centres to each of 16,384 points, both of eight numbers.
KERNEL void k_means(const float *numbers, unsigned *nearest, unsigned centres) {
    const float *points = numbers + 4096;
    unsigned index = 0;
    float least = 3.4e38f;
    for (unsigned centre = 0; centre < centres; ++centre) {
        float distance = 0;
        for (unsigned part = 0; part < 8; ++part) {
            float gap = points[part * 16384 + item()] - numbers[centre * 8 + part];
            distance += gap * gap;
        }
        if (distance < least) {
            least = distance;
            index = centre;
        }
        // As where the compiler knows nothing of the places of buffers: it loads everything again.
        nearest[item()] = index;
    }
}

// A matrix times a vector: a row for each lane, so that lanes are far apart. Then its transpose times a vector. Sums
// are in memory all the time.
KERNEL void matrix_vector(const float *matrix, float *sums, unsigned n) {
    if (item() >= n) return;
    for (unsigned column = 0; column < n; ++column)
        sums[item()] += matrix[item() * n + column] * matrix[n * n + column];
}
KERNEL void transposed_vector(const float *matrix, float *sums, unsigned n) {
    if (item() >= n) return;
    for (unsigned row = 0; row < n; ++row) sums[item()] += matrix[row * n + item()] * matrix[n * n + row];
}

// The price of an option by Black and Scholes, with few terms: logarithms, exponentials, square roots, divisions.
KERNEL void option_price(const float *numbers, float *prices, unsigned rounds) {
    float price = numbers[item()] * 30.0f + 5.0f, strike = numbers[item() + 1] * 99.0f + 1.0f, sum = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        float years = 0.25f + 0.01f * round, root = 0.3f * __builtin_sqrtf(years);
        float first = (__builtin_amdgcn_logf(price / strike) * 0.6931472f + 0.065f * years) / root;
        float second = first - root;
        float t1 = 1.0f / (1.0f + 0.2316419f * __builtin_fabsf(first));
        float t2 = 1.0f / (1.0f + 0.2316419f * __builtin_fabsf(second));
        float n1 = __builtin_amdgcn_exp2f(-0.7213475f * first * first) * t1 * (0.3193815f + t1 * -0.3565638f);
        float n2 = __builtin_amdgcn_exp2f(-0.7213475f * second * second) * t2 * (0.3193815f + t2 * -0.3565638f);
        sum += price * n1 - strike * __builtin_amdgcn_exp2f(-0.02885f * years) * n2;
    }
    prices[item()] = sum;
}
