// llnl/Quicksilver 56: the host takes what a kernel computes without waiting for it; here from managed memory, which it
// can read at any time.
#include "check.h"

__global__ void track(int *tallies, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) tallies[i] = i * 7 % 31; // what the host takes
}

static bool run(bool mended) {
    const int n = 3000;
    int *tallies = nullptr;
    HIP(hipMallocManaged((void **)&tallies, n * sizeof(int)));
    memset(tallies, 0, n * sizeof(int));
    track<<<(n + 255) / 256, 256>>>(tallies, n);
    HIP(hipGetLastError());
    if (mended) HIP(hipDeviceSynchronize());
    long sum = 0, expected = 0;
    for (int i = 0; i < n; ++i) sum += tallies[i]; // the kernel may still run
    HIP(hipDeviceSynchronize());
    HIP(hipFree(tallies));
    for (int i = 0; i < n; ++i) expected += i * 7 % 31;
    return sum == expected;
}
