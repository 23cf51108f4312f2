// Arrays, pools, managed memory, contexts, peers, attributes: calls that no kernel needs to answer.
#include "check.h"

#include <cstdint>

static const int W = 24, H = 5, D = 3;

static void arrays() {
    std::vector<float> in(W * H), out(W * H, -1), part(6);
    for (int i = 0; i < W * H; ++i) {
        in[i] = i * 0.5f;
    }
    hipChannelFormatDesc format = hipCreateChannelDesc<float>(), found;
    CHECK(format.x == 32 && format.y == 0 && format.f == hipChannelFormatKindFloat);
    hipArray* array = nullptr;
    OK(hipMallocArray(&array, &format, W, H, hipArrayDefault));
    OK(hipGetChannelDesc(&found, array));
    CHECK(std::memcmp(&found, &format, sizeof format) == 0);
    OK(hipMemcpy2DToArray(array, 0, 0, in.data(), W * sizeof(float), W * sizeof(float), H, hipMemcpyHostToDevice));
    OK(hipMemcpy2DFromArray(out.data(), W * sizeof(float), array, 0, 0, W * sizeof(float), H, hipMemcpyDeviceToHost));
    CHECK(out == in);
    OK(hipMemcpy2DFromArray(
        part.data(), 3 * sizeof(float), array, 2 * sizeof(float), 3, 3 * sizeof(float), 2, hipMemcpyDeviceToHost));
    CHECK(part[0] == in[3 * W + 2] && part[5] == in[4 * W + 4]);
    CHECK(hipMemcpy2DToArray(array, 8, 0, in.data(), 400, W * sizeof(float), H, hipMemcpyHostToDevice) ==
          hipErrorInvalidValue);
    // Bytes run across the ends of rows.
    OK(hipMemcpyFromArray(part.data(), array, (W - 2) * sizeof(float), 1, 6 * sizeof(float), hipMemcpyDeviceToHost));
    CHECK(part[0] == in[2 * W - 2] && part[5] == in[2 * W + 3]);
    OK(hipMemcpyHtoA(array, 4, part.data(), 8));
    OK(hipMemcpyAtoH(out.data(), array, 0, 16));
    CHECK(out[0] == in[0] && out[1] == part[0] && out[2] == part[1] && out[3] == in[3]);
    OK(hipFreeArray(array));
    CHECK(hipFreeArray(array) == hipErrorContextIsDestroyed);

    hipChannelFormatDesc wide = hipCreateChannelDesc(16, 16, 0, 0, hipChannelFormatKindSigned);
    CHECK(hipMallocArray(&array, &wide, 0, 0, hipArrayDefault) == hipErrorInvalidValue);
    std::vector<int> box(W * H * D), box_out(2 * 3 * 2);
    for (size_t i = 0; i < box.size(); ++i) {
        box[i] = static_cast<int>(i);
    }
    OK(hipMalloc3DArray(&array, &wide, make_hipExtent(W, H, D), hipArrayDefault));
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(box.data(), W * sizeof(int), W, H);
    copy.dstArray = array;
    copy.extent = make_hipExtent(W, H, D);
    copy.kind = hipMemcpyHostToDevice;
    OK(hipMemcpy3D(&copy));
    hipMemcpy3DParms back = {};
    back.srcArray = array;
    back.srcPos = make_hipPos(20, 1, 1);
    back.dstPtr = make_hipPitchedPtr(box_out.data(), 2 * sizeof(int), 2, 3);
    back.extent = make_hipExtent(2, 3, 2);
    back.kind = hipMemcpyDeviceToHost;
    OK(hipMemcpy3DAsync(&back, nullptr));
    for (int z = 0; z < 2; ++z) {
        for (int y = 0; y < 3; ++y) {
            for (int x = 0; x < 2; ++x) {
                CHECK(box_out[(z * 3 + y) * 2 + x] == ((z + 1) * H + y + 1) * W + x + 20);
            }
        }
    }
    OK(hipFreeArray(array));

    HIP_ARRAY_DESCRIPTOR descriptor = {W, H, HIP_AD_FORMAT_UNSIGNED_INT8, 4};
    OK(hipArrayCreate(&array, &descriptor));
    hip_Memcpy2D driver = {};
    driver.srcMemoryType = hipMemoryTypeHost;
    driver.srcHost = box.data();
    driver.srcPitch = W * sizeof(int);
    driver.dstMemoryType = hipMemoryTypeArray;
    driver.dstArray = array;
    driver.WidthInBytes = W * sizeof(int);
    driver.Height = H;
    OK(hipMemcpyParam2D(&driver));
    std::vector<int> rows(W * H);
    OK(hipMemcpy2DFromArray(rows.data(), W * 4, array, 0, 0, W * 4, H, hipMemcpyDeviceToHost));
    CHECK(std::memcmp(rows.data(), box.data(), rows.size() * 4) == 0);
    OK(hipArrayDestroy(array));
    (void)hipGetLastError();
}

