// Launches workgroups that wait for each other, by what it is told of how many fit, and then a few that do not wait.
// With counters fewer fit: the kernel has nearly all the registers that leave room for so many.
#include "check.h"

constexpr int LIVE = 100;
constexpr int THREADS = 256;

__global__ __launch_bounds__(THREADS) void together(float* out, const float* in, unsigned* arrived, int wait) {
    float kept[LIVE];
    for (int i = 0; i < LIVE; ++i) {
        kept[i] = in[(threadIdx.x + i * 64) & 1023];
    }
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < LIVE; ++i) {
            kept[i] = kept[i] > 0.5f * round ? kept[(i + 7) % LIVE] * 0.5f + i : kept[i] + kept[(i + 1) % LIVE];
        }
    }
    if (wait != 0 && threadIdx.x == 0) {
        __hip_atomic_fetch_add(arrived, 1u, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
        while (__hip_atomic_load(arrived, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < gridDim.x) {
        }
    }
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < LIVE; ++i) {
        sum += kept[i] * (i + 1);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main() {
    int held = 0;
    OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&held, together, THREADS, 0));
    // Those of two compute units.
    int groups = held * 2, wait = 1;
    std::printf("%d workgroups on a multiprocessor\n", held);
    float *out = nullptr, *in = nullptr;
    unsigned* arrived = nullptr;
    OK(hipMalloc(&out, size_t(groups) * THREADS * sizeof(float)));
    OK(hipMalloc(&in, 4096));
    OK(hipMalloc(&arrived, 4));
    OK(hipMemset(in, 63, 4096));
    OK(hipMemset(arrived, 0, 4));
    void* arguments[] = {&out, &in, &arrived, &wait};
    OK(hipLaunchCooperativeKernel(reinterpret_cast<void*>(together), dim3(groups), dim3(THREADS), arguments, 0, 0));
    OK(hipDeviceSynchronize());
    unsigned came = 0;
    OK(hipMemcpy(&came, arrived, 4, hipMemcpyDeviceToHost));
    CHECK(came == unsigned(groups));
    std::vector<float> first(THREADS), last(THREADS);
    OK(hipMemcpy(first.data(), out, THREADS * sizeof(float), hipMemcpyDeviceToHost));
    OK(hipMemcpy(last.data(), out + size_t(groups - 1) * THREADS, THREADS * sizeof(float), hipMemcpyDeviceToHost));
    CHECK(std::memcmp(first.data(), last.data(), THREADS * sizeof(float)) == 0);
    together<<<3, THREADS>>>(out, in, arrived, 0);
    OK(hipDeviceSynchronize());
    std::printf("%.3f\n", first[17]);
    return verdict();
}
