// ORNL/HeCBench 256 (sosfil): in a pipeline of filters each work-item reads what its neighbour wrote in the last step,
// while the neighbour, maybe of another wave, writes that of this step.
#include "check.h"

const int SECTIONS = 128, SAMPLES = 160;

template <bool MENDED> __global__ void sosfilt(const int *in, int *out) {
    __shared__ int passed[SECTIONS];
    int tid = threadIdx.x, state = tid;
    passed[tid] = 0;
    __syncthreads();
    for (int step = 0; step < SAMPLES + SECTIONS; ++step) {
        int given = 0;
        if (tid > 0) given = passed[tid - 1];
        else if (step < SAMPLES) given = in[step];
        if constexpr (MENDED) __syncthreads();
        state = state * 3 + given;
        passed[tid] = state;
        if (tid == SECTIONS - 1 && step >= SECTIONS) out[step - SECTIONS] = state;
        __syncthreads();
    }
}

static bool run(bool mended) {
    Array<int> in(SAMPLES), out(SAMPLES);
    fill(in.host);
    in.send();
    if (mended) sosfilt<true><<<1, SECTIONS>>>(in.device, out.device);
    else sosfilt<false><<<1, SECTIONS>>>(in.device, out.device);
    finished();
    out.receive();
    std::vector<unsigned> state(SECTIONS), passed(SECTIONS);
    for (int n = 0; n < SECTIONS; ++n) state[n] = n;
    bool right = true;
    for (int step = 0; step < SAMPLES + SECTIONS; ++step) {
        std::vector<unsigned> before = passed;
        for (int n = 0; n < SECTIONS; ++n) {
            unsigned given = n > 0 ? before[n - 1] : step < SAMPLES ? in.host[step] : 0;
            passed[n] = state[n] = state[n] * 3 + given;
        }
        if (step >= SECTIONS) right &= out.host[step - SECTIONS] == int(passed[SECTIONS - 1]);
    }
    return right;
}
