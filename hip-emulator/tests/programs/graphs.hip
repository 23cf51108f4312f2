// Stream capture and graphs: what is captured happens when the graph is launched and not before, in an order its edges
// allow.
#include "check.h"

static const int N = 256;

__global__ void add(int* data, int value) { data[threadIdx.x] += value; }
__global__ void scale(int* data, int factor) { data[threadIdx.x] *= factor; }
__global__ void sum(const int* a, const int* b, int* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

__device__ int variable[4];

static void count(void* data) { ++*static_cast<int*>(data); }

// Captured from a stream: copy in, two kernels, a call of the host, copy out.
static void captured() {
    hipStream_t stream;
    OK(hipStreamCreate(&stream));
    std::vector<int> in(N, 5), out(N, -1);
    int *data = nullptr, calls = 0, value = 3;
    OK(hipMalloc(&data, N * sizeof(int)));
    hipStreamCaptureStatus status;
    unsigned long long id = 0;
    OK(hipStreamIsCapturing(stream, &status));
    CHECK(status == hipStreamCaptureStatusNone);
    CHECK(hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal) == hipErrorStreamCaptureUnsupported);
    OK(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal) == hipErrorIllegalState);
    OK(hipStreamGetCaptureInfo(stream, &status, &id));
    CHECK(status == hipStreamCaptureStatusActive && id != 0);
    OK(hipMemcpyAsync(data, in.data(), N * sizeof(int), hipMemcpyHostToDevice, stream));
    add<<<1, N, 0, stream>>>(data, value);
    value = 1000;
    scale<<<1, N, 0, stream>>>(data, 2);
    OK(hipLaunchHostFunc(stream, count, &calls));
    OK(hipMemcpyAsync(out.data(), data, N * sizeof(int), hipMemcpyDeviceToHost, stream));
    hipGraph_t graph;
    OK(hipStreamEndCapture(stream, &graph));
    CHECK(hipStreamEndCapture(stream, &graph) == hipErrorIllegalState);
    CHECK(out[0] == -1 && calls == 0);
    size_t nodes = 0, edges = 0;
    OK(hipGraphGetNodes(graph, nullptr, &nodes));
    OK(hipGraphGetEdges(graph, nullptr, nullptr, &edges));
    CHECK(nodes == 5 && edges == 4);
    hipGraphNode_t list[5];
    OK(hipGraphGetNodes(graph, list, &nodes));
    hipGraphNodeType expected[] = {hipGraphNodeTypeMemcpy, hipGraphNodeTypeKernel, hipGraphNodeTypeKernel,
        hipGraphNodeTypeHost, hipGraphNodeTypeMemcpy};
    for (int i = 0; i < 5; ++i) {
        hipGraphNodeType type;
        OK(hipGraphNodeGetType(list[i], &type));
        CHECK(type == expected[i]);
    }
    hipGraphExec_t executable;
    OK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    OK(hipGraphLaunch(executable, stream));
    OK(hipStreamSynchronize(stream));
    CHECK(out == std::vector<int>(N, 16) && calls == 1);
    in[7] = 10;
    OK(hipGraphLaunch(executable, stream));
    OK(hipStreamSynchronize(stream));
    CHECK(out[7] == 26 && out[8] == 16 && calls == 2);

    // Another factor, in the instantiated graph only.
    hipKernelNodeParams parameters;
    OK(hipGraphKernelNodeGetParams(list[2], &parameters));
    CHECK(parameters.func == reinterpret_cast<void*>(scale) && parameters.gridDim.x == 1 && parameters.blockDim.x == N);
    CHECK(
        *static_cast<int**>(parameters.kernelParams[0]) == data && *static_cast<int*>(parameters.kernelParams[1]) == 2);
    int factor = 7;
    void* arguments[] = {&data, &factor};
    parameters.kernelParams = arguments;
    OK(hipGraphExecKernelNodeSetParams(executable, list[2], &parameters));
    CHECK(hipGraphExecKernelNodeSetParams(executable, list[0], &parameters) == hipErrorInvalidValue);
    factor = 0;
    OK(hipGraphLaunch(executable, stream));
    CHECK(out[8] == 56);

    // The graph has the old factor: an update takes it over again.
    hipGraphNode_t wrong;
    hipGraphExecUpdateResult result;
    OK(hipGraphExecUpdate(executable, graph, &wrong, &result));
    OK(hipGraphLaunch(executable, stream));
    CHECK(out[8] == 16 && result == hipGraphExecUpdateSuccess);
    OK(hipGraphDestroyNode(list[4]));
    CHECK(hipGraphExecUpdate(executable, graph, &wrong, &result) == hipErrorGraphExecUpdateFailure);
    CHECK(result == hipGraphExecUpdateErrorTopologyChanged);

    OK(hipGraphDestroy(graph));
    OK(hipGraphLaunch(executable, stream));
    CHECK(calls == 5);
    OK(hipGraphExecDestroy(executable));
    CHECK(hipGraphLaunch(executable, stream) == hipErrorInvalidValue);
    OK(hipFree(data));
    OK(hipStreamDestroy(stream));
    (void)hipGetLastError();
}

