// Third step: neighbouring lanes compute neighbouring columns, from tiles that a workgroup has in LDS.
#include "product.h"

constexpr int tile = 16;

__global__ void multiply(const float* a, const float* b, float* c, int first) {
    __shared__ float of_a[tile][tile], of_b[tile][tile];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * tile + y, column = blockIdx.x * tile + x;
    float sum = 0;
    for (int at = 0; at < n; at += tile) {
        of_a[y][x] = a[row * n + at + x];
        of_b[y][x] = b[(at + y) * n + column];
        __syncthreads();
        for (int k = 0; k < tile; ++k) {
            sum += of_a[y][k] * of_b[k][x];
        }
        __syncthreads();
    }
    c[first + row * n + column] = sum;
}

int main() {
    return finish(computes("product", [](const float* a, const float* b, float* c) {
        multiply<<<dim3(n / tile, n / tile), dim3(tile, tile)>>>(a, b, c, 0);
    }));
}
