"""TensorFlow with its build for ROCm, against numpy."""

import sys

import numpy as np
import tensorflow

import check

random = np.random.default_rng(0)
a = random.standard_normal((64, 48)).astype(np.float32)
b = random.standard_normal((48, 32)).astype(np.float32)
image = random.standard_normal((1, 3, 16, 16)).astype(np.float32)
weights = random.standard_normal((3, 3, 3, 8)).astype(np.float32)


def convolve():
    """By loops of numpy: stride 1, one row and column of zeros around it."""
    padded = np.pad(image.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    return sum(
        np.einsum("nchw,co->nohw", padded[:, :, row : row + 16, column : column + 16], weights[row, column])
        for row in range(3)
        for column in range(3)
    )


def softmax():
    powers = np.exp(a - a.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


CHECKS = {
    "elementwise": (lambda: tensorflow.constant(a) * 2 + 1, a * 2 + 1),
    "matmul": (lambda: tensorflow.matmul(a, b), a @ b),
    "sum": (lambda: tensorflow.reduce_sum(a, 0), a.sum(axis=0)),
    "softmax": (lambda: tensorflow.nn.softmax(tensorflow.constant(a)), softmax()),
    "convolution": (lambda: tensorflow.nn.conv2d(image, weights, 1, "SAME", data_format="NCHW"), convolve()),
    "function": (lambda: tensorflow.function(lambda x: tensorflow.tanh(x @ b))(tensorflow.constant(a)), np.tanh(a @ b)),
}

print("tensorflow", tensorflow.__version__, tensorflow.config.list_physical_devices("GPU"), flush=True)
with tensorflow.device("/GPU:0"):
    for name in sys.argv[1:] or CHECKS:
        function, expected = CHECKS[name]
        check.attempt(name, lambda: function().numpy(), expected, relative=1e-3, absolute=1e-3)
sys.exit(check.wrong != 0)
