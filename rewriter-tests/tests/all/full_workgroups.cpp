// A kernel with all the vector registers that workgroups of the largest size have, and branches to be counted.
#include "shim/kernel.h"

#define UNROLLED _Pragma("unroll")

KERNEL(many_values)(const float *in, float *out, float n) {
    float kept[100];
    UNROLLED for (u32 k = 0; k < 100; k++) kept[k] = in[(local_id() + k * 64) & 1023];
    UNROLLED for (u32 round = 0; round < 3; round++)
        UNROLLED for (u32 k = 0; k < 100; k++) {
            if (kept[k] > n * round) kept[k] = kept[(k + 7) % 100] * 0.5f + k;
            else kept[k] += kept[(k + 1) % 100];
        }
    float sum = 0;
    UNROLLED for (u32 k = 0; k < 100; k++) sum += kept[k] * (k + 1);
    if (sum > 100) out[global_id()] = sum;
}
