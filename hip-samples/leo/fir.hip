// A filter with 16 coefficients in constant memory, after RAJAPerf's FIR.

#include "leo.h"

static const Index COUNT = 1000000, TAPS = 16;

__constant__ double coefficients[TAPS];

__global__ void __launch_bounds__(256) fir(double *out, double *in, Index taps, Index count) {
    Index i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) {
        double sum = 0;
        for (Index j = 0; j < taps; ++j)
            sum += coefficients[j] * in[i + j];
        out[i] = sum;
    }
}

__global__ void __launch_bounds__(256) fir_fixed(double *out, double *in, Index taps, Index count) {
    __shared__ double tile[TAPS];
    if (threadIdx.x < TAPS) tile[threadIdx.x] = coefficients[threadIdx.x];
    __syncthreads();
    Index i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) {
        double sum = 0;
        for (Index j = 0; j < taps; ++j)
            sum += tile[j] * in[i + j];
        out[i] = sum;
    }
}

static void compute(bool fixed) {
    Array<double> out(COUNT), in(COUNT + TAPS, 3);
    double weights[TAPS];
    for (int n = 0; n < TAPS; ++n) weights[n] = n % 5 == 0 ? 3 : -1;
    require(hipMemcpyToSymbol(HIP_SYMBOL(coefficients), weights, sizeof weights) == hipSuccess, "no coefficients");
    for (int call = 0; call < CALLS; ++call)
        (fixed ? fir_fixed : fir)<<<parts(COUNT, 256), 256>>>(out.device, in.device, TAPS, COUNT);
    std::vector<double> expected(COUNT);
    for (Index i = 0; i < COUNT; ++i)
        for (Index j = 0; j < TAPS; ++j) expected[i] += weights[j] * in.host[i + j];
    same(out.result(), expected);
}
