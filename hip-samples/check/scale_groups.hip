// ROCm/aiter 5331: a kernel for blocks of 256 elements reads eight scales, and 192 elements have only six. Here the
// scales are in constant memory.
#include "check.h"

__constant__ float scales[6];

template <bool MENDED> __global__ void dequantize(const float *packed, float *out, int groups, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, group = i / size;
    float scale;
    if constexpr (MENDED) {
        scale = group < groups ? scales[group] : 0;
    } else {
        scale = scales[group]; // two groups more than there are scales
    }
    out[i] = scale * packed[i];
}

static bool run(bool mended) {
    const int n = 256, size = 32;
    Array<float> packed(n), out(n);
    fill(packed.host);
    packed.send();
    float given[6] = {1, 2, 3, 4, 5, 6};
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(scales), given, sizeof given));
    if (mended) dequantize<true><<<1, n>>>(packed.device, out.device, 6, size);
    else dequantize<false><<<1, n>>>(packed.device, out.device, 6, size);
    finished();
    out.receive();
    bool right = true;
    for (int i = 0; i < n; ++i) right &= out.host[i] == (i / size < 6 ? given[i / size] : 0) * packed.host[i];
    return right;
}
