//! HIP's error codes, their names and texts, and the error that each thread remembers.

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::raw;

/// `hipError_t`.
pub(crate) type Status = i32;

/// What an entry point ends with.
pub(crate) type Outcome<T = ()> = Result<T, Status>;

macro_rules! errors {
    ($($name:ident $c_name:literal $code:literal $text:literal)*) => {
        $(pub(crate) const $name: Status = $code;)*

        /// Code, name and text of every error.
        const ERRORS: &[(Status, &CStr, &CStr)] = &[$(($code, $c_name, $text)),*];
    };
}

// Codes and names as in HIP's `hip_runtime_api.h`.
#[allow(dead_code)]
mod codes {
    use super::{CStr, Status};
    errors! {
        SUCCESS c"hipSuccess" 0 c"no error"
        INVALID_VALUE c"hipErrorInvalidValue" 1 c"invalid argument"
        OUT_OF_MEMORY c"hipErrorOutOfMemory" 2 c"out of memory"
        NOT_INITIALIZED c"hipErrorNotInitialized" 3 c"initialization error"
        DEINITIALIZED c"hipErrorDeinitialized" 4 c"driver shutting down"
        PROFILER_DISABLED c"hipErrorProfilerDisabled" 5 c"profiler disabled while using external profiling tool"
        PROFILER_NOT_INITIALIZED c"hipErrorProfilerNotInitialized" 6 c"profiler is not initialized"
        PROFILER_ALREADY_STARTED c"hipErrorProfilerAlreadyStarted" 7 c"profiler already started"
        PROFILER_ALREADY_STOPPED c"hipErrorProfilerAlreadyStopped" 8 c"profiler already stopped"
        INVALID_CONFIGURATION c"hipErrorInvalidConfiguration" 9 c"invalid configuration argument"
        INVALID_PITCH_VALUE c"hipErrorInvalidPitchValue" 12 c"invalid pitch argument"
        INVALID_SYMBOL c"hipErrorInvalidSymbol" 13 c"invalid device symbol"
        INVALID_DEVICE_POINTER c"hipErrorInvalidDevicePointer" 17 c"invalid device pointer"
        INVALID_MEMCPY_DIRECTION c"hipErrorInvalidMemcpyDirection" 21 c"invalid copy direction for memcpy"
        INSUFFICIENT_DRIVER c"hipErrorInsufficientDriver" 35 c"driver version is insufficient for runtime version"
        MISSING_CONFIGURATION c"hipErrorMissingConfiguration" 52 c"__global__ function call is not configured"
        PRIOR_LAUNCH_FAILURE c"hipErrorPriorLaunchFailure" 53 c"unspecified launch failure in prior launch"
        INVALID_DEVICE_FUNCTION c"hipErrorInvalidDeviceFunction" 98 c"invalid device function"
        NO_DEVICE c"hipErrorNoDevice" 100 c"no ROCm-capable device is detected"
        INVALID_DEVICE c"hipErrorInvalidDevice" 101 c"invalid device ordinal"
        INVALID_IMAGE c"hipErrorInvalidImage" 200 c"device kernel image is invalid"
        INVALID_CONTEXT c"hipErrorInvalidContext" 201 c"invalid device context"
        CONTEXT_ALREADY_CURRENT c"hipErrorContextAlreadyCurrent" 202 c"context is already current context"
        MAP_FAILED c"hipErrorMapFailed" 205 c"mapping of buffer object failed"
        UNMAP_FAILED c"hipErrorUnmapFailed" 206 c"unmapping of buffer object failed"
        ARRAY_IS_MAPPED c"hipErrorArrayIsMapped" 207 c"array is mapped"
        ALREADY_MAPPED c"hipErrorAlreadyMapped" 208 c"resource already mapped"
        NO_BINARY_FOR_GPU c"hipErrorNoBinaryForGpu" 209 c"no kernel image is available for execution on the device"
        ALREADY_ACQUIRED c"hipErrorAlreadyAcquired" 210 c"resource already acquired"
        NOT_MAPPED c"hipErrorNotMapped" 211 c"resource not mapped"
        NOT_MAPPED_AS_ARRAY c"hipErrorNotMappedAsArray" 212 c"resource not mapped as array"
        NOT_MAPPED_AS_POINTER c"hipErrorNotMappedAsPointer" 213 c"resource not mapped as pointer"
        ECC_NOT_CORRECTABLE c"hipErrorECCNotCorrectable" 214 c"uncorrectable ECC error encountered"
        UNSUPPORTED_LIMIT c"hipErrorUnsupportedLimit" 215 c"limit is not supported on this architecture"
        CONTEXT_ALREADY_IN_USE c"hipErrorContextAlreadyInUse" 216 c"exclusive-thread device already in use by a \
            different thread"
        PEER_ACCESS_UNSUPPORTED c"hipErrorPeerAccessUnsupported" 217 c"peer access is not supported between these two \
            devices"
        INVALID_KERNEL_FILE c"hipErrorInvalidKernelFile" 218 c"invalid kernel file"
        INVALID_GRAPHICS_CONTEXT c"hipErrorInvalidGraphicsContext" 219 c"invalid OpenGL or DirectX context"
        INVALID_SOURCE c"hipErrorInvalidSource" 300 c"device kernel image is invalid"
        FILE_NOT_FOUND c"hipErrorFileNotFound" 301 c"file not found"
        SHARED_OBJECT_SYMBOL_NOT_FOUND c"hipErrorSharedObjectSymbolNotFound" 302 c"shared object symbol not found"
        SHARED_OBJECT_INIT_FAILED c"hipErrorSharedObjectInitFailed" 303 c"shared object initialization failed"
        OPERATING_SYSTEM c"hipErrorOperatingSystem" 304 c"OS call failed or operation not supported on this OS"
        INVALID_HANDLE c"hipErrorInvalidHandle" 400 c"invalid resource handle"
        ILLEGAL_STATE c"hipErrorIllegalState" 401 c"the operation cannot be performed in the present state"
        NOT_FOUND c"hipErrorNotFound" 500 c"named symbol not found"
        NOT_READY c"hipErrorNotReady" 600 c"device not ready"
        ILLEGAL_ADDRESS c"hipErrorIllegalAddress" 700 c"an illegal memory access was encountered"
        LAUNCH_OUT_OF_RESOURCES c"hipErrorLaunchOutOfResources" 701 c"too many resources requested for launch"
        LAUNCH_TIME_OUT c"hipErrorLaunchTimeOut" 702 c"the launch timed out and was terminated"
        PEER_ACCESS_ALREADY_ENABLED c"hipErrorPeerAccessAlreadyEnabled" 704 c"peer access is already enabled"
        PEER_ACCESS_NOT_ENABLED c"hipErrorPeerAccessNotEnabled" 705 c"peer access has not been enabled"
        SET_ON_ACTIVE_PROCESS c"hipErrorSetOnActiveProcess" 708 c"cannot set while device is active in this process"
        CONTEXT_IS_DESTROYED c"hipErrorContextIsDestroyed" 709 c"context is destroyed"
        ASSERT c"hipErrorAssert" 710 c"device-side assert triggered"
        HOST_MEMORY_ALREADY_REGISTERED
            c"hipErrorHostMemoryAlreadyRegistered" 712 c"part or all of the requested memory range is already mapped"
        HOST_MEMORY_NOT_REGISTERED c"hipErrorHostMemoryNotRegistered" 713 c"pointer does not correspond to a \
            registered memory region"
        LAUNCH_FAILURE c"hipErrorLaunchFailure" 719 c"unspecified launch failure"
        COOPERATIVE_LAUNCH_TOO_LARGE c"hipErrorCooperativeLaunchTooLarge" 720 c"too many blocks in cooperative launch"
        NOT_SUPPORTED c"hipErrorNotSupported" 801 c"operation not supported"
        STREAM_CAPTURE_UNSUPPORTED c"hipErrorStreamCaptureUnsupported" 900 c"operation not permitted when stream is \
            capturing"
        STREAM_CAPTURE_INVALIDATED c"hipErrorStreamCaptureInvalidated" 901 c"operation failed due to a previous error \
            during capture"
        STREAM_CAPTURE_MERGE c"hipErrorStreamCaptureMerge" 902 c"operation would result in a merge of separate capture \
            sequences"
        STREAM_CAPTURE_UNMATCHED c"hipErrorStreamCaptureUnmatched" 903 c"capture was not ended in the same stream as \
            it began"
        STREAM_CAPTURE_UNJOINED c"hipErrorStreamCaptureUnjoined" 904 c"capturing stream has unjoined work"
        STREAM_CAPTURE_ISOLATION c"hipErrorStreamCaptureIsolation" 905 c"dependency created on uncaptured work in \
            another stream"
        STREAM_CAPTURE_IMPLICIT
            c"hipErrorStreamCaptureImplicit" 906 c"operation would make the legacy stream depend on a capturing \
                blocking stream"
        CAPTURED_EVENT c"hipErrorCapturedEvent" 907 c"operation not permitted on an event last recorded in a capturing \
            stream"
        STREAM_CAPTURE_WRONG_THREAD
            c"hipErrorStreamCaptureWrongThread" 908 c"attempt to terminate a thread-local capture sequence from \
                another thread"
        GRAPH_EXEC_UPDATE_FAILURE
            c"hipErrorGraphExecUpdateFailure" 910 c"the graph update needs changes that an instantiated graph cannot \
                take"
        UNKNOWN c"hipErrorUnknown" 999 c"unknown error"
        RUNTIME_MEMORY c"hipErrorRuntimeMemory" 1052 c"runtime memory call returned error"
        RUNTIME_OTHER c"hipErrorRuntimeOther" 1053 c"runtime call other than memory returned error"
    }

