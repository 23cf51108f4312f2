// kokkos/kokkos 9433: memory is given back to the pool by another stream than the one whose kernel still uses it.
#include "check.h"

__global__ void smooth(float *data, int n, int rounds) {
    int i = threadIdx.x;
    float value = data[i]; // memory that is freed meanwhile
    for (int round = 0; round < rounds; ++round) value = value * 0.5f + 1;
    data[i] = value; // the same
}

static bool run(bool mended) {
    const int n = 256;
    hipStream_t worker, other;
    HIP(hipStreamCreateWithFlags(&worker, hipStreamNonBlocking));
    HIP(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
    float *data = nullptr, *next = nullptr;
    HIP(hipMallocAsync((void **)&data, n * sizeof(float), worker));
    HIP(hipMemsetAsync(data, 0, n * sizeof(float), worker));
    smooth<<<1, n, 0, worker>>>(data, n, 2000);
    HIP(hipGetLastError());
    if (mended) {
        HIP(hipStreamSynchronize(worker));
        HIP(hipFreeAsync(data, other));
    } else {
        HIP(hipFreeAsync(data, other)); // the kernel of the other stream may still run
    }
    HIP(hipMallocAsync((void **)&next, n * sizeof(float), other));
    HIP(hipMemsetAsync(next, 0x7f, n * sizeof(float), other));
    std::vector<unsigned> back(n);
    HIP(hipStreamSynchronize(other));
    HIP(hipMemcpy(back.data(), next, n * sizeof(float), hipMemcpyDeviceToHost));
    HIP(hipFreeAsync(next, other));
    HIP(hipStreamSynchronize(worker));
    HIP(hipStreamSynchronize(other));
    HIP(hipStreamDestroy(worker));
    HIP(hipStreamDestroy(other));
    bool right = true;
    for (unsigned word : back) right &= word == 0x7f7f7f7f;
    return right;
}
