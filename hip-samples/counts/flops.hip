// Kernels whose floating-point operations follow from the source: Fourier transforms, a stencil, and pairs of numbers.
// Each is there with every product and sum rounded, and with multiplications and additions fused where the compiler
// may. What they count is worked out in rewriter-tests/tests/mix_counts/programs.rs. They are built without the
// vectorizer of straight-line code: it computes what nothing uses, to have pairs.
#include "../src/selfcheck.h"

#include <cmath>
#include <complex>

constexpr int transforms = 3;
constexpr int items = 1024;               // that have pairs
constexpr int nx = 64, ny = 12, nz = 10;   // of the stencil: a row is 64 work-items

struct complex32 {
    float re, im;
};

// One butterfly: four products and six sums.
template <bool fused>
__device__ inline void butterfly(complex32& a, complex32& b, complex32 w) {
    if constexpr (fused) {
#pragma clang fp contract(fast)
        complex32 t = {w.re * b.re - w.im * b.im, w.re * b.im + w.im * b.re};
        b = {a.re - t.re, a.im - t.im};
        a = {a.re + t.re, a.im + t.im};
    } else {
#pragma clang fp contract(off)
        complex32 t = {w.re * b.re - w.im * b.im, w.re * b.im + w.im * b.re};
        b = {a.re - t.re, a.im - t.im};
        a = {a.re + t.re, a.im + t.im};
    }
}

// A transform of 2^bits points for each workgroup of 2^(bits-1) work-items, in LDS. `roots` has the first half of the
// roots of one, so that nothing else is computed.
template <int bits, bool fused>
__global__ void fft(const complex32* in, const complex32* roots, complex32* out) {
    constexpr int points = 1 << bits, half = points / 2;
    __shared__ complex32 values[points];
    int i = threadIdx.x, first = blockIdx.x * points;
    values[__brev(i) >> (32 - bits)] = in[first + i];
    values[__brev(i + half) >> (32 - bits)] = in[first + i + half];
    __syncthreads();
    for (int stage = 0; stage < bits; ++stage) {
        int distance = 1 << stage, place = i & (distance - 1);
        int at = 2 * (i - place) + place;
        butterfly<fused>(values[at], values[at + distance], roots[place << (bits - 1 - stage)]);
        __syncthreads();
    }
    out[first + i] = values[i];
    out[first + i + half] = values[i + half];
}

// A point and its six neighbours: two products and six sums for each point inside.
template <bool fused>
__global__ void stencil(const float* u, float* out, float middle, float beside) {
    int x = threadIdx.x, y = blockIdx.x * blockDim.y + threadIdx.y, z = blockIdx.y;
    if (x == 0 || x == nx - 1 || y == 0 || y == ny - 1 || z == 0 || z == nz - 1) {
        return;
    }
    int i = (z * ny + y) * nx + x;
    if constexpr (fused) {
#pragma clang fp contract(fast)
        out[i] = middle * u[i]
            + beside * (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] + u[i - nx * ny] + u[i + nx * ny]);
    } else {
#pragma clang fp contract(off)
        out[i] = middle * u[i]
            + beside * (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] + u[i - nx * ny] + u[i + nx * ny]);
    }
}

// Pairs of numbers, for which some targets have instructions: two products and two sums.
typedef float pair __attribute__((ext_vector_type(2)));

template <bool fused>
__global__ void pairs(const pair* x, pair* y, float by) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if constexpr (fused) {
#pragma clang fp contract(fast)
        y[i] = y[i] + x[i] * by;
    } else {
#pragma clang fp contract(off)
        y[i] = y[i] + x[i] * by;
    }
}

// Numbers between -1 and 1.
static float number(int i) {
    return static_cast<float>(i * 37 % 101 - 50) / 64;
}

// Whether values are what the definition says, as far as single precision goes.
static bool near(const char* what, double worst) {
    bool ok = worst < 1e-3;
    std::printf("%s: %s\n", what, ok ? "right" : "wrong");
    return ok;
}

