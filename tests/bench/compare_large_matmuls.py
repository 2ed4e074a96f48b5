"""Times products of many rows with what follows them: Kiln and PyTorch, in turn in one run, beside
the fastest candidates of our own kernel and of cuBLASLt as the build timed them.

    python3 compare_large_matmuls.py BIN_FOLDER WORK_FOLDER [--sets bert-base,bert-large,llama-8b]
                                     [--shapes 3072x768] [--rows 256,2048,8192]
                                     [--ends plain,gelu,residual,swiglu] [--modes default] [--rounds 3]
                                     [--seconds 0.1] [--codes] [--tree HASH] [--json FILE]

For every shape COLUMNSxDEPTH and end a bf16 model of PRODUCTS products is written, each with rows
and weights of its own, and built for all rows at once. Ends: none; bias and erf's gelu; bias and a
residual; silu of one half of a row times the other, which leaves COLUMNS / 2. With --codes rows and weights
are e4m3 with a scale, and the results still bf16. PyTorch is linear(), or _scaled_mm(), with the end compiled by --modes, as a CUDA graph. Rows of the result
carry ms of a product, and `tflops`; subjects many-rows and cublaslt are the candidates, which have
no error of their own. Below each line are all that the build timed.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper

from compare_kernels import Contestant
from compare_matmuls import from_numpy, timed_candidates
from compare_torch import run
from rows import header, row

PRODUCTS = 4
CANDIDATES = ["many-rows", "cublaslt"]
SETS = {  # columns x depth
    "bert-base": [(2304, 768), (768, 768), (3072, 768), (768, 3072)],
    "bert-large": [(1024, 1024), (4096, 1024), (1024, 4096)],
    "llama-8b": [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)],
}


def swiglu(product):
    gate, up = product.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


class Problem:
    """The tensors of one shape and end on the device; rows come with each call."""

    def __init__(self, columns, depth, end, device, codes):
        torch.manual_seed(1)
        self.columns, self.depth, self.end, self.device = columns, depth, end, device
        self.codes = codes
        make = lambda *shape: torch.randn(*shape, device=device).bfloat16()
        self.scale = depth ** -0.5 if codes else 1.0  # of weights; that of rows is 1
        self.weights = [self.stored(make(columns, depth) * (depth ** -0.5 / self.scale))
                        for _ in range(PRODUCTS)]
        self.biases = [make(columns) for _ in range(PRODUCTS)]

    def stored(self, operand):
        return operand.to(torch.float8_e4m3fn if self.codes else torch.bfloat16)

    def inputs(self, rows):
        made = {f"x{i}": self.stored(torch.randn(rows, self.depth, device=self.device))
                for i in range(PRODUCTS)}
        if self.end == "residual":
            made |= {f"r{i}": torch.randn(rows, self.columns, device=self.device).bfloat16()
                     for i in range(PRODUCTS)}
        return made

    def linear(self, x, w, b=None):
        if x.dtype != torch.float8_e4m3fn:
            return torch.nn.functional.linear(x, w, b)
        scales = [torch.full((), s, device=x.device) for s in (1.0, self.scale)]
        return torch._scaled_mm(x, w.t(), *scales, bias=b, out_dtype=torch.bfloat16)

    def function(self):
        linear, gelu = self.linear, torch.nn.functional.gelu
        return {"plain": lambda x, w, b, r: linear(x, w),
                "gelu": lambda x, w, b, r: gelu(linear(x, w, b)),
                "residual": lambda x, w, b, r: linear(x, w, b) + r,
                "swiglu": lambda x, w, b, r: swiglu(linear(x, w))}[self.end]

    def arguments(self, inputs, i):
        return inputs[f"x{i}"], self.weights[i], self.biases[i], inputs.get(f"r{i}")

    def largest_error(self, found, inputs):
        """Relative to the largest element, against f32."""
        errors = []
        for i, y in enumerate(found):
            x, w, b, r = self.arguments(inputs, i)
            want = self.function()(x.float(), w.float() * self.scale, b.float(),
                                   None if r is None else r.float())
            errors.append(((y.to(want.device).float() - want).abs().max() /
                           want.abs().max()).item())
        return max(errors)

    def product_of_codes(self, i):
        biased = self.end not in ("plain", "swiglu")
        made = f"y{i}" if self.end == "plain" else f"t{i}"
        product = f"n{i}" if biased else made
        nodes = [helper.make_node("DequantizeLinear", [f"x{i}", "one"], [f"dx{i}"]),
                 helper.make_node("DequantizeLinear", [f"w{i}", "scale"], [f"dw{i}"]),
                 helper.make_node("Gemm", [f"dx{i}", f"dw{i}"], [f"f{i}"], transB=1),
                 helper.make_node("Cast", [f"f{i}"], [product], to=TensorProto.BFLOAT16)]
        return nodes + ([helper.make_node("Add", [product, f"b{i}"], [made])] if biased else [])

    def swiglu_nodes(self, i):
        return [helper.make_node("Split", [f"t{i}"], [f"g{i}", f"u{i}"], axis=-1, num_outputs=2),
                helper.make_node("Sigmoid", [f"g{i}"], [f"s{i}"]),
                helper.make_node("Mul", [f"g{i}", f"s{i}"], [f"m{i}"]),
                helper.make_node("Mul", [f"m{i}", f"u{i}"], [f"y{i}"])]

    def write(self, path):
        bf16 = TensorProto.BFLOAT16
        operand = TensorProto.FLOAT8E4M3FN if self.codes else bf16
        constant = lambda name, dtype, tensor: helper.make_tensor(
            name, dtype, tensor.shape, tensor.cpu().view(torch.uint8).numpy().tobytes(), raw=True)
        nodes, initializers, inputs, outputs = [], [], [], []
        if self.codes:
            initializers = [helper.make_tensor("one", TensorProto.FLOAT, [], [1.0]),
                            helper.make_tensor("scale", TensorProto.FLOAT, [], [self.scale])]
        for i in range(PRODUCTS):
            initializers += [constant(f"w{i}", operand, self.weights[i]),
                             constant(f"b{i}", bf16, self.biases[i])]
            inputs.append(helper.make_tensor_value_info(f"x{i}", operand, ["rows", self.depth]))
            if self.codes:
                nodes += self.product_of_codes(i)
            columns = self.columns // 2 if self.end == "swiglu" else self.columns
            outputs.append(helper.make_tensor_value_info(f"y{i}", bf16, ["rows", columns]))
            biased = self.end not in ("plain", "swiglu")
            if not self.codes:
                product = f"y{i}" if self.end == "plain" else f"t{i}"
                operands = [f"x{i}", f"w{i}"] + ([f"b{i}"] if biased else [])
                nodes.append(helper.make_node("Gemm", operands, [product], transB=1))
            if not biased:
                nodes += self.swiglu_nodes(i) if self.end == "swiglu" else []
                continue
            if self.end == "gelu":
                nodes.append(helper.make_node("Gelu", [f"t{i}"], [f"y{i}"]))
            else:
                inputs.append(helper.make_tensor_value_info(f"r{i}", bf16, ["rows", self.columns]))
                nodes.append(helper.make_node("Add", [f"t{i}", f"r{i}"], [f"y{i}"]))
        graph = helper.make_graph(nodes, "products", inputs, outputs, initializer=initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.save_model(model, path)


def build(arguments, path, problem):
    """The engine, and its report."""
    shapes = [f"x{i}:Bx{problem.depth}" for i in range(PRODUCTS)]
    if problem.end == "residual":
        shapes += [f"r{i}:Bx{problem.columns}" for i in range(PRODUCTS)]
    engine, report = path.with_suffix(".engine"), path.with_suffix(".json")
    run([arguments.programs / "engine-build", "--onnx", path, "--output", engine, "--target",
         arguments.target, "--batches", arguments.rows, "--shapes", ",".join(shapes), "--no-verify",
         "--report", report, "--timing-cache", arguments.work / "timing.json"],
        arguments.build_seconds)
    return engine, json.loads(report.read_text())


def fastest(report, rows, provider):
    """ms of the provider's fastest candidate for the first product; None if it has none."""
    point = next(p for p in report["points"] if p["batch"] == rows)
    region = next((r for r in point["regions"] if r["kind"] == "contraction"), {"candidates": []})
    times = [c["median_us"] / 1e3 for c in region["candidates"]
             if c["provider"] == provider and c["median_us"] > 0]
    return min(times, default=None)


