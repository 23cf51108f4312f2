// ROCm/composable_kernel 616: an atomic operation at an address that is not a multiple of four bytes, which can crash
// the GPU, while loads and stores there work.
#include "check.h"

// A name of two bytes and a count of four.
const int PACKED = 6, ALIGNED = 8;

template <bool MENDED> __global__ void count(const int *names, unsigned char *records) {
    int name = names[blockIdx.x * blockDim.x + threadIdx.x];
    if constexpr (MENDED) {
        atomicAdd((unsigned *)(records + name * ALIGNED + 4), 1u);
    } else {
        atomicAdd((unsigned *)(records + name * PACKED + 2), 1u); // two bytes off
    }
}

static bool run(bool mended) {
    const int n = 512, kinds = 8, size = mended ? ALIGNED : PACKED;
    Array<int> names(n);
    Array<unsigned char> records(kinds * size);
    std::vector<unsigned> expected(kinds);
    for (int i = 0; i < n; ++i) ++expected[names.host[i] = i * 5 % kinds];
    names.send();
    if (mended) count<true><<<2, 256>>>(names.device, records.device);
    else count<false><<<2, 256>>>(names.device, records.device);
    finished();
    records.receive();
    bool right = true;
    for (int kind = 0; kind < kinds; ++kind) {
        unsigned found;
        memcpy(&found, &records.host[kind * size + size - 4], 4);
        right &= found == expected[kind];
    }
    return right;
}