// Two streams that an event joins into one graph, and captures that must fail.
static void forked() {
    hipStream_t first, second;
    hipEvent_t fork, join, outside;
    OK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    OK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    OK(hipEventCreate(&fork));
    OK(hipEventCreate(&join));
    OK(hipEventCreate(&outside));
    int *a = nullptr, *b = nullptr, *out = nullptr;
    OK(hipMalloc(&a, N * sizeof(int)));
    OK(hipMalloc(&b, N * sizeof(int)));
    OK(hipMalloc(&out, N * sizeof(int)));
    OK(hipStreamBeginCapture(first, hipStreamCaptureModeGlobal));
    OK(hipMemsetAsync(a, 0, N * sizeof(int), first));
    OK(hipEventRecord(fork, first));
    OK(hipStreamWaitEvent(second, fork, 0));
    hipStreamCaptureStatus status;
    OK(hipStreamIsCapturing(second, &status));
    CHECK(status == hipStreamCaptureStatusActive);
    OK(hipMemsetAsync(b, 0, N * sizeof(int), second));
    add<<<1, N, 0, second>>>(b, 20);
    add<<<1, N, 0, first>>>(a, 1);
    OK(hipEventRecord(join, second));
    CHECK(hipEventQuery(join) == hipErrorCapturedEvent);
    OK(hipStreamWaitEvent(first, join, 0));
    sum<<<1, N, 0, first>>>(a, b, out);
    hipGraph_t graph;
    CHECK(hipStreamEndCapture(second, &graph) == hipErrorStreamCaptureUnmatched);
    OK(hipStreamEndCapture(first, &graph));
    OK(hipStreamIsCapturing(second, &status));
    CHECK(status == hipStreamCaptureStatusNone);
    size_t nodes = 0, roots = 0, edges = 0;
    OK(hipGraphGetNodes(graph, nullptr, &nodes));
    OK(hipGraphGetRootNodes(graph, nullptr, &roots));
    OK(hipGraphGetEdges(graph, nullptr, nullptr, &edges));
    CHECK(nodes == 5 && roots == 1 && edges == 5);
    hipGraphExec_t executable;
    OK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    OK(hipGraphLaunch(executable, second));
    OK(hipStreamSynchronize(second));
    std::vector<int> back(N);
    OK(hipMemcpy(back.data(), out, N * sizeof(int), hipMemcpyDeviceToHost));
    CHECK(back == std::vector<int>(N, 21));

    // Work of the second stream that the first does not wait for.
    OK(hipStreamBeginCapture(first, hipStreamCaptureModeGlobal));
    OK(hipEventRecord(fork, first));
    OK(hipStreamWaitEvent(second, fork, 0));
    add<<<1, N, 0, second>>>(b, 20);
    CHECK(hipStreamEndCapture(first, &graph) == hipErrorStreamCaptureUnjoined);
    // Calls that act at once.
    OK(hipStreamBeginCapture(first, hipStreamCaptureModeGlobal));
    CHECK(hipDeviceSynchronize() == hipErrorStreamCaptureUnsupported);
    CHECK(hipStreamEndCapture(first, &graph) == hipErrorStreamCaptureInvalidated && graph == nullptr);
    OK(hipStreamBeginCapture(first, hipStreamCaptureModeRelaxed));
    OK(hipDeviceSynchronize());
    CHECK(hipStreamSynchronize(first) == hipErrorStreamCaptureUnsupported);
    CHECK(hipStreamEndCapture(first, &graph) == hipErrorStreamCaptureInvalidated);
    // An event from outside.
    OK(hipEventRecord(outside, second));
    OK(hipStreamBeginCapture(first, hipStreamCaptureModeGlobal));
    CHECK(hipStreamWaitEvent(first, outside, 0) == hipErrorStreamCaptureIsolation);
    CHECK(hipStreamEndCapture(first, &graph) == hipErrorStreamCaptureInvalidated);
    OK(hipGraphExecDestroy(executable));
    OK(hipFree(a));
    OK(hipFree(b));
    OK(hipFree(out));
    (void)hipGetLastError();
}

