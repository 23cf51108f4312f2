// Calls the entry points that programs use and checks what they answer. Ends with PASS when every check held.
#include <dlfcn.h>
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

static int failures = 0;

#define CHECK(condition)                                          \
    do {                                                          \
        if (!(condition)) {                                       \
            std::printf("line %d: %s\n", __LINE__, #condition);   \
            ++failures;                                           \
        }                                                         \
    } while (0)
#define OK(call) CHECK((call) == hipSuccess)

__global__ void add_one(int* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        data[i] += 1;
    }
}

struct Mixed {
    char a;
    double b;
    short c[3];
};

__global__ void mixed_arguments(char a, long long b, Mixed c, float d, int* out) {
    out[0] = a;
    out[1] = static_cast<int>(b >> 32);
    out[2] = static_cast<int>(c.b * 4);
    out[3] = c.c[2];
    out[4] = static_cast<int>(d * 2);
    out[5] = gridDim.x * 100 + gridDim.y * 10 + gridDim.z;
    out[6] = blockDim.x * 100 + blockDim.y * 10 + blockDim.z;
}

__global__ void big_group(int* out) {
    extern __shared__ int staged[];
    staged[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = staged[blockDim.x - 1 - threadIdx.x];
}

// Ticks are those of the constant clock, 100 MHz.
__global__ void wait_for(unsigned long long ticks) {
    unsigned long long start = __builtin_amdgcn_s_memrealtime();
    while (__builtin_amdgcn_s_memrealtime() - start < ticks) {
    }
}

__device__ int counter = 5;
__managed__ int shared_total = 40;

__global__ void use_managed() { shared_total += counter; }

static int* callback_data = nullptr;
static void on_stream(hipStream_t, hipError_t status, void* data) {
    *static_cast<int*>(data) = status == hipSuccess ? 7 : -1;
}

static void devices() {
    int count = 0, device = -1, value = 0;
    OK(hipInit(0));
    OK(hipGetDeviceCount(&count));
    CHECK(count == 1);
    OK(hipSetDevice(0));
    CHECK(hipSetDevice(1) == hipErrorInvalidDevice);
    CHECK(hipPeekAtLastError() == hipErrorInvalidDevice);
    CHECK(hipGetLastError() == hipErrorInvalidDevice);
    CHECK(hipGetLastError() == hipSuccess);
    OK(hipGetDevice(&device));
    CHECK(device == 0);
    hipDeviceProp_t properties;
    OK(hipGetDeviceProperties(&properties, 0));
    CHECK(properties.warpSize == 64 && properties.maxThreadsPerBlock == 1024 && properties.maxThreadsDim[2] == 1024);
    CHECK(std::strncmp(properties.gcnArchName, "gfx90a", 6) == 0 && properties.gcnArch == 910);
    CHECK(properties.sharedMemPerBlock == 65536 && properties.maxSharedMemoryPerMultiProcessor == 65536);
    CHECK(properties.arch.hasDoubles && properties.arch.hasWarpBallot && properties.arch.has3dGrid &&
          !properties.arch.hasDynamicParallelism);
    CHECK(properties.managedMemory == 1 && properties.ECCEnabled == 1 && properties.isLargeBar == 0 &&
          properties.major == 9);
    CHECK(properties.totalGlobalMem > 1u << 30 && properties.multiProcessorCount > 0 &&
          properties.textureAlignment == 256);
    OK(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 0));
    CHECK(value == 64);
    OK(hipDeviceGetAttribute(&value, hipDeviceAttributeMultiprocessorCount, 0));
    CHECK(value == properties.multiProcessorCount);
    char name[64];
    OK(hipDeviceGetName(name, sizeof name, 0));
    CHECK(std::strcmp(name, properties.name) == 0);
    CHECK(std::strcmp(hipGetErrorName(hipErrorInvalidValue), "hipErrorInvalidValue") == 0);
    CHECK(std::strcmp(hipGetErrorString(hipErrorOutOfMemory), "out of memory") == 0);
    size_t stack = 0;
    OK(hipDeviceGetLimit(&stack, static_cast<hipLimit_t>(0)));
    CHECK(stack >= 1024);
}

