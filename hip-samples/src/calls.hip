// Real device calls: a plain function, a recursive one, and one through a function pointer that differs between lanes.
// `__noinline__` is empty in HIP's headers, so the attribute is spelled out.
#include "selfcheck.h"

#define REAL_CALL __host__ __device__ __attribute__((noinline))

REAL_CALL unsigned scramble(unsigned value) {
    if (value % 4 == 1) {
        return value * 2654435761u ^ value >> 15;
    }
    unsigned digits = 0;
    while (value != 0) {
        digits += value % 10;
        value /= 10;
    }
    return digits;
}

REAL_CALL unsigned partitions(unsigned total, unsigned largest) {
    if (total == 0) {
        return 1;
    }
    unsigned ways = 0;
    for (unsigned part = 1; part <= largest && part <= total; ++part) {
        ways += partitions(total - part, part);
    }
    return ways;
}

REAL_CALL unsigned twice(unsigned value) { return value + value; }
REAL_CALL unsigned square(unsigned value) { return value * value; }
REAL_CALL unsigned flip(unsigned value) { return ~value; }

using Operation = unsigned (*)(unsigned);

__global__ void direct(unsigned* values) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] = scramble(values[i]);
}

__global__ void recursive(unsigned* values) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] = partitions(values[i] % 8, 8);
}

__global__ void indirect(unsigned* values) {
    Operation operations[] = {twice, square, flip};
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] = operations[values[i] % 3](i);
}

int main() {
    const unsigned groups = 2, block = 128, n = groups * block;
    std::vector<unsigned> start(n), expected(n);
    for (unsigned i = 0; i < n; ++i) {
        start[i] = i;
    }
    bool ok = true;

    unsigned* values = to_device(start);
    direct<<<groups, block>>>(values);
    HIP_CHECK(hipGetLastError());
    for (unsigned i = 0; i < n; ++i) {
        expected[i] = scramble(i);
    }
    ok &= matches("direct", take_back(values, n), expected);

    values = to_device(start);
    recursive<<<1, block>>>(values);
    HIP_CHECK(hipGetLastError());
    for (unsigned i = 0; i < n; ++i) {
        expected[i] = i < block ? partitions(i % 8, 8) : i;
    }
    ok &= matches("recursive", take_back(values, n), expected);

    values = to_device(start);
    indirect<<<groups, block>>>(values);
    HIP_CHECK(hipGetLastError());
    for (unsigned i = 0; i < n; ++i) {
        Operation operations[] = {twice, square, flip};
        expected[i] = operations[i % 3](i);
    }
    ok &= matches("indirect", take_back(values, n), expected);
    return finish(ok);
}
