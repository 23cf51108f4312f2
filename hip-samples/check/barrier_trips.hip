// m4rs-mt/ILGPU 90: in a tree the upper half leaves the loop with the barrier in each round, and the rest waits at it
// alone. AMD's hardware lets waves that have ended pass.
#include "check.h"

template <bool MENDED> __global__ void tree(const int *in, int *out) {
    __shared__ int sums[256];
    int tid = threadIdx.x;
    sums[tid] = in[tid];
    __syncthreads();
    for (int living = 128; living > 0; living /= 2) {
        if constexpr (MENDED) {
            if (tid < living) sums[tid] += sums[tid + living];
            __syncthreads(); // all work-items
        } else {
            if (tid >= living) return;
            sums[tid] += sums[tid + living];
            __syncthreads(); // fewer each time
        }
    }
    if (tid == 0) *out = sums[0];
}

static bool run(bool mended) {
    Array<int> in(256), out(1);
    for (int i = 0; i < 256; ++i) in.host[i] = i % 19 + 1;
    in.send();
    if (mended) tree<true><<<1, 256>>>(in.device, out.device);
    else tree<false><<<1, 256>>>(in.device, out.device);
    finished();
    out.receive();
    int sum = 0;
    for (int value : in.host) sum += value;
    return out.host[0] == sum;
}
