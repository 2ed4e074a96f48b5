"""Adds runs to what is on record, and prints the table of the README.

    python3 record.py RESULTS.json [RUN.json ...]

Both are lists of rows as compare_*.py writes them: a header row, the rows measured with it, perhaps
further headers and theirs. A run replaces what is on record of its workloads, batches, dtypes and
subjects; the rest keeps the header that it was measured with.
"""

import argparse
import json
import pathlib

RATIO_TO = "torch-reduce-overhead"


def identity(row):
    return tuple(json.dumps(row.get(key)) for key in ("workload", "shape", "batch", "dtype", "subject"))


def runs_of(rows):
    """[(header, rows)]"""
    runs = []
    for row in rows:
        if "workload" not in row:
            runs.append((row, []))
        else:
            runs[-1][1].append(row)
    return runs


def merged(recorded, new):
    known = {identity(row) for _, rows in new for row in rows}
    kept = [(header, [row for row in rows if identity(row) not in known]) for header, rows in recorded]
    return [(header, rows) for header, rows in kept + new if rows]


def table(runs):
    yield f"| model | batch | Kiln | {RATIO_TO.replace('torch-', 'torch.compile ')} | ratio | measured |"
    yield "|---|---|---|---|---|---|"
    for header, rows in runs:
        times = {(r["workload"], r.get("batch"), r["subject"]): r["p50_ms"] for r in rows}
        for (workload, batch, subject), kiln in times.items():
            peer = times.get((workload, batch, RATIO_TO))
            if subject == "kiln" and peer and batch:
                yield (f"| {workload} | {batch} | {kiln:.3f} ms | {peer:.3f} ms | {peer / kiln:.2f} "
                       f"| {header['date']}, {header['tree'][:8]} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("runs", type=pathlib.Path, nargs="*")
    arguments = parser.parse_args()
    known = runs_of(json.loads(arguments.results.read_text())) if arguments.results.exists() else []
    for path in arguments.runs:
        known = merged(known, runs_of(json.loads(path.read_text())))
    rows = [row for header, rows in known for row in [header, *rows]]
    if arguments.runs:
        arguments.results.write_text(json.dumps(rows, indent=1) + "\n")
    print("\n".join(table(known)))


if __name__ == "__main__":
    main()
