// Two launches of a kernel with many branches on lanes and dynamic LDS: with the larger one there is no room for
// counters in LDS as well. A third launch asks for more LDS than there is, and is refused, with counters or without.
#include <hip/hip_runtime.h>

#include <cstdio>

#define BRANCH(i) \
    if ((x >> ((i) & 31)) & 1) x = x * 3 + values[(t + (i)) & 255];
#define BRANCHES8(i)                                                                                                   \
    BRANCH(i) BRANCH(i + 1) BRANCH(i + 2) BRANCH(i + 3) BRANCH(i + 4) BRANCH(i + 5) BRANCH(i + 6) BRANCH(i + 7)
#define BRANCHES40(i) BRANCHES8(i) BRANCHES8(i + 8) BRANCHES8(i + 16) BRANCHES8(i + 24) BRANCHES8(i + 32)

__host__ __device__ unsigned mixed(unsigned x, unsigned t, const unsigned* values) {
    BRANCHES40(0) BRANCHES40(40) return x;
}

__global__ void branchy(unsigned* out) {
    extern __shared__ unsigned values[];
    unsigned t = threadIdx.x;
    values[t] = t * 7;
    __syncthreads();
    out[t] = mixed(t * 2654435761u, t, values);
}

int main() {
    unsigned *device, host[256], values[256];
    if (hipMalloc(&device, sizeof host) != hipSuccess) return 2;
    for (unsigned t = 0; t < 256; t++) values[t] = t * 7;
    for (unsigned bytes : {1024u, 61440u}) {
        (void)hipMemset(device, 0, sizeof host);
        branchy<<<1, 256, bytes>>>(device);
        if (hipGetLastError() != hipSuccess) return puts("FAIL: refused"), 1;
        if (hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost) != hipSuccess) return puts("FAIL: copy"), 1;
        for (unsigned t = 0; t < 256; t++)
            if (host[t] != mixed(t * 2654435761u, t, values)) return printf("FAIL: %u with %u bytes\n", t, bytes), 1;
    }
    branchy<<<1, 256, 70000>>>(device);
    puts(hipGetLastError() == hipSuccess ? "FAIL: not refused" : "PASS");
}
