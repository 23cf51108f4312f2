// Gaussian elimination of a dense system: for each column the multipliers, then the rest of matrix and right side. Two
// launches a column, both of the size of the whole matrix.
#include "nine.h"

constexpr int size = 48, row_block = 512, cell_block = 4;

__global__ void multipliers(float* factors, const float* matrix, int n, int column) {
    int item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= n - 1 - column) {
        return;
    }
    int row = item + column + 1;
    factors[n * row + column] = matrix[n * row + column] / matrix[n * column + column];
}

__global__ void eliminate(const float* factors, float* matrix, float* right, int n, int column) {
    int down = blockIdx.x * blockDim.x + threadIdx.x;
    if (down >= n - 1 - column) {
        return;
    }
    int across = blockIdx.y * blockDim.y + threadIdx.y;
    if (across >= n - column) {
        return;
    }
    int row = down + 1 + column;
    float factor = factors[n * row + column];
    float* cell = matrix + n * row + across + column;
    *cell = fmaf(-factor, matrix[n * column + across + column], *cell);
    if (across == 0) {
        right[row] = fmaf(-factor, right[column], right[row]);
    }
}

int main() {
    Numbers numbers(2);
    std::vector<float> matrix(size * size), right(size), factors(size * size, 0.0f);
    // The diagonal outweighs its row: no pivots are needed.
    for (int row = 0; row < size; ++row) {
        for (int column = 0; column < size; ++column) {
            matrix[row * size + column] = row == column ? 100.0f + row : numbers.signed_unit(64);
        }
        right[row] = numbers.signed_unit(64);
    }

    float* device_matrix = to_device(matrix);
    float* device_right = to_device(right);
    float* device_factors = to_device(factors);
    const dim3 grid(groups_for(size, cell_block), groups_for(size, cell_block)), block(cell_block, cell_block);
    for (int column = 0; column < size - 1; ++column) {
        multipliers<<<groups_for(size, row_block), row_block>>>(device_factors, device_matrix, size, column);
        eliminate<<<grid, block>>>(device_factors, device_matrix, device_right, size, column);
        finished();
    }

    for (int column = 0; column < size - 1; ++column) {
        for (int row = column + 1; row < size; ++row) {
            float factor = matrix[row * size + column] / matrix[column * size + column];
            factors[row * size + column] = factor;
            for (int at = column; at < size; ++at) {
                matrix[row * size + at] = std::fma(-factor, matrix[column * size + at], matrix[row * size + at]);
            }
            right[row] = std::fma(-factor, right[column], right[row]);
        }
    }
    bool ok = matches("matrix", take_back(device_matrix, size * size), matrix);
    ok &= matches("right side", take_back(device_right, size), right);
    ok &= matches("factors", take_back(device_factors, size * size), factors);
    return finish(ok);
}
