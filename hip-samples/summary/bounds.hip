// Kernels of which it is known what bounds them. What a summary is to say is in expected.yaml. The argument is the name
// of the kernel that runs.
#include "../src/selfcheck.h"

#include <cmath>
#include <cstring>

// Twice the 8 MiB of an MI210's L2.
constexpr unsigned large = 4 << 20;

// One load and one store of a word.
__global__ void copy(unsigned* out, const unsigned* in) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

// Stores alone, of four words each.
__global__ void fill(uint4* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = make_uint4(4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3);
}

// A loop of divisions.
__global__ void divide(float* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = i % 7 + 2.0f;
#pragma nounroll
    for (int k = 0; k < 32; ++k) {
        x = 6.0f / x;
    }
    out[i] = x;
}

// A loop of square roots.
__global__ void roots(float* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = i % 2;
#pragma nounroll
    for (int k = 0; k < 32; ++k) {
        x = sqrtf(x);
    }
    out[i] = x;
}

// A loop of sines.
__global__ void sines(float* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = i % 2;
#pragma nounroll
    for (int k = 0; k < 32; ++k) {
        x = sinf(x);
    }
    out[i] = x > 2.0f ? 1.0f : 0.0f;
}

// 100 of the 128 work-items have something to do.
__global__ void hundred(unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
    if (threadIdx.x < 100) {
#pragma nounroll
        for (unsigned k = 0; k < 64; ++k) {
            x = x * 3 + (k ^ x >> 3);
        }
        out[i] = x;
    }
}

// As many rounds as `hundred` by all work-items.
__global__ void all_of_them(unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
#pragma nounroll
    for (unsigned k = 0; k < 64; ++k) {
        x = x * 3 + (k ^ x >> 3);
    }
    out[i] = x;
}

// Only the first workgroups have something to do, and all go to barriers together.
__global__ void idle_at_barriers(unsigned* out, unsigned used) {
    __shared__ unsigned tile[64];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 64;
    unsigned mine = 0;
#pragma nounroll
    for (unsigned k = 0; k < 8; ++k) {
        if (i < used) {
            tile[lane] = i + k;
        }
        __syncthreads();
        if (i < used) {
            mine += tile[(lane + 1) % 64];
        }
        __syncthreads();
    }
    if (i < used) {
        out[i] = mine;
    }
}

// Three of four waves multiply, with all of their lanes; the fourth goes through the same code without one, or past it.
__global__ void waves_agree(unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
#pragma nounroll
    for (unsigned k = 0; k < 16; ++k) {
        if (i / 64 % 4 != 0) {
            x = x * 3 + k;
        }
    }
    out[i] = x;
}

// A hundred launches of hardly anything.
__global__ void tick(unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = out[i] + 1;
}

// Words from all over an array.
__global__ void gather(unsigned* out, const unsigned* index, const unsigned* in) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[index[i]];
}

// Much to compute, and one store for each work-item, to places that are far apart.
__global__ void compute_then_store(unsigned* out, unsigned groups) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
#pragma nounroll
    for (unsigned k = 0; k < 256; ++k) {
        x = x * 3 + (k ^ x >> 3);
    }
    out[threadIdx.x * groups + blockIdx.x] = x;
}

