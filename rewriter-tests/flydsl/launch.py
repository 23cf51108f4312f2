#!/usr/bin/env python3
"""Launches a kernel of FlyDSL as often as is said, and checks what it computes: launch.py KERNEL LAUNCHES"""

import sys

import numpy as np

import torch

KERNEL, LAUNCHES = sys.argv[1], int(sys.argv[2])
EPSILON = 1e-5
random = np.random.default_rng(1)


def to_bf16(values):
    """The upper half of each: what has been rounded towards zero is a bf16 as any other."""
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def from_bf16(contents):
    return (np.frombuffer(contents, np.uint16).astype(np.uint32) << 16).view(np.float32)


def bf16(*shape):
    contents = to_bf16(random.standard_normal(shape, dtype=np.float32))
    return torch.Tensor(shape, torch.bfloat16).write(contents.tobytes())


def f32(*shape):
    return torch.Tensor(shape, torch.float32).write(random.standard_normal(shape, dtype=np.float32).tobytes())


def run(launch):
    for _ in range(LAUNCHES):
        launch(torch.cuda.current_stream())
    torch.cuda.synchronize()


def norm(rows, columns):
    x, gamma, beta = bf16(rows, columns), bf16(columns), bf16(columns)
    out = torch.Tensor((rows, columns), torch.bfloat16)
    values = from_bf16(x.read()).reshape(rows, columns).astype(np.float64)
    if KERNEL == "rmsnorm":
        from kernels.rmsnorm_kernel import build_rmsnorm_module

        launch = build_rmsnorm_module(rows, columns, "bf16")
        run(lambda stream: launch(x, gamma, out, rows, stream=stream))
        expected = values / np.sqrt((values**2).mean(1, keepdims=True) + EPSILON) * from_bf16(gamma.read())
    else:
        from kernels.layernorm_kernel import build_layernorm_module

        launch = build_layernorm_module(rows, columns, "bf16")
        run(lambda stream: launch(x, gamma, beta, out, rows, stream=stream))
        centred = values - values.mean(1, keepdims=True)
        expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + EPSILON)
        expected = expected * from_bf16(gamma.read()) + from_bf16(beta.read())
    return from_bf16(out.read()).reshape(rows, columns), expected


def vec_add(elements):
    import flydsl.compiler as flyc
    from vec_add_kernel import vecAdd

    a, b, c = f32(elements), f32(elements), torch.Tensor((elements,), torch.float32)
    first = flyc.from_dlpack(a).mark_layout_dynamic(leading_dim=0, divisibility=4)
    run(lambda stream: vecAdd(first, b, c, elements, elements, 256, 4, stream=stream))
    values = [np.frombuffer(tensor.read(), np.float32) for tensor in (a, b, c)]
    return values[2], values[0] + values[1]


SHAPES = {"rmsnorm": (norm, 1024, 8192), "layernorm": (norm, 256, 8192), "vec_add": (vec_add, 10_240_000)}
function, *shape = SHAPES[KERNEL]
computed, expected = function(*shape)
error = np.abs(computed - expected).max() / np.abs(expected).max()
print(f"{KERNEL}: largest error {error:.1e}")
sys.exit(0 if error < 0.01 else 1)
