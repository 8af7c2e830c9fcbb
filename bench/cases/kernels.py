"""One family of kernels a section, where the arithmetic is what costs: forward alone, and with the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench.case import Case, Program
from bench.cases import functional

CASES: list[Case] = []
SIZES = {"1k": 1 << 10, "64k": 1 << 16, "1M": 1 << 20, "16M": 1 << 24}

Make = Callable[[np.random.Generator], Sequence[np.ndarray]]


def program(fn: Callable, make: Make, backward: bool) -> Callable[[Any], Program]:
    """``fn(lib, *tensors)``; with ``backward`` the floating operands that own their memory are leaves with gradients."""

    def build(lib: Any) -> Program:
        given = [lib.from_numpy(a) for a in make(np.random.default_rng(0))]
        leaves = [t.requires_grad_() for t in given if backward and t.is_floating_point()]

        def unrecorded() -> Any:
            with lib.no_grad():
                return fn(lib, *given)

        y = unrecorded()
        if not backward:
            return Program(unrecorded)
        g = lib.from_numpy(np.random.default_rng(1).standard_normal(tuple(y.shape)).astype(y.numpy().dtype))
        del y

        def step() -> Any:
            for t in leaves:
                t.grad = None
            out = fn(lib, *given)
            out.backward(g)
            return out, [t.grad for t in leaves]

        return Program(step)

    return build


def add(name: str, group: str, fn: Callable, make: Make, ways: str = "fb", numpy: Callable | None = None, **more: Any) -> None:
    """Rows for the ways: f forward without recording, b forward and backward.

    ``bytes`` and ``flops`` are of the forward pass; (forward, with backward) where both are given.
    """
    cost = {k: more.pop(k, (0, 0)) for k in ("bytes", "flops")}
    for way in ways:
        amounts = {k: v[way == "b"] if isinstance(v, tuple) else v for k, v in cost.items()}
        others = {}
        if numpy is not None and way == "f":
            others["NumPy"] = by_hand(numpy, make)
        full = f"{name} | {'backward' if way == 'b' else 'forward'}"
        CASES.append(Case(full, "kernels", group, program(fn, make, way == "b"), others=others, rounds=1, **amounts, **more))


def by_hand(fn: Callable, make: Make) -> Callable[[], Program]:
    def build() -> Program:
        given = make(np.random.default_rng(0))
        return Program(lambda: fn(*given))

    return build


def normal(*shapes: tuple[int, ...], dtype: Any = np.float32) -> Make:
    return lambda rng: [rng.standard_normal(s, dtype=dtype) for s in shapes]


def positive(*shapes: tuple[int, ...], dtype: Any = np.float32) -> Make:
    return lambda rng: [rng.random(s, dtype=dtype) + dtype(0.5) for s in shapes]


def sized(label: str, all_sizes: Sequence[str] = ("1k", "64k", "1M", "16M")) -> dict[str, Any]:
    """What a case has to say about its size."""
    return {"size": SIZES[label], "smallest": label == all_sizes[0], "quick": label in ("1k", "1M")}


# ---------------------------------------------------------------------------------------------------- pointwise

#: name -> (formula, NumPy's, operands, group, arrays moved forward, and with backward)
POINTWISE: dict[str, tuple[Callable, Callable | None, int, str, tuple[int, int]]] = {
    # backward of add hands the gradient on (each leaf gets its copy)
    "add": (lambda lib, a, b: a + b, np.add, 2, "pointwise, cheap", (3, 7)),
    "mul": (lambda lib, a, b: a * b, np.multiply, 2, "pointwise, cheap", (3, 8)),
    "relu": (lambda lib, a: lib.relu(a), lambda a: np.maximum(a, 0), 1, "pointwise, cheap", (2, 5)),
    "a·b + c·2": (lambda lib, a, b, c: a * b + c * 2.0, None, 3, "pointwise, cheap", (0, 0)),
    "div": (lambda lib, a, b: a / b, np.divide, 2, "pointwise", (3, 9)),
    "exp": (lambda lib, a: lib.exp(a), np.exp, 1, "pointwise", (2, 5)),
    "tanh": (lambda lib, a: lib.tanh(a), np.tanh, 1, "pointwise", (2, 5)),
    "sigmoid": (lambda lib, a: lib.sigmoid(a), None, 1, "pointwise", (2, 5)),
    "log": (lambda lib, a: lib.log(a), np.log, 1, "pointwise", (2, 5)),
    "sin": (lambda lib, a: lib.sin(a), np.sin, 1, "pointwise", (2, 5)),
    "pow": (lambda lib, a, b: a**b, np.power, 2, "pointwise", (3, 9)),
    "gelu": (lambda lib, a: lib.nn.functional.gelu(a), None, 1, "pointwise", (2, 5)),
    "erf": (lambda lib, a: lib.erf(a), None, 1, "pointwise", (2, 5)),
}
for _name, (_fn, _np, _n, _group, _moved) in POINTWISE.items():
    for _label, _size in SIZES.items():
        _amount = tuple(4 * k * _size for k in _moved)
        add(f"{_name} {_label}", _group, _fn, positive(*[(_size,)] * _n), numpy=_np, bytes=_amount,
            threaded=_label == "16M" and _name in ("mul", "tanh", "a·b + c·2"), **sized(_label))  # fmt: skip
for _name in ("mul", "exp"):  # the same in float64
    _fn, _np, _n, _group, _moved = POINTWISE[_name]
    for _label in ("64k", "1M", "16M"):
        _size = SIZES[_label]
        add(f"{_name} float64 {_label}", _group, _fn, positive(*[(_size,)] * _n, dtype=np.float64), numpy=_np,
            bytes=tuple(8 * k * _size for k in _moved), **sized(_label, ("64k", "1M", "16M")))  # fmt: skip


def fused(lib: Any, a: Any) -> Any:
    return lib.sigmoid(a) * lib.tanh(a) + lib.exp(-(a * a))


def fused_numpy() -> Program:
    """The formula and its derivative as one writes them by hand."""
    (a,) = normal((1 << 20,))(np.random.default_rng(0))
    g = np.random.default_rng(1).standard_normal(a.shape).astype(np.float32)

    def step() -> Any:
        s, t, e = 1 / (1 + np.exp(-a)), np.tanh(a), np.exp(-(a * a))
        return s * t + e, g * (s * (1 - s) * t + s * (1 - t * t) - 2 * a * e)

    return Program(step)


CASES.append(
    Case(
        "σ(a)·tanh(a) + exp(−a²) 1M | backward", "kernels", "pointwise, chain", program(fused, normal((1 << 20,)), True),
        others={"NumPy": fused_numpy}, compiled=True, bounds={"PyTorch": 0.25, "JAX": 0.9},
    )
)  # fmt: skip


def with_ones(fn: Callable, make: Make) -> Callable[[Any], Program]:
    """Forward and backward with a gradient of ones, which is what the peers without PyTorch's API are given."""

    def build(lib: Any) -> Program:
        leaves = [lib.from_numpy(a).requires_grad_() for a in make(np.random.default_rng(0))]
        g = lib.ones_like(fn(lib, *leaves)).detach()

        def step() -> Any:
            for t in leaves:
                t.grad = None
            y = fn(lib, *leaves)
            y.backward(g)
            return y, [t.grad for t in leaves]

        return Program(step)

    return build


