// A program that is built in several ways, to compare the builds: what `diff` has to say is in main.rs.
#include "selfcheck.h"
LINES
#ifdef CALLS
#define HELPER __device__ __attribute__((noinline))
#else
#define HELPER __device__ inline
#endif
#ifndef UNROLL
#define UNROLL 1
#endif
#ifndef NAME
#define NAME steps_to_one
#endif
#define PRAGMA(text) _Pragma(#text)
#define UNROLLED(n) PRAGMA(clang loop unroll_count(n))

// Half, or three times and one: lanes of a wave take both sides.
HELPER unsigned next(unsigned value, unsigned* odd) {
    if (value % 2 != 0) {
        atomicAdd(odd, 1u);
        return 3 * value + 1;
    }
    return value / 2;
}

// Lanes leave the loop one after another.
__global__ void NAME(unsigned* counts, unsigned* odd) {
    unsigned value = threadIdx.x + 1, count = 0;
    while (value != 1) {
        value = next(value, odd);
        ++count;
    }
    counts[threadIdx.x] = count;
}

// 16 rounds of the whole wave.
__global__ void sums(const unsigned* in, unsigned* out) {
    unsigned sum = 0;
    UNROLLED(UNROLL)
    for (int i = 0; i < 16; ++i) {
        sum = sum * 31 + in[i * 256 + threadIdx.x];
    }
    out[threadIdx.x] = sum;
}

#ifndef WITHOUT_GUARD
// The last of four waves has 8 lanes to do.
__global__ void guard(unsigned* out, unsigned n) {
    if (threadIdx.x < n) {
        out[threadIdx.x] += threadIdx.x;
    }
}
#endif

#ifdef WITH_TWICE
__global__ void twice(unsigned* out) {
    out[threadIdx.x] *= 2;
}
#endif

int main() {
    std::vector<unsigned> counts(256, 0), odd(1, 0), in(16 * 256), out(256, 0);
    for (unsigned i = 0; i < in.size(); ++i) {
        in[i] = i * 7 % 13;
    }
    unsigned *dcounts = to_device(counts), *dodd = to_device(odd), *din = to_device(in), *dout = to_device(out);
    NAME<<<1, 256>>>(dcounts, dodd);
    sums<<<1, 256>>>(din, dout);
#ifndef WITHOUT_GUARD
    guard<<<1, 256>>>(dout, 200u);
#endif
#ifdef WITH_TWICE
    twice<<<1, 256>>>(dout);
#endif
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    for (unsigned i = 0; i < 256; ++i) {
        unsigned value = i + 1;
        while (value != 1) {
            odd[0] += value % 2;
            value = value % 2 != 0 ? 3 * value + 1 : value / 2;
            ++counts[i];
        }
    }
    bool ok = matches("counts", take_back(dcounts, 256), counts);
    ok &= matches("odd", take_back(dodd, 1), odd);
    return finish(ok);
}
