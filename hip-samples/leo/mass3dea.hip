// Element matrices of a mass operator, after RAJAPerf's MASS3DEA (MFEM): a workgroup of 4 by 4 by 4 for each element,
// which has 4 functions and 5 points in each direction. All 64 * 125 products of six basis values are computed.

#include "leo.h"

static const int D = 4, Q = 5, ELEMENTS = 244;

__device__ static void load(double (&b)[Q][D], double (&d)[Q][Q][Q], const double *basis, const double *weights) {
    for (int q = threadIdx.y; q < Q; q += D)
        if (threadIdx.z == 0) b[q][threadIdx.x] = basis[q + Q * threadIdx.x];
    for (int x = threadIdx.x; x < Q; x += D)
        for (int y = threadIdx.y; y < Q; y += D)
            for (int z = threadIdx.z; z < Q; z += D) d[x][y][z] = weights[x + Q * (y + Q * (z + Q * blockIdx.x))];
    __syncthreads();
}

__device__ static size_t place(int j1, int j2, int j3) {
    size_t column = j1 + D * (j2 + D * (j3 + D * size_t(blockIdx.x)));
    return threadIdx.x + D * (threadIdx.y + D * (threadIdx.z + D * column));
}

__global__ void __launch_bounds__(D *D *D) mass3dea(const double *basis, const double *weights, double *matrix) {
    __shared__ double b[Q][D], d[Q][Q][Q];
    load(b, d, basis, weights);
    int i1 = threadIdx.x, i2 = threadIdx.y, i3 = threadIdx.z;
    for (int j1 = 0; j1 < D; ++j1)
        for (int j2 = 0; j2 < D; ++j2)
            for (int j3 = 0; j3 < D; ++j3) {
                double sum = 0;
                for (int x = 0; x < Q; ++x)
                    for (int y = 0; y < Q; ++y)
                        for (int z = 0; z < Q; ++z)
                            sum += b[x][i1] * b[x][j1] * b[y][i2] * b[y][j2] * b[z][i3] * b[z][j3] * d[x][y][z];
                matrix[place(j1, j2, j3)] = sum;
            }
}

// Products of two basis values are computed once, and the innermost function has a sum in a register for each value.
__global__ void __launch_bounds__(D *D *D) mass3dea_fixed(const double *basis, const double *weights, double *matrix) {
    __shared__ double b[Q][D], d[Q][Q][Q];
    load(b, d, basis, weights);
    double own1[Q], own2[Q], own3[Q];
    for (int q = 0; q < Q; ++q) {
        own1[q] = b[q][threadIdx.x];
        own2[q] = b[q][threadIdx.y];
        own3[q] = b[q][threadIdx.z];
    }
#pragma unroll 1
    for (int j1 = 0; j1 < D; ++j1)
#pragma unroll 1
        for (int j2 = 0; j2 < D; ++j2) {
            double sum[D] = {};
#pragma unroll 1
            for (int x = 0; x < Q; ++x) {
                double of_x = b[x][threadIdx.x] * b[x][j1];
                for (int y = 0; y < Q; ++y) {
                    double of_xy = of_x * own2[y] * b[y][j2];
                    for (int z = 0; z < Q; ++z) {
                        double part = of_xy * own3[z] * d[x][y][z];
                        for (int j3 = 0; j3 < D; ++j3) sum[j3] += part * b[z][j3];
                    }
                }
            }
            for (int j3 = 0; j3 < D; ++j3) matrix[place(j1, j2, j3)] = sum[j3];
        }
}

static void compute(bool fixed) {
    Array<double> basis(Q * D, 3, 0.25), weights(Q * Q * Q * ELEMENTS, 7);
    Array<double> matrix(size_t(D * D * D * D * D * D) * ELEMENTS);
    for (int call = 0; call < CALLS; ++call)
        (fixed ? mass3dea_fixed : mass3dea)<<<ELEMENTS, dim3(D, D, D)>>>(basis.device, weights.device, matrix.device);
    std::vector<double> expected(matrix.host.size());
    double pairs[D][D][Q];
    for (int i = 0; i < D; ++i)
        for (int j = 0; j < D; ++j)
            for (int q = 0; q < Q; ++q) pairs[i][j][q] = basis.host[q + Q * i] * basis.host[q + Q * j];
    for (size_t n = 0; n < expected.size(); ++n) {
        int i1 = n % D, i2 = n / D % D, i3 = n / 16 % D, j1 = n / 64 % D, j2 = n / 256 % D, j3 = n / 1024 % D;
        const double *of_element = &weights.host[n / 4096 * Q * Q * Q];
        for (int point = 0; point < Q * Q * Q; ++point)
            expected[n] += pairs[i1][j1][point % Q] * pairs[i2][j2][point / Q % Q] * pairs[i3][j3][point / 25] *
                           of_element[point];
    }
    same(matrix.result(), expected);
}
