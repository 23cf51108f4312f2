// What HIP offers beside launches and copies, each checked: run as `features all`, `features fault` for a kernel that
// stores to an address at which nothing is, or `features trap` for one that gives up.

#include <hip/hip_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define HIP(call)                                                                       \
    do {                                                                                \
        hipError_t error = (call);                                                      \
        if (error != hipSuccess) fail(#call, hipGetErrorString(error));                 \
    } while (0)

static void fail(const char *what, const char *why) {
    printf("%s: %s\nFAIL\n", what, why);
    exit(1);
}

static void check(const char *what, bool right) {
    if (!right) fail(what, "wrong result");
    printf("%s\n", what);
}

constexpr int ITEMS = 256;
constexpr size_t BYTES = ITEMS * sizeof(int);

extern "C" __global__ void add_to_odd(int *values, int amount) {
    int item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item % 2) values[item] += amount;
}

// Tells `own`, and goes round until `other` is told.
extern "C" __global__ void meet(volatile int *own, volatile int *other) {
    *own = 1;
    __threadfence_system();
    while (!*other) {}
}

extern "C" __global__ void count(unsigned *counter) { atomicAdd_system(counter, 1u); }

extern "C" __global__ void store_at(int *place) { *place = 1; }

extern "C" __global__ void give_up(int *place) {
    if (threadIdx.x == 3) __builtin_trap();
    *place = 1;
}

static bool odd_are(const int *values, int expected) {
    for (int item = 0; item < ITEMS; item++)
        if (values[item] != (item % 2 ? expected : 0)) return false;
    return true;
}

static void add(int *values, int amount, hipStream_t stream = 0) {
    add_to_odd<<<ITEMS / 64, 64, 0, stream>>>(values, amount);
    HIP(hipGetLastError());
}

static void streams() {
    constexpr int COUNT = 4;
    hipStream_t stream[COUNT];
    int *device[COUNT], host[COUNT][ITEMS];
    for (int n = 0; n < COUNT; n++) {
        HIP(hipStreamCreate(&stream[n]));
        HIP(hipMalloc((void **)&device[n], BYTES));
        HIP(hipMemsetAsync(device[n], 0, BYTES, stream[n]));
    }
    for (int round = 0; round < 5; round++)
        for (int n = 0; n < COUNT; n++) add(device[n], n + 1, stream[n]);
    bool right = true;
    for (int n = 0; n < COUNT; n++) {
        HIP(hipMemcpyAsync(host[n], device[n], BYTES, hipMemcpyDeviceToHost, stream[n]));
        HIP(hipStreamSynchronize(stream[n]));
        right &= odd_are(host[n], 5 * (n + 1));
    }
    check("streams", right);
}

static void events(int *device) {
    hipEvent_t before, after;
    HIP(hipEventCreate(&before));
    HIP(hipEventCreate(&after));
    HIP(hipEventRecord(before));
    add(device, 1);
    HIP(hipEventRecord(after));
    HIP(hipEventSynchronize(after));
    float milliseconds = -1;
    HIP(hipEventElapsedTime(&milliseconds, before, after));
    check("events", milliseconds > 0 && milliseconds < 60000);
}

static void graph() {
    int *device, host[ITEMS];
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t executable;
    HIP(hipMalloc((void **)&device, BYTES));
    HIP(hipMemset(device, 0, BYTES));
    HIP(hipStreamCreate(&stream));
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    for (int n = 0; n < 3; n++) add(device, 1, stream);
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    for (int n = 0; n < 4; n++) HIP(hipGraphLaunch(executable, stream));
    HIP(hipStreamSynchronize(stream));
    HIP(hipMemcpy(host, device, BYTES, hipMemcpyDeviceToHost));
    check("graph", odd_are(host, 12));
}

static void host_memory() {
    int *pinned, *managed, *registered = (int *)aligned_alloc(4096, 4096), *seen;
    HIP(hipHostMalloc((void **)&pinned, BYTES, 0));
    HIP(hipMallocManaged((void **)&managed, BYTES));
    HIP(hipHostRegister(registered, 4096, 0));
    HIP(hipHostGetDevicePointer((void **)&seen, registered, 0));
    for (int *values : {pinned, managed, registered}) memset(values, 0, BYTES);
    for (int *values : {pinned, managed, seen}) add(values, 7);
    HIP(hipDeviceSynchronize());
    check("pinned", odd_are(pinned, 7));
    check("managed", odd_are(managed, 7));
    check("registered", odd_are(registered, 7));
    HIP(hipHostUnregister(registered));
    HIP(hipHostFree(pinned));
}

