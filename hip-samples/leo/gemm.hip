// A product of matrices, after RAJAPerf's POLYBENCH_GEMM.

#include "product.h"

static const Index NI = 684, NJ = 684, NK = 64;
static const double ALPHA = 0.62, BETA = 1.002;

__global__ void __launch_bounds__(256) poly_gemm(double *c, double *a, double *b, double alpha, double beta, Index ni,
                                                 Index nj, Index nk) {
    Index i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < ni && j < nj) {
        double dot = 0;
        c[j + i * nj] *= beta;
        for (Index k = 0; k < nk; ++k)
            dot += alpha * a[k + i * nk] * b[j + k * nj];
        c[j + i * nj] = dot;
    }
}

__global__ void __launch_bounds__(256) poly_gemm_fixed(double *c, double *a, double *b, double alpha, Index ni,
                                                       Index nj, Index nk) {
    double dot = of_tiles(a, b, alpha, ni, nj, nk);
    Index i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < ni && j < nj) c[j + i * nj] = dot;
}

static void compute(bool fixed) {
    Array<double> a(NI * NK, 3), b(NK * NJ, 7), c(NI * NJ, 5);
    dim3 block(32, 8);
    for (int call = 0; call < CALLS; ++call)
        if (fixed)
            poly_gemm_fixed<<<tiles(NI, NJ), block>>>(c.device, a.device, b.device, ALPHA, NI, NJ, NK);
        else
            poly_gemm<<<tiles(NI, NJ), block>>>(c.device, a.device, b.device, ALPHA, BETA, NI, NJ, NK);
    same(c.result(), product(a.host, b.host, ALPHA, 0, NI, NJ, NK));
}