def lazily(loss: Callable, make: Make) -> dict[str, Callable[[], Program]]:
    """`functional.gradients_of` whose data are made when it runs."""
    return {
        peer: (lambda peer=peer: functional.gradients_of(loss, list(make(np.random.default_rng(0))))[peer]())
        for peer in functional.gradients_of(loss, [])
    }


CASES.append(
    Case(
        "σ(a)·tanh(a) + exp(−a²) 1M, ones | backward", "kernels", "pointwise, chain", with_ones(fused, normal((1 << 20,))), compiled=True,
        others=lazily(lambda np, a: fused(functional.Named(np), a), normal((1 << 20,))), bounds={"PyTorch": 0.25, "JAX": 0.9},
    )
)  # fmt: skip


def chain_loss(lib: Any, a: Any) -> Any:
    y = fused(lib, a)
    return (y * y).mean()


def product_and_sums(lib: Any, a: Any, b: Any) -> Any:
    y = a * b
    return y + y.sum(0)


for _name, _fn, _shapes in (
    ("mean of (σ(a)·tanh(a) + exp(−a²))² 1M", chain_loss, ((1 << 20,),)),
    ("a·b + its column sums 1M", product_and_sums, ((1024, 1024), (1024, 1024))),
):
    CASES.append(Case(f"{_name} | backward", "kernels", "pointwise, chain", program(_fn, normal(*_shapes), True), compiled=True))

