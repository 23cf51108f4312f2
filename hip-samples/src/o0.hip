// Built with -O0 -g: every variable lives in scratch, scalars spill into vector lanes, nothing is inlined.
#include "selfcheck.h"

__host__ __device__ unsigned weigh(const unsigned* window, int length) {
    unsigned total = 0;
    for (int k = 0; k < length; ++k) {
        if (window[k] % 2 == 0) {
            total += window[k] * (k + 1);
        } else {
            total ^= window[k];
        }
    }
    return total;
}

__global__ void windows(const unsigned* input, unsigned* output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    unsigned window[6];
    int length = 1 + i % 6;
    for (int k = 0; k < length; ++k) {
        window[k] = input[(i + k) % n];
    }
    output[i] = weigh(window, length);
}

int main() {
    const int n = 150, block = 128;
    std::vector<unsigned> input(n), output(n, 0);
    for (int i = 0; i < n; ++i) {
        input[i] = i * 37u + i / 3;
    }
    unsigned *din = to_device(input), *dout = to_device(output);
    windows<<<(n + block - 1) / block, block>>>(din, dout, n);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    for (int i = 0; i < n; ++i) {
        unsigned window[6];
        for (int k = 0; k < 1 + i % 6; ++k) {
            window[k] = input[(i + k) % n];
        }
        output[i] = weigh(window, 1 + i % 6);
    }
    bool ok = matches("output", take_back(dout, n), output);
    HIP_CHECK(hipFree(din));
    return finish(ok);
}
