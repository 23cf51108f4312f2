// Launches inside and outside of ranges, of one thread and of the process, while profilers pause, and as a graph. Takes
// what to do as its argument.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <hip/hip_runtime.h>
#include <thread>

extern "C" {
int roctxRangePushA(const char *message);
int roctxRangePop();
uint64_t roctxRangeStartA(const char *message);
void roctxRangeStop(uint64_t range);
int roctxProfilerPause(uint64_t thread);
int roctxProfilerResume(uint64_t thread);
}

constexpr int COUNT = 1024;

// So many work-items of a wave take the branch, and so many times, that no two launches have the same counts.
__global__ void fill(int *out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = i % 5 ? i : -i;
}

__global__ void scale(int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] *= 3;
}

static bool check(hipError_t status, const char *what) {
    if (status != hipSuccess)
        std::printf("%s: %s\n", what, hipGetErrorName(status));
    return status == hipSuccess;
}

static void scale_elsewhere(int *out, int n) {
    std::thread([=] {
        scale<<<4, 64>>>(out, n);
        check(hipDeviceSynchronize(), "scale");
    }).join();
}

static bool ranges(int *out) {
    fill<<<1, 64>>>(out, 64);
    bool good = roctxRangePop() < 0 && roctxRangePushA("step") == 0;
    fill<<<1, 64>>>(out, 128);
    good = good && roctxRangePushA("decode/2") == 1;
    fill<<<1, 64>>>(out, 256);
    scale<<<4, 64>>>(out, 256);
    good = good && roctxRangePop() == 1;
    // Another thread has none of the ranges that this one has pushed, and those that are started.
    scale_elsewhere(out, 100);
    uint64_t all = roctxRangeStartA("all");
    scale_elsewhere(out, 130);
    scale<<<4, 64>>>(out, 200);
    roctxRangeStop(all);
    good = good && roctxProfilerPause(0) == 0;
    fill<<<1, 64>>>(out, 512);
    good = good && roctxProfilerResume(0) == 0;
    fill<<<1, 64>>>(out, 700);
    good = good && roctxRangePop() == 0;
    good = good && hipProfilerStop() == hipSuccess;
    fill<<<1, 64>>>(out, 900);
    good = good && hipProfilerStart() == hipSuccess;
    return good;
}

// Many launches of one kernel, each in another range than the one before, none of which is waited for.
static bool alternating(int *out) {
    for (int i = 0; i < 40; ++i) {
        roctxRangePushA(i % 2 ? "odd" : "even");
        scale<<<4, 64>>>(out, i);
        roctxRangePop();
    }
    return true;
}

static bool graph(int *out) {
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t executable;
    bool good = check(hipStreamCreate(&stream), "stream") &&
                check(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), "capture");
    roctxRangePushA("captured");
    fill<<<1, 64, 0, stream>>>(out, 128);
    scale<<<4, 64, 0, stream>>>(out, 128);
    scale<<<4, 64, 0, stream>>>(out, 60);
    roctxRangePop();
    good = good && check(hipStreamEndCapture(stream, &graph), "end of the capture") &&
           check(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), "instantiation");
    roctxRangePushA("launched");
    good = good && check(hipGraphLaunch(executable, stream), "launch");
    roctxRangePop();
    good = good && check(hipGraphLaunch(executable, stream), "launch");
    return good && check(hipStreamSynchronize(stream), "synchronisation");
}

int main(int argc, char **argv) {
    int *out;
    if (argc != 2 || !check(hipMalloc(&out, COUNT * sizeof(int)), "memory"))
        return 1;
    bool good = false;
    if (!std::strcmp(argv[1], "ranges"))
        good = ranges(out);
    else if (!std::strcmp(argv[1], "alternating"))
        good = alternating(out);
    else if (!std::strcmp(argv[1], "graph"))
        good = graph(out);
    good = check(hipDeviceSynchronize(), "synchronisation") && good;
    std::puts(good ? "PASS" : "FAIL");
    return good ? 0 : 1;
}
