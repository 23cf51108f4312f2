// MIOpen: an activation, a pooling and a convolution, against loops on the CPU.
// `miopen activation|pooling|convolution` does one of them.
#include "check.hpp"

#include <miopen/miopen.h>

#include <algorithm>
#include <cstring>

namespace {

miopenHandle_t handle;

miopenTensorDescriptor_t tensor(int n, int c, int h, int w) {
    miopenTensorDescriptor_t descriptor;
    MUST(miopenCreateTensorDescriptor(&descriptor));
    MUST(miopenSet4dTensorDescriptor(descriptor, miopenFloat, n, c, h, w));
    return descriptor;
}

void activation() {
    const int count = 2 * 3 * 16 * 16;
    const auto before = random_values<float>(count);
    Device<float> x(before), y(count);
    const auto shape = tensor(2, 3, 16, 16);
    miopenActivationDescriptor_t relu;
    MUST(miopenCreateActivationDescriptor(&relu));
    MUST(miopenSetActivationDescriptor(relu, miopenActivationRELU, 0, 0, 0));
    const float one = 1, zero = 0;
    MUST(miopenActivationForward(handle, relu, &one, shape, x.get(), &zero, shape, y.get()));
    const auto after = y.read();
    Worst worst;
    for (int i = 0; i < count; ++i) worst.add(std::max(before[i], 0.0f) - after[i]);
    compare("relu", worst, 0);
}

void pooling() {
    const int channels = 3, size = 16, half = size / 2;
    const auto before = random_values<float>(channels * size * size);
    Device<float> x(before), y(channels * half * half);
    const auto from = tensor(1, channels, size, size), to = tensor(1, channels, half, half);
    miopenPoolingDescriptor_t descriptor;
    MUST(miopenCreatePoolingDescriptor(&descriptor));
    MUST(miopenSet2dPoolingDescriptor(descriptor, miopenPoolingMax, 2, 2, 0, 0, 2, 2));
    const float one = 1, zero = 0;
    MUST(miopenPoolingForward(handle, descriptor, &one, from, x.get(), &zero, to, y.get(), false, nullptr, 0));
    const auto after = y.read();
    Worst worst;
    for (int c = 0; c < channels; ++c) {
        for (int row = 0; row < half; ++row) {
            for (int column = 0; column < half; ++column) {
                const float *first = &before[(c * size + 2 * row) * size + 2 * column];
                const float largest = std::max({first[0], first[1], first[size], first[size + 1]});
                worst.add(largest - after[(c * half + row) * half + column]);
            }
        }
    }
    compare("max pooling", worst, 0);
}

void convolution() {
    const int in = 3, out = 8, size = 16;
    const auto image = random_values<float>(in * size * size), filter = random_values<float>(out * in * 3 * 3);
    Device<float> x(image), w(filter), y(out * size * size);
    const auto from = tensor(1, in, size, size), weights = tensor(out, in, 3, 3), to = tensor(1, out, size, size);
    miopenConvolutionDescriptor_t descriptor;
    MUST(miopenCreateConvolutionDescriptor(&descriptor));
    MUST(miopenInitConvolutionDescriptor(descriptor, miopenConvolution, 1, 1, 1, 1, 1, 1));
    size_t space = 0;
    MUST(miopenConvolutionForwardGetWorkSpaceSize(handle, weights, from, descriptor, to, &space));
    Device<char> work(std::max<size_t>(space, 1));
    int found = 0;
    miopenConvAlgoPerf_t chosen;
    MUST(miopenFindConvolutionForwardAlgorithm(handle, from, x.get(), weights, w.get(), descriptor, to, y.get(), 1,
                                               &found, &chosen, work.get(), space, false));
    const float one = 1, zero = 0;
    MUST(miopenConvolutionForward(handle, &one, from, x.get(), weights, w.get(), descriptor, chosen.fwd_algo, &zero,
                                  to, y.get(), work.get(), space));
    const auto after = y.read();
    Worst worst;
    for (int o = 0; o < out; ++o) {
        for (int row = 0; row < size; ++row) {
            for (int column = 0; column < size; ++column) {
                double sum = 0;
                for (int i = 0; i < in * 9; ++i) {
                    const int channel = i / 9, r = row + i / 3 % 3 - 1, c = column + i % 3 - 1;
                    if (r < 0 || c < 0 || r >= size || c >= size) continue;
                    sum += double(image[(channel * size + r) * size + c]) * filter[o * in * 9 + i];
                }
                worst.add(sum - after[(o * size + row) * size + column]);
            }
        }
    }
    compare("convolution", worst, 1e-4);
}

} // namespace

int main(int count, char **arguments) {
    print_device();
    MUST(miopenCreate(&handle));
    const auto chosen = [&](const char *name) { return count < 2 || std::strcmp(arguments[1], name) == 0; };
    if (chosen("activation")) activation();
    if (chosen("pooling")) pooling();
    if (chosen("convolution")) convolution();
    MUST(miopenDestroy(handle));
    return wrong_results != 0;
}
