"""Times products of few rows with cold weights: Kiln, Kiln without its own kernel, and PyTorch.

    python3 compare_matmuls.py BIN_FOLDER WORK_FOLDER [--sets llama-8b,llama-1b,bert-large]
                               [--shapes 6144x4096] [--rows 1,2,4,8,16,32,64] [--without few-rows]
                               [--modes eager] [--seconds 0.3] [--tree HASH] [--json FILE]

For every shape COLUMNSxDEPTH a model of 16 products is written, each with rows of its own and with
weights in turn that are together several times larger than the cache; engine-build builds it for
all rows at once. Kiln is timed by engine-run on the GPU's clock, PyTorch as a CUDA graph of the same
16 products. Rows of the result carry microseconds of a product and `read_share`, the share of the
H200's measured read bandwidth that passing once through the weights in this time takes. Below each
line are the candidates that the build timed, the best of every provider first.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper

from compare_kernels import Contestant
from compare_torch import run
from rows import header, row

READ_BYTES_PER_SECOND = 4.54e12  # of an H200, measured
CACHE_BYTES = 50e6
PRODUCTS = 16
SETS = {  # columns x depth; qkv and gate with up are one product each
    "llama-8b": [(6144, 4096), (4096, 4096), (1024, 4096), (28672, 4096), (4096, 14336),
                 (128256, 4096)],
    "llama-1b": [(3072, 2048), (2048, 2048), (16384, 2048), (2048, 8192)],
    "bert-large": [(3072, 1024), (1024, 1024), (4096, 1024), (1024, 4096)],
}


def distinct_weights(columns, depth):
    """As many as are three times the cache; one that is ten times as large is cold by itself."""
    bytes_ = 2 * columns * depth
    return 1 if bytes_ > 10 * CACHE_BYTES else min(PRODUCTS, 1 + math.ceil(3 * CACHE_BYTES / bytes_))


def write_model(path, weights):
    """y<i> = x<i> times the transpose of weights[i % len(weights)], all bf16."""
    columns, depth = weights[0].shape
    initializers, offset = [], 0
    with open(path.with_suffix(".weights"), "wb") as file:
        for i, weight in enumerate(weights):
            tensor = TensorProto(name=f"w{i}", data_type=TensorProto.BFLOAT16,
                                 dims=weight.shape, data_location=TensorProto.EXTERNAL)
            data = weight.cpu().view(torch.int16).numpy().tobytes()
            for key, value in (("location", path.with_suffix(".weights").name),
                               ("offset", offset), ("length", len(data))):
                tensor.external_data.add(key=key, value=str(value))
            file.write(data)
            offset += len(data)
            initializers.append(tensor)
    types = [[helper.make_tensor_value_info(f"{name}{i}", TensorProto.BFLOAT16, ["rows", extent])
              for i in range(PRODUCTS)] for name, extent in (("x", depth), ("y", columns))]
    nodes = [helper.make_node("Gemm", [f"x{i}", f"w{i % len(weights)}"], [f"y{i}"], transB=1)
             for i in range(PRODUCTS)]
    graph = helper.make_graph(nodes, "products", *types, initializer=initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def build(arguments, path, depth, without):
    """The engine, and its report's points by name."""
    stem = path.with_suffix("." + ("without" if without else "with"))
    command = [arguments.programs / "engine-build", "--onnx", path, "--output", f"{stem}.engine",
               "--target", arguments.target, "--batches", arguments.rows,
               "--shapes", ",".join(f"x{i}:Bx{depth}" for i in range(PRODUCTS)),
               "--report", f"{stem}.json", "--timing-cache", arguments.work / "timing.json"]
    for tactic in filter(None, without.split(",")):
        command += ["--disable-tactic", tactic]
    run(command, arguments.build_seconds)
    return f"{stem}.engine", json.loads(pathlib.Path(f"{stem}.json").read_text())


def to_numpy(tensor):
    return tensor.cpu().view(torch.int16).numpy().view("V2")


def from_numpy(array):
    return torch.from_numpy(np.ascontiguousarray(array).view(np.int16)).view(torch.bfloat16)


def run_kiln(arguments, engine, inputs):
    """ms of a product, and the outputs."""
    source, target = arguments.work / "in.npz", arguments.work / "out.npz"
    np.savez(source, **{f"x{i}": to_numpy(x) for i, x in enumerate(inputs)})
    command = [arguments.programs / "engine-run", engine, "--inputs", source]
    run([*command, "--outputs", target], 120)
    measured = json.loads(run([*command, "--benchmark", "--warmup", "50", "--duration",
                               str(arguments.seconds), "--json"], 120))["benchmark"]
    outputs = np.load(target)
    found = [from_numpy(outputs[f"y{i}"]) for i in range(PRODUCTS)]
    times = measured.get("device_ms", measured["latency_ms"])
    return [times["median"] / PRODUCTS, times["p99"] / PRODUCTS], found


