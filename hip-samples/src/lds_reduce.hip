// A tree sum in LDS: a barrier in every round, and fewer threads at work each time.
#include "selfcheck.h"

constexpr int block = 256;

__global__ void lds_reduce(const unsigned* input, unsigned* sums) {
    __shared__ unsigned partial[block];
    int thread = threadIdx.x;
    partial[thread] = input[blockIdx.x * block + thread];
    __syncthreads();
#pragma clang loop unroll(disable)
    for (int width = block / 2; width > 0; width /= 2) {
        if (thread < width) {
            partial[thread] += partial[thread + width];
        }
        __syncthreads();
    }
    if (thread == 0) {
        sums[blockIdx.x] = partial[0];
    }
}

int main() {
    const int groups = 6, n = groups * block;
    std::vector<unsigned> input(n), sums(groups, 0);
    for (int i = 0; i < n; ++i) {
        input[i] = i * 2654435761u;
        sums[i / block] += input[i];
    }
    unsigned *din = to_device(input), *dsums = to_device(std::vector<unsigned>(groups));
    lds_reduce<<<groups, block>>>(din, dsums);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    bool ok = matches("sums", take_back(dsums, groups), sums);
    HIP_CHECK(hipFree(din));
    return finish(ok);
}
