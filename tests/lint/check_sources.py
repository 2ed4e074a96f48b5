"""Checks what no compiler does: include arrows between the rooms, file names, file lengths.

Usage: check_sources.py REPOSITORY_ROOT. Prints every fault; exits 1 when there is one.
"""
import pathlib
import re
import sys

MAX_LINES = 400
BANNED_STEMS = {"util", "utils", "common", "helper", "helpers", "manager", "misc"}
SUFFIXES = {".h", ".cc", ".c", ".cuh", ".js", ".css"}
ROOMS = ("formats", "engine", "builder", "calibration", "plugins", "apps", "tests")

# What each room may include: rooms, or "ROOM/*" for a room's public headers only.
ARROWS = {
    "formats": {"formats"},
    "engine": {"engine", "formats", "plugins/*"},
    "engine/host": {"engine/host", "engine/*", "formats"},
    "builder": {"builder", "engine/*", "formats", "plugins/*"},
    "calibration": {"calibration", "engine/*", "formats"},
    "plugins": {"plugins"},
    "apps": {"apps", "builder/*", "calibration/*", "engine/*", "formats", "plugins/*"},
    "tests": set(ROOMS),
}
# Dependencies that only some places may see.
CONFINED = {
    r"(onnx|google/protobuf)/": ("formats/onnx/", "tests/formats/onnx/"),
    r"(oneapi/|dnnl)": ("engine/host/",),
    r"spdlog/": ("builder/", "apps/"),
    r"CLI/": ("apps/", "tests/conformance/", "tests/bench/"),
    r"(cuda|cublas|cudnn|nvrtc)": ("engine/cuda/", "engine/steps/", "builder/", "tests/"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def room_of(path):
    if path.startswith("engine/host/"):
        return "engine/host"
    return path.split("/")[0]


def is_public(path):
    return path.count("/") == 1 and path.endswith(".h")


def allowed(room, path, target):
    rules = ARROWS[room]
    # Tactics for the GPU are made with the device and the handles that steps run on.
    if room == "builder" and "/cuda/" in path and target.startswith("engine/cuda/"):
        return True
    if room_of(target) in rules or target.split("/")[0] in rules and room != "engine":
        return True
    if room == "engine" and target.startswith("engine/") and room_of(target) == "engine":
        return True
    return is_public(target) and target.split("/")[0] + "/*" in rules


def include_faults(path, line, quote, target):
    own = quote == '"'
    if own and target.split("/")[0] not in ROOMS:
        yield f'{path}:{line}: "{target}" is not rooted at the repository; use <> for a dependency'
        return
    if not own:
        for pattern, places in CONFINED.items():
            if re.match(pattern, target) and not path.startswith(places):
                yield f"{path}:{line}: <{target}> may be included only below {', '.join(places)}"
        if is_public(path) and path.split("/")[0] not in ("apps", "tests"):
            if "/" in target or "." in target and not target.startswith("std"):
                yield f"{path}:{line}: <{target}> in a public header, which may include only the standard library"
        return
    room = room_of(path)
    if not allowed(room, path, target):
        yield f"{path}:{line}: {room}/ may not include {target}"
    elif is_public(path) and room in ("formats", "engine", "builder", "calibration"):
        if not is_public(target):
            yield f"{path}:{line}: a public header may not include the private {target}"


def file_faults(root, file):
    path = file.relative_to(root).as_posix()
    lines = file.read_text(encoding="utf-8").splitlines()
    if file.stem.lower() in BANNED_STEMS:
        yield f"{path}: the name '{file.stem}' tells nothing; name the one concept inside"
    if len(lines) > MAX_LINES:
        yield f"{path}: {len(lines)} lines; at most {MAX_LINES}, split it by concept"
    for number, text in enumerate(lines, 1):
        match = INCLUDE.match(text)
        if match:
            yield from include_faults(path, number, match[1], match[2])


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    files = [f for room in ROOMS for f in sorted((root / room).rglob("*")) if f.suffix in SUFFIXES]
    faults = [fault for file in files for fault in file_faults(root, file)]
    print("\n".join(faults + [f"{len(files)} files, {len(faults)} faults"]))
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
