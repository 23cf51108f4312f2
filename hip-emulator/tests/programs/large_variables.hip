// Variables of the device after 3 GiB of others.
#include "check.h"

__device__ unsigned char far_bytes[(size_t(3) << 30) + 12345];
__device__ int near_words[4] = {1, 2, 3, 4};
__device__ unsigned after;

__global__ void touch(size_t at, int count) {
    int lane = threadIdx.x;
    if (lane < count) far_bytes[at + lane] = near_words[lane % 4];
    __syncthreads();
    if (lane == 0) {
        unsigned sum = 7;
        for (int i = 0; i < count; ++i) sum += far_bytes[at + i];
        after = sum;
    }
}

int main() {
    size_t at = size_t(3) << 30;
    touch<<<1, 64>>>(at, 20);
    OK(hipDeviceSynchronize());
    unsigned found = 0;
    OK(hipMemcpyFromSymbol(&found, HIP_SYMBOL(after), sizeof found));
    CHECK(found == 7 + 5 * (1 + 2 + 3 + 4));
    unsigned char bytes[21];
    OK(hipMemcpyFromSymbol(bytes, HIP_SYMBOL(far_bytes), sizeof bytes, at));
    for (int i = 0; i < 20; ++i) CHECK(bytes[i] == i % 4 + 1);
    CHECK(bytes[20] == 0);
    return verdict();
}
