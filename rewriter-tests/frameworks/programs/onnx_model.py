"""Writes an ONNX model with random weights: convolution, relu, pooling, product, softmax. `onnx_model.py FILE`."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(3)


def weights(name, *shape):
    return numpy_helper.from_array((0.3 * random.standard_normal(shape)).astype(np.float32), name)


nodes = [
    helper.make_node("Conv", ["image", "filter", "bias"], ["convolved"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["convolved"], ["positive"]),
    helper.make_node("MaxPool", ["positive"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node("Flatten", ["pooled"], ["flat"]),
    helper.make_node("Gemm", ["flat", "matrix", "offset"], ["scores"]),
    helper.make_node("Softmax", ["scores"], ["shares"], axis=1),
]
graph = helper.make_graph(
    nodes,
    "small",
    [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 16, 16])],
    [helper.make_tensor_value_info("shares", TensorProto.FLOAT, [1, 10])],
    [weights("filter", 8, 3, 3, 3), weights("bias", 8), weights("matrix", 512, 10), weights("offset", 10)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
model.ir_version = 8
onnx.checker.check_model(model)
onnx.save(model, sys.argv[1])
