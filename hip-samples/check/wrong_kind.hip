// kokkos/kokkos 9190: the destination is in the host's memory and the kind of the copy says host to device.
#include "check.h"

// Functions of their own: compilers make one call of two that differ in an argument.
static __attribute__((noinline)) void take(int *to, const int *from, size_t size) {
    (void)hipMemcpy(to, from, size, hipMemcpyDeviceToHost);
    puts("taken");
}

static __attribute__((noinline)) void take_wrongly(int *to, const int *from, size_t size) {
    (void)hipMemcpy(to, from, size, hipMemcpyHostToDevice); // the wrong direction
    puts("taken");
}

static bool run(bool mended) {
    const int n = 64;
    Array<int> values(n, 9);
    std::vector<int> back(n);
    if (mended) take(back.data(), values.device, n * sizeof(int));
    else take_wrongly(back.data(), values.device, n * sizeof(int));
    (void)hipGetLastError();
    return back == values.host;
}
