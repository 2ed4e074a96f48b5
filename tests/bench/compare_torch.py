"""Times Kiln and PyTorch in turn, on one GPU, on the same weights and inputs.

    python3 compare_torch.py BIN_FOLDER WORK_FOLDER [--workloads resnet50,bert-base,vit-b16]
                             [--batches 1,32] [--dtype fp16] [--modes eager,reduce-overhead]
                             [--rounds 3] [--tree HASH] [--json FILE]

Every module of tests/models/architectures.py is exported, built by engine-build and run by
engine-run and by PyTorch. Both are timed by the GPU's own clock on tensors that lie there: Kiln its
steps, PyTorch its call. With fp16 both read and write halves. Rounds alternate; the median over all of a subject's rounds is written, and
the cosine of Kiln's output with PyTorch's in f32. Rows are {workload, batch, dtype, subject, p50_ms,
p99_ms}; a subject that fails is printed with its reason and has no row.
"""

import argparse
import copy
import json
import pathlib
import subprocess
import sys

import numpy as np
import torch
from rows import header, row

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "models"))
import architectures  # noqa: E402

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def export(case, path, batch):
    inputs = {name: grown(value, batch) for name, value in case.inputs.items()}
    torch.onnx.export(
        case.module, tuple(inputs.values()), path, dynamo=False, opset_version=17,
        input_names=list(inputs), output_names=case.outputs,
        dynamic_axes={name: {0: "batch"} for name in [*inputs, *case.outputs]},
    )


def grown(value, batch):
    """`batch` rows made of the rows of `value`."""
    return value[torch.arange(batch) % len(value)].contiguous()


def run(command, timeout):
    result = subprocess.run([str(w) for w in command], capture_output=True, text=True,
                            timeout=timeout)
    if result.returncode != 0:
        raise RuntimeError((result.stderr or result.stdout).strip()[-400:])
    return result.stdout


def build(arguments, name, path, inputs):
    engine = arguments.work / f"{name}.engine"
    shapes = ",".join(f"{n}:Bx" + "x".join(str(e) for e in v.shape[1:]) for n, v in inputs.items())
    command = [arguments.programs / "engine-build", "--onnx", path, "--output", engine,
               "--target", "cuda", "--batches", arguments.batches, "--shapes", shapes,
               "--report", arguments.work / f"{name}.json",
               "--timing-cache", arguments.work / "timing.json"]
    if arguments.dtype != "fp32":
        command.append("--" + arguments.dtype)
    if arguments.dtype == "fp16":
        command.append("--io-fp16")
    (arguments.work / f"{name}.txt").write_text(run(command, arguments.build_seconds))
    return engine


def time_kiln(arguments, engine, inputs):
    """engine-run's benchmark, and the outputs."""
    source, target = arguments.work / "in.npz", arguments.work / "out.npz"
    half = arguments.dtype == "fp16"
    np.savez(source, **{name: (value.half() if half and value.is_floating_point() else value).numpy()
                        for name, value in inputs.items()})
    command = [arguments.programs / "engine-run", engine, "--inputs", source]
    run([*command, "--outputs", target], 120)
    measured = run([*command, "--benchmark", "--duration", "0.5", "--json"], 120)
    return json.loads(measured)["benchmark"], dict(np.load(target))


def torch_callable(case, dtype, mode):
    module = copy.deepcopy(case.module).cuda().to(DTYPES[dtype]).eval()
    return module if mode == "eager" else torch.compile(module, mode=mode)


def time_torch(function, inputs, runs=200):
    with torch.inference_mode():
        for _ in range(10):
            function(*inputs)
        torch.cuda.synchronize()
        times = []
        for _ in range(runs):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            function(*inputs)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end))
    return times


def on_gpu(inputs, dtype):
    return [v.cuda().to(DTYPES[dtype]) if v.is_floating_point() else v.cuda()
            for v in inputs.values()]


def first_output(value):
    if isinstance(value, (tuple, list)):
        return first_output(value[0])
    return value if torch.is_tensor(value) else first_output(next(iter(value.values())))


def cosine(a, b):
    a, b = (np.asarray(x, np.float64).reshape(len(x), -1) for x in (a, b))
    return float(min((x @ y) / (np.linalg.norm(x) * np.linalg.norm(y)) for x, y in zip(a, b)))


def try_workload(arguments, case, rows):
    batches = [int(b) for b in arguments.batches.split(",")]
    path = arguments.work / f"{case.name}.onnx"
    export(case, path, 2)
    engine = build(arguments, case.name, path, case.inputs)
    exact = copy.deepcopy(case.module).cuda().eval()
    for batch in batches:
        inputs = {name: grown(value, batch) for name, value in case.inputs.items()}
        with torch.inference_mode():
            want = first_output(exact(*on_gpu(inputs, "fp32"))).float().cpu().numpy()
        kiln, subjects = [], {}
        functions = {}
        for round_ in range(arguments.rounds):
            measured, outputs = time_kiln(arguments, engine, inputs)
            kiln.append(measured)
            for mode in filter(None, arguments.modes.split(",")):
                try:
                    if mode not in functions:
                        torch._dynamo.reset()
                        functions[mode] = torch_callable(case, arguments.dtype, mode)
                    subjects.setdefault(mode, []).extend(
                        time_torch(functions[mode], on_gpu(inputs, arguments.dtype)))
                except Exception as error:  # a peer that fails must not hide Kiln's figures
                    print(f"{case.name} b{batch} {mode}: {str(error)[:300]}", flush=True)
        got = outputs[case.outputs[0]]
        device = [m["device_ms"] for m in kiln]
        latency = [m["latency_ms"] for m in kiln]
        rows.append({"workload": case.name, "batch": batch, "dtype": arguments.dtype,
                     "subject": "kiln", "p50_ms": sorted(d["median"] for d in device)[len(device) // 2],
                     "p99_ms": max(d["p99"] for d in device), "cosine": round(cosine(got, want), 6),
                     "infer_p50_ms": sorted(d["median"] for d in latency)[len(latency) // 2]})
        for mode, times in subjects.items():
            subject = "torch-eager" if mode == "eager" else f"torch-{mode}"
            rows.append(row(case.name, batch, arguments.dtype, subject, times))
        for r in rows[-1 - len(subjects):]:
            print(json.dumps(r), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--workloads", default="resnet50,bert-base,vit-b16")
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--dtype", default="fp16", choices=list(DTYPES))
    parser.add_argument("--modes", default="eager,reduce-overhead")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build-seconds", type=int, default=300)
    parser.add_argument("--tree", default="", help="hash of the sources, for the header row")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    rows = [header(arguments.tree)]
    for name in arguments.workloads.split(","):
        try:
            try_workload(arguments, architectures.build("full", name), rows)
        except Exception as error:  # the next workload still gets its figures
            print(f"{name}: {type(error).__name__}: {str(error)[:600]}", flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
