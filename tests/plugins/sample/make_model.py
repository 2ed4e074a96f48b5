"""Writes swish.onnx: y = ScaledSwish(x + 1), x f32[batch, 6], with scale 2 and beta 0.5."""
import pathlib

import onnx
from onnx import TensorProto, helper

x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 6])
one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
nodes = [
    helper.make_node("Add", ["x", "one"], ["shifted"], "shift"),
    helper.make_node("ScaledSwish", ["shifted"], ["y"], "swish", domain="com.example",
                     scale=2.0, beta=0.5),
]
graph = helper.make_graph(nodes, "swish", [x], [y], [one])
opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
onnx.save(model, pathlib.Path(__file__).with_name("swish.onnx"))
