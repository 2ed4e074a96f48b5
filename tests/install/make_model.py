"""Writes the model of the example service: y = relu(x W + b), x of shape [batch, 2]."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

weight = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32)
bias = np.array([-10, 0, 1], dtype=np.float32)
graph = helper.make_graph(
    [
        helper.make_node("MatMul", ["x", "weight"], ["product"], name="matmul"),
        helper.make_node("Add", ["product", "bias"], ["sum"], name="add"),
        helper.make_node("Relu", ["sum"], ["y"], name="relu"),
    ],
    "affine",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 2])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
    [numpy_helper.from_array(weight, "weight"), numpy_helper.from_array(bias, "bias")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, sys.argv[1])
