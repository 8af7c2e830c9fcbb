"""softmax and log_softmax: fused row kernels forward and backward."""

from __future__ import annotations

from typing import Any

from ... import dtypes, launch
from ...codegen.formula.namespace import m
from ...codegen.templates.loops import MAX, SUM
from ...codegen.templates.row import Each, Row
from ...errors import warn_user
from ...graph.node import tensor_lines
from ...shapes import Layout, wrap_dim
from ...tensor import Tensor, make
from ..core.call_path import known, recorded_lines, result_lines, shortcut
from ..core.memo import Memo
from ..core.recording import no_complex_derivative, store
from ..core.registry import public, register
from ..core.row_kernel import RowKernel, row_sizes
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense, in_float32
from ..creation.create import new_empty, new_full
from ..elementwise.activation import functional

_TOP = Each(folds={"top": (MAX, lambda x: x)})

_SOFTMAX = RowKernel("softmax", {"x": "full"}, {"y": "full"}, [
    _TOP,
    Each(stores={"y": lambda x, top: m.exp(x - top)}, folds={"s": (SUM, lambda y: y)}),
    Row({"inverse": lambda s: 1 / s}),
    Each(stores={"y": lambda y, inverse: y * inverse}),
])  # fmt: skip

_LOG_SOFTMAX = RowKernel("log_softmax", {"x": "full"}, {"y": "full"}, [
    _TOP,
    Each(folds={"s": (SUM, lambda x, top: m.exp_below(x - top))}),
    Row({"logs": lambda s: m.log(s)}),
    Each(stores={"y": lambda x, top, logs: (x - top) - logs}),
])  # fmt: skip

_SOFTMAX_BACK = RowKernel("softmax_backward", {"g": "full", "y": "full"}, {"o": "full"}, [
    Each(folds={"s": (SUM, lambda g, y: g * y)}),
    Each(stores={"o": lambda g, y, s: y * (g - s)}),
])  # fmt: skip

_LOG_SOFTMAX_BACK = RowKernel("log_softmax_backward", {"g": "full", "y": "full"}, {"o": "full"}, [
    Each(folds={"s": (SUM, lambda g: g)}),
    Each(stores={"o": lambda g, y, s: g - m.exp(y) * s}),
])  # fmt: skip


_runs = Memo()


def _run_new(kernel: RowKernel, d: int, operands: tuple[Tensor, ...]) -> Tensor:
    layout = operands[0]._layout.dense
    if layout.dtype.is_half:
        return in_float32(_run, kernel, d, *operands)
    arrays = [dense(x) for x in operands]
    out = launch.empty(layout.size, layout.dtype.carrier)
    if layout.size:
        sizes = row_sizes(layout.shape, d)
        entry = kernel.entry(layout.dtype.name, sizes, arrays, [out])
        entry(*sizes, *arrays, out)
        if all(x._layout.contiguous for x in operands):
            _runs.keep((kernel, d, *[x._layout for x in operands]), (entry, layout, sizes))
    return make(out, layout, [0, 0])


#: run(kernel, d, *operands): a kernel from full operands of one shape to a full output
_run = shortcut(
    "kernel, d, *operands", "(kernel, d, *[x._layout for x in operands])",
    [
        "entry, layout, sizes = plan",
        "data = _allocate(layout.size, layout.dtype.carrier)",
        "entry(*sizes, *[x._data for x in operands], data)",
        *tensor_lines("layout"),
        "return t",
    ],
    ["return _run_new(kernel, d, operands)"], memo=_runs, _run_new=_run_new,
)  # fmt: skip


def _dot(a: Tensor, b: Tensor, d: int) -> Tensor:
    return (a * b).sum(d, True)


@structured(
    grad=lambda g, y, d: _softmax_backward(g, y, d),
    y=lambda g, grad, y, d: g * (grad - _dot(grad, y, d)) - grad * _dot(g, y, d),
    linear="no", batch="shift",
)
def _softmax_backward(grad, y, d):
    return _run(_SOFTMAX_BACK, d, grad, y)


@structured(
    x=lambda g, out, d: _softmax_backward(g, out, d), linear="no", batch="shift",
    dtypes="half float", samples="x(3, 4).softmax(1)",
)
def _softmax(x, d):
    return _run(_SOFTMAX, d, x)


@structured(
    grad=lambda g, y, d: g - (g * y.exp()).sum(d, True),
    y=lambda g, grad, y, d: -(g * y.exp()) * grad.sum(d, True),
    linear="no", batch="shift",
)
def _log_softmax_backward(grad, y, d):
    return _run(_LOG_SOFTMAX_BACK, d, grad, y)


@structured(
    x=lambda g, out, d: _log_softmax_backward(g, out, d), linear="no", batch="shift",
    dtypes="half float", samples="x(3, 4).log_softmax(0)",
)
def _log_softmax(x, d):
    return _run(_LOG_SOFTMAX, d, x)


def _along(op: Any, name: str, input: Any, dim: Any, axis: Any, dtype: Any, out: Any) -> Tensor:
    """Return the op along a dim that may come under NumPy's name, of operands that are checked."""
    x, dim = tensor_argument(input, name), axis if dim is None else dim
    if dtype is not None:
        x = cast(x, dtypes.as_dtype(dtype))
    d = wrap_dim(dim, x.ndim)
    if x.dtype.category < 2:
        raise NotImplementedError(
            f'"{name}" not implemented for {x.dtype}: it takes floating point tensors (use dtype=torch.float32)'
        )
    y = op(x, d)
    no_complex_derivative(f"_{name}", x)  # (of nothing: others are refused)
    return y if out is None else store(out, y, name)


