// Energy and artificial viscosity in six kernels, after RAJAPerf's ENERGY: each reads what earlier ones wrote.

#include "leo.h"

static const Index COUNT = 1000000;

struct Limits {
    double density, energy_cut, least_energy, viscosity_cut;
};

__host__ __device__ static double viscosity(double pbvc, double energy, double volume, double bvc, double pressure,
                                            double density, double linear, double quadratic) {
    double speed = (pbvc * energy + volume * volume * bvc * pressure) / density;
    speed = speed <= 0.1111111e-36 ? 0.3333333e-18 : sqrt(speed);
    return speed * linear + quadratic;
}

__host__ __device__ static double bounded(double energy, Limits limits) {
    if (fabs(energy) < limits.energy_cut) energy = 0;
    return energy < limits.least_energy ? limits.least_energy : energy;
}

__global__ void __launch_bounds__(256) energycalc1(double *e_new, double *e_old, double *change, double *p_old,
                                                   double *q_old, double *work, Index count) {
    Index i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        e_new[i] = e_old[i] - 0.5 * change[i] * (p_old[i] + q_old[i]) + 0.5 * work[i];
}

__global__ void __launch_bounds__(256) energycalc2(double *change, double *q_new, double *compression, double *pbvc,
                                                   double *e_new, double *bvc, double *p_half, double density,
                                                   double *linear, double *quadratic, Index count) {
    Index i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) {
        if (change[i] > 0)
            q_new[i] = 0;
        else
            q_new[i] = viscosity(pbvc[i], e_new[i], 1 / (1 + compression[i]), bvc[i], p_half[i], density, linear[i],
                                 quadratic[i]);
    }
}

__global__ void __launch_bounds__(256) energycalc3(double *e_new, double *change, double *p_old, double *q_old,
                                                   double *p_half, double *q_new, Index count) {
    Index i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        e_new[i] += 0.5 * change[i] * (3 * (p_old[i] + q_old[i]) - 4 * (p_half[i] + q_new[i]));
}

__global__ void __launch_bounds__(256) energycalc4(double *e_new, double *work, Limits limits, Index count) {
    Index i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        e_new[i] = bounded(e_new[i] + 0.5 * work[i], limits);
}

__global__ void __launch_bounds__(256) energycalc5(double *change, double *pbvc, double *e_new, double *volume,
                                                   double *bvc, double *p_new, double *linear, double *quadratic,
                                                   double *p_old, double *q_old, double *p_half, double *q_new,
                                                   Limits limits, Index count) {
    Index i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) {
        double q = 0;
        if (change[i] <= 0)
            q = viscosity(pbvc[i], e_new[i], volume[i], bvc[i], p_new[i], limits.density, linear[i], quadratic[i]);
        double sum = 7 * (p_old[i] + q_old[i]) - 8 * (p_half[i] + q_new[i]) + (p_new[i] + q);
        e_new[i] = bounded(e_new[i] - sum * change[i] / 6, limits);
    }
}

__global__ void __launch_bounds__(256) energycalc6(double *change, double *pbvc, double *e_new, double *volume,
                                                   double *bvc, double *p_new, double *q_new, double *linear,
                                                   double *quadratic, Limits limits, Index count) {
    Index i = blockIdx.x * 256 + threadIdx.x;
    if (i < count && change[i] <= 0) {
        double q = viscosity(pbvc[i], e_new[i], volume[i], bvc[i], p_new[i], limits.density, linear[i], quadratic[i]);
        q_new[i] = fabs(q) < limits.viscosity_cut ? 0 : q;
    }
}

struct Zone {
    double e_old, change, p_old, q_old, work, compression, p_half, p_new, bvc, pbvc, linear, quadratic, volume;
};

