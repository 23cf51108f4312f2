"""JAX with its plugin for ROCm, against numpy. `jax_check.py NAME…` does only those."""

import sys

import numpy as np

import check
import jax
import jax.numpy as jnp

random = np.random.default_rng(0)
a = random.standard_normal((64, 48)).astype(np.float32)
b = random.standard_normal((48, 32)).astype(np.float32)
image = random.standard_normal((1, 3, 16, 16)).astype(np.float32)
weights = random.standard_normal((8, 3, 3, 3)).astype(np.float32)


def convolve(given, filters):
    """The same by loops of numpy: stride 1, one row and column of zeros around it."""
    padded = np.pad(given.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    result = np.zeros((given.shape[0], filters.shape[0], *given.shape[2:]))
    for row in range(3):
        for column in range(3):
            window = padded[:, :, row : row + given.shape[2], column : column + given.shape[3]]
            result += np.einsum("nchw,oc->nohw", window, filters[:, :, row, column])
    return result


def softmax(values):
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def jitted(function, *arrays):
    return lambda: np.asarray(jax.jit(function)(*arrays))


def on_gpu_convolve(given, filters):
    return jax.lax.conv_general_dilated(given, filters, (1, 1), "SAME")


CHECKS = {
    "elementwise": (jitted(lambda x: jnp.sin(x) * 2 + 1, a), np.sin(a) * 2 + 1),
    "sum": (jitted(lambda x: x.sum(axis=0), a), a.sum(axis=0)),
    "softmax": (jitted(lambda x: jax.nn.softmax(x, axis=1), a), softmax(a)),
    "sort": (jitted(lambda x: jnp.sort(x, axis=1), a), np.sort(a, axis=1)),
    "matmul": (jitted(jnp.matmul, a, b), a @ b),
    "gradient": (jitted(jax.grad(lambda x: jnp.tanh(x @ b).sum()), a), (1 - np.tanh(a @ b) ** 2) @ b.T),
    "convolution": (jitted(on_gpu_convolve, image, weights), convolve(image, weights)),
    "fft": (jitted(jnp.fft.fft, a), np.fft.fft(a)),
    "solve": (jitted(jnp.linalg.solve, a[:20, :20], a[20:40, :1]), np.linalg.solve(a[:20, :20], a[20:40, :1])),
}

device = jax.devices()[0]
print("jax", jax.__version__, device.platform, device.device_kind, flush=True)
if device.platform != "gpu":
    sys.exit("no GPU")
for name in sys.argv[1:] or CHECKS:
    check.attempt(name, *CHECKS[name], relative=1e-3, absolute=1e-3)
sys.exit(check.wrong != 0)
