"""MatMul, Gemm, Einsum, convolutions and pools: odd extents, groups, strides, dilations, pads."""

import itertools

import numpy as np
from case import Case, tag, values

MATMUL = [
    ((5, 7), (7, 3)),
    ((7,), (7, 3)),
    ((5, 7), (7,)),
    ((7,), (7,)),
    ((33, 65), (65, 129)),
    ((1, 257), (257, 1)),
    ((2, 3, 4), (4, 5)),
    ((2, 1, 3, 4), (5, 4, 6)),
    ((3, 4), (2, 4, 5)),
    ((0, 4), (4, 3)),
    ((3, 0), (0, 5)),
]


def matmul():
    for a, b in MATMUL:
        name = f"matmul_{tag(a)}_{tag(b)}"
        yield Case(name, "MatMul", [values(name + "a", a), values(name + "b", b)])
        name += "_constant"
        pair = [values(name + "a", a), values(name + "b", b)]
        yield Case(name, "MatMul", pair, constants=(1,))
    for dtype in ("float16", "float64", "int32", "int64", "uint32"):
        name = f"matmul_{dtype}"
        yield Case(name, "MatMul", [values(name + "a", (5, 9), dtype), values(name, (9, 4), dtype)])
    for a, b in itertools.product((0, 1), repeat=2):
        for c in (None, (), (1,), (6,), (5, 1), (1, 6), (5, 6)):
            name = f"gemm_trans{a}{b}_c{'none' if c is None else tag(c)}"
            left = values(name + "a", (9, 5) if a else (5, 9))
            right = values(name + "b", (6, 9) if b else (9, 6))
            inputs = [left, right] + ([] if c is None else [values(name + "c", c)])
            attributes = {"transA": a, "transB": b, "alpha": 0.5, "beta": 2.0}
            yield Case(name, "Gemm", inputs, attributes, 13)
    shapes = {"i": 2, "j": 3, "k": 4, "b": 2, "h": 3}
    for equation in ("ij,jk->ik", "bij,bjk->bik", "ij->ji", "ii->i", "ij->", "bhik,bhjk->bhij",
                     "i,j->ij", "...ij,...jk->...ik", "ij,kj,hj->ikh"):  # fmt: skip
        name = "einsum_" + equation.replace(",", "_").replace("->", "_to_").replace("...", "E")
        operands = equation.split("->")[0].split(",")
        inputs = []
        for n, operand in enumerate(operands):
            shape = [2] * operand.count("...") + [shapes[x] for x in operand if x != "."]
            inputs.append(values(f"{name}{n}", tuple(shape)))
        yield Case(name, "Einsum", inputs, {"equation": equation})


def convolution():
    sides = {1: (11,), 2: (9, 11), 3: (5, 6, 7)}
    grid = itertools.product((1, 2, 3), (1, 3), (1, 2), (1, 2), (0, 1), (1, 2, 4))
    for rank, kernel, stride, dilation, pad, groups in grid:
        if rank == 3 and (dilation == 2 or groups == 2):
            continue
        name = f"conv_{rank}d_k{kernel}_s{stride}_d{dilation}_p{pad}_g{groups}"
        x = values(name, (2, 4, *sides[rank]))
        w = values(name + "w", (8, 4 // groups, *[kernel] * rank))
        inputs = [x, w] + [values(name + "b", (8,))] * (stride == 1)
        attributes = {"strides": [stride] * rank, "dilations": [dilation] * rank, "group": groups}
        attributes["pads"] = [pad] * (2 * rank)
        yield Case(name, "Conv", inputs, attributes, 11, constants=(1, 2))
    for mode in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        for stride in (1, 2, 3):
            name = f"conv_{mode}_s{stride}"
            inputs = [values(name, (1, 3, 8, 9)), values(name + "w", (2, 3, 3, 2))]
            attributes = {"auto_pad": mode, "strides": [stride, stride]}
            yield Case(name, "Conv", inputs, attributes, 11)
    name = "conv_asymmetric"
    inputs = [values(name, (1, 3, 8, 9)), values(name + "w", (2, 3, 3, 5))]
    yield Case(name, "Conv", inputs, {"pads": [0, 1, 2, 3], "strides": [2, 1]}, 11)


def transposed():
    grid = itertools.product((1, 2), (2, 3), (1, 2, 3), (0, 1), (0, 1), (1, 2))
    for rank, kernel, stride, pad, extra, groups in grid:
        if extra >= stride:
            continue
        name = f"convtranspose_{rank}d_k{kernel}_s{stride}_p{pad}_o{extra}_g{groups}"
        x = values(name, (2, 4, *(5, 6)[:rank]))
        w = values(name + "w", (4, 3, *[kernel] * rank))
        attributes = {"strides": [stride] * rank, "pads": [pad] * (2 * rank), "group": groups}
        attributes["output_padding"] = [extra] * rank
        yield Case(name, "ConvTranspose", [x, w], attributes, 11)


def pool():
    grid = itertools.product(("MaxPool", "AveragePool"), (1, 2, 3), (2, 3), (1, 2), (0, 1), (0, 1))
    for op, rank, kernel, stride, pad, ceil in grid:
        name = f"pool_{op}_{rank}d_k{kernel}_s{stride}_p{pad}_ceil{ceil}"
        attributes = {"kernel_shape": [kernel] * rank, "strides": [stride] * rank}
        attributes |= {"pads": [pad] * (2 * rank), "ceil_mode": ceil}
        x = values(name, (2, 3, *(7, 8, 5)[:rank]))
        yield Case(name, op, [x], attributes, 19)
        if op == "AveragePool" and pad:
            attributes = attributes | {"count_include_pad": 1}
            yield Case(name + "_include", op, [x], attributes, 19)
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        for shape in ((2, 3, 7), (2, 3, 7, 5), (2, 3, 4, 5, 6)):
            name = f"pool_{op}_{tag(shape)}"
            yield Case(name, op, [values(name, shape)])
    x = values("pool_dilated", (1, 2, 9, 9))
    attributes = {"kernel_shape": [3, 3], "dilations": [2, 2]}
    yield Case("pool_MaxPool_dilated", "MaxPool", [x], attributes, 12)
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    yield Case("pool_MaxPool_indices", "MaxPool", [x], attributes, 12, 2)


def cases():
    for family in (matmul, convolution, transposed, pool):
        yield from family()
