"""Times all linear layers of a language model for few rows, one after the other in one graph.

    python3 time_chain.py BIN_FOLDER WORK_FOLDER [--models llama-3-8b,llama-3.2-1b] [--rows 1]
                          [--dtype bf16] [--layers N] [--verify] [--without few-rows]
                          [--tree HASH] [--json FILE]

One engine has every layer's qkv, o, gate with up, and down, and the head, with random weights of
their own, bf16 or fp8 (e4m3 with a scale, as are the rows). Each product reads what the one before
has made or, where that is wider than it takes, an input of its own; the engine runs one after the
other either way. Nothing else of the model is there: the time bounds what its step can reach, and
`read_share` is the share of the H200's measured read bandwidth that reading all weights once in
this time takes. They are larger than the cache many times over, so that every replay finds them
cold.
"""

import argparse
import json
import pathlib
import sys
import time

import onnx
import torch
from onnx import TensorProto, helper

from compare_matmuls import READ_BYTES_PER_SECOND
from compare_torch import run
from rows import header, row

MODELS = {  # layers, (columns, depth) of a layer's products, those of the head
    "llama-3-8b": (32, [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)], (128256, 4096)),
    "llama-3.2-1b": (16, [(3072, 2048), (2048, 2048), (16384, 2048), (2048, 8192)], (128256, 2048)),
}
PAGE_BYTES = 4096  # on which external data begin
DTYPES = {"bf16": (TensorProto.BFLOAT16, torch.bfloat16, 2),
          "fp8": (TensorProto.FLOAT8E4M3FN, torch.float8_e4m3fn, 1)}


def products_of(name, layers):
    all_layers, layer, head = MODELS[name]
    return layer * (layers or all_layers) + [head]


def write_weights(path, products, dtype, device):
    """The file, and an initializer for each product."""
    torch.manual_seed(1)
    onnx_type, torch_type, _ = DTYPES[dtype]
    initializers = []
    with open(path, "wb") as file:
        for i, (columns, depth) in enumerate(products):
            weight = torch.randn(columns, depth, device=device, dtype=torch.bfloat16)
            scaled = weight if dtype == "fp8" else weight * depth ** -0.5
            data = memoryview(scaled.to(torch_type).view(torch.uint8).cpu().numpy()).cast("B")
            tensor = TensorProto(name=f"w{i}", data_type=onnx_type, dims=[columns, depth],
                                 data_location=TensorProto.EXTERNAL)
            for key, value in (("location", path.name), ("offset", file.tell()),
                               ("length", len(data))):
                tensor.external_data.add(key=key, value=str(value))
            initializers.append(tensor)
            file.write(data)
            file.write(bytes(-file.tell() % PAGE_BYTES))
    return initializers


def own_inputs(products):
    """By name, the width of what the products read that take no whole result before them."""
    widths = [products[0][1]] + [columns for columns, _ in products]
    return {f"x{i}": depth for i, (_, depth) in enumerate(products) if i == 0 or widths[i] != depth}


def product_nodes(i, x, results, dtype):
    """y<i> from `x`: of fp8 the codes that the next one reads, or f32 where it is a result."""
    if dtype == "bf16":
        return [helper.make_node("Gemm", [x, f"w{i}"], [f"y{i}"], transB=1)]
    result = f"y{i}" in results
    nodes = [helper.make_node("DequantizeLinear", [x, "one"], [f"real_x{i}"]),
             helper.make_node("DequantizeLinear", [f"w{i}", f"scale{i}"], [f"real_w{i}"]),
             helper.make_node("Gemm", [f"real_x{i}", f"real_w{i}"],
                              [f"y{i}" if result else f"real_y{i}"], transB=1)]
    if not result:
        nodes.append(helper.make_node("QuantizeLinear", [f"real_y{i}", "one", "zero"], [f"y{i}"]))
    return nodes


def scales_of(products):
    """Such that rows of deviation 1 remain so."""
    scalar = lambda name, kind, value: helper.make_tensor(name, kind, [], [value])
    return [scalar("one", TensorProto.FLOAT, 1.0), scalar("zero", TensorProto.FLOAT8E4M3FN, 0.0),
            *(scalar(f"scale{i}", TensorProto.FLOAT, depth ** -0.5)
              for i, (_, depth) in enumerate(products))]


