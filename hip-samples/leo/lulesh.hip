// Forces against hourglass modes, after LULESH's CalcFBHourglassForceForElems: a work-item for each element, which has
// eight corners; what belongs to corners is eight values apart. Velocities are looked up by node.

#include "leo.h"

static const int SIDE = 48, ELEMENTS = SIDE * SIDE * SIDE, NODES = (SIDE + 1) * (SIDE + 1) * (SIDE + 1);

// Signs of the four modes at the corners, as bits: 1 is negative.
__host__ __device__ static double sign(int mode, int corner) {
    const unsigned negative[4] = {0x3c, 0x96, 0xaa, 0xa5};
    return negative[mode] >> corner & 1 ? -1 : 1;
}

struct Fields {
    double *x, *y, *z, *dx, *dy, *dz, *volume, *speed, *mass, *fx, *fy, *fz;
};

__host__ __device__ static void forces(const Fields &f, int e, const double (&vx)[8], const double (&vy)[8],
                                       const double (&vz)[8], double factor) {
    double of_volume = 1 / f.volume[e], modes[4][8];
    for (int mode = 0; mode < 4; ++mode) {
        double mx = 0, my = 0, mz = 0;
        for (int n = 0; n < 8; ++n) {
            mx += f.x[8 * e + n] * sign(mode, n);
            my += f.y[8 * e + n] * sign(mode, n);
            mz += f.z[8 * e + n] * sign(mode, n);
        }
        for (int n = 0; n < 8; ++n)
            modes[mode][n] = sign(mode, n) -
                             of_volume * (f.dx[8 * e + n] * mx + f.dy[8 * e + n] * my + f.dz[8 * e + n] * mz);
    }
    double scale = -factor * 0.01 * f.speed[e] * f.mass[e] / cbrt(f.volume[e]);
    double hx[4] = {}, hy[4] = {}, hz[4] = {};
    for (int mode = 0; mode < 4; ++mode)
        for (int n = 0; n < 8; ++n) {
            hx[mode] += modes[mode][n] * vx[n];
            hy[mode] += modes[mode][n] * vy[n];
            hz[mode] += modes[mode][n] * vz[n];
        }
    for (int n = 0; n < 8; ++n) {
        double x = 0, y = 0, z = 0;
        for (int mode = 0; mode < 4; ++mode) {
            x += modes[mode][n] * hx[mode];
            y += modes[mode][n] * hy[mode];
            z += modes[mode][n] * hz[mode];
        }
        f.fx[8 * e + n] = scale * x;
        f.fy[8 * e + n] = scale * y;
        f.fz[8 * e + n] = scale * z;
    }
}

__global__ void __launch_bounds__(256) hourglass(Fields f, const int *nodes, const double *vx, const double *vy,
                                                 const double *vz, double factor, int count) {
    int e = blockIdx.x * 256 + threadIdx.x;
    if (e >= count) return;
    double x[8], y[8], z[8];
    for (int n = 0; n < 8; ++n) {
        int node = nodes[8 * e + n];
        x[n] = vx[node];
        y[n] = vy[node];
        z[n] = vz[node];
    }
    forces(f, e, x, y, z, factor);
}

__global__ void __launch_bounds__(256) gather_fixed(const int *nodes, const double *vx, const double *vy,
                                                    const double *vz, double *gx, double *gy, double *gz, int count) {
    int corner = blockIdx.x * 256 + threadIdx.x;
    if (corner >= 8 * count) return;
    gx[corner] = vx[nodes[corner]];
    gy[corner] = vy[nodes[corner]];
    gz[corner] = vz[nodes[corner]];
}

__global__ void __launch_bounds__(256) hourglass_fixed(Fields f, const double *gx, const double *gy, const double *gz,
                                                       double factor, int count) {
    int e = blockIdx.x * 256 + threadIdx.x;
    if (e >= count) return;
    double x[8], y[8], z[8];
    for (int n = 0; n < 8; ++n) {
        x[n] = gx[8 * e + n];
        y[n] = gy[8 * e + n];
        z[n] = gz[8 * e + n];
    }
    forces(f, e, x, y, z, factor);
}

static void compute(bool fixed) {
    const size_t corners = size_t(8) * ELEMENTS;
    Array<double> x(corners, 3), y(corners, 5), z(corners, 7), dx(corners, 9), dy(corners, 11), dz(corners, 13);
    Array<double> volume(ELEMENTS), speed(ELEMENTS, 3), mass(ELEMENTS, 5), vx(NODES, 3), vy(NODES, 5), vz(NODES, 7);
    Array<double> fx(corners), fy(corners), fz(corners), gx(corners), gy(corners), gz(corners);
    Array<int> nodes(corners);
    for (int e = 0; e < ELEMENTS; ++e) {
        volume.host[e] = 1 + e % 7;
        int first = e % SIDE + (SIDE + 1) * (e / SIDE % SIDE + (SIDE + 1) * (e / SIDE / SIDE));
        const int around[4] = {0, 1, SIDE + 2, SIDE + 1};
        for (int n = 0; n < 8; ++n) nodes.host[8 * e + n] = first + around[n % 4] + n / 4 * (SIDE + 1) * (SIDE + 1);
    }
    volume.send();
    nodes.send();
    Fields f{x.device,      y.device,     z.device,    dx.device, dy.device, dz.device,
             volume.device, speed.device, mass.device, fx.device, fy.device, fz.device};
    for (int call = 0; call < CALLS; ++call)
        if (fixed) {
            gather_fixed<<<parts(corners, 256), 256>>>(nodes.device, vx.device, vy.device, vz.device, gx.device,
                                                       gy.device, gz.device, ELEMENTS);
            hourglass_fixed<<<parts(ELEMENTS, 256), 256>>>(f, gx.device, gy.device, gz.device, 3, ELEMENTS);
        } else {
            hourglass<<<parts(ELEMENTS, 256), 256>>>(f, nodes.device, vx.device, vy.device, vz.device, 3, ELEMENTS);
        }
    std::vector<double> ex(corners), ey(corners), ez(corners);
    Fields host{x.host.data(),      y.host.data(),     z.host.data(),    dx.host.data(), dy.host.data(), dz.host.data(),
                volume.host.data(), speed.host.data(), mass.host.data(), ex.data(),      ey.data(),      ez.data()};
    for (int e = 0; e < ELEMENTS; ++e) {
        double a[8], b[8], c[8];
        for (int n = 0; n < 8; ++n) {
            int node = nodes.host[8 * e + n];
            a[n] = vx.host[node];
            b[n] = vy.host[node];
            c[n] = vz.host[node];
        }
        forces(host, e, a, b, c, 3);
    }
    same(fx.result(), ex);
    same(fy.result(), ey);
    same(fz.result(), ez);
}
