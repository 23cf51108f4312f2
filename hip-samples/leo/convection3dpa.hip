// The action of a convection operator, after RAJAPerf's CONVECTION3DPA (MFEM): a workgroup of 4 by 4 by 4 for each
// element, which has 3 functions and 4 points in each direction. Each step loads the basis again, from global memory.

#include "leo.h"

static const int D = 3, Q = 4, SIZE = Q * Q * Q, ELEMENTS = 15625;

__host__ __device__ static int cell(int x, int y, int z) { return x + Q * (y + Q * z); }

__device__ static void apply(const double *values, const double *turned, const double *slopes, const double *weights,
                             const double *in, double *out) {
    __shared__ double a[3][SIZE], b[3][SIZE];
    int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z, own = cell(x, y, z);
    in += D * D * D * blockIdx.x;
    out += D * D * D * blockIdx.x;
    weights += 3 * SIZE * blockIdx.x;
    if (x < D && y < D && z < D) a[0][own] = in[x + D * (y + D * z)];
    __syncthreads();
    if (y < D && z < D) {
        double value = 0, slope = 0;
        for (int d = 0; d < D; ++d) {
            value += values[x + Q * d] * a[0][cell(d, y, z)];
            slope += slopes[x + Q * d] * a[0][cell(d, y, z)];
        }
        a[1][own] = value;
        a[2][own] = slope;
    }
    __syncthreads();
    if (z < D) {
        double value = 0, slope = 0, other = 0;
        for (int d = 0; d < D; ++d) {
            double of_value = values[y + Q * d], of_slope = slopes[y + Q * d];
            value += of_value * a[1][cell(x, d, z)];
            slope += of_slope * a[1][cell(x, d, z)];
            other += of_value * a[2][cell(x, d, z)];
        }
        b[0][own] = value;
        b[1][own] = slope;
        b[2][own] = other;
    }
    __syncthreads();
    double sums[3] = {};
    for (int d = 0; d < D; ++d) {
        double of_value = values[z + Q * d], of_slope = slopes[z + Q * d];
        sums[2] += of_slope * b[0][cell(x, y, d)];
        sums[1] += of_value * b[1][cell(x, y, d)];
        sums[0] += of_value * b[2][cell(x, y, d)];
    }
    __syncthreads();
    double flow = 0;
    for (int n = 0; n < 3; ++n) flow += weights[own + SIZE * n] * sums[n];
    a[0][own] = flow;
    __syncthreads();
    if (z < D) {
        double sum = 0;
        for (int q = 0; q < Q; ++q) sum += turned[z + D * q] * a[0][cell(x, y, q)];
        a[1][own] = sum;
    }
    __syncthreads();
    if (y < D && z < D) {
        double sum = 0;
        for (int q = 0; q < Q; ++q) sum += turned[y + D * q] * a[1][cell(x, q, z)];
        a[2][own] = sum;
    }
    __syncthreads();
    if (x < D && y < D && z < D) {
        double sum = 0;
        for (int q = 0; q < Q; ++q) sum += turned[x + D * q] * a[2][cell(q, y, z)];
        out[x + D * (y + D * z)] += sum;
    }
}

__global__ void __launch_bounds__(SIZE)
    convection3dpa(const double *values, const double *turned, const double *slopes, const double *weights,
                   const double *in, double *out) {
    apply(values, turned, slopes, weights, in, out);
}

__global__ void __launch_bounds__(SIZE)
    convection3dpa_fixed(const double *values, const double *turned, const double *slopes, const double *weights,
                         const double *in, double *out) {
    __shared__ double tables[3][Q * D];
    int n = cell(threadIdx.x, threadIdx.y, threadIdx.z);
    if (n < Q * D) {
        tables[0][n] = values[n];
        tables[1][n] = turned[n];
        tables[2][n] = slopes[n];
    }
    apply(tables[0], tables[1], tables[2], weights, in, out);
}

static void compute(bool fixed) {
    const int functions = D * D * D;
    Array<double> values(Q * D, 3, 0.25), turned(Q * D), slopes(Q * D, 5, 0.5), weights(3 * SIZE * ELEMENTS, 7);
    Array<double> in(functions * ELEMENTS, 11), out(functions * ELEMENTS);
    for (int n = 0; n < Q * D; ++n) turned.host[n / Q + D * (n % Q)] = values.host[n];
    turned.send();
    for (int call = 0; call < CALLS; ++call)
        (fixed ? convection3dpa_fixed : convection3dpa)<<<ELEMENTS, dim3(Q, Q, Q)>>>(
            values.device, turned.device, slopes.device, weights.device, in.device, out.device);
    const std::vector<double> &b = values.host, &g = slopes.host;
    std::vector<double> expected(out.host.size());
    for (int e = 0; e < ELEMENTS; ++e)
        for (int x = 0; x < Q; ++x)
            for (int y = 0; y < Q; ++y)
                for (int z = 0; z < Q; ++z) {
                    auto basis = [&](int n, int direction) {
                        auto of = [&](int axis, int q, int d) { return (axis == direction ? g : b)[q + Q * d]; };
                        return of(0, x, n % D) * of(1, y, n / D % D) * of(2, z, n / 9);
                    };
                    double flow = 0;
                    for (int k = 0; k < 3; ++k) {
                        double slope = 0;
                        for (int n = 0; n < functions; ++n) slope += basis(n, k) * in.host[n + functions * e];
                        flow += CALLS * slope * weights.host[cell(x, y, z) + SIZE * (k + 3 * e)];
                    }
                    for (int n = 0; n < functions; ++n) expected[n + functions * e] += basis(n, 3) * flow;
                }
    same(out.result(), expected);
}
