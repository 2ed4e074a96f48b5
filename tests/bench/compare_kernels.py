"""Times Kiln's generated kernels, PyTorch and a plain copy in turn, on one GPU, in one process.

    python3 compare_kernels.py BIN_FOLDER WORK_FOLDER [--sets main,rows,decode,cos]
                               [--works rmsnorm,softmax] [--shapes 65536x8192]
                               [--modes default,max-autotune-no-cudagraphs] [--rounds 5]
                               [--tree HASH] [--json FILE] [--emit-only]

Every work of kernel_works.py is exported and compiled under every schedule by kiln_emit_kernels,
which needs no GPU: --emit-only does that alone, and kernels that lie in WORK_FOLDER already are
taken as they are. All candidates are timed; the fastest three meet PyTorch and the copy in rounds.
All of them are timed as CUDA graphs of the same number of calls, over tensors that are together
larger than the cache where a call's are not (as far as 64 calls go), by events. Outputs are compared
with float64 in units in the last place of bf16.
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import random
import subprocess
import sys

import torch

import kernel_works
from generated_kernels import Model
from rows import header, row

CACHE_BYTES = 120e6  # twice that of an H200
CALL_BYTES = 4e12 * 5e-4  # what a graph moves at least, as far as its calls go
MOST_CALLS = 64
FINALISTS = 3


def case_name(work, shape):
    return f"{work}-{'x'.join(map(str, shape))}"


def emit(arguments, cases):
    """Exports and compiles what WORK_FOLDER does not have yet."""
    def compile_case(folder):
        command = [arguments.programs / "kiln_emit_kernels", folder / "model.onnx", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        return done.stderr if done.returncode else None

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = {}
        for work, shape in cases:
            folder = arguments.work / case_name(work, shape)
            if (folder / "kernels.json").exists():
                continue
            folder.mkdir(parents=True, exist_ok=True)
            kernel_works.export(kernel_works.WORKS[work], shape, str(folder / "model.onnx"))
            running[pool.submit(compile_case, folder)] = folder.name
        for done in concurrent.futures.as_completed(running):
            if done.result():
                print(f"{running[done]}: {done.result().strip()[:400]}", flush=True)


# --- timing ---


class Contestant:
    """A graph of calls, and the outputs of its first call."""

    def __init__(self, name, calls):
        self.name, self.count, self.times = name, len(calls), []
        calls[0]()  # loads code, which a capture must not
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.results = [call() for call in calls]  # alive, so that none takes another's memory

    def time(self, runs):
        """ms of a call, the mean of each run."""
        self.graph.replay()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(runs + 1)]
        events[0].record()
        for event in events[1:]:
            self.graph.replay()
            event.record()
        torch.cuda.synchronize()
        times = [a.elapsed_time(b) / self.count for a, b in zip(events, events[1:])]
        self.times += times
        return sorted(times)[runs // 2]

    def median(self):
        return sorted(self.times)[len(self.times) // 2]


def calls_for(total_bytes):
    """(sets of tensors, calls of a graph)"""
    sets = min(MOST_CALLS, math.ceil(CACHE_BYTES / total_bytes))
    calls = min(MOST_CALLS, math.ceil(CALL_BYTES / total_bytes))
    return sets, math.ceil(max(sets, calls) / sets) * sets


def copies(total_bytes, sets, calls):
    """The driver's copy, and a kernel that reads and writes as much: either may be the faster."""
    words = total_bytes // 8
    pairs = [(torch.zeros(words, device="cuda"), torch.zeros(words, device="cuda"))
             for _ in range(sets)]
    ways = {"copy": lambda x, y: y.copy_(x), "copy-kernel": lambda x, y: torch.neg(x, out=y)}
    return [Contestant(name, [lambda way=way, pair=pairs[i % sets]: way(*pair)
                              for i in range(calls)]) for name, way in ways.items()]


def choose_candidates(model, bound):
    """The region's candidates, fastest first, [(ms, candidate)] for each region."""
    chosen = []
    for region, candidates in model.regions:
        timed = []
        for candidate in candidates:
            calls = [lambda v=values, c=candidate: model.run_region(region, c, v)
                     for values in bound]
            timed.append((Contestant(candidate.schedule, calls).time(3), candidate))
        chosen.append(sorted(timed, key=lambda pair: pair[0]))
    return chosen


def kiln_contestants(model, bound, chosen):
    """Where one region does all, its fastest candidates, else the fastest of each region."""
    real = [(region, timed) for (region, _), timed in zip(model.regions, chosen) if timed]
    finalists = []
    for place in range(FINALISTS if len(real) == 1 else 1):
        picked = [(region, timed[place][1]) for region, timed in real if place < len(timed)]
        if not picked:
            break

        def call(values, picked=picked):
            for region, candidate in picked:
                model.run_region(region, candidate, values)
        name = " + ".join(candidate.schedule for _, candidate in picked)
        finalists.append(Contestant(name, [lambda v=values: call(v) for values in bound]))
    return finalists


