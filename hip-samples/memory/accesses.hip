// Accesses of memory that waste bandwidth or LDS cycles, each beside one that does not: what `wavetap memory` is to say
// of them is in expected.yaml.
#include "../src/selfcheck.h"

#include <numeric>

constexpr int n = 64;        // of matrices
constexpr int tile = 32;
constexpr int count = 4096;  // of vectors
constexpr int row_length = 16;

// x runs over rows: neighbouring lanes are a whole row apart.
__global__ void gemm_rows(const float* a, const float* b, float* c, int size) {
    int row = blockIdx.x * tile + threadIdx.x, column = blockIdx.y * tile + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < size; ++k) {
        sum += a[row * size + k] * b[k * size + column];
    }
    c[row * size + column] = sum;
}

// x runs over columns.
__global__ void gemm_columns(const float* a, const float* b, float* c, int size) {
    int row = blockIdx.y * tile + threadIdx.y, column = blockIdx.x * tile + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < size; ++k) {
        sum += a[row * size + k] * b[k * size + column];
    }
    c[row * size + column] = sum;
}

// Each lane sums up a row of its own.
__global__ void lane_rows(const float4* in, float* out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < row_length / 4; ++k) {
        float4 part = in[i * (row_length / 4) + k];
        sum += part.x + part.y + part.z + part.w;
    }
    out[i] = sum;
}

// The same of columns.
__global__ void lane_columns(const float* in, float* out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < row_length; ++k) {
        sum += in[k * count + i];
    }
    out[i] = sum;
}

struct Particle {
    float mass, charge, x, y, z, u, v, w;
};

__global__ void array_of_structures(const Particle* particles, float* out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = 2 * particles[i].mass;
}

__global__ void structure_of_arrays(const float* masses, float* out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = 2 * masses[i];
}

// Rows of 64 lanes, a pitch of so many floats.
template <int pitch>
__global__ void rows_of_pitch(const float* in, float* out) {
    int row = blockIdx.y * 4 + threadIdx.y;
    out[row * 1024 + threadIdx.x] = 3 * in[row * pitch + threadIdx.x];
}

// A column of a tile in LDS whose rows are so many floats long.
template <int pitch>
__global__ void column_of_tile(const float* in, float* out) {
    __shared__ float tile_of[tile * pitch];
    for (int y = threadIdx.y; y < tile; y += 8) {
        tile_of[y * pitch + threadIdx.x] = in[y * tile + threadIdx.x];
    }
    __syncthreads();
    for (int y = threadIdx.y; y < tile; y += 8) {
        out[y * tile + threadIdx.x] = tile_of[threadIdx.x * pitch + y];
    }
}

// What a matrix instruction reads of a tile: lane l the 16 bytes l / 16 of row l % 16; rows are so many float4 long.
template <int pitch, bool swizzled>
__global__ void matrix_tile(const float4* in, float4* out) {
    __shared__ float4 rows[16 * pitch];
    int lane = threadIdx.x, row = lane % 16, part = lane / 16;
    int place = row * pitch + (swizzled ? part ^ (row & 7) : part);
    for (int i = lane; i < 16 * pitch; i += 64) {
        rows[i] = in[i];
    }
    __syncthreads();
    out[lane] = rows[place];
}

__global__ void gather(const int* indices, const float* in, float* out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = in[indices[i]];
}

__global__ void backward(const float* in, float* out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = in[count - 1 - i];
}

static bool equal(const char* what, const std::vector<float>& found, const std::vector<float>& expected) {
    return matches(what, found, expected);
}

static bool gemm(bool by_rows) {
    std::vector<float> a(n * n), b(n * n), expected(n * n);
    for (int i = 0; i < n * n; ++i) {
        a[i] = i % 7;
        b[i] = i % 5;
    }
    for (int i = 0; i < n * n; ++i) {
        for (int k = 0; k < n; ++k) {
            expected[i] += a[i / n * n + k] * b[k * n + i % n];
        }
    }
    float *da = to_device(a), *db = to_device(b), *dc = to_device(std::vector<float>(n * n));
    dim3 grid(n / tile, n / tile), group(tile, tile);
    if (by_rows) {
        gemm_rows<<<grid, group>>>(da, db, dc, n);
    } else {
        gemm_columns<<<grid, group>>>(da, db, dc, n);
    }
    HIP_CHECK(hipFree(da));
    HIP_CHECK(hipFree(db));
    return equal(by_rows ? "gemm_rows" : "gemm_columns", take_back(dc, n * n), expected);
}

