// One training step of a two-layer neural network: a layer's weighted sums by a tree in LDS, then the update of the
// weights. A workgroup has 16 inputs (rows) of 16 hidden units (columns).
#include "nine.h"

constexpr int inputs = 4096, hidden = 16, tile = 16;
// A row and a column more than there are units: those of the bias.
constexpr int pitch = hidden + 1;
constexpr int weight_count = (inputs + 1) * pitch;
constexpr double rate = 0.25, momentum = 0.25;

__global__ void layer_forward(const float* units, float* weights, float* partial_sums, int levels) {
    __shared__ float unit[tile];
    __shared__ float product[tile][tile];
    int column = threadIdx.x, row = threadIdx.y;
    int from = blockIdx.y * tile + row + 1;
    int at = from * pitch + column + 1;
    if (column == 0) {
        unit[row] = units[from];
    }
    __syncthreads();
    product[row][column] = weights[at];
    __syncthreads();
    product[row][column] *= unit[row];
    __syncthreads();
    // The width of a level is a power in floating point, so the remainder is a division.
#pragma clang loop unroll(disable)
    for (int level = 1; level <= levels; ++level) {
        int width = static_cast<int>(powf(2.0f, static_cast<float>(level)));
        if (row % width == 0) {
            product[row][column] += product[row + width / 2][column];
        }
        __syncthreads();
    }
    weights[at] = product[row][column];
    __syncthreads();
    if (column == 0) {
        partial_sums[blockIdx.y * hidden + row] = product[0][row];
    }
}

// In double precision, as its constants are.
__device__ double change(float delta, float unit, float previous) {
    return fma(rate * delta, unit, momentum * previous);
}

__global__ void adjust_weights(const float* delta, const float* units, float* weights, float* previous) {
    int column = threadIdx.x + 1, row = blockIdx.y * tile + threadIdx.y + 1;
    int at = row * pitch + column;
    weights[at] = static_cast<float>(weights[at] + change(delta[column], units[row], previous[at]));
    previous[at] = static_cast<float>(change(delta[column], units[row], previous[at]));
    __syncthreads();
    if (threadIdx.y == 0 && blockIdx.y == 0) {
        weights[column] = static_cast<float>(weights[column] + change(delta[column], 1.0f, previous[column]));
        previous[column] = static_cast<float>(change(delta[column], 1.0f, previous[column]));
    }
}

int main() {
    Numbers numbers(1);
    std::vector<float> units(inputs + 1), weights(weight_count), previous(weight_count), delta(hidden + 1);
    for (float& value : units) value = numbers.signed_unit(16);
    for (float& value : weights) value = numbers.signed_unit(16);
    for (float& value : previous) value = numbers.signed_unit(16);
    for (float& value : delta) value = numbers.signed_unit(16);
    const int groups = inputs / tile;
    const dim3 grid(1, groups), block(tile, tile);

    float* device_units = to_device(units);
    float* device_weights = to_device(weights);
    float* device_sums = to_device(std::vector<float>(groups * hidden));
    layer_forward<<<grid, block>>>(device_units, device_weights, device_sums, 4);
    finished();
    std::vector<float> sums = take_back(device_sums, groups * hidden);

    std::vector<float> expected_sums(groups * hidden), products(weights);
    for (int group = 0; group < groups; ++group) {
        float product[tile][tile];
        for (int row = 0; row < tile; ++row) {
            for (int column = 0; column < tile; ++column) {
                int from = group * tile + row + 1;
                product[row][column] = weights[from * pitch + column + 1] * units[from];
            }
        }
        for (int width = 2; width <= tile; width *= 2) {
            for (int row = 0; row < tile; row += width) {
                for (int column = 0; column < tile; ++column) {
                    product[row][column] += product[row + width / 2][column];
                }
            }
        }
        for (int row = 0; row < tile; ++row) {
            expected_sums[group * hidden + row] = product[0][row];
            for (int column = 0; column < tile; ++column) {
                products[(group * tile + row + 1) * pitch + column + 1] = product[row][column];
            }
        }
    }
    bool ok = matches("sums", sums, expected_sums);
    ok &= matches("products", take_back(device_weights, weight_count), products);

    device_weights = to_device(weights);
    float* device_previous = to_device(previous);
    float* device_delta = to_device(delta);
    adjust_weights<<<grid, block>>>(device_delta, device_units, device_weights, device_previous);
    finished();
    HIP_CHECK(hipFree(device_units));
    HIP_CHECK(hipFree(device_delta));

    for (int row = 0; row <= inputs; ++row) {
        for (int column = 1; column <= hidden; ++column) {
            int at = row * pitch + column;
            // The bias is a unit that is always 1.
            double unit = row == 0 ? 1.0 : units[row];
            double by = std::fma(rate * delta[column], unit, momentum * previous[at]);
            weights[at] = static_cast<float>(weights[at] + by);
            previous[at] = static_cast<float>(by);
        }
    }
    ok &= matches("weights", take_back(device_weights, weight_count), weights);
    ok &= matches("changes", take_back(device_previous, weight_count), previous);
    return finish(ok);
}
