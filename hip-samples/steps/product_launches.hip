// First step: a launch for each piece of the product. The argument is how many launches there are: 2048 unless it is
// given; 65536 is a launch for each element.
#include "product.h"

__global__ void multiply(const float* a, const float* b, float* c, int first) {
    int element = first + blockIdx.x * blockDim.x + threadIdx.x;
    int row = element / n, column = element % n;
    float sum = 0;
    for (int k = 0; k < n; ++k) {
        sum += a[row * n + k] * b[k * n + column];
    }
    c[element] = sum;
}

int main(int argc, char** argv) {
    int launches = argc > 1 ? std::atoi(argv[1]) : 2048;
    if (launches < n * n / 1024 || launches > n * n || n * n % launches != 0) {
        std::printf("FAIL launches: a power of two from %d to %d was expected\n", n * n / 1024, n * n);
        return 1;
    }
    int elements = n * n / launches;
    return finish(computes("product", [&](const float* a, const float* b, float* c) {
        for (int launch = 0; launch < launches; ++launch) {
            multiply<<<1, elements>>>(a, b, c, launch * elements);
        }
    }));
}
