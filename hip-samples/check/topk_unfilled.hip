// vllm-project/vllm 49666: with infinities or NaN among the scores fewer places of the top k are filled in LDS than are
// copied out, and the rest is used as an index.
#include "check.h"

const int K = 64;

template <bool MENDED> __global__ void select(const float *scores, const int *table, int *out, int n) {
    __shared__ int chosen[K];
    __shared__ int count;
    int tid = threadIdx.x;
    if (tid == 0) count = 0;
    if constexpr (MENDED) chosen[tid] = 0;
    __syncthreads();
    for (int i = tid; i < n; i += K)
        if (scores[i] > 0) {
            int at = atomicAdd(&count, 1);
            if (at < K) chosen[at] = i;
        }
    __syncthreads();
    int which = chosen[tid];
    out[tid] = table[which]; // an index that may have no value
}

static bool run(bool mended) {
    const int n = 256;
    Array<float> scores(n, NAN);
    Array<int> table(n), out(K);
    for (int i = 0; i < n; ++i) table.host[i] = i % 2;
    for (int i = 0; i < 50; ++i) scores.host[i * 5] = 1;
    table.send();
    scores.send();
    if (mended) select<true><<<1, K>>>(scores.device, table.device, out.device, n);
    else select<false><<<1, K>>>(scores.device, table.device, out.device, n);
    finished();
    out.receive();
    int odd = 0;
    for (int value : out.host) odd += value;
    return odd == 25;
}
