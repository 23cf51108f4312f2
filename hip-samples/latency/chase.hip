// One lane follows a ring of indices: each load's address is what the load before it returned, so that nothing hides
// how long it takes. The rings are of a size for L1, for L2 and for memory.
#include "../src/selfcheck.h"

// Lines of no cache are longer.
const size_t line = 128 / sizeof(unsigned);

__device__ __forceinline__ void chase(const unsigned* ring, unsigned* end, int steps) {
    // 0, which the compiler does not know: it would take scalar loads for a uniform address.
    unsigned at = threadIdx.x;
    for (int step = 0; step < steps; ++step) {
        at = ring[at];
    }
    *end = at;
}

// 4 KiB, 128 times around: 32 loads miss L1.
__global__ void chase_l1(const unsigned* ring, unsigned* end, int steps) { chase(ring, end, steps); }
// 512 KiB, 4 times around: the first time from memory, then from L2, as it is larger than L1 and GL1.
__global__ void chase_l2(const unsigned* ring, unsigned* end, int steps) { chase(ring, end, steps); }
// 16 MiB in steps of 4 KiB, once: nothing is in a cache.
__global__ void chase_memory(const unsigned* ring, unsigned* end, int steps) { chase(ring, end, steps); }

// Walks `bytes` in steps of `stride` from element 0 on, so many times, but for the last step.
static bool run(const char* what, void (*kernel)(const unsigned*, unsigned*, int), size_t bytes, size_t stride,
                int rounds) {
    const size_t step = stride / sizeof(unsigned), count = bytes / stride;
    std::vector<unsigned> ring(bytes / sizeof(unsigned));
    for (size_t i = 0; i < count; ++i) {
        ring[i * step] = static_cast<unsigned>((i + 1) % count * step);
    }
    const int steps = static_cast<int>(count) * rounds - 1;
    unsigned at = 0;
    for (int i = 0; i < steps; ++i) {
        at = ring[at];
    }
    unsigned* device = to_device(ring);
    unsigned* end = to_device(std::vector<unsigned>(1, 1));
    kernel<<<1, 1>>>(device, end, steps);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    const bool ok = matches(what, take_back(end, 1), std::vector<unsigned>(1, at));
    HIP_CHECK(hipFree(device));
    return ok;
}

int main() {
    bool ok = run("l1", chase_l1, 4 << 10, line * sizeof(unsigned), 128);
    ok &= run("l2", chase_l2, 512 << 10, line * sizeof(unsigned), 4);
    ok &= run("memory", chase_memory, 16 << 20, 4 << 10, 1);
    return finish(ok);
}
