// The smallest real kernel: one bounds guard that only the last wave disagrees on.
#include "selfcheck.h"

__global__ void vectoradd(const float* a, const float* b, float* sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        sum[i] = a[i] + b[i];
    }
}

int main() {
    const int n = 1000, block = 256;
    std::vector<float> a(n), b(n), expected(n);
    for (int i = 0; i < n; ++i) {
        a[i] = 0.25f * i;
        b[i] = 1000.0f - 0.5f * i;
        expected[i] = a[i] + b[i];
    }
    float *da = to_device(a), *db = to_device(b), *dsum = to_device(std::vector<float>(n));
    vectoradd<<<(n + block - 1) / block, block>>>(da, db, dsum, n);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    bool ok = matches("sum", take_back(dsum, n), expected);
    HIP_CHECK(hipFree(da));
    HIP_CHECK(hipFree(db));
    return finish(ok);
}
