"""Triton's just-in-time compiler as applications use it, without torch: the kernels of kernels.py, launched as
kernel[grid](…). Prints what each computed and whether numpy says the same.

    wavetap run --target gfx942 -- python jit.py
    wavetap profile --target gfx942 -- python jit.py"""

import ctypes
import sys

import numpy as np
import triton
from triton.backends.amd.driver import HIPDriver

import kernels

hip = ctypes.CDLL("libamdhip64.so")
TYPES = {np.dtype(np.float16): "fp16", np.dtype(np.float32): "fp32", np.dtype(np.int32): "i32"}
TO_DEVICE, TO_HOST = 1, 2


class Driver(HIPDriver):
    """Triton's own driver for a process without torch: one device, its null stream."""

    def __init__(self):
        super(HIPDriver.__mro__[1], self).__init__()
        self.utils = sys.modules["triton.backends.amd.driver"].HIPUtils()
        self.launcher_cls = sys.modules["triton.backends.amd.driver"].HIPLauncher
        self.get_current_device = lambda: 0
        self.get_current_stream = lambda _device: 0
        self.set_current_device = lambda _device: None
        self.get_device_capability = lambda _device=0: (9, 4)


class Buffer:
    """Device memory as Triton wants a tensor: an address and a type."""

    def __init__(self, array):
        self.array = np.ascontiguousarray(array)
        address = ctypes.c_void_p()
        assert hip.hipMalloc(ctypes.byref(address), ctypes.c_size_t(self.array.nbytes)) == 0
        self.address, self.dtype = address.value, TYPES[self.array.dtype]
        self.copy(address, self.array.ctypes.data_as(ctypes.c_void_p), TO_DEVICE)

    def copy(self, to, source, kind):
        assert hip.hipMemcpy(to, source, ctypes.c_size_t(self.array.nbytes), kind) == 0

    def data_ptr(self):
        return self.address

    def numpy(self):
        assert hip.hipDeviceSynchronize() == 0
        self.copy(self.array.ctypes.data_as(ctypes.c_void_p), ctypes.c_void_p(self.address), TO_HOST)
        return self.array


def report(name, got, expected, tolerance):
    scale = np.abs(expected).max()
    same = bool((np.abs(got.astype(np.float64) - expected) <= tolerance * scale).all())
    print(f"{name}: {'same as numpy' if same else 'DIFFERENT FROM NUMPY'}, sum {float(expected.sum()):.3f}")
    return same


def main():
    triton.runtime.driver.set_active(Driver())
    random = np.random.default_rng(1)
    same = []

    x, y = (random.standard_normal(1000).astype(np.float32) for _ in range(2))
    out = Buffer(np.zeros(1000, dtype=np.float32))
    kernels.vector_add[(4,)](Buffer(x), Buffer(y), out, 1000, BLOCK=256)
    same.append(report("vector_add", out.numpy(), (x + y).astype(np.float64), 0))

    # One kernel for other constants: two code objects of one name. The last two launches come to the same code.
    for m, block, warps in ((32, 16, 2), (64, 32, 4), (50, 32, 4)):
        a, b = random.standard_normal((m, 64)).astype(np.float16), random.standard_normal((64, 64)).astype(np.float16)
        c = Buffer(np.zeros((m, 64), dtype=np.float16))
        grid = (triton.cdiv(m, block), 64 // block)
        kernels.matmul[grid](Buffer(a), Buffer(b), c, m, 64, 64, 64, 64, 64, ACC=triton.language.float32, BM=block,
                             BN=block, BK=32, num_warps=warps)
        same.append(report(f"matmul {m}, {block}", c.numpy(), a.astype(np.float64) @ b.astype(np.float64), 2e-3))

    rows = random.standard_normal((6, 200)).astype(np.float32)
    out = Buffer(np.zeros((6, 200), dtype=np.float32))
    kernels.softmax[(6,)](Buffer(rows), out, 200, 200, BLOCK=256)
    e = np.exp(rows.astype(np.float64))
    same.append(report("softmax", out.numpy(), e / e.sum(axis=1, keepdims=True), 2e-5))

    numbers = random.integers(1, 500, 300).astype(np.int32)
    steps = Buffer(np.zeros(300, dtype=np.int32))
    kernels.while_loop[(3,)](Buffer(numbers), steps, 300, BLOCK=128)
    expected = []
    for value in numbers.tolist():
        count = 0
        while value != 1:
            value, count = value // 2 if value % 2 == 0 else 3 * value + 1, count + 1
        expected.append(count)
    same.append(report("while_loop", steps.numpy(), np.array(expected, dtype=np.float64), 0))
    sys.exit(0 if all(same) else 1)


if __name__ == "__main__":
    main()
