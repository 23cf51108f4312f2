// What the programs of this folder share. Each computes on the GPU, compares with a plain loop on the CPU, prints a
// line for each comparison (`NAME: PASS, …` or `NAME: WRONG, …`), and ends with 1 if one was wrong.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

// A call that must succeed: any library's status is 0 then.
#define MUST(call)                                                                    \
    do {                                                                              \
        const int status_ = static_cast<int>(call);                                   \
        if (status_ != 0) {                                                           \
            std::printf("%s:%d: %s returned %d\n", __FILE__, __LINE__, #call, status_); \
            std::exit(2);                                                             \
        }                                                                             \
    } while (0)

// Memory of the GPU with the values of a vector.
template <class T> class Device {
    T *data_ = nullptr;
    size_t count_;

  public:
    explicit Device(size_t count) : count_(count) {
        MUST(hipMalloc(reinterpret_cast<void **>(&data_), count * sizeof(T)));
    }
    explicit Device(const std::vector<T> &values) : Device(values.size()) {
        MUST(hipMemcpy(data_, values.data(), count_ * sizeof(T), hipMemcpyHostToDevice));
    }
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;
    ~Device() { (void)hipFree(data_); }

    T *get() const { return data_; }
    std::vector<T> read() const {
        std::vector<T> values(count_);
        MUST(hipDeviceSynchronize());
        MUST(hipMemcpy(values.data(), data_, count_ * sizeof(T), hipMemcpyDeviceToHost));
        return values;
    }
};

// Values between -1 and 1, the same in each run.
template <class T> std::vector<T> random_values(size_t count) {
    static std::mt19937 generator(1);
    std::uniform_real_distribution<double> between(-1.0, 1.0);
    std::vector<T> values(count);
    for (T &value : values) value = static_cast<T>(between(generator));
    return values;
}

// The largest difference, which is NaN if one of them is.
class Worst {
    double worst_ = 0;

  public:
    void add(double difference) {
        const double size = std::fabs(difference);
        if (!(size <= worst_)) worst_ = size;
    }
    double get() const { return worst_; }
};

inline int wrong_results = 0;

inline void verdict(const char *name, bool right, const char *unit, double value) {
    if (!right) wrong_results += 1;
    std::printf("%s: %s, %s %.3g\n", name, right ? "PASS" : "WRONG", unit, value);
    std::fflush(stdout);
}

inline void compare(const char *name, const Worst &worst, double limit) {
    verdict(name, worst.get() <= limit, "largest error", worst.get());
}

inline void print_device() {
    hipDeviceProp_t properties;
    MUST(hipGetDeviceProperties(&properties, 0));
    std::printf("device %s\n", properties.gcnArchName);
}
