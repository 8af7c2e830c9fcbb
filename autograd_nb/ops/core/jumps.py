"""What gradients are recorded with besides what they depend on, as `torch.autograd.grad` of them asks for it.

- The gradient of a maximum, of |x| or of an average pool depends on the operand by jumps alone, or not at all; PyTorch records it, and its
  derivative by the operand is 0: `by_jumps` in a rule, `jumping` around what is made of several ops.
- PyTorch computes the gradients of a convolution or a norm by one op, whose operands it records for all of them: `beside`. Their
  derivatives by what they do not depend on are None.
"""

from __future__ import annotations

from typing import Any

from ...dtypes import dtype
from ...graph.modes import state
from ...tensor import Tensor, make
from .pointwise_backward import above
from .registry import OPS
from .structured import Structured, structured


def _zeros(shape: tuple[int, ...], kind: dtype) -> Tensor:
    return OPS["zeros"].call(shape, dtype=kind)  # type: ignore[no-any-return]


def _same(y: Tensor) -> Tensor:
    """Return another tensor of the same memory: a gradient may be the user's, who keeps its history."""
    return make(y._data, y._layout, y._version_)


@structured(y=lambda g: g, x=lambda g, x_shape, kind: _zeros(x_shape, kind), node="JumpsBackward0", linear="jointly", batch="shift")
def _by_jumps(y, x, kind):
    return _same(y)


@structured(y=lambda g: g, x=lambda g: None, node="BesideBackward0", linear="jointly", batch="shift")
def _beside(y, x):
    return _same(y)


@structured(
    y=lambda g, x: by_jumps(g, x), x=lambda g: None, node="JumpingBackward0", linear="jointly", batch="shift",
)
def _jumping(y, x):
    return _same(y)


@structured(
    b=lambda g, x, w: beside(g, x, w), x=lambda g: None, w=lambda g: None, node="BesideBackward0", linear="jointly", batch="shift",
    dtypes="half float complex integer", samples="F.conv_transpose1d(x(1, 2, 4), x(2, 3, 2), x(3))",
)
def _alongside(b, x, w):
    return _same(b)


def _recorded(op: Structured, gradient: Tensor | None, operands: tuple[Any, ...]) -> Any:
    if state.grad and gradient is not None:
        for x in operands:
            if op is _beside and gradient._rg:
                break
            if isinstance(x, Tensor) and x._rg:
                gradient = op(gradient, x, x.dtype) if op is _by_jumps else op(gradient, x)
    return gradient


def by_jumps(gradient: Tensor | None, *operands: Any) -> Any:
    """Return a gradient, recorded as one that depends on these operands by jumps; what is no tensor is passed over."""
    return _recorded(_by_jumps, gradient, operands)


above.by_jumps = by_jumps


def beside(gradient: Tensor | None, *operands: Any) -> Any:
    """Return a gradient, recorded as the result of an op that has these operands besides; what is no tensor is passed over."""
    return _recorded(_beside, gradient, operands)


def jumping(y: Tensor, x: Tensor) -> Tensor:
    """Return a fresh result, whose gradient is recorded as one that depends on ``x`` by jumps, and which refuses to go on once ``x`` was changed."""
    return _jumping(y, x) if state.grad and y._rg and x._rg else y  # type: ignore[no-any-return]


def alongside(b: Tensor, x: Tensor, w: Tensor) -> Tensor:
    """Return a fresh ``b``, whose gradient PyTorch computes by one op with those of ``x`` and ``w``."""
    return _alongside(b, x, w) if state.grad and b._rg else b  # type: ignore[no-any-return]
