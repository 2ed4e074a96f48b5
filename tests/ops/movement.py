"""Operations that move elements: slices, gathers, scatters, pads, reshapes, resizes."""

import itertools

import numpy as np
from case import Case, tag, values


def ints(*numbers):
    return np.array(numbers, np.int64)


def slices():
    table = [
        ("plain", [1], [3], [1], [1]),
        ("negative_step", [-1], [-9], [0], [-1]),
        ("step2", [0], [7], [2], [2]),
        ("step_minus2", [5], [0], [2], [-2]),
        ("far_end", [1], [2**62], [1], [1]),
        ("two_axes", [0, -3], [2, -1], [-2, -1], [1, 1]),
        ("empty", [3], [1], [2], [1]),
        ("far_start", [-(2**62)], [4], [2], [3]),
    ]
    for label, starts, ends, axes, steps in table:
        data = values(label, (3, 4, 7))
        arguments = [ints(*part) for part in (starts, ends, axes, steps)]
        name = f"slice_{label}"
        yield Case(name, "Slice", [data, *arguments], {}, 13, constants=(1, 2, 3, 4))
        if all(step == 1 for step in steps):
            attributes = {"starts": starts, "ends": ends, "axes": axes}
            yield Case(f"{name}_opset9", "Slice", [data], attributes, 9)


def transposes():
    for perm in itertools.permutations(range(3)):
        name = f"transpose_{''.join(map(str, perm))}"
        yield Case(name, "Transpose", [values(name, (3, 5, 33))], {"perm": list(perm)})
    for perm in ((0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 3, 2)):
        for dtype in ("float32", "int64", "bool", "float16", "int8"):
            name = f"transpose_{''.join(map(str, perm))}_{dtype}"
            yield Case(name, "Transpose", [values(name, (2, 3, 4, 5), dtype)], {"perm": list(perm)})
    yield Case("transpose_default", "Transpose", [values("transpose", (2, 3, 4))])


def shapes():
    for label, target, allow in (
        ("infer", [-1, 6], 0),
        ("zero_copies", [0, -1], 0),
        ("scalar_like", [1, 24], 0),
        ("higher", [2, 1, 3, 2, 2], 0),
    ):
        inputs = [values(label, (2, 3, 4)), ints(*target)]
        yield Case(f"reshape_{label}", "Reshape", inputs, {"allowzero": allow}, 14, constants=(1,))
    inputs = [values("empty", (0, 3)), ints(3, 0)]
    yield Case("reshape_allowzero", "Reshape", inputs, {"allowzero": 1}, 14, constants=(1,))
    for axis in (-3, -1, 0, 1, 2, 3):
        name = f"flatten_{axis}"
        yield Case(name, "Flatten", [values(name, (2, 3, 4))], {"axis": axis})
    for axes in ([0], [-1], [0, 2], [1, -1]):
        label = "_".join(map(str, axes))
        data = values("unsqueeze", (3, 4))
        name = f"unsqueeze_{label}"
        yield Case(f"{name}_opset11", "Unsqueeze", [data], {"axes": axes}, 11)
        yield Case(f"{name}_opset13", "Unsqueeze", [data, ints(*axes)], {}, 13, constants=(1,))
    data = values("squeeze", (1, 3, 1, 4))
    yield Case("squeeze_all", "Squeeze", [data], {}, 13)
    yield Case("squeeze_opset11", "Squeeze", [data], {"axes": [-2]}, 11)
    yield Case("squeeze_opset13", "Squeeze", [data, ints(0, 2)], {}, 13, constants=(1,))
    for shape in ((3, 4), (2, 1, 4), (1,), (2, 3, 1)):
        name = f"expand_{tag(shape)}"
        yield Case(name, "Expand", [values(name, (3, 1)), ints(*shape)], constants=(1,))
    for repeats in ((1, 1), (2, 3), (0, 2)):
        name = f"tile_{tag(repeats)}"
        yield Case(name, "Tile", [values(name, (3, 5)), ints(*repeats)], constants=(1,))


def joins():
    for axis in (0, 1, -1):
        for dtype in ("float32", "int64", "bool"):
            name = f"concat_axis{axis}_{dtype}"
            parts = [(2, 3, 4)] * 3
            parts[1] = tuple(7 if d == axis % 3 else n for d, n in enumerate(parts[1]))
            inputs = [values(f"{name}{i}", shape, dtype) for i, shape in enumerate(parts)]
            yield Case(name, "Concat", inputs, {"axis": axis})
    for axis in (0, 1, -1):
        data = values("split", (6, 9, 12))
        name = f"split_axis{axis}"
        yield Case(f"{name}_equal", "Split", [data], {"axis": axis}, 13, 3)
        sizes = {0: (1, 2, 3), 1: (4, 4, 1), -1: (2, 0, 10)}[axis]
        yield Case(f"{name}_opset11", "Split", [data], {"axis": axis, "split": list(sizes)}, 11, 3)
        inputs = [data, ints(*sizes)]
        yield Case(f"{name}_opset13", "Split", inputs, {"axis": axis}, 13, 3, constants=(1,))
        attributes = {"axis": axis, "num_outputs": 4}
        yield Case(f"{name}_uneven", "Split", [data], attributes, 18, 4)


