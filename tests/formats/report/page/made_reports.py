"""Reports as a build for a GPU writes them, of any size, and with names that mean harm."""

HARMFUL_NAMES = [
    "<script>window.harmed = 1</script>",
    '</script><img src=x onerror="window.harmed = 1">',
    "<!-- <script>",
    "]]>",
    "\"quoted\" 'twice' & <b>bold</b>",
    "javascript:alert(1)",
    "__proto__",
    "constructor",
    "Привет/слой 层 🔥 \u202e right to left",
    "a\u2028b\u0007c",
    "${1 + 1} `tick` \\u003c",
    "long " + "n" * 5000,
    "",
]

KINDS = ("loop", "contraction", "convolution", "attention", "opaque")
PEAK = {
    "bytes_per_s": 4.8e12,
    "f32_flops_per_s": 6.7e13,
    "tf32_flops_per_s": 4.94e14,
    "f16_flops_per_s": 9.89e14,
    "byte_flops_per_s": 1.979e15,
    "source": "published",
}


def candidate(provider, key, median, verdict, reason="", error=0.0):
    timed = 0.0 if median is None else median
    return {
        "provider": provider,
        "key": key,
        "median_us": timed,
        "spread_us": timed / 64,
        "max_abs_error": error,
        "max_rel_error": error / 2,
        "workspace_bytes": 4096,
        "verdict": verdict,
        "reason": reason,
    }


def region(number, batch, name, candidates):
    kind = KINDS[number % len(KINDS)]
    median = round((1.7 + number % 37 * 1.3) * (1 + batch / 7) + 0.0013, 4)
    # At a larger batch another kernel wins in some, and another provider in others.
    key = "tile" + ("A" if batch < 8 or number % 3 else "B")
    provider = "generated" if batch < 8 or number % 4 else "cublaslt"
    tried = [
        candidate(provider, key, median, "chosen", error=0.00048828125),
        candidate("cublaslt", "wrong", round(median * 0.7, 4), "wrong", "row 3 is off by 3", 3.0),
        candidate("plain", "steps", None, "failed", "no memory for it"),
        candidate("host", "", None, "skipped", "not tried: a better candidate is right"),
    ]
    for i in range(candidates - len(tried)):
        slow = round(median * (1.05 + 0.11 * i), 4)
        tried.insert(
            1 + i,
            candidate(
                "generated",
                f"rows threads={32 * (i + 1)}",
                slow,
                "slower",
                f"{1.05 + 0.11 * i:.2f} times slower",
            ),
        )
    flops = 0 if number % 11 == 5 else 40_000 * batch * (1 + number % 97) ** 2
    wide = number % 9 == 4
    return {
        "name": name,
        "origins": [f"{name}/first", f"{name}/second"],
        "kind": kind,
        "rule": "" if number % 5 == 0 else f"fuse-{kind}",
        "types": [f"f16[{batch}x768]", "->", f"f16[{batch}x768]"],
        "precision_asked": "f16",
        "precision_realised": "f32" if wide else "f16",
        "precision_reason": "would take 0.01 off the cosine" if wide else "",
        "precision_damage": 0.01 if wide else -1.0,
        "bytes_read": 3_000_000 + 1536 * batch,
        "bytes_written": 1536 * batch,
        "flops": flops,
        "roofline_share": round(0.03 + number % 90 / 100, 4),
        "roofline_bound": "memory" if number % 2 else "compute",
        "host_reason": "'sort' has no form as loops" if number % 31 == 30 else "",
        "candidates": tried,
        "refusals": [{"provider": "cudnn", "reason": "covers convolutions only"}],
        "chosen": 0,
        "time_share": 0.0,
    }


def point(batch, names, candidates):
    regions = [region(i, batch, name, candidates) for i, name in enumerate(names)]
    total = sum(one["candidates"][0]["median_us"] for one in regions)
    for one in regions:
        one["time_share"] = one["candidates"][0]["median_us"] / total
    size = 1536 * batch
    buffers = [
        {
            "name": name,
            "offset": size * (i % 3),
            "bytes": size,
            "first_step": i,
            "last_step": min(i + 2, len(names) - 1),
            "in_place_of": "",
        }
        for i, name in enumerate(names)
    ]
    shares = []
    for precision in sorted({one["precision_realised"] for one in regions}):
        of = [one for one in regions if one["precision_realised"] == precision]
        shares.append(
            {
                "precision": precision,
                "regions": len(of),
                "flops": sum(one["flops"] for one in of),
                "bytes": sum(one["bytes_read"] + one["bytes_written"] for one in of),
            }
        )
    misses = (
        [
            {
                "producer": names[0],
                "consumer": names[1],
                "rule": "fuse-loops",
                "reason": "a reduction is needed first",
            }
        ]
        if len(names) > 1
        else []
    )
    return {
        "name": f"b{batch}",
        "batch": batch,
        "sum_us": total,
        "graph_us": round(total * 1.0731, 3),
        "regions": regions,
        "near_misses": misses,
        "passes": [{"name": "fold-constants", "changed": True, "rewrites": 12}],
        "memory": {
            "arena_bytes": 3 * size,
            "lower_bound_bytes": 3 * size,
            "workspace_bytes": 4096,
            "buffers": buffers,
        },
        "verification": [
            {
                "what": "random rows",
                "rows": batch,
                "max_abs_error": 0.00125,
                "max_rel_error": 0.0005,
                "min_cosine": 0.9999993,
                "passed": True,
                "detail": "",
            }
        ],
        "precision": shares,
    }


def report(names, batches, candidates=8, model="made.onnx"):
    return {
        "kind": "kiln-build-report",
        "schema": 1,
        "build": {
            "kiln_version": "0.1.0",
            "model_name": model,
            "model_hash": "00112233445566ff",
            "target": "cuda",
            "device": "NVIDIA H200",
            "compute_capability": "9.0",
            "peak_rates": PEAK,
            "precision": "fp16",
            "disabled_passes": [],
            "versions": [["CUDA Toolkit", "13.0"], ["cuDNN", "91900"]],
            "verified": True,
        },
        "points": [point(batch, names, candidates) for batch in batches],
        "weights_bytes": 219_000_000,
        "notes": ["timing cache 't.json' is damaged and was ignored"],
        "stages": [{"name": "import", "seconds": 0.5}, {"name": "tactics", "seconds": 12.25}],
    }