def run_kiln(arguments, engine, inputs):
    """ms of a product: the median of one measurement; and the outputs."""
    source, target = arguments.work / "in.npz", arguments.work / "out.npz"
    bytes_of = lambda x: x.cpu().view(torch.uint8).numpy().view(f"V{x.element_size()}")
    np.savez(source, **{name: bytes_of(x) for name, x in inputs.items()})
    command = [arguments.programs / "engine-run", engine, "--allow-unverified", "--inputs", source]
    measured = json.loads(run([*command, "--outputs", target, "--benchmark", "--warmup", "20",
                               "--duration", str(arguments.seconds), "--json"], 120))["benchmark"]
    outputs = np.load(target)
    times = measured.get("device_ms", measured["latency_ms"])
    return times["median"] / PRODUCTS, [from_numpy(outputs[f"y{i}"]) for i in range(PRODUCTS)]


def torch_contestants(arguments, problem, inputs):
    contestants = []
    for mode in filter(None, arguments.modes.split(",")):
        torch._dynamo.reset()
        function = torch.compile(problem.function(), dynamic=False, mode=mode)
        calls = [lambda i=i: function(*problem.arguments(inputs, i)) for i in range(PRODUCTS)]
        try:
            contestants.append(Contestant(f"torch-{mode}", calls))
        except Exception as error:  # a peer that fails must not hide Kiln's figures
            print(f"{mode}: {str(error)[:300]}", flush=True)
    return contestants


