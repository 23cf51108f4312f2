// ROCm/hip-tests, Unit_hipMallocPitch_KernelLaunch: rows of floats are addressed by a pitch that counts bytes.
#include "check.h"

template <bool MENDED> __global__ void set(float *data, size_t pitch, int width) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x >= width) return;
    if constexpr (MENDED) {
        float *row = (float *)((char *)data + y * pitch);
        row[x] = float(x + y);
    } else {
        data[y * pitch + x] = float(x + y); // the pitch counts bytes
    }
}

static bool run(bool mended) {
    const int width = 100, height = 8;
    float *data = nullptr;
    size_t pitch = 0;
    HIP(hipMallocPitch((void **)&data, &pitch, width * sizeof(float), height));
    HIP(hipMemset2D(data, pitch, 0, width * sizeof(float), height));
    if (mended) set<true><<<height, 128>>>(data, pitch, width);
    else set<false><<<height, 128>>>(data, pitch, width);
    finished();
    std::vector<float> back(width * height);
    size_t row = width * sizeof(float);
    HIP(hipMemcpy2D(back.data(), row, data, pitch, row, height, hipMemcpyDeviceToHost));
    HIP(hipFree(data));
    bool right = true;
    for (int n = 0; n < width * height; ++n) right &= back[n] == float(n % width + n / width);
    return right;
}
