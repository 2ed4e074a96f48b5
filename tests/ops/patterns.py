"""Subgraphs that passes rewrite, in the spellings that models bring, and near misses of them."""

import itertools

import numpy as np
from case import Case, values

B, S, H, D = 2, 6, 2, 8  # rows, tokens, heads, extent of a head
W = H * D


def number(value):
    return f"Constant<value = float {{{value}}}>()"


def vector(*elements):
    return f"Constant<value = int64[{len(elements)}] {{{', '.join(map(str, elements))}}}>()"


def model(name, inputs, output, body, opset=17):
    """`inputs`: name -> array; `body`: statements in ONNX's text form."""
    kinds = {"float32": "float", "int64": "int64", "bool": "bool", "float16": "float16"}

    def declare(key, value):
        return f"{kinds[str(value.dtype)]}[{', '.join(map(str, value.shape))}] {key}"

    declared = ", ".join(declare(key, value) for key, value in inputs.items())
    text = f'<ir_version: 8, opset_import: ["" : {opset}]>\n'
    text += f"main ({declared}) => ({output}) {{\n  {body}\n}}"
    return Case(name, "", list(inputs.values()), text=text)


def attention():
    """Spelled-out attention: where the scale is, what the mask is, how heads are laid out."""
    scales = {
        "mul_after": ("q = Identity(qh) kt = Identity(kth)", "c = {c} s = Mul(r, c)", D**-0.5),
        "div_after": ("q = Identity(qh) kt = Identity(kth)", "c = {c} s = Div(r, c)", D**0.5),
        "mul_query": ("c = {c} q = Mul(qh, c) kt = Identity(kth)", "s = Identity(r)", D**-0.5),
        "split_root": ("c = {c} q = Mul(qh, c) kt = Mul(kth, c)", "s = Identity(r)", D**-0.25),
        "none": ("q = Identity(qh) kt = Identity(kth)", "s = Identity(r)", 1.0),
    }
    masks = {
        "none": ("", None),
        "additive": ("m = Add(s, mask)", "additive"),
        "where": (f"low = {number(-3.4e38)} m = Where(mask, s, low)", "bool"),
        "legacy": (
            f"one = {number(1.0)} big = {number(-10000.0)} f = Cast<to = 1>(mask) "
            "o = Sub(one, f) a = Mul(o, big) m = Add(s, a)",
            "int64",
        ),
    }
    for (scale, (before, after, factor)), (mask, (code, kind)) in itertools.product(
        scales.items(), masks.items()
    ):
        name = f"pattern_attention_{scale}_{mask}"
        inputs = {key: values(name + key, (B, S, W)) for key in "xyz"}
        if kind:
            keep = np.ones((B, 1, 1, S), bool)
            keep[1, ..., 4:] = False
            table = {"bool": keep, "int64": keep.astype(np.int64)}
            table["additive"] = np.where(keep, 0, -1e9).astype(np.float32)
            inputs["mask"] = table[kind]
        body = f"hs = {vector(0, 0, H, D)} "
        for key, letter in zip("xyz", "qkv"):
            perm = "0, 2, 3, 1" if letter == "k" else "0, 2, 1, 3"
            target = {"q": "qh", "k": "kth", "v": "vh"}[letter]
            body += f"{letter}r = Reshape({key}, hs) "
            body += f"{target} = Transpose<perm = [{perm}]>({letter}r) "
        body += f"{before} r = MatMul(q, kt) {after} {code or 'm = Identity(s)'} "
        body = body.replace("{c}", number(factor))
        body += "p = Softmax<axis = -1>(m) a0 = MatMul(p, vh) "
        body += "a1 = Transpose<perm = [0, 2, 1, 3]>(a0) "
        body += f"ws = {vector(0, 0, W)} out = Reshape(a1, ws)"
        yield model(name, inputs, f"float[{B}, {S}, {W}] out", statements(body))


def statements(body):
    """Ends every assignment with a newline; the text form needs none, a reader does."""
    return body.replace(") ", ")\n  ")