static void rows() {
    unsigned char* data = nullptr;
    size_t pitch = 0;
    OK(hipMallocPitch(reinterpret_cast<void**>(&data), &pitch, 40, 4));
    OK(hipMemset2D(data, pitch, 0xee, 40, 4));
    OK(hipMemset2DAsync(data + pitch, pitch, 7, 20, 2, nullptr));
    std::vector<unsigned char> back(40 * 4);
    OK(hipMemcpy2DAsync(back.data(), 40, data, pitch, 40, 4, hipMemcpyDeviceToHost, nullptr));
    CHECK(back[0] == 0xee && back[40] == 7 && back[59] == 7 && back[60] == 0xee && back[80] == 7 && back[120] == 0xee);
    CHECK(hipMemcpy2D(data, pitch, back.data(), 30, 40, 4, hipMemcpyHostToDevice) == hipErrorInvalidPitchValue);
    CHECK(hipMemcpy(data, back.data(), 4, static_cast<hipMemcpyKind>(77)) == hipErrorInvalidMemcpyDirection);
    OK(hipFree(data));
    (void)hipGetLastError();
}

static void fresh() {
    unsigned *data = nullptr, *pooled = nullptr;
    OK(hipMalloc(&data, 4000));
    OK(hipMallocAsync(reinterpret_cast<void**>(&pooled), 4000, nullptr));
    std::vector<unsigned> back(1000), other(1000);
    OK(hipMemcpy(back.data(), data, 4000, hipMemcpyDeviceToHost));
    OK(hipMemcpy(other.data(), pooled, 4000, hipMemcpyDeviceToHost));
    // The program's caller says what is expected of memory that nobody has written.
    const char* poison = std::getenv("WAVETAP_POISON");
    unsigned expected = poison && *poison == '0' ? 0 : 0xcdd4dead;
    CHECK(back == std::vector<unsigned>(1000, expected) && other == back);
    OK(hipFree(data));
    OK(hipFreeAsync(pooled, nullptr));
    void* much = nullptr;
    CHECK(hipMalloc(&much, size_t(1) << 40) == hipErrorOutOfMemory && much == nullptr);
    CHECK(hipMalloc(nullptr, 16) == hipErrorInvalidValue);
    CHECK(hipGetLastError() == hipErrorInvalidValue && hipGetLastError() == hipSuccess);
}

static void pools() {
    hipMemPool_t standard, current, own;
    OK(hipDeviceGetDefaultMemPool(&standard, 0));
    OK(hipDeviceGetMemPool(&current, 0));
    CHECK(standard == current);
    hipMemPoolProps properties = {};
    properties.allocType = hipMemAllocationTypePinned;
    properties.location.type = hipMemLocationTypeDevice;
    OK(hipMemPoolCreate(&own, &properties));
    void *a = nullptr, *b = nullptr;
    hipStream_t stream;
    OK(hipStreamCreate(&stream));
    OK(hipMallocFromPoolAsync(&a, 1 << 20, own, stream));
    OK(hipMallocFromPoolAsync(&b, 1 << 19, own, stream));
    uint64_t used = 0, high = 0, threshold = 4096;
    OK(hipMemPoolGetAttribute(own, hipMemPoolAttrUsedMemCurrent, &used));
    CHECK(used == (1 << 20) + (1 << 19));
    hipMemPool_t holder = nullptr;
    OK(hipFreeAsync(a, stream));
    OK(hipMemPoolGetAttribute(own, hipMemPoolAttrUsedMemCurrent, &used));
    OK(hipMemPoolGetAttribute(own, hipMemPoolAttrUsedMemHigh, &high));
    CHECK(used == 1 << 19 && high == (1 << 20) + (1 << 19));
    OK(hipMemPoolSetAttribute(own, hipMemPoolAttrReleaseThreshold, &threshold));
    threshold = 0;
    OK(hipMemPoolGetAttribute(own, hipMemPoolAttrReleaseThreshold, &threshold));
    CHECK(threshold == 4096);
    int reuse = 0;
    OK(hipMemPoolSetAttribute(own, hipMemPoolReuseAllowOpportunistic, &reuse));
    reuse = 5;
    OK(hipMemPoolGetAttribute(own, hipMemPoolReuseAllowOpportunistic, &reuse));
    CHECK(reuse == 0);
    OK(hipMemPoolTrimTo(own, 0));
    OK(hipFreeAsync(b, stream));
    CHECK(hipMemset(b, 0, 4) == hipErrorInvalidValue);
    OK(hipDeviceSetMemPool(0, own));
    OK(hipDeviceGetMemPool(&current, 0));
    CHECK(current == own);
    CHECK(hipMemPoolDestroy(standard) == hipErrorInvalidValue);
    OK(hipMemPoolDestroy(own));
    CHECK(hipMallocFromPoolAsync(&a, 16, own, stream) == hipErrorInvalidValue);
    OK(hipStreamDestroy(stream));
    (void)hipGetLastError();
}

