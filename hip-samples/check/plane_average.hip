// kynema/kynema-sgf 8: the average over a plane is summed up in memory by several workgroups without atomics.
#include "check.h"

template <bool MENDED> __global__ void average(const int *field, int *planes, int width) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, field[(blockIdx.y * gridDim.x + blockIdx.x) * width + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        if constexpr (MENDED) {
            atomicAdd(&planes[blockIdx.y], sum);
        } else {
            planes[blockIdx.y] += sum; // other workgroups have the same plane
        }
    }
}

static bool run(bool mended) {
    const int width = 64, groups = 16, levels = 3;
    Array<int> field(width * groups * levels), planes(levels);
    for (size_t n = 0; n < field.host.size(); ++n) field.host[n] = n % 11 + 1;
    field.send();
    dim3 grid(groups, levels);
    if (mended) average<true><<<grid, width>>>(field.device, planes.device, width);
    else average<false><<<grid, width>>>(field.device, planes.device, width);
    finished();
    planes.receive();
    bool right = true;
    for (int level = 0; level < levels; ++level) {
        int sum = 0;
        for (int i = 0; i < width * groups; ++i) sum += field.host[level * width * groups + i];
        right &= planes.host[level] == sum;
    }
    return right;
}