static void large_copy() {
    constexpr size_t LARGE = 64 << 20;
    std::vector<uint32_t> from(LARGE / 4), to(LARGE / 4);
    for (size_t n = 0; n < from.size(); n++) from[n] = n * 2654435761u;
    char *device;
    HIP(hipMalloc((void **)&device, LARGE));
    HIP(hipMemcpy(device, from.data(), LARGE, hipMemcpyHostToDevice));
    HIP(hipMemcpy(to.data(), device, LARGE, hipMemcpyDeviceToHost));
    check("large copy", from == to);
    HIP(hipFree(device));
}

static void cooperative() {
    int *device, host[ITEMS], amount = 3;
    HIP(hipMalloc((void **)&device, BYTES));
    HIP(hipMemset(device, 0, BYTES));
    void *arguments[] = {&device, &amount};
    HIP(hipLaunchCooperativeKernel((void *)add_to_odd, dim3(ITEMS / 64), dim3(64), arguments, 0, 0));
    HIP(hipMemcpy(host, device, BYTES, hipMemcpyDeviceToHost));
    check("cooperative", odd_are(host, 3));
}

// Kernels of two streams that wait for each other, and one that waits for the host.
static void meetings() {
    int *flags;
    hipStream_t stream[2];
    HIP(hipHostMalloc((void **)&flags, 4 * 64 * sizeof(int), hipHostMallocCoherent));
    memset(flags, 0, 4 * 64 * sizeof(int));
    for (hipStream_t &one : stream) HIP(hipStreamCreateWithFlags(&one, hipStreamNonBlocking));
    meet<<<1, 1, 0, stream[0]>>>(flags, flags + 64);
    meet<<<1, 1, 0, stream[1]>>>(flags + 64, flags);
    for (hipStream_t one : stream) HIP(hipStreamSynchronize(one));
    meet<<<1, 1, 0, stream[0]>>>(flags + 128, flags + 192);
    while (!*(volatile int *)(flags + 128)) {}
    *(volatile int *)(flags + 192) = 1;
    HIP(hipStreamSynchronize(stream[0]));
    check("meetings", true);
}

// The host and a kernel add to one counter at the same time, and none of it is lost.
static void shared_counter() {
    unsigned *counter;
    HIP(hipHostMalloc((void **)&counter, sizeof *counter, hipHostMallocCoherent));
    *counter = 0;
    count<<<512, 64>>>(counter);
    unsigned added = 0;
    while (hipStreamQuery(0) == hipErrorNotReady || added < 1000) {
        __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
        added++;
    }
    HIP(hipDeviceSynchronize());
    check("shared counter", *counter == 512 * 64 + added);
}

// HIP cannot be used in the child; the parent goes on.
static void forked(int *device) {
    pid_t child = fork();
    if (child == 0) _exit(3);
    int status = 0;
    waitpid(child, &status, 0);
    add(device, 1);
    HIP(hipDeviceSynchronize());
    check("fork", WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

int main(int count, char **arguments) {
    setvbuf(stdout, nullptr, _IONBF, 0);
    if (count > 1 && !strcmp(arguments[1], "fault")) {
        store_at<<<1, 1>>>((int *)0x123456789000);
        HIP(hipDeviceSynchronize());
        return 0;
    }
    int *device;
    HIP(hipMalloc((void **)&device, BYTES));
    if (count > 1 && !strcmp(arguments[1], "trap")) {
        give_up<<<1, 64>>>(device);
        HIP(hipDeviceSynchronize());
        return 0;
    }
    HIP(hipMemset(device, 0, BYTES));
    streams();
    events(device);
    graph();
    host_memory();
    large_copy();
    cooperative();
    meetings();
    shared_counter();
    forked(device);
    printf("PASS\n");
    return 0;
}
