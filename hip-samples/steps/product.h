// The product of two matrices whose elements are small whole numbers: sums are exact in any order.
#pragma once
#include "../src/selfcheck.h"

constexpr int n = 256;  // rows and columns

struct Matrices {
    std::vector<float> a = std::vector<float>(n * n), b = std::vector<float>(n * n);
    std::vector<float> product = std::vector<float>(n * n);

    Matrices() {
        for (int i = 0; i < n * n; ++i) {
            a[i] = i % 7;
            b[i] = i % 5;
        }
        for (int row = 0; row < n; ++row) {
            for (int k = 0; k < n; ++k) {
                for (int column = 0; column < n; ++column) {
                    product[row * n + column] += a[row * n + k] * b[k * n + column];
                }
            }
        }
    }
};

// Has `launch` compute the product on the device, and compares it.
template <typename Launch>
bool computes(const char* what, Launch launch) {
    Matrices matrices;
    float *a = to_device(matrices.a), *b = to_device(matrices.b), *c = to_device(std::vector<float>(n * n));
    launch(a, b, c);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipFree(a));
    HIP_CHECK(hipFree(b));
    return matches(what, take_back(c, n * n), matrices.product);
}
