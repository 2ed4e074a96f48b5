"""Real-size graphs without their weights, so that the repository can hold them.

    python3 weights.py strip MODEL.onnx GRAPH.onnx     drop the large weights, keep their statistics
    python3 weights.py fill GRAPH.onnx MODEL.onnx      draw weights with those statistics

Each large float initializer is replaced by its mean and its standard deviation (for every output
channel), from which `fill` draws the same values everywhere: NumPy keeps the stream of RandomState
for all time. The graph, which is what an exporter is tested for, stays as exported.
"""

import sys
import zlib

import numpy as np
import onnx
from onnx import numpy_helper

LARGE = 1024  # elements
MARK = "kiln.drawn:"


def strip(model):
    """Replaces every large float initializer by two small ones, its mean and deviation."""
    kept = []
    for tensor in model.graph.initializer:
        value = numpy_helper.to_array(tensor)
        if value.dtype != np.float32 or value.size < LARGE or value.ndim < 2:
            kept.append(tensor)
            continue
        axes = tuple(range(1, value.ndim))
        spread = np.stack([value.mean(axes), value.std(axes)])
        kept.append(numpy_helper.from_array(spread, MARK + tensor.name))
        note = model.metadata_props.add()
        note.key, note.value = MARK + tensor.name, ",".join(map(str, value.shape))
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)


def fill(model):
    """The inverse: draws what `strip` dropped."""
    shapes = {note.key: note.value for note in model.metadata_props}
    for tensor in model.graph.initializer:
        if not tensor.name.startswith(MARK):
            continue
        shape = tuple(map(int, shapes[tensor.name].split(",")))
        name = tensor.name.removeprefix(MARK)
        column = (-1,) + (1,) * (len(shape) - 1)
        mean, deviation = numpy_helper.to_array(tensor).reshape((2,) + column)
        noise = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape)
        axes = tuple(range(1, len(shape)))
        # Exact moments: a shifted mean would meet a bias that was fitted to the dropped weights.
        noise -= noise.mean(axes, keepdims=True)
        noise /= np.maximum(noise.std(axes, keepdims=True), 1e-12)
        tensor.CopyFrom(numpy_helper.from_array((mean + deviation * noise).astype("f4"), name))
    del model.metadata_props[:]


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("strip", "fill"):
        sys.exit(__doc__)
    model = onnx.load(sys.argv[2])
    (strip if sys.argv[1] == "strip" else fill)(model)
    onnx.save(model, sys.argv[3])


if __name__ == "__main__":
    main()
