"""Unary, binary and variadic operations: element types, broadcasts, odd extents."""

import numpy as np
from case import Case, tag, values

UNARY = "Abs Neg Sign Ceil Floor Round Exp Sqrt Log Reciprocal Sin Cos Tan Asin Acos Atan Sinh Cosh"
UNARY += " Asinh Acosh Atanh Tanh Sigmoid Relu Softplus Softsign Erf Elu Selu Celu LeakyRelu"
UNARY += " ThresholdedRelu HardSigmoid HardSwish Mish Identity IsNaN IsInf Gelu Swish Shrink"
DOMAIN = {"Log": (0.1, 4), "Sqrt": (0, 4), "Reciprocal": (0.2, 4), "Asin": (-0.9, 0.9)}
DOMAIN |= {"Acos": (-0.9, 0.9), "Atanh": (-0.9, 0.9), "Acosh": (1.1, 4)}
OPSETS = {"Mish": 18, "Gelu": 20, "Swish": 24}
ATTRIBUTES = {"Elu": {"alpha": 0.7}, "LeakyRelu": {"alpha": 0.2}, "Shrink": {"lambd": 0.7}}
SHAPES = [(), (1,), (7,), (2, 3, 17), (0, 4)]
PAIRS = [
    ((3, 5), (3, 5)),
    ((3, 5), (5,)),
    ((3, 1), (1, 5)),
    ((), (3, 5)),
    ((2, 3, 4, 5), (3, 1, 5)),
    ((2, 1, 4, 1), (3, 1, 5)),
    ((0, 4), (1, 1)),
    ((1, 1, 1), (1,)),
]
NUMERIC = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint32"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def unary():
    for op in UNARY.split():
        low, high = DOMAIN.get(op, (-3, 3))
        for shape in SHAPES:
            name = f"unary_{op}_{tag(shape)}"
            data = values(name, shape, low=low, high=high)
            yield Case(name, op, [data], ATTRIBUTES.get(op, {}), OPSETS.get(op, 17))
        for dtype in ("float16", "float64"):
            name = f"unary_{op}_{dtype}"
            data = values(name, (3, 7), dtype, low, high)
            yield Case(name, op, [data], ATTRIBUTES.get(op, {}), OPSETS.get(op, 17))
    for op in ("Abs", "Neg", "Sign", "Relu"):
        for dtype in INTEGERS:
            name = f"unary_{op}_{dtype}"
            yield Case(name, op, [values(name, (3, 7), dtype)])
    for dtype in INTEGERS:
        name = f"unary_BitwiseNot_{dtype}"
        yield Case(name, "BitwiseNot", [values(name, (3, 7), dtype)], {}, 18)
    yield Case("unary_Not_bool", "Not", [values("not", (3, 7), "bool")])


def special_values():
    """NaN, infinities and signed zeros, where operations like to go their own way."""
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3e38, -3e38, 1e-40], "f4")
    skip = {"Sin", "Cos", "Tan", "Ceil", "Floor", "Round"}
    for op in UNARY.split():
        if op not in skip:
            yield Case(f"special_{op}", op, [special], {}, OPSETS.get(op, 17))
    left, right = (a.ravel() for a in np.meshgrid(special, special))
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Less", "GreaterOrEqual"):
        yield Case(f"special_{op}", op, [left, right])


def binary():
    for op in ("Add", "Sub", "Mul", "Div", "Equal", "Less", "GreaterOrEqual", "Max", "Min"):
        for a, b in PAIRS:
            name = f"binary_{op}_{tag(a)}_{tag(b)}"
            yield Case(name, op, [values(name + "a", a), values(name + "b", b, low=0.5)])
        for dtype in NUMERIC:
            name = f"binary_{op}_{dtype}"
            right = values(name + "b", (3, 1), dtype, low=1)
            yield Case(name, op, [values(name + "a", (2, 1, 5), dtype), right])
    for op in ("And", "Or", "Xor"):
        for a, b in PAIRS[:5]:
            name = f"binary_{op}_{tag(a)}_{tag(b)}"
            yield Case(name, op, [values(name + x, s, "bool") for x, s in (("a", a), ("b", b))])
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        for dtype in INTEGERS:
            name = f"binary_{op}_{dtype}"
            pair = [values(name + x, s, dtype) for x, s in (("a", (3, 5)), ("b", (5,)))]
            yield Case(name, op, pair, {}, 18)
    for base, exponent in (("float32", "int64"), ("float32", "float32"), ("int32", "int32")):
        name = f"binary_Pow_{base}_{exponent}"
        right = values(name + "b", (5,), exponent, low=0, high=0.7)
        yield Case(name, "Pow", [values(name + "a", (3, 5), base, low=0.5), right])
    for dtype in ("int8", "int64", "uint8", "float32"):
        for fmod in (0, 1):
            name = f"binary_Mod_{dtype}_{fmod}"
            pair = [values(name + "a", (3, 5), dtype), values(name + "b", (5,), dtype, low=1)]
            yield Case(name, "Mod", pair, {"fmod": fmod})


def variadic():
    for op in ("Max", "Min", "Sum", "Mean"):
        for count in (1, 3, 4):
            name = f"variadic_{op}_{count}"
            shapes = [(2, 3, 5), (5,), (3, 1), (1,)][:count]
            yield Case(name, op, [values(f"{name}{i}", s) for i, s in enumerate(shapes)])
    for dtype in NUMERIC + ["bool"]:
        name = f"variadic_Where_{dtype}"
        branches = [values(name + "a", (3, 1), dtype), values(name + "b", (2, 1, 5), dtype)]
        yield Case(name, "Where", [values(name, (5,), "bool"), *branches])
    for dtype in ("float16", "float32", "float64", "int8", "int32", "int64", "uint8"):
        for bounds in ("both", "low", "high", "none"):
            name = f"variadic_Clip_{dtype}_{bounds}"
            least = np.array(1 if dtype[0] == "u" else -2, dtype)
            low = least if bounds in ("both", "low") else None
            high = np.array(4, dtype) if bounds in ("both", "high") else None
            data = values(name, (3, 7), dtype)
            yield Case(name, "Clip", [data, low, high], {}, 13, constants=(1, 2))
    data = values("clip6", (3, 7))
    yield Case("variadic_Clip_opset6", "Clip", [data], {"min": -1.0, "max": 2.0}, 10)
    slope = values("slope", (3, 1, 1), low=0.1, high=0.5)
    yield Case("variadic_PRelu_channel", "PRelu", [values("prelu", (2, 3, 4, 5)), slope])


def casts():
    types = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"]
    codes = dict(zip(types, (10, 1, 11, 3, 6, 7, 2, 9)))
    for source in types:
        for target in types:
            name = f"cast_{source}_{target}"
            low = 0 if "uint" in target else -20  # negative to unsigned is undefined
            data = values(name, (3, 9), source, low=low, high=20)
            yield Case(name, "Cast", [data], {"to": codes[target]}, 13)


def cases():
    for family in (unary, special_values, binary, variadic, casts):
        yield from family()
