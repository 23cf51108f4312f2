// What a program sees of the modelled clock: times of events around kernels, copies and fills, order between streams,
// and the clocks of kernels. Prints everything that it sees; without a model of time ("host") it only checks that
// events have times.
#include "check.h"

#include <hip/hip_ext.h>

#include <cstdint>
#include <cstdlib>
#include <string>

// `wall_clock64()`, which older headers lack.
__device__ static uint64_t wall_clock() {
#if defined(__gfx1100__)
    return __builtin_amdgcn_s_sendmsg_rtnl(0x83);
#elif defined(__AMDGCN__)
    return __builtin_amdgcn_s_memrealtime();
#else
    return 0;
#endif
}

static constexpr int WORK = 4096;
static constexpr size_t BYTES = size_t(1) << 20;

// The clocks at its start and at its end, each as late and as early as it can be read.
__global__ void spin(uint64_t* clocks, float* out, int turns) {
    uint64_t first = clock64(), first_wall = wall_clock();
    float value = out[threadIdx.x];
    for (int turn = 0; turn < turns; ++turn) {
        value = value * 1.5f + 1.0f;
    }
    out[threadIdx.x] = value;
    __threadfence();
    if (threadIdx.x == 0) {
        clocks[0] = first;
        clocks[1] = first_wall;
        clocks[2] = clock64();
        clocks[3] = wall_clock();
    }
}

// As many workgroups as make the device full.
__global__ void wide(float* out, int turns) {
    float value = float(threadIdx.x);
    for (int turn = 0; turn < turns; ++turn) {
        value = value * 1.5f + 1.0f;
    }
    if (value == 0.0f) {
        out[0] = value;
    }
}

static double between(hipEvent_t start, hipEvent_t stop) {
    float ms = -1;
    OK(hipEventElapsedTime(&ms, start, stop));
    return ms;
}

// Microseconds, as the program sees them.
static void say(const char* name, double ms) { std::printf("%s %.9g\n", name, ms * 1e3); }

static uint64_t* clocks;
static float* out;

static void show_clocks(const char* name) {
    uint64_t seen[4];
    OK(hipMemcpy(seen, clocks, sizeof seen, hipMemcpyDeviceToHost));
    std::printf("%s %llu %llu %llu %llu\n", name, (unsigned long long)seen[0], (unsigned long long)seen[1],
                (unsigned long long)seen[2], (unsigned long long)seen[3]);
    CHECK(seen[1] < seen[3]);
}