# strided and broadcast operands, 1M results
_1k = (1024, 1024)
STRIDED: dict[str, tuple[Callable, Make]] = {
    "a + b.T": (lambda lib, a, b: a + b.t(), normal(_1k, _1k)),
    "exp(a[:, ::2])": (lambda lib, a: lib.exp(a[:, ::2]), normal((1024, 2048))),
    "a[::2] * b[::2]": (lambda lib, a, b: a[::2] * b[::2], normal((2048, 1024), (2048, 1024))),
    "a + row": (lambda lib, a, b: a + b, normal(_1k, (1024,))),
    "a * column": (lambda lib, a, b: a * b, normal(_1k, (1024, 1))),
    "row + column": (lambda lib, a, b: a + b, normal((1024,), (1024, 1))),
    "a * channel (16, 64, 32, 32)": (lambda lib, a, b: a * b, normal((16, 64, 32, 32), (64, 1, 1))),
}
for _name, (_fn, _make) in STRIDED.items():
    add(_name, "pointwise, strided", _fn, _make)
for _name, _fn, _shape in (
    ("transpose copy 1024²", lambda lib, a: a.t().contiguous(), _1k),
    ("permute copy NCHW→NHWC (16, 64, 32, 32)", lambda lib, a: a.permute(0, 2, 3, 1).contiguous(), (16, 64, 32, 32)),
    ("cat of 4 × 256k", lambda lib, a: lib.cat([a, a, a, a]), (1 << 18,)),
    ("flip 1024²", lambda lib, a: a.flip(0), _1k),
    ("roll 1024²", lambda lib, a: a.roll(3, 1), _1k),
):
    add(_name, "copy", _fn, normal(_shape), bytes=((2 if "cat" not in _name else 1.25) * 4 * 2**20, 0))

# --------------------------------------------------------------------------------------------------- reductions

REDUCTIONS: dict[str, Callable] = {
    "sum": lambda lib, a, d: a.sum(d),
    "mean": lambda lib, a, d: a.mean(d),
    "amax": lambda lib, a, d: a.amax(d),
    "var": lambda lib, a, d: a.var(d),
    "logsumexp": lambda lib, a, d: a.logsumexp(d),
}
for _name, _op in REDUCTIONS.items():
    for _shape, _axes in (((1024, 1024), (0, 1, (0, 1))), ((128, 64, 128), (1, (0, 2)))):
        for _axis in _axes:
            _where = "all" if _axis == (0, 1) else f"axis {_axis}"
            add(f"{_name} {'×'.join(map(str, _shape))} {_where}", "reduction",
                lambda lib, a, _op=_op, _axis=_axis: _op(lib, a, _axis), normal(_shape), bytes=(4 * 2**20, 0),
                quick=len(_shape) == 2 and _name in ("sum", "var"))  # fmt: skip
for _label, _size in SIZES.items():
    add(f"sum {_label}", "reduction", lambda lib, a: a.sum(), normal((_size,)), bytes=(4 * _size, 8 * _size), tolerance=1e-3,
        numpy=np.sum, **sized(_label))  # fmt: skip
