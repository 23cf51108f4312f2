// FlyDSL 0.5.0, softmax: a reduction over a workgroup is called twice with one buffer in LDS, and nothing orders the
// second one's writes after the first one's reads. (symforce-org/symforce 465 and HeCBench's `lda` do the same.)
#include "check.h"

template <bool MENDED> __device__ float block_reduce(float value, float *shared, bool maximum) {
    for (int step = warpSize / 2; step > 0; step /= 2) {
        float other = __shfl_xor(value, step);
        value = maximum ? fmaxf(value, other) : value + other;
    }
    if constexpr (MENDED) __syncthreads();
    if (threadIdx.x % warpSize == 0) shared[threadIdx.x / warpSize] = value;
    __syncthreads();
    float result = shared[0]; // of the first wave
    for (int wave = 1; wave < blockDim.x / warpSize; ++wave) {
        float other = shared[wave];
        result = maximum ? fmaxf(result, other) : result + other;
    }
    return result;
}

template <bool MENDED> __global__ void softmax(const float *in, float *out) {
    __shared__ float shared[8];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float top = block_reduce<MENDED>(in[i], shared, true);
    float part = exp2f(in[i] - top);
    float sum = block_reduce<MENDED>(part, shared, false);
    out[i] = part / sum;
}

static bool run(bool mended) {
    const int rows = 4, n = 256;
    Array<float> in(rows * n), out(rows * n);
    fill(in.host);
    in.send();
    if (mended) softmax<true><<<rows, n>>>(in.device, out.device);
    else softmax<false><<<rows, n>>>(in.device, out.device);
    finished();
    out.receive();
    bool right = true;
    for (int row = 0; row < rows; ++row) {
        double top = -1e9, sum = 0;
        for (int i = 0; i < n; ++i) top = fmax(top, in.host[row * n + i]);
        for (int i = 0; i < n; ++i) sum += exp2(in.host[row * n + i] - top);
        for (int i = 0; i < n; ++i)
            right &= fabs(out.host[row * n + i] - exp2(in.host[row * n + i] - top) / sum) < 1e-5;
    }
    return right;
}
