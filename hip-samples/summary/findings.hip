// Kernels in pairs: one that a summary is to say something of, and one alike of which it is not to. What it is to say
// is in expected.yaml. The argument is the name of the kernel that runs.
#include "../src/selfcheck.h"

#include <cstring>

constexpr unsigned rounds = 64;

// Half of the lanes of every wave do all the work.
__global__ void heavy_branch(unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
    if (threadIdx.x % 2 == 0) {
#pragma nounroll
        for (unsigned k = 0; k < rounds; ++k) {
            x = x * 3 + (k ^ x >> 3);
        }
    }
    out[i] = x;
}

// All lanes do the work, and one stores the result of another.
__global__ void light_branch(unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
#pragma nounroll
    for (unsigned k = 0; k < rounds; ++k) {
        x = x * 3 + (k ^ x >> 3);
    }
    out[i] = x;
    if (threadIdx.x == 0) {
        out[i] = 7;
    }
}

// Lane l goes l + 1 rounds.
__global__ void unequal_rounds(unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
#pragma nounroll
    for (unsigned k = 0; k <= threadIdx.x % 64; ++k) {
        x = x * 3 + (k ^ x >> 3);
    }
    out[i] = x;
}

// The number of rounds is loaded, and the same for all lanes of a wave.
__global__ void equal_rounds(unsigned* out, const unsigned* counts) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
    unsigned count = counts[i];
#pragma nounroll
    for (unsigned k = 0; k < count; ++k) {
        x = x * 3 + (k ^ x >> 3);
    }
    out[i] = x;
}

// All lanes add to one place, of which the compiler makes a loop that adds the lanes of a wave one by one.
__global__ void atomic_of_all_lanes(float* out) {
    __shared__ float sum;
    if (threadIdx.x == 0) {
        sum = 0;
    }
    __syncthreads();
    float x = threadIdx.x % 8;
    atomicAdd(&sum, x);
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// The lanes of a wave are added in a tree, and one of them adds to the place.
__global__ void atomic_of_a_tree(float* out) {
    __shared__ float sum;
    if (threadIdx.x == 0) {
        sum = 0;
    }
    __syncthreads();
    float x = threadIdx.x % 8;
    for (int distance = 32; distance > 0; distance /= 2) {
        x += __shfl_down(x, distance);
    }
    if (threadIdx.x % 64 == 0) {
        atomicAdd(&sum, x);
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Lanes read a column of words: all are in one bank.
__global__ void columns_of_all_lanes(unsigned* out) {
    __shared__ unsigned tile[64][64];
    unsigned lane = threadIdx.x, sum = 0;
    for (unsigned row = 0; row < 64; ++row) {
        tile[row][lane] = row * 5 + lane;
    }
    __syncthreads();
    for (unsigned k = 0; k < 64; ++k) {
        sum = sum * 3 + tile[lane][k];
    }
    out[blockIdx.x * 64 + lane] = sum;
}

// The same by the first lanes alone: of four lanes there are few conflicts, which the code does not show.
__global__ void columns_of_few_lanes(unsigned* out) {
    __shared__ unsigned tile[64][64];
    unsigned lane = threadIdx.x, sum = 0;
    for (unsigned row = 0; row < 64; ++row) {
        tile[row][lane] = row * 5 + lane;
    }
    __syncthreads();
    if (lane < 4) {
        for (unsigned k = 0; k < 64; ++k) {
            sum = sum * 3 + tile[lane][k];
        }
    }
    out[blockIdx.x * 64 + lane] = sum;
}

// Workgroups beyond `used` have nothing to do.
__global__ void groups_by_number(unsigned* out, unsigned used) {
    if (blockIdx.x >= used) {
        return;
    }
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
#pragma nounroll
    for (unsigned k = 0; k < rounds; ++k) {
        x = x * 3 + (k ^ x >> 3);
    }
    out[i] = x;
}

// 160 values that are all needed to the end: more than the 128 registers that lanes of workgroups of 1024 have.
using Values = unsigned __attribute__((ext_vector_type(32)));

__device__ unsigned mix_values(const Values* in) {
    Values a = in[0], b = in[1], c = in[2], d = in[3], e = in[4];
#pragma nounroll
    for (int round = 0; round < 4; ++round) {
        a = a * 3 + b;
        b = b * 3 + c;
        c = c * 3 + d;
        d = d * 3 + e;
        e = e * 3 + a;
    }
    a = (a ^ b) + (c ^ d) + e;
    unsigned sum = 0;
#pragma unroll
    for (int k = 0; k < 32; ++k) {
        sum = sum * 5 + a[k];
    }
    return sum;
}

__global__ void many_values(unsigned* out, const Values* in) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = mix_values(in + i % 16 * 5);
}

__global__ void __launch_bounds__(64) many_values_in_small_groups(unsigned* out, const Values* in) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = mix_values(in + i % 16 * 5);
}

// Each load needs the one before it, at four lines.
__global__ void chased_at_four_lines(unsigned* out, const unsigned* next) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, at = i % 4096;
#pragma nounroll
    for (unsigned k = 0; k < 8; ++k) {
        at = next[at];
        at = next[at + 1];
        at = next[at + 2];
        at = next[at + 3];
    }
    out[i] = at;
}

