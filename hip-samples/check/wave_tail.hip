// Mantevo/miniFE 13: the last steps of a tree have no barriers, because one wave is thought to do them alone; but their
// inputs are of other waves, and where waves have 32 lanes there are two.
#include "check.h"

template <bool MENDED> __global__ void dot(const int *x, int *out) {
    __shared__ volatile int red[256];
    int tid = threadIdx.x;
    red[tid] = x[blockIdx.x * 256 + tid];
    __syncthreads();
    if constexpr (MENDED) {
        for (int step = 128; step > 0; step /= 2) {
            if (tid < step) red[tid] = red[tid] + red[tid + step];
            __syncthreads();
        }
    } else {
        if (tid < 128) red[tid] = red[tid] + red[tid + 128]; // of two or four waves
        if (tid < 64) red[tid] = red[tid] + red[tid + 64];   // one wave of 64 lanes, two of 32
        if (tid < 32) {
            red[tid] = red[tid] + red[tid + 32]; // one wave
            for (int step = 16; step > 0; step /= 2)
                if (tid < step) red[tid] = red[tid] + red[tid + step];
        }
    }
    if (tid == 0) out[blockIdx.x] = red[0];
}

static bool run(bool mended) {
    const int groups = 4;
    Array<int> x(groups * 256), out(groups);
    for (int n = 0; n < groups * 256; ++n) x.host[n] = n % 23 + 1;
    x.send();
    if (mended) dot<true><<<groups, 256>>>(x.device, out.device);
    else dot<false><<<groups, 256>>>(x.device, out.device);
    finished();
    out.receive();
    bool right = true;
    for (int group = 0; group < groups; ++group) {
        int sum = 0;
        for (int i = 0; i < 256; ++i) sum += x.host[group * 256 + i];
        right &= out.host[group] == sum;
    }
    return right;
}
