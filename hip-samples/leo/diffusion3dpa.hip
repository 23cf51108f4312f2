// The action of a diffusion operator, after RAJAPerf's DIFFUSION3DPA (MFEM): a workgroup of 4 by 4 by 4 for each
// element, which has 3 functions and 4 points in each direction. Values and derivatives of the basis share one table in
// LDS, which symmetry allows: each has its half.

#include "leo.h"

static const int D = 3, Q = 4, SIZE = Q * Q * Q, FORMS = 6, ELEMENTS = 15625;

// Values are kept where q <= d, derivatives elsewhere, with a sign.
struct Folded {
    double *table;
    bool turned;
    __device__ int at(int q, int d) const { return turned ? q + Q * d : d + D * q; }
    __device__ int mirror(int q, int d) const { return at(Q - 1 - q, D - 1 - d); }
    __device__ double value(int q, int d) const { return table[q <= d ? at(q, d) : mirror(q, d)]; }
    __device__ double slope(int q, int d) const { return q <= d ? -table[mirror(q, d)] : table[at(q, d)]; }
    __device__ void set(int q, int d, double value, double slope) {
        table[q <= d ? at(q, d) : mirror(q, d)] = value;
        table[q <= d ? mirror(q, d) : at(q, d)] = q <= d ? -slope : slope;
    }
    __device__ static constexpr bool loads_twice() { return true; }
};

// A table for each.
struct Whole {
    double *table;
    bool turned;
    __device__ double value(int q, int d) const { return table[d + D * q]; }
    __device__ double slope(int q, int d) const { return table[Q * D + d + D * q]; }
    __device__ void set(int q, int d, double value, double slope) {
        table[d + D * q] = value;
        table[Q * D + d + D * q] = slope;
    }
    __device__ static constexpr bool loads_twice() { return false; }
};

__host__ __device__ static int cell(int x, int y, int z) { return x + Q * (y + Q * z); }

template <typename Basis>
__device__ static void apply(const double *values, const double *slopes, const double *weights, const double *in,
                             double *out) {
    __shared__ double table[2 * Q * D], a[3][SIZE], b[3][SIZE];
    int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
    in += D * D * D * blockIdx.x;
    out += D * D * D * blockIdx.x;
    weights += FORMS * SIZE * blockIdx.x;
    Basis basis{table, false};
    if (x < D && y < D && z < D) a[2][cell(x, y, z)] = in[x + D * (y + D * z)];
    if (z == 0 && y < D) basis.set(x, y, values[x + Q * y], slopes[x + Q * y]);
    __syncthreads();
    if (y < D && z < D) {
        double u = 0, v = 0;
        for (int d = 0; d < D; ++d) {
            u += a[2][cell(d, y, z)] * basis.value(x, d);
            v += a[2][cell(d, y, z)] * basis.slope(x, d);
        }
        a[0][cell(x, y, z)] = u;
        a[1][cell(x, y, z)] = v;
    }
    __syncthreads();
    if (z < D) {
        double u = 0, v = 0, w = 0;
        for (int d = 0; d < D; ++d) {
            u += a[1][cell(x, d, z)] * basis.value(y, d);
            v += a[0][cell(x, d, z)] * basis.slope(y, d);
            w += a[0][cell(x, d, z)] * basis.value(y, d);
        }
        b[0][cell(x, y, z)] = u;
        b[1][cell(x, y, z)] = v;
        b[2][cell(x, y, z)] = w;
    }
    __syncthreads();
    double u = 0, v = 0, w = 0;
    for (int d = 0; d < D; ++d) {
        u += b[0][cell(x, y, d)] * basis.value(z, d);
        v += b[1][cell(x, y, d)] * basis.value(z, d);
        w += b[2][cell(x, y, d)] * basis.slope(z, d);
    }
    double form[FORMS];
    for (int n = 0; n < FORMS; ++n) form[n] = weights[cell(x, y, z) + SIZE * n];
    a[0][cell(x, y, z)] = form[0] * u + form[1] * v + form[2] * w;
    a[1][cell(x, y, z)] = form[1] * u + form[3] * v + form[4] * w;
    a[2][cell(x, y, z)] = form[2] * u + form[4] * v + form[5] * w;
    __syncthreads();
    if (Basis::loads_twice()) {
        basis.turned = true;
        if (z == 0 && y < D) basis.set(x, y, values[x + Q * y], slopes[x + Q * y]);
        __syncthreads();
    }
    if (x < D) {
        u = v = w = 0;
        for (int q = 0; q < Q; ++q) {
            u += a[0][cell(q, y, z)] * basis.slope(q, x);
            v += a[1][cell(q, y, z)] * basis.value(q, x);
            w += a[2][cell(q, y, z)] * basis.value(q, x);
        }
        b[0][cell(x, y, z)] = u;
        b[1][cell(x, y, z)] = v;
        b[2][cell(x, y, z)] = w;
    }
    __syncthreads();
    if (x < D && y < D) {
        u = v = w = 0;
        for (int q = 0; q < Q; ++q) {
            u += b[0][cell(x, q, z)] * basis.value(q, y);
            v += b[1][cell(x, q, z)] * basis.slope(q, y);
            w += b[2][cell(x, q, z)] * basis.value(q, y);
        }
        a[0][cell(x, y, z)] = u;
        a[1][cell(x, y, z)] = v;
        a[2][cell(x, y, z)] = w;
    }
    __syncthreads();
    if (x < D && y < D && z < D) {
        double sum = 0;
        for (int q = 0; q < Q; ++q)
            sum += (a[0][cell(x, y, q)] + a[1][cell(x, y, q)]) * basis.value(q, z) +
                   a[2][cell(x, y, q)] * basis.slope(q, z);
        out[x + D * (y + D * z)] += sum;
    }
}

