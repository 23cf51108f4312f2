// rocRAND: mean and variance of four generators, and the numbers of one against the same generator on the CPU.
#include "check.hpp"

#include <rocrand/rocrand.h>

#include <string>

namespace {

void moments(const char *name, rocrand_rng_type type) {
    const int n = 1 << 14;
    rocrand_generator generator;
    MUST(rocrand_create_generator(&generator, type));
    Device<float> numbers(n);
    MUST(rocrand_generate_uniform(generator, numbers.get(), n));
    double sum = 0, squares = 0;
    for (float value : numbers.read()) {
        sum += value;
        squares += double(value) * value;
    }
    MUST(rocrand_destroy_generator(generator));
    const double mean = sum / n, variance = squares / n - mean * mean;
    verdict((std::string(name) + " mean").c_str(), std::fabs(mean - 0.5) < 0.02, "mean", mean);
    verdict((std::string(name) + " variance").c_str(), std::fabs(variance - 1 / 12.0) < 0.01, "variance", variance);
}

void against_cpu() {
    const int n = 4096;
    rocrand_generator gpu, cpu;
    MUST(rocrand_create_generator(&gpu, ROCRAND_RNG_PSEUDO_PHILOX4_32_10));
    MUST(rocrand_create_generator_host_blocking(&cpu, ROCRAND_RNG_PSEUDO_PHILOX4_32_10));
    Device<unsigned> numbers(n);
    std::vector<unsigned> expected(n);
    MUST(rocrand_generate(gpu, numbers.get(), n));
    MUST(rocrand_generate(cpu, expected.data(), n));
    const auto found = numbers.read();
    int different = 0;
    for (int i = 0; i < n; ++i) different += found[i] != expected[i];
    verdict("philox against the CPU", different == 0, "different", different);
    MUST(rocrand_destroy_generator(gpu));
    MUST(rocrand_destroy_generator(cpu));
}

} // namespace

int main() {
    print_device();
    moments("philox", ROCRAND_RNG_PSEUDO_PHILOX4_32_10);
    moments("xorwow", ROCRAND_RNG_PSEUDO_XORWOW);
    moments("mtgp32", ROCRAND_RNG_PSEUDO_MTGP32);
    moments("sobol32", ROCRAND_RNG_QUASI_SOBOL32);
    against_cpu();
    return wrong_results != 0;
}