def largest_error(found, inputs, weights):
    """Relative to the largest element of each product, against sums in f32."""
    errors = []
    for i, y in enumerate(found):
        want = inputs[i].float() @ weights[i % len(weights)].float().T
        errors.append(((y.to(want.device).float() - want).abs().max() / want.abs().max()).item())
    return max(errors)


def torch_contestants(arguments, inputs, weights):
    contestants = []
    for mode in filter(None, arguments.modes.split(",")):
        function = torch.nn.functional.linear
        if mode != "eager":
            torch._dynamo.reset()
            function = torch.compile(function, dynamic=False, mode=mode)
        calls = [lambda x=x, w=weights[i % len(weights)]: function(x, w)
                 for i, x in enumerate(inputs)]
        try:
            contestants.append(Contestant(f"torch-{mode}", calls))
        except Exception as error:  # a peer that fails must not hide Kiln's figures
            print(f"{mode}: {str(error)[:300]}", flush=True)
    return contestants


def timed_candidates(report, rows):
    """'provider/key us' of each provider's fastest candidates for the first product."""
    point = next((p for p in report["points"] if p["batch"] == rows), None)
    region = next((r for r in point["regions"] if r["kind"] == "contraction"), None) if point else None
    if region is None:
        return "no candidates are known"
    timed = [c for c in region["candidates"] if c["median_us"] > 0]
    timed.sort(key=lambda c: c["median_us"])
    texts = [f"{c['provider']}/{c['key'][:40]} {c['median_us']:.2f}" for c in timed]
    failed = [f"{c['provider']}/{c['key'][:40]}: {c['reason']}" for c in region["candidates"]
              if c["verdict"] in ("wrong", "failed")]
    refused = [f"{r['provider']}: {r['reason']}" for r in region["refusals"]
               if r["provider"] in ("few-rows", "many-rows")]
    return "; ".join(texts[:14] + failed[:4] + refused)


def compare(arguments, columns, depth, rows):
    name = f"{columns}x{depth}"
    torch.manual_seed(1)
    weights = [torch.randn(columns, depth, device=arguments.device, dtype=torch.bfloat16)
               for _ in range(distinct_weights(columns, depth))]
    path = arguments.work / f"{name}.onnx"
    write_model(path, weights)
    subjects = {"kiln": ""} | ({f"kiln-without-{arguments.without}": arguments.without}
                               if arguments.without else {})
    built = {subject: build(arguments, path, depth, without)
             for subject, without in subjects.items()}
    path.with_suffix(".weights").unlink()
    for count in map(int, arguments.rows.split(",")):
        inputs = [torch.randn(count, depth, device=arguments.device, dtype=torch.bfloat16)
                  for _ in range(PRODUCTS)]
        times, errors = {}, {}
        for subject, (engine, _) in built.items():
            times[subject], found = run_kiln(arguments, engine, inputs)
            errors[subject] = largest_error(found, inputs, weights)
        if arguments.device == "cuda":
            for peer in torch_contestants(arguments, inputs, weights):
                peer.time(20)
                times[peer.name] = peer.times
                errors[peer.name] = largest_error(peer.results, inputs, weights)
        line = []
        for subject, values in times.items():
            made = row(f"matmul-{name}", count, "bf16", subject, values,
                       max_error=round(errors[subject], 5))
            us = values[0] * 1e3 if subject in built else made["p50_ms"] * 1e3
            made["p50_ms"] = round(us / 1e3, 6)
            made["read_share"] = round(2e6 * columns * depth / us / READ_BYTES_PER_SECOND, 4)
            rows.append(made)
            line.append(f"{subject} {us:.2f} us {made['read_share']:.3f} err {errors[subject]:.1e}")
        print(f"{name} rows {count}: {'; '.join(line)}", flush=True)
        print("   ", timed_candidates(built["kiln"][1], count), flush=True)
    for engine, _ in built.values():
        pathlib.Path(engine).unlink()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--shapes", default="", help="instead of the sets', as 6144x4096")
    parser.add_argument("--rows", default="1,2,4,8,16,32,64")
    parser.add_argument("--without", default="few-rows", help="tactics to compare without; or ''")
    parser.add_argument("--modes", default="eager", help="PyTorch's; reduce-overhead adds nothing")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each of Kiln's measurements")
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--device", default="cuda", help="PyTorch's; cpu leaves PyTorch's times out")
    parser.add_argument("--build-seconds", type=int, default=300)
    parser.add_argument("--tree", default="", help="hash of the sources, for the header row")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    shapes = [shape for name in arguments.sets.split(",") for shape in SETS[name]]
    if arguments.shapes:
        shapes = [tuple(map(int, s.split("x"))) for s in arguments.shapes.split(",")]
    rows = [header(arguments.tree)] if arguments.device == "cuda" else []
    for columns, depth in shapes:
        try:
            with torch.inference_mode():
                compare(arguments, columns, depth, rows)
        except (Exception, subprocess.TimeoutExpired) as error:  # the next shape is still measured
            print(f"{columns}x{depth}: {type(error).__name__}: {str(error)[:600]}", flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
