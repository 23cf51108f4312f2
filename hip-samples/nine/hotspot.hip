// Temperatures of a chip, a five-point stencil in time steps. A workgroup does `steps` of them on its tile in LDS, of
// which a rim as wide is lost (a pyramid): tiles overlap, and no step needs a launch of its own.
#include "nine.h"

constexpr int side = 256, tile = 16, steps = 2;
constexpr int kept = tile - 2 * steps;

// Capacity of a cell and resistances between them, the length of a step, and what it is like outside.
struct Chip {
    float capacity, across, down, up, length, ambient;
};

// What a step multiplies with.
struct Rates {
    float scale, across, down, up;
};

__device__ Rates rates(const Chip& chip) {
    return {chip.length / chip.capacity, 1 / chip.across, 1 / chip.down, 1 / chip.up};
}

__device__ bool within(int value, int least, int most) { return value >= least && value <= most; }

// In double precision, as its constants are.
__device__ float step(const Rates& rates, float ambient, float power, float here, float north, float south, float east,
                      float west) {
    double vertical = fma(-2.0, here, south + north), horizontal = fma(-2.0, here, east + west);
    double flow = fma(vertical, rates.down, power);
    flow = fma(horizontal, rates.across, flow);
    flow += (ambient - here) * rates.up;
    return static_cast<float>(fma(rates.scale, flow, here));
}

__global__ void heat(int rounds, const float* power, const float* before, float* after, int columns, int rows, int rim,
                     Chip chip) {
    __shared__ float now[tile][tile];
    __shared__ float source[tile][tile];
    __shared__ float next[tile][tile];
    const Rates rate = rates(chip);
    int x = threadIdx.x, y = threadIdx.y;
    int inner = tile - 2 * rounds;
    int top = inner * static_cast<int>(blockIdx.y) - rim, left = inner * static_cast<int>(blockIdx.x) - rim;
    int bottom = top + tile - 1, right = left + tile - 1;
    int row = top + y, column = left + x;
    int at = columns * row + column;
    if (within(row, 0, rows - 1) && within(column, 0, columns - 1)) {
        now[y][x] = before[at];
        source[y][x] = power[at];
    }
    __syncthreads();
    // The part of the tile that is on the chip.
    int first_y = top < 0 ? -top : 0, last_y = bottom > rows - 1 ? tile - 1 - (bottom - rows + 1) : tile - 1;
    int first_x = left < 0 ? -left : 0, last_x = right > columns - 1 ? tile - 1 - (right - columns + 1) : tile - 1;
    int north = y - 1 < first_y ? first_y : y - 1, south = y + 1 > last_y ? last_y : y + 1;
    int west = x - 1 < first_x ? first_x : x - 1, east = x + 1 > last_x ? last_x : x + 1;
    bool computed = false;
    for (int round = 0; round < rounds; ++round) {
        computed = false;
        if (within(x, round + 1, tile - round - 2) && within(y, round + 1, tile - round - 2) &&
            within(x, first_x, last_x) && within(y, first_y, last_y)) {
            computed = true;
            next[y][x] = step(rate, chip.ambient, source[y][x], now[y][x], now[north][x], now[south][x], now[y][east],
                              now[y][west]);
        }
        __syncthreads();
        if (round == rounds - 1) {
            break;
        }
        if (computed) {
            now[y][x] = next[y][x];
        }
        __syncthreads();
    }
    if (computed) {
        after[at] = next[y][x];
    }
}

int main() {
    Numbers numbers(3);
    std::vector<float> power(side * side), before(side * side);
    for (float& value : power) value = numbers.below(64) / 64.0f;
    for (float& value : before) value = 320.0f + numbers.below(640) / 64.0f;
    const Chip chip{4.0f, 8.0f, 8.0f, 32.0f, 1.0f, 80.0f};

    float* device_power = to_device(power);
    float* device_before = to_device(before);
    float* device_after = to_device(std::vector<float>(side * side));
    const dim3 grid(groups_for(side, kept), groups_for(side, kept)), block(tile, tile);
    heat<<<grid, block>>>(steps, device_power, device_before, device_after, side, side, steps, chip);
    finished();
    HIP_CHECK(hipFree(device_power));
    HIP_CHECK(hipFree(device_before));

    for (int round = 0; round < steps; ++round) {
        std::vector<float> after(side * side);
        for (int y = 0; y < side; ++y) {
            for (int x = 0; x < side; ++x) {
                // Beyond an edge it is as warm as at the edge.
                auto near = [&](int row, int column) {
                    row = row < 0 ? 0 : row > side - 1 ? side - 1 : row;
                    column = column < 0 ? 0 : column > side - 1 ? side - 1 : column;
                    return before[row * side + column];
                };
                double here = near(y, x);
                double vertical = std::fma(-2.0, here, near(y + 1, x) + near(y - 1, x));
                double horizontal = std::fma(-2.0, here, near(y, x + 1) + near(y, x - 1));
                double flow = std::fma(vertical, 1 / chip.down, power[y * side + x]);
                flow = std::fma(horizontal, 1 / chip.across, flow);
                flow += (chip.ambient - near(y, x)) * (1 / chip.up);
                after[y * side + x] = static_cast<float>(std::fma(chip.length / chip.capacity, flow, here));
            }
        }
        before = after;
    }
    return finish(matches("temperatures", take_back(device_after, side * side), before));
}
