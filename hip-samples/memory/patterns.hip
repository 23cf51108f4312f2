// Patterns of accesses, each beside a program that is better: what is to be found in the accesses that they make is
// in findings.yaml.
#include "../src/selfcheck.h"

constexpr int n = 64;           // of matrices that are multiplied
constexpr int tile = 32;
constexpr int rows = 256;       // of the other matrices, and of the sparse one
constexpr int entries = 4096;   // of the sparse matrix
constexpr int step = 5;         // of the orthogonalization
constexpr int csr_rows = 1024;  // of a sparse matrix that is stored row by row
constexpr int in_row = 16;      // entries of each of its rows
constexpr int rank = 16;
constexpr int fibres = 512;
constexpr int length = 8;       // of a fibre
constexpr int count = 8192;     // of vectors
constexpr int margin = 32;      // beside the rows of the stencil
constexpr int width = 256, height = 64, pitch = width + 2 * margin;

// Tiles of both factors in LDS.
__global__ void gemm_tiled(const float* a, const float* b, float* c, int size) {
    __shared__ float of_a[tile][tile], of_b[tile][tile];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * tile + y, column = blockIdx.x * tile + x;
    float sum = 0;
    for (int k = 0; k < size; k += tile) {
        of_a[y][x] = a[row * size + k + x];
        of_b[y][x] = b[(k + y) * size + column];
        __syncthreads();
        for (int i = 0; i < tile; ++i) {
            sum += of_a[y][i] * of_b[i][x];
        }
        __syncthreads();
    }
    c[row * size + column] = sum;
}

// Two kernels of a modified Gram-Schmidt process: a column of q, and a row of r with what is left of a.
__global__ void column_of_q(const float* a, const float* r, float* q, int size, int k) {
    int i = blockIdx.x * 256 + threadIdx.x;
    q[i * size + k] = a[i * size + k] / r[k * size + k];
}

__global__ void column_of_q_transposed(const float* a, const float* r, float* q, int size, int k) {
    int i = blockIdx.x * 256 + threadIdx.x;
    q[k * size + i] = a[k * size + i] / r[k * size + k];
}

__global__ void row_of_r(float* a, float* r, const float* q, int size, int k) {
    int j = blockIdx.x * 256 + threadIdx.x;
    if (j <= k) {
        return;
    }
    float sum = 0;
    for (int i = 0; i < size; ++i) {
        sum += q[i * size + k] * a[i * size + j];
    }
    r[k * size + j] = sum;
    for (int i = 0; i < size; ++i) {
        a[i * size + j] -= q[i * size + k] * sum;
    }
}

__global__ void row_of_r_transposed(float* a, float* r, const float* q, int size, int k) {
    int j = blockIdx.x * 256 + threadIdx.x;
    if (j <= k) {
        return;
    }
    float sum = 0;
    for (int i = 0; i < size; ++i) {
        sum += q[k * size + i] * a[i * size + j];
    }
    r[k * size + j] = sum;
    for (int i = 0; i < size; ++i) {
        a[i * size + j] -= q[k * size + i] * sum;
    }
}

// A sparse matrix as a list of entries, times a vector. In which order the entries are is the caller's choice.
__global__ void spmv_coo(const int* row, const int* column, const int* value, const int* x, int* y) {
    int i = blockIdx.x * 1024 + threadIdx.x;
    atomicAdd(&y[row[i]], value[i] * x[column[i]]);
}

// A tensor times a matrix: each work-item has a fibre, and sums of its own.
__global__ void ttm_in_lds(const float* values, const float* matrix, float* out) {
    __shared__ float sums[256 * rank];
    int lane = threadIdx.x, fibre = blockIdx.x * 256 + lane;
    for (int r = 0; r < rank; ++r) {
        sums[lane * rank + r] = 0;
    }
    for (int k = 0; k < length; ++k) {
        float value = values[k * fibres + fibre];
        __syncthreads();
        for (int r = 0; r < rank; ++r) {
            sums[lane * rank + r] += value * matrix[k * rank + r];
        }
    }
    __syncthreads();
    for (int r = 0; r < rank; ++r) {
        out[r * fibres + fibre] = sums[lane * rank + r];
    }
}

__global__ void ttm_in_registers(const float* values, const float* matrix, float* out) {
    int fibre = blockIdx.x * 256 + threadIdx.x;
    float sums[rank] = {};
    for (int k = 0; k < length; ++k) {
        float value = values[k * fibres + fibre];
        for (int r = 0; r < rank; ++r) {
            sums[r] += value * matrix[k * rank + r];
        }
    }
    for (int r = 0; r < rank; ++r) {
        out[r * fibres + fibre] = sums[r];
    }
}

