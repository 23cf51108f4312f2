// germannp/yalla 10: a cell that divides takes the next free place by an atomic, so that the order of the new cells is
// that in which the workgroups run. The mended version computes the place from the cell's own number.
#include "check.h"

template <bool MENDED> __global__ void proliferate(const int *cells, int count, int *daughters, int *free_place) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count || i % 20 != 0) return;
    int place = i / 20;
    if constexpr (MENDED) atomicAdd(free_place, 1);
    else place = atomicAdd(free_place, 1);
    daughters[place] = cells[i] + 1; // in the order of the tickets
}

static bool run(bool mended) {
    const int count = 40 * 64, born = count / 20;
    Array<int> cells(count), daughters(born), free_place(1);
    for (int n = 0; n < count; ++n) cells.host[n] = 3 * n;
    cells.send();
    if (mended) proliferate<true><<<40, 64>>>(cells.device, count, daughters.device, free_place.device);
    else proliferate<false><<<40, 64>>>(cells.device, count, daughters.device, free_place.device);
    finished();
    daughters.receive();
    bool right = true;
    for (int n = 0; n < born; ++n) right &= daughters.host[n] == 60 * n + 1;
    return right;
}
