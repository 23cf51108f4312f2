// HIP's memory pools: memory that is allocated and freed in the order of a stream.
#include "check.hpp"

int main() {
    print_device();
    hipStream_t stream;
    MUST(hipStreamCreate(&stream));
    int different = 0;
    for (size_t count : {3, 1000, 1 << 20}) {
        std::vector<unsigned> found(count);
        unsigned *memory;
        MUST(hipMallocAsync(reinterpret_cast<void **>(&memory), count * sizeof *memory, stream));
        MUST(hipMemsetAsync(memory, 0x5a, count * sizeof *memory, stream));
        MUST(hipMemcpyAsync(found.data(), memory, count * sizeof *memory, hipMemcpyDeviceToHost, stream));
        MUST(hipFreeAsync(memory, stream));
        MUST(hipStreamSynchronize(stream));
        for (unsigned value : found) different += value != 0x5a5a5a5a;
    }
    MUST(hipStreamDestroy(stream));
    verdict("memory of a pool", different == 0, "different", different);
    return wrong_results != 0;
}
