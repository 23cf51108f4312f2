// An if/else that splits every other wave in half, beside a twin whose condition never splits a wave.
// A workgroup of 128 threads is two waves of 64: `< 32` cuts the first one, `> 63` cuts exactly between them.
#include "selfcheck.h"

__global__ void divergent(unsigned* out, unsigned* hits) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 32) {
        out[i] = i * 7u + 1u;
    } else {
        atomicAdd(&hits[i], i);
    }
}

__global__ void non_divergent(unsigned* out, unsigned* hits) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x > 63) {
        out[i] = i * 7u + 1u;
    } else {
        atomicAdd(&hits[i], i);
    }
}

int main() {
    const unsigned groups = 16, block = 128, n = groups * block;
    bool ok = true;
    for (int twin = 0; twin < 2; ++twin) {
        std::vector<unsigned> out(n, 5u), hits(n, 9u);
        unsigned *dout = to_device(out), *dhits = to_device(hits);
        if (twin == 0) {
            divergent<<<groups, block>>>(dout, dhits);
        } else {
            non_divergent<<<groups, block>>>(dout, dhits);
        }
        HIP_CHECK(hipGetLastError());
        HIP_CHECK(hipDeviceSynchronize());
        for (unsigned i = 0; i < n; ++i) {
            unsigned thread = i % block;
            if (twin == 0 ? thread < 32 : thread > 63) {
                out[i] = i * 7u + 1u;
            } else {
                hits[i] += i;
            }
        }
        ok &= matches(twin == 0 ? "divergent out" : "non-divergent out", take_back(dout, n), out);
        ok &= matches(twin == 0 ? "divergent hits" : "non-divergent hits", take_back(dhits, n), hits);
    }
    return finish(ok);
}