    /// Name of a code.
    pub(crate) fn name(code: Status) -> &'static CStr {
        ERRORS.iter().find(|(known, _, _)| *known == code).map_or(c"hipErrorUnknown", |(_, name, _)| name)
    }

    /// Text of a code.
    pub(crate) fn text(code: Status) -> &'static CStr {
        ERRORS.iter().find(|(known, _, _)| *known == code).map_or(c"unknown error", |(_, _, text)| text)
    }
}

pub(crate) use codes::*;

thread_local! {
    /// The error that `hipGetLastError` will give this thread.
    static LAST: Cell<Status> = const { Cell::new(SUCCESS) };
}

/// What a kernel's fault made of the device, which then answers everything with it; [`SUCCESS`] while it works.
static BROKEN: AtomicI32 = AtomicI32::new(SUCCESS);

/// From now on every entry point gives this error.
pub(crate) fn break_device(status: Status) {
    BROKEN.store(status, Ordering::Relaxed);
}

/// Whether the device still works.
pub(crate) fn working() -> Outcome {
    match BROKEN.load(Ordering::Relaxed) {
        SUCCESS => Ok(()),
        status => Err(status),
    }
}

/// Runs an entry point, turns its outcome into its return value and remembers an error. "Not ready" is an answer, not
/// an error.
pub(crate) fn answer(body: impl FnOnce() -> Outcome) -> Status {
    match working().and_then(|()| body()) {
        Ok(()) => SUCCESS,
        Err(status) => {
            if status != NOT_READY {
                LAST.set(status);
            }
            status
        }
    }
}

