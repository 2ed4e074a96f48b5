"""Memory-bound works that generated kernels are measured on: what PyTorch runs and exports, the
bytes that must move, and the exact result."""

import dataclasses

import onnx
import torch
import torch.nn.functional as F

EPSILON = 1e-5
WHOLE = 2**29  # elements of a [32, 2048, 8192] tensor


def layernorm_gelu(x, weight, bias):
    return F.gelu(F.layer_norm(x, weight.shape, weight, bias, EPSILON))


def rmsnorm(x, weight):
    wide = x if x.dtype == torch.float64 else x.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON)
    return (wide * scale).to(x.dtype) * weight


def residual_rmsnorm(x, residual, weight):
    total = x + residual
    return total, rmsnorm(total, weight)


def swiglu(gate, up):
    return F.silu(gate) * up


def softmax(x):
    return F.softmax(x, -1)


def transpose_add(x):
    return x.transpose(-2, -1).contiguous() + 1


def cosines(depth):
    def run(x):
        for _ in range(depth):
            x = x.cos()
        return x
    return run


@dataclasses.dataclass
class Work:
    function: object
    inputs: int       # tensors of the whole shape
    weights: int = 0  # rows
    outputs: int = 1
    by_rows: bool = True  # the length of a row matters

    def names(self):
        return [f"x{i}" for i in range(self.inputs)]


WORKS = {
    "layernorm-gelu": Work(layernorm_gelu, 1, 2),
    "rmsnorm": Work(rmsnorm, 1, 1),
    "residual-rmsnorm": Work(residual_rmsnorm, 2, 1, 2),
    "swiglu": Work(swiglu, 2, by_rows=False),
    "softmax": Work(softmax, 1),
    "transpose-add": Work(transpose_add, 1, by_rows=False),
    **{f"cos{depth}": Work(cosines(depth), 1, by_rows=False) for depth in (1, 2, 4, 8, 64)},
}


def rows_of(length):
    return WHOLE // length // 128 * 128


def named_cases(sets):
    """(work, shape) of the sets: main, rows, decode, cos."""
    cases = []
    if "main" in sets:
        cases += [(name, (32, 2048, 8192)) for name in WORKS if not name.startswith("cos")]
        cases += [("cos64", (32, 2048, 8192))]
    for length in (768, 1024, 4096, 12288, 65536):
        if "rows" in sets:
            cases += [(n, (rows_of(length), length)) for n, work in WORKS.items() if work.by_rows]
    for rows in (1, 8, 64):
        if "decode" in sets:
            cases += [(n, (rows, length)) for length in (1024, 4096, 8192)
                      for n, work in WORKS.items() if work.by_rows or n == "swiglu"]
    if "cos" in sets:
        cases += [(f"cos{depth}", (32, 2048, 8192)) for depth in (1, 2, 4, 8)]
    return cases


class Module(torch.nn.Module):
    """The work with its weights, bf16."""

    def __init__(self, work, length):
        super().__init__()
        self.function = work.function
        random = torch.Generator().manual_seed(3)
        for i in range(work.weights):
            weight = (1 - i) + 0.2 * torch.randn(length, generator=random)
            self.register_buffer(f"weight{i}", weight.to(torch.bfloat16))
        self.count = work.weights

    def weights(self):
        return [getattr(self, f"weight{i}") for i in range(self.count)]

    def forward(self, *inputs):
        return self.function(*inputs, *self.weights())


def export(work, shape, path):
    """The ONNX model at this shape, bf16 in and out. Traced at a small one: that is quick."""
    small = tuple(min(extent, 2) for extent in shape[:-1]) + shape[-1:]
    grows = {name: {axis: f"d{axis}" for axis in range(len(shape) - 1)} for name in work.names()}
    torch.onnx.export(
        Module(work, shape[-1]), tuple(torch.randn(small).to(torch.bfloat16) for _ in work.names()),
        path, dynamo=False, opset_version=17, input_names=work.names(), dynamic_axes=grows,
        output_names=[f"y{i}" for i in range(work.outputs)])
    model = onnx.load(path)
    for value in model.graph.input:
        for dim, extent in zip(value.type.tensor_type.shape.dim, shape):
            dim.dim_value = extent
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    onnx.save(model, path)


def moved_bytes(work, shape):
    elements = torch.Size(shape).numel()
    return 2 * (elements * (work.inputs + work.outputs) + work.weights * shape[-1])


def ulps(got, want):
    """The largest error in units in the last place of bf16 at the exact value; infinite for NaN."""
    _, exponent = torch.frexp(want)
    unit = torch.ldexp(torch.ones_like(want), (exponent - 8).clamp(min=-133))
    return ((got.double() - want).abs() / unit).nan_to_num(nan=float("inf")).max().item()


def largest_error(work, inputs, weights, outputs):
    """Of the outputs, in ulps against float64; piece by piece along the first axis."""
    worst = 0.0
    rows = inputs[0].shape[0]
    step = max(1, rows * (1 << 25) // max(1, inputs[0].numel()))
    for first in range(0, rows, step):
        part = slice(first, first + step)
        exact = work.function(*(x[part].double() for x in inputs), *(w.double() for w in weights))
        exact = exact if isinstance(exact, tuple) else (exact,)
        for got, want in zip(outputs, exact):
            worst = max(worst, ulps(got[part], want))
    return worst