static void memory() {
    const int n = 1000;
    std::vector<int> host(n), back(n, -1);
    for (int i = 0; i < n; ++i) {
        host[i] = i * 3;
    }
    size_t free_before = 0, free_after = 0, total = 0;
    OK(hipMemGetInfo(&free_before, &total));
    int *a = nullptr, *b = nullptr;
    OK(hipMalloc(&a, n * sizeof(int)));
    OK(hipMalloc(&b, n * sizeof(int)));
    OK(hipMemGetInfo(&free_after, &total));
    CHECK(free_before - free_after == 2 * ((n * sizeof(int) + 4095) / 4096 * 4096) && total >= free_before);
    OK(hipMemcpy(a, host.data(), n * sizeof(int), hipMemcpyHostToDevice));
    OK(hipMemcpy(b, a, n * sizeof(int), hipMemcpyDeviceToDevice));
    OK(hipMemcpy(a + 1, a, (n - 1) * sizeof(int), hipMemcpyDeviceToDevice));
    OK(hipMemcpy(back.data(), b, n * sizeof(int), hipMemcpyDefault));
    CHECK(back == host);
    OK(hipMemcpyDtoH(back.data(), a, n * sizeof(int)));
    CHECK(back[0] == 0 && back[1] == 0 && back[999] == 998 * 3);
    CHECK(hipMemcpy(a, host.data(), (n + 1000) * sizeof(int), hipMemcpyHostToDevice) == hipErrorInvalidValue);
    CHECK(hipMemcpy(nullptr, host.data(), 4, hipMemcpyHostToDevice) == hipErrorInvalidValue);
    OK(hipMemset(a, 0x11, n * sizeof(int)));
    OK(hipMemsetD32(a + 2, 0x12345678, 3));
    OK(hipMemsetD16(reinterpret_cast<short*>(a) + 20, 0x7fff, 1));
    OK(hipMemcpy(back.data(), a, n * sizeof(int), hipMemcpyDeviceToHost));
    CHECK(back[1] == 0x11111111 && back[2] == 0x12345678 && back[4] == 0x12345678 && back[5] == 0x11111111 &&
          back[10] == 0x11117fff);
    CHECK(hipMemset(a, 0, n * sizeof(int) + 1) == hipErrorInvalidValue);
    hipDeviceptr_t base = nullptr;
    size_t size = 0;
    OK(hipMemGetAddressRange(&base, &size, a + 10));
    CHECK(base == a && size == n * sizeof(int));
    hipPointerAttribute_t attributes;
    OK(hipPointerGetAttributes(&attributes, a + 1));
    CHECK(attributes.memoryType == hipMemoryTypeDevice && attributes.devicePointer == a + 1);
    CHECK(hipPointerGetAttributes(&attributes, host.data()) == hipErrorInvalidValue);
    OK(hipFree(a));
    OK(hipFree(b));
    OK(hipFree(nullptr));
    CHECK(hipFree(a) == hipErrorInvalidValue);

    char* pitched = nullptr;
    size_t pitch = 0;
    OK(hipMallocPitch(reinterpret_cast<void**>(&pitched), &pitch, 100, 7));
    CHECK(pitch >= 100 && pitch % 128 == 0);
    std::vector<char> rows(7 * 100), rows_back(7 * 120, 'x');
    for (size_t i = 0; i < rows.size(); ++i) {
        rows[i] = static_cast<char>(i);
    }
    OK(hipMemcpy2D(pitched, pitch, rows.data(), 100, 100, 7, hipMemcpyHostToDevice));
    OK(hipMemset2D(pitched + 90, pitch, 1, 10, 2));
    OK(hipMemcpy2D(rows_back.data(), 120, pitched, pitch, 100, 7, hipMemcpyDeviceToHost));
    for (int y = 0; y < 7; ++y) {
        for (int x = 0; x < 120; ++x) {
            char expected = x >= 100 ? 'x' : y < 2 && x >= 90 ? 1 : rows[y * 100 + x];
            CHECK(rows_back[y * 120 + x] == expected);
        }
    }
    OK(hipFree(pitched));

    hipPitchedPtr box;
    OK(hipMalloc3D(&box, make_hipExtent(16, 3, 2)));
    OK(hipMemset3D(box, 9, make_hipExtent(16, 3, 2)));
    std::vector<char> cells(16 * 3 * 2);
    hipMemcpy3DParms copy = {};
    copy.srcPtr = box;
    copy.dstPtr = make_hipPitchedPtr(cells.data(), 16, 16, 3);
    copy.extent = make_hipExtent(16, 3, 2);
    copy.kind = hipMemcpyDeviceToHost;
    OK(hipMemcpy3D(&copy));
    CHECK(cells == std::vector<char>(96, 9));
    OK(hipFree(box.ptr));
}