// Each 32 lanes get what the first of them has.
__global__ void broadcast_in_lds(const int* in, int* out) {
    __shared__ int firsts[256 / 32];
    int i = blockIdx.x * 256 + threadIdx.x, mine = in[i];
    if (threadIdx.x % 32 == 0) {
        firsts[threadIdx.x / 32] = mine * 3;
    }
    __syncthreads();
    out[i] = mine + firsts[threadIdx.x / 32];
}

__global__ void broadcast_by_lanes(const int* in, int* out) {
    int i = blockIdx.x * 256 + threadIdx.x, mine = in[i];
    out[i] = mine + __shfl(mine * 3, 0, 32);
}

__global__ void vadd(const float* a, const float* b, float* c) {
    int i = blockIdx.x * 256 + threadIdx.x;
    c[i] = a[i] + b[i];
}

// Neighbouring lanes are count / 256 elements apart; other workgroups have those between.
__global__ void vadd_permuted(const float* a, const float* b, float* c) {
    int i = threadIdx.x * (count / 256) + blockIdx.x;
    c[i] = a[i] + b[i];
}

__device__ int sum_of_32(int value) {
    for (int distance = 16; distance > 0; distance /= 2) {
        value += __shfl_xor(value, distance, 32);
    }
    return value;
}

// Sums of each 32 values: who has a sum stores it, or all of a workgroup are stored together.
template <int size>
__global__ void sums_apart(const int* in, int* out) {
    int i = blockIdx.x * size + threadIdx.x, sum = sum_of_32(in[i]);
    if (threadIdx.x % 32 == 0) {
        out[i / 32] = sum;
    }
}

__global__ void sums_together(const int* in, int* out) {
    __shared__ int sums[1024 / 32];
    int lane = threadIdx.x, sum = sum_of_32(in[blockIdx.x * 1024 + lane]);
    if (lane % 32 == 0) {
        sums[lane / 32] = sum;
    }
    __syncthreads();
    if (lane < 1024 / 32) {
        out[blockIdx.x * (1024 / 32) + lane] = sums[lane];
    }
}

// How many particles are in each cell. In which order the particles are is the caller's choice.
__global__ void cells(const int* cell, int* counts) {
    int i = blockIdx.x * 256 + threadIdx.x;
    atomicAdd(&counts[cell[i]], 1);
}

__global__ void stencil(const float* in, float* out) {
    int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const float* at = in + (y + 1) * pitch + margin + x;
    out[y * width + x] = at[0] + at[-1] + at[1] + at[-pitch] + at[pitch];
}

// The first kernel of the process: one work-item adds up the squares of a column.
__global__ void length_of_column(const float* a, float* r, int size, int k) {
    if (blockIdx.x * 256 + threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < size; ++i) {
            sum += a[i * size + k] * a[i * size + k];
        }
        r[k * size + k] = sqrtf(sum);
    }
}

// A sparse matrix, row by row, times a vector: each work-item walks along its own row.
__global__ void spmv_csr(const int* start, const int* column, const int* value, const int* x, int* y) {
    int row = blockIdx.x * 1024 + threadIdx.x, sum = 0;
    for (int i = start[row]; i < start[row + 1]; ++i) {
        sum += value[i] * x[column[i]];
    }
    y[row] = sum;
}

// The same with the first entries of all rows stored before the second ones, for a matrix with as many in each row.
__global__ void spmv_ell(const int* column, const int* value, const int* x, int* y) {
    int row = blockIdx.x * 1024 + threadIdx.x, sum = 0;
    for (int i = 0; i < in_row; ++i) {
        sum += value[i * csr_rows + row] * x[column[i * csr_rows + row]];
    }
    y[row] = sum;
}

template <typename Value>
static auto made(size_t size, Value value) {
    std::vector<decltype(value(size_t()))> made(size);
    for (size_t i = 0; i < size; ++i) {
        made[i] = value(i);
    }
    return made;
}

static uint32_t scattered(uint32_t i) {
    i = (i ^ (i >> 15)) * 0x2c1b3c6du;
    i = (i ^ (i >> 12)) * 0x297a2d39u;
    return i ^ (i >> 15);
}

static float small(size_t i) {
    return scattered(i) % 8;
}

static int whole(size_t i) {
    return scattered(i) % 1000;
}