int main(int argc, char** argv) {
    const bool modelled = argc < 2 || std::string(argv[1]) != "host";
    OK(hipMalloc(&clocks, 64));
    OK(hipMalloc(&out, 1024));
    char* device;
    char* other;
    OK(hipMalloc(&device, BYTES));
    OK(hipMalloc(&other, BYTES));
    std::vector<char> host(BYTES, 1);
    OK(hipMemset(out, 0, 1024));
    hipStream_t one, two;
    OK(hipStreamCreateWithFlags(&one, hipStreamNonBlocking));
    OK(hipStreamCreateWithFlags(&two, hipStreamNonBlocking));
    hipEvent_t events[4];
    for (hipEvent_t& event : events) {
        OK(hipEventCreate(&event));
    }
    auto& [a, b, c, d] = events;

    // Nothing between two events; one kernel; two; the clocks of the first and the last.
    OK(hipDeviceSynchronize());
    OK(hipEventRecord(a, one));
    OK(hipEventRecord(b, one));
    OK(hipEventSynchronize(b));
    if (modelled) {
        CHECK(between(a, b) == 0);
    }
    OK(hipEventRecord(a, one));
    spin<<<1, 64, 0, one>>>(clocks, out, WORK);
    OK(hipEventRecord(b, one));
    OK(hipEventSynchronize(b));
    CHECK(hipEventQuery(b) == hipSuccess);
    CHECK(between(b, a) == -between(a, b) && between(a, b) > 0);
    say("one", between(a, b));
    show_clocks("clocks");
    OK(hipEventRecord(a, one));
    spin<<<1, 64, 0, one>>>(clocks, out, WORK);
    spin<<<1, 64, 0, one>>>(clocks, out, 2 * WORK);
    OK(hipEventRecord(b, one));
    while (hipEventQuery(b) == hipErrorNotReady) {
    }
    say("two", between(a, b));
    show_clocks("clocks");

    // Copies and fills.
    OK(hipEventRecord(a, nullptr));
    OK(hipMemcpy(device, host.data(), BYTES, hipMemcpyHostToDevice));
    OK(hipEventRecord(b, nullptr));
    OK(hipMemcpy(host.data(), device, BYTES / 2, hipMemcpyDeviceToHost));
    OK(hipEventRecord(c, nullptr));
    OK(hipDeviceSynchronize());
    say("to_device", between(a, b));
    say("to_host", between(b, c));
    OK(hipEventRecord(a, nullptr));
    OK(hipMemcpy(other, device, BYTES, hipMemcpyDeviceToDevice));
    OK(hipEventRecord(b, nullptr));
    OK(hipMemsetAsync(other, 0, BYTES, nullptr));
    OK(hipEventRecord(c, nullptr));
    OK(hipDeviceSynchronize());
    say("on_device", between(a, b));
    say("fill", between(b, c));

    // A second stream at the same time, one that waits for the first, and the first again.
    OK(hipEventRecord(a, one));
    spin<<<1, 64, 0, one>>>(clocks, out, WORK);
    OK(hipEventRecord(b, one));
    spin<<<1, 64, 0, two>>>(clocks, out, WORK);
    OK(hipEventRecord(c, two));
    OK(hipStreamWaitEvent(two, b, 0));
    OK(hipEventRecord(d, two));
    OK(hipDeviceSynchronize());
    say("beside_one", between(a, b));
    say("beside_two", between(a, c));
    say("beside_end", between(a, d));
    OK(hipEventRecord(a, one));
    spin<<<1, 64, 0, one>>>(clocks, out, WORK);
    OK(hipEventRecord(b, one));
    OK(hipStreamWaitEvent(two, b, 0));
    spin<<<1, 64, 0, two>>>(clocks, out, WORK);
    OK(hipEventRecord(c, two));
    OK(hipEventRecord(d, one));
    OK(hipStreamSynchronize(two));
    say("after_one", between(a, b));
    say("after_two", between(a, c));
    say("after_end", between(a, d));
    show_clocks("clocks");

    // Two kernels that each need the whole device: the second takes its turn.
    OK(hipEventRecord(a, one));
    wide<<<512, 64, 0, one>>>(out, 8);
    OK(hipEventRecord(b, one));
    wide<<<512, 64, 0, two>>>(out, 8);
    OK(hipEventRecord(c, two));
    OK(hipDeviceSynchronize());
    say("wide_one", between(a, b));
    say("wide_two", between(a, c));

    // The default stream waits for a blocking one, and that one for it.
    hipStream_t blocking;
    OK(hipStreamCreate(&blocking));
    OK(hipEventRecord(a, blocking));
    spin<<<1, 64, 0, blocking>>>(clocks, out, WORK);
    spin<<<1, 64>>>(clocks, out, WORK);
    OK(hipEventRecord(b, nullptr));
    spin<<<1, 64, 0, blocking>>>(clocks, out, WORK);
    OK(hipEventRecord(c, blocking));
    OK(hipEventSynchronize(c));
    say("default_two", between(a, b));
    say("default_three", between(a, c));

    // A launch with events of its own: they are about the kernel alone.
    hipExtLaunchKernelGGL(spin, dim3(1), dim3(64), 0, one, a, b, 0, clocks, out, WORK);
    OK(hipDeviceSynchronize());
    say("alone", between(a, b));
    show_clocks("clocks");

    // The nodes of a graph, of which two do not depend on each other.
    hipGraph_t graph;
    hipGraphExec_t runnable;
    OK(hipStreamBeginCapture(one, hipStreamCaptureModeGlobal));
    spin<<<1, 64, 0, one>>>(clocks, out, WORK);
    OK(hipEventRecord(d, one));
    OK(hipStreamWaitEvent(two, d, 0));
    spin<<<1, 64, 0, one>>>(clocks, out, WORK);
    spin<<<1, 64, 0, two>>>(clocks, out, 2 * WORK);
    OK(hipEventRecord(d, two));
    OK(hipStreamWaitEvent(one, d, 0));
    OK(hipStreamEndCapture(one, &graph));
    OK(hipGraphInstantiate(&runnable, graph, nullptr, nullptr, 0));
    OK(hipEventRecord(a, one));
    OK(hipGraphLaunch(runnable, one));
    OK(hipEventRecord(b, one));
    OK(hipStreamSynchronize(one));
    say("graph", between(a, b));
    return verdict();
}
