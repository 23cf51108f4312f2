// Energies of poses of a ligand at a protein, after miniBUDE's fasten_main: a work-item has two poses and walks over
// all atoms, which are the same for all lanes. As in the original, atoms and forces are packed structures, of which the
// compiler knows no alignment: it takes vector loads for them.

#include "leo.h"

static const int LIGAND = 2, PROTEIN = 32, TYPES = 8, PER_ITEM = 2, GROUP = 64, POSES = GROUP * PER_ITEM * 912;
static const float HARDNESS = 38, SOLVATION = 5.5f, CLOSE = 1, CHARGE = 45;

struct __attribute__((packed)) Atom {
    float x, y, z;
    int type;
};

struct __attribute__((packed)) Force {
    int bond;
    float radius, hydrophobic, charge;
};

// What two kinds of atoms do to each other, whatever their distance.
struct Pair {
    float radii, charge, reach, solvation, distance;
    bool only_attracts, solvates;
    __host__ __device__ Pair(const Force &a, const Force &b) {
        radii = a.radius + b.radius;
        charge = a.charge * b.charge;
        reach = a.bond == 70 && b.bond == 70 ? 4 : 2;
        only_attracts = a.bond == 69 || b.bond == 69;
        bool opposite = a.hydrophobic < 0 ? b.hydrophobic > 0 : a.hydrophobic > 0 && b.hydrophobic < 0;
        solvation = opposite ? fabsf(a.hydrophobic) + fabsf(b.hydrophobic) : a.hydrophobic + b.hydrophobic;
        bool both = a.hydrophobic < 0 && b.hydrophobic < 0, one = a.hydrophobic < 0 || b.hydrophobic < 0;
        distance = both ? SOLVATION : one ? CLOSE : -1;
        solvates = a.hydrophobic != 0;
    }
    __host__ __device__ float energy(float x, float y, float z) const {
        float apart = sqrtf(x * x + y * y + z * z), gap = apart - radii;
        bool inside = gap < 0;
        float sum = inside ? (1 - apart * (1 / radii)) * 2 * HARDNESS : 0;
        float pull = gap < reach ? charge * (inside ? 1 : 1 - gap * (1 / reach)) : 0;
        sum += CHARGE * (only_attracts ? -fabsf(pull) : pull);
        if (gap < distance && solvates) sum += solvation * (inside ? 1 : 1 - gap * (1 / distance));
        return sum;
    }
};

// A pose: a rotation by three angles, and a translation.
struct Transform {
    float m[3][4];
    __host__ __device__ void set(const float (&angle)[3], const float (&by)[3]) {
        float s[3], c[3];
        for (int n = 0; n < 3; ++n) {
            s[n] = sinf(angle[n]);
            c[n] = cosf(angle[n]);
        }
        float rows[3][4] = {{c[1] * c[2], s[0] * s[1] * c[2] - c[0] * s[2], c[0] * s[1] * c[2] + s[0] * s[2], by[0]},
                            {c[1] * s[2], s[0] * s[1] * s[2] + c[0] * c[2], c[0] * s[1] * s[2] - s[0] * c[2], by[1]},
                            {-s[1], s[0] * c[1], c[0] * c[1], by[2]}};
        for (int n = 0; n < 12; ++n) m[n / 4][n % 4] = rows[n / 4][n % 4];
    }
    __host__ __device__ float at(int row, const Atom &a) const {
        return m[row][3] + a.x * m[row][0] + a.y * m[row][1] + a.z * m[row][2];
    }
};

__device__ static void pose(Transform &t, const float *poses, int n) {
    float angle[3], by[3];
    for (int k = 0; k < 3; ++k) {
        angle[k] = poses[n + k * POSES];
        by[k] = poses[n + (k + 3) * POSES];
    }
    t.set(angle, by);
}

__global__ void __launch_bounds__(GROUP) fasten_main(int ligands, int proteins, Atom *protein, Atom *ligand,
                                                     Force *forces, float *poses, float *energies) {
    int first = blockIdx.x * GROUP * PER_ITEM + threadIdx.x;
    Transform t[PER_ITEM];
    float sum[PER_ITEM] = {};
    for (int n = 0; n < PER_ITEM; ++n) pose(t[n], poses, first + n * GROUP);
    for (int l = 0; l < ligands; ++l) {
        Atom a = ligand[l];
        Force of_a = forces[a.type];
        for (int p = 0; p < proteins; ++p) {
            Atom b = protein[p];
            Pair pair(forces[b.type], of_a);
            for (int n = 0; n < PER_ITEM; ++n)
                sum[n] += pair.energy(t[n].at(0, a) - b.x, t[n].at(1, a) - b.y, t[n].at(2, a) - b.z);
        }
    }
    for (int n = 0; n < PER_ITEM; ++n) energies[first + n * GROUP] = sum[n] * 0.5f;
}

