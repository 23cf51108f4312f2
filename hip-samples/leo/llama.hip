// A product of quantized matrices, after llama.cpp's mul_mat_q: blocks of 32 eight-bit values have a scale; tiles of
// 128 rows by TILE columns are multiplied by matrix instructions, and each block's sums are scaled and added. Columns
// go to places that a list in LDS names.

#include "leo.h"

static const int ROWS = 128 * 57, COLUMNS = 512, COMMON = 256, STEP = 128, BLOCK = 32, PITCH = STEP + 16;

// Values of one operand, in rows along the common side, with a scale for each block of 32.
struct Quantized {
    const int8_t *values;
    const float *scales;
};

typedef int Four __attribute__((ext_vector_type(4)));

__device__ static Four multiplied(int64_t a, int64_t b) {
    Four sum = {0, 0, 0, 0};
#ifdef __HIP_DEVICE_COMPILE__
    sum = __builtin_amdgcn_mfma_i32_16x16x32_i8(a, b, sum, 0, 0, 0);
#endif
    return sum;
}

template <int ROWS_OF_TILE>
__device__ static void load(int8_t *values, float *scales, Quantized from, int first, int start, int common) {
    int item = threadIdx.x;
    for (int n = item; n < ROWS_OF_TILE * STEP / 16; n += 512) {
        int row = n / (STEP / 16), at = n % (STEP / 16) * 16;
        *(int4 *)(values + row * PITCH + at) = *(const int4 *)(from.values + size_t(first + row) * common + start + at);
    }
    for (int n = item; n < ROWS_OF_TILE * STEP / BLOCK; n += 512) {
        int row = n / (STEP / BLOCK), at = n % (STEP / BLOCK);
        scales[n] = from.scales[size_t(first + row) * (common / BLOCK) + start / BLOCK + at];
    }
}

template <int TILE, bool DIRECT>
__device__ static void product(Quantized x, Quantized y, float *out, const int *ids, int common, int stride) {
    __shared__ __attribute__((aligned(16))) int8_t of_x[128 * PITCH], of_y[TILE * PITCH];
    __shared__ float x_scales[128 * STEP / BLOCK], y_scales[TILE * STEP / BLOCK];
    __shared__ int places[TILE];
    int first_row = blockIdx.x * 128, first_column = blockIdx.y * TILE;
    int lane = threadIdx.x % 64, row = threadIdx.x / 64 * 16, part = lane / 16 * 8;
    if (threadIdx.x < TILE) places[threadIdx.x] = ids[first_column + threadIdx.x];
    float sums[TILE / 16][4] = {};
    for (int start = 0; start < common; start += STEP) {
        load<128>(of_x, x_scales, x, first_row, start, common);
        load<TILE>(of_y, y_scales, y, first_column, start, common);
        __syncthreads();
#pragma unroll
        for (int block = 0; block < STEP / BLOCK; ++block) {
            int64_t a = *(const int64_t *)(of_x + (row + lane % 16) * PITCH + block * BLOCK + part);
#pragma unroll
            for (int tile = 0; tile < TILE / 16; ++tile) {
                int column = tile * 16 + lane % 16;
                int64_t b = *(const int64_t *)(of_y + column * PITCH + block * BLOCK + part);
                Four both = multiplied(a, b);
                float scale = y_scales[column * (STEP / BLOCK) + block];
#pragma unroll
                for (int n = 0; n < 4; ++n) {
                    int at = row + lane / 16 * 4 + n;
                    sums[tile][n] += float(both[n]) * x_scales[at * (STEP / BLOCK) + block] * scale;
                }
            }
        }
        __syncthreads();
    }
    for (int tile = 0; tile < TILE / 16; ++tile)
        for (int n = 0; n < 4; ++n) {
            int column = tile * 16 + lane % 16, i = first_row + row + lane / 16 * 4 + n;
            out[size_t(DIRECT ? first_column + column : places[column]) * stride + i] = sums[tile][n];
        }
}

__global__ void __launch_bounds__(512)
    mul_mat_q(Quantized x, Quantized y, float *out, const int *ids, int common, int stride) {
    product<128, false>(x, y, out, ids, common, stride);
}

__global__ void __launch_bounds__(512)
    mul_mat_q_fixed(Quantized x, Quantized y, float *out, const int *ids, int common, int stride) {
    product<64, true>(x, y, out, ids, common, stride);
}

static void compute(bool fixed) {
    Array<int8_t> x(size_t(ROWS) * COMMON, 3), y(size_t(COLUMNS) * COMMON, 7);
    Array<float> x_scales(size_t(ROWS) * COMMON / BLOCK, 5, 0.125f);
    Array<float> y_scales(size_t(COLUMNS) * COMMON / BLOCK, 9, 0.25f);
    Array<float> out(size_t(ROWS) * COLUMNS);
    Array<int> ids(COLUMNS);
    for (int n = 0; n < COLUMNS; ++n) ids.host[n] = n;
    ids.send();
    Quantized of_x{x.device, x_scales.device}, of_y{y.device, y_scales.device};
    dim3 grid(ROWS / 128, COLUMNS / (fixed ? 64 : 128));
    for (int call = 0; call < CALLS; ++call)
        (fixed ? mul_mat_q_fixed : mul_mat_q)<<<grid, 512>>>(of_x, of_y, out.device, ids.device, COMMON, ROWS);
    std::vector<float> got = out.result();
    // A part of the rows; all columns.
    for (int row = 0; row < ROWS; row += 37)
        for (int column = 0; column < COLUMNS; ++column) {
            float expected = 0;
            for (int block = 0; block < COMMON / BLOCK; ++block) {
                int sum = 0;
                for (int k = block * BLOCK; k < (block + 1) * BLOCK; ++k)
                    sum += x.host[size_t(row) * COMMON + k] * y.host[size_t(column) * COMMON + k];
                expected += sum * x_scales.host[row * (COMMON / BLOCK) + block] *
                            y_scales.host[column * (COMMON / BLOCK) + block];
            }
            float apart = std::fabs(got[size_t(column) * ROWS + row] - expected);
            require(apart <= 1e-4f * (1 + std::fabs(expected)), "another product");
        }
}