def activations():
    x = {"x": values("activation", (3, 37))}
    spelled = {
        "gelu_erf": f"r = {number(2**0.5)} h = {number(0.5)} o = {number(1.0)} d = Div(x, r) "
        "e = Erf(d) p = Add(e, o) m = Mul(x, p) y = Mul(m, h)",
        "gelu_erf_late": f"r = {number(0.5**0.5)} h = {number(0.5)} o = {number(1.0)} "
        "d = Mul(x, r) e = Erf(d) p = Add(o, e) m = Mul(h, x) y = Mul(m, p)",
        "gelu_tanh": f"t = {number(3.0)} k = {number(0.044715)} s = {number((2 / np.pi) ** 0.5)} "
        f"h = {number(0.5)} o = {number(1.0)} c = Pow(x, t) a = Mul(c, k) b = Add(x, a) "
        "d = Mul(b, s) e = Tanh(d) p = Add(e, o) m = Mul(x, h) y = Mul(m, p)",
        "silu": "s = Sigmoid(x) y = Mul(x, s)",
        "hardswish": f"a = {number(3.0)} l = {number(0.0)} u = {number(6.0)} b = Add(x, a) "
        "c = Clip(b, l, u) d = Mul(x, c) y = Div(d, u)",
        "not_gelu": f"r = {number(1.5)} h = {number(0.5)} o = {number(1.0)} d = Div(x, r) "
        "e = Erf(d) p = Add(e, o) m = Mul(x, p) y = Mul(m, h)",
    }
    for name, body in spelled.items():
        yield model(f"pattern_{name}", x, "float[3, 37] y", statements(body))


def norms():
    x = {"x": values("spelled_norm", (4, 3, 40)), "g": values("g", (40,)), "b": values("b", (40,))}
    head = f"e = {number(1e-3)} two = {number(2.0)} "
    square = {"pow": "q = Pow(d, two) ", "mul": "q = Mul(d, d) "}
    root = {"div": "n = Div(d, t) ", "reciprocal": "i = Reciprocal(t) n = Mul(d, i) "}
    for (s, squared), (r, divided) in itertools.product(square.items(), root.items()):
        centre = head + "m = ReduceMean<axes = [-1]>(x) d = Sub(x, m) " + squared
        body = centre + "v = ReduceMean<axes = [-1]>(q) w = Add(v, e) t = Sqrt(w) " + divided
        body += "u = Mul(n, g) y = Add(u, b)"
        yield model(f"pattern_layernorm_{s}_{r}", x, "float[4, 3, 40] y", statements(body))
        body = body.replace("m = ReduceMean<axes = [-1]>(x) d = Sub(x, m)", "d = Identity(x)")
        body = body.replace("u = Mul(n, g) y = Add(u, b)", "y = Mul(n, g)")
        rms = {key: x[key] for key in "xg"}
        yield model(f"pattern_rmsnorm_{s}_{r}", rms, "float[4, 3, 40] y", statements(body))
    only = {"x": x["x"]}
    for axis in (-1, 1):
        body = f"m = ReduceMax<axes = [{axis}]>(x) d = Sub(x, m) e = Exp(d) "
        body += f"a = {vector(axis)} s = ReduceSum(e, a) y = Div(e, s)"
        name = f"pattern_softmax_axis{axis}"
        yield model(name, only, "float[4, 3, 40] y", statements(body))


def convolutions():
    x = values("conv_x", (2, 4, 9, 9))
    inputs = {"x": x, "w": values("conv_w", (4, 4, 3, 3)), "r": values("conv_r", (2, 4, 9, 9))}
    inputs |= {key: values("bn" + key, (4,), low=0.3) for key in ("g", "b", "mean", "var")}
    conv = "c = Conv<pads = [1, 1, 1, 1]>(x, w) n = BatchNormalization(c, g, b, mean, var) "
    out = "float[2, 4, 9, 9] y"
    for name, body in {
        "conv_bn_add_relu": conv + "s = Add(n, r) y = Relu(s)",
        "conv_bn_relu_add": conv + "s = Relu(n) y = Add(r, s)",
        "conv_bn_sigmoid_mul": conv + "s = Sigmoid(n) t = Mul(n, s) y = Add(t, r)",
        "conv_bn_shared": conv + "s = Relu(c) t = Add(n, r) y = Add(t, s)",
    }.items():
        yield model(f"pattern_{name}", inputs, out, statements(body))


