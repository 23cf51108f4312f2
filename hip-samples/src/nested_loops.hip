// Loops whose trip counts come from data: lanes drop out one after another, and an if inside counts every trip.
#include "selfcheck.h"

__host__ __device__ inline unsigned mix(unsigned value, unsigned salt) {
    value ^= value << 13;
    value ^= value >> 17;
    return (value ^ (value << 5)) + salt;
}

__global__ void nested_loops(const int* rows, const int* columns, unsigned* result, int* odd) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = i + 1;
    int row_end = rows[i];
    int column_end = columns[i];
    int row = 0;
#pragma clang loop unroll(disable)
    do {
        int column = 0;
#pragma clang loop unroll(disable)
        do {
            value = mix(value, row);
        } while (++column < column_end);
        if (row & 1) {
            odd[i] += column;
        }
    } while (++row < row_end);
    result[i] = value;
}

int main() {
    const int groups = 2, block = 256, n = groups * block;
    std::vector<int> rows(n), columns(n), odd(n, 0);
    std::vector<unsigned> result(n, 0);
    for (int i = 0; i < n; ++i) {
        // Even waves: 1 to 4 rows of 1 to 8 columns. Odd waves: every lane does 3 rows of 2 columns.
        bool mixed = (i / 64) % 2 == 0;
        rows[i] = mixed ? 1 + i % 4 : 3;
        columns[i] = mixed ? 1 + (i / 4) % 8 : 2;
    }
    int *drows = to_device(rows), *dcolumns = to_device(columns), *dodd = to_device(odd);
    unsigned* dresult = to_device(result);
    nested_loops<<<groups, block>>>(drows, dcolumns, dresult, dodd);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    for (int i = 0; i < n; ++i) {
        unsigned value = i + 1;
        for (int row = 0; row < rows[i]; ++row) {
            for (int column = 0; column < columns[i]; ++column) {
                value = mix(value, row);
            }
            odd[i] += row & 1 ? columns[i] : 0;
        }
        result[i] = value;
    }
    bool ok = matches("result", take_back(dresult, n), result);
    ok &= matches("odd", take_back(dodd, n), odd);
    HIP_CHECK(hipFree(drows));
    HIP_CHECK(hipFree(dcolumns));
    return finish(ok);
}