def compare(arguments, columns, depth, end, rows):
    problem = Problem(columns, depth, end, arguments.device, arguments.codes)
    dtype = "fp8" if arguments.codes else "bf16"
    name = f"{columns}x{depth}-{end}" + ("-fp8" if arguments.codes else "")
    path = arguments.work / f"{name}.onnx"
    problem.write(path)
    engine, report = build(arguments, path, problem)
    path.unlink()
    for count in map(int, arguments.rows.split(",")):
        inputs = problem.inputs(count)
        peers = torch_contestants(arguments, problem, inputs) if arguments.device == "cuda" else []
        times, errors = {"kiln": []}, {}
        for _ in range(arguments.rounds):
            ms, found = run_kiln(arguments, engine, inputs)
            times["kiln"].append(ms)
            for peer in peers:
                peer.time(10)
        errors["kiln"] = problem.largest_error(found, inputs)
        for peer in peers:
            times[peer.name] = peer.times
            errors[peer.name] = problem.largest_error(peer.results, inputs)
        for provider in CANDIDATES:
            if ms := fastest(report, count, provider):
                times[provider] = [ms]
        line = []
        for subject, values in times.items():
            more = {"max_error": round(errors[subject], 5)} if subject in errors else {}
            made = row(f"matmul-{name}", count, dtype, subject, values, **more)
            made["tflops"] = round(2e-9 * count * columns * depth / made["p50_ms"], 1)
            rows.append(made)
            error = f" err {errors[subject]:.1e}" if subject in errors else ""
            line.append(f"{subject} {made['p50_ms'] * 1e3:.2f} us {made['tflops']:.0f}{error}")
        print(f"{name} rows {count}: {'; '.join(line)}", flush=True)
        print("   ", timed_candidates(report, count), flush=True)
    engine.unlink()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--shapes", default="", help="instead of the sets', as 3072x768")
    parser.add_argument("--rows", default="256,2048,8192")
    parser.add_argument("--ends", default="plain,gelu,residual,swiglu")
    parser.add_argument("--modes", default="default", help="PyTorch's, for the whole product")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each of Kiln's measurements")
    parser.add_argument("--codes", action="store_true", help="operands of 8 bits")
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--device", default="cuda", help="PyTorch's; cpu leaves its times out")
    parser.add_argument("--build-seconds", type=int, default=120)
    parser.add_argument("--tree", default="", help="hash of the sources, for the header row")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    shapes = [shape for name in arguments.sets.split(",") for shape in SETS[name]]
    if arguments.shapes:
        shapes = [tuple(map(int, s.split("x"))) for s in arguments.shapes.split(",")]
    rows = [header(arguments.tree)] if arguments.device == "cuda" else []
    for columns, depth in shapes:
        for end in arguments.ends.split(","):
            try:
                with torch.inference_mode():
                    compare(arguments, columns, depth, end, rows)
            except (Exception, subprocess.TimeoutExpired) as error:  # the next is still measured
                print(f"{columns}x{depth} {end}: {type(error).__name__}: {str(error)[:600]}",
                      flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
