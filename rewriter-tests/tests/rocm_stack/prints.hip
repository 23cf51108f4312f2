// Kernels that call the host: `prints printf`, and `prints assert` for one that ends the program.
#include <hip/hip_runtime.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define HIP(call)                                                                                         \
    do {                                                                                                  \
        hipError_t error = (call);                                                                        \
        if (error != hipSuccess) {                                                                        \
            printf("%s: %s\nFAIL\n", #call, hipGetErrorString(error));                                    \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

extern "C" __global__ void say(int* values) {
    int item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item % 50 == 7) printf("item %d of %s: %.2f %c\n", item, "say", item / 4.0, 'a' + item % 26);
    values[item] = item;
}

extern "C" __global__ void insist(const int* values) {
    int item = blockIdx.x * blockDim.x + threadIdx.x;
    assert(values[item] != 70);
}

int main(int count, char** argument) {
    constexpr int ITEMS = 128;
    int *device, values[ITEMS];
    HIP(hipMalloc((void**)&device, sizeof values));
    say<<<2, 64>>>(device);
    HIP(hipDeviceSynchronize());
    HIP(hipMemcpy(values, device, sizeof values, hipMemcpyDeviceToHost));
    for (int item = 0; item < ITEMS; item++)
        if (values[item] != item) return printf("FAIL\n"), 1;
    fflush(stdout);
    if (count > 1 && !strcmp(argument[1], "assert")) {
        insist<<<2, 64>>>(device);
        HIP(hipDeviceSynchronize());
    }
    printf("PASS\n");
    return 0;
}
