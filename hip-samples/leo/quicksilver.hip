// Transport of particles, after Quicksilver's CycleTracking: a work-item has a particle and follows it from cell to
// cell and through collisions; cross sections are found through chains of pointers, which are loaded themselves.

#include "leo.h"

#pragma clang fp contract(off)

static const int SIDE = 16, CELLS = SIDE * SIDE * SIDE, MATERIALS = 3, ISOTOPES = 4, OF_MATERIAL = 4, REACTIONS = 3;
static const int GROUPS = 64, SEGMENTS = 4, TALLIES = 5, PARTICLES = 256 * 228;

enum { SCATTER, ABSORB, FISSION };
enum { COLLISIONS, SCATTERS, ABSORPTIONS, FISSIONS, CROSSINGS };

struct Reaction {
    double *sections;
    int kind;
};
struct Species {
    Reaction *reactions;
    int count;
};
struct Isotope {
    Species *species;
};
struct Data {
    Isotope *isotopes;
    double *edges;
};
struct Part {
    double fraction;
    int isotope;
};
struct Material {
    Part *parts;
    int count;
};
struct Cell {
    double *totals, *flux;
    double density;
    int material;
};
struct Domain {
    Cell *cells;
};
struct World {
    Domain *domains;
    Material *materials;
    Data *data;
    unsigned long long *tallies;
};

struct Particle {
    double at[3], direction[3], energy, weight, time;
    uint64_t seed;
    int domain, cell, group;
};

__host__ __device__ static double random(uint64_t &seed) {
    seed = 2862933555777941757ull * seed + 3037000493ull;
    return 5.4210108624275222e-20 * double(seed);
}

// A logarithm that is the same on both sides.
__host__ __device__ static double logarithm(double x) {
    int power = 0;
    while (x < 0.75) {
        x *= 2;
        --power;
    }
    double t = (x - 1) / (x + 1), square = t * t, sum = 0;
    for (int n = 15; n > 0; n -= 2) sum = sum * square + 1.0 / n;
    return power * 0.69314718055994531 + 2 * t * sum;
}

__host__ __device__ static double section(Data *data, int reaction, int isotope, int group) {
    return data->isotopes[isotope].species[0].reactions[reaction].sections[group];
}

// What one reaction of one isotope of a cell contributes: everything is looked up again.
__host__ __device__ static double macroscopic(World *world, int reaction, int domain, int cell, int part, int group) {
    int material = world->domains[domain].cells[cell].material;
    double fraction = world->materials[material].parts[part].fraction;
    double density = world->domains[domain].cells[cell].density;
    int isotope = world->materials[material].parts[part].isotope;
    if (fraction == 0 || density == 0) return 1e-20;
    return fraction * density * section(world->data, reaction, isotope, group);
}

__host__ __device__ static void count(unsigned long long *tallies, int which) {
#ifdef __HIP_DEVICE_COMPILE__
    atomicAdd(tallies + which, 1ull);
#else
    ++tallies[which];
#endif
}

__host__ __device__ static void add(double *to, double value) {
#ifdef __HIP_DEVICE_COMPILE__
    atomicAdd(to, value);
#else
    *to += value;
#endif
}

__host__ __device__ static void turn(Particle &p) {
    double up = 2 * random(p.seed) - 1, t = 2 * random(p.seed) - 1, across = sqrt(1 - up * up);
    double side = 1 / (1 + t * t);
    p.direction[0] = across * (1 - t * t) * side;
    p.direction[1] = across * 2 * t * side;
    p.direction[2] = up;
}

