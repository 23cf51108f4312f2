// pytorch/FBGEMM 5831: work-items past the last row return before a barrier that the others reach. AMD's hardware lets
// waves that have ended pass; HIP does not promise it, and it ended in a deadlock there.
#include "check.h"

template <bool MENDED> __global__ void lengths(const int *rows, int *out, int n) {
    __shared__ int longest;
    int row = blockIdx.x * blockDim.x + threadIdx.x, tid = threadIdx.x;
    if (tid == 0) longest = 0;
    int value = 0;
    if constexpr (MENDED) {
        if (row < n) value = rows[row];
        __syncthreads(); // all work-items
        if (row < n) atomicMax(&longest, value);
        __syncthreads(); // all again
        if (row < n) out[row] = longest - value;
    } else {
        if (row >= n) return;
        value = rows[row];
        __syncthreads(); // without those that returned
        atomicMax(&longest, value);
        __syncthreads(); // as before
        out[row] = longest - value;
    }
}

static bool run(bool mended) {
    const int n = 200;
    Array<int> rows(n), out(n);
    for (int i = 0; i < n; ++i) rows.host[i] = i * 37 % 91;
    rows.send();
    if (mended) lengths<true><<<1, 256>>>(rows.device, out.device, n);
    else lengths<false><<<1, 256>>>(rows.device, out.device, n);
    finished();
    out.receive();
    bool right = true;
    for (int i = 0; i < n; ++i) right &= out.host[i] == 90 - rows.host[i];
    return right;
}
