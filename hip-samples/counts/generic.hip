// Accesses of LDS through generic pointers, which compile to FLAT instructions: of those of `weighted` the code says
// that they are of LDS, of those of `either` it does not. What they count is worked out in
// rewriter-tests/tests/mix_counts/programs.rs.
#include "../src/selfcheck.h"

constexpr int groups = 6, width = 128;   // of `weighted`
constexpr int rounds = 5, taps = 16;
constexpr int chosen = 4, times = 8;     // workgroups of `either`, and what each of its work-items reads

// In each round a workgroup puts a row of `values` and one of `weights` into LDS. Each work-item reads both there, tap
// by tap: the weight is the same in all of them.
__global__ __launch_bounds__(width) void weighted(const float* values, const float* weights, float* out) {
    __shared__ float row[width], weight[width];
    int i = threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
        int at = (blockIdx.x * rounds + round) * width + i;
        row[i] = values[at];
        weight[i] = weights[at];
        __syncthreads();
#pragma unroll 1
        for (int tap = 0; tap < taps; ++tap) {
            sum += static_cast<volatile float*>(row)[(i + tap) % width] * static_cast<volatile float*>(weight)[tap];
        }
        __syncthreads();
    }
    out[blockIdx.x * width + i] = sum;
}

// Each work-item reads what others have put into LDS, or what is in memory, as an argument says.
__global__ __launch_bounds__(width) void either(const float* values, float* out, int in_lds) {
    __shared__ float row[width];
    int i = threadIdx.x;
    row[i] = values[blockIdx.x * width + i];
    __syncthreads();
    const volatile float* from = in_lds ? row : values + blockIdx.x * width;
    float sum = 0;
#pragma unroll 1
    for (int time = 0; time < times; ++time) {
        sum += from[(i + time) % width];
    }
    out[blockIdx.x * width + i] = sum;
}

static float number(int i) {
    return static_cast<float>(i * 37 % 101 - 50) / 64;
}

static bool check_weighted() {
    std::vector<float> values(groups * rounds * width), weights(values.size()), expected(groups * width);
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = number(i);
        weights[i] = number(3 * i + 1);
    }
    for (int i = 0; i < groups * width; ++i) {
        for (int round = 0; round < rounds; ++round) {
            int at = (i / width * rounds + round) * width;
            for (int tap = 0; tap < taps; ++tap) {
                // Products of such numbers are exact, and so are sums of a few of them.
                expected[i] += values[at + (i + tap) % width] * weights[at + tap];
            }
        }
    }
    float *dvalues = to_device(values), *dweights = to_device(weights), *dout = to_device(expected);
    HIP_CHECK(hipMemset(dout, 0, expected.size() * sizeof(float)));
    weighted<<<groups, width>>>(dvalues, dweights, dout);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    HIP_CHECK(hipFree(dvalues));
    HIP_CHECK(hipFree(dweights));
    return matches("weighted", take_back(dout, expected.size()), expected);
}

static bool check_either(int in_lds) {
    std::vector<float> values(chosen * width), expected(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = number(i);
    }
    for (int i = 0; i < chosen * width; ++i) {
        for (int time = 0; time < times; ++time) {
            expected[i] += values[i / width * width + (i + time) % width];
        }
    }
    float *dvalues = to_device(values), *dout = to_device(expected);
    HIP_CHECK(hipMemset(dout, 0, expected.size() * sizeof(float)));
    either<<<chosen, width>>>(dvalues, dout, in_lds);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    HIP_CHECK(hipFree(dvalues));
    return matches(in_lds ? "from LDS" : "from memory", take_back(dout, expected.size()), expected);
}

int main(int argc, char** argv) {
    // With an argument: `either` reads LDS alone, or memory alone.
    bool lds_only = argc > 1 && argv[1][0] == 'l', memory_only = argc > 1 && argv[1][0] == 'm';
    bool ok = check_weighted();
    ok = (memory_only || check_either(1)) && ok;
    ok = (lds_only || check_either(0)) && ok;
    return finish(ok);
}
