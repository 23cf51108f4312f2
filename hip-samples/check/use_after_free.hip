// JuliaGPU/AMDGPU.jl 422: an array is freed (there by the garbage collector) before the kernel runs that reads it.
#include "check.h"

__global__ void scale(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) output[i] = 2 * input[i];
}

static bool run(bool mended) {
    const int n = 4096;
    Array<float> output(n);
    std::vector<float> values(n);
    fill(values);
    float *input = nullptr;
    HIP(hipMalloc((void **)&input, n * sizeof(float)));
    HIP(hipMemcpy(input, values.data(), n * sizeof(float), hipMemcpyHostToDevice));
    if (!mended) HIP(hipFree(input)); // too early
    scale<<<n / 256, 256>>>(input, output.device, n);
    finished();
    if (mended) HIP(hipFree(input));
    output.receive();
    bool right = true;
    for (int i = 0; i < n; ++i) right &= output.host[i] == 2 * values[i];
    return right;
}
