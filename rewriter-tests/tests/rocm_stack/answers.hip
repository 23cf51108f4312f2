// What HIP answers to calls that are wrong, or rare, and copies with a pitch: the same on AMD's runtime and on the
// emulator's own. Ends with PASS.
#include <hip/hip_ext.h>
#include <hip/hip_runtime.h>
// After the runtime's own header, which it needs.
#include <hip/hip_cooperative_groups.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <vector>

static int failures = 0;

#define CHECK(condition)                                          \
    do {                                                          \
        if (!(condition)) {                                       \
            std::printf("line %d: %s\n", __LINE__, #condition);   \
            std::fflush(stdout);                                  \
            ++failures;                                           \
        }                                                         \
    } while (0)
#define OK(call) CHECK((call) == hipSuccess)

__device__ int variable[4];
__global__ void one(int* out) { *out = 1; }
__global__ void shared(int* out) {
    extern __shared__ int words[];
    words[threadIdx.x] = 7;
    *out = words[0];
}

__global__ void grids(int* out) {
    cooperative_groups::multi_grid_group grid = cooperative_groups::this_multi_grid();
    atomicAdd(out, 1);
    grid.sync();
    if (grid.thread_rank() == 0) out[1] = *static_cast<volatile int*>(out) * 10 + grid.num_grids();
}

enum { ROWS = 9, WIDTH = 45, HOST = 61, DEVICE = 256 };

static unsigned char cell(int row, int column) { return static_cast<unsigned char>(row * 31 + column * 7 + 3); }

// Rows of a width and pitches that no element but a byte divides, and places that begin anywhere.
static void pitched_copies() {
    unsigned char* device;
    OK(hipMalloc(reinterpret_cast<void**>(&device), DEVICE * ROWS));
    OK(hipMemset(device, 0xaa, DEVICE * ROWS));
    std::vector<unsigned char> from(HOST * ROWS), all(DEVICE * ROWS), back(HOST * ROWS, 0x55);
    for (int row = 0; row < ROWS; ++row)
        for (int column = 0; column < HOST; ++column) from[row * HOST + column] = cell(row, column);
    OK(hipMemcpy2D(device + 5, DEVICE, from.data() + 3, HOST, WIDTH, ROWS, hipMemcpyHostToDevice));
    OK(hipMemcpy(all.data(), device, all.size(), hipMemcpyDeviceToHost));
    for (int row = 0; row < ROWS; ++row)
        for (int column = 0; column < DEVICE; ++column) {
            bool inside = column >= 5 && column < 5 + WIDTH;
            if (all[row * DEVICE + column] != (inside ? cell(row, column - 2) : 0xaa)) ++failures;
        }
    OK(hipMemcpy2D(back.data() + 1, HOST, device + 6, DEVICE, WIDTH - 1, ROWS - 1, hipMemcpyDeviceToHost));
    for (int row = 0; row < ROWS; ++row)
        for (int column = 0; column < HOST; ++column) {
            bool inside = row < ROWS - 1 && column >= 1 && column < WIDTH;
            if (back[row * HOST + column] != (inside ? cell(row, column + 3) : 0x55)) ++failures;
        }
    // A box of 20 x 3 x 2 bytes in boxes of other sizes.
    std::vector<unsigned char> box(32 * 4 * 3, 0);
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(device, DEVICE, WIDTH, 4);
    copy.srcPos = make_hipPos(5, 1, 0);
    copy.dstPtr = make_hipPitchedPtr(box.data(), 32, 32, 4);
    copy.dstPos = make_hipPos(4, 0, 1);
    copy.extent = make_hipExtent(20, 3, 2);
    copy.kind = hipMemcpyDeviceToHost;
    OK(hipMemcpy3D(&copy));
    for (int z = 0; z < 3; ++z)
        for (int y = 0; y < 4; ++y)
            for (int x = 0; x < 32; ++x) {
                bool inside = z >= 1 && y < 3 && x >= 4 && x < 24;
                int row = (z - 1) * 4 + y + 1;
                if (box[(z * 4 + y) * 32 + x] != (inside ? cell(row, x - 4 + 3) : 0)) ++failures;
            }
    CHECK(hipMemcpy2D(device, 4, from.data(), 8, 8, 2, hipMemcpyHostToDevice) == hipErrorInvalidPitchValue);
    CHECK(hipMemset2D(device, 64, 0, 128, 1) == hipErrorInvalidValue);
    hipPitchedPtr rows{device, 1, 64, 4};
    CHECK(hipMemset3D(rows, 0, make_hipExtent(64, 1, 1)) == hipErrorInvalidValue);
    rows = hipPitchedPtr{nullptr, 64, 64, 4};
    CHECK(hipMemset3D(rows, 0, make_hipExtent(64, 1, 1)) == hipErrorInvalidValue);
    // Fills of dwords, also of an odd number of them.
    int words[7];
    OK(hipMemsetD32(device, 0x01020304, 7));
    OK(hipMemcpy(words, device, sizeof words, hipMemcpyDeviceToHost));
    for (int word : words) CHECK(word == 0x01020304);
    OK(hipFree(device));
}

static void streams_and_events() {
    hipStream_t stream, masked;
    uint32_t given = 0xf5, mask[4] = {};
    OK(hipExtStreamCreateWithCUMask(&masked, 1, &given));
    OK(hipExtStreamGetCUMask(masked, 4, mask));
    CHECK(mask[0] == 0xf5 && mask[1] == 0);
    CHECK(hipExtStreamGetCUMask(masked, 1, mask) == hipErrorInvalidValue);
    CHECK(hipExtStreamCreateWithCUMask(&stream, 0, &given) == hipErrorInvalidValue);
    CHECK(hipExtStreamCreateWithCUMask(nullptr, 1, &given) == hipErrorInvalidHandle);
    OK(hipStreamCreate(&stream));
    OK(hipExtStreamGetCUMask(stream, 4, mask));
    CHECK(mask[0] == 0xffffffff && mask[3] == 0xff);  // 104 units
    OK(hipStreamDestroy(masked));
    CHECK(hipStreamQuery(masked) == hipErrorContextIsDestroyed);
    CHECK(hipStreamDestroy(masked) == hipErrorContextIsDestroyed);
    unsigned flags = 9;
    CHECK(hipStreamGetFlags(nullptr, &flags) == hipErrorInvalidValue && flags == 9);
    hipEvent_t event, other;
    float time;
    OK(hipEventCreate(&event));
    CHECK(hipEventElapsedTime(nullptr, event, event) == hipErrorInvalidValue);
    CHECK(hipEventElapsedTime(&time, nullptr, event) == hipErrorInvalidHandle);
    CHECK(hipEventCreateWithFlags(&other, 0x80) == hipErrorInvalidValue);
    CHECK(hipEventCreateWithFlags(&other, hipEventReleaseToDevice | hipEventReleaseToSystem) == hipErrorInvalidValue);
    CHECK(hipStreamWaitEvent(stream, nullptr, 0) == hipErrorInvalidHandle);
    CHECK(hipStreamWaitEvent(stream, event, 5) == hipErrorInvalidValue);
    CHECK(hipStreamAttachMemAsync(stream, variable, 0, 0) == hipErrorInvalidValue);
    OK(hipSetDeviceFlags(hipDeviceScheduleBlockingSync));
    OK(hipGetDeviceFlags(&flags));
    CHECK(flags == hipDeviceScheduleBlockingSync);
    CHECK(hipSetDeviceFlags(0x100) == hipErrorInvalidValue);
}

static void memory() {
    int* signal = nullptr;
    CHECK(hipExtMallocWithFlags(reinterpret_cast<void**>(&signal), 16, hipMallocSignalMemory) == hipErrorInvalidValue);
    CHECK(hipExtMallocWithFlags(reinterpret_cast<void**>(&signal), 8, 0x70) == hipErrorInvalidValue);
    OK(hipExtMallocWithFlags(reinterpret_cast<void**>(&signal), 8, hipMallocSignalMemory));
    hipPointerAttribute_t attributes;
    OK(hipPointerGetAttributes(&attributes, signal));
    CHECK(attributes.memoryType == hipMemoryTypeHost && attributes.hostPointer == signal);
    // The host writes what one stream waits for, then another stream does.
    *static_cast<volatile int*>(signal) = 0;
    hipStream_t stream, other;
    OK(hipStreamCreate(&stream));
    OK(hipStreamCreate(&other));
    OK(hipStreamWaitValue32(stream, signal, 3, hipStreamWaitValueGte, 0xffffffff));
    CHECK(hipStreamQuery(stream) == hipErrorNotReady);
    OK(hipStreamWriteValue32(other, signal, 4, 0));
    OK(hipStreamSynchronize(stream));
    CHECK(*static_cast<volatile int*>(signal) == 4);
    OK(hipStreamWaitValue32(stream, signal, 9, hipStreamWaitValueEq, 0xffffffff));
    *static_cast<volatile int*>(signal) = 9;
    OK(hipStreamSynchronize(stream));
    int local = 0;
    CHECK(hipStreamWriteValue32(stream, &local, 4, 0) == hipErrorInvalidValue);
    OK(hipFree(signal));

    void* small = std::malloc(64);
    CHECK(hipHostRegister(small, 1ull << 36, 0) == hipErrorOutOfMemory);
    CHECK(hipHostRegister(&local, 0, 0) == hipErrorOutOfMemory);
    std::free(small);

    int* device;
    OK(hipMalloc(reinterpret_cast<void**>(&device), 4096));
    hipPointer_attribute which[2] = {HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR};
    void *first = nullptr, *second = &local, *outs[2] = {&first, &second};
    OK(hipDrvPointerGetAttributes(2, which, outs, device + 100));
    CHECK(first == device + 100 && second == device);
    OK(hipDrvPointerGetAttributes(2, which, outs, &local));
    CHECK(first == nullptr && second == nullptr);
    CHECK(hipDrvPointerGetAttributes(0, which, outs, device) == hipErrorInvalidValue);
    CHECK(hipDrvPointerGetAttributes(2, which, outs, nullptr) == hipErrorInvalidValue);

    hipChannelFormatDesc format = hipCreateChannelDesc<float>();
    hipArray* array;
    OK(hipMallocArray(&array, &format, 4, 4, 0));
    int type = -1;
    OK(hipPointerGetAttribute(&type, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, array));
    CHECK(type == hipMemoryTypeArray);
    hipResourceDesc resource = {};
    resource.resType = hipResourceTypeLinear;
    resource.res.linear.devPtr = device;
    resource.res.linear.desc = format;
    hipTextureDesc texture = {};
    hipTextureObject_t object;
    CHECK(hipCreateTextureObject(&object, &resource, &texture, nullptr) == hipErrorInvalidValue);
    OK(hipFreeArray(array));
    OK(hipFree(device));
}

static void launches() {
    int* device;
    OK(hipMalloc(reinterpret_cast<void**>(&device), 4));
    void* arguments[] = {&device};
    auto launch = [&](void (*kernel)(int*), dim3 grid, dim3 block, size_t lds) {
        return hipLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, arguments, lds, nullptr);
    };
    CHECK(launch(one, dim3(0), dim3(1), 0) == hipErrorInvalidValue);
    CHECK(launch(one, dim3(1), dim3(0), 0) == hipErrorInvalidValue);
    CHECK(launch(one, dim3(1), dim3(2048), 0) == hipErrorInvalidConfiguration);
    CHECK(launch(one, dim3(1u << 31), dim3(4), 0) == hipErrorInvalidConfiguration);
    CHECK(launch(shared, dim3(1), dim3(1), 65537) == hipErrorOutOfMemory);
    OK(launch(shared, dim3(1), dim3(1), 65536));
    int grid, block;
    OK(hipOccupancyMaxPotentialBlockSize(&grid, &block, one, 0, 100));
    CHECK(block == 128 && grid == 104 * 16);
    hipModule_t module;
    char junk[64] = "junk";
    CHECK(hipModuleLoad(&module, "") == hipErrorInvalidValue);
    CHECK(hipModuleLoadData(&module, nullptr) == hipErrorInvalidValue);
    CHECK(hipModuleLoadData(&module, junk) == hipErrorInvalidKernelFile);
    (void)hipGetLastError();
    OK(hipFree(device));
}

