// Compiles code while it runs: with headers, options, and names of what templates and namespaces make. With an argument
// it expects that there is no compiler. Ends with PASS.
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

static int failures = 0;

#define CHECK(condition)                                          \
    do {                                                          \
        if (!(condition)) {                                       \
            std::printf("line %d: %s\n", __LINE__, #condition);   \
            std::fflush(stdout);                                  \
            ++failures;                                           \
        }                                                         \
    } while (0)
#define OK(call) CHECK((call) == 0)

static const char* source =
    "#include \"parts/factor.h\"\n"
    "template <typename T> __global__ void scale(T* out, T by) { out[threadIdx.x] = out[threadIdx.x] * by + FACTOR; }\n"
    "namespace inner {\n"
    "__device__ int offset;\n"
    "__global__ void add(int* out) { out[threadIdx.x] += offset + EXTRA + __shfl(warpSize, 3) - 64; }\n"
    "}\n";

static std::string log_of(hiprtcProgram program) {
    size_t size = 0;
    OK(hiprtcGetProgramLogSize(program, &size));
    std::vector<char> log(size + 1);
    OK(hiprtcGetProgramLog(program, log.data()));
    return log.data();
}

static void wrong() {
    hiprtcProgram program;
    CHECK(hiprtcCreateProgram(nullptr, source, "wrong.hip", 0, nullptr, nullptr) == HIPRTC_ERROR_INVALID_PROGRAM);
    OK(hiprtcCreateProgram(&program, "__global__ void f() { nothing_such(); }", "wrong.hip", 0, nullptr, nullptr));
    CHECK(hiprtcCompileProgram(program, 0, nullptr) == HIPRTC_ERROR_COMPILATION);
    CHECK(log_of(program).find("nothing_such") != std::string::npos);
    OK(hiprtcDestroyProgram(&program));
    CHECK(std::strcmp(hiprtcGetErrorString(HIPRTC_ERROR_COMPILATION), "HIPRTC_ERROR_COMPILATION") == 0);
}

int main(int count, char**) {
    const char *header = "#define FACTOR 5\n", *name = "parts/factor.h";
    hiprtcProgram program;
    OK(hiprtcCreateProgram(&program, source, "right.hip", 1, &header, &name));
    OK(hiprtcAddNameExpression(program, "scale<int>"));
    OK(hiprtcAddNameExpression(program, "&scale<float>"));
    OK(hiprtcAddNameExpression(program, "inner::add"));
    OK(hiprtcAddNameExpression(program, "&inner::offset"));
    hipDeviceProp_t properties;
    OK(hipGetDeviceProperties(&properties, 0));
    std::string target = std::string("--gpu-architecture=") + properties.gcnArchName;
    const char* options[] = {target.c_str(), "-DEXTRA=30"};
    hiprtcResult result = hiprtcCompileProgram(program, 2, options);
    if (count > 1) {
        CHECK(result == HIPRTC_ERROR_COMPILATION && log_of(program).find("no Clang was found") != std::string::npos);
        std::printf("%s\n", failures == 0 ? "PASS" : "FAIL");
        return failures != 0;
    }
    OK(result);
    if (result) std::printf("%s\n", log_of(program).c_str());
    size_t size = 0;
    OK(hiprtcGetCodeSize(program, &size));
    std::vector<char> code(size);
    OK(hiprtcGetCode(program, code.data()));
    const char *lowered[4] = {}, *asked[] = {"scale<int>", "&scale<float>", "inner::add", "&inner::offset"};
    for (int at = 0; at < 4; ++at) OK(hiprtcGetLoweredName(program, asked[at], &lowered[at]));
    CHECK(std::strcmp(lowered[0], "_Z5scaleIiEvPT_S0_") == 0);
    CHECK(std::strcmp(lowered[2], "_ZN5inner3addEPi") == 0);
    CHECK(std::strcmp(lowered[3], "_ZN5inner6offsetE") == 0);

    hipModule_t module;
    hipFunction_t scale, add;
    OK(hipModuleLoadData(&module, code.data()));
    OK(hipModuleGetFunction(&scale, module, lowered[0]));
    OK(hipModuleGetFunction(&add, module, lowered[2]));
    hipDeviceptr_t offset;
    OK(hipModuleGetGlobal(&offset, &size, module, lowered[3]));
    CHECK(size == 4);
    int values[64], by = 3, more = 1000, *device;
    for (int at = 0; at < 64; ++at) values[at] = at;
    OK(hipMalloc(reinterpret_cast<void**>(&device), sizeof values));
    OK(hipMemcpy(device, values, sizeof values, hipMemcpyHostToDevice));
    OK(hipMemcpyHtoD(offset, &more, sizeof more));
    void* arguments[] = {&device, &by};
    OK(hipModuleLaunchKernel(scale, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    OK(hipModuleLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    OK(hipMemcpy(values, device, sizeof values, hipMemcpyDeviceToHost));
    for (int at = 0; at < 64; ++at) CHECK(values[at] == at * 3 + 5 + 1000 + 30);
    OK(hipModuleUnload(module));
    OK(hiprtcDestroyProgram(&program));
    wrong();
    std::printf("%s\n", failures == 0 ? "PASS" : "FAIL");
    return failures != 0;
}
