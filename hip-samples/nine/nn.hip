// Nearest neighbours: the distance of every record's place from one place, and on the host the ten least.
#include "nine.h"

#include <algorithm>
#include <numeric>

constexpr int records = 42764, block_size = 256, wanted = 10;

struct Place {
    float latitude, longitude;
};

__global__ void euclid(const Place* places, float* distances, int count, float latitude, float longitude) {
    int item = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;
    if (item < count) {
        float down = latitude - places[item].latitude, across = longitude - places[item].longitude;
        distances[item] = sqrtf(fmaf(down, down, across * across));
    }
}

static std::vector<int> least(const std::vector<float>& distances) {
    std::vector<int> order(records);
    std::iota(order.begin(), order.end(), 0);
    auto nearer = [&](int a, int b) { return distances[a] != distances[b] ? distances[a] < distances[b] : a < b; };
    std::partial_sort(order.begin(), order.begin() + wanted, order.end(), nearer);
    order.resize(wanted);
    return order;
}

int main() {
    Numbers numbers(6);
    const float latitude = 30.0f, longitude = 90.0f;
    std::vector<Place> places(records);
    std::vector<float> expected(records);
    for (int i = 0; i < records; ++i) {
        places[i] = {numbers.below(900) / 8.0f, numbers.below(2880) / 8.0f};
        float down = latitude - places[i].latitude, across = longitude - places[i].longitude;
        expected[i] = std::sqrt(std::fma(down, down, across * across));
    }
    Place* device_places = to_device(places);
    float* device_distances = to_device(std::vector<float>(records));
    euclid<<<groups_for(records, block_size), block_size>>>(device_places, device_distances, records, latitude,
                                                           longitude);
    finished();
    HIP_CHECK(hipFree(device_places));
    std::vector<float> distances = take_back(device_distances, records);
    bool ok = matches("distances", distances, expected);
    ok &= matches("nearest", least(distances), least(expected));
    return finish(ok);
}
