"""Exports the networks of architectures.py with both of PyTorch's ONNX exporters.

    python3 export.py OUTPUT_FOLDER [--size tiny|full] [--only NAME ...] [--exporter EXPORTER]

It writes
    <name>.inputs.npz               three distinct rows of input, keyed by tensor name
    <name>_<exporter>.onnx          the model, batch axis dynamic and named "batch"
    <name>_<exporter>.outputs.npz   what ONNX Runtime computes from those inputs
    models.json                     for every model its files, inputs, outputs, attention layers,
                                    node count and operations
It fails when ONNX Runtime disagrees with PyTorch, or when the outputs of two rows are so close that
a wrong result could pass for a right one.
"""

import argparse
import collections
import json
import pathlib
import warnings

import numpy as np
import onnx
import onnxruntime
import torch

import architectures
import attention

RTOL, ATOL = 1e-3, 1e-4
OPSETS = {"torchscript": 17, "dynamo": 18}


def dynamic_axes(case):
    axes = {0: "batch"}
    if case.dynamic_sequence:
        axes[1] = "sequence"
    return axes


def export_torchscript(case, path):
    dynamic = {name: dynamic_axes(case) for name in case.inputs}
    dynamic |= {name: {0: "batch"} for name in case.outputs}
    training = torch.onnx.TrainingMode.EVAL
    if case.keep_batchnorm:
        training = torch.onnx.TrainingMode.PRESERVE
    torch.onnx.export(
        case.module,
        tuple(case.inputs.values()),
        path,
        dynamo=False,
        training=training,
        opset_version=case.opset or OPSETS["torchscript"],
        input_names=list(case.inputs),
        output_names=case.outputs,
        dynamic_axes=dynamic,
    )


def export_dynamo(case, path):
    dimensions = {axis: torch.export.Dim(name) for axis, name in dynamic_axes(case).items()}
    shapes = tuple(dimensions for _ in case.inputs)
    if isinstance(case.module, attention.HiddenState):
        shapes = (shapes,)  # one variadic argument
    megabytes = sum(p.numel() for p in case.module.parameters()) * 4 / 1e6
    torch.onnx.export(
        case.module,
        tuple(case.inputs.values()),
        path,
        dynamo=True,
        optimize=not case.keep_batchnorm,
        opset_version=case.opset or OPSETS["dynamo"],
        input_names=list(case.inputs),
        output_names=case.outputs,
        dynamic_shapes=shapes,
        external_data=megabytes > 60,
        verbose=False,
    )


EXPORTERS = {"torchscript": export_torchscript, "dynamo": export_dynamo}


def strip_traces(path):
    """Removes the stack traces that the exporters leave, which are larger than a tiny model."""
    model = onnx.load(path, load_external_data=False)
    del model.metadata_props[:]
    stack = [model.graph] + [function for function in model.functions]
    while stack:
        owner = stack.pop()
        owner.doc_string = ""
        del owner.metadata_props[:]
        for field in ("value_info", "input", "output", "initializer"):
            for entry in getattr(owner, field, []):
                if isinstance(entry, str):
                    continue
                entry.doc_string = ""
                del entry.metadata_props[:]
        for node in owner.node:
            node.doc_string = ""
            del node.metadata_props[:]
            stack += [a.g for a in node.attribute if a.HasField("g")]
    onnx.save(model, path)


def run_onnxruntime(path, inputs):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def check_agreement(case, outputs):
    with torch.no_grad():
        expected = case.module(*case.inputs.values())
    expected = expected if isinstance(expected, tuple) else (expected,)
    for name, want in zip(case.outputs, expected):
        np.testing.assert_allclose(outputs[name], want.numpy(), rtol=RTOL, atol=ATOL, err_msg=name)


def check_distinct_rows(outputs):
    """Half of all elements must differ by ten tolerances between any two rows."""
    for name, value in outputs.items():
        for a in range(len(value)):
            for b in range(a):
                tolerance = ATOL + RTOL * np.abs(value[a])
                distance = float(np.median(np.abs(value[a] - value[b]) / tolerance))
                if distance < 10:
                    raise SystemExit(
                        f"output '{name}': rows {a} and {b} differ by {distance:.1f} tolerances "
                        "(median), at least 10 expected"
                    )


def describe(path, case, exporter):
    model = onnx.load(path, load_external_data=False)

    def tensor(value):
        shape = [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        return {"name": value.name, "type": value.type.tensor_type.elem_type, "shape": shape}

    operations = collections.Counter(node.op_type for node in model.graph.node)
    return {
        "inputs_file": f"{case.name}.inputs.npz",
        "exporter": exporter,
        "opset": {entry.domain: entry.version for entry in model.opset_import},
        "inputs": [tensor(value) for value in model.graph.input],
        "outputs": [tensor(value) for value in model.graph.output],
        "attention_layers": case.attention_layers,
        "nodes": len(model.graph.node),
        "operations": dict(sorted(operations.items())),
    }


def export(case, exporter, folder):
    stem = f"{case.name}_{exporter}"
    path = folder / f"{stem}.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        EXPORTERS[exporter](case, str(path))
    strip_traces(path)
    inputs = {name: value.numpy() for name, value in case.inputs.items()}
    outputs = run_onnxruntime(path, inputs)
    check_agreement(case, outputs)
    check_distinct_rows(outputs)
    np.savez(folder / f"{case.name}.inputs.npz", **inputs)
    np.savez(folder / f"{stem}.outputs.npz", **outputs)
    return stem, describe(path, case, exporter)


def write_listing(path, listing):
    """One line a model."""
    lines = [f'  "{stem}": {json.dumps(listing[stem])}' for stem in sorted(listing)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--size", choices=["tiny", "full"], default="full")
    parser.add_argument("--only", nargs="+", help="names from architectures.py")
    parser.add_argument("--exporter", choices=list(EXPORTERS), help="this one alone")
    arguments = parser.parse_args()
    known = architectures.TINY if arguments.size == "tiny" else architectures.FULL
    arguments.output.mkdir(parents=True, exist_ok=True)
    listing_path = arguments.output / "models.json"
    listing = json.loads(listing_path.read_text()) if listing_path.exists() else {}
    for name in arguments.only or known:
        case = architectures.build(arguments.size, name)
        for exporter in case.exporters:
            if arguments.exporter not in (None, exporter):
                continue
            stem, description = export(case, exporter, arguments.output)
            listing[stem] = description
            write_listing(listing_path, listing)
            print(f"{stem}: {description['nodes']} nodes", flush=True)


if __name__ == "__main__":
    main()
