// What the programs of this folder share: arrays on both sides, comparison, and `main`. Each program computes what one
// kernel of a public benchmark computes, in two versions: `NAME as_is` and `NAME fixed`. Both are launched twice; the
// second call finds caches and translations as repeated calls do.

#pragma once

#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using Index = int64_t;

static const int CALLS = 2;

static void require(bool right, const char *what) {
    if (!right) {
        fprintf(stderr, "FAIL: %s\n", what);
        exit(1);
    }
}

// An array on the device, with a copy on the host.
template <typename T> struct Array {
    std::vector<T> host;
    T *device = nullptr;

    explicit Array(size_t count) : host(count) {
        require(hipMalloc((void **)&device, count * sizeof(T)) == hipSuccess, "no memory");
        send();
    }
    // Small numbers, whose sums and products are exact.
    Array(size_t count, int step, T unit = T(1)) : Array(count) {
        for (size_t n = 0; n < count; ++n) host[n] = T(int(n * step % 23) - 5) * unit;
        send();
    }
    ~Array() { (void)hipFree(device); }
    Array(const Array &) = delete;
    void send() {
        size_t bytes = host.size() * sizeof(T);
        require(hipMemcpy(device, host.data(), bytes, hipMemcpyHostToDevice) == hipSuccess, "not copied");
    }
    std::vector<T> result() {
        std::vector<T> back(host.size());
        size_t bytes = host.size() * sizeof(T);
        require(hipMemcpy(back.data(), device, bytes, hipMemcpyDeviceToHost) == hipSuccess, "not copied back");
        return back;
    }
};

// Compares results; the order of sums may differ.
template <typename T>
static void same(const std::vector<T> &got, const std::vector<T> &expected, double within = 1e-9) {
    for (size_t n = 0; n < got.size(); ++n) {
        double apart = std::fabs(double(got[n]) - double(expected[n]));
        if (!(apart <= within * (1 + std::fabs(double(expected[n]))))) {
            fprintf(stderr, "FAIL: element %zu is %.17g, not %.17g\n", n, double(got[n]), double(expected[n]));
            exit(1);
        }
    }
}

static unsigned parts(size_t count, unsigned size) { return unsigned((count + size - 1) / size); }

static void compute(bool fixed);

int main(int count, char **words) {
    require(count == 2 && (!strcmp(words[1], "as_is") || !strcmp(words[1], "fixed")), "say as_is or fixed");
    compute(!strcmp(words[1], "fixed"));
    require(hipDeviceSynchronize() == hipSuccess, "a launch failed");
    puts("PASS");
}