// Sixteen bytes by a scalar load.
template <typename T> __device__ static T scalar(const T *from) {
    typedef int Words __attribute__((ext_vector_type(4)));
    static_assert(sizeof(T) == sizeof(Words), "sixteen bytes");
    Words words;
#ifdef __HIP_DEVICE_COMPILE__
    asm volatile("s_load_dwordx4 %0, %1, 0\n\ts_waitcnt lgkmcnt(0)" : "=s"(words) : "s"(from) : "memory");
#endif
    return __builtin_bit_cast(T, words);
}

__global__ void __launch_bounds__(GROUP)
    fasten_main_fixed(int ligands, int proteins, const Atom *__restrict__ protein, const Atom *__restrict__ ligand,
                      const Force *__restrict__ forces, const float *__restrict__ poses, float *__restrict__ energies) {
    int first = blockIdx.x * GROUP * PER_ITEM + threadIdx.x;
    Transform t[PER_ITEM];
    float sum[PER_ITEM] = {};
    for (int n = 0; n < PER_ITEM; ++n) pose(t[n], poses, first + n * GROUP);
    for (int l = 0; l < ligands; ++l) {
        Atom a = scalar(ligand + l);
        Force of_a = scalar(forces + a.type);
        float x[PER_ITEM], y[PER_ITEM], z[PER_ITEM];
        for (int n = 0; n < PER_ITEM; ++n) {
            x[n] = t[n].at(0, a);
            y[n] = t[n].at(1, a);
            z[n] = t[n].at(2, a);
        }
        for (int p = 0; p < proteins; ++p) {
            Atom b = scalar(protein + p);
            Pair pair(scalar(forces + b.type), of_a);
            for (int n = 0; n < PER_ITEM; ++n) sum[n] += pair.energy(x[n] - b.x, y[n] - b.y, z[n] - b.z);
        }
    }
    for (int n = 0; n < PER_ITEM; ++n) energies[first + n * GROUP] = sum[n] * 0.5f;
}

static void compute(bool fixed) {
    Array<Atom> protein(PROTEIN), ligand(LIGAND);
    Array<Force> forces(TYPES);
    Array<float> poses(size_t(POSES) * 6, 7, 0.125f), energies(POSES);
    for (int n = 0; n < PROTEIN; ++n)
        protein.host[n] = {n * 7 % 11 - 5.f, n * 5 % 13 - 6.f, n * 3 % 9 - 4.f, n % TYPES};
    for (int n = 0; n < LIGAND; ++n) ligand.host[n] = {0.5f * n, 0.25f - n, 1.5f * n, (3 + 2 * n) % TYPES};
    for (int n = 0; n < TYPES; ++n)
        forces.host[n] = {68 + n % 3, 1.2f + 0.1f * n, n % 4 == 3 ? 0 : (n % 2 ? -0.3f : 0.4f) * (n + 1),
                          0.2f * n - 0.7f};
    protein.send();
    ligand.send();
    forces.send();
    for (int call = 0; call < CALLS; ++call)
        if (fixed)
            fasten_main_fixed<<<POSES / GROUP / PER_ITEM, GROUP>>>(LIGAND, PROTEIN, protein.device, ligand.device,
                                                                   forces.device, poses.device, energies.device);
        else
            fasten_main<<<POSES / GROUP / PER_ITEM, GROUP>>>(LIGAND, PROTEIN, protein.device, ligand.device,
                                                             forces.device, poses.device, energies.device);
    std::vector<float> expected(POSES), got = energies.result();
    for (int n = 0; n < POSES; ++n) {
        float angle[3], by[3];
        for (int k = 0; k < 3; ++k) {
            angle[k] = poses.host[n + k * POSES];
            by[k] = poses.host[n + (k + 3) * POSES];
        }
        Transform t;
        t.set(angle, by);
        for (const Atom &a : ligand.host)
            for (const Atom &b : protein.host)
                expected[n] += 0.5f * Pair(forces.host[b.type], forces.host[a.type])
                                          .energy(t.at(0, a) - b.x, t.at(1, a) - b.y, t.at(2, a) - b.z);
    }
    // At the edges of zones, the last bit of a distance decides.
    int apart = 0;
    for (int n = 0; n < POSES; ++n) apart += std::fabs(got[n] - expected[n]) > 1e-2f * (1 + std::fabs(expected[n]));
    require(apart < POSES / 100, "other energies");
}
