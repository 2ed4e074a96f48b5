"""Builds and runs engines and compares their outputs with ONNX Runtime's.

    python3 check.py BIN_FOLDER [--set tiny|real | --full FOLDER] [--half] [--only GLOB]
                     [--target TARGET] [--max-batch N] [--option=ARGUMENT ...] [--json FILE]

For every model: `engine-build`, then `engine-run` on 1, 3, 5, 37 and 64 distinct rows (as many as
--max-batch allows), each within rtol 1e-3 and atol 1e-4 of ONNX Runtime; where rounding alone puts
ONNX Runtime without its optimiser further off, within 4 times that, and the line says so. With
--half the engines are FP16 and BF16 and every row must have a cosine of 0.999; where a model comes
with typical inputs, others than are tried, the builder gets them as --verify-data. A model whose
rows depend on each other must refuse to be padded. --option goes to engine-build, as in
--option=--disable-pass=fuse-loops.
The last line counts passed, failed and skipped; the exit code is 1 if any failed.
"""

import argparse
import dataclasses
import fnmatch
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

import model_set

RTOL, ATOL, COSINE = 1e-3, 1e-4, 0.999
BATCHES = (1, 3, 5, 37, 64)
ARENA = 1.02  # of the most bytes alive at any one step
NOISE = 4  # times ONNX Runtime's own, for networks that amplify rounding
TIMEOUT_S = 1800


class Failure(Exception):
    """One line that says what went wrong."""


@dataclasses.dataclass
class Settings:
    programs: pathlib.Path
    target: str
    options: list
    work: pathlib.Path


def run(command):
    """Runs a program, returns what it prints; raises Failure with the last line of its complaint."""
    try:
        result = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise Failure(f"{command[0].name}: still running after {TIMEOUT_S} s") from None
    if result.returncode != 0:
        lines = (result.stderr.strip() or result.stdout.strip() or "no message").splitlines()
        reason = " / ".join(lines[-4:])
        raise Failure(f"{command[0].name}: exit code {result.returncode}: {reason}")
    return result.stdout


def build(settings, model, precision):
    engine = settings.work / f"{model.name}{precision or '--fp32'}.engine"
    command = [settings.programs / "engine-build", "--onnx", model.path, "--output", engine]
    command += ["--target", settings.target, "--max-batch", model.max_batch, *settings.options]
    if precision:
        command.append(precision)
        if model.typical:
            typical = settings.work / "typical.npz"
            np.savez(typical, **model.typical)
            command += ["--verify-data", typical]
    if model.shapes():
        command += ["--shapes", model.shapes()]
    run(command)
    require_tight_arena(settings, engine)
    return engine


def require_tight_arena(settings, engine):
    text = run([settings.programs / "engine-inspect", engine, "--json"])
    for point in json.loads(text)["points"]:
        arena, bound = point["arena_bytes"], point["arena_lower_bound_bytes"]
        if arena > ARENA * bound:
            raise Failure(
                f"shape point '{point['name']}': an arena of {arena} bytes, at most {ARENA} times "
                f"the lower bound of {bound} expected"
            )


def infer(settings, engine, inputs):
    source, target = settings.work / "inputs.npz", settings.work / "outputs.npz"
    np.savez(source, **inputs)
    target.unlink(missing_ok=True)
    run([settings.programs / "engine-run", engine, "--inputs", source, "--outputs", target])
    return dict(np.load(target))


