// ROCm/aiter 5191: rows of a workspace are sized by one number for all rows and written by a number for each row; the
// last row ends after the workspace, in the slack of the allocator.
#include "check.h"

template <bool MENDED> __global__ void select(const int *top_k, int *indices, int stride) {
    int row = blockIdx.x, k = top_k[row];
    for (int i = threadIdx.x; i < k; i += blockDim.x) {
        if constexpr (MENDED) {
            if (i < stride) indices[row * stride + i] = row + i;
        } else {
            indices[row * stride + i] = row + i; // the row may be longer than the stride
        }
    }
}

static bool run(bool mended) {
    const int rows = 8, stride = 50;
    Array<int> top_k(rows, 40);
    top_k.host[rows - 1] = 60;
    top_k.send();
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    int *indices = nullptr, *after = nullptr;
    HIP(hipMallocAsync((void **)&indices, rows * stride * sizeof(int), stream));
    HIP(hipMallocAsync((void **)&after, 4096, stream));
    HIP(hipMemsetAsync(indices, 0, rows * stride * sizeof(int), stream));
    if (mended) select<true><<<rows, 64, 0, stream>>>(top_k.device, indices, stride);
    else select<false><<<rows, 64, 0, stream>>>(top_k.device, indices, stride);
    HIP(hipGetLastError());
    std::vector<int> back(rows * stride);
    HIP(hipStreamSynchronize(stream));
    HIP(hipMemcpy(back.data(), indices, rows * stride * sizeof(int), hipMemcpyDeviceToHost));
    HIP(hipFreeAsync(indices, stream));
    HIP(hipFreeAsync(after, stream));
    HIP(hipStreamSynchronize(stream));
    HIP(hipStreamDestroy(stream));
    bool right = true;
    for (int row = 0; row < rows; ++row)
        for (int i = 0; i < stride; ++i)
            right &= back[row * stride + i] == (i < top_k.host[row] ? row + i : 0);
    return right;
}
