// vllm-project/vllm 53982: the kernel that maps positions to slots reads a row of a block table past its end when the
// sequence is longer than the row is wide; for the last request that is past the table.
#include "check.h"

const int BLOCK = 16;

template <bool MENDED> __global__ void slot_mapping(const int *table, int width, int *slots, int tokens) {
    int token = threadIdx.x, request = blockIdx.x, block = token / BLOCK;
    if (token >= tokens) return;
    int number;
    if constexpr (MENDED) {
        number = block < width ? table[request * width + block] : -1;
    } else {
        number = table[request * width + block]; // the block may be one that the row does not have
    }
    slots[request * tokens + token] = number * BLOCK + token % BLOCK;
}

static bool run(bool mended) {
    const int requests = 4, width = 8, tokens = 160;
    Array<int> table(requests * width), slots(requests * tokens);
    for (int n = 0; n < requests * width; ++n) table.host[n] = n * 3;
    table.send();
    if (mended) slot_mapping<true><<<requests, 192>>>(table.device, width, slots.device, tokens);
    else slot_mapping<false><<<requests, 192>>>(table.device, width, slots.device, tokens);
    finished();
    slots.receive();
    bool right = true;
    for (int request = 0; request < requests; ++request)
        for (int token = 0; token < tokens; ++token) {
            int block = token / BLOCK, number = block < width ? table.host[request * width + block] : -1;
            right &= slots.host[request * tokens + token] == number * BLOCK + token % BLOCK;
        }
    return right;
}