static bool gemm() {
    auto a = made(n * n, small), b = made(n * n, [](size_t i) { return small(i + n * n); });
    auto expected = made(n * n, [&](size_t i) {
        float sum = 0;
        for (int k = 0; k < n; ++k) {
            sum += a[i / n * n + k] * b[k * n + i % n];
        }
        return sum;
    });
    float *da = to_device(a), *db = to_device(b), *dc = to_device(std::vector<float>(n * n));
    gemm_tiled<<<dim3(n / tile, n / tile), dim3(tile, tile)>>>(da, db, dc, n);
    HIP_CHECK(hipFree(da));
    HIP_CHECK(hipFree(db));
    return matches("gemm_tiled", take_back(dc, n * n), expected);
}

// One step of the process, with whole numbers, so that all sums are exact.
static bool orthogonalization(bool transposed) {
    auto at = [&](size_t row, size_t column) { return transposed ? column * rows + row : row * rows + column; };
    std::vector<float> a(rows * rows), q(rows * rows), r(rows * rows);
    for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < rows; ++j) {
            a[i * rows + j] = small(i * rows + j);
        }
        q[at(i, step)] = i % 3;
    }
    r[step * rows + step] = 2;
    auto expected_a = a, expected_q = q, expected_r = r;
    for (int i = 0; i < rows; ++i) {
        expected_q[at(i, step)] = a[at(i, step)] / 2;
    }
    for (int j = step + 1; j < rows; ++j) {
        float sum = 0;
        for (int i = 0; i < rows; ++i) {
            sum += q[at(i, step)] * a[i * rows + j];
        }
        expected_r[step * rows + j] = sum;
        for (int i = 0; i < rows; ++i) {
            expected_a[i * rows + j] -= q[at(i, step)] * sum;
        }
    }
    float *da = to_device(a), *dq = to_device(q), *dr = to_device(r), *of_column = to_device(q);
    if (transposed) {
        column_of_q_transposed<<<rows / 256, 256>>>(da, dr, of_column, rows, step);
        row_of_r_transposed<<<rows / 256, 256>>>(da, dr, dq, rows, step);
    } else {
        column_of_q<<<rows / 256, 256>>>(da, dr, of_column, rows, step);
        row_of_r<<<rows / 256, 256>>>(da, dr, dq, rows, step);
    }
    HIP_CHECK(hipFree(dq));
    return matches("column_of_q", take_back(of_column, q.size()), expected_q) &
           matches("row_of_r", take_back(dr, r.size()), expected_r) &
           matches("rest of a", take_back(da, a.size()), expected_a);
}

static bool sparse(bool random) {
    auto row = made(entries, [=](size_t i) { return random ? int(scattered(i) % rows) : int(i % rows); });
    auto column = made(entries, [=](size_t i) {
        return random ? int(scattered(i + entries) % rows) : int((i % rows + 32 * (i / rows)) % rows);
    });
    auto value = made(entries, whole), x = made(rows, whole);
    std::vector<int> expected(rows);
    for (int i = 0; i < entries; ++i) {
        expected[row[i]] += value[i] * x[column[i]];
    }
    int *dr = to_device(row), *dc = to_device(column), *dv = to_device(value), *dx = to_device(x);
    int* dy = to_device(std::vector<int>(rows));
    spmv_coo<<<entries / 1024, 1024>>>(dr, dc, dv, dx, dy);
    for (int* array : {dr, dc, dv, dx}) {
        HIP_CHECK(hipFree(array));
    }
    return matches(random ? "spmv_coo, random" : "spmv_coo, banded", take_back(dy, rows), expected);
}

static bool column_length() {
    auto a = made(rows * rows, small);
    std::vector<float> r(rows * rows), expected = r;
    float sum = 0;
    for (int i = 0; i < rows; ++i) {
        sum += a[i * rows + step] * a[i * rows + step];
    }
    expected[step * rows + step] = sqrtf(sum);
    float *da = to_device(a), *dr = to_device(r);
    length_of_column<<<1, 256>>>(da, dr, rows, step);
    HIP_CHECK(hipFree(da));
    return matches("length_of_column", take_back(dr, r.size()), expected);
}

// Of the matrix with `in_row` entries in each row the element at `i`, in the order of the rows.
static int column_at(size_t i) {
    return scattered(i) % csr_rows;
}

static bool sparse_by_rows(bool rows_first) {
    auto at = [=](size_t i) { return rows_first ? i : i % csr_rows * in_row + i / csr_rows; };
    auto start = made(csr_rows + 1, [](size_t i) { return int(i * in_row); });
    auto column = made(csr_rows * in_row, [=](size_t i) { return column_at(at(i)); });
    auto value = made(csr_rows * in_row, [=](size_t i) { return whole(at(i)); });
    auto x = made(csr_rows, whole);
    std::vector<int> expected(csr_rows);
    for (int i = 0; i < csr_rows * in_row; ++i) {
        expected[i / in_row] += whole(i) * x[column_at(i)];
    }
    int *ds = to_device(start), *dc = to_device(column), *dv = to_device(value), *dx = to_device(x);
    int* dy = to_device(std::vector<int>(csr_rows));
    if (rows_first) {
        spmv_csr<<<csr_rows / 1024, 1024>>>(ds, dc, dv, dx, dy);
    } else {
        spmv_ell<<<csr_rows / 1024, 1024>>>(dc, dv, dx, dy);
    }
    for (int* array : {ds, dc, dv, dx}) {
        HIP_CHECK(hipFree(array));
    }
    return matches(rows_first ? "spmv_csr" : "spmv_ell", take_back(dy, csr_rows), expected);
}