def patches():
    """Stems of vision transformers, and images that are no multiple of the patch."""
    x = values("patch_x", (2, 3, 13, 9))
    inputs = {"x": x, "w": values("patch_w", (8, 3, 4, 4)), "b": values("patch_b", (8,))}
    for name, (tail, out) in {
        "tokens": ("f = Reshape(c, s) y = Transpose<perm = [0, 2, 1]>(f)", "2, 6, 8"),
        "channels_last": ("y = Transpose<perm = [0, 2, 3, 1]>(c)", "2, 3, 2, 8"),
        "activation": (
            "f = Reshape(c, s) t = Transpose<perm = [0, 2, 1]>(f) y = Relu(t)",
            "2, 6, 8",
        ),
        "activation_before": ("r = Relu(c) y = Transpose<perm = [0, 2, 3, 1]>(r)", "2, 3, 2, 8"),
        "read_twice": (
            "t = Transpose<perm = [0, 2, 3, 1]>(c) n = Neg(c) "
            "u = Transpose<perm = [0, 2, 3, 1]>(n) y = Add(t, u)",
            "2, 3, 2, 8",
        ),
    }.items():
        body = f"s = {vector(0, 8, -1)} c = Conv<strides = [4, 4]>(x, w, b) " + tail
        yield model(f"pattern_patches_{name}", inputs, f"float[{out}] y", statements(body))


def projections():
    inputs = {"x": values("p_x", (2, 5, 16))}
    for i, width in enumerate((24, 24, 8)):
        inputs[f"w{i}"] = values(f"p_w{i}", (16, width), low=-0.5, high=0.5)
    body = "a = MatMul(x, w0) b = MatMul(x, w1) c = MatMul(x, w2) s = Sigmoid(a) g = Mul(a, s) "
    body += "h = Mul(g, b) y = Concat<axis = -1>(h, c)"
    yield model("pattern_gated", inputs, "float[2, 5, 32] y", statements(body))
    for name, tail in {
        "bias_residual": "t = Add(a, v) y = Add(t, x)",
        "scale_bias": f"k = {number(0.5)} t = Mul(a, k) y = Add(v, t)",
        "bias_used_twice": "t = Add(a, v) u = Relu(t) y = Add(u, t)",
        "transposed_after": "t = Add(a, v) u = Transpose<perm = [0, 2, 1]>(t) "
        "z = Transpose<perm = [0, 2, 1]>(u) y = Relu(z)",
    }.items():
        data = {"x": inputs["x"], "w": values("sq", (16, 16)), "v": values("bias", (16,))}
        body = "a = MatMul(x, w) " + tail
        yield model(f"pattern_matmul_{name}", data, "float[2, 5, 16] y", statements(body))


def guarded_attention():
    """Rows that are masked fully, whose NaN after the softmax a guard turns into zeros."""
    guards = {
        "where_nan": "n = IsNaN(p) g = Where(n, zero, p)",
        "where_number": "n = IsNaN(p) k = Not(n) g = Where(k, p, zero)",
        "in_casts": (
            "w = Cast<to = 11>(p) z = Cast<to = 11>(zero) n = IsNaN(w) h = Where(n, z, w) "
            "g = Cast<to = 1>(h)"
        ),
    }
    masks = {
        "additive": "m = Add(s, mask)",
        "where": "low = Log(zero) m = Where(mask, s, low)",
        "added_where": "low = Log(zero) a = Where(mask, zero, low) m = Add(s, a)",
    }
    keep = values("guarded", (B, 1, S, S)) > -0.3
    keep[0, 0, 2] = False
    keep[1, 0, 0] = False
    for (guard, after), (mask, before) in itertools.product(guards.items(), masks.items()):
        name = f"pattern_guarded_attention_{guard}_{mask}"
        shapes = {"q": (B, H, S, D), "kt": (B, H, D, S), "v": (B, H, S, D)}
        inputs = {key: values(name + key, shape) for key, shape in shapes.items()}
        additive = np.where(keep, 0, -np.inf).astype(np.float32)
        inputs["mask"] = additive if mask == "additive" else keep
        body = (
            f"zero = {number(0.0)} s = MatMul(q, kt) {before} p = Softmax<axis = -1>(m) {after} "
            "y = MatMul(g, v)"
        )
        yield model(name, inputs, f"float[{B}, {H}, {S}, {D}] y", statements(body))


def cases():
    contractions = (convolutions, patches, projections)
    for family in (attention, guarded_attention, activations, norms, *contractions):
        yield from family()
