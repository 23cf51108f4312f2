// Shared memory whose size the launch decides, beside a static array: each workgroup reverses its slice and totals it.
#include "selfcheck.h"

__global__ void reverse(const int* input, int* output, int* totals) {
    extern __shared__ int staged[];
    __shared__ int total;
    int thread = threadIdx.x;
    int i = blockIdx.x * blockDim.x + thread;
    if (thread == 0) {
        total = 0;
    }
    staged[thread] = input[i];
    __syncthreads();
    int value = staged[blockDim.x - 1 - thread];
    output[i] = value;
    if (value % 3 == 0) {
        atomicAdd(&total, value);
    }
    __syncthreads();
    if (thread == 0) {
        totals[blockIdx.x] = total;
    }
}

bool run(int groups, int block) {
    const int n = groups * block;
    std::vector<int> input(n), output(n), totals(groups, 0);
    for (int i = 0; i < n; ++i) {
        input[i] = i;
    }
    int *din = to_device(input), *dout = to_device(output), *dtotals = to_device(totals);
    reverse<<<groups, block, block * sizeof(int)>>>(din, dout, dtotals);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    for (int i = 0; i < n; ++i) {
        output[i] = i / block * block + (block - 1 - i % block);
        totals[i / block] += i % 3 == 0 ? i : 0;
    }
    bool ok = matches("reversed", take_back(dout, n), output);
    ok &= matches("totals", take_back(dtotals, groups), totals);
    HIP_CHECK(hipFree(din));
    return ok;
}

int main() {
    bool ok = run(3, 192);
    ok &= run(2, 320);
    return finish(ok);
}
