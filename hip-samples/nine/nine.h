// What the programs share beyond selfcheck.h. All their numbers are chosen so that the host gets the same bits as the
// device: small multiples of a power of two, or operations that both round once (fma, division, square root).
#pragma once
#include "../src/selfcheck.h"

#include <cmath>

// The same numbers on every run: a linear congruential generator (Numerical Recipes' constants), upper bits only.
struct Numbers {
    uint32_t state;
    explicit Numbers(uint32_t seed) : state(seed) {}
    // From 0 to limit - 1.
    uint32_t below(uint32_t limit) {
        state = state * 1664525u + 1013904223u;
        return static_cast<uint32_t>((static_cast<uint64_t>(state) * limit) >> 32);
    }
    // A multiple of 1 / steps in [-1, 1).
    float signed_unit(uint32_t steps) {
        return (static_cast<float>(below(2 * steps)) - static_cast<float>(steps)) / static_cast<float>(steps);
    }
};

// Ends the program if a launch was refused or a kernel failed.
inline void finished() {
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
}

inline int groups_for(int items, int size) { return (items + size - 1) / size; }
