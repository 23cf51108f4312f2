// hypre-space/hypre 1569: an object's destructor frees device memory that was freed before.
#include "check.h"

struct Matrix {
    int *rows = nullptr;
    explicit Matrix(int n) { HIP(hipMalloc((void **)&rows, n * sizeof(int))); }
    void release(bool mended) {
        HIP(hipFree(rows));
        if (mended) rows = nullptr;
    }
    ~Matrix() { (void)hipFree(rows); } // the pointer may be stale
};

static bool run(bool mended) {
    Matrix matrix(100);
    matrix.release(mended);
    return true;
}
