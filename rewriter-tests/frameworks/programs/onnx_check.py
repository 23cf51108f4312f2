"""ONNX Runtime: a model on the GPU against the same on its own CPU code. `onnx_check.py FILE PROVIDER`."""

import sys

import numpy as np
import onnxruntime

import check

path, provider = sys.argv[1:]
image = np.random.default_rng(5).standard_normal((1, 3, 16, 16)).astype(np.float32)


def run(provider):
    session = onnxruntime.InferenceSession(path, providers=[provider])
    if session.get_providers()[0] != provider:
        sys.exit(f"{provider} was not used: {session.get_providers()}")
    return session.run(None, {"image": image})[0]


print("onnxruntime", onnxruntime.__version__, onnxruntime.get_available_providers(), flush=True)
expected = run("CPUExecutionProvider")
check.compare("model", run(provider), expected)
sys.exit(check.wrong != 0)
