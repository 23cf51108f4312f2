// Modules, launches of every form, occupancy, attributes of kernels, and what impossible launches and bad handles are
// answered with. Arguments: a code object to load as a module. Built a second time with NEWER for what programs of HIP
// 6 and later call.
#include "check.h"

#include <hip/hip_ext.h>

#ifdef NEWER
extern "C" hipError_t hipGetDevicePropertiesR0600(void* properties, int device);
extern "C" hipError_t hipChooseDeviceR0600(int* device, const void* properties);
extern "C" hipError_t hipGetProcAddress(
    const char* name, void** out, int version, unsigned long long flags, int* result);
#endif

__global__ void fill(int* out, int value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }
__global__ void __launch_bounds__(128) small(int* out) { out[threadIdx.x] = 1; }
__global__ void staged(int* out) {
    __shared__ int fixed[256];
    extern __shared__ int more[];
    fixed[threadIdx.x] = more[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = fixed[threadIdx.x ^ 1] + more[threadIdx.x ^ 1];
}

static void kernels() {
    hipFuncAttributes attributes;
    OK(hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(staged)));
    CHECK(attributes.sharedSizeBytes == 1024 && attributes.maxDynamicSharedSizeBytes == 65536 - 1024 &&
          attributes.binaryVersion > 0);
    OK(hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(small)));
    CHECK(attributes.maxThreadsPerBlock == 128 && attributes.numRegs > 0);
    OK(hipFuncSetAttribute(reinterpret_cast<const void*>(staged), hipFuncAttributeMaxDynamicSharedMemorySize, 32768));
    CHECK(hipFuncSetAttribute(reinterpret_cast<const void*>(staged), hipFuncAttributeMaxDynamicSharedMemorySize,
              65536) == hipErrorInvalidValue);
    OK(hipFuncSetCacheConfig(reinterpret_cast<const void*>(staged), hipFuncCachePreferL1));
    CHECK(hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernels)) == hipErrorInvalidDeviceFunction);
    int groups = 0, grid = 0, block = 0, units = 0;
    OK(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 0));
    // LDS limits: 1 KiB of its own and 15 KiB more are a quarter of it.
    OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&groups, staged, 64, 15 * 1024));
    CHECK(groups == 4);
    OK(hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&groups, fill, 1024, 0, 0));
    CHECK(groups == 2);
    OK(hipOccupancyMaxPotentialBlockSize(&grid, &block, small, 0, 0));
    CHECK(block == 128 && grid % units == 0 && grid / units >= 16);
}

static void refused(int* out) {
    small<<<1, 129>>>(out);
    CHECK(hipGetLastError() == hipErrorLaunchFailure);
    fill<<<1, dim3(64, 32)>>>(out, 1);
    CHECK(hipGetLastError() == hipErrorInvalidConfiguration);
    fill<<<1, 64, 0, reinterpret_cast<hipStream_t>(0x123450)>>>(out, 1);
    CHECK(hipGetLastError() == hipErrorContextIsDestroyed);
    CHECK(hipStreamDestroy(nullptr) == hipErrorInvalidHandle && hipEventDestroy(nullptr) == hipErrorInvalidHandle);
    CHECK(hipEventRecord(nullptr, nullptr) == hipErrorInvalidHandle &&
          hipStreamWaitEvent(nullptr, nullptr, 0) == hipErrorInvalidHandle);
    CHECK(hipModuleUnload(nullptr) == hipErrorInvalidHandle);
    CHECK(hipLaunchCooperativeKernel(reinterpret_cast<void*>(kernels), dim3(1), dim3(1), nullptr, 0, nullptr) ==
          hipErrorInvalidDeviceFunction);
    int value = 3;
    void* arguments[] = {&out, &value};
    CHECK(hipLaunchCooperativeKernel(reinterpret_cast<void*>(fill), dim3(100000), dim3(1024), arguments, 0, nullptr) ==
          hipErrorCooperativeLaunchTooLarge);
    OK(hipLaunchCooperativeKernel(reinterpret_cast<void*>(fill), dim3(2), dim3(64), arguments, 0, nullptr));
    int back[128];
    OK(hipMemcpy(back, out, sizeof back, hipMemcpyDeviceToHost));
    CHECK(back[0] == 3 && back[127] == 3);
    (void)hipGetLastError();
}