add("argmax 1024² axis 1", "reduction", lambda lib, a: a.argmax(1), normal(_1k), ways="f", numpy=lambda a: a.argmax(1))
add("max with indices 1024² axis 1", "reduction", lambda lib, a: a.max(1)[0], normal(_1k))
add("norm 1M", "reduction", lambda lib, a: a.norm(), normal((1 << 20,)), bytes=(4 * 2**20, 12 * 2**20))
for _axis in (0, 1):
    add(f"cumsum 1024² axis {_axis}", "scan", lambda lib, a, _axis=_axis: a.cumsum(_axis), normal(_1k),
        numpy=lambda a, _axis=_axis: a.cumsum(_axis), tolerance=1e-3)  # fmt: skip
add("cumprod 1024² axis 1", "scan", lambda lib, a: a.cumprod(1), lambda rng: [(0.9 + 0.2 * rng.random(_1k)).astype(np.float32)],
    tolerance=1e-3)  # fmt: skip

# --------------------------------------------------------------------------------- softmax, norms, cross entropy

for _rows, _columns in ((64, 16), (1024, 64), (1024, 1024), (64, 50257)):
    _here: dict[str, Any] = {"smallest": _rows * _columns == 1024, "size": _rows * _columns, "quick": _columns != 50257}
    _shape, _n = (_rows, _columns), 4 * _rows * _columns
    _text = f"{_rows}×{_columns}"
    add(f"softmax {_text}", "softmax", lambda lib, a: lib.softmax(a, -1), normal(_shape), bytes=(2 * _n, 5 * _n),
        threaded=_columns == 50257, **_here)  # fmt: skip
    add(f"log_softmax {_text}", "softmax", lambda lib, a: lib.log_softmax(a, -1), normal(_shape), bytes=(2 * _n, 5 * _n), **_here)
    add(f"cross_entropy {_text}", "cross entropy", lambda lib, a, t: lib.nn.functional.cross_entropy(a, t),
        lambda rng, s=_shape: [rng.standard_normal(s, dtype=np.float32), rng.integers(0, s[1], s[0])],
        bytes=(_n, 3 * _n), **_here)  # fmt: skip
add("softmax axis 0 1024×1024", "softmax", lambda lib, a: lib.softmax(a, 0), normal(_1k))
add("softmax axis 1 (16, 64, 32, 32)", "softmax", lambda lib, a: lib.softmax(a, 1), normal((16, 64, 32, 32)))
add("binary_cross_entropy_with_logits 1M", "loss",
    lambda lib, a, t: lib.nn.functional.binary_cross_entropy_with_logits(a, (t > 0).float()), normal(_1k, _1k), quick=False)  # fmt: skip
add("mse_loss 1M", "loss", lambda lib, a, b: lib.nn.functional.mse_loss(a, b), normal(_1k, _1k),
    bytes=(8 * 2**20, 24 * 2**20))  # fmt: skip
add("smooth_l1_loss 1M", "loss", lambda lib, a, b: lib.nn.functional.smooth_l1_loss(a, b), normal(_1k, _1k))

for _shape in ((32, 128), (512, 128), (512, 768)):
    add(f"layer_norm {_shape[0]}×{_shape[1]}", "norm", lambda lib, a, w, b: lib.nn.functional.layer_norm(a, w.shape, w, b),
        normal(_shape, _shape[1:], _shape[1:]), bytes=(8 * _shape[0] * _shape[1], 20 * _shape[0] * _shape[1]),
        size=_shape[0] * _shape[1], smallest=_shape == (32, 128))  # fmt: skip
for _shape in ((32, 16, 8, 8), (16, 64, 32, 32), (8, 256, 14, 14)):
    _one = _shape[1:2]
    add(f"batch_norm {_shape}", "norm", lambda lib, a, w, b: lib.nn.functional.batch_norm(a, None, None, w, b, True),
        normal(_shape, _one, _one), size=int(np.prod(_shape)), smallest=_shape == (32, 16, 8, 8))  # fmt: skip
    add(f"group_norm(8) {_shape}", "norm", lambda lib, a, w, b: lib.nn.functional.group_norm(a, 8, w, b),
        normal(_shape, _one, _one), size=int(np.prod(_shape)), smallest=_shape == (32, 16, 8, 8), quick=False)  # fmt: skip