class _KnownPlan:
    """The kernel of a call along dim ``d``, with the numbers that it is given."""

    __slots__ = ("carrier", "d", "entry", "layout", "numbers", "size")

    def __init__(self, d: int, entry: Any, layout: Layout, numbers: tuple[Any, ...]):
        self.d, self.entry, self.layout, self.numbers = d, entry, layout, numbers
        self.size, self.carrier = layout.size, layout.dtype.carrier


def _known_softmax(op: Any, kernel: RowKernel) -> Any:
    """Decorator of a function of (input, dim), whose calls are `known`."""

    def plan(checked: bool, input: Any, dim: Any) -> _KnownPlan | None:
        layout = input._layout
        if dim.__class__ is not int or not -layout.ndim <= dim < layout.ndim or not layout.contiguous:
            return None
        if not 0 < layout.size * layout.dtype.itemsize < launch.BIG:  # more comes from the pool
            return None
        if layout.dtype is not dtypes.float32 and layout.dtype is not dtypes.float64:
            return None
        d = dim % layout.ndim
        sizes = row_sizes(layout.sizes, d)
        return _KnownPlan(d, kernel.entry(layout.dtype.name, sizes, [input._data], [input._data]), layout.dense, sizes)

    run = result_lines("plan.entry(*plan.numbers, input._data, data)", recorded_lines(["input"], "input, plan.d"))
    return known("input._layout, dim, dim.__class__", plan, run, takes=("input", "dim"), _op=op)


@public()
@_known_softmax(_softmax, _SOFTMAX)
def softmax(input, dim: int | None = None, dtype=None, *, axis=None, out=None):
    """yᵢ = e^xᵢ / Σⱼ e^xⱼ along ``dim``; dL/dx = y·(g − Σ g·y). ``dtype`` casts first.

    Errors: IndexError for a dim out of range, NotImplementedError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.softmax.html

    >>> torch.softmax(torch.tensor([0.0, 0.0, -100.0]), 0)
    tensor([5.0000e-01, 5.0000e-01, 1.9618e-44])
    """
    return _along(_softmax, "softmax", input, dim, axis, dtype, out)


@public()
@_known_softmax(_log_softmax, _LOG_SOFTMAX)
def log_softmax(input, dim: int | None = None, dtype=None, *, axis=None, out=None):
    """yᵢ = xᵢ − ln Σⱼ e^xⱼ along ``dim``; dL/dx = g − e^y·Σ g. ``dtype`` casts first.

    Errors: IndexError for a dim out of range, NotImplementedError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html

    >>> torch.log_softmax(torch.tensor([0.0, 0.0]), 0)
    tensor([-0.6931, -0.6931])
    """
    return _along(_log_softmax, "log_softmax", input, dim, axis, dtype, out)


def _implicit_dim(name: str, dim: Any, x: Any) -> Any:
    if dim is not None:
        return dim
    warn_user(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
    )
    return 0 if tensor_argument(x, name).ndim in (0, 1, 3) else 1


@functional(name="softmax")
def _f_softmax(input, dim: int | None = None, _stacklevel=3, dtype=None):
    """Return `softmax` along ``dim``; softmax([0., 1.], 0) = [0.2689, 0.7311]."""
    return softmax(input, _implicit_dim("softmax", dim, input), dtype)


@functional(name="log_softmax")
def _f_log_softmax(input, dim: int | None = None, _stacklevel=3, dtype=None):
    """Return `log_softmax` along ``dim``; log_softmax([0., 1.], 0) = [-1.3133, -0.3133]."""
    return log_softmax(input, _implicit_dim("log_softmax", dim, input), dtype)


@functional()
def softmin(input, dim: int | None = None, _stacklevel=3, dtype=None):
    """Return the `softmax` of −x along ``dim``: e^−xᵢ / Σⱼ e^−xⱼ.

    Errors: IndexError for a dim out of range, NotImplementedError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmin.html

    >>> torch.nn.functional.softmin(torch.tensor([0.0, 0.0, 100.0]), 0)
    tensor([5.0000e-01, 5.0000e-01, 1.9618e-44])
    """
    return softmax(-input, _implicit_dim("softmin", dim, input), dtype)


@functional()
def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Return `softmax` of (logits + Gumbel noise)/tau: a relaxed sample of the categories along ``dim``.

    hard: one-hot vectors whose gradient is that of the relaxed sample. Source: Jang et al., Categorical reparameterization with
    Gumbel-softmax (2017)

    >>> torch.nn.functional.gumbel_softmax(torch.zeros(1, 3), hard=True).sum()
    tensor(1.)
    """
    x = tensor_argument(logits, "gumbel_softmax", "logits")
    if eps != 1e-10:
        warn_user("`eps` parameter is deprecated and has no effect.")
    noise = -new_empty(x.shape, x.dtype).exponential_().log()
    soft = softmax((x + noise) / tau, dim)
    if not hard:
        return soft
    chosen = new_full(x.shape, 0, x.dtype).scatter_(dim, soft.detach().argmax(dim, keepdim=True), 1.0)
    return chosen - soft.detach() + soft


register("special.softmax", softmax, method=False, namespaces=("special",))
register("special.log_softmax", log_softmax, method=False, namespaces=("special",))
