// Clustering by k-means: points are transposed once, so that neighbours read neighbouring addresses, and then assigned
// to their nearest centre again and again; the host moves the centres.
#include "nine.h"

constexpr int points = 2048, features = 34, clusters = 5, block_size = 256;
// A square of workgroups that has at least as many as are needed (eight).
constexpr int square = 3;
constexpr int rounds = 31;

__constant__ float centres[features * clusters];

__global__ void transpose_points(const float* by_point, float* by_feature, int count, int width) {
    int point = threadIdx.x + blockDim.x * blockIdx.x;
    if (point < count) {
#pragma clang loop unroll(disable)
        for (int feature = 0; feature < width; ++feature) {
            by_feature[point + count * feature] = by_point[point * width + feature];
        }
    }
}

__global__ void assign_points(const float* by_feature, int width, int count, int choices, int* membership) {
    int block = gridDim.x * blockIdx.y + blockIdx.x;
    int point = block * blockDim.x * blockDim.y + threadIdx.x;
    if (point < count) {
        int nearest = -1;
        float least = 3.40282347e+38f;
#pragma clang loop unroll(disable)
        for (int choice = 0; choice < choices; ++choice) {
            float distance = 0.0f;
#pragma clang loop unroll(disable)
            for (int feature = 0; feature < width; ++feature) {
                float difference = by_feature[point + feature * count] - centres[choice * width + feature];
                distance = fmaf(difference, difference, distance);
            }
            if (distance < least) {
                least = distance;
                nearest = choice;
            }
        }
        membership[point] = nearest;
    }
}

// The centres of the points that belong to each, or the old one where there is none.
static void move_centres(const std::vector<float>& data, const std::vector<int>& membership, std::vector<float>& at) {
    std::vector<float> sums(clusters * features, 0.0f);
    std::vector<int> members(clusters, 0);
    for (int point = 0; point < points; ++point) {
        ++members[membership[point]];
        for (int feature = 0; feature < features; ++feature) {
            sums[membership[point] * features + feature] += data[point * features + feature];
        }
    }
    for (int i = 0; i < clusters * features; ++i) {
        if (members[i / features] > 0) at[i] = sums[i] / members[i / features];
    }
}

static std::vector<int> nearest_centres(const std::vector<float>& data, const std::vector<float>& at) {
    std::vector<int> membership(points);
    for (int point = 0; point < points; ++point) {
        float least = 3.40282347e+38f;
        for (int cluster = 0; cluster < clusters; ++cluster) {
            float distance = 0.0f;
            for (int feature = 0; feature < features; ++feature) {
                float difference = data[point * features + feature] - at[cluster * features + feature];
                distance = std::fma(difference, difference, distance);
            }
            if (distance < least) {
                least = distance;
                membership[point] = cluster;
            }
        }
    }
    return membership;
}

int main() {
    Numbers numbers(5);
    std::vector<float> data(points * features);
    for (float& value : data) value = static_cast<float>(numbers.below(256));
    const std::vector<float> first(data.begin(), data.begin() + clusters * features);

    float* by_point = to_device(data);
    float* by_feature = to_device(std::vector<float>(points * features));
    transpose_points<<<square * square, block_size>>>(by_point, by_feature, points, features);
    finished();
    HIP_CHECK(hipFree(by_point));
    int* device_membership = to_device(std::vector<int>(points, -1));
    std::vector<float> at(first), expected_at(first);
    std::vector<int> membership(points), expected;
    for (int round = 0; round < rounds; ++round) {
        HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(centres), at.data(), at.size() * sizeof(float)));
        assign_points<<<dim3(square, square), block_size>>>(by_feature, features, points, clusters, device_membership);
        finished();
        HIP_CHECK(hipMemcpy(membership.data(), device_membership, points * sizeof(int), hipMemcpyDeviceToHost));
        move_centres(data, membership, at);
        expected = nearest_centres(data, expected_at);
        move_centres(data, expected, expected_at);
    }
    HIP_CHECK(hipFree(device_membership));

    std::vector<float> transposed(points * features);
    for (int point = 0; point < points; ++point) {
        for (int feature = 0; feature < features; ++feature) {
            transposed[feature * points + point] = data[point * features + feature];
        }
    }
    bool ok = matches("transposed", take_back(by_feature, points * features), transposed);
    ok &= matches("membership", membership, expected);
    ok &= matches("centres", at, expected_at);
    return finish(ok);
}
