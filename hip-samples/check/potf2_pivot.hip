// ROCm/rocm-libraries 10909 (rocSOLVER, reported as ROCm 6623): all work-items read the diagonal element from LDS, and
// the first one replaces it by its root without a barrier in between.
#include "check.h"

const int N = 32;

template <bool MENDED> __global__ void potf2(float *matrix) {
    __shared__ float a[N * N];
    int tid = threadIdx.x;
    for (int i = tid; i < N * N; i += blockDim.x) a[i] = matrix[i];
    __syncthreads();
    for (int k = 0; k < N; ++k) {
        float akk = a[k * N + k];
        float root = sqrtf(akk);
        if constexpr (MENDED) __syncthreads();
        if (tid == 0) a[k * N + k] = root;
        __syncthreads();
        for (int i = k + 1 + tid; i < N; i += blockDim.x) a[i * N + k] /= root;
        __syncthreads();
        for (int at = tid; at < N * N; at += blockDim.x) {
            int i = at / N, j = at % N;
            if (j > k && i >= j) a[at] -= a[i * N + k] * a[j * N + k];
        }
        __syncthreads();
    }
    for (int i = tid; i < N * N; i += blockDim.x) matrix[i] = a[i];
}

static bool run(bool mended) {
    Array<float> matrix(N * N);
    // A product of a triangle with itself: small whole numbers, with 1 to 4 on the diagonal.
    std::vector<float> lower(N * N);
    for (int i = 0; i < N; ++i)
        for (int j = 0; j <= i; ++j) lower[i * N + j] = i == j ? 2 << i % 2 : (i * 3 + j) % 3 - 1;
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j)
            for (int k = 0; k < N; ++k) matrix.host[i * N + j] += lower[i * N + k] * lower[j * N + k];
    matrix.send();
    if (mended) potf2<true><<<1, 256>>>(matrix.device);
    else potf2<false><<<1, 256>>>(matrix.device);
    finished();
    matrix.receive();
    bool right = true;
    for (int i = 0; i < N; ++i)
        for (int j = 0; j <= i; ++j) right &= fabsf(matrix.host[i * N + j] - lower[i * N + j]) < 1e-3f;
    return right;
}
