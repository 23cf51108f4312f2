// Virtual memory as allocators use it: a reservation that grows, memory that moves; libraries of kernels; several
// operations on memory in one call. With the argument "fault" a kernel goes on after its memory was unmapped.
#include "check.h"

#include <thread>

// Of newer versions of HIP than the header's.
struct BatchOperation {
    unsigned kind;
    void *address;
    unsigned long long value;
    unsigned flags;
    void *alias;
    unsigned long long rest;
};
extern "C" {
hipError_t hipLibraryLoadFromFile(void **, const char *, void *, void **, unsigned, void *, void **, unsigned);
hipError_t hipLibraryLoadData(void **, const void *, void *, void **, unsigned, void *, void **, unsigned);
hipError_t hipLibraryUnload(void *);
hipError_t hipLibraryGetKernel(void **, void *, const char *);
hipError_t hipLibraryGetKernelCount(unsigned *, void *);
hipError_t hipLibraryEnumerateKernels(void **, unsigned, void *);
hipError_t hipKernelGetFunction(hipFunction_t *, void *);
hipError_t hipKernelGetLibrary(void **, void *);
hipError_t hipStreamBatchMemOp(hipStream_t, unsigned, BatchOperation *, unsigned);
}

__global__ void fill(unsigned *data, size_t n, unsigned add) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n)
        data[i] = unsigned(i) + add;
}

static const size_t PART = 2 << 20;

static void memory(bool fault) {
    hipMemAllocationProp properties = {};
    properties.type = hipMemAllocationTypePinned;
    properties.location = {hipMemLocationTypeDevice, 0};
    size_t granularity = 0;
    OK(hipMemGetAllocationGranularity(&granularity, &properties, hipMemAllocationGranularityMinimum));
    CHECK(granularity == PART);
    char *base = nullptr, *other = nullptr;
    OK(hipMemAddressReserve(reinterpret_cast<void **>(&base), 32 * PART, 0, nullptr, 0));
    OK(hipMemAddressReserve(reinterpret_cast<void **>(&other), 8 * PART, 0, base + 64 * PART, 0));
    CHECK(other == base + 64 * PART);
    CHECK(hipMemAddressReserve(reinterpret_cast<void **>(&other), 100, 0, nullptr, 0) == hipErrorInvalidValue);
    CHECK(hipMalloc(nullptr, 16) == hipErrorInvalidValue);
    void *between = nullptr;
    OK(hipMalloc(&between, 1 << 20));
    CHECK(between < base || between >= base + 32 * PART);

    hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
    hipMemGenericAllocationHandle_t parts[3];
    for (int i = 0; i < 3; i++) {
        OK(hipMemCreate(&parts[i], PART, &properties, 0));
        OK(hipMemMap(base + i * PART, PART, 0, parts[i], 0));
        OK(hipMemSetAccess(base + i * PART, PART, &access, 1));
    }
    CHECK(hipMemMap(base + PART, PART, 0, parts[0], 0) == hipErrorInvalidValue);
    CHECK(hipMemMap(base + 40 * PART, PART, 0, parts[0], 0) != hipSuccess);
    CHECK(hipMemMap(base + 8 * PART, PART, 0, parts[0], 0) == hipErrorNotSupported);
    CHECK(hipFree(base) == hipErrorInvalidValue);
    unsigned long long flags = 0;
    hipMemLocation location = {hipMemLocationTypeDevice, 0};
    OK(hipMemGetAccess(&flags, &location, base + PART + 5));
    CHECK(flags == hipMemAccessFlagsProtReadWrite);
    CHECK(hipMemGetAccess(&flags, &location, base + 3 * PART) == hipErrorInvalidValue);

    // One kernel and one copy over all three.
    const size_t n = 3 * PART / sizeof(unsigned);
    unsigned *data = reinterpret_cast<unsigned *>(base);
    fill<<<n / 256, 256>>>(data, n, 7);
    std::vector<unsigned> found(n);
    OK(hipMemcpy(found.data(), data, 3 * PART, hipMemcpyDeviceToHost));
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += found[i] != i + 7;
    CHECK(wrong == 0);

    // The middle is unmapped and comes back elsewhere with its bytes; new memory is in its place.
    OK(hipMemUnmap(base + PART, PART));
    CHECK(hipMemcpy(found.data(), data, 3 * PART, hipMemcpyDeviceToHost) != hipSuccess);
    CHECK(hipMemUnmap(base + PART, PART) == hipErrorInvalidValue);
    other = base + 64 * PART;
    OK(hipMemMap(other, PART, 0, parts[1], 0));
    OK(hipMemSetAccess(other, PART, &access, 1));
    OK(hipMemcpy(found.data(), other + PART - 4, 4, hipMemcpyDeviceToHost));
    CHECK(found[0] == 2 * PART / 4 - 1 + 7);
    hipMemGenericAllocationHandle_t fresh, again;
    OK(hipMemCreate(&fresh, PART, &properties, 0));
    OK(hipMemMap(base + PART, PART, 0, fresh, 0));
    OK(hipMemSetAccess(base + PART, PART, &access, 1));
    // What is released stays until it is unmapped.
    OK(hipMemRelease(fresh));
    CHECK(hipMemRelease(fresh) == hipErrorInvalidValue);
    OK(hipMemRetainAllocationHandle(&again, base + PART + 100));
    hipMemAllocationProp got = {};
    OK(hipMemGetAllocationPropertiesFromHandle(&got, again));
    CHECK(got.type == hipMemAllocationTypePinned && got.location.id == 0);
    OK(hipMemRelease(again));
    OK(hipMemcpy(found.data(), data, 3 * PART, hipMemcpyDeviceToHost));
    CHECK(found[PART / 4 - 1] == PART / 4 - 1 + 7 && found[2 * PART / 4] == 2 * PART / 4 + 7);
    CHECK(found[PART / 4] != PART / 4 + 7);

    // Without access nothing can be read, and the bytes stay.
    access.flags = hipMemAccessFlagsProtNone;
    OK(hipMemSetAccess(base, PART, &access, 1));
    CHECK(hipMemcpy(found.data(), data, 4, hipMemcpyDeviceToHost) != hipSuccess);
    access.flags = hipMemAccessFlagsProtRead;
    CHECK(hipMemSetAccess(base, PART, &access, 1) == hipErrorNotSupported);
    access.flags = hipMemAccessFlagsProtReadWrite;
    OK(hipMemSetAccess(base, PART, &access, 1));
    OK(hipMemcpy(found.data(), data + 5, 4, hipMemcpyDeviceToHost));
    CHECK(found[0] == 12);

    if (fault) {
        OK(hipMemUnmap(base + PART, 2 * PART));
        fill<<<n / 256, 256>>>(data, n, 1);
        CHECK(hipDeviceSynchronize() == hipErrorIllegalAddress);
        return;
    }
    CHECK(hipMemAddressFree(base, 32 * PART) == hipErrorInvalidValue);
    OK(hipMemUnmap(base, 3 * PART));
    OK(hipMemUnmap(other, PART));
    for (auto part : parts)
        OK(hipMemRelease(part));
    CHECK(hipMemAddressFree(base, PART) == hipErrorInvalidValue);
    OK(hipMemAddressFree(base, 32 * PART));
    OK(hipMemAddressFree(other, 8 * PART));
    OK(hipFree(between));
}

