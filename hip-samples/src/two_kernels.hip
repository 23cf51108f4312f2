// Several kernels and launches on 1-D, 2-D and 3-D grids whose last workgroups are only partly needed.
#include "selfcheck.h"

__global__ void ramp(unsigned* data, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        data[i] = i * i + 3u;
    }
}

__global__ void checker(unsigned* data, unsigned width, unsigned height) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }
    if ((x + y) % 2 == 0) {
        data[y * width + x] ^= 0x55aa55aau;
    }
}

__global__ void volume(unsigned* data, unsigned width, unsigned height, unsigned depth) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < width && y < height && z < depth) {
        data[(z * height + y) * width + x] += x + 100u * y + 10000u * z + gridDim.z;
    }
}

int main() {
    const unsigned width = 30, height = 20, depth = 5, n = width * height * depth;
    std::vector<unsigned> expected(n, 0);
    unsigned* data = to_device(expected);
    ramp<<<(n + 191) / 192, 192>>>(data, n);
    HIP_CHECK(hipGetLastError());
    for (int launch = 0; launch < 3; ++launch) {
        checker<<<dim3(2, 3 * depth), dim3(16, 8)>>>(data, width, height * depth);
        HIP_CHECK(hipGetLastError());
    }
    volume<<<dim3(4, 5, 3), dim3(8, 4, 2)>>>(data, width, height, depth);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipDeviceSynchronize());
    for (unsigned i = 0; i < n; ++i) {
        unsigned x = i % width, y = i / width % height, z = i / width / height;
        expected[i] = i * i + 3u;
        // The checkerboard sees the planes stacked into one tall image; three launches leave one flip.
        if ((x + i / width) % 2 == 0) {
            expected[i] ^= 0x55aa55aau;
        }
        expected[i] += x + 100u * y + 10000u * z + 3u;
    }
    return finish(matches("volume", take_back(data, n), expected));
}