static void host_memory() {
    int *pinned = nullptr, *managed = nullptr, *seen = nullptr;
    OK(hipHostMalloc(&pinned, 64 * sizeof(int), hipHostMallocDefault));
    OK(hipMallocManaged(&managed, 64 * sizeof(int)));
    OK(hipHostGetDevicePointer(reinterpret_cast<void**>(&seen), pinned, 0));
    for (int i = 0; i < 64; ++i) {
        pinned[i] = i;
        managed[i] = 100 * i;
    }
    add_one<<<1, 64>>>(seen, 64);
    add_one<<<1, 64>>>(managed, 50);
    OK(hipDeviceSynchronize());
    for (int i = 0; i < 64; ++i) {
        CHECK(pinned[i] == i + 1 && managed[i] == 100 * i + (i < 50));
    }
    hipPointerAttribute_t attributes;
    OK(hipPointerGetAttributes(&attributes, pinned));
    CHECK(attributes.memoryType == hipMemoryTypeHost && attributes.hostPointer == pinned);
    OK(hipPointerGetAttributes(&attributes, managed));
    CHECK(attributes.isManaged == 1);
    std::vector<int> own(64, 3);
    OK(hipHostRegister(own.data(), own.size() * sizeof(int), hipHostRegisterDefault));
    CHECK(hipHostRegister(own.data(), 4, hipHostRegisterDefault) == hipErrorHostMemoryAlreadyRegistered);
    add_one<<<1, 64>>>(own.data(), 64);
    OK(hipDeviceSynchronize());
    CHECK(own == std::vector<int>(64, 4));
    OK(hipHostUnregister(own.data()));
    CHECK(hipHostUnregister(own.data()) == hipErrorHostMemoryNotRegistered);
    OK(hipMemset(pinned, 0, 8));
    CHECK(pinned[0] == 0 && pinned[1] == 0 && pinned[2] == 3);
    OK(hipHostFree(pinned));
    OK(hipFree(managed));
}

static void launches() {
    // The checks before this one left errors on purpose.
    (void)hipGetLastError();
    int out[7] = {}, *device = nullptr;
    OK(hipMalloc(&device, 1024 * sizeof(int)));
    Mixed mixed = {'x', 2.25, {1, 2, -3}};
    mixed_arguments<<<dim3(1, 2, 3), dim3(4, 3, 2)>>>(-5, 0x700000001ll, mixed, 1.5f, device);
    OK(hipGetLastError());
    OK(hipMemcpy(out, device, sizeof out, hipMemcpyDeviceToHost));
    CHECK(out[0] == -5 && out[1] == 7 && out[2] == 9 && out[3] == -3 && out[4] == 3 && out[5] == 123 && out[6] == 432);
    big_group<<<1, 1024, 1024 * sizeof(int)>>>(device);
    OK(hipGetLastError());
    std::vector<int> reversed(1024);
    OK(hipMemcpy(reversed.data(), device, 1024 * sizeof(int), hipMemcpyDeviceToHost));
    CHECK(reversed[0] == 1023 && reversed[1023] == 0 && reversed[100] == 923);
    big_group<<<1, 1024, 65537>>>(device);
    CHECK(hipGetLastError() == hipErrorOutOfMemory);
    big_group<<<1, 1025>>>(device);
    CHECK(hipGetLastError() == hipErrorInvalidConfiguration);
    big_group<<<0, 64>>>(device);
    CHECK(hipGetLastError() == hipErrorInvalidValue);
    CHECK(hipLaunchKernel(reinterpret_cast<void*>(devices), dim3(1), dim3(1), nullptr, 0, nullptr) ==
          hipErrorInvalidDeviceFunction);
    CHECK(hipGetLastError() == hipErrorInvalidDeviceFunction);
    hipFuncAttributes attributes;
    OK(hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(add_one)));
    CHECK(attributes.maxThreadsPerBlock == 1024 && attributes.numRegs > 0 && attributes.sharedSizeBytes == 0);
    int groups = 0, grid = 0, block = 0;
    OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&groups, add_one, 256, 0));
    CHECK(groups == 8);
    OK(hipOccupancyMaxPotentialBlockSize(&grid, &block, add_one, 0, 0));
    CHECK(block == 1024 && grid > 0);
    OK(hipFree(device));
}

// `hipLaunchKernelExC`, which headers and libraries have from HIP 6.5 on.
struct Attribute {
    unsigned id, padding, value[16];
};
struct Configuration {
    dim3 grid, block;
    size_t dynamic_lds;
    hipStream_t stream;
    Attribute* attributes;
    unsigned count;
};
using LaunchKernelEx = hipError_t (*)(const Configuration*, const void*, void**);
constexpr unsigned cooperative = 2, cluster = 4, priority = 8;