add("batch_norm 64×512", "norm", lambda lib, a, w, b: lib.nn.functional.batch_norm(a, None, None, w, b, True),
    normal((64, 512), (512,), (512,)))  # fmt: skip

# rows as users write them, in names that all libraries have


def softmax_by_hand(np: Any, x: Any, t: Any) -> Any:
    e = np.exp(x - np.amax(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True) * t


def log_softmax_by_hand(np: Any, x: Any, t: Any) -> Any:
    gap = x - np.amax(x, axis=-1, keepdims=True)
    return (gap - np.log(np.sum(np.exp(gap), axis=-1, keepdims=True))) * t


def layer_norm_by_hand(np: Any, x: Any, w: Any, b: Any) -> Any:
    gap = x - np.mean(x, axis=-1, keepdims=True)
    return gap / np.sqrt(np.mean(gap * gap, axis=-1, keepdims=True) + 1e-5) * w + b


def rms_norm_by_hand(np: Any, x: Any, w: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * w


for _shape in ((64, 64), (512, 256), (1024, 1024)):
    for _fn, _others in (
        (softmax_by_hand, (_shape,)),
        (log_softmax_by_hand, (_shape,)),
        (layer_norm_by_hand, (_shape[1:], _shape[1:])),
        (rms_norm_by_hand, (_shape[1:],)),
    ):
        _make = normal(_shape, *_others)
        CASES.append(
            Case(
                f"{_fn.__name__.replace('_', ' ')} {_shape[0]}×{_shape[1]} | backward", "kernels", "rows by hand",
                with_ones(_fn, _make), others=lazily(_fn, _make), compiled=True, rounds=1, tolerance=1e-3,
                size=_shape[0] * _shape[1], smallest=_shape == (64, 64),
            )
        )  # fmt: skip

# -------------------------------------------------------------------------------------------------------- GEMM

for _m, _k, _n in ((4, 8, 16), (32, 64, 64), (64, 784, 128), (128, 128, 128), (512, 512, 512), (1024, 1024, 1024), (512, 128, 512), (2048, 64, 2048)):
    _mul = 2 * _m * _k * _n
    add(f"matmul {_m}×{_k}×{_n}", "GEMM", lambda lib, a, b: a @ b, normal((_m, _k), (_k, _n)), flops=(_mul, 3 * _mul),
        numpy=np.matmul, size=_mul, smallest=_m == 4, quick=_m <= 512, threaded=_m == 1024, tolerance=1e-3)  # fmt: skip
_mul = 2 * 256**3
for _name, _fn in {
    "aᵀb": lambda lib, a, b: a.t() @ b,
    "abᵀ": lambda lib, a, b: a @ b.t(),
    "aᵀbᵀ": lambda lib, a, b: a.t() @ b.t(),
}.items():
    add(f"{_name} 256³", "GEMM", _fn, normal((256, 256), (256, 256)), flops=(_mul, 3 * _mul), tolerance=1e-3)
add("strided a[:, ::2] b 256³", "GEMM", lambda lib, a, b: a[:, ::2] @ b, normal((256, 512), (256, 256)), flops=(_mul, 3 * _mul),
    tolerance=1e-3)  # fmt: skip
add("float64 512³", "GEMM", lambda lib, a, b: a @ b, normal((512, 512), (512, 512), dtype=np.float64), quick=False)
add("matrix vector 1024²", "GEMM, other", lambda lib, a, b: a @ b, normal(_1k, (1024,)), bytes=(4 * 2**20, 0), tolerance=1e-3)
add("outer 1024", "GEMM, other", lambda lib, a, b: lib.outer(a, b), normal((1024,), (1024,)))
add("linear 64×784→128", "GEMM", lambda lib, x, w, b: lib.nn.functional.linear(x, w, b), normal((64, 784), (128, 784), (128,)),
    flops=(2 * 64 * 784 * 128, 6 * 64 * 784 * 128), tolerance=1e-3)  # fmt: skip
for _batch, _m in ((256, 4), (256, 16), (64, 64), (32, 128)):
    add(f"bmm {_batch} × {_m}³", "GEMM", lambda lib, a, b: lib.bmm(a, b), normal((_batch, _m, _m), (_batch, _m, _m)),
        flops=(2 * _batch * _m**3, 6 * _batch * _m**3), size=_batch * _m**3, smallest=_m == 4)  # fmt: skip
add("einsum bhqd,bhkd→bhqk (8, 4, 64, 32)", "GEMM, other", lambda lib, a, b: lib.einsum("bhqd,bhkd->bhqk", a, b),
    normal((8, 4, 64, 32), (8, 4, 64, 32)))  # fmt: skip
add("scaled_dot_product_attention (8, 4, 64, 32), causal", "attention",
    lambda lib, q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), normal(*[(8, 4, 64, 32)] * 3))  # fmt: skip
add("scaled_dot_product_attention (2, 8, 512, 64)", "attention",
    lambda lib, q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v), normal(*[(2, 8, 512, 64)] * 3),
    quick=False)  # fmt: skip

