// Discrete ordinates to moments, after RAJAPerf's LTIMES_NOVIEW: lanes are moments, 64 directions apart in `ell`. The
// pointers may alias, so each round also loads and stores the sum.

#include "leo.h"

static const Index D = 64, G = 32, M = 25, Z = 488;

__global__ void __launch_bounds__(256) ltimes_noview(double *phi, double *ell, double *psi, Index num_d, Index num_m,
                                                     Index num_g, Index num_z) {
    Index m = blockIdx.x * 32 + threadIdx.x, g = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z * 2 + threadIdx.z;
    if (m < num_m && g < num_g && z < num_z)
        for (Index d = 0; d < num_d; ++d)
            phi[m + (g + z * num_g) * num_m] += ell[d + m * num_d] * psi[d + (g + z * num_g) * num_d];
}

__global__ void __launch_bounds__(256) ltimes_noview_fixed(double *phi, double *ell, double *psi, Index num_d,
                                                           Index num_m, Index num_g, Index num_z) {
    __shared__ double tile[D][M];
    Index m = blockIdx.x * 32 + threadIdx.x, g = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z * 2 + threadIdx.z;
    for (int n = threadIdx.x + 32 * (threadIdx.y + 4 * threadIdx.z); n < D * M; n += 256) tile[n % D][n / D] = ell[n];
    __syncthreads();
    if (m < num_m && g < num_g && z < num_z) {
        double sum = phi[m + (g + z * num_g) * num_m];
        for (Index d = 0; d < num_d; ++d) sum += tile[d][m] * psi[d + (g + z * num_g) * num_d];
        phi[m + (g + z * num_g) * num_m] = sum;
    }
}

static void compute(bool fixed) {
    Array<double> phi(M * G * Z), ell(D * M, 3), psi(D * G * Z, 7);
    dim3 grid(1, G / 4, Z / 2), block(32, 4, 2);
    for (int call = 0; call < CALLS; ++call)
        (fixed ? ltimes_noview_fixed : ltimes_noview)<<<grid, block>>>(phi.device, ell.device, psi.device, D, M, G, Z);
    std::vector<double> expected(M * G * Z);
    for (Index gz = 0; gz < G * Z; ++gz)
        for (Index m = 0; m < M; ++m)
            for (Index d = 0; d < D; ++d)
                expected[m + gz * M] += CALLS * ell.host[d + m * D] * psi.host[d + gz * D];
    same(phi.result(), expected);
}