static hipError_t launch_with(std::vector<Attribute> attributes, unsigned groups, int* data) {
    int n = 1 << 30;
    void* arguments[] = {&data, &n};
    Configuration configuration = {dim3(groups), dim3(1), 0, nullptr, attributes.data(), unsigned(attributes.size())};
    auto launch = reinterpret_cast<LaunchKernelEx>(dlsym(RTLD_DEFAULT, "hipLaunchKernelExC"));
    return launch(&configuration, reinterpret_cast<const void*>(add_one), arguments);
}

static void launch_attributes() {
    int groups = 0, units = 0, first = 0, *device = nullptr;
    OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&groups, add_one, 1, 0));
    OK(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 0));
    const unsigned resident = groups * units;
    OK(hipMalloc(&device, (resident + 1) * sizeof(int)));
    OK(hipMemset(device, 0, (resident + 1) * sizeof(int)));
    OK(launch_with({}, 1, device));
    OK(launch_with({{priority, 0, {1}}, {cluster, 0, {1, 1, 1}}}, 1, device));
    OK(launch_with({{cooperative, 0, {1}}}, resident, device));
    CHECK(launch_with({{cooperative, 0, {1}}}, resident + 1, device) == hipErrorCooperativeLaunchTooLarge);
    OK(launch_with({{cooperative, 0, {0}}}, resident + 1, device));
    OK(hipMemcpy(&first, device, sizeof first, hipMemcpyDeviceToHost));
    CHECK(first == 4);
    OK(hipFree(device));
    (void)hipGetLastError();
}

// A launch does not wait for a kernel that waits for a second.
static void kernels_that_wait() {
    wait_for<<<1, 64>>>(100000000);
    CHECK(hipStreamQuery(nullptr) == hipErrorNotReady);
    OK(hipDeviceSynchronize());
    OK(hipStreamQuery(nullptr));
    // The default stream waits for those that were not created to be independent of it, and they for it.
    hipStream_t blocking = nullptr, independent = nullptr;
    OK(hipStreamCreate(&blocking));
    OK(hipStreamCreateWithFlags(&independent, hipStreamNonBlocking));
    wait_for<<<1, 64, 0, blocking>>>(50000000);
    CHECK(hipStreamQuery(blocking) == hipErrorNotReady && hipStreamQuery(nullptr) == hipErrorNotReady);
    OK(hipStreamQuery(independent));
    OK(hipDeviceSynchronize());
    wait_for<<<1, 64>>>(50000000);
    CHECK(hipStreamQuery(blocking) == hipErrorNotReady);
    OK(hipStreamQuery(independent));
    OK(hipStreamDestroy(blocking));
    OK(hipStreamDestroy(independent));
    OK(hipDeviceSynchronize());
    (void)hipGetLastError();
}

static void symbols() {
    int value = 0, *address = nullptr;
    size_t size = 0;
    OK(hipMemcpyFromSymbol(&value, HIP_SYMBOL(counter), sizeof value));
    CHECK(value == 5);
    value = 2;
    OK(hipMemcpyToSymbol(HIP_SYMBOL(counter), &value, sizeof value));
    OK(hipGetSymbolAddress(reinterpret_cast<void**>(&address), HIP_SYMBOL(counter)));
    OK(hipGetSymbolSize(&size, HIP_SYMBOL(counter)));
    CHECK(size == sizeof(int));
    value = 0;
    OK(hipMemcpy(&value, address, sizeof value, hipMemcpyDeviceToHost));
    CHECK(value == 2);
    CHECK(hipMemcpyToSymbol(HIP_SYMBOL(counter), &value, sizeof value, 1) == hipErrorInvalidValue);
    CHECK(hipGetSymbolSize(&size, HIP_SYMBOL(failures)) == hipErrorInvalidSymbol);
    CHECK(shared_total == 40);
    use_managed<<<1, 1>>>();
    OK(hipDeviceSynchronize());
    CHECK(shared_total == 42);
}

