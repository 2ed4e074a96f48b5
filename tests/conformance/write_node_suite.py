"""Writes ONNX's official node tests as folders in the ONNX backend-test layout.

    python3 write_node_suite.py OUTPUT_FOLDER

The onnx package ships these tests as Python since 1.23; the conformance runner reads folders.
Each folder gets model.onnx, test_data_set_<k>/{input,output}_<i>.pb and a case.json with the
tolerance that ONNX asks for.
"""

import hashlib
import json
import pathlib
import shutil
import sys
import warnings

import numpy as np
import onnx
import onnx.backend.test.case.node as node_suite
from onnx import numpy_helper

SCRIPT = pathlib.Path(__file__)
# Absolute tolerances for expected values that carry the noise of a single-precision FFT.
NOISY = {"test_dft_inverse": 5e-7, "test_dft_inverse_opset19": 5e-7}


def to_proto(value, declared):
    """The proto that stands for `value`, by the type that the graph declares."""
    kind = declared.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, declared.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, declared.name)
    if isinstance(value, onnx.TensorProto):
        value.name = declared.name
        return value
    return numpy_helper.from_array(np.asarray(value), declared.name)


def write_case(case, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for k, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{k}"
        data.mkdir(exist_ok=True)
        for stem, values, declared in (
            ("input", inputs, case.model.graph.input),
            ("output", outputs, case.model.graph.output),
        ):
            for i, value in enumerate(values):
                proto = to_proto(value, declared[i])
                (data / f"{stem}_{i}.pb").write_bytes(proto.SerializeToString())
    description = {
        "source": f"onnx {onnx.__version__} node test",
        "tolerance": {"rtol": case.rtol, "atol": max(case.atol, NOISY.get(case.name, 0))},
        "expect": "ok",
    }
    (folder / "case.json").write_text(json.dumps(description, indent=1))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    warnings.simplefilter("ignore")  # the suite overflows and divides by zero on purpose
    output = pathlib.Path(sys.argv[1])
    stamp = output / "written_by"
    version = f"onnx {onnx.__version__}, {hashlib.sha256(SCRIPT.read_bytes()).hexdigest()}"
    if stamp.exists() and stamp.read_text() == version:
        print(f"{output} is up to date")
        return
    if stamp.exists():
        shutil.rmtree(output)  # made by another version
    cases = node_suite.collect_testcases(None)
    for case in cases:
        write_case(case, output / case.name)
    stamp.write_text(version)
    print(f"wrote {len(cases)} cases to {output}")


if __name__ == "__main__":
    main()
