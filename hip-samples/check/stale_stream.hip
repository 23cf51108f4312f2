// ROCm/legacy-rocm-build 4670 (kokkos): a stream is destroyed and then waited for.
#include "check.h"

__global__ void work(int *out) { out[threadIdx.x] = threadIdx.x; }

static bool run(bool mended) {
    Array<int> out(64);
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    work<<<1, 64, 0, stream>>>(out.device);
    HIP(hipGetLastError());
    if (mended) {
        HIP(hipStreamSynchronize(stream));
        HIP(hipStreamDestroy(stream));
    } else {
        HIP(hipStreamDestroy(stream));
        (void)hipStreamSynchronize(stream); // there is none any more
        HIP(hipDeviceSynchronize());
    }
    out.receive();
    bool right = true;
    for (int i = 0; i < 64; ++i) right &= out.host[i] == i;
    return right;
}