def rows(model, count):
    """`count` distinct rows: the model's own, then the same again, rotated along the last axis."""
    result = {}
    for name, value in model.inputs.items():
        moved = [
            value[i % len(value)]
            if "mask" in name  # a rotated mask could hide every token that a row may see
            else np.roll(value[i % len(value)], i // len(value), axis=-1)
            for i in range(count)
        ]
        result[name] = np.stack(moved)
    return result


def reference(session, inputs):
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def require_same_form(got, want):
    if set(got) != set(want):
        raise Failure(f"outputs {sorted(got)}, expected {sorted(want)}")
    for name in want:
        if got[name].shape != want[name].shape or got[name].dtype != want[name].dtype:
            raise Failure(
                f"output '{name}' is {got[name].dtype}{list(got[name].shape)}, "
                f"expected {want[name].dtype}{list(want[name].shape)}"
            )


def worst_error(got, want):
    """The largest error of any element, in tolerances."""
    worst = 0.0
    for name in want:
        if not np.array_equal(np.isfinite(got[name]), np.isfinite(want[name])):
            raise Failure(f"output '{name}': NaN or infinity at other places than expected")
        finite = np.isfinite(want[name])
        expected = want[name][finite].astype(np.float64)
        error = np.abs(got[name][finite] - expected) / (ATOL + RTOL * np.abs(expected))
        worst = max(worst, float(error.max(initial=0)))
    return worst


def worst_cosine(got, want):
    worst = 1.0
    for name in want:
        for a, b in zip(got[name], want[name]):
            a, b = a.ravel().astype(np.float64), b.ravel().astype(np.float64)
            scale = np.linalg.norm(a) * np.linalg.norm(b)
            cosine = a @ b / scale if scale > 0 else float(np.array_equal(a, b))
            worst = min(worst, cosine) if np.isfinite(cosine) else -1.0
    return worst


def require_distinct(want, count):
    """Rows that look the same would let an engine pass that ignores its inputs."""
    if count > 1 and not any(
        worst_error({name: value[:1]}, {name: value[1:2]}) >= 10 for name, value in want.items()
    ):
        raise Failure("the outputs hardly depend on the inputs: the case proves nothing")


def plain_session(model):
    """ONNX Runtime without its optimiser: another right answer, as far from the first as rounding
    alone puts them in this model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        str(model.path), options, providers=["CPUExecutionProvider"]
    )


def check_outputs(settings, model, precision):
    """Returns what to print of a pass."""
    begin = time.monotonic()
    engine = build(settings, model, precision)
    built_s = time.monotonic() - begin
    session = onnxruntime.InferenceSession(str(model.path), providers=["CPUExecutionProvider"])
    plain = plain_session(model)
    error, cosine = 0.0, 1.0
    for count in (n for n in BATCHES if n <= model.max_batch):
        inputs = rows(model, count)
        want = reference(session, inputs)
        require_distinct(want, count)
        got = infer(settings, engine, inputs)
        require_same_form(got, want)
        if precision:
            cosine = min(cosine, worst_cosine(got, want))
            if not cosine >= COSINE:
                raise Failure(f"{count} rows: cosine {cosine:.6f}, at least {COSINE} expected")
            continue
        error = max(error, worst_error(got, want))
        if count == len(next(iter(model.inputs.values()))) and model.outputs:
            error = max(error, worst_error(got, model.outputs))
        if error <= 1:
            continue
        noise = worst_error(reference(plain, inputs), want)
        if not error <= NOISE * noise:
            raise Failure(
                f"{count} rows: error of {error:.3g} tolerances, at most 1 expected "
                f"(ONNX Runtime differs from itself by {noise:.3g} without its optimiser)"
            )
    quality = f"cosine {cosine:.6f}" if precision else f"error {error:.3f} tolerances"
    if not precision and error > 1:
        quality += f", at most {NOISE} times ONNX Runtime's own without its optimiser"
    return f"{quality}, built in {built_s:.1f} s"


def check_dependent_rows(settings):
    """Subtracts the batch's mean: three rows padded to four would give another mean."""
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 8])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 8])
    mean = onnx.helper.make_node("ReduceMean", ["x"], ["mean"], "mean_of_rows", axes=[0])
    centre = onnx.helper.make_node("Sub", ["x", "mean"], ["y"], "centre")
    graph = onnx.helper.make_graph([mean, centre], "dependent", [x], [y])
    opset = [onnx.helper.make_opsetid("", 13)]
    path = settings.work / "dependent-rows.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    data = np.arange(32, dtype=np.float32).reshape(4, 8) ** 2
    model = model_set.Model("dependent-rows", path, {"x": data}, None, 4)
    engine = build(settings, model, "")
    got = infer(settings, engine, {"x": data})["y"]
    if not np.allclose(got, data - data.mean(0), rtol=RTOL, atol=ATOL):
        raise Failure("4 rows, a size that was built: wrong values")
    try:
        infer(settings, engine, {"x": data[:3]})
    except Failure as refusal:
        if "exit code -" in str(refusal):
            raise
        return f"refused: {refusal}"
    raise Failure("3 rows were padded to 4, though rows depend on each other")


def find_models(arguments, work):
    """The models to try, and what could not be had, with the reason."""
    if arguments.full:
        return model_set.full(arguments.full), []
    if arguments.set == "tiny":
        return model_set.tiny(), []
    text = model_set.rapidocr(work)
    skipped = [] if text else [("rapidocr", "the package can't be had")]
    return model_set.drawn(work) + text, skipped


def attempt(results, name, check):
    begin = time.monotonic()
    try:
        outcome, detail = "passed", check()
    except Failure as failure:
        outcome, detail = "failed", str(failure)
    seconds = round(time.monotonic() - begin, 1)
    results.append({"name": name, "outcome": outcome, "detail": detail, "seconds": seconds})
    print(f"{outcome}  {name}: {detail}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path, help="folder of engine-build, engine-run")
    parser.add_argument("--set", choices=["tiny", "real"], default="tiny")
    parser.add_argument("--full", type=pathlib.Path, help="try the models of this folder instead")
    parser.add_argument("--half", action="store_true", help="FP16 and BF16 instead of FP32")
    parser.add_argument("--only", default="*", help="pattern of model names")
    parser.add_argument("--max-batch", type=int, default=64, help="at most this, whatever the model")
    parser.add_argument("--target", default="auto", help="auto, host or cuda")
    parser.add_argument("--option", action="append", default=[], help="for engine-build")
    parser.add_argument("--json", type=pathlib.Path, help="where to write the results")
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(arguments.programs, arguments.target, arguments.option, pathlib.Path(folder))
        models, skipped = find_models(arguments, settings.work)
        for model in models:
            if not fnmatch.fnmatch(model.name, arguments.only):
                continue
            model.max_batch = min(model.max_batch, arguments.max_batch)
            for precision in ("--fp16", "--bf16") if arguments.half else ("",):
                label = f"{model.name} {precision}".strip()
                attempt(results, label, lambda: check_outputs(settings, model, precision))
        with_dependent = arguments.set == "tiny" and not (arguments.full or arguments.half)
        if with_dependent and fnmatch.fnmatch("dependent-rows", arguments.only):
            attempt(results, "dependent-rows", lambda: check_dependent_rows(settings))
    for name, reason in skipped:
        print(f"skipped  {name}: {reason}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    failed = sum(result["outcome"] == "failed" for result in results)
    if not results and not skipped:
        sys.exit(f"no model matches '{arguments.only}'")
    print(f"{len(results) - failed} passed, {failed} failed, {len(skipped)} skipped")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
