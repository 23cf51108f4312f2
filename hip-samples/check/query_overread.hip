// vllm-project/vllm 40745: each lane loads 16 bytes of a query, which is right for heads of 256 bytes. With heads of
// 128 bytes the upper lanes of the last head load past the end of the queries; what they load is discarded.
#include "check.h"

template <bool MENDED> __global__ void attend(const uint4 *query, unsigned *out, int chunks) {
    int lane = threadIdx.x, chunk = lane / 4;
    if constexpr (MENDED) {
        if (chunk >= chunks) chunk = chunks - 1;
    }
    uint4 part = query[blockIdx.x * chunks + chunk];
    unsigned first = __shfl(part.x, lane % 32 & 28), last = __shfl(part.w, lane % 32 & 28);
    if (lane < 32) out[blockIdx.x * 32 + lane] = first + last;
}

static bool run(bool mended) {
    const int heads = 4, chunks = 8;
    Array<unsigned> query(heads * chunks * 4), out(heads * 32);
    for (size_t n = 0; n < query.host.size(); ++n) query.host[n] = n * n;
    query.send();
    const uint4 *there = (const uint4 *)query.device;
    if (mended) attend<true><<<heads, 64>>>(there, out.device, chunks);
    else attend<false><<<heads, 64>>>(there, out.device, chunks);
    finished();
    out.receive();
    bool right = true;
    for (int n = 0; n < heads * 32; ++n) {
        int chunk = n / 32 * chunks + n % 32 / 4;
        right &= out.host[n] == query.host[chunk * 4] + query.host[chunk * 4 + 3];
    }
    return right;
}
