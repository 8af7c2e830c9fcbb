"""Choosing between values: `where`, and `clamp`, which keeps values between bounds."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...codegen.formula.namespace import m
from ...codegen.formula.symbols import FLOATS
from ...errors import shorten
from ...tensor import Tensor
from ..core.call_path import known
from ..core.calls import kind_lines, many_lines
from ..core.numbers import numbers_among
from ..core.pointwise import pointwise
from ..core.recording import need_numbers, store
from ..core.registry import OPS, public
from ..core.structured import tensor_argument


@pointwise(
    None,
    lambda g, condition: m.where(condition, g, m.zero_like(g)),
    lambda g, condition: m.where(condition, m.zero_like(g), g),
    conditions=("condition",),
    name="where",
    public=False,
    inplace=False,
)
def _where(condition, a, b):
    return m.where(condition, a, b)


def _plan_where(checked: bool, condition: Any, input: Any, other: Any) -> Any:
    """Return the op's own plan, for tensors and numbers; of the coordinates of what is true there is nothing to plan."""
    if input is None or other is None:
        return True if checked and input is other else None
    kind = condition._layout.dtype
    if kind is not dtypes.bool_ and kind is not dtypes.uint8:
        return None
    return _where.op.plan(tuple([v._layout if isinstance(v, Tensor) else v.__class__ for v in (condition, input, other)]))


_NUMBERS = (int, float)
#: numbers for which every dtype has a place are known by their class
_NUMBER = "{0}.__class__ if ({0}.__class__ is float or {0}.__class__ is int) and -100 <= {0} <= 100 else {0}._layout if {0} is not None else None"
_KEY = f"condition._layout, {_NUMBER.format('input')}, {_NUMBER.format('other')}"
_RUN = [
    "if input is None:", "    return _OPS['nonzero'].call.by_dim(condition)",
    *kind_lines(("input", "other")), *many_lines({"condition": False, "input": True, "other": True}, ("input", "other")),
]  # fmt: skip


@public()
@known(_KEY, _plan_where, _RUN, _op=_where.op, _OPS=OPS)
def where(condition, input: Tensor | float | None = None, other: Tensor | float | None = None, *, out=None):
    """Return a where the condition holds, else b; each gets the gradient where it was chosen. With one argument: `nonzero`.

    Errors: RuntimeError when the condition is not boolean.

    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.where(x > 0, x, 0.1 * x)
    tensor([-0.1000,  2.0000])
    """
    if input is None and other is None:
        return OPS["nonzero"].call(condition, as_tuple=True)
    tensor_argument(condition, "where", "condition")
    kind = condition._layout.dtype
    if kind is not dtypes.bool_ and kind is not dtypes.uint8:
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {kind} (use condition.bool(), or compare)")
    if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
        _check_numbers(input, other)
    y = _where(condition, input, other)
    return y if out is None else store(out, y, "where", (), (condition, input, other))


def _check_numbers(a: Any, b: Any) -> None:
    """Raise RuntimeError for a number that the result's dtype has no place for."""
    numbers = [v for v in (a, b) if v.__class__ in (int, float) and not -100 <= v <= 100]
    tensors = [t for t in (a, b) if isinstance(t, Tensor)]
    if numbers and not any(t.dtype.is_half for t in tensors):
        numbers_among(tensors, numbers, "where")


def _where_method(self, condition, other):
    """Return this tensor where the condition holds, else ``other``."""
    return where(condition, self, other)


Tensor.where = _where_method  # type: ignore[assignment]


def _within(x: Any, low: Any = None, high: Any = None) -> Any:
    """Return an element kept within bounds; nan where one of them is.

    Whether a bound, mostly a number, is nan is asked once, for a number that is added: LLVM would decide it by a branch in each round of a loop.
    """
    y, bounds = x, [b for b in (low, high) if b is not None]
    if low is not None:
        y = m.where(low > y, low, y)
    if high is not None:
        y = m.where(high < y, high, y)
    if y.dtype not in FLOATS:
        return y
    added = -0.0
    for b in bounds:
        added = m.where(b != b, b, added)
    return y + added


