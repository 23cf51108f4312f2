// What the test `coverage` compiles: lines that are executed, lines that are not, and templates.
#include "selfcheck.h"

#ifndef UNROLL
#define UNROLL 1
#endif

__device__ inline unsigned mix(unsigned value, unsigned salt) {
    value ^= value << 13;
    return value * 2654435761u + salt;
}

__global__ void covered(unsigned* data, unsigned rounds) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = data[i];
#pragma clang loop unroll_count(UNROLL)
    for (unsigned round = 0; round < rounds; ++round) {
        value = mix(value, round);
    }
    if (i % 3 == 0) {
        atomicAdd(&data[i], value); // by some lanes
    } else if (rounds == 77) {
        atomicXor(&data[i], value); // by no lane
    } else {
        data[i] = mix(value, 5) ^ mix(value, 6);
    }
}

__global__ void not_called(unsigned* data) {
    data[threadIdx.x] *= 3; // in no dispatch
}

template <unsigned Step>
__global__ void stepped(unsigned* data) {
    data[blockIdx.x * blockDim.x + threadIdx.x] += Step; // in both instances
}

int main(int argc, char**) {
    const unsigned n = 512;
    std::vector<unsigned> data(n, 7u);
    unsigned* device = to_device(data);
    covered<<<4, 64>>>(device, 6);
    stepped<1><<<4, 64>>>(device);
    stepped<2><<<8, 64>>>(device);
    if (argc > 9) not_called<<<1, 64>>>(device);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    HIP_CHECK(hipFree(device));
    return finish(true);
}
