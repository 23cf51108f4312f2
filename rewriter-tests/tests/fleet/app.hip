// A program in two versions, for the CI recipes: DIVERGES takes a branch by lane that is taken by workgroup otherwise;
// TRAFFIC reads every element four times.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <vector>

#ifdef DIVERGES
#define CHOICE threadIdx.x
#else
#define CHOICE blockIdx.x
#endif
#ifdef TRAFFIC
#define READS 4
#else
#define READS 1
#endif

__global__ void scale(const float* in, float* out, unsigned* taken, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    float sum = 0;
    for (unsigned read = 0; read < READS; ++read) {
        sum += in[(i + read * 64) % n];
    }
    // Known to be the same in all lanes at run time only.
    if ((CHOICE ^ (unsigned)(sum * 0)) % 2 != 0) {
        atomicAdd(taken, 1u);
        sum *= 3;
    }
    out[i] = sum;
}

int main() {
    const unsigned n = 1000;
    std::vector<float> in(n, 1.0f), out(n, 0.0f);
    float *din = nullptr, *dout = nullptr;
    unsigned *dtaken = nullptr, taken = 0;
    bool ok = hipMalloc((void**)&din, n * sizeof(float)) == hipSuccess &&
              hipMalloc((void**)&dout, n * sizeof(float)) == hipSuccess &&
              hipMalloc((void**)&dtaken, sizeof taken) == hipSuccess &&
              hipMemcpy(din, in.data(), n * sizeof(float), hipMemcpyHostToDevice) == hipSuccess &&
              hipMemcpy(dtaken, &taken, sizeof taken, hipMemcpyHostToDevice) == hipSuccess;
    if (ok) {
        scale<<<(n + 255) / 256, 256>>>(din, dout, dtaken, n);
        ok = hipGetLastError() == hipSuccess &&
             hipMemcpy(out.data(), dout, n * sizeof(float), hipMemcpyDeviceToHost) == hipSuccess &&
             hipMemcpy(&taken, dtaken, sizeof taken, hipMemcpyDeviceToHost) == hipSuccess;
    }
    ok = hipFree(din) == hipSuccess && hipFree(dout) == hipSuccess && hipFree(dtaken) == hipSuccess && ok;
    std::printf("%s, %u taken\n", ok ? "done" : "failed", taken);
    return ok ? 0 : 1;
}
