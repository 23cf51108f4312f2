// 1bit-MONSTER/1bit-MONSTER 2344: pinned memory from which hipMemcpyAsync copies is filled again while it copies.
#include "check.h"

__global__ void add(const int *keys, const int *values, int *out) {
    out[threadIdx.x] = keys[threadIdx.x] * 1000 + values[threadIdx.x];
}

static bool run(bool mended) {
    const int n = 256;
    Array<int> keys(n), values(n), out(n);
    int *staging = nullptr;
    hipStream_t stream;
    HIP(hipHostMalloc((void **)&staging, n * sizeof(int), hipHostMallocDefault));
    HIP(hipStreamCreate(&stream));
    for (int i = 0; i < n; ++i) staging[i] = i;
    HIP(hipMemcpyAsync(keys.device, staging, n * sizeof(int), hipMemcpyHostToDevice, stream));
    if (mended) {
        HIP(hipStreamSynchronize(stream));
        for (int i = 0; i < n; ++i) staging[i] = n - i;
    } else {
        for (int i = 0; i < n; ++i) staging[i] = n - i; // the copy may still read it
    }
    HIP(hipMemcpyAsync(values.device, staging, n * sizeof(int), hipMemcpyHostToDevice, stream));
    add<<<1, n, 0, stream>>>(keys.device, values.device, out.device);
    HIP(hipGetLastError());
    HIP(hipStreamSynchronize(stream));
    out.receive();
    HIP(hipStreamDestroy(stream));
    HIP(hipHostFree(staging));
    bool right = true;
    for (int i = 0; i < n; ++i) right &= out.host[i] == i * 1000 + n - i;
    return right;
}