static void modules(const char* path, int* out) {
    hipModule_t module;
    hipFunction_t function;
    OK(hipModuleLoad(&module, path));
    OK(hipModuleGetFunction(&function, module, "_Z9vectoraddPKfS0_Pfi"));
    int groups = 0, n = 64, registers = 0;
    OK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&groups, function, 256, 0));
    CHECK(groups == 8);
    OK(hipFuncGetAttribute(&registers, HIP_FUNC_ATTRIBUTE_NUM_REGS, function));
    CHECK(registers > 0);
    std::vector<float> ones(n, 1.5f), sum(n);
    float *a = nullptr, *c = reinterpret_cast<float*>(out);
    OK(hipMalloc(&a, n * sizeof(float)));
    OK(hipMemcpy(a, ones.data(), n * sizeof(float), hipMemcpyHostToDevice));
    void* parameters[] = {&a, &a, &c, &n};
    hipEvent_t start, stop;
    OK(hipEventCreate(&start));
    OK(hipEventCreate(&stop));
    OK(hipExtModuleLaunchKernel(function, n, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr, start, stop, 0));
    float milliseconds = -1;
    OK(hipEventElapsedTime(&milliseconds, start, stop));
    CHECK(milliseconds >= 0);
    OK(hipMemcpy(sum.data(), c, n * sizeof(float), hipMemcpyDeviceToHost));
    CHECK(sum == std::vector<float>(n, 3.0f));
    CHECK(
        hipModuleLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, nullptr, parameters, nullptr) == hipErrorInvalidValue);
    CHECK(hipModuleLaunchKernel(function, 0, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) == hipErrorInvalidValue);
    CHECK(hipModuleLaunchKernel(function, 1, 1, 1, 0, 1, 1, 0, nullptr, parameters, nullptr) ==
          hipErrorInvalidConfiguration);
    CHECK(hipModuleLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == hipErrorInvalidHandle);
    size_t size = 8;
    void* both[] = {
        HIP_LAUNCH_PARAM_BUFFER_POINTER, parameters, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size, HIP_LAUNCH_PARAM_END};
    CHECK(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, both) == hipErrorInvalidValue);
    hipDeviceptr_t variable;
    CHECK(hipModuleGetGlobal(&variable, &size, module, "no_such_variable") == hipErrorNotFound);
    CHECK(hipModuleLoadData(&module, "this is no image, whatever else it is") != hipSuccess);
    OK(hipFree(a));
    (void)hipGetLastError();
}

static void newer() {
#ifdef NEWER
    static char properties[2048];
    hipDeviceProp_t old;
    int device = 9, result = 9, version = 0, warp = 0;
    OK(hipGetDevicePropertiesR0600(properties, 0));
    OK(hipGetDeviceProperties(&old, 0));
    CHECK(std::strcmp(properties + 1160, old.gcnArchName) == 0 && std::strcmp(properties, old.name) == 0);
    std::memcpy(&warp, properties + 308, sizeof warp);
    CHECK(warp == old.warpSize);
    OK(hipChooseDeviceR0600(&device, properties));
    CHECK(device == 0);
    void *found = nullptr, *direct = nullptr;
    OK(hipGetProcAddress("hipGetDeviceProperties", &found, 600, 0, &result));
    CHECK(found == reinterpret_cast<void*>(hipGetDevicePropertiesR0600) && result == 0);
    OK(hipGetProcAddress("hipMalloc", &direct, 600, 0, &result));
    CHECK(direct != nullptr);
    CHECK(hipGetProcAddress("hipNoSuchCall", &found, 600, 0, &result) == hipErrorInvalidValue && result == 1 &&
          found == nullptr);
    OK(hipRuntimeGetVersion(&version));
    CHECK(version / 10000000 == 6);
    // Numbers that HIP 6 changed.
    int* data = nullptr;
    OK(hipMalloc(&data, 4));
    hipPointerAttribute_t attributes;
    OK(hipPointerGetAttributes(&attributes, data));
    CHECK(static_cast<int>(attributes.memoryType) == 2);
    // Memory that HIP does not know has a type since HIP 6.
    OK(hipPointerGetAttributes(&attributes, &version));
    CHECK(static_cast<int>(attributes.memoryType) == 0 && attributes.device == -2 && !attributes.devicePointer);
    CHECK(hipPointerGetAttributes(&attributes, nullptr) == hipErrorInvalidValue);
    OK(hipFree(data));
    OK(hipPointerGetAttributes(&attributes, data));
    CHECK(static_cast<int>(attributes.memoryType) == 0);
#endif
}

int main(int argc, char** argv) {
    int* out = nullptr;
    OK(hipMalloc(&out, 4096));
    kernels();
    refused(out);
    modules(argv[1], out);
    newer();
    return verdict();
}
