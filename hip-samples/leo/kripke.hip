// Discrete ordinates to moments, after Kripke's LTimes with the layout direction, group, zone: lanes are groups, whose
// values are 4096 zones apart, and each walks along the zones. The original has a workgroup for each moment and
// direction and loses sums where two directions meet; here, a workgroup has a part of the zones and all directions.

#include "leo.h"

static const int MOMENTS = 25, DIRECTIONS = 4, GROUPS = 32, ZONES = 4096, PART = 64;

__global__ void __launch_bounds__(1024) ltimes(double *phi, const double *ell, const double *psi, int directions,
                                               int groups, Index zones) {
    int m = blockIdx.x;
    for (int d = 0; d < directions; ++d)
        for (int g = threadIdx.x; g < groups; g += blockDim.x)
            for (Index z = blockIdx.y * PART; z < (blockIdx.y + 1) * PART; ++z)
                phi[z + (g + m * groups) * zones] += ell[m + d * MOMENTS] * psi[z + (g + d * groups) * zones];
}

__global__ void __launch_bounds__(1024) ltimes_fixed(double *phi, const double *ell, const double *psi, int directions,
                                                     int groups, Index zones) {
    int m = blockIdx.x;
    for (int d = 0; d < directions; ++d)
        for (Index z = blockIdx.y * PART + threadIdx.x; z < (blockIdx.y + 1) * PART; z += blockDim.x)
            for (int g = 0; g < groups; ++g)
                phi[z + (g + m * groups) * zones] += ell[m + d * MOMENTS] * psi[z + (g + d * groups) * zones];
}

static void compute(bool fixed) {
    Array<double> phi(MOMENTS * GROUPS * ZONES), ell(MOMENTS * DIRECTIONS, 3), psi(DIRECTIONS * GROUPS * ZONES, 7);
    dim3 grid(MOMENTS, ZONES / PART);
    for (int call = 0; call < CALLS; ++call)
        (fixed ? ltimes_fixed : ltimes)<<<grid, fixed ? PART : GROUPS>>>(phi.device, ell.device, psi.device, DIRECTIONS,
                                                                         GROUPS, ZONES);
    std::vector<double> expected(phi.host.size());
    for (int m = 0; m < MOMENTS; ++m)
        for (int d = 0; d < DIRECTIONS; ++d)
            for (int gz = 0; gz < GROUPS * ZONES; ++gz)
                expected[gz + m * GROUPS * ZONES] +=
                    CALLS * ell.host[m + d * MOMENTS] * psi.host[gz + d * GROUPS * ZONES];
    same(phi.result(), expected);
}
