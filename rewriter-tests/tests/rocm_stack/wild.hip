// Stores and loads at addresses that nothing maps, in some lanes of a wave, at two places; and results of the other
// lanes.
#include <cstdio>
#include <hip/hip_runtime.h>

constexpr int COUNT = 256;
// Far from everything: no page is mapped there.
constexpr unsigned long long NOWHERE = 0x7000'0000'0000;

__global__ void wild(int *out, int *nowhere) {
    int i = threadIdx.x;
    int *from = i % 3 == 0 ? nowhere : out;
    int value = from[i] + 1;
    int *to = i % 5 == 0 ? nowhere : out;
    to[COUNT + i] = value;
}

int main() {
    int *out, host[2 * COUNT];
    for (int i = 0; i < 2 * COUNT; i++)
        host[i] = 100 + i;
    if (hipMalloc(&out, sizeof host) != hipSuccess)
        return 2;
    (void)hipMemcpy(out, host, sizeof host, hipMemcpyHostToDevice);
    wild<<<1, COUNT>>>(out, reinterpret_cast<int *>(NOWHERE));
    if (hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost) != hipSuccess)
        return 3;
    for (int i = 0; i < COUNT; i++) {
        int value = i % 3 == 0 ? 1 : 101 + i;
        if (host[COUNT + i] != (i % 5 == 0 ? 100 + COUNT + i : value))
            return std::printf("%d is %d\n", i, host[COUNT + i]), 4;
    }
    std::puts("PASS");
}
