// Workgroups of 8 x 8 x 4 work-items, whose rows are shorter than a cache line. In `blocks` the workgroup beside it
// accesses the rest of each line; in `blocks_apart` nobody does.
#include "../src/selfcheck.h"

constexpr int nx = 32, ny = 16, nz = 8;
constexpr int apart = 16;   // floats from one that is read to the next

__global__ __launch_bounds__(256) void blocks(const float* in, float* out) {
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z * 4 + threadIdx.z;
    int at = (z * ny + y) * nx + x;
    out[at] = 2 * in[at];
}

__global__ __launch_bounds__(256) void blocks_apart(const float* in, float* out) {
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z * 4 + threadIdx.z;
    int at = (z * ny + y) * nx + x;
    out[at] = 2 * in[apart * at];
}

int main() {
    constexpr int points = nx * ny * nz;
    const dim3 grid(nx / 8, ny / 8, nz / 4), block(8, 8, 4);
    std::vector<float> in(apart * points), whole(points), some(points);
    for (int i = 0; i < apart * points; ++i) {
        in[i] = i % 7 + 1;
    }
    for (int i = 0; i < points; ++i) {
        whole[i] = 2 * in[i];
        some[i] = 2 * in[apart * i];
    }
    float *din = to_device(in), *dwhole = to_device(whole), *dsome = to_device(some);
    HIP_CHECK(hipMemset(dwhole, 0, points * sizeof(float)));
    HIP_CHECK(hipMemset(dsome, 0, points * sizeof(float)));
    blocks<<<grid, block>>>(din, dwhole);
    blocks_apart<<<grid, block>>>(din, dsome);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    HIP_CHECK(hipFree(din));
    bool ok = matches("blocks", take_back(dwhole, points), whole);
    ok = matches("blocks_apart", take_back(dsome, points), some) && ok;
    return finish(ok);
}
