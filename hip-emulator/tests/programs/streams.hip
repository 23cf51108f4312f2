// Streams, events and the program make progress together, and in the order that HIP promises. Each part runs by its
// name; without one all run.
#include "check.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

static constexpr auto SYSTEM = __HIP_MEMORY_SCOPE_SYSTEM;

__device__ static int seen(int* flag) { return __hip_atomic_load(flag, __ATOMIC_ACQUIRE, SYSTEM); }
__device__ static void tell(int* flag, int value) { __hip_atomic_store(flag, value, __ATOMIC_RELEASE, SYSTEM); }

// Waits for a value of a flag, and then does something.
__global__ void wait_for(int* flag, int value) {
    while (seen(flag) < value) {
        __builtin_amdgcn_s_sleep(1);
    }
}
__global__ void wait_and_add(int* flag, int value, int* sum, int more) {
    while (seen(flag) < value) {
    }
    *sum = *sum * 10 + more;
}
__global__ void add(int* sum, int more) { *sum = *sum * 10 + more; }
__global__ void set(int* flag, int value) { tell(flag, value); }

// Each goes on when the other has.
__global__ void take_turns(int* own, int* other, int first, int turns) {
    for (int turn = 1; turn <= turns; ++turn) {
        while (seen(other) < turn - first) {
        }
        tell(own, turn);
    }
}

__global__ void serve(int* request, int* answer, int* out) {
    if (threadIdx.x != 0) {
        return;
    }
    int sum = 0;
    for (int last = 0; last < 3;) {
        int now = seen(request);
        if (now != last) {
            sum += 10 * now;
            last = now;
            tell(answer, now);
        }
    }
    *out = sum;
}

__global__ void count_up(int* counter, int times) {
    for (int i = 0; i < times; ++i) {
        __hip_atomic_fetch_add(counter, 1, __ATOMIC_RELAXED, SYSTEM);
    }
}

