// Copies of memory that kernels have written in part: the first argument says which.
#include <cstdio>
#include <cstdlib>
#include <hip/hip_runtime.h>

#define HIP(call) do { if ((call) != hipSuccess) { printf("%s\n", #call); exit(3); } } while (0)

__global__ void fill(int *to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = i;
}

int main(int, char **argv) {
    const int n = 1000, pitch = 40, rows = 25;
    int which = atoi(argv[1]), *a, *b;
    static int host[n];
    HIP(hipMalloc(&a, n * sizeof(int)));
    HIP(hipMalloc(&b, n * sizeof(int)));
    switch (which) {
    case 0: // all of it
        fill<<<(n + 255) / 256, 256>>>(a, n);
        HIP(hipMemcpy(host, a, sizeof host, hipMemcpyDeviceToHost));
        break;
    case 1: // without the last 232
        fill<<<n / 256, 256>>>(a, n);
        HIP(hipMemcpy(host, a, sizeof host, hipMemcpyDeviceToHost));
        break;
    case 2: // by way of another allocation, from its second element on
        fill<<<n / 256, 256>>>(a, n);
        HIP(hipMemcpy(b, a + 1, (n - 1) * sizeof(int), hipMemcpyDeviceToDevice));
        HIP(hipMemcpy(host, b, (n - 1) * sizeof(int), hipMemcpyDeviceToHost));
        break;
    case 3: // rows without what nothing has written, which begins in the last of them
        fill<<<n / 256, 256>>>(a, n);
        HIP(hipMemcpy2D(host, 8 * sizeof(int), a, pitch * sizeof(int), 8 * sizeof(int), rows - 6,
                        hipMemcpyDeviceToHost));
        break;
    case 4: // in a stream: the call is the copy's, not that which waits
        fill<<<n / 256, 256>>>(a, n);
        HIP(hipHostRegister(host, sizeof host, hipHostRegisterDefault));
        HIP(hipMemcpyAsync(host, a, sizeof host, hipMemcpyDeviceToHost, 0));
        HIP(hipDeviceSynchronize());
        HIP(hipHostUnregister(host));
        break;
    case 5: // what hipMemset has written is written
        HIP(hipMemset(a, 0, n * sizeof(int)));
        HIP(hipMemcpy(host, a, sizeof host, hipMemcpyDeviceToHost));
        break;
    }
    HIP(hipFree(a));
    HIP(hipFree(b));
    return 0;
}
