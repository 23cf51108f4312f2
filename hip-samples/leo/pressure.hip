// An equation of state in two kernels, after RAJAPerf's PRESSURE: the second one reads what the first one wrote.

#include "leo.h"

static const Index COUNT = 1000000;
static const double SCALE = 0.5, CUT = 5, LEAST = -3, LARGEST = 15;

__host__ __device__ static double limited(double p, double volume, double cut, double largest, double least) {
    if (fabs(p) < cut) p = 0;
    if (volume >= largest) p = 0;
    return p < least ? least : p;
}

__global__ void __launch_bounds__(256) pressurecalc1(double *bvc, double *compression, double scale, Index count) {
    Index i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        bvc[i] = scale * (compression[i] + 1);
}

__global__ void __launch_bounds__(256) pressurecalc2(double *p, double *bvc, double *energy, double *volume, double cut,
                                                     double largest, double least, Index count) {
    Index i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        p[i] = limited(bvc[i] * energy[i], volume[i], cut, largest, least);
}

// What is between the kernels stays in a register.
__global__ void __launch_bounds__(256) pressurecalc_fixed(double *p, double *compression, double *energy,
                                                          double *volume, double scale, double cut, double largest,
                                                          double least, Index count) {
    Index i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        p[i] = limited(scale * (compression[i] + 1) * energy[i], volume[i], cut, largest, least);
}

static void compute(bool fixed) {
    Array<double> bvc(COUNT), compression(COUNT, 3), p(COUNT), energy(COUNT, 7), volume(COUNT, 11);
    unsigned grid = parts(COUNT, 256);
    for (int call = 0; call < CALLS; ++call)
        if (fixed) {
            pressurecalc_fixed<<<grid, 256>>>(p.device, compression.device, energy.device, volume.device, SCALE, CUT,
                                              LARGEST, LEAST, COUNT);
        } else {
            pressurecalc1<<<grid, 256>>>(bvc.device, compression.device, SCALE, COUNT);
            pressurecalc2<<<grid, 256>>>(p.device, bvc.device, energy.device, volume.device, CUT, LARGEST, LEAST,
                                         COUNT);
        }
    std::vector<double> bvcs(COUNT), ps(COUNT);
    for (Index i = 0; i < COUNT; ++i) {
        bvcs[i] = SCALE * (compression.host[i] + 1);
        ps[i] = limited(bvcs[i] * energy.host[i], volume.host[i], CUT, LARGEST, LEAST);
    }
    if (!fixed) same(bvc.result(), bvcs);
    same(p.result(), ps);
}
