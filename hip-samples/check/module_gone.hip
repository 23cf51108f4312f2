// oneapi-src/SYCLomatic-test 230: a module is unloaded before its kernel has run. Here the function is launched after
// its module was unloaded. The program is its own module: it has the bundle of all targets.
#include "check.h"

extern "C" __global__ void work(int *out) { out[threadIdx.x] = threadIdx.x * 2; }

static std::vector<char> bundle() {
    const std::string magic = std::string("__CLANG_OFFLOAD_") + "BUNDLE__";
    std::vector<char> file;
    FILE *self = fopen("/proc/self/exe", "rb");
    require(self, "the program's own file cannot be read");
    char part[4096];
    for (size_t got; (got = fread(part, 1, sizeof part, self)) > 0;) file.insert(file.end(), part, part + got);
    fclose(self);
    for (size_t at = 0; at + magic.size() < file.size(); at += 8)
        if (!memcmp(&file[at], magic.data(), magic.size())) return std::vector<char>(file.begin() + at, file.end());
    require(false, "the program has no bundle");
    return {};
}

static bool run(bool mended) {
    Array<int> out(64);
    std::vector<char> image = bundle();
    hipModule_t module;
    hipFunction_t function;
    HIP(hipModuleLoadData(&module, image.data()));
    HIP(hipModuleGetFunction(&function, module, "work"));
    void *arguments[] = {&out.device};
    if (mended) {
        HIP(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
        HIP(hipDeviceSynchronize());
        HIP(hipModuleUnload(module));
    } else {
        HIP(hipModuleUnload(module));
        (void)hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr); // there is none
        (void)hipDeviceSynchronize();
    }
    out.receive();
    bool right = true;
    for (int i = 0; i < 64; ++i) right &= out.host[i] == i * 2;
    return right;
}
