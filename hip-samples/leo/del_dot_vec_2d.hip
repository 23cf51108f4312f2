// Divergence of velocities in two dimensions, after RAJAPerf's DEL_DOT_VEC_2D: a pointer for each corner and value.

#include "mesh.h"

// The corners of a zone: right, right above, above, itself.
struct Corners {
    double right, both, up, own;
};

__host__ __device__ static double across(Corners c) { return 0.5 * (c.right + c.both - c.up - c.own); }
__host__ __device__ static double along(Corners c) { return 0.5 * (c.both + c.up - c.own - c.right); }
__host__ __device__ static double sum(Corners c) { return c.right + c.both + c.up + c.own; }

__host__ __device__ static double divergence(Corners x, Corners y, Corners u, Corners v, double tiny) {
    double xi = across(x), xj = along(x), yi = across(y), yj = along(y);
    double of_area = 1 / (xi * yj - xj * yi + tiny);
    double of_x = of_area * (across(u) * yj - along(u) * yi), of_y = of_area * (along(v) * xi - across(v) * xj);
    return of_x + of_y + sum(v) / sum(y);
}

__global__ void __launch_bounds__(256)
    deldotvec2d(double *div, const double *x1, const double *x2, const double *x3, const double *x4, const double *y1,
                const double *y2, const double *y3, const double *y4, const double *u1, const double *u2,
                const double *u3, const double *u4, const double *v1, const double *v2, const double *v3,
                const double *v4, const Index *zones, double tiny, Index count) {
    Index n = blockIdx.x * 256 + threadIdx.x;
    if (n < count) {
        Index i = zones[n];
        div[i] = divergence({x1[i], x2[i], x3[i], x4[i]}, {y1[i], y2[i], y3[i], y4[i]}, {u1[i], u2[i], u3[i], u4[i]},
                            {v1[i], v2[i], v3[i], v4[i]}, tiny);
    }
}

__host__ __device__ static Corners corners(const double *values, Index i, Index row) {
    return {values[i + 1], values[i + 1 + row], values[i + row], values[i]};
}

__global__ void __launch_bounds__(256) deldotvec2d_fixed(double *div, const double *x, const double *y,
                                                         const double *u, const double *v, Index row,
                                                         const Index *zones, double tiny, Index count) {
    Index n = blockIdx.x * 256 + threadIdx.x;
    if (n < count) {
        Index i = zones[n];
        div[i] = divergence(corners(x, i, row), corners(y, i, row), corners(u, i, row), corners(v, i, row), tiny);
    }
}

static void compute(bool fixed) {
    Mesh mesh(1000, 2);
    auto zones = mesh.zones(2);
    Array<double> x(mesh.nodes, 3), y(mesh.nodes, 5), u(mesh.nodes, 7), v(mesh.nodes, 11), div(mesh.nodes);
    for (Index n = 0; n < mesh.nodes; ++n) {
        x.host[n] = 1 + double(n % mesh.row) + 0.01 * x.host[n];
        y.host[n] = 1 + double(n / mesh.row) + 0.01 * y.host[n];
    }
    x.send();
    y.send();
    Array<Index> list(zones.size());
    list.host = zones;
    list.send();
    Index r = mesh.row, count = Index(zones.size());
    const double tiny = 1e-20;
    double *a = x.device, *b = y.device, *c = u.device, *d = v.device;
    for (int call = 0; call < CALLS; ++call)
        if (fixed)
            deldotvec2d_fixed<<<parts(count, 256), 256>>>(div.device, a, b, c, d, r, list.device, tiny, count);
        else
            deldotvec2d<<<parts(count, 256), 256>>>(div.device, a + 1, a + 1 + r, a + r, a, b + 1, b + 1 + r, b + r, b,
                                                    c + 1, c + 1 + r, c + r, c, d + 1, d + 1 + r, d + r, d, list.device,
                                                    tiny, count);
    std::vector<double> expected(mesh.nodes);
    auto of = [&](const std::vector<double> &values, Index i) { return corners(values.data(), i, r); };
    for (Index i : zones)
        expected[i] = divergence(of(x.host, i), of(y.host, i), of(u.host, i), of(v.host, i), tiny);
    same(div.result(), expected);
}