// Made node by node.
static void made() {
    hipGraph_t graph, child;
    OK(hipGraphCreate(&graph, 0));
    OK(hipGraphCreate(&child, 0));
    int *data = nullptr, calls = 0;
    OK(hipMalloc(&data, N * sizeof(int)));
    std::vector<int> out(N), four = {1, 2, 3, 4}, back(4);
    hipMemsetParams fill = {};
    fill.dst = data;
    fill.elementSize = 4;
    fill.height = 1;
    fill.value = 0x01020304;
    fill.width = N;
    hipGraphNode_t filled, added, scaled, copied, called, empty, to, from, inner, nested;
    // The nodes are added last first: only the edges say what comes when.
    OK(hipGraphAddMemcpyNode1D(&copied, graph, nullptr, 0, out.data(), data, N * sizeof(int), hipMemcpyDeviceToHost));
    OK(hipGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill));
    int value = 6, factor = 3;
    void *add_arguments[] = {&data, &value}, *scale_arguments[] = {&data, &factor};
    hipKernelNodeParams kernel = {dim3(N), nullptr, reinterpret_cast<void*>(scale), dim3(1), scale_arguments, 0};
    OK(hipGraphAddKernelNode(&scaled, graph, nullptr, 0, &kernel));
    kernel.func = reinterpret_cast<void*>(add);
    kernel.kernelParams = add_arguments;
    OK(hipGraphAddKernelNode(&added, graph, &filled, 1, &kernel));
    OK(hipGraphAddEmptyNode(&empty, graph, &added, 1));
    hipHostNodeParams host = {count, &calls};
    OK(hipGraphAddHostNode(&called, graph, &copied, 1, &host));
    OK(hipGraphAddMemcpyNodeToSymbol(
        &to, child, nullptr, 0, HIP_SYMBOL(variable), four.data(), 16, 0, hipMemcpyHostToDevice));
    OK(hipGraphAddMemcpyNodeFromSymbol(
        &from, child, &to, 1, back.data(), HIP_SYMBOL(variable), 16, 0, hipMemcpyDeviceToHost));
    OK(hipGraphAddHostNode(&inner, child, &from, 1, &host));
    OK(hipGraphAddChildGraphNode(&nested, graph, &called, 1, child));
    hipGraphNode_t froms[] = {empty, scaled}, tos[] = {scaled, copied};
    OK(hipGraphAddDependencies(graph, froms, tos, 2));
    CHECK(hipGraphAddDependencies(graph, froms, tos, 1) == hipErrorInvalidValue);
    hipGraphNode_t other;
    CHECK(hipGraphAddEmptyNode(&other, graph, &inner, 1) == hipErrorInvalidValue);
    size_t amount = 0;
    OK(hipGraphNodeGetDependentNodes(empty, nullptr, &amount));
    CHECK(amount == 1);
    hipGraph_t clone;
    hipGraphNode_t cloned;
    OK(hipGraphClone(&clone, graph));
    OK(hipGraphNodeFindInClone(&cloned, filled, clone));
    fill.value = 1;
    OK(hipGraphMemsetNodeSetParams(cloned, &fill));
    OK(hipGraphMemsetNodeGetParams(filled, &fill));
    CHECK(fill.value == 0x01020304 && fill.width == N && fill.dst == data);
    hipGraphExec_t executable, other_executable;
    OK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    OK(hipGraphInstantiateWithFlags(&other_executable, clone, 0));
    OK(hipGraphDestroy(clone));
    OK(hipGraphDestroy(child));
    OK(hipGraphLaunch(executable, nullptr));
    OK(hipDeviceSynchronize());
    CHECK(out == std::vector<int>(N, (0x01020304 + 6) * 3) && calls == 2 && back == four);
    OK(hipGraphLaunch(other_executable, nullptr));
    CHECK(out == std::vector<int>(N, (1 + 6) * 3) && calls == 4);
    // A circle.
    OK(hipGraphAddDependencies(graph, &scaled, &filled, 1));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0) == hipErrorInvalidValue);
    OK(hipGraphDestroy(graph));
    CHECK(hipGraphDestroy(graph) == hipErrorInvalidValue);
    OK(hipFree(data));
    (void)hipGetLastError();
}

// Memory that a capture allocates is there at every launch.
static void allocating() {
    hipStream_t stream;
    OK(hipStreamCreate(&stream));
    std::vector<int> out(N);
    OK(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
    int* data = nullptr;
    OK(hipMallocAsync(reinterpret_cast<void**>(&data), N * sizeof(int), stream));
    OK(hipMemsetAsync(data, 0, N * sizeof(int), stream));
    add<<<1, N, 0, stream>>>(data, 9);
    OK(hipMemcpyAsync(out.data(), data, N * sizeof(int), hipMemcpyDeviceToHost, stream));
    OK(hipFreeAsync(data, stream));
    hipGraph_t graph;
    OK(hipStreamEndCapture(stream, &graph));
    hipGraphExec_t executable;
    OK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    OK(hipGraphDestroy(graph));
    for (int i = 0; i < 2; ++i) {
        out.assign(N, 0);
        OK(hipGraphLaunch(executable, stream));
        OK(hipStreamSynchronize(stream));
        CHECK(out == std::vector<int>(N, 9));
    }
    OK(hipGraphExecDestroy(executable));
    CHECK(hipMemset(data, 0, 4) == hipErrorInvalidValue);
    OK(hipStreamDestroy(stream));
    (void)hipGetLastError();
}

int main() {
    captured();
    forked();
    made();
    allocating();
    return verdict();
}
