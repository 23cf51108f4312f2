// EricLBuehler/mistral.rs 1825: the softmax of the top k has a local array for 16 numbers, and k is larger. (Here the
// array is larger, too, because compilers keep small ones in registers.)
#include "check.h"

const int LIMIT = 96;

template <bool MENDED> __global__ void softmax(const float *scores, float *out, int k) {
    float weights[LIMIT];
    float sum = 0;
    const float *row = scores + threadIdx.x * k;
    if constexpr (MENDED) {
        for (int i = 0; i < k; ++i) {
            if (i < LIMIT) weights[i] = row[i] * 2;
            sum += row[i] * 2;
        }
        for (int i = 0; i < k; ++i) out[threadIdx.x * k + i] = (i < LIMIT ? weights[i] : row[i] * 2) + sum;
    } else {
        for (int i = 0; i < k; ++i) {
            weights[i] = row[i] * 2; // past the end of the local array
            sum += row[i] * 2;
        }
        for (int i = 0; i < k; ++i) out[threadIdx.x * k + i] = weights[i] + sum; // as well
    }
}

static bool run(bool mended) {
    const int rows = 64, k = 120;
    Array<float> scores(rows * k), out(rows * k);
    fill(scores.host);
    scores.send();
    if (mended) softmax<true><<<1, rows>>>(scores.device, out.device, k);
    else softmax<false><<<1, rows>>>(scores.device, out.device, k);
    finished();
    out.receive();
    bool right = true;
    for (int row = 0; row < rows; ++row) {
        float sum = 0;
        for (int i = 0; i < k; ++i) sum += scores.host[row * k + i] * 2;
        for (int i = 0; i < k; ++i) right &= out.host[row * k + i] == scores.host[row * k + i] * 2 + sum;
    }
    return right;
}
