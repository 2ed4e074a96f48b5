"""What a family of cases yields."""

import dataclasses
import zlib

import numpy as np


@dataclasses.dataclass
class Case:
    """One node, or with `text` a whole model in ONNX's text form."""

    name: str
    op: str
    inputs: list  # arrays; None for an omitted optional input
    attributes: dict = dataclasses.field(default_factory=dict)
    opset: int = 17
    outputs: int = 1
    constants: tuple = ()  # positions of inputs that are initializers
    text: str = ""


def random(name):
    """The generator of a case: values do not depend on which other cases are written."""
    return np.random.RandomState(zlib.crc32(name.encode()))


def values(name, shape, dtype="float32", low=-3.0, high=3.0):
    """Uniform values of any element type; integers are drawn within the bounds too."""
    generator, dtype = random(name), np.dtype(dtype)
    if dtype == np.bool_:
        return np.asarray(generator.uniform(size=shape) < 0.5)
    if dtype.kind == "u":
        low = max(low, 0)
    drawn = generator.uniform(low, high, size=shape)
    return np.asarray(np.round(drawn * 4) if dtype.kind in "iu" else drawn).astype(dtype)


def tag(shape):
    return "x".join(map(str, shape)) if len(shape) else "scalar"
