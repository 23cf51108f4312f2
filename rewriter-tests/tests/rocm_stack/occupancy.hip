// Asks AMD's runtime about the kernels of a code object, or launches one:
//     occupancy ask FILE KERNEL...           how many workgroups a multiprocessor holds, for several sizes and
//                                          amounts of dynamic LDS, and which size it advises
//     occupancy launch FILE KERNEL THREADS   one workgroup, with a pointer to 4 KiB as its argument
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

static hipFunction_t kernel_of(hipModule_t module, const char* name) {
    hipFunction_t kernel;
    if (hipModuleGetFunction(&kernel, module, name) != hipSuccess) {
        std::printf("%s is not there\n", name);
        std::exit(1);
    }
    return kernel;
}

static void ask(hipModule_t module, const char* name) {
    hipFunction_t kernel = kernel_of(module, name);
    for (int threads : {1, 32, 33, 64, 65, 128, 192, 256, 320, 512, 640, 768, 960, 1024, 1025}) {
        for (int lds : {0, 1000, 8192, 20000}) {
            int groups = -1;
            hipError_t status = hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&groups, kernel, threads, lds);
            std::printf("%s %d %d %d %d\n", name, threads, lds, int(status), groups);
        }
    }
    int grid = -1, block = -1;
    hipError_t status = hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, kernel, 0, 0);
    std::printf("%s best %d %d %d\n", name, int(status), grid, block);
}

int main(int count, char** arguments) {
    hipModule_t module;
    if (hipError_t status = hipModuleLoad(&module, arguments[2])) {
        std::printf("load: %s\n", hipGetErrorName(status));
        return 1;
    }
    if (std::strcmp(arguments[1], "ask") == 0) {
        hipDeviceProp_t properties;
        if (hipGetDeviceProperties(&properties, 0) != hipSuccess) {
            return 1;
        }
        std::printf("multiprocessors - %d\n", properties.multiProcessorCount);
        for (int index = 3; index < count; ++index) {
            ask(module, arguments[index]);
        }
        return 0;
    }
    void* memory = nullptr;
    hipError_t status = hipMalloc(&memory, 4096);
    void* kernel_arguments[] = {&memory};
    hipFunction_t kernel = kernel_of(module, arguments[3]);
    if (status == hipSuccess) {
        status = hipModuleLaunchKernel(kernel, 1, 1, 1, std::atoi(arguments[4]), 1, 1, 0, nullptr, kernel_arguments,
            nullptr);
    }
    std::printf("launched: %s\n", hipGetErrorName(status));
    std::fflush(stdout);
    status = hipDeviceSynchronize();
    std::printf("ended: %s\n", hipGetErrorName(status));
    return 0;
}
