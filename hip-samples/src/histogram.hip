// Each workgroup counts into LDS and adds only what it saw to the global counts: atomics of both kinds.
#include "selfcheck.h"

constexpr int bins = 96;

__global__ void histogram(const unsigned char* input, unsigned* counts, int n) {
    __shared__ unsigned local[bins];
#pragma clang loop unroll(disable) vectorize(disable)
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) {
        local[bin] = 0;
    }
    __syncthreads();
#pragma clang loop unroll(disable)
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&local[input[i]], 1u);
    }
    __syncthreads();
#pragma clang loop unroll(disable) vectorize(disable)
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) {
        unsigned count = local[bin];
        if (count != 0) {
            atomicAdd(&counts[bin], count);
        }
    }
}

int main() {
    const int groups = 4, block = 128, n = 3000;
    std::vector<unsigned char> input(n);
    std::vector<unsigned> counts(bins, 0);
    for (int i = 0; i < n; ++i) {
        // Only every third bin is ever hit.
        input[i] = static_cast<unsigned char>((i * 7 + i / 64) % 32 * 3);
        counts[input[i]] += 1;
    }
    unsigned char* din = to_device(input);
    unsigned* dcounts = to_device(std::vector<unsigned>(bins, 0));
    histogram<<<groups, block>>>(din, dcounts, n);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    bool ok = matches("counts", take_back(dcounts, bins), counts);
    HIP_CHECK(hipFree(din));
    return finish(ok);
}
