// Prints what HIP answers about kernels, and chooses its work by it. Compiled for one target and run with and without
// counting code: the answers are the same.
#include <dlfcn.h>
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

#define OK(call)                                                    \
    do {                                                            \
        hipError_t status = (call);                                 \
        if (status != hipSuccess) {                                 \
            std::printf("line %d: %d\n", __LINE__, int(status));    \
            std::exit(1);                                           \
        }                                                           \
    } while (0)

__global__ void stage(int* out, int copies, int bins) {
    extern __shared__ int staged[];
    for (int i = threadIdx.x; i < copies * bins; i += blockDim.x) {
        staged[i] = i;
    }
    __syncthreads();
    int sum = 0;
    for (int copy = 0; copy < copies; ++copy) {
        sum += staged[copy * bins + threadIdx.x % bins];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ __launch_bounds__(256) void fixed(int* out, int n) {
    __shared__ int staged[256];
    int stack[16];
    for (int i = 0; i < n; ++i) {
        stack[(i * 7 + threadIdx.x) % 16] = i;
    }
    staged[threadIdx.x] = stack[n % 16];
    __syncthreads();
    out[threadIdx.x] = staged[(threadIdx.x + n) % 256];
}

static void describe(const char* name, const void* kernel) {
    hipFuncAttributes of;
    OK(hipFuncGetAttributes(&of, kernel));
    // Older headers do not declare it.
    using Room = hipError_t (*)(size_t*, const void*, int, int);
    auto room_for = reinterpret_cast<Room>(dlsym(RTLD_DEFAULT, "hipOccupancyAvailableDynamicSMemPerBlock"));
    std::printf("%s: %d registers, %zu LDS, %zu scratch, %d more LDS, %d threads\n", name, of.numRegs,
        of.sharedSizeBytes, of.localSizeBytes, of.maxDynamicSharedSizeBytes, of.maxThreadsPerBlock);
    for (int threads : {64, 256}) {
        size_t room = 0;
        OK(room_for(&room, kernel, 2, threads));
        std::printf("  %d threads, two workgroups: %zu more LDS\n", threads, room);
        for (int lds : {0, 1 << 10, 8 << 10, 20 << 10, 32 << 10}) {
            int workgroups = 0;
            OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&workgroups, kernel, threads, lds));
            std::printf("  %d threads, %d more LDS: %d workgroups\n", threads, lds, workgroups);
        }
    }
    int grid = 0, block = 0;
    OK(hipOccupancyMaxPotentialBlockSize(&grid, &block, kernel, 0, 0));
    std::printf("  best: %d workgroups of %d\n", grid, block);
    // One more than are resident at once cannot be launched together.
    int resident = 0, units = 0;
    OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, 256, 20 << 10));
    OK(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 0));
    int* out = nullptr;
    int one = 1, two = 2;
    void* arguments[] = {&out, &one, &two};
    OK(hipMalloc(&out, size_t(resident) * units * 256 * sizeof(int)));
    hipError_t status =
        hipLaunchCooperativeKernel(kernel, dim3(resident * units + 1), dim3(256), arguments, 20 << 10, nullptr);
    std::printf("  too many: %d\n", int(status));
    (void)hipGetLastError();
    OK(hipFree(out));
}

int main() {
    describe("stage", reinterpret_cast<const void*>(stage));
    describe("fixed", reinterpret_cast<const void*>(fixed));
    // As many copies as keep most workgroups resident.
    const int bins = 512;
    int most = 0, copies = 1;
    for (int n = 1; n <= 7; ++n) {
        int workgroups = 0;
        OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&workgroups, stage, 256, n * bins * sizeof(int)));
        if (workgroups >= most) {
            most = workgroups;
            copies = n;
        }
    }
    std::printf("%d copies, %d workgroups\n", copies, most);
    int* out = nullptr;
    OK(hipMalloc(&out, 8 * 256 * sizeof(int)));
    stage<<<8, 256, copies * bins * sizeof(int)>>>(out, copies, bins);
    OK(hipDeviceSynchronize());
    std::puts("PASS");
}
