// A kernel without a bound that writes past the end of an allocation, within its last page.
#include "check.h"

__global__ void fill(int* data) { data[threadIdx.x] = threadIdx.x; }

int main() {
    int* data = nullptr;
    OK(hipMalloc(&data, 2 * sizeof(int)));
    for (int round = 0; round < 3; ++round) fill<<<1, 128>>>(data);
    hipError_t status = hipDeviceSynchronize();
    std::printf("status %d\n", status);
    if (status == hipSuccess) {
        int back[2] = {};
        OK(hipMemcpy(back, data, sizeof back, hipMemcpyDeviceToHost));
        CHECK(back[0] == 0 && back[1] == 1);
    }
    return verdict();
}
