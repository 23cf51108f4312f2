// Constant memory and device globals that the host writes and reads by symbol, before and after the kernel.
#include "selfcheck.h"

__constant__ int coefficients[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__device__ int scale = 10;
__device__ unsigned negatives;
__device__ int history[4];

__global__ void polynomial(const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int value = coefficients[i % 8] * x[i] + scale;
        if (value < 0) {
            atomicAdd(&negatives, 1u);
        }
        y[i] = value;
        if (i < 4) {
            history[i] = value - scale;
        }
    }
}

int main() {
    const int n = 200, block = 64;
    std::vector<int> x(n), y(n, 0);
    for (int i = 0; i < n; ++i) {
        x[i] = i - 50;
    }
    int *dx = to_device(x), *dy = to_device(y);
    bool ok = true;
    for (int round = 0; round < 2; ++round) {
        int scaled = 10, factors[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        unsigned zero = 0, below = 0;
        if (round == 1) {
            scaled = -7;
            factors[0] = -3;
            factors[5] = 60;
            HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(coefficients), factors, sizeof factors, 0, hipMemcpyHostToDevice));
            HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(scale), &scaled, sizeof scaled, 0, hipMemcpyHostToDevice));
            HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(negatives), &zero, sizeof zero, 0, hipMemcpyHostToDevice));
        }
        polynomial<<<(n + block - 1) / block, block>>>(dx, dy, n);
        HIP_CHECK(hipGetLastError());
        HIP_CHECK(hipDeviceSynchronize());
        std::vector<int> got(n), kept(2), expected_kept(2);
        unsigned counted = 0;
        for (int i = 0; i < n; ++i) {
            y[i] = factors[i % 8] * x[i] + scaled;
            below += y[i] < 0;
        }
        expected_kept = {y[2] - scaled, y[3] - scaled};
        HIP_CHECK(hipMemcpy(got.data(), dy, n * sizeof(int), hipMemcpyDeviceToHost));
        HIP_CHECK(hipMemcpyFromSymbol(&counted, HIP_SYMBOL(negatives), sizeof counted, 0, hipMemcpyDeviceToHost));
        HIP_CHECK(hipMemcpyFromSymbol(kept.data(), HIP_SYMBOL(history), 2 * sizeof(int), 2 * sizeof(int), hipMemcpyDeviceToHost));
        ok &= matches("y", got, y);
        ok &= matches("history", kept, expected_kept);
        std::printf("negatives: %u\n", counted);
        ok &= counted == below;
    }
    HIP_CHECK(hipFree(dx));
    HIP_CHECK(hipFree(dy));
    return finish(ok);
}