@pointwise(
    lambda g, x, low, high: m.where((x >= low) & (x <= high), g, m.zero_like(g)),
    lambda g, x, low, high: m.where((x < low) & (low < high), g, m.zero_like(g)),
    lambda g, x, low, high: m.where((x > high) | (high < low), g, m.zero_like(g)),
    name="clamp", public=False, node="ClampBackward1", check=lambda keys: need_numbers("clamp_cpu", keys), exact=(),
)  # fmt: skip
def _clamp(x, low, high):
    return _within(x, low, high)


@pointwise(
    lambda g, x, low: m.where(x >= low, g, m.zero_like(g)), lambda g, x, low: m.where(x < low, g, m.zero_like(g)),
    name="clamp_min", public=False,
)  # fmt: skip
def _clamp_min(x, low):
    return _within(x, low)


@pointwise(
    lambda g, x, high: m.where(x <= high, g, m.zero_like(g)), lambda g, x, high: m.where(x > high, g, m.zero_like(g)),
    name="clamp_max", public=False,
)  # fmt: skip
def _clamp_max(x, high):
    return _within(x, high=high)


def _only_one_kind(low: Any, high: Any, name: str) -> None:
    """Refuse a number beside a tensor that cannot stand for one."""
    t = low if isinstance(low, Tensor) else high
    if t.ndim or t.requires_grad:
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got min={shorten(low)}, max={shorten(high)}: both are numbers, or "
            f"both tensors"
        )


def _clamped(input: Any, low: Any, high: Any, inplace: bool) -> Tensor:
    x = tensor_argument(input, "clamp")
    if low is not None and high is not None and isinstance(low, Tensor) is not isinstance(high, Tensor):
        _only_one_kind(low, high, "clamp_" if inplace else "clamp")
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if (low.__class__ in _NUMBERS and not -100 <= low <= 100) or (high.__class__ in _NUMBERS and not -100 <= high <= 100):
        bounds = [b for b in (low, high) if b.__class__ in _NUMBERS]  # which the result's dtype may have no place for
        numbers_among([x, *[t for t in (low, high) if isinstance(t, Tensor)]], bounds, "clamp")
    op, args = (_clamp_max, (x, high)) if low is None else (_clamp_min, (x, low)) if high is None else (_clamp, (x, low, high))
    return op.inplace(*args) if inplace else op(*args)


@public("clip")
def clamp(input, min=None, max=None, *, out=None):
    """Return x kept within [min, max] (numbers or tensors); dy/dx = 1 inside and at the edges, else 0.

    >>> torch.tensor([-2.0, 0.5, 2.0]).clamp(-1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    y = _clamped(input, min, max, False)
    return y if out is None else store(out, y, "clamp", (), (input, min, max))


@public("clip_", kind="inplace")
def clamp_(input, min=None, max=None):
    """Compute `clamp` in place and return the tensor."""
    return _clamped(input, min, max, True)


@public()
def clamp_min(input, min, *, out=None):
    """Return x kept at or above ``min``; clamp_min([-1., 2.], 0.) = [0., 2.]."""
    return clamp(input, min=min, out=out)


@public()
def clamp_max(input, max, *, out=None):
    """Return x kept at or below ``max``; dy/dx = 1 for x ≤ max, else 0; clamp_max([-1., 2.], 0.) = [-1., 0.]."""
    return clamp(input, max=max, out=out)


@public(kind="inplace")
def clamp_min_(input, min):
    """Compute `clamp_min` in place and return the tensor."""
    return clamp_(input, min=min)


@public(kind="inplace")
def clamp_max_(input, max):
    """Compute `clamp_max` in place and return the tensor."""
    return clamp_(input, max=max)