template <int bits, bool fused>
static bool check_fft(const char* name) {
    constexpr int points = 1 << bits;
    std::vector<complex32> in(transforms * points), roots(points / 2);
    for (int i = 0; i < transforms * points; ++i) {
        in[i] = {number(i), number(3 * i + 1)};
    }
    const double turn = 2 * std::acos(-1.0) / points;
    for (int i = 0; i < points / 2; ++i) {
        roots[i] = {static_cast<float>(std::cos(turn * i)), static_cast<float>(-std::sin(turn * i))};
    }
    complex32 *din = to_device(in), *droots = to_device(roots), *dout = to_device(in);
    fft<bits, fused><<<transforms, points / 2>>>(din, droots, dout);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    std::vector<complex32> out = take_back(dout, transforms * points);
    double worst = 0;
    for (int of = 0; of < transforms; ++of) {
        for (int k = 0; k < points; ++k) {
            std::complex<double> sum = 0;
            for (int i = 0; i < points; ++i) {
                const complex32& value = in[of * points + i];
                int angle = static_cast<int>(static_cast<long long>(i) * k % points);
                sum += std::complex<double>(value.re, value.im) * std::polar(1.0, -turn * angle);
            }
            const complex32& found = out[of * points + k];
            worst = std::max(worst, std::abs(sum - std::complex<double>(found.re, found.im)));
        }
    }
    HIP_CHECK(hipFree(din));
    HIP_CHECK(hipFree(droots));
    return near(name, worst);
}

template <bool fused>
static bool check_stencil(const char* name) {
    const float middle = 0.5f, beside = 1.0f / 12;
    std::vector<float> u(nx * ny * nz), zero(nx * ny * nz, 0);
    for (int i = 0; i < nx * ny * nz; ++i) {
        u[i] = number(i);
    }
    float *du = to_device(u), *dout = to_device(zero);
    stencil<fused><<<dim3(ny / 4, nz), dim3(nx, 4)>>>(du, dout, middle, beside);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    std::vector<float> out = take_back(dout, nx * ny * nz);
    double worst = 0;
    for (int z = 0; z < nz; ++z) {
        for (int y = 0; y < ny; ++y) {
            for (int x = 0; x < nx; ++x) {
                int i = (z * ny + y) * nx + x;
                bool inside = x > 0 && x < nx - 1 && y > 0 && y < ny - 1 && z > 0 && z < nz - 1;
                double expected = 0;
                if (inside) {
                    double sum = 0;
                    for (int step : {1, nx, nx * ny}) {
                        sum += static_cast<double>(u[i - step]) + u[i + step];
                    }
                    expected = middle * u[i] + beside * sum;
                }
                worst = std::max(worst, std::abs(expected - out[i]));
            }
        }
    }
    HIP_CHECK(hipFree(du));
    return near(name, worst);
}

template <bool fused>
static bool check_pairs(const char* name) {
    std::vector<pair> x(items), y(items);
    for (int i = 0; i < items; ++i) {
        x[i] = {number(i), number(i + 7)};
        y[i] = {number(2 * i), number(5 * i)};
    }
    pair *dx = to_device(x), *dy = to_device(y);
    pairs<fused><<<items / 256, 256>>>(dx, dy, 0.3f);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    std::vector<pair> out = take_back(dy, items);
    double worst = 0;
    for (int i = 0; i < items; ++i) {
        for (int of = 0; of < 2; ++of) {
            worst = std::max(worst, std::abs(y[i][of] + 0.3 * x[i][of] - out[i][of]));
        }
    }
    HIP_CHECK(hipFree(dx));
    return near(name, worst);
}

int main() {
    bool ok = check_fft<6, false>("fft of 64, rounded");
    ok &= check_fft<6, true>("fft of 64, fused");
    ok &= check_fft<8, false>("fft of 256, rounded");
    ok &= check_fft<8, true>("fft of 256, fused");
    ok &= check_fft<10, false>("fft of 1024, rounded");
    ok &= check_fft<10, true>("fft of 1024, fused");
    ok &= check_stencil<false>("stencil, rounded");
    ok &= check_stencil<true>("stencil, fused");
    ok &= check_pairs<false>("pairs, rounded");
    ok &= check_pairs<true>("pairs, fused");
    return finish(ok);
}
