// The action of a mass operator, after RAJAPerf's MASS3DPA (MFEM): a workgroup of 5 by 5 for each element, which has 4
// functions and 5 points in each direction. A work-item has a column in its registers.

#include "leo.h"

static const int D = 4, Q = 5, ELEMENTS = 8000;

// Direction by direction to points, times a weight, and back; UNROLL is how often loops are unrolled.
template <int UNROLL>
__device__ static void apply(const double *basis, const double *turned, const double *weights, const double *in,
                             double *out) {
    __shared__ double table[Q * D], first[Q * Q * Q], second[Q * Q * Q];
    int x = threadIdx.x, y = threadIdx.y;
    in += D * D * D * blockIdx.x;
    out += D * D * D * blockIdx.x;
    weights += Q * Q * Q * blockIdx.x;
    double u[Q];
    if (x < D && y < D) {
#pragma unroll(UNROLL)
        for (int z = 0; z < D; ++z) first[x + D * (y + D * z)] = in[x + D * (y + D * z)];
    }
    if (y < D) table[y + D * x] = basis[x + Q * y];
    __syncthreads();
    if (y < D) {
#pragma unroll(UNROLL)
        for (int z = 0; z < D; ++z) {
            u[z] = 0;
#pragma unroll(UNROLL)
            for (int d = 0; d < D; ++d) u[z] += first[d + D * (y + D * z)] * table[d + D * x];
            second[x + Q * (y + D * z)] = u[z];
        }
    }
    __syncthreads();
#pragma unroll(UNROLL)
    for (int z = 0; z < D; ++z) {
        u[z] = 0;
#pragma unroll(UNROLL)
        for (int d = 0; d < D; ++d) u[z] += second[x + Q * (d + D * z)] * table[d + D * y];
        first[x + Q * (y + Q * z)] = u[z];
    }
    __syncthreads();
#pragma unroll(UNROLL)
    for (int z = 0; z < Q; ++z) {
        u[z] = 0;
#pragma unroll(UNROLL)
        for (int d = 0; d < D; ++d) u[z] += first[x + Q * (y + Q * d)] * table[d + D * z];
        second[x + Q * (y + Q * z)] = u[z] * weights[x + Q * (y + Q * z)];
    }
    __syncthreads();
    if (y < D) table[x + Q * y] = turned[y + D * x];
    __syncthreads();
    if (x < D) {
#pragma unroll(UNROLL)
        for (int z = 0; z < Q; ++z) {
            u[z] = 0;
#pragma unroll(UNROLL)
            for (int q = 0; q < Q; ++q) u[z] += second[q + Q * (y + Q * z)] * table[q + Q * x];
            first[x + D * (y + Q * z)] = u[z];
        }
    }
    __syncthreads();
    if (x < D && y < D) {
#pragma unroll(UNROLL)
        for (int z = 0; z < Q; ++z) {
            u[z] = 0;
#pragma unroll(UNROLL)
            for (int q = 0; q < Q; ++q) u[z] += first[x + D * (q + Q * z)] * table[q + Q * y];
            second[x + D * (y + D * z)] = u[z];
        }
    }
    __syncthreads();
    if (x < D && y < D) {
#pragma unroll(UNROLL)
        for (int z = 0; z < D; ++z) {
            u[z] = 0;
#pragma unroll(UNROLL)
            for (int q = 0; q < Q; ++q) u[z] += second[x + D * (y + D * q)] * table[q + Q * z];
            out[x + D * (y + D * z)] += u[z];
        }
    }
}

__global__ void __launch_bounds__(Q *Q)
    mass3dpa(const double *basis, const double *turned, const double *weights, const double *in, double *out) {
    apply<Q>(basis, turned, weights, in, out);
}

__global__ void __launch_bounds__(Q *Q, 8)
    mass3dpa_fixed(const double *basis, const double *turned, const double *weights, const double *in, double *out) {
    apply<1>(basis, turned, weights, in, out);
}

static void compute(bool fixed) {
    Array<double> basis(Q * D, 3, 0.25), turned(Q * D), weights(Q * Q * Q * ELEMENTS, 7), in(D * D * D * ELEMENTS, 11);
    Array<double> out(D * D * D * ELEMENTS);
    for (int n = 0; n < Q * D; ++n) turned.host[n / Q + D * (n % Q)] = basis.host[n];
    turned.send();
    for (int call = 0; call < CALLS; ++call)
        (fixed ? mass3dpa_fixed : mass3dpa)<<<ELEMENTS, dim3(Q, Q)>>>(basis.device, turned.device, weights.device,
                                                                     in.device, out.device);
    std::vector<double> expected(out.host.size());
    auto product = [&](int point, int function) {
        return basis.host[point % Q + Q * (function % D)] * basis.host[point / Q % Q + Q * (function / D % D)] *
               basis.host[point / 25 + Q * (function / 16)];
    };
    for (int e = 0; e < ELEMENTS; ++e)
        for (int point = 0; point < Q * Q * Q; ++point) {
            double value = 0;
            for (int n = 0; n < 64; ++n) value += product(point, n) * in.host[n + 64 * e];
            value *= CALLS * weights.host[point + Q * Q * Q * e];
            for (int n = 0; n < 64; ++n) expected[n + 64 * e] += product(point, n) * value;
        }
    same(out.result(), expected);
}