__global__ void long_work(unsigned* out, unsigned turns) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned i = 0; i < turns; ++i) {
        x = x * 1664525u + 1013904223u;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

__global__ void wait_and_store(int* flag, int* where) {
    while (seen(flag) == 0) {
    }
    *where = 1;
}

static void put(int* flag, int value) { __atomic_store_n(flag, value, __ATOMIC_RELEASE); }
static int get(int* flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }
static void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Memory of the host that kernels see, with zeros.
static int* pinned(int count = 1) {
    int* memory = nullptr;
    OK(hipHostMalloc(reinterpret_cast<void**>(&memory), count * sizeof(int), hipHostMallocCoherent));
    std::memset(memory, 0, count * sizeof(int));
    return memory;
}
static int* on_device(int count = 1) {
    int* memory = nullptr;
    OK(hipMalloc(&memory, count * sizeof(int)));
    OK(hipMemset(memory, 0, count * sizeof(int)));
    return memory;
}
static int value_of(int* memory) {
    int value = -1;
    OK(hipMemcpy(&value, memory, sizeof value, hipMemcpyDeviceToHost));
    return value;
}
static hipStream_t stream(unsigned flags = hipStreamNonBlocking) {
    hipStream_t made = nullptr;
    OK(hipStreamCreateWithFlags(&made, flags));
    return made;
}

static void persistent() {
    int *request = pinned(), *answer = pinned(), *out = on_device();
    hipStream_t s = stream(0);
    serve<<<1, 64, 0, s>>>(request, answer, out);
    OK(hipGetLastError());
    for (int turn = 1; turn <= 3; ++turn) {
        CHECK(hipStreamQuery(s) == hipErrorNotReady);
        put(request, turn);
        while (get(answer) != turn) {
            std::this_thread::yield();
        }
    }
    OK(hipStreamSynchronize(s));
    OK(hipStreamQuery(s));
    CHECK(value_of(out) == 60);
    CHECK(hipGetLastError() == hipSuccess);
}

static void two_streams() {
    int* flags = on_device(64);
    hipStream_t a = stream(), b = stream();
    take_turns<<<1, 1, 0, a>>>(flags, flags + 32, 1, 50);
    take_turns<<<1, 1, 0, b>>>(flags + 32, flags, 0, 50);
    OK(hipStreamSynchronize(a));
    OK(hipDeviceSynchronize());
    CHECK(value_of(flags) == 50 && value_of(flags + 32) == 50);
    // Managed memory, three in a ring, and one more workgroup in each.
    int* managed = nullptr;
    OK(hipMallocManaged(&managed, 3 * sizeof(int)));
    std::memset(managed, 0, 3 * sizeof(int));
    hipStream_t c = stream();
    wait_for<<<2, 64, 0, a>>>(managed, 1);
    set<<<1, 1, 0, a>>>(managed + 1, 1);
    wait_for<<<2, 64, 0, b>>>(managed + 1, 1);
    set<<<1, 1, 0, b>>>(managed + 2, 1);
    set<<<1, 1, 0, c>>>(managed, 1);
    wait_for<<<2, 64, 0, c>>>(managed + 2, 1);
    OK(hipDeviceSynchronize());
    CHECK(managed[0] == 1 && managed[1] == 1 && managed[2] == 1);
}

static void events() {
    int *flag = pinned(), *sum = on_device();
    hipStream_t a = stream(), b = stream();
    hipEvent_t before, after, last;
    OK(hipEventCreate(&before));
    OK(hipEventCreate(&after));
    OK(hipEventCreate(&last));
    CHECK(hipEventQuery(after) == hipSuccess);
    OK(hipEventRecord(before, a));
    wait_and_add<<<1, 1, 0, a>>>(flag, 1, sum, 1);
    OK(hipEventRecord(after, a));
    OK(hipStreamWaitEvent(b, after, 0));
    add<<<1, 1, 0, b>>>(sum, 2);
    OK(hipEventRecord(last, b));
    OK(hipEventQuery(before));
    CHECK(hipEventQuery(after) == hipErrorNotReady && hipEventQuery(last) == hipErrorNotReady);
    CHECK(hipStreamQuery(a) == hipErrorNotReady && hipStreamQuery(b) == hipErrorNotReady);
    float ms = -1;
    CHECK(hipEventElapsedTime(&ms, before, after) == hipErrorNotReady);
    sleep_ms(20);
    put(flag, 1);
    OK(hipEventSynchronize(last));
    OK(hipEventQuery(after));
    OK(hipStreamSynchronize(b));
    CHECK(value_of(sum) == 12);
    OK(hipEventElapsedTime(&ms, before, after));
    // Modelled, a kernel that waits for the program takes as long as what it executes meanwhile.
    CHECK(std::getenv("WAVETAP_TIMING") == nullptr ? ms >= 15 : ms > 0);
    // Recorded again while it is pending: the last one counts. What waits for the first does not wait for the second.
    put(flag, 0);
    wait_for<<<1, 1, 0, a>>>(flag, 1);
    OK(hipEventRecord(after, a));
    OK(hipStreamWaitEvent(b, after, 0));
    add<<<1, 1, 0, b>>>(sum, 3);
    wait_for<<<1, 1, 0, a>>>(flag, 2);
    OK(hipEventRecord(after, a));
    put(flag, 1);
    OK(hipStreamSynchronize(b));
    CHECK(value_of(sum) == 123);
    CHECK(hipEventQuery(after) == hipErrorNotReady);
    put(flag, 2);
    OK(hipEventSynchronize(after));
    OK(hipStreamDestroy(a));
    OK(hipStreamDestroy(b));
}

static void default_stream() {
    int *flag = pinned(), *sum = on_device(), *other = on_device();
    hipStream_t blocking = stream(0), free_one = stream();
    // The default stream comes after blocking ones, and they after it; others do not wait.
    wait_and_add<<<1, 1, 0, blocking>>>(flag, 1, sum, 1);
    add<<<1, 1>>>(sum, 2);
    add<<<1, 1, 0, blocking>>>(sum, 3);
    CHECK(hipStreamQuery(nullptr) == hipErrorNotReady);
    add<<<1, 1, 0, free_one>>>(other, 5);
    OK(hipStreamSynchronize(free_one));
    CHECK(hipStreamQuery(nullptr) == hipErrorNotReady);
    put(flag, 1);
    OK(hipStreamSynchronize(nullptr));
    OK(hipStreamSynchronize(blocking));
    CHECK(value_of(sum) == 123 && value_of(other) == 5);
    // A copy at once waits for the blocking streams, and not for the others.
    put(flag, 0);
    wait_for<<<1, 1, 0, free_one>>>(flag, 1);
    CHECK(value_of(sum) == 123);
    OK(hipMemset(sum, 0, sizeof(int)));
    CHECK(hipStreamQuery(free_one) == hipErrorNotReady);
    put(flag, 1);
    OK(hipStreamSynchronize(free_one));
    put(flag, 0);
    wait_and_add<<<1, 1>>>(flag, 1, sum, 7);
    std::thread later([&] {
        sleep_ms(20);
        put(flag, 1);
    });
    CHECK(value_of(sum) == 7);
    later.join();
    // A stream with nothing to do is not waited for because the default stream is busy, but it is not ready.
    put(flag, 0);
    wait_for<<<1, 1>>>(flag, 1);
    CHECK(hipStreamQuery(blocking) == hipErrorNotReady);
    OK(hipStreamQuery(free_one));
    OK(hipStreamSynchronize(blocking));
    CHECK(hipStreamQuery(nullptr) == hipErrorNotReady);
    put(flag, 1);
    OK(hipDeviceSynchronize());
}

static std::atomic<int> calls{0};
static int order[8];
static void note(void* what) { order[calls++] = static_cast<int>(reinterpret_cast<size_t>(what)); }
static void note_stream(hipStream_t, hipError_t status, void* what) {
    CHECK(status == hipSuccess);
    note(what);
}
static void block(void* flag) {
    while (get(static_cast<int*>(flag)) == 0) {
        std::this_thread::yield();
    }
}

static void callbacks() {
    int *flag = pinned(), *other = pinned(), *sum = on_device();
    hipStream_t s = stream();
    OK(hipLaunchHostFunc(s, note, reinterpret_cast<void*>(1)));
    wait_and_add<<<1, 1, 0, s>>>(flag, 1, sum, 1);
    OK(hipStreamAddCallback(s, note_stream, reinterpret_cast<void*>(2), 0));
    OK(hipLaunchHostFunc(s, note, reinterpret_cast<void*>(3)));
    sleep_ms(20);
    CHECK(calls == 1);
    put(flag, 1);
    OK(hipStreamSynchronize(s));
    CHECK(calls == 3 && order[0] == 1 && order[1] == 2 && order[2] == 3);
    // A function that waits for the program; what comes after it waits, too.
    OK(hipLaunchHostFunc(s, block, other));
    add<<<1, 1, 0, s>>>(sum, 2);
    CHECK(hipStreamQuery(s) == hipErrorNotReady);
    put(other, 1);
    OK(hipStreamSynchronize(s));
    CHECK(value_of(sum) == 12);
}

static void copies() {
    int *flag = pinned(), *from = pinned(), *to = pinned(), *a = on_device(), *b = on_device(), *c = on_device();
    hipStream_t s = stream();
    int here = 4, there = 0;
    from[0] = 1;
    wait_for<<<1, 1, 0, s>>>(flag, 1);
    OK(hipMemcpyAsync(a, from, sizeof(int), hipMemcpyHostToDevice, s));
    OK(hipMemcpyAsync(b, &here, sizeof(int), hipMemcpyHostToDevice, s));
    add<<<1, 1, 0, s>>>(a, 2);
    OK(hipMemcpyAsync(c, a, sizeof(int), hipMemcpyDeviceToDevice, s));
    OK(hipMemsetAsync(a, 0, sizeof(int), s));
    OK(hipMemcpyAsync(to, c, sizeof(int), hipMemcpyDeviceToHost, s));
    // Pinned memory is read when it is copied, the program's own when the copy is submitted.
    from[0] = 3;
    here = 5;
    sleep_ms(20);
    CHECK(to[0] == 0);
    put(flag, 1);
    OK(hipStreamSynchronize(s));
    CHECK(to[0] == 32);
    // A copy to the program's own memory has been done when the call returns.
    OK(hipMemcpyAsync(&there, b, sizeof(int), hipMemcpyDeviceToHost, s));
    CHECK(there == 4);
    CHECK(value_of(a) == 0);
    // Memory that is freed in the order of a stream.
    int* pooled = nullptr;
    put(flag, 0);
    OK(hipMallocAsync(reinterpret_cast<void**>(&pooled), sizeof(int), s));
    OK(hipMemsetAsync(pooled, 0, sizeof(int), s));
    wait_and_add<<<1, 1, 0, s>>>(flag, 1, pooled, 6);
    OK(hipMemcpyAsync(to, pooled, sizeof(int), hipMemcpyDeviceToHost, s));
    OK(hipFreeAsync(pooled, s));
    put(flag, 1);
    OK(hipStreamSynchronize(s));
    CHECK(to[0] == 6);
    CHECK(hipMemcpy(&there, pooled, sizeof(int), hipMemcpyDeviceToHost) == hipErrorInvalidValue);
    (void)hipGetLastError();
    // Memory is not freed under a kernel.
    put(flag, 0);
    wait_and_add<<<1, 1, 0, s>>>(flag, 1, c, 9);
    std::thread later([&] {
        sleep_ms(20);
        put(flag, 1);
    });
    OK(hipFree(c));
    CHECK(get(flag) == 1);
    OK(hipStreamQuery(s));
    later.join();
}

static void graphs() {
    int *flag = pinned(), *sum = on_device(), *turns = on_device(64);
    hipStream_t s = stream(), other = stream();
    hipEvent_t fork, join;
    OK(hipEventCreate(&fork));
    OK(hipEventCreate(&join));
    hipGraph_t graph;
    hipGraphExec_t executable;
    // Branches of a graph make progress together.
    OK(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
    OK(hipEventRecord(fork, s));
    OK(hipStreamWaitEvent(other, fork, 0));
    take_turns<<<1, 1, 0, s>>>(turns, turns + 32, 1, 20);
    take_turns<<<1, 1, 0, other>>>(turns + 32, turns, 0, 20);
    OK(hipEventRecord(join, other));
    OK(hipStreamWaitEvent(s, join, 0));
    wait_and_add<<<1, 1, 0, s>>>(flag, 1, sum, 1);
    OK(hipStreamEndCapture(s, &graph));
    OK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    OK(hipGraphLaunch(executable, s));
    add<<<1, 1, 0, s>>>(sum, 2);
    CHECK(hipStreamQuery(s) == hipErrorNotReady);
    sleep_ms(20);
    put(flag, 1);
    OK(hipStreamSynchronize(s));
    CHECK(value_of(sum) == 12 && value_of(turns) == 20 && value_of(turns + 32) == 20);
    OK(hipGraphExecDestroy(executable));
    OK(hipGraphDestroy(graph));
}

static void values() {
    int *flag = pinned(2), *sum = on_device(), *cell = on_device(2);
    hipStream_t a = stream(), b = stream();
    OK(hipStreamWaitValue32(a, flag, 3, hipStreamWaitValueGte, 0xffffffff));
    add<<<1, 1, 0, a>>>(sum, 1);
    OK(hipStreamWriteValue32(a, cell, 8, 0));
    OK(hipStreamWaitValue32(b, cell, 8, hipStreamWaitValueEq, 0xffffffff));
    add<<<1, 1, 0, b>>>(sum, 2);
    CHECK(hipStreamQuery(a) == hipErrorNotReady && hipStreamQuery(b) == hipErrorNotReady);
    put(flag, 2);
    sleep_ms(10);
    CHECK(hipStreamQuery(a) == hipErrorNotReady);
    put(flag, 3);
    OK(hipStreamSynchronize(b));
    CHECK(value_of(sum) == 12);
    OK(hipStreamWaitValue64(a, cell, 8, hipStreamWaitValueAnd, 0xf));
    OK(hipStreamSynchronize(a));
    CHECK(hipStreamWaitValue32(a, flag, 0, 17, 0xffffffff) == hipErrorInvalidValue);
    (void)hipGetLastError();
}

static void threads() {
    int *flags = pinned(64), *sum = on_device();
    // Each thread has a default stream of its own.
    std::thread other([&] {
        wait_for<<<1, 1, 0, hipStreamPerThread>>>(flags, 1);
        set<<<1, 1, 0, hipStreamPerThread>>>(flags + 1, 1);
        OK(hipStreamSynchronize(hipStreamPerThread));
    });
    sleep_ms(20);
    set<<<1, 1, 0, hipStreamPerThread>>>(flags, 1);
    wait_for<<<1, 1, 0, hipStreamPerThread>>>(flags + 1, 1);
    OK(hipStreamSynchronize(hipStreamPerThread));
    other.join();
    // Threads that launch at the same time.
    std::vector<std::thread> all;
    for (int t = 0; t < 4; ++t) {
        all.emplace_back([&] {
            hipStream_t s = stream();
            for (int i = 0; i < 20; ++i) {
                count_up<<<1, 1, 0, s>>>(sum, 5);
            }
            OK(hipStreamSynchronize(s));
        });
    }
    for (std::thread& thread : all) {
        thread.join();
    }
    CHECK(value_of(sum) == 400);
    // Atomics of the program and of a kernel on the same memory.
    int* counter = pinned();
    count_up<<<1, 1>>>(counter, 600000);
    for (int i = 0; i < 200000; ++i) {
        __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
    }
    OK(hipDeviceSynchronize());
    CHECK(counter[0] == 600000 + 200000);
}

static void queued() {
    int *flag = pinned(), *sum = on_device();
    hipStream_t s = stream();
    wait_for<<<1, 1, 0, s>>>(flag, 1);
    for (int i = 0; i < 5000; ++i) {
        count_up<<<1, 1, 0, s>>>(sum, 1);
    }
    CHECK(hipStreamQuery(s) == hipErrorNotReady);
    put(flag, 1);
    OK(hipStreamSynchronize(s));
    CHECK(value_of(sum) == 5000);
    // A long kernel is left to the background; what is computed is the same.
    const unsigned groups = 64, turns = 3000;
    unsigned* out = nullptr;
    OK(hipMalloc(&out, groups * 64 * sizeof(unsigned)));
    long_work<<<groups, 64, 0, s>>>(out, turns);
    add<<<1, 1, 0, s>>>(sum, 0);
    OK(hipStreamSynchronize(s));
    std::vector<unsigned> back(groups * 64);
    OK(hipMemcpy(back.data(), out, back.size() * sizeof(unsigned), hipMemcpyDeviceToHost));
    for (unsigned i = 0; i < back.size(); i += 97) {
        unsigned x = i;
        for (unsigned turn = 0; turn < turns; ++turn) {
            x = x * 1664525u + 1013904223u;
        }
        CHECK(back[i] == x);
    }
    CHECK(value_of(sum) == 50000);
}

// A fault of a kernel in flight is the answer of what waits for it, and stays.
static void fault() {
    int* flag = pinned();
    hipStream_t s = stream();
    wait_and_store<<<1, 1, 0, s>>>(flag, reinterpret_cast<int*>(16));
    OK(hipGetLastError());
    CHECK(hipStreamQuery(s) == hipErrorNotReady);
    put(flag, 1);
    CHECK(hipStreamSynchronize(s) == hipErrorIllegalAddress);
    CHECK(hipGetLastError() == hipErrorIllegalAddress && hipDeviceSynchronize() == hipErrorIllegalAddress);
}

// What never comes.
static void forever() {
    int* flag = on_device();
    hipStream_t a = stream(), b = stream();
    wait_for<<<1, 64, 0, a>>>(flag, 1);
    set<<<1, 1, 0, a>>>(flag, 1);
    add<<<1, 1, 0, b>>>(flag + 0, 0);
    OK(hipStreamSynchronize(a));
}
static void forever_value() {
    int* flag = pinned();
    hipStream_t a = stream();
    OK(hipStreamWaitValue32(a, flag, 3, hipStreamWaitValueGte, 0xffffffff));
    OK(hipDeviceSynchronize());
}

// The program ends while a kernel runs that nothing waited for.
static void unfinished() {
    unsigned* out = nullptr;
    OK(hipMalloc(&out, 64 * 64 * sizeof(unsigned)));
    long_work<<<64, 64>>>(out, 20000);
}

int main(int count, char** arguments) {
    struct Part {
        const char* name;
        void (*run)();
        bool alone;
    };
    const Part parts[] = {
        {"persistent", persistent, false},
        {"two_streams", two_streams, false},
        {"events", events, false},
        {"default_stream", default_stream, false},
        {"callbacks", callbacks, false},
        {"copies", copies, false},
        {"graphs", graphs, false},
        {"values", values, false},
        {"threads", threads, false},
        {"queued", queued, false},
        {"fault", fault, true},
        {"forever", forever, true},
        {"forever_value", forever_value, true},
        {"unfinished", unfinished, true},
    };
    for (const Part& part : parts) {
        if (count > 1 ? std::strcmp(arguments[1], part.name) == 0 : !part.alone) {
            part.run();
        }
    }
    return verdict();
}
