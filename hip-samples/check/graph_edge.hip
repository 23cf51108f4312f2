// ROCm/rocm-systems 11499: a graph has lost the edge between the node that writes an array and the one that reads it.
#include "check.h"

__global__ void produce(int *middle) { middle[threadIdx.x] = threadIdx.x * 5; }

__global__ void consume(const int *middle, int *out) { out[threadIdx.x] = middle[threadIdx.x] + 2; }

static bool run(bool mended) {
    const int n = 128;
    Array<int> middle(n), out(n);
    hipGraph_t graph;
    hipGraphNode_t first, second;
    hipGraphExec_t program;
    hipStream_t stream;
    void *first_arguments[] = {&middle.device}, *second_arguments[] = {&middle.device, &out.device};
    hipKernelNodeParams parameters = {};
    parameters.gridDim = dim3(1);
    parameters.blockDim = dim3(n);
    HIP(hipGraphCreate(&graph, 0));
    parameters.func = (void *)produce;
    parameters.kernelParams = first_arguments;
    HIP(hipGraphAddKernelNode(&first, graph, nullptr, 0, &parameters));
    parameters.func = (void *)consume;
    parameters.kernelParams = second_arguments;
    if (mended) HIP(hipGraphAddKernelNode(&second, graph, &first, 1, &parameters));
    else HIP(hipGraphAddKernelNode(&second, graph, nullptr, 0, &parameters)); // depends on nothing
    HIP(hipGraphInstantiate(&program, graph, nullptr, nullptr, 0));
    HIP(hipStreamCreate(&stream));
    HIP(hipGraphLaunch(program, stream));
    HIP(hipStreamSynchronize(stream));
    out.receive();
    HIP(hipStreamDestroy(stream));
    HIP(hipGraphExecDestroy(program));
    HIP(hipGraphDestroy(graph));
    bool right = true;
    for (int i = 0; i < n; ++i) right &= out.host[i] == i * 5 + 2;
    return right;
}