__global__ void twice(int* data) { data[threadIdx.x] *= 2; }

static void managed() {
    int *data = nullptr, device = -5;
    CHECK(hipMallocManaged(&data, 0) == hipErrorInvalidValue);
    OK(hipMallocManaged(&data, 64 * sizeof(int)));
    for (int i = 0; i < 64; ++i) {
        data[i] = i;
    }
    OK(hipMemAdvise(data, 64 * sizeof(int), hipMemAdviseSetPreferredLocation, 0));
    OK(hipMemAdvise(data, 64 * sizeof(int), hipMemAdviseSetReadMostly, 0));
    OK(hipMemPrefetchAsync(data, 64 * sizeof(int), 0, nullptr));
    twice<<<1, 64>>>(data);
    OK(hipMemPrefetchAsync(data, 64 * sizeof(int), hipCpuDeviceId, nullptr));
    OK(hipDeviceSynchronize());
    CHECK(data[63] == 126);
    OK(hipMemRangeGetAttribute(&device, sizeof device, hipMemRangeAttributePreferredLocation, data, 64));
    CHECK(device == 0);
    OK(hipMemRangeGetAttribute(&device, sizeof device, hipMemRangeAttributeLastPrefetchLocation, data, 64));
    CHECK(device == hipCpuDeviceId);
    OK(hipMemAdvise(data, 64 * sizeof(int), hipMemAdviseUnsetReadMostly, 0));
    OK(hipMemRangeGetAttribute(&device, sizeof device, hipMemRangeAttributeReadMostly, data, 64));
    CHECK(device == 0);
    CHECK(hipMemPrefetchAsync(data, 1 << 20, 0, nullptr) == hipErrorInvalidValue);
    CHECK(hipMemPrefetchAsync(data, 64, 3, nullptr) == hipErrorInvalidDevice);
    unsigned flag = 0;
    size_t size = 0;
    void* start = nullptr;
    OK(hipPointerGetAttribute(&flag, HIP_POINTER_ATTRIBUTE_IS_MANAGED, data + 1));
    OK(hipPointerGetAttribute(&size, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, data + 1));
    OK(hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, data + 1));
    CHECK(flag == 1 && size == 64 * sizeof(int) && start == data);
    OK(hipFree(data));
    CHECK(hipPointerGetAttribute(&flag, HIP_POINTER_ATTRIBUTE_IS_MANAGED, data) == hipErrorInvalidValue);
    (void)hipGetLastError();
}

