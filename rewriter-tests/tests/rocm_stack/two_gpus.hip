// Several GPUs in one process:
//
//     two_gpus samples N    three of the samples, three times on each of N GPUs at the same time
//     two_gpus peer         memory and events of one GPU used by another one
//     two_gpus fault        a kernel on the second GPU stores to an address at which nothing is
//     two_gpus stranger     a kernel on the second GPU reads memory of the first one, which it was not given

#include "../../../hip-samples/src/selfcheck.h"

#include <cstring>
#include <thread>

#define main divergence_main
#include "../../../hip-samples/src/divergence.hip"
#undef main
#define main histogram_main
#include "../../../hip-samples/src/histogram.hip"
#undef main
#define main spmv_main
#include "../../../hip-samples/src/spmv.hip"
#undef main

constexpr int ITEMS = 256;
constexpr size_t BYTES = ITEMS * sizeof(int);

__global__ void number(int* values, int first) {
    values[threadIdx.x] = threadIdx.x % 2 ? first + threadIdx.x : first;
}

__global__ void add(int* sum, const int* values) { sum[threadIdx.x] += values[threadIdx.x]; }

__global__ void count(unsigned* counter) { atomicAdd_system(counter, 1u); }

// Tells `own`, and goes round until `other` is told.
__global__ void meet(volatile int* own, volatile int* other) {
    *own = 1;
    __threadfence_system();
    while (!*other) {}
}

static void check(const char* what, bool right) {
    if (!right) {
        printf("%s: wrong result\nFAIL\n", what);
        exit(1);
    }
    printf("%s\n", what);
}

static int* on(int device) {
    int* values;
    HIP_CHECK(hipSetDevice(device));
    HIP_CHECK(hipMalloc((void**)&values, BYTES));
    HIP_CHECK(hipMemset(values, 0, BYTES));
    return values;
}

static bool are_numbered(const int* device, int first) {
    int values[ITEMS];
    HIP_CHECK(hipMemcpy(values, device, BYTES, hipMemcpyDeviceToHost));
    for (int n = 0; n < ITEMS; ++n)
        if (values[n] != (n % 2 ? first + n : first)) return false;
    return true;
}

static void samples(int gpus) {
    std::vector<std::thread> all;
    std::vector<int> failed(gpus);
    for (int device = 0; device < gpus; ++device) {
        all.emplace_back([device, &failed] {
            HIP_CHECK(hipSetDevice(device));
            for (int round = 0; round < 3; ++round)
                failed[device] |= divergence_main() | histogram_main() | spmv_main();
        });
    }
    for (std::thread& one : all) one.join();
    for (int one : failed)
        if (one) exit(1);
}

static void peer() {
    int devices = 0, can = 0;
    HIP_CHECK(hipGetDeviceCount(&devices));
    check("two devices", devices == 2);
    hipDeviceProp_t first, second;
    HIP_CHECK(hipGetDeviceProperties(&first, 0));
    HIP_CHECK(hipGetDeviceProperties(&second, 1));
    check("two buses", first.pciBusID != second.pciBusID && !strcmp(first.gcnArchName, second.gcnArchName));

    int *zero = on(0), *one = on(1);
    HIP_CHECK(hipSetDevice(0));
    number<<<1, ITEMS>>>(zero, 5);
    HIP_CHECK(hipDeviceSynchronize());
    HIP_CHECK(hipMemcpyPeer(one, 1, zero, 0, BYTES));
    HIP_CHECK(hipSetDevice(1));
    check("copy", are_numbered(one, 5));

    // The copy of one GPU's stream comes after the kernel of the other one's.
    hipStream_t stream[2];
    hipEvent_t event;
    for (int device = 0; device < 2; ++device) {
        HIP_CHECK(hipSetDevice(device));
        HIP_CHECK(hipStreamCreateWithFlags(&stream[device], hipStreamNonBlocking));
        if (device == 0) {
            HIP_CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
            number<<<1, ITEMS, 0, stream[0]>>>(zero, 70);
            HIP_CHECK(hipEventRecord(event, stream[0]));
        } else {
            HIP_CHECK(hipStreamWaitEvent(stream[1], event, 0));
            HIP_CHECK(hipMemcpyPeerAsync(one, 1, zero, 0, BYTES, stream[1]));
            HIP_CHECK(hipStreamSynchronize(stream[1]));
        }
    }
    check("copy after an event", are_numbered(one, 70));

    HIP_CHECK(hipDeviceCanAccessPeer(&can, 1, 0));
    check("access is possible", can == 1);
    HIP_CHECK(hipSetDevice(1));
    HIP_CHECK(hipDeviceEnablePeerAccess(0, 0));
    HIP_CHECK(hipMemset(one, 0, BYTES));
    add<<<1, ITEMS>>>(one, zero);
    HIP_CHECK(hipDeviceSynchronize());
    check("access", are_numbered(one, 70));

    int* flags;
    unsigned* counter;
    HIP_CHECK(hipHostMalloc((void**)&flags, 4096, hipHostMallocPortable | hipHostMallocCoherent));
    memset(flags, 0, 4096);
    counter = (unsigned*)flags + 512;
    for (int device = 0; device < 2; ++device) {
        HIP_CHECK(hipSetDevice(device));
        meet<<<1, 1, 0, stream[device]>>>(flags + 64 * device, flags + 64 * (1 - device));
        count<<<64, 64, 0, stream[device]>>>(counter);
    }
    for (int device = 0; device < 2; ++device) {
        HIP_CHECK(hipSetDevice(device));
        HIP_CHECK(hipStreamSynchronize(stream[device]));
    }
    check("a kernel on each, which wait for each other", true);
    check("a counter of both", *counter == 2 * 64 * 64);

    size_t before, after, total;
    char* large;
    HIP_CHECK(hipSetDevice(1));
    HIP_CHECK(hipMemGetInfo(&before, &total));
    HIP_CHECK(hipSetDevice(0));
    HIP_CHECK(hipMalloc((void**)&large, 5ul << 30));
    HIP_CHECK(hipSetDevice(1));
    HIP_CHECK(hipMemGetInfo(&after, &total));
    check("memory of its own", before == after && hipMalloc((void**)&large, 5ul << 30) == hipSuccess);
    check("which ends", hipMalloc((void**)&large, 5ul << 30) == hipErrorOutOfMemory);
    printf("PASS\n");
}

int main(int arguments, char** argument) {
    setvbuf(stdout, nullptr, _IONBF, 0);
    const char* what = arguments > 1 ? argument[1] : "";
    if (!strcmp(what, "samples")) {
        samples(atoi(argument[2]));
    } else if (!strcmp(what, "peer")) {
        peer();
    } else if (!strcmp(what, "fault") || !strcmp(what, "stranger")) {
        int *zero = on(0), *one = on(1);
        add<<<1, ITEMS>>>(one, *what == 'f' ? (int*)0x123456789000 : zero);
        HIP_CHECK(hipDeviceSynchronize());
    } else {
        return 2;
    }
    return 0;
}
