// The same as ltimes_noview, through views with strides, after RAJAPerf's LTIMES.

#include "leo.h"

static const Index D = 64, G = 32, M = 25, Z = 488;

struct View {
    double *data;
    Index rows, columns;
    __device__ double &operator()(Index a, Index b, Index c) const { return data[c + columns * (b + rows * a)]; }
};

__global__ void __launch_bounds__(256) ltimes(View phi, View ell, View psi, Index num_d, Index num_m, Index num_g,
                                              Index num_z) {
    Index m = blockIdx.x * 32 + threadIdx.x, g = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z * 2 + threadIdx.z;
    if (m < num_m && g < num_g && z < num_z)
        for (Index d = 0; d < num_d; ++d)
            phi(z, g, m) += ell(0, m, d) * psi(z, g, d);
}

__global__ void __launch_bounds__(256) ltimes_fixed(View phi, View ell, View psi, Index num_d, Index num_m, Index num_g,
                                                    Index num_z) {
    __shared__ double tile[D][M];
    Index m = blockIdx.x * 32 + threadIdx.x, g = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z * 2 + threadIdx.z;
    for (int n = threadIdx.x + 32 * (threadIdx.y + 4 * threadIdx.z); n < D * M; n += 256)
        tile[n % D][n / D] = ell(0, n / D, n % D);
    __syncthreads();
    if (m < num_m && g < num_g && z < num_z) {
        double sum = phi(z, g, m);
        for (Index d = 0; d < num_d; ++d) sum += tile[d][m] * psi(z, g, d);
        phi(z, g, m) = sum;
    }
}

static void compute(bool fixed) {
    Array<double> phi(M * G * Z), ell(D * M, 3), psi(D * G * Z, 7);
    View phis{phi.device, G, M}, ells{ell.device, M, D}, psis{psi.device, G, D};
    dim3 grid(1, G / 4, Z / 2), block(32, 4, 2);
    for (int call = 0; call < CALLS; ++call)
        (fixed ? ltimes_fixed : ltimes)<<<grid, block>>>(phis, ells, psis, D, M, G, Z);
    std::vector<double> expected(M * G * Z);
    for (Index gz = 0; gz < G * Z; ++gz)
        for (Index m = 0; m < M; ++m)
            for (Index d = 0; d < D; ++d)
                expected[m + gz * M] += CALLS * ell.host[d + m * D] * psi.host[d + gz * D];
    same(phi.result(), expected);
}
