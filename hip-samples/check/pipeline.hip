// rapidsai/rapidsmpf 515: a buffer that two streams use in turn, and one of them does not wait for the other: the next
// part of the input is copied to where a kernel still reads the last one.
#include "check.h"

const int PART = 512, PARTS = 6;

__global__ void add_up(const int *part, long *sum) { // reads the buffer
    int value = part[threadIdx.x];
    for (int i = threadIdx.x + blockDim.x; i < PART; i += blockDim.x) value += part[i];
    atomicAdd((unsigned long long *)sum, (unsigned long long)value);
}

__global__ void scale(const long *sum, long *out) { *out = *sum * 3; }

static void count_call(hipStream_t, hipError_t, void *calls) { ++*(int *)calls; }

static bool run(bool mended) {
    int *input = nullptr, calls = 0;
    HIP(hipHostMalloc((void **)&input, PART * PARTS * sizeof(int), hipHostMallocDefault));
    long expected = 0;
    for (int i = 0; i < PART * PARTS; ++i) expected += input[i] = i % 13;
    Array<int> buffers(2 * PART);
    Array<long> sum(1), out(1);
    hipStream_t copying, computing, scaling;
    hipEvent_t copied[2], computed[2], all;
    HIP(hipStreamCreateWithFlags(&copying, hipStreamNonBlocking));
    HIP(hipStreamCreateWithFlags(&computing, hipStreamNonBlocking));
    HIP(hipStreamCreate(&scaling));
    for (int i = 0; i < 2; ++i) {
        HIP(hipEventCreateWithFlags(&copied[i], hipEventDisableTiming));
        HIP(hipEventCreateWithFlags(&computed[i], hipEventDisableTiming));
    }
    HIP(hipEventCreate(&all));
    HIP(hipMemsetAsync(sum.device, 0, sum.bytes(), computing));
    for (int part = 0; part < PARTS; ++part) {
        int *buffer = buffers.device + part % 2 * PART;
        if (mended && part >= 2) HIP(hipStreamWaitEvent(copying, computed[part % 2], 0));
        HIP(hipMemcpyAsync(buffer, input + part * PART, PART * sizeof(int), hipMemcpyHostToDevice, copying)); // next
        HIP(hipEventRecord(copied[part % 2], copying));
        HIP(hipStreamWaitEvent(computing, copied[part % 2], 0));
        add_up<<<1, 256, 0, computing>>>(buffer, sum.device);
        HIP(hipGetLastError());
        HIP(hipEventRecord(computed[part % 2], computing));
    }
    HIP(hipStreamAddCallback(computing, count_call, &calls, 0));
    HIP(hipEventRecord(all, computing));
    HIP(hipStreamWaitEvent(scaling, all, 0));
    scale<<<1, 1, 0, scaling>>>(sum.device, out.device);
    HIP(hipGetLastError());
    out.receive(); // the default stream waits for one that is blocking
    HIP(hipDeviceSynchronize());
    for (int i = 0; i < 2; ++i) {
        HIP(hipEventDestroy(copied[i]));
        HIP(hipEventDestroy(computed[i]));
    }
    HIP(hipEventDestroy(all));
    HIP(hipStreamDestroy(copying));
    HIP(hipStreamDestroy(computing));
    HIP(hipStreamDestroy(scaling));
    HIP(hipHostFree(input));
    return out.host[0] == expected * 3 && calls == 1;
}
