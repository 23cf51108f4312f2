"""Launches compiled kernels through the HIP runtime, as an application does. Needs numpy, no Triton.

    wavetap run --target gfx942 -- python host.py RESULTS JOB.json…

A job is what harness.py writes beside a code object. Results are RESULTS/NAME.npz, written after each kernel; a line on
stdout names each kernel before it is launched, so that the last one is to blame when a fault ends the process."""

import ctypes
import json
import sys
from pathlib import Path

import numpy as np

SCALARS = {"i1": ctypes.c_int8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32,
           "i64": ctypes.c_int64, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64, "fp32": ctypes.c_float,
           "fp64": ctypes.c_double}
TO_DEVICE, TO_HOST = 1, 2
# Exit code after an error of the runtime.
FAILED = 3


class Runtime:
    def __init__(self):
        self.hip = ctypes.CDLL("libamdhip64.so")

    def __getattr__(self, name):
        function = getattr(self.hip, name)

        def checked(*args):
            status = function(*args)
            if status != 0:
                raise RuntimeError(f"{name} returned {status}")
        return checked

    def allocate(self, array):
        address = ctypes.c_void_p()
        self.hipMalloc(ctypes.byref(address), ctypes.c_size_t(max(array.nbytes, 1)))
        self.hipMemcpy(address, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes), TO_DEVICE)
        return address

    def read(self, address, array):
        result = np.empty_like(array)
        self.hipMemcpy(result.ctypes.data_as(ctypes.c_void_p), address, ctypes.c_size_t(result.nbytes), TO_HOST)
        return result


def launch(hip, folder, job):
    arrays = dict(np.load(folder / f"{job['name']}.npz"))
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    hip.hipModuleLoad(ctypes.byref(module), str(folder / job["object"]).encode())
    hip.hipModuleGetFunction(ctypes.byref(function), module, job["symbol"].encode())
    on_device = {name: hip.allocate(array) for name, array in arrays.items()}
    values = []
    for argument in job["arguments"]:
        if "array" in argument:
            values.append(on_device[argument["array"]])
        elif "pointers" in argument:
            addresses = np.array([on_device[name].value for name in argument["pointers"]], dtype=np.uint64)
            values.append(hip.allocate(addresses))
        elif argument["type"] == "null":
            values.append(ctypes.c_void_p(0))
        elif argument["type"] == "scratch":
            values.append(hip.allocate(np.zeros(argument["value"], dtype=np.uint8)))
        else:
            values.append(SCALARS[argument["type"]](argument["value"]))
    parameters = (ctypes.c_void_p * len(values))(*(ctypes.cast(ctypes.pointer(v), ctypes.c_void_p) for v in values))
    hip.hipModuleLaunchKernel(function, *job["grid"], job["threads"], 1, 1, job["shared"], None, parameters, None)
    hip.hipDeviceSynchronize()
    results = {name: hip.read(on_device[name], arrays[name]) for name in job["outputs"]}
    for address in on_device.values():
        hip.hipFree(address)
    hip.hipModuleUnload(module)
    return results


def main():
    results, *jobs = sys.argv[1:]
    hip = Runtime()
    hip.hipInit(0)
    for path in map(Path, jobs):
        job = json.loads(path.read_text())
        print(f"launch {job['name']}", flush=True)
        print(f"launch {job['name']}", file=sys.stderr, flush=True)
        try:
            outputs = launch(hip, path.parent, job)
        except RuntimeError as error:
            # After a fault the runtime gives the same error to every call.
            print(f"failed {job['name']}: {error}", flush=True)
            sys.exit(FAILED)
        np.savez(Path(results) / f"{job['name']}.npz", **outputs)
        print(f"done {job['name']}", flush=True)


if __name__ == "__main__":
    main()
