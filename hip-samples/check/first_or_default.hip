// After turboderp-org/exllamav2 279: the first workgroup is thought to be ready before the last one begins, which
// mostly holds. When it does not, the last one writes what it needs itself, while the first one does.
#include "check.h"

template <bool MENDED> __global__ void scale(float *factor, int *ready, float *out) {
    if (threadIdx.x != 0) return;
    if (!MENDED && blockIdx.x == 0) {
        *factor = 2; // of the first workgroup
        __hip_atomic_store(ready, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    }
    if (blockIdx.x != gridDim.x - 1) {
        out[blockIdx.x] = blockIdx.x;
        return;
    }
    if (!MENDED && __hip_atomic_load(ready, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0) {
        *factor = 2.5f; // of the last one
    }
    out[blockIdx.x] = *factor * blockIdx.x; // with the factor of any of them
}

__global__ void prepare(float *factor) {
    if (threadIdx.x == 0) *factor = 2;
}

static bool run(bool mended) {
    const int groups = 80;
    Array<float> factor(1), out(groups);
    Array<int> ready(1);
    if (mended) {
        prepare<<<1, 64>>>(factor.device);
        scale<true><<<groups, 64>>>(factor.device, ready.device, out.device);
    } else {
        scale<false><<<groups, 64>>>(factor.device, ready.device, out.device);
    }
    finished();
    out.receive();
    return out.host[groups - 1] == 2.0f * (groups - 1);
}