__host__ __device__ static int group_of(Data *data, double energy) {
    int low = 0, high = GROUPS;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (data->edges[middle] <= energy)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// The distance to the nearest side of the cell, and which one.
__host__ __device__ static double to_side(const Particle &p, int &side) {
    double least = 1e30;
    side = 0;
    for (int axis = 0; axis < 3; ++axis)
        for (int upper = 0; upper < 2; ++upper) {
            double toward = upper ? p.direction[axis] : -p.direction[axis];
            double gap = upper ? 1 - p.at[axis] : p.at[axis];
            if (toward > 1e-9 && gap / toward < least) {
                least = gap / toward;
                side = 2 * axis + upper;
            }
        }
    return least;
}

template <bool INLINED> __host__ __device__ static int chosen_reaction(World *world, Particle &p) {
    Cell &cell = world->domains[p.domain].cells[p.cell];
    double left = cell.totals[p.group] * random(p.seed);
    int material = cell.material, kind = ABSORB;
    for (int part = 0; part < world->materials[material].count && left >= 0; ++part) {
        int isotope = world->materials[material].parts[part].isotope;
        int reactions = world->data->isotopes[isotope].species[0].count;
        double factor = world->materials[material].parts[part].fraction * cell.density;
        const Reaction *__restrict__ of = world->data->isotopes[isotope].species[0].reactions;
        for (int n = 0; n < reactions; ++n) {
            if (INLINED)
                left -= factor == 0 ? 1e-20 : factor * of[n].sections[p.group];
            else
                left -= macroscopic(world, n, p.domain, p.cell, part, p.group);
            if (left < 0) {
                kind = of[n].kind;
                break;
            }
        }
    }
    return kind;
}

template <bool INLINED> __host__ __device__ static void track(World *world, Particle &p) {
    for (int segment = 0; segment < SEGMENTS && p.weight > 0; ++segment) {
        Cell &cell = world->domains[p.domain].cells[p.cell];
        double total = cell.totals[p.group], free = -logarithm(random(p.seed)) / total;
        int side;
        double gap = to_side(p, side), way = gap < free ? gap : free;
        for (int axis = 0; axis < 3; ++axis) p.at[axis] += way * p.direction[axis];
        p.time += way;
        add(cell.flux + p.group, way * p.weight);
        if (gap < free) {
            int axis = side / 2, step = axis == 0 ? 1 : axis == 1 ? SIDE : SIDE * SIDE;
            p.cell = (p.cell + (side % 2 ? step : CELLS - step)) % CELLS;
            for (int n = 0; n < 3; ++n)
                if (n == axis) p.at[n] = side % 2 ? 0 : 1;
            count(world->tallies, CROSSINGS);
            continue;
        }
        int kind = chosen_reaction<INLINED>(world, p);
        count(world->tallies, COLLISIONS);
        if (kind == ABSORB) {
            count(world->tallies, ABSORPTIONS);
            p.weight = 0;
            continue;
        }
        count(world->tallies, kind == SCATTER ? SCATTERS : FISSIONS);
        p.energy = kind == SCATTER ? p.energy * (1 - 0.5 * random(p.seed)) : 1 + random(p.seed);
        p.group = group_of(world->data, p.energy);
        turn(p);
    }
}

__global__ void __launch_bounds__(256) CycleTracking(World *world, Particle *particles, int count) {
    int n = blockIdx.x * 256 + threadIdx.x;
    if (n >= count) return;
    Particle p = particles[n];
    track<false>(world, p);
    particles[n] = p;
}

__global__ void __launch_bounds__(256) CycleTracking_fixed(World *world, Particle *particles, int count) {
    int n = blockIdx.x * 256 + threadIdx.x;
    if (n >= count) return;
    Particle p = particles[n];
    track<true>(world, p);
    particles[n] = p;
}

// All tables, linked on one side.
template <template <typename> class Of> struct Tables {
    Of<double> sections{ISOTOPES * REACTIONS * GROUPS}, edges{GROUPS}, totals{MATERIALS * GROUPS}, flux{CELLS * GROUPS};
    Of<Reaction> reactions{ISOTOPES * REACTIONS};
    Of<Species> species{ISOTOPES};
    Of<Isotope> isotopes{ISOTOPES};
    Of<Data> data{1};
    Of<Part> parts{MATERIALS * OF_MATERIAL};
    Of<Material> materials{MATERIALS};
    Of<Cell> cells{CELLS};
    Of<Domain> domains{1};
    Of<unsigned long long> tallies{TALLIES};
    Of<World> world{1};
};

template <typename Pointers, typename Values> static void link(Pointers at, Values &v) {
    for (int n = 0; n < ISOTOPES * REACTIONS; ++n)
        v.reactions.host[n] = {at(v.sections) + n * GROUPS, n % REACTIONS == 2 ? FISSION : n % REACTIONS};
    for (int n = 0; n < ISOTOPES; ++n) {
        v.species.host[n] = {at(v.reactions) + n * REACTIONS, REACTIONS};
        v.isotopes.host[n] = {at(v.species) + n};
    }
    v.data.host[0] = {at(v.isotopes), at(v.edges)};
    for (int n = 0; n < MATERIALS * OF_MATERIAL; ++n) v.parts.host[n] = {0.25, (n * 3 + n / OF_MATERIAL) % ISOTOPES};
    for (int n = 0; n < MATERIALS; ++n) v.materials.host[n] = {at(v.parts) + n * OF_MATERIAL, OF_MATERIAL};
    for (int n = 0; n < CELLS; ++n)
        v.cells.host[n] = {at(v.totals) + n % MATERIALS * GROUPS, at(v.flux) + n * GROUPS, 1, n % MATERIALS};
    v.domains.host[0] = {at(v.cells)};
    v.world.host[0] = {at(v.domains), at(v.materials), at(v.data), at(v.tallies)};
}

static void compute(bool fixed) {
    Tables<Array> t;
    for (size_t n = 0; n < t.sections.host.size(); ++n) t.sections.host[n] = 0.25 * (1 + n * 7 % 13);
    for (int n = 0; n < GROUPS; ++n) t.edges.host[n] = n ? 2.0 * n / GROUPS : 0;
    link([](auto &array) { return array.host.data(); }, t);
    for (int material = 0; material < MATERIALS; ++material)
        for (int group = 0; group < GROUPS; ++group) {
            double sum = 0;
            for (int part = 0; part < OF_MATERIAL; ++part)
                for (int n = 0; n < REACTIONS; ++n)
                    sum += macroscopic(t.world.host.data(), n, 0, material, part, group);
            t.totals.host[material * GROUPS + group] = sum;
        }
    Array<Particle> particles(PARTICLES);
    for (int n = 0; n < PARTICLES; ++n) {
        Particle &p = particles.host[n];
        uint64_t seed = 88172645463325252ull * (n + 1);
        p = {{0.5, 0.25, 0.75}, {0, 0, 1}, 1 + n % 16 / 16.0, 1, 0, seed, 0, n * 37 % CELLS, 0};
        for (int k = 0; k < 4; ++k) random(p.seed);
        turn(p);
        p.group = group_of(t.data.host.data(), p.energy);
    }
    particles.send();
    std::vector<double> flux(CELLS * GROUPS);
    std::vector<unsigned long long> tallies(TALLIES);
    for (int call = 0; call < CALLS; ++call)
        for (Particle p : particles.host) track<false>(t.world.host.data(), p);
    flux.swap(t.flux.host);
    tallies.swap(t.tallies.host);
    link([](auto &array) { return array.device; }, t);
    t.sections.send();
    t.edges.send();
    t.totals.send();
    t.reactions.send();
    t.species.send();
    t.isotopes.send();
    t.data.send();
    t.parts.send();
    t.materials.send();
    t.cells.send();
    t.domains.send();
    t.world.send();
    for (int call = 0; call < CALLS; ++call) {
        particles.send();
        (fixed ? CycleTracking_fixed : CycleTracking)<<<PARTICLES / 256, 256>>>(t.world.device, particles.device,
                                                                                 PARTICLES);
    }
    require(t.tallies.result() == tallies, "other tallies");
    same(t.flux.result(), flux);
}
