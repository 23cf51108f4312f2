// ROCm/rocm-libraries 10960 (rocSOLVER): one triangle of a matrix is copied into a workspace, and the product that
// follows reads the whole square. It goes well as long as new memory is zero.
#include "check.h"

const int N = 32;

__global__ void copy_triangle(const float *a, float *work) {
    int i = blockIdx.x, j = threadIdx.x;
    if (j <= i) work[i * N + j] = a[i * N + j];
}

__global__ void product(const float *work, const float *b, float *out) {
    int i = blockIdx.x, j = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < N; ++k) sum += work[i * N + k] * b[k * N + j];
    out[i * N + j] = sum;
}

static bool run(bool mended) {
    Array<float> a(N * N), b(N * N), out(N * N);
    fill(a.host);
    fill(b.host, 5);
    a.send();
    b.send();
    float *work = nullptr;
    HIP(hipMalloc((void **)&work, N * N * sizeof(float)));
    if (mended) HIP(hipMemset(work, 0, N * N * sizeof(float)));
    copy_triangle<<<N, N>>>(a.device, work);
    product<<<N, N>>>(work, b.device, out.device);
    finished();
    out.receive();
    HIP(hipFree(work));
    bool right = true;
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j) {
            float sum = 0;
            for (int k = 0; k <= i; ++k) sum += a.host[i * N + k] * b.host[k * N + j];
            right &= out.host[i * N + j] == sum;
        }
    return right;
}
