"""What results/ is made of: a header row and one row a subject."""

import datetime

import torch


def header(tree):
    """What the rows were measured on. `tree` is the hash of the sources (README.md)."""
    found = {"device": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}
    return {"date": datetime.date.today().isoformat(), "tree": tree, **found,
            "torch": torch.__version__, "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version()}


def row(workload, batch, dtype, subject, times, **more):
    """`times` in ms."""
    times = sorted(times)
    return {"workload": workload, "batch": batch, "dtype": dtype, "subject": subject,
            "p50_ms": round(times[len(times) // 2], 5),
            "p99_ms": round(times[int(len(times) * 0.99)], 5), **more}
