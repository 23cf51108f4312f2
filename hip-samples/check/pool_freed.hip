// JuliaGPU/AMDGPU.jl 422, with the allocator that follows the order of a stream: memory is used after the point in the
// stream at which it was freed.
#include "check.h"

__global__ void add(int *data, int n) {
    int i = threadIdx.x;
    if (i < n) data[i] += i; // in the stream this comes after the memory was freed
}

static bool run(bool mended) {
    const int n = 256;
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    int *data = nullptr;
    std::vector<int> back(n);
    HIP(hipMallocAsync((void **)&data, n * sizeof(int), stream));
    HIP(hipMemsetAsync(data, 0, n * sizeof(int), stream));
    if (!mended) HIP(hipFreeAsync(data, stream)); // one launch too early
    add<<<1, n, 0, stream>>>(data, n);
    HIP(hipGetLastError());
    HIP(hipStreamSynchronize(stream));
    if (mended) {
        HIP(hipMemcpy(back.data(), data, n * sizeof(int), hipMemcpyDeviceToHost));
        HIP(hipFreeAsync(data, stream));
        HIP(hipStreamSynchronize(stream));
    }
    HIP(hipStreamDestroy(stream));
    bool right = true;
    for (int i = 0; i < n; ++i) right &= back[i] == i;
    return right;
}