# ------------------------------------------------------------------------------------------------- convolutions

#: name -> (input, weight, options)
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "two-branch 1": ((64, 1, 8, 8), (16, 1, 3, 3), {"padding": 1}),
    "two-branch 2": ((64, 16, 8, 8), (32, 16, 3, 3), {"padding": 1}),
    "LeNet 1": ((32, 1, 28, 28), (6, 1, 5, 5), {"padding": 2}),
    "LeNet 2": ((32, 6, 14, 14), (16, 6, 5, 5), {}),
    "CIFAR 1": ((16, 3, 32, 32), (32, 3, 3, 3), {"padding": 1}),
    "CIFAR 2": ((16, 32, 32, 32), (32, 32, 3, 3), {"padding": 1}),
    "ResNet stem": ((1, 3, 224, 224), (64, 3, 7, 7), {"stride": 2, "padding": 3}),
    "ResNet 56²": ((1, 64, 56, 56), (64, 64, 3, 3), {"padding": 1}),
    "ResNet 28² stride 2": ((4, 128, 28, 28), (256, 128, 3, 3), {"stride": 2, "padding": 1}),
    "ResNet 14²": ((4, 256, 14, 14), (256, 256, 3, 3), {"padding": 1}),
    "1×1": ((8, 64, 28, 28), (128, 64, 1, 1), {}),
    "1×1 stride 2": ((8, 64, 28, 28), (128, 64, 1, 1), {"stride": 2}),
    "depthwise": ((8, 64, 28, 28), (64, 1, 3, 3), {"padding": 1, "groups": 64}),
    "groups 4": ((8, 64, 28, 28), (64, 16, 3, 3), {"padding": 1, "groups": 4}),
    "dilated": ((4, 32, 28, 28), (32, 32, 3, 3), {"padding": 2, "dilation": 2}),
    "odd 7 → 13, 5×2": ((5, 7, 23, 19), (13, 7, 5, 2), {"padding": (2, 0)}),
    "wide kernel 11×11": ((2, 8, 40, 40), (8, 8, 11, 11), {"padding": 5}),
    "1-d": ((8, 32, 256), (64, 32, 5), {"padding": 2}),
    "3-d": ((2, 8, 12, 12, 12), (16, 8, 3, 3, 3), {"padding": 1}),
}


def convolution(rank: int, options: dict[str, Any]) -> Callable:
    return lambda lib, x, w, b: getattr(lib.nn.functional, f"conv{rank}d")(x, w, b, **options)


