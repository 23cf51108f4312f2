// ROCm/rocm-systems 11431 (hip-tests): a cooperative launch is sized by the occupancy of another kernel than the one
// that is launched, and is larger than the GPU can hold.
#include "check.h"

__global__ void small(int *out) { out[blockIdx.x] = 1; }

__global__ void large(int *out) {
    __shared__ int room[8 << 10]; // 32 KiB: fewer workgroups fit
    for (int i = threadIdx.x; i < (8 << 10); i += blockDim.x) room[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = room[blockIdx.x % (8 << 10)] + 1;
}

static bool run(bool mended) {
    hipDeviceProp_t device;
    HIP(hipGetDeviceProperties(&device, 0));
    int each = 0;
    if (mended) HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&each, large, 64, 0));
    else HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&each, small, 64, 0));
    int groups = each * device.multiProcessorCount;
    Array<int> out(groups);
    void *arguments[] = {&out.device};
    (void)hipLaunchCooperativeKernel((void *)large, dim3(groups), dim3(64), arguments, 0, nullptr);
    (void)hipGetLastError();
    HIP(hipDeviceSynchronize());
    out.receive();
    bool right = groups > 0;
    for (int i = 0; i < groups; ++i) right &= out.host[i] == i % (8 << 10) + 1;
    return right;
}