/// Whether the default stream of an entry point is the one of each thread, by its name.
pub(crate) const fn is_per_thread(name: &str) -> bool {
    matches!(name.as_bytes(), [.., b'_', b's', b'p', b't'])
}

/// Defines entry points: exported functions whose body gives an [`Outcome`]. Names after a `/` are exported too and do
/// the same.
macro_rules! entry_points {
    ($($(#[$meta:meta])* fn $name:ident $(/ $also:ident)* ($($arguments:tt)*) $body:block)*) => {$(
        $crate::status::entry_point! { { $(#[$meta])* } $name $($also)* ; ($($arguments)*) $body }
    )*};
}
pub(crate) use entry_points;

/// One entry point under each of its names; see [`entry_points`].
macro_rules! entry_point {
    ({ $($meta:tt)* } ; $arguments:tt $body:block) => {};
    ({ $($meta:tt)* } $name:ident $($also:ident)* ; ($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $($meta)*
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, clippy::too_many_arguments)]
        extern "C" fn $name($($arg: $ty),*) -> $crate::status::Status {
            const NAME: &str = stringify!($name);
            const PER_THREAD: bool = $crate::status::is_per_thread(NAME);
            $crate::tasks::called(NAME);
            $crate::streams::default_is_per_thread(PER_THREAD);
            $crate::status::answer(|| $body)
        }
        $crate::status::entry_point! { { $($meta)* } $($also)* ; ($($arg: $ty),*) $body }
    };
}
pub(crate) use entry_point;

/// The last error of this thread; that of a broken device is there for all threads and does not go away.
fn last_error(forget: bool) -> Status {
    let last = LAST.get();
    if forget {
        LAST.set(SUCCESS);
    }
    working().err().unwrap_or(last)
}

/// Gives the last error of this thread and forgets it.
#[unsafe(no_mangle)]
extern "C" fn hipGetLastError() -> Status {
    last_error(true)
}

/// As [`hipGetLastError`]: errors are all there is to remember here.
#[unsafe(no_mangle)]
extern "C" fn hipExtGetLastError() -> Status {
    last_error(true)
}

/// Gives the last error of this thread.
#[unsafe(no_mangle)]
extern "C" fn hipPeekAtLastError() -> Status {
    last_error(false)
}

/// Name of an error code.
#[unsafe(no_mangle)]
extern "C" fn hipGetErrorName(code: Status) -> *const core::ffi::c_char {
    name(code).as_ptr()
}

/// Text of an error code.
#[unsafe(no_mangle)]
extern "C" fn hipGetErrorString(code: Status) -> *const core::ffi::c_char {
    text(code).as_ptr()
}

entry_points! {
    /// Name of an error code, through a pointer.
    fn hipDrvGetErrorName(code: Status, out: *mut *const core::ffi::c_char) {
        raw::store(out, name(code).as_ptr())
    }

    /// Text of an error code, through a pointer.
    fn hipDrvGetErrorString(code: Status, out: *mut *const core::ffi::c_char) {
        raw::store(out, text(code).as_ptr())
    }
}
