#define KERNEL __attribute__((reqd_work_group_size(256, 1, 1))) kernel
#define GLOBAL global
#define SHARED(type, name, size) local type name[size]
#define GLOBAL_ID (int)get_global_id(0)
#define LOCAL_ID (int)get_local_id(0)
#define GROUP_ID get_group_id(0)
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define SQRT(x) sqrt(x)
#define MAX(a, b) fmax(a, b)
#include "rows.h"
