// A sparse matrix times a vector, one row per lane: the longest row of a wave decides how long the wave runs.
#include "selfcheck.h"

__global__ void spmv(const int* row_start, const int* column, const float* value, const float* x, float* y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        int end = row_start[row + 1];
#pragma clang loop unroll(disable)
        for (int k = row_start[row]; k < end; ++k) {
            sum += value[k] * x[column[k]];
        }
        y[row] = sum;
    }
}

int main() {
    const int rows = 300, columns = 64, block = 128;
    std::vector<int> row_start(1, 0), column;
    std::vector<float> value, x(columns), expected(rows);
    for (int i = 0; i < columns; ++i) {
        x[i] = 0.5f * (i % 9) - 1.0f;
    }
    for (int row = 0; row < rows; ++row) {
        // Rows of 0 to 7 entries; small halves, so that every sum is exact in any order and with or without fma.
        for (int k = 0; k < row % 8; ++k) {
            column.push_back((row * 5 + k * 11) % columns);
            value.push_back(0.25f * (k + 1));
            expected[row] += value.back() * x[column.back()];
        }
        row_start.push_back(static_cast<int>(column.size()));
    }
    int *dstart = to_device(row_start), *dcolumn = to_device(column);
    float *dvalue = to_device(value), *dx = to_device(x), *dy = to_device(std::vector<float>(rows));
    spmv<<<(rows + block - 1) / block, block>>>(dstart, dcolumn, dvalue, dx, dy, rows);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    bool ok = matches("y", take_back(dy, rows), expected);
    HIP_CHECK(hipFree(dstart));
    HIP_CHECK(hipFree(dcolumn));
    HIP_CHECK(hipFree(dvalue));
    HIP_CHECK(hipFree(dx));
    return finish(ok);
}
