// Volumes of hexahedra, after RAJAPerf's VOL3D: a pointer for each corner and coordinate.

#include "mesh.h"

struct Vector {
    double x, y, z;
};

__host__ __device__ static Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
__host__ __device__ static Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }

__host__ __device__ static double triple(Vector a, Vector b, Vector c) {
    return a.x * (b.y * c.z - b.z * c.y) + a.y * (b.z * c.x - b.x * c.z) + a.z * (b.x * c.y - b.y * c.x);
}

__host__ __device__ static double volume(const Vector *corner, double scale) {
    Vector of71 = corner[7] - corner[1], of72 = corner[7] - corner[2], of74 = corner[7] - corner[4];
    Vector of30 = corner[3] - corner[0], of50 = corner[5] - corner[0], of60 = corner[6] - corner[0];
    double sum = triple(of71 + of60, of72, of30) + triple(of72 + of50, of74, of60) + triple(of74 + of30, of71, of50);
    return scale * sum;
}

__global__ void __launch_bounds__(256)
    vol3d(double *vol, const double *x0, const double *x1, const double *x2, const double *x3, const double *x4,
          const double *x5, const double *x6, const double *x7, const double *y0, const double *y1, const double *y2,
          const double *y3, const double *y4, const double *y5, const double *y6, const double *y7, const double *z0,
          const double *z1, const double *z2, const double *z3, const double *z4, const double *z5, const double *z6,
          const double *z7, double scale, Index first, Index end) {
    Index i = blockIdx.x * 256 + threadIdx.x + first;
    if (i < end) {
        Vector corner[8] = {{x0[i], y0[i], z0[i]}, {x1[i], y1[i], z1[i]}, {x2[i], y2[i], z2[i]}, {x3[i], y3[i], z3[i]},
                            {x4[i], y4[i], z4[i]}, {x5[i], y5[i], z5[i]}, {x6[i], y6[i], z6[i]}, {x7[i], y7[i], z7[i]}};
        vol[i] = volume(corner, scale);
    }
}

__host__ __device__ static double volume_at(const double *x, const double *y, const double *z, Index i, Index row,
                                            Index plane, double scale) {
    Vector corner[8];
    for (int n = 0; n < 8; ++n) {
        Index at = i + (n & 1) + (n & 2 ? row : 0) + (n & 4 ? plane : 0);
        corner[n] = {x[at], y[at], z[at]};
    }
    return volume(corner, scale);
}

__global__ void __launch_bounds__(256) vol3d_fixed(double *vol, const double *x, const double *y, const double *z,
                                                   Index row, Index plane, double scale, Index first, Index end) {
    Index i = blockIdx.x * 256 + threadIdx.x + first;
    if (i < end) vol[i] = volume_at(x, y, z, i, row, plane, scale);
}

static void compute(bool fixed) {
    Mesh mesh(100, 3);
    Array<double> x(mesh.nodes, 3), y(mesh.nodes, 5), z(mesh.nodes, 7), vol(mesh.nodes);
    Index r = mesh.row, p = mesh.plane, first = mesh.first, end = mesh.last + 1;
    const double scale = 1.0 / 12;
    double *a = x.device, *b = y.device, *c = z.device;
    for (int call = 0; call < CALLS; ++call)
        if (fixed)
            vol3d_fixed<<<parts(end - first, 256), 256>>>(vol.device, a, b, c, r, p, scale, first, end);
        else
            vol3d<<<parts(end - first, 256), 256>>>(
                vol.device, a, a + 1, a + r, a + r + 1, a + p, a + p + 1, a + p + r, a + p + r + 1, b, b + 1, b + r,
                b + r + 1, b + p, b + p + 1, b + p + r, b + p + r + 1, c, c + 1, c + r, c + r + 1, c + p, c + p + 1,
                c + p + r, c + p + r + 1, scale, first, end);
    std::vector<double> expected(mesh.nodes);
    for (Index i = first; i < end; ++i)
        expected[i] = volume_at(x.host.data(), y.host.data(), z.host.data(), i, r, p, scale);
    same(vol.result(), expected);
}