static void cooperative() {
    int *device, found[2] = {};
    hipStream_t stream;
    OK(hipStreamCreate(&stream));
    OK(hipMalloc(reinterpret_cast<void**>(&device), sizeof found));
    OK(hipMemset(device, 0, sizeof found));
    void* arguments[] = {&device};
    hipLaunchParams launch = {};
    launch.func = reinterpret_cast<void*>(grids);
    launch.gridDim = dim3(4);
    launch.blockDim = dim3(64);
    launch.args = arguments;
    launch.stream = stream;
    OK(hipLaunchCooperativeKernelMultiDevice(&launch, 1, 0));
    OK(hipStreamSynchronize(stream));
    OK(hipMemcpy(found, device, sizeof found, hipMemcpyDeviceToHost));
    CHECK(found[0] == 256 && found[1] == 2561);
    CHECK(hipLaunchCooperativeKernelMultiDevice(nullptr, 1, 0) == hipErrorInvalidValue);
    CHECK(hipLaunchCooperativeKernelMultiDevice(&launch, 2, 0) != hipSuccess);
    launch.gridDim = dim3(1 << 20);
    CHECK(hipLaunchCooperativeKernelMultiDevice(&launch, 1, 0) == hipErrorCooperativeLaunchTooLarge);
    (void)hipGetLastError();
    OK(hipFree(device));
    OK(hipStreamDestroy(stream));
}

static void graphs() {
    int* device;
    OK(hipMalloc(reinterpret_cast<void**>(&device), 4096));
    hipGraph_t graph;
    hipGraphNode_t node;
    OK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphAddEventRecordNode(&node, graph, nullptr, 0, nullptr) == hipErrorInvalidValue);
    hipMemsetParams fill = {};
    fill.dst = device;
    fill.elementSize = 1;
    fill.width = 4;
    fill.pitch = 4;
    CHECK(hipGraphAddMemsetNode(&node, graph, nullptr, 0, &fill) == hipErrorInvalidValue);
    fill.height = 1;
    OK(hipGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
    hipMemcpy3DParms copy = {};
    CHECK(hipGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy) == hipErrorInvalidValue);
    hipKernelNodeParams kernel = {};
    CHECK(hipGraphAddKernelNode(&node, graph, nullptr, 0, &kernel) == hipErrorInvalidValue);
    OK(hipGraphDestroy(graph));
    OK(hipFree(device));
}

int main() {
    pitched_copies();
    streams_and_events();
    memory();
    launches();
    cooperative();
    graphs();
    std::printf("%s\n", failures == 0 ? "PASS" : "FAIL");
    return failures != 0;
}