template <typename Kernel>
static bool tensor(const char* what, Kernel kernel) {
    auto values = made(length * fibres, small), matrix = made(length * rank, small);
    auto expected = made(rank * fibres, [&](size_t i) {
        float sum = 0;
        for (int k = 0; k < length; ++k) {
            sum += values[k * fibres + i % fibres] * matrix[k * rank + i / fibres];
        }
        return sum;
    });
    float *dv = to_device(values), *dm = to_device(matrix), *out = to_device(std::vector<float>(expected.size()));
    kernel<<<fibres / 256, 256>>>(dv, dm, out);
    HIP_CHECK(hipFree(dv));
    HIP_CHECK(hipFree(dm));
    return matches(what, take_back(out, expected.size()), expected);
}

template <typename Kernel>
static bool from_whole(const char* what, Kernel kernel, int group, const std::vector<int>& expected) {
    int *in = to_device(made(count, whole)), *out = to_device(std::vector<int>(expected.size()));
    kernel<<<count / group, group>>>(in, out);
    HIP_CHECK(hipFree(in));
    return matches(what, take_back(out, expected.size()), expected);
}

template <typename Kernel>
static bool vectors(const char* what, Kernel kernel) {
    float *a = to_device(made(count, small)), *b = to_device(made(count, small));
    float* c = to_device(std::vector<float>(count));
    kernel<<<count / 256, 256>>>(a, b, c);
    HIP_CHECK(hipFree(a));
    HIP_CHECK(hipFree(b));
    return matches(what, take_back(c, count), made(count, [](size_t i) { return 2 * small(i); }));
}

static bool counted(bool random) {
    auto cell = made(count, [=](size_t i) { return random ? int(scattered(i) % (count / 2)) : int(i / 2); });
    std::vector<int> expected(count / 2);
    for (int of : cell) {
        ++expected[of];
    }
    int *in = to_device(cell), *counts = to_device(std::vector<int>(count / 2));
    cells<<<count / 256, 256>>>(in, counts);
    HIP_CHECK(hipFree(in));
    return matches(random ? "cells, random" : "cells, sorted", take_back(counts, count / 2), expected);
}

static bool neighbours() {
    auto in = made((height + 2) * pitch, small);
    auto expected = made(width * height, [&](size_t i) {
        size_t at = (i / width + 1) * pitch + margin + i % width;
        return in[at] + in[at - 1] + in[at + 1] + in[at - pitch] + in[at + pitch];
    });
    float *din = to_device(in), *out = to_device(std::vector<float>(width * height));
    stencil<<<dim3(width / 64, height / 8), dim3(64, 8)>>>(din, out);
    HIP_CHECK(hipFree(din));
    return matches("stencil", take_back(out, width * height), expected);
}

int main() {
    bool ok = gemm();
    ok &= orthogonalization(false) & orthogonalization(true);
    ok &= column_length();
    ok &= sparse(true) & sparse(false);
    ok &= sparse_by_rows(true) & sparse_by_rows(false);
    ok &= tensor("ttm_in_lds", ttm_in_lds) & tensor("ttm_in_registers", ttm_in_registers);
    auto with_first = made(count, [](size_t i) { return whole(i) + 3 * whole(i / 32 * 32); });
    ok &= from_whole("broadcast_in_lds", broadcast_in_lds, 256, with_first);
    ok &= from_whole("broadcast_by_lanes", broadcast_by_lanes, 256, with_first);
    ok &= vectors("vadd", vadd) & vectors("vadd_permuted", vadd_permuted);
    auto sums = made(count / 32, [](size_t i) {
        int sum = 0;
        for (int k = 0; k < 32; ++k) {
            sum += whole(i * 32 + k);
        }
        return sum;
    });
    ok &= from_whole("sums_apart<256>", sums_apart<256>, 256, sums);
    ok &= from_whole("sums_apart<1024>", sums_apart<1024>, 1024, sums);
    ok &= from_whole("sums_together", sums_together, 1024, sums);
    ok &= counted(true) & counted(false) & neighbours();
    return finish(ok);
}
