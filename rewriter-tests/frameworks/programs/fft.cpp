// hipFFT on rocFFT against sums of the definition. `fft 1` transforms lines, `fft 2` rectangles.
#include "check.hpp"

#include <hipfft/hipfft.h>

#include <complex>
#include <string>

namespace {

using Complex = std::complex<float>;
using Exact = std::complex<double>;

// e to the power of -2 pi i part / whole.
Exact root(long part, long whole) {
    return std::polar(1.0, -2 * M_PI * double(part % whole) / double(whole));
}

void line(int n) {
    std::vector<Complex> before(n);
    const auto values = random_values<float>(2 * n);
    for (int i = 0; i < n; ++i) before[i] = Complex(values[2 * i], values[2 * i + 1]);
    Device<Complex> data(before);
    auto *pointer = reinterpret_cast<hipfftComplex *>(data.get());
    hipfftHandle plan;
    MUST(hipfftPlan1d(&plan, n, HIPFFT_C2C, 1));
    MUST(hipfftExecC2C(plan, pointer, pointer, HIPFFT_FORWARD));
    const auto after = data.read();
    MUST(hipfftDestroy(plan));
    Worst worst;
    // 64 of the frequencies are enough.
    for (int k = 0; k < n; k += std::max(1, n / 64)) {
        Exact sum = 0;
        for (int i = 0; i < n; ++i) sum += Exact(before[i]) * root(long(k) * i, n);
        worst.add(std::abs(sum - Exact(after[k])));
    }
    compare(("C2C " + std::to_string(n)).c_str(), worst, 1e-2);
}

void rectangle(int rows, int columns) {
    const auto before = random_values<float>(rows * columns);
    const int half = columns / 2 + 1;
    Device<float> input(before);
    Device<Complex> output(size_t(rows) * half);
    hipfftHandle plan;
    MUST(hipfftPlan2d(&plan, rows, columns, HIPFFT_R2C));
    MUST(hipfftExecR2C(plan, input.get(), reinterpret_cast<hipfftComplex *>(output.get())));
    const auto after = output.read();
    MUST(hipfftDestroy(plan));
    Worst worst;
    for (int k = 0; k < rows; k += 5) {
        for (int l = 0; l < half; l += 3) {
            Exact sum = 0;
            for (int i = 0; i < rows; ++i) {
                for (int j = 0; j < columns; ++j) {
                    sum += double(before[i * columns + j]) * root(long(k) * i, rows) * root(long(l) * j, columns);
                }
            }
            worst.add(std::abs(sum - Exact(after[k * half + l])));
        }
    }
    compare(("R2C " + std::to_string(rows) + "x" + std::to_string(columns)).c_str(), worst, 1e-2);
}

} // namespace

int main(int count, char **arguments) {
    print_device();
    if (count > 1 && arguments[1][0] == '2') {
        rectangle(64, 64);
        rectangle(32, 48);
    } else {
        for (int n : {64, 97, 1000, 4096}) line(n);
    }
    return wrong_results != 0;
}