def torch_contestants(arguments, work, weights, inputs):
    contestants = []
    for mode in filter(None, arguments.modes.split(",")):
        torch._dynamo.reset()
        function = work.function
        if mode != "eager":
            function = torch.compile(function, dynamic=False,
                                     mode=None if mode == "default" else mode)
        try:
            calls = [lambda x=x: function(*x, *weights) for x in inputs]
            calls[0]()
            contestants.append(Contestant(f"torch-{mode}", calls))
        except Exception as error:  # a peer that fails must not hide Kiln's figures
            print(f"{mode}: {str(error)[:300]}", flush=True)
    return contestants


def random_inputs(work, shape, sets):
    torch.manual_seed(1)
    return [[torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(work.inputs)]
            for _ in range(sets)]


def compare(arguments, name, shape, rows):
    work = kernel_works.WORKS[name]
    total = kernel_works.moved_bytes(work, shape)
    sets, calls = calls_for(total)
    inputs = random_inputs(work, shape, sets)
    weights = [w.cuda() for w in kernel_works.Module(work, shape[-1]).weights()]
    model = Model(arguments.work / case_name(name, shape))
    distinct = [model.bind(x) for x in inputs]
    bound = [distinct[i % sets] for i in range(calls)]
    chosen = choose_candidates(model, bound)
    ours = kiln_contestants(model, bound, chosen)
    peers = torch_contestants(arguments, work, weights, [inputs[i % sets] for i in range(calls)])
    both = copies(total, sets, calls)
    everyone = [*ours, *peers, *both]
    for _ in range(arguments.rounds):
        for contestant in random.sample(everyone, len(everyone)):
            contestant.time(3)
    best = min(ours, key=Contestant.median)
    copy = min(both, key=Contestant.median)
    outputs = {"kiln": model.outputs(distinct[0])}
    for tensor in outputs["kiln"]:
        tensor.fill_(math.nan)
    best.graph.replay()
    for peer in peers:
        first = peer.results[0]
        outputs[peer.name] = first if isinstance(first, tuple) else [first]
    errors = {subject: kernel_works.largest_error(work, inputs[0], weights, found)
              for subject, found in outputs.items()}
    report(rows, name, shape, total, best, peers, copy, errors, chosen)


def report(rows, name, shape, total, best, peers, copy, errors, chosen):
    batch = torch.Size(shape[:-1]).numel()
    speed = {c.name: total / c.median() * 1e-6 for c in (best, *peers, copy)}
    for contestant in (best, *peers, copy):
        subject = "kiln" if contestant is best else contestant.name
        more = {"shape": list(shape), "GBps": round(speed[contestant.name], 1)}
        if subject in errors:
            more["max_ulp"] = round(errors[subject], 3)
        if contestant is best:
            more |= {"copy_share": round(copy.median() / best.median(), 4), "schedule": best.name}
        rows.append(row(f"micro-{name}", batch, "bf16", subject, contestant.times, **more))
    peer = min(peers, key=Contestant.median, default=None)
    ours, theirs = best.median() * 1e3, peer.median() * 1e3 if peer else math.nan
    print(f"{case_name(name, shape)}: kiln {ours:.2f} us, {peer.name if peer else 'no peer'} "
          f"{theirs:.2f} us, ratio {theirs / ours:.3f}, {speed[best.name]:.0f} GB/s, "
          f"{copy.median() / best.median():.3f} of copy ({speed[copy.name]:.0f}), "
          f"ulp {errors['kiln']:.2f} [{best.name}]", flush=True)
    for timed in chosen:
        print("   ", "; ".join(f"{ms * 1e3:.2f} {c.schedule}" for ms, c in timed), flush=True)


def wanted_cases(arguments):
    cases = kernel_works.named_cases(arguments.sets.split(","))
    if arguments.shapes:
        shapes = [tuple(map(int, s.split("x"))) for s in arguments.shapes.split(",")]
        cases = [(work, shape) for work in kernel_works.WORKS for shape in shapes]
    works = set(filter(None, arguments.works.split(",")))
    return [case for case in cases if not works or case[0] in works]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--sets", default="main")
    parser.add_argument("--works", default="", help="these alone")
    parser.add_argument("--shapes", default="", help="instead of the sets', as 4096x8192,1x8192")
    parser.add_argument("--modes", default="default,max-autotune-no-cudagraphs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tree", default="", help="hash of the sources, for the header row")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--emit-only", action="store_true")
    arguments = parser.parse_args()
    cases = wanted_cases(arguments)
    emit(arguments, cases)
    if arguments.emit_only:
        return 0
    rows = [header(arguments.tree)]
    for name, shape in cases:
        torch.cuda.empty_cache()
        try:
            with torch.inference_mode():
                compare(arguments, name, shape, rows)
        except Exception as error:  # the next work still gets its figures
            print(f"{case_name(name, shape)}: {type(error).__name__}: {str(error)[:600]}",
                  flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
