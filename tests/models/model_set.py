"""The models that check.py tries, each with rows of realistic input.

    tiny()      tests/models/tiny: small exports, committed with ONNX Runtime's outputs
    drawn()     tests/models/graphs: real-size exports whose weights are drawn (weights.py)
    rapidocr()  three trained networks from a published Python package
    full()      a folder that export.py wrote
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import zipfile

import numpy as np
import onnx

import weights

HERE = pathlib.Path(__file__).resolve().parent
ROWS = 3


@dataclasses.dataclass
class Model:
    name: str
    path: pathlib.Path
    inputs: dict  # name -> array of ROWS distinct rows
    outputs: dict | None = None  # what ONNX Runtime computed when the model was exported
    max_batch: int = 4
    typical: dict | None = None  # other inputs of the kind, as a user would give to the builder

    def shapes(self):
        """The --shapes argument, or "" where only the batch axis is open."""
        graph = onnx.load(self.path, load_external_data=False).graph
        parts, is_open = [], False
        for value in graph.input:
            if value.name not in self.inputs:
                continue
            dims = value.type.tensor_type.shape.dim[1:]
            is_open |= any(d.dim_value <= 0 for d in dims)
            extents = "x".join(str(extent) for extent in self.inputs[value.name].shape[1:])
            parts.append(f"{value.name}:Bx{extents}")
        return ",".join(parts) if is_open else ""


def exported(folder, max_batch):
    listing = json.loads((folder / "models.json").read_text())
    for stem, entry in listing.items():
        inputs = dict(np.load(folder / entry["inputs_file"]))
        outputs = dict(np.load(folder / f"{stem}.outputs.npz"))
        yield Model(stem, folder / f"{stem}.onnx", inputs, outputs, max_batch)


def tiny():
    return list(exported(HERE / "tiny", max_batch=64))


def full(folder):
    return list(exported(folder, max_batch=4))


def digit_lines(height, width, count=ROWS, first=0):
    """Images [count, 3, height, width] in -1..1: lines of the demo's handwritten digits, from the
    digit `first` on."""
    digits = np.load(HERE / "../../apps/demo/test_images.npz")["image"][:, 0]
    scale = max(1, min(height, 48) // 10)
    side = 8 * scale
    images = np.ones((count, height, width), np.float32)
    chosen = first
    for row in range(count):
        # Every image has another number of digits at another place.
        for top in range(2 + row, height - side + 1, 2 * side):
            for left in range(2 + 3 * row, width - side * (1 + row % 4) + 1, side + 2):
                ink = np.kron(digits[chosen], np.ones((scale, scale), np.float32))
                images[row, top : top + side, left : left + side] -= 2 * ink
                chosen += 1
    return np.repeat(images[:, None], 3, axis=1)


def smooth_images(channels, height, width):
    """Low-frequency images of differing brightness: what a photograph looks like to a network."""
    random = np.random.RandomState(0)
    y, x = np.linspace(0, 6, height), np.linspace(0, 6, width)
    images = np.zeros((ROWS, channels, height, width))
    for _ in range(6):
        frequency, phase, gain = (random.standard_normal((2, ROWS, channels, 1)) for _ in range(3))
        column = np.sin(frequency[0] * y + phase[0]) * gain[0]
        line = np.sin(frequency[1] * x + phase[1])
        images += column[..., None] * line[..., None, :]
    images += random.standard_normal((ROWS, channels, 1, 1))
    return images.astype(np.float32)


def drawn(work):
    """Large images make the U-Net slow: few rows do."""
    models = []
    for graph in sorted((HERE / "graphs").glob("*.onnx")):
        model = onnx.load(graph)
        weights.fill(model)
        path = work / graph.name
        onnx.save(model, path)
        dims = model.graph.input[0].type.tensor_type.shape.dim
        images = smooth_images(*(d.dim_value for d in dims[1:]))
        max_batch = 1 if graph.name.startswith("unet") else 4
        models.append(Model(graph.stem, path, {model.graph.input[0].name: images}, None, max_batch))
    return models


def fetch_rapidocr():
    """The package's wheel, from the cache or the package index; None if it can't be had."""
    cache = pathlib.Path(os.environ.get("KILN_DEPS_DIR") or pathlib.Path.home() / ".cache/kiln")
    folder = cache / "rapidocr"
    if not list(folder.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--require-hashes", "-r", str(HERE / "requirements.txt"), "-d", str(folder)]
        if subprocess.run(command, check=False).returncode != 0:
            return None
    return next(folder.glob("*.whl"), None)


def rapidocr(work):
    """Detection, direction and recognition of text; [] if the package can't be had."""
    wheel = fetch_rapidocr()
    if wheel is None:
        return []
    extents = {"det": (96, 128), "cls": (48, 192), "rec": (48, 160)}
    models = []
    with zipfile.ZipFile(wheel) as archive:
        for member in sorted(name for name in archive.namelist() if name.endswith(".onnx")):
            kind = next(kind for kind in extents if f"_{kind}_" in member)
            path = work / f"rapidocr-{kind}.onnx"
            path.write_bytes(archive.read(member))
            inputs = {"x": digit_lines(*extents[kind])}
            typical = {"x": digit_lines(*extents[kind], count=8, first=150)}
            models.append(Model(f"rapidocr-{kind}", path, inputs, typical=typical))
    return models
