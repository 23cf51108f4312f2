// EnzymeAD/Enzyme-JAX 2866 (and tile-ai/tilelang 2612): the two sides of a branch that differs between waves have
// barriers of their own, and waves meet that wait at different ones.
#include "check.h"

template <bool MENDED> __global__ void sides(const int *in, int *out) {
    __shared__ int passed[256];
    int tid = threadIdx.x;
    passed[tid] = in[tid];
    if constexpr (MENDED) {
        __syncthreads(); // one for both
        if (tid < 128) out[tid] = passed[255 - tid] * 3;
        else out[tid] = passed[255 - tid] + 100;
    } else {
        if (tid < 128) {
            __syncthreads(); // of the first half
            out[tid] = passed[255 - tid] * 3;
        } else {
            __syncthreads(); // of the second half
            out[tid] = passed[255 - tid] + 100;
        }
    }
}

static bool run(bool mended) {
    Array<int> in(256), out(256);
    fill(in.host);
    in.send();
    if (mended) sides<true><<<1, 256>>>(in.device, out.device);
    else sides<false><<<1, 256>>>(in.device, out.device);
    finished();
    out.receive();
    bool right = true;
    for (int i = 0; i < 256; ++i)
        right &= out.host[i] == (i < 128 ? in.host[255 - i] * 3 : in.host[255 - i] + 100);
    return right;
}
