// What the programs of this folder share. Each has one mistake, in two versions: `NAME buggy` makes it, `NAME mended`
// does not, prints PASS and returns 0. A version is a template parameter or a branch of the host's code, so that each
// has lines of its own. After a mistake a program goes on to its end: nothing here depends on what was computed.

#pragma once

#include <hip/hip_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Whether a HIP call that `HIP` surrounds has failed.
static bool failed = false;

static void noted(hipError_t status, const char *call) {
    if (status != hipSuccess) {
        fprintf(stderr, "%s: %s\n", call, hipGetErrorString(status));
        failed = true;
    }
}
#define HIP(call) noted((call), #call)

// Ends the program: without this it has nothing to show.
static void require(bool right, const char *what) {
    if (!right) {
        fprintf(stderr, "FAIL: %s\n", what);
        exit(2);
    }
}

// An array on the device, all of it written, with a copy on the host.
template <typename T> struct Array {
    std::vector<T> host;
    T *device = nullptr;

    explicit Array(size_t count, T value = T()) : host(count, value) {
        require(hipMalloc((void **)&device, bytes()) == hipSuccess, "no memory");
        send();
    }
    ~Array() { HIP(hipFree(device)); }
    Array(const Array &) = delete;
    size_t bytes() const { return host.size() * sizeof(T); }
    void send() { HIP(hipMemcpy(device, host.data(), bytes(), hipMemcpyHostToDevice)); }
    void receive() { HIP(hipMemcpy(host.data(), device, bytes(), hipMemcpyDeviceToHost)); }
};

// Small whole numbers, whose sums and products are exact.
template <typename T> static void fill(std::vector<T> &values, int step = 7) {
    for (size_t n = 0; n < values.size(); ++n) values[n] = T(int(n * step % 23) - 5);
}

// After a launch.
static void finished() {
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
}

// Runs a version; whether its results are right.
static bool run(bool mended);

int main(int count, char **words) {
    require(count == 2 && (!strcmp(words[1], "buggy") || !strcmp(words[1], "mended")), "say buggy or mended");
    bool mended = !strcmp(words[1], "mended");
    bool right = run(mended) && !failed;
    puts(!mended ? "RAN" : right ? "PASS" : "FAIL");
    return mended && !right;
}
