// Code that a program loads while it runs:
//
//     modules load OBJECT     the code object, from memory and from the file, its variable and its kernels
//     modules compile FILE    a kernel that HIP compiles (hipRTC); its code object is written to the file
//     modules run FILE        that code object, from the file
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#define HIP(call)                                                                                         \
    do {                                                                                                  \
        hipError_t error = (call);                                                                        \
        if (error != hipSuccess) fail(#call, hipGetErrorString(error));                                   \
    } while (0)
#define RTC(call)                                                                                         \
    do {                                                                                                  \
        hiprtcResult error = (call);                                                                      \
        if (error != HIPRTC_SUCCESS) fail(#call, hiprtcGetErrorString(error));                            \
    } while (0)

static void fail(const char* what, const char* why) {
    printf("%s: %s\nFAIL\n", what, why);
    exit(1);
}

static void check(const char* what, bool right) {
    if (!right) fail(what, "wrong result");
    printf("%s\n", what);
}

constexpr int ITEMS = 256;
constexpr size_t BYTES = ITEMS * sizeof(int);

static std::vector<char> read(const char* path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) fail(path, "cannot be read");
    return {std::istreambuf_iterator<char>(file), {}};
}

// A kernel of this very program, beside those that it loads.
__global__ void own(int* values) {
    if (threadIdx.x < 100) values[threadIdx.x] += 1000;
}

static int* zeros() {
    int* values;
    HIP(hipMalloc((void**)&values, BYTES));
    HIP(hipMemset(values, 0, BYTES));
    return values;
}

static std::vector<int> take(const int* device) {
    std::vector<int> values(ITEMS);
    HIP(hipMemcpy(values.data(), device, BYTES, hipMemcpyDeviceToHost));
    return values;
}

static void load(const char* path) {
    std::vector<char> bytes = read(path);
    hipModule_t memory, file;
    HIP(hipModuleLoadData(&memory, bytes.data()));
    HIP(hipModuleLoad(&file, path));
    for (hipModule_t module : {memory, file}) {
        hipFunction_t scale, absent;
        HIP(hipModuleGetFunction(&scale, module, "scale"));
        check("no such kernel", hipModuleGetFunction(&absent, module, "absent") == hipErrorNotFound);
        // Each module has a variable of its own.
        hipDeviceptr_t factor;
        size_t size;
        HIP(hipModuleGetGlobal(&factor, &size, module, "factor"));
        int value = module == memory ? 3 : 5;
        check("a variable", size == sizeof value);
        HIP(hipMemcpyHtoD(factor, &value, size));

        int* values = zeros();
        int count = 200;
        void* arguments[] = {&values, &count};
        HIP(hipModuleLaunchKernel(scale, ITEMS / 64, 1, 1, 64, 1, 1, 0, 0, arguments, nullptr));
        own<<<1, ITEMS>>>(values);
        // The same by a buffer of arguments, on a stream.
        struct {
            int* values;
            int count;
        } packed = {values, count};
        size_t packed_size = sizeof packed;
        void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &packed_size,
                         HIP_LAUNCH_PARAM_END};
        hipStream_t stream;
        HIP(hipStreamCreate(&stream));
        HIP(hipModuleLaunchKernel(scale, ITEMS / 64, 1, 1, 64, 1, 1, 0, stream, nullptr, extra));
        HIP(hipStreamSynchronize(stream));
        std::vector<int> found = take(values);
        bool right = true;
        for (int item = 0; item < ITEMS; item++) {
            int expected = item < count ? item * value : 0;
            expected += item < 100 ? 1000 : 0;
            expected += item < count ? item * value : 0;
            right &= found[item] == expected;
        }
        check("its kernel", right);
        HIP(hipFree(values));
    }
    HIP(hipModuleUnload(memory));
    HIP(hipModuleUnload(file));
    // Loaded again after it was unloaded.
    HIP(hipModuleLoadDataEx(&memory, bytes.data(), 0, nullptr, nullptr));
    HIP(hipModuleUnload(memory));
    std::vector<char> nonsense(4096, 'x');
    check("no module", hipModuleLoadData(&memory, nonsense.data()) != hipSuccess);
}

static void run(const std::vector<char>& code, const char* kernel) {
    hipModule_t module;
    hipFunction_t function;
    HIP(hipModuleLoadData(&module, code.data()));
    HIP(hipModuleGetFunction(&function, module, kernel));
    int* values = zeros();
    void* arguments[] = {&values};
    HIP(hipModuleLaunchKernel(function, ITEMS / 128, 1, 1, 128, 1, 1, 0, 0, arguments, nullptr));
    std::vector<int> found = take(values);
    bool right = true;
    for (int item = 0; item < ITEMS; item++) {
        int expected = 0;
        for (int n = item; n > 0; n = n % 3 ? n - 1 : n / 3) expected++;
        right &= found[item] == expected;
    }
    check("a compiled kernel", right);
    HIP(hipModuleUnload(module));
}

static std::vector<char> compile(const char* path) {
    const char* source =
        "extern \"C\" __global__ void thirds(int *out) {\n"
        "    int item = blockIdx.x * blockDim.x + threadIdx.x, count = 0;\n"
        "    for (int n = item; n > 0; n = n % 3 ? n - 1 : n / 3) count++;\n"
        "    out[item] = count;\n"
        "}\n";
    hiprtcProgram program;
    RTC(hiprtcCreateProgram(&program, source, "thirds.hip", 0, nullptr, nullptr));
    hipDeviceProp_t properties;
    HIP(hipGetDeviceProperties(&properties, 0));
    std::string target = std::string("--gpu-architecture=") + properties.gcnArchName;
    const char* options[] = {target.c_str(), "-O2"};
    if (hiprtcCompileProgram(program, 2, options) != HIPRTC_SUCCESS) {
        size_t size = 0;
        RTC(hiprtcGetProgramLogSize(program, &size));
        std::vector<char> log(size + 1);
        RTC(hiprtcGetProgramLog(program, log.data()));
        fail("hiprtcCompileProgram", log.data());
    }
    size_t size = 0;
    RTC(hiprtcGetCodeSize(program, &size));
    std::vector<char> code(size);
    RTC(hiprtcGetCode(program, code.data()));
    RTC(hiprtcDestroyProgram(&program));
    std::ofstream(path, std::ios::binary).write(code.data(), code.size());
    return code;
}

int main(int count, char** argument) {
    setvbuf(stdout, nullptr, _IONBF, 0);
    if (count != 3) return 2;
    if (!strcmp(argument[1], "load")) load(argument[2]);
    if (!strcmp(argument[1], "compile")) run(compile(argument[2]), "thirds");
    if (!strcmp(argument[1], "run")) run(read(argument[2]), "thirds");
    printf("PASS\n");
    return 0;
}
