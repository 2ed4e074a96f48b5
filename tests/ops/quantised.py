"""Products of dequantised 8-bit floats, which become products of the codes, and near misses.

All numbers are small whole ones times powers of two: sums are exact in f32 in any order, so that
what is quantised behind a product rounds the same way everywhere.
"""

import numpy as np
from case import Case, random

M, K, N = 6, 48, 32  # weights too large for import to fold
FLOAT8E4M3FN = 17


def numbers(array):
    return ", ".join(repr(float(x)) for x in np.ravel(array))


def initializer(name, array, kind="float"):
    shape = f"[{', '.join(map(str, array.shape))}]" if array.ndim else ""
    values = f"{{{numbers(array)}}}" if array.ndim else f"{{{float(array)!r}}}"
    return f"{kind}{shape} {name} = {values}"


def whole(name, shape, most):
    return random(name).randint(-most, most + 1, size=shape).astype(np.float32)


def model(name, inputs, constants, body):
    declared = ", ".join(f"float[{', '.join(map(str, v.shape))}] {k}" for k, v in inputs.items())
    constants = ", ".join(initializer(key, value) for key, value in constants.items())
    text = '<ir_version: 9, opset_import: ["" : 19]>\n'
    text += f"main ({declared.replace('[] ', ' ')}) => (y) <{constants}> {{\n  {body}\n}}"
    return Case(name, "", list(inputs.values()), text=text)


ZERO = f"zf = Constant<value = float {{0.0}}>() z = Cast<to = {FLOAT8E4M3FN}>(zf)"
X = "xq = QuantizeLinear(x, xs, z) xd = DequantizeLinear(xq, xs, z)"


def powers(name, count):
    return np.float32(2.0) ** random(name).randint(-3, 2, size=count).astype(np.float32)


def weights(axis, channels, stored):
    """Their Q and DQ, or DQ alone of stored codes; `channels`: a scale and zero point each."""
    zeros = f"wz = Cast<to = {FLOAT8E4M3FN}>(wzf)"
    form = f"<axis = {axis}>" if channels else ""
    codes = f"Cast<to = {FLOAT8E4M3FN}>(w)" if stored else f"QuantizeLinear{form}(w, ws, wz)"
    return f"{zeros} wq = {codes} wd = DequantizeLinear{form}(wq, ws, wz)"


def product(
    name, code, *, channels=True, stored=False, turned=False, axis=None, k=K, n=N, more=None
):
    """x [M, k] times w; `code` makes y of xd and wd."""
    axis = (0 if turned else 1) if axis is None else axis
    shape = (n, k) if turned else (k, n)
    scale = powers(name + "s", shape[axis]) if channels else np.float32(0.25)
    constants = {
        "w": whole(name + "w", shape, 15),
        "ws": np.asarray(scale),
        "wzf": np.zeros_like(np.asarray(scale)),
        "xs": np.float32(0.5),
    }
    constants.update(more or {})
    body = " ".join([ZERO, X, weights(axis, channels, stored), code])
    return model(name, {"x": whole(name + "x", (M, k), 12)}, constants, body)


def end(name):
    return {"b": whole(name + "b", (N,), 9), "ys": np.float32(64), "zero": np.float32(0)}


def cases():
    plain = "y = MatMul(xd, wd)"
    name = "pattern_fp8_"
    for channels in (False, True):
        for stored in (False, True):
            which = ("channel" if channels else "tensor") + ("_stored" if stored else "")
            yield product(name + which, plain, channels=channels, stored=stored)
    yield product(name + "gemm", "y = Gemm<transB = 1>(xd, wd, b)", turned=True, more=end("gemm"))
    yield product(
        name + "turned", "t = Transpose<perm = [1, 0]>(wd) y = MatMul(xd, t)", turned=True
    )
    yield product(
        name + "bias_relu", "m = MatMul(xd, wd) s = Add(m, b) y = Relu(s)", more=end("bias_relu")
    )
    quantised = "yq = QuantizeLinear({}, ys, z) y = DequantizeLinear(yq, ys, z)"
    yield product(
        name + "quantised", "m = MatMul(xd, wd) " + quantised.format("m"), more=end("quantised")
    )
    yield product(
        name + "bias_relu_quantised",
        "m = MatMul(xd, wd) s = Add(m, b) r = Relu(s) " + quantised.format("r"),
        more=end("bias_relu_quantised"),
    )
    yield product(name + "odd", plain, k=77, n=19)
    yield product(
        name + "read_twice",
        "m = MatMul(xd, wd) n = MatMul(xd, wd) s = Relu(n) y = Add(m, s)",
    )
    yield product(name + "also_read_wide", "m = MatMul(xd, wd) t = ReduceSum(xd) y = Add(m, t)")
    # Near misses: a scale along the axis that is summed over, one known at run time, weights alone.
    yield product(name + "scale_a_row", plain, axis=0)
    scaled = product(name + "scale_at_run_time", plain)
    text = scaled.text.replace("] x)", "] x, float xs)", 1)
    text = text.replace(", float xs = {0.5}", "", 1)
    yield Case(scaled.name, "", [*scaled.inputs, np.asarray(0.5, np.float32)], text=text)
    yield product(name + "weights_alone", "y = MatMul(x, wd)")