static void devices() {
    int can = 7, value = 0;
    CHECK(hipDeviceCanAccessPeer(&can, 0, 1) == hipErrorInvalidDevice);
    OK(hipDeviceCanAccessPeer(&can, 0, 0));
    CHECK(can == 0);
    CHECK(hipDeviceEnablePeerAccess(0, 0) == hipErrorInvalidDevice &&
          hipDeviceDisablePeerAccess(0) == hipErrorPeerAccessNotEnabled);
    char *a = nullptr, *b = nullptr, back[4] = {};
    OK(hipMalloc(&a, 4));
    OK(hipMalloc(&b, 4));
    OK(hipMemcpyHtoD(a, const_cast<char*>("abc"), 4));
    OK(hipMemcpyPeer(b, 0, a, 0, 4));
    OK(hipMemcpyPeerAsync(a, 0, b, 0, 2, nullptr));
    CHECK(hipMemcpyPeer(b, 1, a, 0, 4) == hipErrorInvalidDevice);
    OK(hipMemcpyDtoH(back, b, 4));
    CHECK(std::strcmp(back, "abc") == 0);
    OK(hipFree(a));
    OK(hipFree(b));
    hipCtx_t context, current;
    OK(hipCtxCreate(&context, 0, 0));
    OK(hipCtxGetCurrent(&current));
    CHECK(context == current);
    OK(hipCtxPopCurrent(&current));
    CHECK(hipCtxPopCurrent(&current) == hipErrorInvalidContext);
    OK(hipDevicePrimaryCtxRetain(&context, 0));
    OK(hipCtxSetCurrent(context));
    OK(hipCtxSynchronize());
    char address[32];
    OK(hipDeviceGetPCIBusId(address, sizeof address, 0));
    OK(hipDeviceGetByPCIBusId(&value, address));
    CHECK(value == 0 && hipDeviceGetByPCIBusId(&value, "1234:00:00.0") == hipErrorInvalidValue);
    int least = -9, greatest = 9;
    OK(hipDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(least > greatest);
    hipStream_t stream;
    OK(hipStreamCreateWithPriority(&stream, hipStreamDefault, greatest));
    OK(hipStreamGetPriority(stream, &value));
    CHECK(value == greatest);
    unsigned* word = nullptr;
    OK(hipMalloc(&word, 8));
    OK(hipStreamWriteValue32(stream, word, 77, 0));
    OK(hipStreamWaitValue32(stream, word, 70, hipStreamWaitValueGte, 0xffffffff));
    OK(hipFree(word));
    OK(hipStreamDestroy(stream));
    for (int code : {0, 1, 2, 9, 98, 700, 719, 801, 900, 908, 999}) {
        CHECK(std::strncmp(hipGetErrorName(static_cast<hipError_t>(code)), "hip", 3) == 0);
    }
    CHECK(std::strcmp(hipGetErrorName(hipErrorStreamCaptureUnjoined), "hipErrorStreamCaptureUnjoined") == 0);
    hipDeviceProp_t properties;
    OK(hipGetDeviceProperties(&properties, 0));
    struct {
        hipDeviceAttribute_t which;
        int expected;
    } attributes[] = {
        {hipDeviceAttributeMaxThreadsPerBlock, properties.maxThreadsPerBlock},
        {hipDeviceAttributeMaxBlockDimZ, properties.maxThreadsDim[2]},
        {hipDeviceAttributeMaxGridDimY, properties.maxGridSize[1]},
        {hipDeviceAttributeMaxSharedMemoryPerBlock, static_cast<int>(properties.sharedMemPerBlock)},
        {hipDeviceAttributeWarpSize, properties.warpSize},
        {hipDeviceAttributeClockRate, properties.clockRate},
        {hipDeviceAttributeMemoryClockRate, properties.memoryClockRate},
        {hipDeviceAttributeMemoryBusWidth, properties.memoryBusWidth},
        {hipDeviceAttributeMultiprocessorCount, properties.multiProcessorCount},
        {hipDeviceAttributeL2CacheSize, properties.l2CacheSize},
        {hipDeviceAttributeMaxThreadsPerMultiProcessor, properties.maxThreadsPerMultiProcessor},
        {hipDeviceAttributeComputeCapabilityMajor, properties.major},
        {hipDeviceAttributeConcurrentKernels, properties.concurrentKernels},
        {hipDeviceAttributePciBusId, properties.pciBusID},
        {hipDeviceAttributeIntegrated, properties.integrated},
        {hipDeviceAttributeCooperativeLaunch, properties.cooperativeLaunch},
        {hipDeviceAttributeEccEnabled, properties.ECCEnabled},
        {hipDeviceAttributeManagedMemory, properties.managedMemory},
        {hipDeviceAttributeCanMapHostMemory, properties.canMapHostMemory},
        {hipDeviceAttributeKernelExecTimeout, properties.kernelExecTimeoutEnabled},
        {hipDeviceAttributeMaxPitch, 0x7fffffff},
        {hipDeviceAttributeTextureAlignment, static_cast<int>(properties.textureAlignment)},
        {hipDeviceAttributeMaxTexture2DWidth, properties.maxTexture2D[0]},
        {hipDeviceAttributePageableMemoryAccess, properties.pageableMemoryAccess},
        {hipDeviceAttributeConcurrentManagedAccess, properties.concurrentManagedAccess},
    };
    for (auto& attribute : attributes) {
        OK(hipDeviceGetAttribute(&value, attribute.which, 0));
        if (value != attribute.expected) {
            std::printf("attribute %d: %d, %d expected\n", attribute.which, value, attribute.expected);
            ++failures;
        }
    }
    int version = 0;
    OK(hipRuntimeGetVersion(&version));
    CHECK(version / 10000000 == HIP_VERSION_MAJOR);
    (void)hipGetLastError();
}

int main() {
    arrays();
    rows();
    fresh();
    pools();
    managed();
    devices();
    return verdict();
}
