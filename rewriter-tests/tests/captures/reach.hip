// Kernels that reach memory in all the ways that a capture has to follow: a list through several allocations, a
// variable that points to one, a structure of packed arguments, an array of which only the end is given, host memory,
// and variables that the host and kernels change. What each leaves follows from the source; `main` prints it.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

struct Node {
    Node *next;
    unsigned value;
    unsigned sum;
};

__device__ unsigned *table;
__device__ unsigned total = 7;
__constant__ unsigned factors[4] = {1, 2, 3, 4};

struct __attribute__((packed)) Packed {
    unsigned count;
    unsigned *data;
};

__device__ unsigned twice(unsigned x) { return 2 * x; }
__device__ unsigned squared(unsigned x) { return x * x; }
typedef unsigned (*Function)(unsigned);
__device__ Function functions[2] = {twice, squared};

__global__ void list(Node *first) {
    for (Node *node = first; node; node = node->next)
        node->sum = node->value + (node->next ? node->next->value : 0);
}

__global__ void variables(unsigned n) {
    extern __shared__ unsigned room[];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    room[threadIdx.x] = table[i];
    __syncthreads();
    if (i < n)
        table[i] = room[blockDim.x - 1 - threadIdx.x] * factors[i % 4];
    if (i == 0)
        total += n;
}

__global__ void packed(Packed of, unsigned add) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < of.count)
        of.data[i] += add;
}

__global__ void backwards(unsigned *end, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        end[-1 - (int)i] = i;
}

__global__ void calls(unsigned *data, Function function) { data[threadIdx.x] = function(data[threadIdx.x]); }

__global__ void reads(const unsigned *data, unsigned *out, unsigned n) {
    if (data[threadIdx.x] > n)
        out[threadIdx.x] = 1;
}

__global__ void first_function(Function *out) { *out = functions[1]; }

static void check(hipError_t error) {
    if (error != hipSuccess) {
        printf("%s\n", hipGetErrorString(error));
        exit(1);
    }
}

static unsigned *array(unsigned n, unsigned step) {
    unsigned *host = new unsigned[n], *device;
    for (unsigned i = 0; i < n; i++)
        host[i] = i * step;
    check(hipMalloc(&device, n * sizeof *host));
    check(hipMemcpy(device, host, n * sizeof *host, hipMemcpyHostToDevice));
    delete[] host;
    return device;
}

int main() {
    // Three nodes, from the last to the first, the middle one in memory of the host.
    Node *nodes[3], *next = nullptr;
    for (int i = 2; i >= 0; i--) {
        if (i == 1)
            check(hipHostMalloc(&nodes[i], sizeof(Node)));
        else
            check(hipMalloc(&nodes[i], sizeof(Node)));
        Node node = {next, 10u + i, 0};
        check(hipMemcpy(nodes[i], &node, sizeof node, hipMemcpyDefault));
        next = nodes[i];
    }
    list<<<1, 1>>>(nodes[0]);
    unsigned *data = array(256, 3);
    check(hipMemcpyToSymbol(HIP_SYMBOL(table), &data, sizeof data));
    unsigned changed[4] = {5, 6, 7, 8};
    check(hipMemcpyToSymbol(HIP_SYMBOL(factors), changed, sizeof changed));
    variables<<<4, 64, 64 * sizeof(unsigned)>>>(200);
    variables<<<4, 64, 64 * sizeof(unsigned)>>>(100);
    packed<<<2, 64>>>(Packed{100, array(100, 1)}, 9);
    unsigned *last = array(100, 1);
    backwards<<<1, 128>>>(last + 100, 100);
    Function *pointer, function;
    check(hipMalloc(&pointer, sizeof *pointer));
    first_function<<<1, 1>>>(pointer);
    check(hipMemcpy(&function, pointer, sizeof function, hipMemcpyDeviceToHost));
    unsigned *called = array(64, 1);
    calls<<<1, 64>>>(called, function);
    reads<<<1, 64>>>(called, last, 1000000);
    check(hipDeviceSynchronize());
    unsigned result[2];
    check(hipMemcpy(result, called + 7, 4, hipMemcpyDeviceToHost));
    check(hipMemcpyFromSymbol(result + 1, HIP_SYMBOL(total), 4));
    printf("%u %u\n", result[0], result[1]);
    return result[0] == 49 && result[1] == 307 ? 0 : 1;
}
