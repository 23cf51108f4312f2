// ROCm/rocm-libraries 3743 (rocSOLVER): one array in LDS holds a column, in which each work-item looks for the pivot,
// and then the pivot's row; a fast wave writes the row while a slow one still looks at the column.
#include "check.h"

const int ROWS = 128, COLUMNS = 8;

template <bool MENDED> __global__ void getf2(const float *in, float *out) {
    __shared__ float common[ROWS];
    int tid = threadIdx.x;
    float row[COLUMNS];
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) row[j] = in[tid * COLUMNS + j];
#pragma unroll 1
    for (int k = 0; k < 3; ++k) {
        common[tid] = row[0];
        __syncthreads();
        int pivot = 0;
        float most = -1;
        for (int i = 0; i < ROWS; ++i) {
            float size = fabsf(common[i]);
            if (size > most) most = size, pivot = i;
        }
        if constexpr (MENDED) __syncthreads();
        if (tid == pivot) {
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) common[j] = row[j];
        }
        __syncthreads();
        // The next column moves to the front.
        float factor = row[0];
#pragma unroll
        for (int j = 1; j < COLUMNS; ++j) row[j - 1] = row[j] - factor * common[j];
        row[COLUMNS - 1] = factor;
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) out[tid * COLUMNS + j] = row[j];
}

static bool run(bool mended) {
    Array<float> in(ROWS * COLUMNS), out(ROWS * COLUMNS);
    fill(in.host);
    in.send();
    if (mended) getf2<true><<<1, ROWS>>>(in.device, out.device);
    else getf2<false><<<1, ROWS>>>(in.device, out.device);
    finished();
    out.receive();
    std::vector<float> rows = in.host;
    for (int k = 0; k < 3; ++k) {
        int pivot = 0;
        float most = -1;
        for (int i = 0; i < ROWS; ++i)
            if (fabsf(rows[i * COLUMNS]) > most) most = fabsf(rows[i * COLUMNS]), pivot = i;
        std::vector<float> common(rows.begin() + pivot * COLUMNS, rows.begin() + (pivot + 1) * COLUMNS);
        for (int i = 0; i < ROWS; ++i) {
            float *row = &rows[i * COLUMNS], factor = row[0];
            for (int j = 1; j < COLUMNS; ++j) row[j - 1] = row[j] - factor * common[j];
            row[COLUMNS - 1] = factor;
        }
    }
    bool right = true;
    for (int n = 0; n < ROWS * COLUMNS; ++n) {
        float apart = fabsf(rows[n] - out.host[n]);
        right &= apart <= 1e-4f * (1 + fabsf(rows[n]));
    }
    return right;
}