template <typename T>
__global__ void powers(T* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    T x = i % 3;
#pragma nounroll
    for (unsigned k = 0; k < 16; ++k) {
        x = x + x * (i % 2);
    }
    out[i] = x;
}

unsigned worked(unsigned x, unsigned count) {
    for (unsigned k = 0; k < count; ++k) {
        x = x * 3 + (k ^ x >> 3);
    }
    return x;
}

unsigned column(unsigned lane) {
    unsigned sum = 0;
    for (unsigned k = 0; k < 64; ++k) {
        sum = sum * 3 + lane * 5 + k;
    }
    return sum;
}

std::vector<unsigned> numbers(unsigned count, unsigned below) {
    std::vector<unsigned> all(count);
    unsigned x = 1;
    for (unsigned& number : all) {
        x = x * 1664525 + 1013904223;
        number = (x >> 8) % below;
    }
    return all;
}

// Launches workgroups that fill an array of T, and compares it.
template <typename T, typename Launch, typename Expected>
bool fills(const char* what, unsigned groups, unsigned size, Launch launch, Expected expected) {
    std::vector<T> values(groups * size);
    T* out = to_device(values);
    launch(dim3(groups), dim3(size), out);
    HIP_CHECK(hipGetLastError());
    for (unsigned i = 0; i < values.size(); ++i) {
        values[i] = expected(i);
    }
    return matches(what, take_back(out, values.size()), values);
}

