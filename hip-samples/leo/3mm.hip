// Three products of matrices, after RAJAPerf's POLYBENCH_3MM.

#include "product.h"

static const Index NI = 684, NJ = 64, NK = 64, NL = 684, NM = 64;

__global__ void __launch_bounds__(256) poly_3mm_1(double *a, double *b, double *e, Index ni, Index nj, Index nk) {
    Index i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < ni && j < nj) {
        double dot = 0;
        for (Index k = 0; k < nk; ++k)
            dot += a[k + i * nk] * b[j + k * nj];
        e[j + i * nj] = dot;
    }
}

__global__ void __launch_bounds__(256) poly_3mm_2(double *c, double *d, double *f, Index nj, Index nl, Index nm) {
    Index j = blockIdx.y * blockDim.y + threadIdx.y, l = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < nj && l < nl) {
        double dot = 0;
        for (Index m = 0; m < nm; ++m)
            dot += c[m + j * nm] * d[l + m * nl];
        f[l + j * nl] = dot;
    }
}

__global__ void __launch_bounds__(256) poly_3mm_3(double *e, double *f, double *g, Index ni, Index nl, Index nj) {
    Index i = blockIdx.y * blockDim.y + threadIdx.y, l = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < ni && l < nl) {
        double dot = 0;
        for (Index j = 0; j < nj; ++j)
            dot += e[j + i * nj] * f[l + j * nl];
        g[l + i * nl] = dot;
    }
}

__global__ void __launch_bounds__(256) poly_3mm_fixed(double *a, double *b, double *to, Index rows, Index columns,
                                                      Index common) {
    double dot = of_tiles(a, b, 1, rows, columns, common);
    Index row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < columns) to[column + row * columns] = dot;
}

static void compute(bool fixed) {
    Array<double> a(NI * NK, 3), b(NK * NJ, 7), c(NJ * NM, 5), d(NM * NL, 11), e(NI * NJ), f(NJ * NL), g(NI * NL);
    dim3 block(32, 8);
    for (int call = 0; call < CALLS; ++call) {
        (fixed ? poly_3mm_fixed : poly_3mm_1)<<<tiles(NI, NJ), block>>>(a.device, b.device, e.device, NI, NJ, NK);
        (fixed ? poly_3mm_fixed : poly_3mm_2)<<<tiles(NJ, NL), block>>>(c.device, d.device, f.device, NJ, NL, NM);
        (fixed ? poly_3mm_fixed : poly_3mm_3)<<<tiles(NI, NL), block>>>(e.device, f.device, g.device, NI, NL, NJ);
    }
    auto es = product(a.host, b.host, 1, 0, NI, NJ, NK), fs = product(c.host, d.host, 1, 0, NJ, NL, NM);
    same(g.result(), product(es, fs, 1, 0, NI, NL, NJ));
}
