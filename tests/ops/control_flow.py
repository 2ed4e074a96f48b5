"""Branches and loops whose bodies hold what passes rewrite: chains, norms, products, constants."""

import numpy as np
from case import Case, values

ROWS, WIDTH = 3, 8
HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
CHAIN = "e = Exp(n) p = Add(e, one) l = Log(p)"  # softplus(n)
NORM = (
    "m = ReduceMean<axes = [-1], keepdims = 1>(s) d = Sub(s, m) q = Mul(d, d) "
    "v = ReduceMean<axes = [-1], keepdims = 1>(q) w = Add(v, one) r = Sqrt(w) n = Div(d, r)"
)


def constant(name, array):
    numbers = ", ".join(f"{x:.8g}" for x in array.ravel())
    extents = ", ".join(map(str, array.shape))
    return f"float[{extents}] {name} = {{{numbers}}}"


def weights(name):
    return constant("weight", values(name + "weight", (WIDTH, WIDTH), low=-0.5, high=0.5))


def case(name, inputs, declared, outputs, body, initializers=""):
    text = HEAD + f"main ({declared}) => ({outputs})\n"
    if initializers:
        text += f"<{initializers}>\n"
    return Case(name, "", inputs, text=text + f"{{\n  {body}\n}}")


def branches():
    """Both branches; what they capture is an input, a constant or a value made before them."""
    x = "float[3, 8] x"
    for taken in (True, False):
        name = f"control_if_{taken}".lower()
        data = [values(name, (ROWS, WIDTH)), np.array(taken)]
        then_body = f"s = MatMul(a, weight) {NORM} {CHAIN} y1 = Mul(l, x)"
        else_body = f"n = Neg(a) {CHAIN} y2 = Sub(l, one)"
        body = (
            "a = Tanh(x)\n  y = If (c) <then_branch = yes () => (float[3, 8] y1) { "
            f"{then_body} }}, else_branch = no () => (float[3, 8] y2) {{ {else_body} }}>"
        )
        constants = f"float one = {{1}}, {weights(name)}"
        yield case(name, data, f"{x}, bool c", "float[3, 8] y", body, constants)
        name = f"control_if_passes_through_{taken}".lower()
        data = [values(name, (ROWS, WIDTH)), np.array(taken)]
        body = (
            "y = If (c) <then_branch = yes () => (float[3, 8] y1) { y1 = Identity(x) }, "
            "else_branch = no () => (float[3, 8] y2) { y2 = Mul(x, two) }>"
        )
        yield case(name, data, f"{x}, bool c", "float[3, 8] y", body, "float two = {2}")


def loops():
    """Rounds known at run time only; zero, one and several of them, ended by either limit."""
    for rounds in (0, 1, 4):
        name = f"control_loop_{rounds}"
        data = [values(name, (ROWS, WIDTH)), np.array(rounds, np.int64)]
        step = f"s = MatMul(state, weight) {NORM} {CHAIN} next = Add(l, x) again = Identity(go)"
        body = (
            "y = Loop (rounds, yes, x) <body = round (int64 i, bool go, float[3, 8] state) "
            f"=> (bool again, float[3, 8] next) {{ {step} }}>"
        )
        constants = f"float one = {{1}}, bool yes = {{1}}, {weights(name)}"
        declared = "float[3, 8] x, int64 rounds"
        yield case(name, data, declared, "float[3, 8] y", body, constants)
    for limit in (1.0, 5.0, 1000.0):
        name = f"control_loop_until_{int(limit)}"
        data = [values(name, (ROWS, WIDTH), low=0.1), np.array(limit, np.float32)]
        step = (
            "n = Mul(state, half) e = Exp(n) t = Add(e, n) next = Add(t, one) "
            "sum = ReduceMean<keepdims = 0>(next) again = Less(sum, limit)"
        )
        body = (
            "y = Loop (most, yes, x) <body = round (int64 i, bool go, float[3, 8] state) "
            f"=> (bool again, float[3, 8] next) {{ {step} }}>"
        )
        constants = "float one = {1}, float half = {0.5}, bool yes = {1}, int64 most = {6}"
        declared = "float[3, 8] x, float limit"
        yield case(name, data, declared, "float[3, 8] y", body, constants)


def nested():
    """A branch in a loop, which swaps what it carries."""
    for rounds in (1, 3):
        name = f"control_if_in_loop_{rounds}"
        data = [values(name, (ROWS, WIDTH)), np.array(rounds, np.int64)]
        then_body = f"n = Sub(a, b) {CHAIN} t = Mul(l, half)"
        else_body = "f = MatMul(a, weight) u = Relu(f)"
        step = (
            "odd = Mod(i, two) is_odd = Cast<to = 9>(odd) "
            f"c = If (is_odd) <then_branch = yes () => (float[3, 8] t) {{ {then_body} }}, "
            f"else_branch = no () => (float[3, 8] u) {{ {else_body} }}> "
            "a2 = Identity(b) b2 = Add(c, a) again = Identity(go)"
        )
        body = (
            "y, z = Loop (rounds, go0, x, x) <body = round (int64 i, bool go, float[3, 8] a, "
            f"float[3, 8] b) => (bool again, float[3, 8] a2, float[3, 8] b2) {{ {step} }}>"
        )
        constants = (
            "float one = {1}, float half = {0.5}, int64 two = {2}, bool go0 = {1}, "
            f"{weights(name)}"
        )
        declared = "float[3, 8] x, int64 rounds"
        yield case(name, data, declared, "float[3, 8] y, float[3, 8] z", body, constants)


def cases():
    yield from branches()
    yield from loops()
    yield from nested()
