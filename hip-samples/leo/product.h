// Products of matrices of double precision for `gemm`, `2mm` and `3mm`: a work-item for each element, 32 by 8 in a
// workgroup; the fix has tiles of both factors in LDS.

#pragma once

#include "leo.h"

// The element (row, column) of a product, from tiles of 32 along the common side.
__device__ static double of_tiles(const double *a, const double *b, double factor, Index rows, Index columns,
                                  Index common) {
    __shared__ double of_a[8][32], of_b[32][32];
    Index row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    double sum = 0;
    for (Index start = 0; start < common; start += 32) {
        Index k = start + threadIdx.x;
        of_a[threadIdx.y][threadIdx.x] = row < rows && k < common ? a[k + row * common] : 0;
        for (int part = 0; part < 32; part += 8) {
            Index at = start + part + threadIdx.y;
            of_b[part + threadIdx.y][threadIdx.x] = at < common && column < columns ? b[column + at * columns] : 0;
        }
        __syncthreads();
        for (int n = 0; n < 32; ++n) sum += factor * of_a[threadIdx.y][n] * of_b[n][threadIdx.x];
        __syncthreads();
    }
    return sum;
}

static dim3 tiles(Index rows, Index columns) { return dim3(parts(columns, 32), parts(rows, 8)); }

static std::vector<double> product(const std::vector<double> &a, const std::vector<double> &b, double factor,
                                   double start, Index rows, Index columns, Index common) {
    std::vector<double> result(rows * columns, start);
    for (Index i = 0; i < rows; ++i)
        for (Index k = 0; k < common; ++k) {
            double of_a = factor * a[k + i * common];
            for (Index j = 0; j < columns; ++j) result[j + i * columns] += of_a * b[j + k * columns];
        }
    return result;
}
