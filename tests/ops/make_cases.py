"""Writes small cases with ONNX Runtime's answers, in the ONNX backend-test layout.

    python3 make_cases.py OUTPUT_FOLDER [--only PREFIX]

They sweep what ONNX's own node tests leave out: element types, broadcasts, odd extents, axes from
both ends, the operator's older versions, and small subgraphs that passes rewrite. A case that ONNX
Runtime itself refuses is not written, but counted in the last line.
"""

import argparse
import collections
import json
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import contractions
import control_flow
import movement
import patterns
import pointwise
import quantised
import reductions

FAMILIES = (pointwise, reductions, contractions, movement, patterns, quantised, control_flow)
TOLERANCES = {"float16": (4e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-7, 1e-9)}


def node_model(case):
    """The model of one node; inputs that are constants become initializers."""
    names, inputs, constants = [], [], []
    for i, value in enumerate(case.inputs):
        names.append("" if value is None else f"x{i}")
        if value is None:
            continue
        if i in case.constants:
            constants.append(numpy_helper.from_array(value, names[-1]))
            continue
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        inputs.append(helper.make_tensor_value_info(names[-1], kind, value.shape))
    outputs = [f"y{i}" for i in range(case.outputs)]
    node = helper.make_node(case.op, names, outputs, name=f"the_{case.op}", **case.attributes)
    declared = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], case.name, inputs, declared, constants)
    imports = [helper.make_opsetid("", case.opset)]
    version = 8 if case.opset < 21 else 10
    return helper.make_model(graph, opset_imports=imports, ir_version=version)


def declare_outputs(model, outputs):
    for declared, value in zip(model.graph.output, outputs):
        kind = helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype)
        declared.CopyFrom(helper.make_tensor_value_info(declared.name, kind, np.shape(value)))


def named_inputs(case, model):
    if case.text:
        return dict(zip((value.name for value in model.graph.input), case.inputs))
    kept = {value.name for value in model.graph.input}
    return {f"x{i}": v for i, v in enumerate(case.inputs) if f"x{i}" in kept}


def run_onnxruntime(model, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run([value.name for value in model.graph.output], inputs)


def write(folder, case, model, inputs, outputs):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    for i, (name, value) in enumerate(inputs.items()):
        (data / f"input_{i}.pb").write_bytes(
            numpy_helper.from_array(np.asarray(value), name).SerializeToString()
        )
    for i, (declared, value) in enumerate(zip(model.graph.output, outputs)):
        (data / f"output_{i}.pb").write_bytes(
            numpy_helper.from_array(np.asarray(value), declared.name).SerializeToString()
        )
    widest = max((TOLERANCES.get(str(v.dtype), (0, 0)) for v in inputs.values()), default=(0, 0))
    rtol, atol = widest if widest != (0, 0) else TOLERANCES["float32"]
    description = {
        "source": f"onnxruntime {onnxruntime.__version__}, without graph optimisation",
        "tolerance": {"rtol": rtol, "atol": atol},
        "expect": "ok",
    }
    (folder / "case.json").write_text(json.dumps(description, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--only", default="", help="prefix of case names")
    parser.add_argument("--verbose", action="store_true", help="say why a case is not written")
    arguments = parser.parse_args()
    refused, names = collections.Counter(), set()
    for family in FAMILIES:
        for case in family.cases():
            if not case.name.startswith(arguments.only):
                continue
            assert case.name not in names, f"two cases named '{case.name}'"
            try:
                model = onnx.parser.parse_model(case.text) if case.text else node_model(case)
                inputs = named_inputs(case, model)
                outputs = run_onnxruntime(model, inputs)
                declare_outputs(model, outputs)
                onnx.checker.check_model(model, full_check=True)
            except Exception as error:  # noqa: BLE001: whatever keeps the oracle from an answer
                refused[case.name.split("_")[0]] += 1
                if arguments.verbose:
                    print(f"{case.name}: {str(error).splitlines()[0]}")
                continue
            names.add(case.name)
            write(arguments.output / case.name, case, model, inputs, outputs)
    print(f"wrote {len(names)} cases, ONNX Runtime refuses {sum(refused.values())}")


if __name__ == "__main__":
    main()
