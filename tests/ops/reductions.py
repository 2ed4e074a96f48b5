"""Reductions, softmax and normalisations: axes from both ends, as attribute and as input."""

import numpy as np
from case import Case, tag, values

REDUCE = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"]
AXES = [None, [0], [-1], [1, 2], [-3, -1], [0, 1, 2, 3]]
INPUT_AXES_SINCE = {"Sum": 13}  # the others: 18


def reduce():
    for op in REDUCE:
        since = INPUT_AXES_SINCE.get(op, 18)
        for axes in AXES:
            for keep in (0, 1):
                for opset in (11, since):
                    label = "all" if axes is None else "_".join(map(str, axes))
                    name = f"reduce_{op}_axes{label}_keep{keep}_opset{opset}"
                    data = values(name, (2, 3, 4, 5), low=0.5 if op == "LogSum" else -2, high=2)
                    attributes, inputs = {"keepdims": keep}, [data]
                    if axes is not None and opset < since:
                        attributes["axes"] = axes
                    elif axes is not None:
                        inputs.append(np.array(axes, np.int64))
                    yield Case(name, f"Reduce{op}", inputs, attributes, opset, constants=(1,))
        for shape in ((1, 1), (3, 1025), (257, 3), (2, 33, 65)):
            for axis in (0, -1):
                name = f"reduce_{op}_{tag(shape)}_axis{axis}"
                data = values(name, shape, low=0.5, high=1.01 if op == "Prod" else 2)
                attributes = {"axes": [axis], "keepdims": 0}
                yield Case(name, f"Reduce{op}", [data], attributes, 11)
    for op in ("Sum", "Max", "Min", "Prod", "Mean"):
        for dtype in ("float16", "float64", "int32", "int64", "int8", "uint8"):
            name = f"reduce_{op}_{dtype}"
            data = values(name, (3, 4), dtype, low=0.3, high=1)
            yield Case(name, f"Reduce{op}", [data], {"axes": [1]}, 12)
    axes = np.array([], np.int64)
    for noop in (0, 1):
        attributes = {"noop_with_empty_axes": noop}
        inputs = [values("noop", (3, 4)), axes]
        yield Case(f"reduce_Sum_noop{noop}", "ReduceSum", inputs, attributes, 13, constants=(1,))
    yield Case("reduce_Sum_empty", "ReduceSum", [np.zeros((2, 0, 3), "f4")], {"axes": [1]}, 11)


def arg():
    for op in ("ArgMax", "ArgMin"):
        for axis in (0, 1, -1):
            for keep in (0, 1):
                for last in (0, 1):
                    name = f"arg_{op}_axis{axis}_keep{keep}_last{last}"
                    data = np.round(values(name, (3, 4, 9)))  # with ties
                    attributes = {"axis": axis, "keepdims": keep, "select_last_index": last}
                    yield Case(name, op, [data], attributes, 13)
    for largest in (0, 1):
        for axis in (0, 1, -1):
            name = f"arg_TopK_axis{axis}_largest{largest}"
            inputs = [values(name, (4, 5, 9)), np.array([3], np.int64)]
            attributes = {"axis": axis, "largest": largest}
            yield Case(name, "TopK", inputs, attributes, 11, 2, constants=(1,))


def softmax():
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for opset in (11, 13):
            for axis in (0, 1, 2, -1):
                name = f"softmax_{op}_axis{axis}_opset{opset}"
                yield Case(name, op, [values(name, (2, 3, 37))], {"axis": axis}, opset)
    for dtype in ("float16", "float64"):
        name = f"softmax_Softmax_{dtype}"
        yield Case(name, "Softmax", [values(name, (3, 65), dtype)], {"axis": -1}, 13)
    large = values("softmax_large", (3, 2049), low=-300, high=300)
    yield Case("softmax_Softmax_large", "Softmax", [large], {"axis": -1}, 13)
    masked = values("softmax_masked", (3, 8))
    masked[1] = np.finfo(np.float32).min  # every score masked: a uniform row, no NaN
    yield Case("softmax_Softmax_masked", "Softmax", [masked], {"axis": -1}, 13)


def norm():
    for axis in (-1, 1, 2):
        for bias in (True, False):
            name = f"norm_LayerNormalization_axis{axis}_bias{int(bias)}"
            shape = (2, 3, 33)
            scale = values(name + "s", shape[axis:])
            inputs = [values(name, shape), scale, *([values(name + "b", shape[axis:])] * bias)]
            yield Case(name, "LayerNormalization", inputs, {"axis": axis, "epsilon": 1e-3})
    for dtype in ("float16", "float64"):
        name = f"norm_LayerNormalization_{dtype}"
        inputs = [values(name, (3, 40), dtype), values(name + "s", (40,), dtype)]
        yield Case(name, "LayerNormalization", inputs)
    for shape in ((2, 6, 5), (2, 6, 5, 4), (2, 6, 3, 2, 4)):
        channel = [values(f"norm{i}", (6,), low=0.2) for i in range(4)]
        data = values("norm", shape)
        name = f"norm_BatchNormalization_{tag(shape)}"
        yield Case(name, "BatchNormalization", [data, *channel], {"epsilon": 1e-3}, 15)
        name = f"norm_InstanceNormalization_{tag(shape)}"
        yield Case(name, "InstanceNormalization", [data, *channel[:2]], {"epsilon": 1e-3})
        name = f"norm_GroupNormalization_{tag(shape)}"
        yield Case(name, "GroupNormalization", [data, *channel[:2]], {"num_groups": 3}, 21)
    for size in (1, 3, 4):
        name = f"norm_LRN_{size}"
        yield Case(name, "LRN", [values(name, (2, 7, 3, 3))], {"size": size, "alpha": 0.01})
    for axis in (0, 1, -1):
        for p in (1, 2):
            name = f"norm_LpNormalization_axis{axis}_p{p}"
            yield Case(name, "LpNormalization", [values(name, (3, 4, 5))], {"axis": axis, "p": p})
    rms = [values("rms", (2, 3, 40)), values("rmss", (40,))]
    yield Case("norm_RMSNormalization", "RMSNormalization", rms, {"epsilon": 1e-3}, 23)
    name = "norm_MeanVarianceNormalization"
    yield Case(name, "MeanVarianceNormalization", [values(name, (2, 3, 4, 5))])


def cumulative():
    for axis in (0, 1, -1):
        for exclusive in (0, 1):
            for reverse in (0, 1):
                name = f"cumsum_axis{axis}_exclusive{exclusive}_reverse{reverse}"
                inputs = [values(name, (3, 4, 5)), np.array(axis, np.int64)]
                attributes = {"exclusive": exclusive, "reverse": reverse}
                yield Case(name, "CumSum", inputs, attributes, 14, constants=(1,))


def cases():
    for family in (reduce, arg, softmax, norm, cumulative):
        yield from family()
