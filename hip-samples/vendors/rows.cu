#define KERNEL extern "C" __global__ __launch_bounds__(256)
#define GLOBAL
#define SHARED(type, name, size) __shared__ type name[size]
#define GLOBAL_ID (int)(blockIdx.x * blockDim.x + threadIdx.x)
#define LOCAL_ID (int)threadIdx.x
#define GROUP_ID blockIdx.x
#define BARRIER __syncthreads()
#define SQRT(x) sqrtf(x)
#define MAX(a, b) fmaxf(a, b)
#include "rows.h"
