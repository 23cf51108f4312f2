// transpose.hip with all loads of a lane under way before the first is waited for.
#include "selfcheck.h"

constexpr int tile = 32, tile_rows = 8;

__global__ void transpose(const int* input, int* output, int width, int height) {
    __shared__ int staged[tile][tile + 1];
    int x = blockIdx.x * tile + threadIdx.x;
    int y = blockIdx.y * tile + threadIdx.y;
    int loaded[tile / tile_rows];
    // What lies outside is not written again: any word does, and without a branch for each the loads stay together.
    int column = min(x, width - 1);
#pragma unroll
    for (int n = 0; n < tile / tile_rows; ++n) {
        loaded[n] = input[min(y + n * tile_rows, height - 1) * width + column];
    }
#pragma unroll
    for (int n = 0; n < tile / tile_rows; ++n) {
        staged[threadIdx.y + n * tile_rows][threadIdx.x] = loaded[n];
    }
    __syncthreads();
    x = blockIdx.y * tile + threadIdx.x;
    y = blockIdx.x * tile + threadIdx.y;
#pragma clang loop unroll(disable)
    for (int row = 0; row < tile; row += tile_rows) {
        if (x < height && y + row < width) {
            output[(y + row) * height + x] = staged[threadIdx.x][threadIdx.y + row];
        }
    }
}

int main() {
    const int width = 100, height = 70;
    std::vector<int> input(width * height), expected(width * height);
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            input[y * width + x] = y * 1000 + x;
            expected[x * height + y] = y * 1000 + x;
        }
    }
    int *din = to_device(input), *dout = to_device(std::vector<int>(width * height));
    dim3 groups((width + tile - 1) / tile, (height + tile - 1) / tile), block(tile, tile_rows);
    transpose<<<groups, block>>>(din, dout, width, height);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    bool ok = matches("transposed", take_back(dout, width * height), expected);
    HIP_CHECK(hipFree(din));
    return finish(ok);
}