bool run(const char* name) {
    auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
    if (is("heavy_branch")) {
        auto launch = [](dim3 groups, dim3 size, unsigned* out) { heavy_branch<<<groups, size>>>(out); };
        return fills<unsigned>(name, 104, 256, launch, [](unsigned i) { return i % 2 == 0 ? worked(i, rounds) : i; });
    }
    if (is("light_branch")) {
        auto launch = [](dim3 groups, dim3 size, unsigned* out) { light_branch<<<groups, size>>>(out); };
        return fills<unsigned>(name, 104, 256, launch,
                               [](unsigned i) { return i % 256 == 0 ? 7 : worked(i, rounds); });
    }
    if (is("unequal_rounds")) {
        auto launch = [](dim3 groups, dim3 size, unsigned* out) { unequal_rounds<<<groups, size>>>(out); };
        return fills<unsigned>(name, 104, 256, launch, [](unsigned i) { return worked(i, i % 64 + 1); });
    }
    if (is("equal_rounds")) {
        unsigned* counts = to_device(std::vector<unsigned>(104 * 256, rounds));
        auto launch = [counts](dim3 groups, dim3 size, unsigned* out) { equal_rounds<<<groups, size>>>(out, counts); };
        return fills<unsigned>(name, 104, 256, launch, [](unsigned i) { return worked(i, rounds); });
    }
    if (is("atomic_of_all_lanes")) {
        auto launch = [](dim3 groups, dim3 size, float* out) { atomic_of_all_lanes<<<groups, size>>>(out); };
        return fills<float>(name, 104, 256, launch, [](unsigned) { return 896.0f; });
    }
    if (is("atomic_of_a_tree")) {
        auto launch = [](dim3 groups, dim3 size, float* out) { atomic_of_a_tree<<<groups, size>>>(out); };
        return fills<float>(name, 104, 256, launch, [](unsigned) { return 896.0f; });
    }
    if (is("columns_of_all_lanes")) {
        auto launch = [](dim3 groups, dim3 size, unsigned* out) { columns_of_all_lanes<<<groups, size>>>(out); };
        return fills<unsigned>(name, 416, 64, launch, [](unsigned i) { return column(i % 64); });
    }
    if (is("columns_of_few_lanes")) {
        auto launch = [](dim3 groups, dim3 size, unsigned* out) { columns_of_few_lanes<<<groups, size>>>(out); };
        return fills<unsigned>(name, 416, 64, launch, [](unsigned i) { return i % 64 < 4 ? column(i % 64) : 0; });
    }
    if (is("few_groups_with_work") || is("all_groups_with_work")) {
        unsigned used = is("few_groups_with_work") ? 64 : 1024;
        auto launch = [used](dim3 groups, dim3 size, unsigned* out) { groups_by_number<<<groups, size>>>(out, used); };
        return fills<unsigned>(name, 1024, 64, launch,
                               [used](unsigned i) { return i / 64 < used ? worked(i, rounds) : 0; });
    }
    if (is("many_values") || is("many_values_in_small_groups")) {
        bool small = is("many_values_in_small_groups");
        std::vector<unsigned> host = numbers(16 * 160, 1000);
        const Values* in = reinterpret_cast<const Values*>(to_device(host));
        auto launch = [in, small](dim3 groups, dim3 size, unsigned* out) {
            small ? many_values_in_small_groups<<<groups, size>>>(out, in) : many_values<<<groups, size>>>(out, in);
        };
        return fills<unsigned>(name, 32, 64, launch, [&host](unsigned i) {
            std::vector<unsigned> values(host.begin() + i % 16 * 160, host.begin() + (i % 16 + 1) * 160);
            for (unsigned round = 0; round < 4; ++round) {
                for (unsigned k = 0; k < 160; ++k) {
                    values[k] = values[k] * 3 + values[(k + 32) % 160];
                }
            }
            unsigned sum = 0;
            for (unsigned k = 0; k < 32; ++k) {
                sum = sum * 5 + (values[k] ^ values[k + 32]) + (values[k + 64] ^ values[k + 96]) + values[k + 128];
            }
            return sum;
        });
    }
    if (is("chased_at_four_lines")) {
        std::vector<unsigned> host = numbers(4100, 4096);
        unsigned* next = to_device(host);
        auto launch = [next](dim3 groups, dim3 size, unsigned* out) {
            chased_at_four_lines<<<groups, size>>>(out, next);
        };
        return fills<unsigned>(name, 104, 256, launch, [&host](unsigned i) {
            unsigned at = i % 4096;
            for (unsigned k = 0; k < 32; ++k) {
                at = host[at + k % 4];
            }
            return at;
        });
    }
    if (is("powers")) {
        auto floats = [](dim3 groups, dim3 size, float* out) { powers<<<groups, size>>>(out); };
        auto doubles = [](dim3 groups, dim3 size, double* out) { powers<<<groups, size>>>(out); };
        auto expected = [](unsigned i) { return i % 3 * (i % 2 ? 65536.0f : 1.0f); };
        return fills<float>(name, 104, 256, floats, expected) && fills<double>(name, 104, 256, doubles, expected);
    }
    std::printf("FAIL: no kernel %s\n", name);
    return false;
}

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: findings KERNEL\n");
        return 2;
    }
    return finish(run(arguments[1]));
}