// All six steps of one zone.
__host__ __device__ static void step(const Zone &z, Limits limits, double &e_new, double &q_new) {
    bool compressed = z.change <= 0;
    double e = z.e_old - 0.5 * z.change * (z.p_old + z.q_old) + 0.5 * z.work;
    double half = 1 / (1 + z.compression), q = 0;
    if (compressed) q = viscosity(z.pbvc, e, half, z.bvc, z.p_half, limits.density, z.linear, z.quadratic);
    e += 0.5 * z.change * (3 * (z.p_old + z.q_old) - 4 * (z.p_half + q));
    e = bounded(e + 0.5 * z.work, limits);
    double later = 0;
    if (compressed) later = viscosity(z.pbvc, e, z.volume, z.bvc, z.p_new, limits.density, z.linear, z.quadratic);
    double sum = 7 * (z.p_old + z.q_old) - 8 * (z.p_half + q) + (z.p_new + later);
    e = bounded(e - sum * z.change / 6, limits);
    if (compressed) {
        q = viscosity(z.pbvc, e, z.volume, z.bvc, z.p_new, limits.density, z.linear, z.quadratic);
        if (fabs(q) < limits.viscosity_cut) q = 0;
    }
    e_new = e;
    q_new = q;
}

struct Inputs {
    double *e_old, *change, *p_old, *q_old, *work, *compression, *p_half, *p_new, *bvc, *pbvc, *linear, *quadratic,
        *volume;
    __host__ __device__ Zone at(Index i) const {
        return {e_old[i], change[i], p_old[i], q_old[i], work[i],      compression[i], p_half[i],
                p_new[i], bvc[i],    pbvc[i],  linear[i], quadratic[i], volume[i]};
    }
};

__global__ void __launch_bounds__(256) energycalc_fixed(Inputs in, double *e_new, double *q_new, Limits limits,
                                                        Index count) {
    Index i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) {
        double e, q;
        step(in.at(i), limits, e, q);
        e_new[i] = e;
        q_new[i] = q;
    }
}

static void compute(bool fixed) {
    const double small = 1.0 / 16;
    Array<double> e_new(COUNT), e_old(COUNT, 3, small), change(COUNT, 5, small), p_old(COUNT, 7, small);
    Array<double> q_old(COUNT, 9, small), work(COUNT, 11, small), compression(COUNT, 13, small);
    Array<double> p_half(COUNT, 15, small);
    Array<double> p_new(COUNT, 17, small), bvc(COUNT, 19, small), pbvc(COUNT, 21, small), linear(COUNT, 2, small);
    Array<double> quadratic(COUNT, 4, small), volume(COUNT, 6, small), q_new(COUNT);
    for (auto &value : change.host) value = -std::fabs(value);
    change.send();
    Limits limits{1.5, 0.01, -4, 0.02};
    unsigned grid = parts(COUNT, 256);
    Inputs in{e_old.device, change.device, p_old.device, q_old.device, work.device, compression.device,
              p_half.device, p_new.device, bvc.device,    pbvc.device,  linear.device, quadratic.device, volume.device};
    for (int call = 0; call < CALLS; ++call) {
        if (fixed) {
            energycalc_fixed<<<grid, 256>>>(in, e_new.device, q_new.device, limits, COUNT);
            continue;
        }
        energycalc1<<<grid, 256>>>(e_new.device, in.e_old, in.change, in.p_old, in.q_old, in.work, COUNT);
        energycalc2<<<grid, 256>>>(in.change, q_new.device, in.compression, in.pbvc, e_new.device, in.bvc, in.p_half,
                                   limits.density, in.linear, in.quadratic, COUNT);
        energycalc3<<<grid, 256>>>(e_new.device, in.change, in.p_old, in.q_old, in.p_half, q_new.device, COUNT);
        energycalc4<<<grid, 256>>>(e_new.device, in.work, limits, COUNT);
        energycalc5<<<grid, 256>>>(in.change, in.pbvc, e_new.device, in.volume, in.bvc, in.p_new, in.linear,
                                   in.quadratic, in.p_old, in.q_old, in.p_half, q_new.device, limits, COUNT);
        energycalc6<<<grid, 256>>>(in.change, in.pbvc, e_new.device, in.volume, in.bvc, in.p_new, q_new.device,
                                   in.linear, in.quadratic, limits, COUNT);
    }
    Inputs host{e_old.host.data(),  change.host.data(),  p_old.host.data(), q_old.host.data(),
                work.host.data(),   compression.host.data(), p_half.host.data(), p_new.host.data(),
                bvc.host.data(),    pbvc.host.data(),    linear.host.data(), quadratic.host.data(),
                volume.host.data()};
    std::vector<double> es(COUNT), qs(COUNT);
    for (Index i = 0; i < COUNT; ++i) step(host.at(i), limits, es[i], qs[i]);
    same(e_new.result(), es);
    same(q_new.result(), qs);
}
