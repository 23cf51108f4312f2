// Two products of matrices, one of which the other one needs, after RAJAPerf's POLYBENCH_2MM.

#include "product.h"

static const Index NI = 684, NJ = 64, NK = 64, NL = 684;
static const double ALPHA = 1.5, BETA = 1.2;

__global__ void __launch_bounds__(256) poly_2mm_1(double *t, double *a, double *b, double alpha, Index ni, Index nj,
                                                  Index nk) {
    Index i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < ni && j < nj) {
        double dot = 0;
        for (Index k = 0; k < nk; ++k)
            dot += alpha * a[k + i * nk] * b[j + k * nj];
        t[j + i * nj] = dot;
    }
}

__global__ void __launch_bounds__(256) poly_2mm_2(double *t, double *c, double *d, double beta, Index ni, Index nl,
                                                  Index nj) {
    Index i = blockIdx.y * blockDim.y + threadIdx.y, l = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < ni && l < nl) {
        double dot = beta;
        for (Index j = 0; j < nj; ++j)
            dot += t[j + i * nj] * c[l + j * nl];
        d[l + i * nl] = dot;
    }
}

__global__ void __launch_bounds__(256) poly_2mm_1_fixed(double *t, double *a, double *b, double alpha, Index ni,
                                                        Index nj, Index nk) {
    double dot = of_tiles(a, b, alpha, ni, nj, nk);
    Index i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < ni && j < nj) t[j + i * nj] = dot;
}

__global__ void __launch_bounds__(256) poly_2mm_2_fixed(double *t, double *c, double *d, double beta, Index ni,
                                                        Index nl, Index nj) {
    double dot = beta + of_tiles(t, c, 1, ni, nl, nj);
    Index i = blockIdx.y * blockDim.y + threadIdx.y, l = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < ni && l < nl) d[l + i * nl] = dot;
}

static void compute(bool fixed) {
    Array<double> a(NI * NK, 3), b(NK * NJ, 7), c(NJ * NL, 5), d(NI * NL), t(NI * NJ);
    dim3 block(32, 8);
    for (int call = 0; call < CALLS; ++call) {
        (fixed ? poly_2mm_1_fixed : poly_2mm_1)<<<tiles(NI, NJ), block>>>(t.device, a.device, b.device, ALPHA, NI, NJ,
                                                                          NK);
        (fixed ? poly_2mm_2_fixed : poly_2mm_2)<<<tiles(NI, NL), block>>>(t.device, c.device, d.device, BETA, NI, NL,
                                                                          NJ);
    }
    same(d.result(), product(product(a.host, b.host, ALPHA, 0, NI, NJ, NK), c.host, 1, BETA, NI, NL, NJ));
}
