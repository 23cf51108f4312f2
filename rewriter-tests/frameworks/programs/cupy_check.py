"""CuPy against numpy. `cupy_check.py NAME…` does only those."""

import sys

import cupy
import numpy as np

import check

line = np.arange(1000, dtype=np.float32)
random = np.random.default_rng(0)
a = random.standard_normal((64, 48)).astype(np.float32)
b = random.standard_normal((48, 32)).astype(np.float32)

SOURCE = r"""
extern "C" __global__ void thirds(const float *in, float *out, int count) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    if (at % 3 == 0)
        out[at] = in[at] * in[at];
    else
        out[at] = -in[at];
}
"""


def raw():
    kernel = cupy.RawKernel(SOURCE, "thirds")
    given = cupy.asarray(line)
    result = cupy.zeros_like(given)
    kernel((8,), (128,), (given, result, np.int32(line.size)))
    return cupy.asnumpy(result)


def softmax(library, values):
    powers = library.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def on_gpu(function, *arrays):
    """A function of one array or more, on the GPU: its result on the CPU."""
    return lambda: cupy.asnumpy(function(*map(cupy.asarray, arrays)))


CHECKS = {
    "elementwise": (on_gpu(lambda x: x * 2 + 1, line), line * 2 + 1),
    "sum": (on_gpu(lambda x: x.sum(), line), line.sum()),
    "raw kernel": (raw, np.where(np.arange(line.size) % 3 == 0, line * line, -line)),
    "sort": (on_gpu(cupy.sort, a.ravel()), np.sort(a.ravel())),
    "matmul": (on_gpu(cupy.matmul, a, b), a @ b),
    "argmax": (on_gpu(lambda x: x.argmax(), a), a.argmax()),
    "cumsum": (on_gpu(cupy.cumsum, a.ravel().astype(np.float64)), np.cumsum(a.ravel().astype(np.float64))),
    "fft": (on_gpu(cupy.fft.fft, line[:256]), np.fft.fft(line[:256])),
    "softmax": (on_gpu(lambda x: softmax(cupy, x), a), softmax(np, a)),
    "solve": (on_gpu(cupy.linalg.solve, a[:20, :20], a[20:40, 0]), np.linalg.solve(a[:20, :20], a[20:40, 0])),
    "random": (lambda: cupy.asnumpy(cupy.random.RandomState(1).uniform(size=10000).mean().round(1)), 0.5),
}

print("cupy", cupy.__version__, cupy.cuda.runtime.getDeviceProperties(0)["gcnArchName"], flush=True)
for name in sys.argv[1:] or CHECKS:
    check.attempt(name, *CHECKS[name], relative=1e-3, absolute=1e-4)
sys.exit(check.wrong != 0)