static void libraries(const char *file) {
    void *library = nullptr, *kernel = nullptr, *same = nullptr, *all[4] = {};
    unsigned count = 0;
    OK(hipLibraryLoadFromFile(&library, file, nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(hipLibraryGetKernelCount(&count, library));
    CHECK(count == 1);
    OK(hipLibraryGetKernel(&kernel, library, "_Z9vectoraddPKfS0_Pfi"));
    CHECK(hipLibraryGetKernel(&same, library, "nosuch") == hipErrorNotFound);
    OK(hipLibraryEnumerateKernels(all, 4, library));
    CHECK(all[0] == kernel && all[1] == nullptr);
    OK(hipKernelGetLibrary(&same, kernel));
    CHECK(same == library);
    hipFunction_t function;
    OK(hipKernelGetFunction(&function, kernel));
    float in[4] = {1, 2, 3, 4}, *a, out[4];
    int n = 4;
    OK(hipMalloc(&a, sizeof in));
    OK(hipMemcpy(a, in, sizeof in, hipMemcpyHostToDevice));
    void *arguments[] = {&a, &a, &a, &n};
    OK(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    OK(hipMemcpy(out, a, sizeof out, hipMemcpyDeviceToHost));
    CHECK(out[0] == 2 && out[3] == 8);
    OK(hipLibraryUnload(library));
    CHECK(hipLibraryUnload(library) != hipSuccess);
    CHECK(hipLibraryLoadFromFile(&library, "/nosuch", nullptr, nullptr, 0, nullptr, nullptr, 0) ==
          hipErrorFileNotFound);
}

static void batches() {
    unsigned *words;
    OK(hipMalloc(&words, 64));
    OK(hipMemset(words, 0, 64));
    hipStream_t first, second;
    OK(hipStreamCreate(&first));
    OK(hipStreamCreate(&second));
    // The second stream waits for what the first one writes.
    BatchOperation waits[] = {{1, words, 5, 1, nullptr, 0}, {5, words + 2, 0x100000002ull, 0, nullptr, 0}};
    BatchOperation writes[] = {{2, words + 6, 9, 0, nullptr, 0}, {2, words, 5, 0, nullptr, 0}};
    OK(hipStreamBatchMemOp(second, 2, waits, 0));
    CHECK(hipStreamQuery(second) == hipErrorNotReady);
    OK(hipStreamBatchMemOp(first, 2, writes, 0));
    OK(hipStreamSynchronize(second));
    unsigned found[8];
    OK(hipMemcpy(found, words, sizeof found, hipMemcpyDeviceToHost));
    CHECK(found[0] == 5 && found[2] == 2 && found[3] == 1 && found[6] == 9 && found[1] == 0);
    BatchOperation barrier = {6, nullptr, 0, 0, nullptr, 0};
    CHECK(hipStreamBatchMemOp(first, 1, &barrier, 0) == hipErrorNotSupported);
    CHECK(hipStreamBatchMemOp(first, 0, writes, 0) == hipErrorInvalidValue);
}

int main(int, char **argv) {
    bool fault = std::strcmp(argv[1], "fault") == 0;
    if (!fault) {
        libraries(argv[1]);
        batches();
    }
    memory(fault);
    return verdict();
}