template <typename Launch>
static bool one(const char* what, size_t inputs, const std::vector<float>& expected, Launch launch) {
    std::vector<float> in(inputs);
    for (size_t i = 0; i < inputs; ++i) {
        in[i] = i % 1000;
    }
    float *din = to_device(in), *dout = to_device(std::vector<float>(expected.size()));
    launch(din, dout);
    HIP_CHECK(hipFree(din));
    return equal(what, take_back(dout, expected.size()), expected);
}

template <typename Value>
static std::vector<float> made(size_t size, Value value) {
    std::vector<float> made(size);
    for (size_t i = 0; i < size; ++i) {
        made[i] = value(i);
    }
    return made;
}

template <int pitch>
static bool pitched() {
    auto expected = made(64 * 1024, [](size_t i) {
        return i % 1024 < 64 ? 3.0f * ((i / 1024 * pitch + i % 1024) % 1000) : 0.0f;
    });
    return one("rows_of_pitch", 64 * pitch, expected, [](float* in, float* out) {
        rows_of_pitch<pitch><<<dim3(1, 16), dim3(64, 4)>>>(in, out);
    });
}

template <int pitch>
static bool column() {
    auto expected = made(tile * tile, [](size_t i) { return (i % tile * tile + i / tile) % 1000; });
    return one("column_of_tile", tile * tile, expected, [](float* in, float* out) {
        column_of_tile<pitch><<<1, dim3(tile, 8)>>>(in, out);
    });
}

template <int pitch, bool swizzled>
static bool matrix() {
    auto expected = made(4 * 64, [](size_t i) {
        int lane = i / 4, row = lane % 16, part = lane / 16;
        return (4 * (row * pitch + (swizzled ? part ^ (row & 7) : part)) + i % 4) % 1000;
    });
    return one("matrix_tile", 4 * 16 * pitch, expected, [](float* in, float* out) {
        matrix_tile<pitch, swizzled><<<1, 64>>>(reinterpret_cast<float4*>(in), reinterpret_cast<float4*>(out));
    });
}

int main() {
    bool ok = gemm(true) && gemm(false);
    auto row_sum = [](size_t i) {
        float sum = 0;
        for (int k = 0; k < row_length; ++k) {
            sum += (i * row_length + k) % 1000;
        }
        return sum;
    };
    ok &= one("lane_rows", count * row_length, made(count, row_sum), [](float* in, float* out) {
        lane_rows<<<count / 256, 256>>>(reinterpret_cast<float4*>(in), out);
    });
    auto column_sum = [](size_t i) {
        float sum = 0;
        for (int k = 0; k < row_length; ++k) {
            sum += (k * count + i) % 1000;
        }
        return sum;
    };
    ok &= one("lane_columns", count * row_length, made(count, column_sum), [](float* in, float* out) {
        lane_columns<<<count / 256, 256>>>(in, out);
    });
    auto twice = [](size_t i) { return 2.0f * (i * 8 % 1000); };
    ok &= one("array_of_structures", count * 8, made(count, twice), [](float* in, float* out) {
        array_of_structures<<<count / 256, 256>>>(reinterpret_cast<Particle*>(in), out);
    });
    ok &= one("structure_of_arrays", count, made(count, [](size_t i) { return 2.0f * (i % 1000); }),
              [](float* in, float* out) { structure_of_arrays<<<count / 256, 256>>>(in, out); });
    ok &= pitched<1001>() && pitched<1008>() && pitched<1024>();
    ok &= column<32>() && column<33>();
    ok &= matrix<8, false>() && matrix<9, false>() && matrix<8, true>();
    ok &= one("backward", count, made(count, [](size_t i) { return (count - 1 - i) % 1000; }),
              [](float* in, float* out) { backward<<<count / 256, 256>>>(in, out); });
    std::vector<int> indices(count);
    for (int i = 0; i < count; ++i) {
        indices[i] = i * 37 % count;
    }
    int* device_indices = to_device(indices);
    ok &= one("gather", count, made(count, [](size_t i) { return i * 37 % count % 1000; }),
              [&](float* in, float* out) { gather<<<count / 256, 256>>>(device_indices, in, out); });
    HIP_CHECK(hipFree(device_indices));
    return finish(ok);
}