static void streams() {
    hipStream_t stream = nullptr, other = nullptr;
    hipEvent_t start = nullptr, stop = nullptr, untimed = nullptr;
    OK(hipStreamCreate(&stream));
    OK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
    OK(hipEventCreate(&start));
    OK(hipEventCreate(&stop));
    OK(hipEventCreateWithFlags(&untimed, hipEventDisableTiming));
    float milliseconds = -1;
    CHECK(hipEventElapsedTime(&milliseconds, start, stop) == hipErrorInvalidHandle);
    int* device = nullptr;
    OK(hipMalloc(&device, 256 * sizeof(int)));
    OK(hipEventRecord(start, stream));
    OK(hipMemsetAsync(device, 0, 256 * sizeof(int), stream));
    add_one<<<1, 256, 0, stream>>>(device, 256);
    OK(hipEventRecord(stop, stream));
    OK(hipStreamWaitEvent(other, stop, 0));
    std::vector<int> back(256);
    OK(hipMemcpyAsync(back.data(), device, 256 * sizeof(int), hipMemcpyDeviceToHost, other));
    OK(hipStreamSynchronize(other));
    OK(hipEventSynchronize(stop));
    OK(hipEventQuery(stop));
    OK(hipStreamQuery(stream));
    CHECK(back == std::vector<int>(256, 1));
    OK(hipEventElapsedTime(&milliseconds, start, stop));
    CHECK(milliseconds >= 0);
    unsigned flags = 9;
    OK(hipStreamGetFlags(other, &flags));
    CHECK(flags == hipStreamNonBlocking);
    int called = 0;
    callback_data = &called;
    OK(hipStreamAddCallback(stream, on_stream, callback_data, 0));
    CHECK(called == 7);
    OK(hipStreamDestroy(stream));
    CHECK(hipStreamSynchronize(stream) == hipErrorContextIsDestroyed);
    OK(hipStreamDestroy(other));
    OK(hipEventDestroy(start));
    OK(hipEventDestroy(stop));
    OK(hipEventDestroy(untimed));
    OK(hipFree(device));
    (void)hipGetLastError();
}

// A module from a file and from memory, launched with an array of pointers and with a packed buffer.
static void modules(const char* path) {
    hipModule_t from_file, from_memory;
    hipFunction_t function, again;
    OK(hipModuleLoad(&from_file, path));
    CHECK(hipModuleLoad(&from_memory, "/no/such/file") == hipErrorFileNotFound);
    CHECK(hipModuleGetFunction(&function, from_file, "no_such_kernel") == hipErrorNotFound);
    OK(hipModuleGetFunction(&function, from_file, "_Z9vectoraddPKfS0_Pfi"));
    std::vector<char> image;
    std::FILE* file = std::fopen(path, "rb");
    for (int c; (c = std::fgetc(file)) != EOF;) {
        image.push_back(static_cast<char>(c));
    }
    std::fclose(file);
    OK(hipModuleLoadData(&from_memory, image.data()));
    OK(hipModuleGetFunction(&again, from_memory, "_Z9vectoraddPKfS0_Pfi"));
    int n = 130;
    std::vector<float> ones(n, 1.0f), sum(n);
    float *a = nullptr, *c = nullptr;
    OK(hipMalloc(&a, n * sizeof(float)));
    OK(hipMalloc(&c, n * sizeof(float)));
    OK(hipMemcpyHtoD(a, ones.data(), n * sizeof(float)));
    void* parameters[] = {&a, &a, &c, &n};
    OK(hipModuleLaunchKernel(function, 2, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
    OK(hipMemcpyDtoH(sum.data(), c, n * sizeof(float)));
    CHECK(sum == std::vector<float>(n, 2.0f));
    struct {
        float *a, *b, *c;
        int n;
    } packed = {c, a, c, n - 1};
    size_t size = sizeof packed;
    void* extra[] = {
        HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size, HIP_LAUNCH_PARAM_END};
    OK(hipModuleLaunchKernel(again, 2, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra));
    OK(hipMemcpyDtoH(sum.data(), c, n * sizeof(float)));
    CHECK(sum[0] == 3.0f && sum[n - 2] == 3.0f && sum[n - 1] == 2.0f);
    OK(hipModuleUnload(from_memory));
    CHECK(hipModuleLaunchKernel(again, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == hipErrorInvalidHandle);
    OK(hipModuleUnload(from_file));
    OK(hipFree(a));
    OK(hipFree(c));
    (void)hipGetLastError();
}

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "missing") == 0) {
        hipIpcMemHandle_t handle;
        std::printf("%d\n", hipIpcGetMemHandle(&handle, nullptr));
        return 0;
    }
    if (argc == 3 && std::strcmp(argv[1], "cluster") == 0) {
        std::printf("%d\n", launch_with({{cluster, 0, {2, 1, 1}}}, 2, nullptr));
        return 0;
    }
    devices();
    memory();
    host_memory();
    launches();
    launch_attributes();
    kernels_that_wait();
    symbols();
    streams();
    modules(argv[1]);
    std::printf("%s\n", failures == 0 ? "PASS" : "FAIL");
    return failures != 0;
}
