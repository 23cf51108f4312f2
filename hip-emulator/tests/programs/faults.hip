// One fault each, and that every call says so afterwards: faults KIND
#include "check.h"

#include <cassert>

__global__ void store(int* data, int at) { data[at + threadIdx.x] = 1; }
__global__ void lds(int* out, int at) {
    __shared__ int staged[64];
    staged[threadIdx.x + at] = 1;
    out[threadIdx.x] = staged[threadIdx.x];
}
__global__ void claim(int limit) { assert(int(threadIdx.x) < limit && "lanes have a limit"); }
__device__ __attribute__((noinline)) int depth(int n, volatile int* last) {
    volatile int frame[8];
    frame[n % 8] = n;
    return n == 0 ? *last : depth(n - 1, last) + frame[n % 8];
}
__global__ void deep(int* out, int n) {
    volatile int last = 0;
    out[threadIdx.x] = depth(n, &last);
}
__global__ void trap() { __builtin_trap(); }

int main(int argc, char** argv) {
    int *data = nullptr, *other = nullptr;
    OK(hipMalloc(&data, 64 * sizeof(int)));
    OK(hipMalloc(&other, 64 * sizeof(int)));
    hipError_t expected = hipErrorIllegalAddress;
    const char* kind = argv[1];
    if (std::strcmp(kind, "far") == 0) {
        store<<<1, 64>>>(data, 16);
    } else if (std::strcmp(kind, "wild") == 0) {
        store<<<1, 64>>>(reinterpret_cast<int*>(0x10), 0);
    } else if (std::strcmp(kind, "freed") == 0) {
        OK(hipFree(other));
        store<<<1, 64>>>(other, 0);
    } else if (std::strcmp(kind, "lds") == 0) {
        lds<<<1, 64>>>(data, 1 << 20);
    } else if (std::strcmp(kind, "stack") == 0) {
        deep<<<1, 64>>>(data, 1000);
    } else if (std::strcmp(kind, "across") == 0) {
        store<<<1, 64>>>(reinterpret_cast<int*>(reinterpret_cast<char*>(data) + 2), 0);
    } else if (std::strcmp(kind, "assert") == 0) {
        expected = hipErrorAssert;
        claim<<<1, 64>>>(62);
    } else {
        expected = hipErrorLaunchFailure;
        trap<<<1, 1>>>();
    }
    CHECK(hipDeviceSynchronize() == expected);
    CHECK(hipGetLastError() == expected && hipGetLastError() == expected);
    int back[4];
    void* more = nullptr;
    CHECK(hipMemcpy(back, data, sizeof back, hipMemcpyDeviceToHost) == expected);
    CHECK(hipMalloc(&more, 16) == expected);
    store<<<1, 64>>>(data, 0);
    CHECK(hipPeekAtLastError() == expected);
    return verdict();
}