__global__ void __launch_bounds__(SIZE) diffusion3dpa(const double *values, const double *slopes, const double *weights,
                                                      const double *in, double *out) {
    apply<Folded>(values, slopes, weights, in, out);
}

__global__ void __launch_bounds__(SIZE)
    diffusion3dpa_fixed(const double *values, const double *slopes, const double *weights, const double *in,
                        double *out) {
    apply<Whole>(values, slopes, weights, in, out);
}

static void compute(bool fixed) {
    const int functions = D * D * D;
    Array<double> values(Q * D), slopes(Q * D), weights(FORMS * SIZE * ELEMENTS, 7), in(functions * ELEMENTS, 11);
    Array<double> out(functions * ELEMENTS);
    for (int q = 0; q < Q; ++q)
        for (int d = 0; d < D; ++d) {
            int mirror = Q - 1 - q + Q * (D - 1 - d);
            values.host[q + Q * d] = q <= d ? 0.25 * (1 + q + 2 * d) : values.host[mirror];
            slopes.host[q + Q * d] = q <= d ? 0.5 * (1 + 2 * q - d) : 0;
            values.host[mirror] = values.host[q + Q * d];
            if (q <= d) slopes.host[mirror] = -slopes.host[q + Q * d];
        }
    for (int q = 0; q < Q; ++q)
        for (int d = 0; d < D; ++d)
            if (q > d) slopes.host[q + Q * d] = -slopes.host[Q - 1 - q + Q * (D - 1 - d)];
    values.send();
    slopes.send();
    for (int call = 0; call < CALLS; ++call)
        (fixed ? diffusion3dpa_fixed : diffusion3dpa)<<<ELEMENTS, dim3(Q, Q, Q)>>>(
            values.device, slopes.device, weights.device, in.device, out.device);
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
                    double slope[3] = {}, form[FORMS];
                    for (int n = 0; n < functions; ++n)
                        for (int k = 0; k < 3; ++k) slope[k] += basis(n, k) * in.host[n + functions * e];
                    for (int n = 0; n < FORMS; ++n)
                        form[n] = CALLS * weights.host[cell(x, y, z) + SIZE * (n + FORMS * e)];
                    double flow[3] = {form[0] * slope[0] + form[1] * slope[1] + form[2] * slope[2],
                                      form[1] * slope[0] + form[3] * slope[1] + form[4] * slope[2],
                                      form[2] * slope[0] + form[4] * slope[1] + form[5] * slope[2]};
                    for (int n = 0; n < functions; ++n)
                        for (int k = 0; k < 3; ++k) expected[n + functions * e] += basis(n, k) * flow[k];
                }
    same(out.result(), expected);
}