def gathers():
    for axis in (0, 1, -1):
        for index in (2, [0, -1], [[1, 0], [-2, 2]]):
            name = f"gather_axis{axis}_{np.ndim(index)}d"
            for kind in ("int32", "int64"):
                inputs = [values(name, (3, 4, 5)), np.array(index, kind)]
                yield Case(f"{name}_{kind}", "Gather", inputs, {"axis": axis})
        name = f"gatherelements_axis{axis}"
        index = np.random.RandomState(axis + 3).randint(-3, 3, (3, 2, 3))
        yield Case(name, "GatherElements", [values(name, (3, 4, 5)), index], {"axis": axis})
    for batch in (0, 1):
        index = np.array([[[0, 1], [2, -1]], [[1, 1], [0, 0]], [[2, 3], [1, 2]]], np.int64)
        name = f"gathernd_batch{batch}"
        data = values(name, (3, 3, 4, 5) if batch else (3, 4, 5))
        yield Case(name, "GatherND", [data, index], {"batch_dims": batch})


def scatters():
    for reduction in ("none", "add", "mul", "max", "min"):
        index = ints(0, 2, -1, 1).reshape(4, 1)
        name = f"scatternd_{reduction}"
        inputs = [values(name, (5, 3)), index, values(name + "u", (4, 3))]
        yield Case(name, "ScatterND", inputs, {"reduction": reduction}, 18)
        for axis in (0, -1):
            name = f"scatterelements_{reduction}_axis{axis}"
            index = np.array([[0, 1, 2], [3, 2, 1]]) if axis else np.array([[0, 1, 2], [3, 4, 0]])
            inputs = [values(name, (5, 4)), index, values(name + "u", (2, 3))]
            yield Case(name, "ScatterElements", inputs, {"axis": axis, "reduction": reduction}, 18)


def pads():
    for mode in ("constant", "reflect", "edge", "wrap"):
        for label, amounts in (("one", [0, 1, 1, 0, 1, 1]), ("uneven", [0, 2, 0, 0, 1, 3])):
            name = f"pad_{mode}_{label}"
            inputs = [values(name, (2, 4, 5)), ints(*amounts)]
            yield Case(name, "Pad", inputs, {"mode": mode}, 19, constants=(1,))
    inputs = [values("pad_negative", (2, 4, 5)), ints(0, -1, 2, 0, 1, -2), np.float32(7)]
    yield Case("pad_negative", "Pad", inputs, {}, 13, constants=(1, 2))
    inputs = [values("pad_axes", (2, 4, 5)), ints(1, 2), None, ints(-1)]
    yield Case("pad_axes", "Pad", inputs, {}, 18, constants=(1, 3))
    attributes = {"pads": [1, 0, 0, 2], "value": 1.5}
    yield Case("pad_opset2", "Pad", [values("pad2", (3, 4))], attributes, 10)


def rearrangements():
    for mode in ("DCR", "CRD"):
        attributes = {"blocksize": 2, "mode": mode}
        name = f"depthtospace_{mode}"
        yield Case(name, "DepthToSpace", [values(name, (2, 8, 3, 4))], attributes)
    name = "spacetodepth"
    yield Case(name, "SpaceToDepth", [values(name, (2, 3, 4, 6))], {"blocksize": 2})
    for upper, k in itertools.product((0, 1), (-7, -1, 0, 2, 7)):
        name = f"trilu_upper{upper}_k{k}"
        inputs = [values(name, (2, 4, 5)), np.array(k, np.int64)]
        yield Case(name, "Trilu", inputs, {"upper": upper}, 14, constants=(1,))
    for axis in (0, 1, -1):
        inputs = [ints(1, -1, 5, 2), ints(4), np.array([0.5, 2.0], "f4")]
        name = f"onehot_axis{axis}"
        yield Case(name, "OneHot", inputs, {"axis": axis}, 11, constants=(1, 2))
    for start, limit, step in ((0, 5, 1), (2, 17, 4), (9, 1, -3), (4, 4, 1)):
        inputs = [np.array(x, np.int64) for x in (start, limit, step)]
        name = f"range_{start}_{limit}_{step}".replace("-", "m")
        yield Case(name, "Range", inputs, {}, 11, constants=(0, 1, 2))


def resizes():
    coordinates = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    for mode, place in itertools.product(("nearest", "linear", "cubic"), coordinates):
        for label, scales in (
            ("up", (1, 1, 2, 2)),
            ("down", (1, 1, 0.6, 0.6)),
            ("odd", (1, 1, 1.7, 3)),
        ):
            if place == "align_corners" and label != "up":
                continue  # ONNX Runtime and ONNX's own tests differ for a fractional extent
            name = f"resize_{mode}_{place}_{label}"
            inputs = [values(name, (1, 2, 5, 6)), None, np.array(scales, "f4")]
            attributes = {"mode": mode, "coordinate_transformation_mode": place}
            yield Case(name, "Resize", inputs, attributes, 13, constants=(2,))
        name = f"resize_{mode}_{place}_sizes"
        inputs = [values(name, (1, 2, 5, 6)), None, None, ints(1, 2, 8, 4)]
        attributes = {"mode": mode, "coordinate_transformation_mode": place}
        yield Case(name, "Resize", inputs, attributes, 13, constants=(3,))
    for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        inputs = [values("nearest", (1, 1, 4, 4)), None, np.array((1, 1, 1.5, 2.5), "f4")]
        attributes = {"mode": "nearest", "nearest_mode": rounding}
        yield Case(f"resize_{rounding}", "Resize", inputs, attributes, 13, constants=(2,))
    inputs = [values("upsample", (1, 2, 3, 4)), np.array((1, 1, 2, 3), "f4")]
    yield Case("resize_Upsample", "Upsample", inputs, {"mode": "nearest"}, 9, constants=(1,))


def cases():
    families = (slices, transposes, shapes, joins, gathers, scatters, pads, rearrangements, resizes)
    for family in families:
        yield from family()