def write_model(path, products, dtype, device):
    initializers = write_weights(path.with_suffix(".weights"), products, dtype, device)
    inputs = own_inputs(products)
    # The results that no other product reads.
    results = {f"y{i}": columns for i, (columns, _) in enumerate(products)
               if i + 1 == len(products) or f"x{i + 1}" in inputs}
    nodes = []
    for i in range(len(products)):
        nodes += product_nodes(i, f"x{i}" if f"x{i}" in inputs else f"y{i - 1}", results, dtype)
    if dtype == "fp8":
        initializers += scales_of(products)
    made = lambda kind, widths: [helper.make_tensor_value_info(name, kind, ["rows", width])
                                 for name, width in widths.items()]
    result_type = TensorProto.FLOAT if dtype == "fp8" else TensorProto.BFLOAT16
    graph = helper.make_graph(nodes, "chain", made(DTYPES[dtype][0], inputs),
                              made(result_type, results), initializer=initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9),
              path)


def build(arguments, path, inputs):
    engine = path.with_suffix(".engine")
    command = [arguments.programs / "engine-build", "--onnx", path, "--output", engine,
               "--target", arguments.target, "--batches", arguments.rows,
               "--shapes", ",".join(f"{name}:Bx{width}" for name, width in inputs.items()),
               "--report", path.with_suffix(".json"), "--timing-cache",
               arguments.work / "timing.json"]
    for tactic in filter(None, arguments.without.split(",")):
        command += ["--disable-tactic", tactic]
    run(command if arguments.verify else [*command, "--no-verify"], arguments.build_seconds)
    return engine


def chosen_tactics(path, rows):
    """'provider/key' of the products, each once, with how often and its time alone."""
    report = json.loads(path.with_suffix(".json").read_text())
    point = next(p for p in report["points"] if p["batch"] == rows)
    chosen = {}
    for region in point["regions"]:
        won = next((c for c in region["candidates"] if c["verdict"] == "chosen"), None)
        if won:
            name = f"{region['kind']} {won['provider']}/{won['key'][:40]} {won['median_us']:.2f} us"
            chosen[name] = chosen.get(name, 0) + 1
    return [f"{count} x {name}" for name, count in chosen.items()]


def measure(arguments, engine, rows):
    """On random rows."""
    command = [arguments.programs / "engine-run", engine, "--batch", rows, "--allow-unverified",
               "--benchmark", "--warmup", "5", "--duration", arguments.seconds, "--json"]
    measured = json.loads(run(command, 300))["benchmark"]
    times = measured.get("device_ms", measured["latency_ms"])
    return [times["median"], times["p99"]]


def time_model(arguments, name, rows):
    products = products_of(name, arguments.layers)
    path = arguments.work / f"{name}.onnx"
    started = time.monotonic()
    write_model(path, products, arguments.dtype, arguments.device)
    written = time.monotonic()
    engine = build(arguments, path, own_inputs(products))
    print(f"{name}: model written in {written - started:.1f} s, built in "
          f"{time.monotonic() - written:.1f} s", flush=True)
    path.with_suffix(".weights").unlink()
    weight_bytes = DTYPES[arguments.dtype][2] * sum(columns * depth for columns, depth in products)
    for count in map(int, arguments.rows.split(",")):
        times = measure(arguments, engine, count)
        share = weight_bytes / (times[0] / 1e3) / READ_BYTES_PER_SECOND
        rows.append(row(f"linear-layers-{name}", count, arguments.dtype, "kiln", times,
                        read_share=round(share, 4)))
        print(f"{name} rows {count}: {len(products)} products, {weight_bytes / 1e9:.2f} GB, "
              f"{times[0]:.4f} ms, {share:.4f} of the read bandwidth", flush=True)
        for line in chosen_tactics(path, count):
            print("   ", line, flush=True)
    engine.unlink()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rows", default="1")
    parser.add_argument("--dtype", default="bf16", choices=DTYPES)
    parser.add_argument("--layers", type=int, default=0, help="instead of the model's")
    parser.add_argument("--verify", action="store_true", help="compare with the reference too")
    parser.add_argument("--without", default="", help="tactics to do without")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--device", default="cuda", help="that makes the weights")
    parser.add_argument("--build-seconds", type=int, default=300)
    parser.add_argument("--tree", default="", help="hash of the sources, for the header row")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    rows = [header(arguments.tree)] if arguments.device == "cuda" else []
    for name in arguments.models.split(","):
        time_model(arguments, name, rows)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
