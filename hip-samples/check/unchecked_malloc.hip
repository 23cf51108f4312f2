// 1bit-MONSTER/1bit-MONSTER 1256: the result of hipMalloc is ignored, and the null pointer is used.
#include "check.h"

static bool run(bool mended) {
    size_t size = size_t(1) << 46, available = 0, total = 0;
    if (mended) {
        HIP(hipMemGetInfo(&available, &total));
        if (size > available) size = 4096;
    }
    void *scores = nullptr;
    (void)hipMalloc(&scores, size); // fails
    (void)hipMemset(scores, 0, 64); // with a null pointer
    (void)hipFree(scores);
    return true;
}
