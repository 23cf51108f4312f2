// ROCm/rocMLIR 2447: a reduction has fewer slots in LDS than the workgroup has work-items, and the idle ones write as
// well.
#include "check.h"

const int SLOTS = 192;

template <bool MENDED> __global__ void reduce(const float *in, float *out) {
    __shared__ float partial[SLOTS];
    int tid = threadIdx.x;
    float value = in[tid];
    if constexpr (MENDED) {
        if (tid < SLOTS) partial[tid] = value;
    } else {
        partial[tid] = value; // 256 work-items, 192 slots
    }
    __syncthreads();
    if (tid < SLOTS / 4) out[tid] = partial[tid] + partial[tid + 48] + partial[tid + 96] + partial[tid + 144];
}

static bool run(bool mended) {
    Array<float> in(256), out(SLOTS / 4);
    fill(in.host);
    in.send();
    if (mended) reduce<true><<<1, 256>>>(in.device, out.device);
    else reduce<false><<<1, 256>>>(in.device, out.device);
    finished();
    out.receive();
    bool right = true;
    for (int n = 0; n < SLOTS / 4; ++n)
        right &= out.host[n] == in.host[n] + in.host[n + 48] + in.host[n + 96] + in.host[n + 144];
    return right;
}
