// Device printf. With the argument `host` the host prints what the first kernel does; the test compares the two.
#include "check.h"

#define LINE "lane %3d of %s: %.2f %5.1e %c %x %lld %s %p%%\n"
#define LONG "the device, whose name is longer than one packet holds, by far"

__host__ __device__ static void say_one(int i, const char* name, float f) {
    if (i % 3 == 0) {
        printf(LINE, i, LONG, f * i, double(f) / (i + 1), 'a' + i % 26, i * 17, 10000000000ll * i, name,
            (void*)(long long)(i + 1));
    } else if (i % 3 == 1) {
        printf("%d\n", -i);
    }
}

__global__ void say(const char* name, float f) { say_one(blockIdx.x * blockDim.x + threadIdx.x, name, f); }

__global__ void lengths(int* out) { out[threadIdx.x] = printf("%*d\n", 5 + int(threadIdx.x), 0); }

int main(int argc, char** argv) {
    if (argc > 1) {
        for (int i = 0; i < 140; ++i) {
            say_one(i, "from memory", 1.25f);
        }
        return 0;
    }
    char* name = nullptr;
    OK(hipMalloc(&name, 16));
    OK(hipMemcpy(name, "from memory", 12, hipMemcpyHostToDevice));
    std::printf("before\n");
    say<<<2, 70>>>(name, 1.25f);
    OK(hipGetLastError());
    OK(hipDeviceSynchronize());
    std::printf("between\n");
    int *out = nullptr, back[4];
    OK(hipMalloc(&out, sizeof back));
    lengths<<<1, 4>>>(out);
    OK(hipMemcpy(back, out, sizeof back, hipMemcpyDeviceToHost));
    for (int i = 0; i < 4; ++i) {
        CHECK(back[i] == 6 + i);
    }
    return verdict();
}
