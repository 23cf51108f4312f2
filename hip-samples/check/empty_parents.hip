// ORNL/HeCBench 240 (bn): for a node without parents an element of a local array is used as an index that was never
// written; some compilers leave a zero there, others anything.
#include "check.h"

const int MOST = 96;

template <bool MENDED> __global__ void find_index(const int *sizes, const int *parents, const int *table, int *out) {
    int members[MOST];
    int node = threadIdx.x, size = sizes[node];
    for (int i = 0; i < size; ++i) members[(i * 5 + node) % MOST] = parents[node] + i;
    int last = node;
    if constexpr (MENDED) {
        if (size > 0) last = members[((size - 1) * 5 + node) % MOST];
    } else {
        last = members[((size > 0 ? size - 1 : 0) * 5 + node) % MOST]; // not written when there are no parents
    }
    out[node] = table[last];
}

static bool run(bool mended) {
    const int nodes = 64;
    Array<int> sizes(nodes), parents(nodes), table(256), out(nodes);
    for (int n = 0; n < nodes; ++n) sizes.host[n] = n % 4, parents.host[n] = n * 2;
    fill(table.host);
    sizes.send();
    parents.send();
    table.send();
    if (mended) find_index<true><<<1, nodes>>>(sizes.device, parents.device, table.device, out.device);
    else find_index<false><<<1, nodes>>>(sizes.device, parents.device, table.device, out.device);
    finished();
    out.receive();
    bool right = true;
    for (int n = 0; n < nodes; ++n) {
        int size = n % 4, last = size > 0 ? n * 2 + size - 1 : n;
        right &= out.host[n] == table.host[last];
    }
    return right;
}
