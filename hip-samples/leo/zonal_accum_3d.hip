// The mean of a zone's eight nodes, after RAJAPerf's ZONAL_ACCUMULATION_3D: a pointer for each corner.

#include "mesh.h"

__global__ void __launch_bounds__(256) zonal_accum_3d(double *mean, const double *x0, const double *x1,
                                                      const double *x2, const double *x3, const double *x4,
                                                      const double *x5, const double *x6, const double *x7,
                                                      Index *zones, Index count) {
    Index n = blockIdx.x * 256 + threadIdx.x;
    if (n < count) {
        Index i = zones[n];
        mean[i] = 0.125 * (x0[i] + x1[i] + x2[i] + x3[i] + x4[i] + x5[i] + x6[i] + x7[i]);
    }
}

__global__ void __launch_bounds__(256) zonal_accum_3d_fixed(double *mean, const double *x, Index row, Index plane,
                                                            Index *zones, Index count) {
    Index n = blockIdx.x * 256 + threadIdx.x;
    if (n < count) {
        Index i = zones[n];
        const double *low = x + i, *high = low + plane;
        mean[i] = 0.125 * (low[0] + low[1] + low[row] + low[row + 1] + high[0] + high[1] + high[row] + high[row + 1]);
    }
}

static void compute(bool fixed) {
    Mesh mesh(100, 3);
    auto zones = mesh.zones(3);
    Array<double> x(mesh.nodes, 3), mean(mesh.nodes);
    Array<Index> list(zones.size());
    list.host = zones;
    list.send();
    Index row = mesh.row, plane = mesh.plane, count = Index(zones.size());
    double *at = x.device;
    for (int call = 0; call < CALLS; ++call)
        if (fixed)
            zonal_accum_3d_fixed<<<parts(count, 256), 256>>>(mean.device, at, row, plane, list.device, count);
        else
            zonal_accum_3d<<<parts(count, 256), 256>>>(mean.device, at, at + 1, at + row, at + row + 1, at + plane,
                                                       at + plane + 1, at + plane + row, at + plane + row + 1,
                                                       list.device, count);
    std::vector<double> expected(mesh.nodes);
    for (Index i : zones) {
        double sum = 0;
        for (int corner = 0; corner < 8; ++corner)
            sum += x.host[i + corner % 2 + corner / 2 % 2 * row + corner / 4 * plane];
        expected[i] = 0.125 * sum;
    }
    same(mean.result(), expected);
}
