// ROCm/hip 940: a kernel faults as long as it has its atomicAdd. Here the place that it adds to is computed from a
// number whose largest value is one place past the end.
#include "check.h"

template <bool MENDED> __global__ void histogram(const float *values, int *bins, int count) {
    float value = values[blockIdx.x * blockDim.x + threadIdx.x];
    int bin = int(value * count);
    if constexpr (MENDED) {
        if (bin == count) bin = count - 1;
        atomicAdd(&bins[bin], 1);
    } else {
        atomicAdd(&bins[bin], 1); // 1.0 has a bin of its own
    }
}

static bool run(bool mended) {
    const int n = 512, count = 64;
    Array<float> values(n);
    Array<int> bins(count);
    std::vector<int> expected(count);
    for (int i = 0; i < n; ++i) {
        values.host[i] = float(i % 129) / 128;
        ++expected[std::min(int(values.host[i] * count), count - 1)];
    }
    values.send();
    if (mended) histogram<true><<<2, 256>>>(values.device, bins.device, count);
    else histogram<false><<<2, 256>>>(values.device, bins.device, count);
    finished();
    bins.receive();
    return bins.host == expected;
}
