// What every sample does around its kernels: check HIP calls, compare with the CPU, print one checksum and PASS or FAIL.
#pragma once
#include <hip/hip_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Ends the program when a HIP call fails: a sample has nothing to show then.
#define HIP_CHECK(call)                                                                   \
    do {                                                                                  \
        hipError_t status = (call);                                                       \
        if (status != hipSuccess) {                                                       \
            std::printf("FAIL %s: %s (%d)\n", #call, hipGetErrorString(status), status); \
            std::exit(1);                                                                 \
        }                                                                                 \
    } while (0)

// FNV-1a over the bytes: a stable line of output that changes with any result.
template <typename T>
uint64_t checksum(const std::vector<T>& values) {
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(values.data());
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < values.size() * sizeof(T); ++i) {
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

// A device array holding a copy of `host`.
template <typename T>
T* to_device(const std::vector<T>& host) {
    T* device = nullptr;
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&device), host.size() * sizeof(T)));
    HIP_CHECK(hipMemcpy(device, host.data(), host.size() * sizeof(T), hipMemcpyHostToDevice));
    return device;
}

// Copies a device array back and frees it.
template <typename T>
std::vector<T> take_back(T* device, size_t count) {
    std::vector<T> host(count);
    HIP_CHECK(hipMemcpy(host.data(), device, count * sizeof(T), hipMemcpyDeviceToHost));
    HIP_CHECK(hipFree(device));
    return host;
}

// Compares with the CPU's result and prints the checksum of what the device computed; true when all are equal.
template <typename T>
bool matches(const char* what, const std::vector<T>& device, const std::vector<T>& expected) {
    std::printf("%s: %zu values, checksum %016llx\n", what, device.size(), static_cast<unsigned long long>(checksum(device)));
    size_t wrong = device.size() == expected.size() ? 0 : 1;
    for (size_t i = 0; i < device.size() && i < expected.size(); ++i) {
        if (device[i] != expected[i] && wrong++ == 0) {
            std::printf("%s: first difference at %zu\n", what, i);
        }
    }
    return wrong == 0;
}

// The last line and the exit code.
inline int finish(bool ok) {
    std::printf("%s\n", ok ? "PASS" : "FAIL");
    return ok ? 0 : 1;
}
