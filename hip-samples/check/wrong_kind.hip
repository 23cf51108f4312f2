// kokkos/kokkos 9190: the destination is in the host's memory and the kind of the copy says host to device.
#include "check.h"

static bool run(bool mended) {
    const int n = 64;
    Array<int> values(n, 9);
    std::vector<int> back(n);
    if (mended) (void)hipMemcpy(back.data(), values.device, n * sizeof(int), hipMemcpyDeviceToHost);
    else (void)hipMemcpy(back.data(), values.device, n * sizeof(int), hipMemcpyHostToDevice); // the wrong direction
    (void)hipGetLastError();
    return back == values.host;
}
