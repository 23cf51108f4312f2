/* librccl.so.1, which Debian has not for ROCm 6: TensorFlow is linked with it, but needs it only for several GPUs. Each
   function says that it failed. */
#define SYSTEM_ERROR 2
#define FUNCTION(name) int name(void) { return SYSTEM_ERROR; }

FUNCTION(ncclAllGather)
FUNCTION(ncclAllReduce)
FUNCTION(ncclBroadcast)
FUNCTION(ncclCommAbort)
FUNCTION(ncclCommCount)
FUNCTION(ncclCommDestroy)
FUNCTION(ncclCommGetAsyncError)
FUNCTION(ncclCommInitRank)
FUNCTION(ncclGetUniqueId)
FUNCTION(ncclGroupEnd)
FUNCTION(ncclGroupStart)
FUNCTION(ncclRecv)
FUNCTION(ncclReduce)
FUNCTION(ncclReduceScatter)
FUNCTION(ncclSend)

const char *ncclGetErrorString(void) { return "this librccl does not communicate"; }