unsigned worked(unsigned x, unsigned count) {
    for (unsigned k = 0; k < count; ++k) {
        x = x * 3 + (k ^ x >> 3);
    }
    return x;
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
    if (is("copy")) {
        std::vector<unsigned> host(large);
        for (unsigned i = 0; i < large; ++i) {
            host[i] = i * 3;
        }
        unsigned* in = to_device(host);
        auto launch = [in](dim3 groups, dim3 size, unsigned* out) { copy<<<groups, size>>>(out, in); };
        return fills<unsigned>(name, large / 256, 256, launch, [](unsigned i) { return i * 3; });
    }
    if (is("fill")) {
        auto launch = [](dim3 groups, dim3 size, unsigned* out) {
            fill<<<groups, size.x / 4>>>(reinterpret_cast<uint4*>(out));
        };
        return fills<unsigned>(name, 4 * large / 1024, 1024, launch, [](unsigned i) { return i; });
    }
    if (is("divide")) {
        auto launch = [](dim3 groups, dim3 size, float* out) { divide<<<groups, size>>>(out); };
        return fills<float>(name, 832, 256, launch, [](unsigned i) {
            float x = i % 7 + 2.0f;
            for (int k = 0; k < 32; ++k) {
                x = 6.0f / x;
            }
            return x;
        });
    }
    if (is("roots")) {
        auto launch = [](dim3 groups, dim3 size, float* out) { roots<<<groups, size>>>(out); };
        return fills<float>(name, 832, 256, launch, [](unsigned i) { return float(i % 2); });
    }
    if (is("sines")) {
        auto launch = [](dim3 groups, dim3 size, float* out) { sines<<<groups, size>>>(out); };
        return fills<float>(name, 832, 256, launch, [](unsigned) { return 0.0f; });
    }
    if (is("hundred")) {
        auto launch = [](dim3 groups, dim3 size, unsigned* out) { hundred<<<groups, size>>>(out); };
        return fills<unsigned>(name, 832, 128, launch,
                               [](unsigned i) { return i % 128 < 100 ? worked(i, 64) : 0; });
    }
    if (is("all_of_them")) {
        auto launch = [](dim3 groups, dim3 size, unsigned* out) { all_of_them<<<groups, size>>>(out); };
        return fills<unsigned>(name, 832, 128, launch, [](unsigned i) { return worked(i, 64); });
    }
    if (is("idle_at_barriers")) {
        unsigned used = 4096;
        auto launch = [used](dim3 groups, dim3 size, unsigned* out) { idle_at_barriers<<<groups, size>>>(out, used); };
        return fills<unsigned>(name, 2048, 64, launch, [used](unsigned i) {
            return i < used ? 8 * (i / 64 * 64 + (i + 1) % 64) + 28 : 0;
        });
    }
    if (is("waves_agree")) {
        auto launch = [](dim3 groups, dim3 size, unsigned* out) { waves_agree<<<groups, size>>>(out); };
        return fills<unsigned>(name, 416, 256, launch, [](unsigned i) {
            unsigned x = i;
            for (unsigned k = 0; k < 16 && i / 64 % 4 != 0; ++k) {
                x = x * 3 + k;
            }
            return x;
        });
    }
    if (is("tick")) {
        auto launch = [](dim3 groups, dim3 size, unsigned* out) {
            for (int k = 0; k < 100; ++k) {
                tick<<<groups, size>>>(out);
            }
        };
        return fills<unsigned>(name, 416, 64, launch, [](unsigned) { return 100; });
    }
    if (is("gather")) {
        unsigned count = 104 * 1024;
        std::vector<unsigned> index(count), host(large);
        unsigned x = 1;
        for (unsigned& number : index) {
            x = x * 1664525 + 1013904223;
            number = (x >> 8) % large;
        }
        for (unsigned i = 0; i < large; ++i) {
            host[i] = i * 3;
        }
        unsigned *from = to_device(index), *in = to_device(host);
        auto launch = [from, in](dim3 groups, dim3 size, unsigned* out) { gather<<<groups, size>>>(out, from, in); };
        return fills<unsigned>(name, 416, 256, launch, [&](unsigned i) { return index[i] * 3; });
    }
    if (is("compute_then_store")) {
        auto launch = [](dim3 groups, dim3 size, unsigned* out) { compute_then_store<<<groups, size>>>(out, 416); };
        return fills<unsigned>(name, 416, 256, launch,
                               [](unsigned i) { return worked(i % 416 * 256 + i / 416, 256); });
    }
    std::printf("FAIL: no kernel %s\n", name);
    return false;
}

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: bounds KERNEL\n");
        return 2;
    }
    return finish(run(arguments[1]));
}
