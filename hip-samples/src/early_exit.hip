// A wave can end in several places: whole workgroups leave at once (three s_endpgm), and lanes leave one by one.
#include "selfcheck.h"

__global__ void early_exit(const int* input, int* output, int n, int skip) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x == skip) {
        output[i] = -1;
        __builtin_amdgcn_endpgm();
    }
    if (blockIdx.x == skip + 2) {
        atomicAdd(&output[n + 1], 1);
        __builtin_amdgcn_endpgm();
    }
    if (i >= n) {
        return;
    }
    int value = input[i];
    if (value < 0) {
        atomicAdd(&output[n], 1);
        return;
    }
    output[i] = value * 3;
}

int main() {
    const int groups = 6, block = 128, n = 700, skip = 1;
    std::vector<int> input(n), output(n + 2, 0);
    for (int i = 0; i < n; ++i) {
        input[i] = i % 16 == 5 ? -i : i;
    }
    int *din = to_device(input), *dout = to_device(output);
    early_exit<<<groups, block>>>(din, dout, n, skip);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    for (int i = 0; i < groups * block; ++i) {
        if (i / block == skip) {
            output[i] = -1;
        } else if (i / block == skip + 2) {
            output[n + 1] += 1;
        } else if (i < n && input[i] < 0) {
            output[n] += 1;
        } else if (i < n) {
            output[i] = input[i] * 3;
        }
    }
    bool ok = matches("output", take_back(dout, n + 2), output);
    HIP_CHECK(hipFree(din));
    return finish(ok);
}
