// Macroscopic cross sections at random energies in random materials, after XSBench's xs_lookup_kernel with the hash
// grid: for each nuclide of a material a search in its grid, and an interpolation.

#include "leo.h"

static const int NUCLIDES = 68, POINTS = 4096, BINS = 4096, MATERIALS = 12, MOST = 34, LOOKUPS = 64 * 912 * 2;

struct Point {
    double energy, section[5];
};

struct Tables {
    Point *points;
    double *energies, *densities;
    int *bins, *nuclides, *counts;
};

__host__ __device__ static uint64_t next(uint64_t seed) { return (2806196910506780709ull * seed + 1) & ~0ull >> 1; }

// The generator after so many steps, in steps by powers of two.
__host__ __device__ static uint64_t ahead(uint64_t seed, uint64_t steps) {
    uint64_t a = 2806196910506780709ull, c = 1, all_a = 1, all_c = 0;
    for (; steps; steps >>= 1) {
        if (steps & 1) {
            all_a *= a;
            all_c = all_c * a + c;
        }
        c *= a + 1;
        a *= a;
    }
    return (all_a * seed + all_c) & ~0ull >> 1;
}

__host__ __device__ static double unit(uint64_t seed) { return double(seed) / 9223372036854775808.0; }

// Materials by their shares of lookups.
__host__ __device__ static int material(double roll) {
    const double shares[MATERIALS] = {0.14,  0.052, 0.275, 0.134, 0.154, 0.064,
                                      0.066, 0.055, 0.008, 0.015, 0.025, 0.013};
    double sum = 0;
    for (int n = 0; n < MATERIALS; ++n) {
        sum += shares[n];
        if (roll < sum) return n;
    }
    return 0;
}

__host__ __device__ static void add(double (&sums)[5], const Point &low, const Point &high, double energy,
                                    double density) {
    double part = (high.energy - energy) / (high.energy - low.energy);
    for (int k = 0; k < 5; ++k) sums[k] += density * (high.section[k] - part * (high.section[k] - low.section[k]));
}

__host__ __device__ static int largest(const double (&sums)[5]) {
    int found = 0;
    for (int k = 1; k < 5; ++k)
        if (sums[k] > sums[found]) found = k;
    return found + 1;
}

__host__ __device__ static void lookup(const Tables &t, int *results, int n) {
    uint64_t seed = next(ahead(1070, 2 * uint64_t(n)));
    double energy = unit(seed), sums[5] = {};
    int of = material(unit(next(seed)));
    Index bin = Index(energy / (1.0 / BINS));
    for (int k = 0; k < t.counts[of]; ++k) {
        int nuclide = t.nuclides[of * MOST + k];
        double density = t.densities[of * MOST + k];
        const Point *points = t.points + Index(nuclide) * POINTS;
        Index low = t.bins[bin * NUCLIDES + nuclide];
        Index high = bin == BINS - 1 ? POINTS - 1 : t.bins[(bin + 1) * NUCLIDES + nuclide] + 1;
        if (energy <= points[low].energy)
            low = 0;
        else if (energy >= points[high].energy)
            low = POINTS - 1;
        else
            while (high - low > 1) {
                Index middle = low + (high - low) / 2;
                if (points[middle].energy > energy)
                    high = middle;
                else
                    low = middle;
            }
        if (low == POINTS - 1) --low;
        add(sums, points[low], points[low + 1], energy, density);
    }
    results[n] = largest(sums);
}

__global__ void xs_lookup_kernel(Tables t, int *results, int count) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n < count) lookup(t, results, n);
}

// The bin by a multiplication, the search in energies alone, and one wave in a workgroup.
__global__ void xs_lookup_kernel_fixed(Tables t, int *results, int count) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= count) return;
    uint64_t seed = next(ahead(1070, 2 * uint64_t(n)));
    double energy = unit(seed), sums[5] = {};
    int of = material(unit(next(seed))), first = of * MOST, bin = int(energy * BINS);
    for (int k = 0; k < t.counts[of]; ++k) {
        int nuclide = t.nuclides[first + k];
        double density = t.densities[first + k];
        const double *energies = t.energies + nuclide * POINTS;
        int low = t.bins[bin * NUCLIDES + nuclide];
        int high = bin == BINS - 1 ? POINTS - 1 : t.bins[(bin + 1) * NUCLIDES + nuclide] + 1;
        if (energy <= energies[low])
            low = 0;
        else
            while (low < high && energies[low + 1] <= energy) ++low;
        if (low == POINTS - 1) --low;
        const Point *points = t.points + nuclide * POINTS + low;
        add(sums, points[0], points[1], energy, density);
    }
    results[n] = largest(sums);
}

static void compute(bool fixed) {
    const int in_material[MATERIALS] = {34, 5, 4, 4, 27, 21, 21, 21, 21, 21, 9, 9};
    Array<Point> points(NUCLIDES * POINTS);
    Array<double> energies(NUCLIDES * POINTS), densities(MATERIALS * MOST, 3);
    Array<int> bins(BINS * NUCLIDES), nuclides(MATERIALS * MOST), counts(MATERIALS), results(LOOKUPS);
    uint64_t seed = 42;
    for (int nuclide = 0; nuclide < NUCLIDES; ++nuclide) {
        double sum = 0;
        std::vector<double> all(POINTS);
        for (double &energy : all) {
            seed = next(seed);
            sum += 0.05 + unit(seed);
            energy = sum;
        }
        int at = 0;
        for (int n = 0; n < POINTS; ++n) {
            Point &point = points.host[nuclide * POINTS + n];
            point.energy = energies.host[nuclide * POINTS + n] = all[n] / (sum + 1);
            for (double &section : point.section) {
                seed = next(seed);
                section = unit(seed);
            }
        }
        for (int bin = 0; bin < BINS; ++bin) {
            while (at + 1 < POINTS && all[at + 1] / (sum + 1) <= double(bin) / BINS) ++at;
            bins.host[bin * NUCLIDES + nuclide] = at < POINTS - 2 ? at : POINTS - 2;
        }
    }
    for (int of = 0; of < MATERIALS; ++of) {
        counts.host[of] = in_material[of];
        for (int k = 0; k < MOST; ++k) {
            nuclides.host[of * MOST + k] = of ? (of * 7 + k * 5) % NUCLIDES : k;
            densities.host[of * MOST + k] = 0.01 * (1 + (of * 11 + k * 3) % 17);
        }
    }
    points.send();
    energies.send();
    bins.send();
    nuclides.send();
    counts.send();
    densities.send();
    Tables t{points.device, energies.device, densities.device, bins.device, nuclides.device, counts.device};
    unsigned group = fixed ? 64 : 256;
    for (int call = 0; call < CALLS; ++call)
        (fixed ? xs_lookup_kernel_fixed : xs_lookup_kernel)<<<LOOKUPS / group, group>>>(t, results.device, LOOKUPS);
    Tables host{points.host.data(), energies.host.data(), densities.host.data(),
                bins.host.data(),   nuclides.host.data(), counts.host.data()};
    std::vector<int> expected(LOOKUPS), got = results.result();
    int apart = 0;
    for (int n = 0; n < LOOKUPS; ++n) {
        lookup(host, expected.data(), n);
        apart += got[n] != expected[n];
    }
    require(apart < LOOKUPS / 1000, "other cross sections");
}
