// ORNL/HeCBench 169 (lut-gemm): a member of a structure has no value after the default constructor, and a branch
// depends on it. The mended version copies the whole structure, with the bytes between its members, which never get a
// value.
#include "check.h"

struct Config {
    char kind;
    int size; // three bytes after `kind`
};

template <bool MENDED> __global__ void construct(Config *config) {
    config->kind = 2;
    if constexpr (MENDED) config->size = 40;
}

__global__ void copy(const Config *from, Config *to) { *to = *from; }

__global__ void multiply(const Config *config, int *out) {
    if (config->size <= 32) return; // depends on `size`
    out[threadIdx.x] = config->kind * 10;
}

static bool run(bool mended) {
    Array<int> out(32);
    Config *made = nullptr, *used = nullptr;
    HIP(hipMalloc((void **)&made, sizeof(Config)));
    HIP(hipMalloc((void **)&used, sizeof(Config)));
    if (mended) construct<true><<<1, 1>>>(made);
    else construct<false><<<1, 1>>>(made);
    copy<<<1, 1>>>(made, used);
    multiply<<<1, 32>>>(used, out.device);
    finished();
    out.receive();
    HIP(hipFree(made));
    HIP(hipFree(used));
    bool right = true;
    for (int value : out.host) right &= value == 20;
    return right;
}
