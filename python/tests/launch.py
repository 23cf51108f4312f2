"""Launches the kernel `divergent` of a sample twice, once in a range: launch.py EXECUTABLE."""
import ctypes
import sys

import wavetap


def check(code):
    if code != 0:
        raise SystemExit(f"HIP: error {code}")


hip = ctypes.CDLL("libamdhip64.so")
data = open(sys.argv[1], "rb").read()
bundle = ctypes.create_string_buffer(data[data.index(b"__CLANG_OFFLOAD_BUNDLE__"):])
module, function = ctypes.c_void_p(), ctypes.c_void_p()
check(hip.hipModuleLoadData(ctypes.byref(module), bundle))
check(hip.hipModuleGetFunction(ctypes.byref(function), module, b"_Z9divergentPjS_"))
arrays = [ctypes.c_void_p(), ctypes.c_void_p()]
for array in arrays:
    check(hip.hipMalloc(ctypes.byref(array), ctypes.c_size_t(2048 * 4)))
    check(hip.hipMemset(array, 0, ctypes.c_size_t(2048 * 4)))
arguments = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(array), ctypes.c_void_p) for array in arrays))


def launch():
    check(hip.hipModuleLaunchKernel(function, 16, 1, 1, 128, 1, 1, 0, None, arguments, None))


launch()
with wavetap.profile("train"):
    launch()
check(hip.hipDeviceSynchronize())