def convolution_flops(x: tuple, w: tuple, stride: Any = 1, padding: Any = 0, dilation: int = 1, groups: int = 1) -> int:
    """Two for each multiplication of the plain algorithm."""
    rank = len(w) - 2
    pads = padding if isinstance(padding, tuple) else (padding,) * rank
    out = [(n + 2 * p - dilation * (k - 1) - 1) // stride + 1 for n, p, k in zip(x[2:], pads, w[2:], strict=True)]
    return 2 * x[0] * int(np.prod(w)) * int(np.prod(out))


for _name, (_x, _w, _options) in CONVOLUTIONS.items():
    _mul = convolution_flops(_x, _w, **_options)
    add(f"conv {_name}", "convolution", convolution(len(_w) - 2, _options), normal(_x, _w, _w[:1]), flops=(_mul, 3 * _mul),
        quick=_name in ("two-branch 2", "LeNet 1", "CIFAR 2", "1×1", "depthwise"), threaded=_name in ("CIFAR 2", "ResNet 14²"),
        smallest=_mul < 2e8, tolerance=1e-3)  # fmt: skip
add("conv_transpose 32 → 16, 4×4 stride 2", "convolution",
    lambda lib, x, w, b: lib.nn.functional.conv_transpose2d(x, w, b, stride=2, padding=1),
    normal((8, 32, 14, 14), (32, 16, 4, 4), (16,)), flops=(2 * 8 * 32 * 16 * 16 * 196, 6 * 8 * 32 * 16 * 16 * 196),
    quick=False, tolerance=1e-3)  # fmt: skip

_image = (16, 32, 32, 32)
for _name, _fn in {
    "max_pool 2": lambda lib, x: lib.nn.functional.max_pool2d(x, 2),
    "max_pool 3 stride 2": lambda lib, x: lib.nn.functional.max_pool2d(x, 3, 2, 1),
    "avg_pool 2": lambda lib, x: lib.nn.functional.avg_pool2d(x, 2),
    "adaptive_avg_pool 1": lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, 1),
    "interpolate bilinear ×2": lambda lib, x: lib.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "pad 1": lambda lib, x: lib.nn.functional.pad(x, (1, 1, 1, 1)),
}.items():
    add(_name, "pooling", _fn, normal(_image), quick="2" in _name)

# ---------------------------------------------------------------------------------------------------- indexing


def indices(shape: tuple[int, ...], high: int, *floats: tuple[int, ...]) -> Make:
    """Floating arrays, then integers below ``high``."""
    return lambda rng: [*(rng.standard_normal(s, dtype=np.float32) for s in floats), rng.integers(0, high, shape)]


for _rows, _width, _take in ((1000, 64, 512), (50257, 256, 4096)):
    add(f"embedding {_take} of {_rows}×{_width}", "indexing", lambda lib, w, i: lib.nn.functional.embedding(i, w),
        indices((_take,), _rows, (_rows, _width)), bytes=(8 * _take * _width, 0), size=_take, smallest=_take == 512)  # fmt: skip
add("gather 1024² axis 1", "indexing", lambda lib, a, i: a.gather(1, i), indices(_1k, 1024, _1k))
add("scatter_add 1024² axis 1", "indexing", lambda lib, a, i: lib.zeros(1024, 1024).scatter_add(1, i, a), indices(_1k, 1024, _1k),
    tolerance=1e-3)  # fmt: skip
add("index_select 1024 rows of 4096×256", "indexing", lambda lib, a, i: a.index_select(0, i), indices((1024,), 4096, (4096, 256)))
add("index_add 4096 rows to 1024×256", "indexing", lambda lib, a, b, i: a.index_add(0, i, b),
    indices((4096,), 1024, (1024, 256), (4096, 256)), tolerance=1e-3)  # fmt: skip
add("a[i] rows", "indexing", lambda lib, a, i: a[i], indices((1024,), 4096, (4096, 256)))
add("a[i, j] 64k", "indexing", lambda lib, a, i: a[i[0], i[1]], indices((2, 1 << 16), 1024, _1k))
add("a[mask] 1M", "indexing", lambda lib, a: a[a > 0], normal(_1k))
add("masked_fill 1M", "indexing", lambda lib, a, b: a.masked_fill(b > 0, -1.0), normal(_1k, _1k), ways="f")
add("one_hot 4096 of 128", "indexing", lambda lib, i: lib.nn.functional.one_hot(i, 128), indices((4096,), 128), ways="f")
add("nonzero 1M", "indexing", lambda lib, a: (a > 1).nonzero(), normal(_1k), ways="f")
add("tril 1024²", "indexing", lambda lib, a: a.tril(), normal(_1k))


