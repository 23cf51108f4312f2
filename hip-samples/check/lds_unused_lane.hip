// paranumal/hipBone 46: work-items that have no element of their own do not write their place in LDS, which the matrix
// product that follows reads all the same: NaN in rare cases.
#include "check.h"

const int SIZE = 128;

template <bool MENDED> __global__ void apply(const float *r, float *out, int n) {
    __shared__ float q[SIZE];
    int tid = threadIdx.x;
    float value = tid < n ? r[tid] : 0;
    if constexpr (MENDED) {
        q[tid] = value;
    } else {
        if (tid < n) q[tid] = value; // the rest has no value
    }
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < SIZE; ++i) sum += q[(tid + i) % SIZE];
    out[tid] = sum;
}

static bool run(bool mended) {
    const int n = 121;
    Array<float> r(n), out(SIZE);
    fill(r.host);
    r.send();
    if (mended) apply<true><<<1, SIZE>>>(r.device, out.device, n);
    else apply<false><<<1, SIZE>>>(r.device, out.device, n);
    finished();
    out.receive();
    float sum = 0;
    for (float value : r.host) sum += value;
    bool right = true;
    for (float value : out.host) right &= value == sum;
    return right;
}