def distinct(rows: int, columns: int) -> Make:
    """No number twice in a row, so that gradients do not depend on how ties are broken."""

    def make(rng: np.random.Generator) -> list[np.ndarray]:
        return [np.stack([rng.permutation(columns) for _ in range(rows)]).astype(np.float32) if rows > 1 else
                rng.permutation(columns).astype(np.float32)]  # fmt: skip

    return make


for _label in ("1k", "64k", "1M"):
    add(f"sort {_label}", "sorting", lambda lib, a: a.sort()[0], distinct(1, SIZES[_label]), numpy=np.sort,
        **sized(_label, ("1k", "64k", "1M")))  # fmt: skip
add("sort rows 1024²", "sorting", lambda lib, a: a.sort(1)[0], distinct(1024, 1024), quick=False)
add("topk 10 of rows 1024²", "sorting", lambda lib, a: a.topk(10, 1)[0], distinct(1024, 1024))
add("unique 64k", "sorting", lambda lib, i: lib.unique(i), indices((1 << 16,), 1000), ways="f", numpy=np.unique)
add("searchsorted 64k in 1k", "sorting", lambda lib, a, b: lib.searchsorted(a.sort()[0], b), normal((1024,), (1 << 16,)), ways="f")

# ------------------------------------------------------------------------------------------------------ linalg


def definite(batch: int, n: int, right: int = 1) -> Make:
    """Symmetric positive definite matrices, and right-hand sides."""

    def make(rng: np.random.Generator) -> list[np.ndarray]:
        a = rng.standard_normal((batch, n, n)) / np.sqrt(n)
        spd = (a @ a.transpose(0, 2, 1) + np.eye(n)).astype(np.float32)
        return [spd, rng.standard_normal((batch, n, right)).astype(np.float32)]

    return make


def only_matrix(make: Make) -> Make:
    return lambda rng: make(rng)[:1]


for _batch, _n in ((256, 4), (64, 16), (1, 256), (1, 512)):
    _text = f"{_batch} × {_n}²"
    _small: dict[str, Any] = {"smallest": _n == 4, "quick": _n <= 16, "size": _batch * _n * _n, "tolerance": 5e-3}
    _matrix = only_matrix(definite(_batch, _n))
    add(f"solve {_text}", "linalg", lambda lib, a, b: lib.linalg.solve(a, b), definite(_batch, _n), **_small)
    add(f"cholesky {_text}", "linalg", lambda lib, a: lib.linalg.cholesky(a), _matrix, **_small)
    add(f"inv {_text}", "linalg", lambda lib, a: lib.linalg.inv(a), _matrix, **_small)
    add(f"slogdet {_text}", "linalg", lambda lib, a: lib.linalg.slogdet(a)[1], _matrix, **_small)
    if _n <= 256:
        add(f"svdvals {_text}", "linalg", lambda lib, a: lib.linalg.svdvals(a), _matrix, **_small)
        add(f"eigvalsh {_text}", "linalg", lambda lib, a: lib.linalg.eigvalsh(a), _matrix,
            **{**_small, "tolerance": 3e-2})  # close eigenvalues: their vectors, which are the gradient, are ill-conditioned

# --------------------------------------------------------------------------------------------------------- fft

for _shape in ((64, 1000), (256, 1024), (16, 4096)):
    add(f"fft {_shape[0]} × {_shape[1]}", "fft", lambda lib, a: lib.fft.rfft(a).abs(), normal(_shape), tolerance=1e-3,
        size=_shape[0] * _shape[1], smallest=_shape[1] == 1000)  # fmt: skip
add("fft2 256²", "fft", lambda lib, a: lib.fft.rfft2(a).abs(), normal((4, 256, 256)), tolerance=1e-3, quick=False)
