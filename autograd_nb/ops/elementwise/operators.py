"""The operators of tensors, and the sums of gradients that the engine asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ... import launch, strides
from ...codegen.templates.loops import Input
from ...dtypes import dtype
from ...graph import engine, noted, ownership
from ...graph.hooks import fitted
from ...graph.ownership import OURS
from ...shapes import Layout, broadcast_shapes, is_expanded
from ...tensor import Tensor, make
from ..core.call_path import shortcut
from ..core.calls import acceptable, inplace_call, of_array, operator_of
from ..core.entries import PointwiseKernel
from ..core.foreign import is_foreign
from ..core.memo import Memo
from ..core.registry import OPS
from ..core.structured import tensor_argument
from ..creation.cast import clone, relaid
from .arithmetic import (
    _POWERS,
    _abs,
    _div,
    _rsub,
    add,
    div_,
    floor_divide,
    mul,
    neg,
    pow,
    pow_,
    remainder,
    reversed_div,
    sub,
)
from .comparison import eq, ge, gt, le, lt, ne
from .integers import bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor


def _taken(other: Any) -> bool:
    """Return whether an in-place operator takes this operand, or leaves it to the operand's own method."""
    return acceptable(other) or is_foreign(other)


def _operated(function: Any, left: Any, right: Any, other: Any) -> Any:
    """Return what an operator gives: NotImplemented where the ``other`` operand is not ours."""
    tensor_argument(right if left is other else left, function.__name__)
    return function(left, right) if acceptable(other) else NotImplemented


def _power(self: Tensor, other: Any) -> Tensor:
    if other.__class__ is int or other.__class__ is float:
        power = _POWERS.get(other)
        if power is not None and self._layout.dtype.category == 2:
            return power(self)
    other = of_array(other, self)
    return pow(self, other) if acceptable(other) else NotImplemented


def _invert(self: Tensor) -> Tensor:
    if self.dtype.category > 1:
        raise TypeError(f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, not {self.dtype}")
    return bitwise_not(self)


#: operators that take NumPy's arrays on their right; on its left an array has operators of its own, which leave ours nothing to do in PyTorch
_TAKING = {"add", "sub", "mul", "truediv", "div", "eq", "ne"}


def _install() -> None:
    hot = {"add": add, "radd": add, "sub": sub, "rsub": _rsub, "mul": mul, "rmul": mul, "truediv": _div, "div": _div,
           "lt": lt, "le": le, "gt": gt, "ge": ge, "eq": eq, "ne": ne}  # fmt: skip
    for name, function in hot.items():
        setattr(Tensor, f"__{name}__", operator_of(function, name in _TAKING))
    bits = {"and": bitwise_and, "or": bitwise_or, "xor": bitwise_xor, "lshift": bitwise_left_shift, "rshift": bitwise_right_shift}
    for name, function in {"floordiv": floor_divide, "mod": remainder, **bits}.items():
        if name in bits:
            setattr(Tensor, f"__{name}__", operator_of(function, True))
        else:
            setattr(Tensor, f"__{name}__", lambda self, other, f=function: _operated(f, self, other := of_array(other, self), other))
        setattr(Tensor, f"__r{name}__", lambda self, other, f=function: _operated(f, other, self, other))
    Tensor.__rtruediv__ = Tensor.__rdiv__ = reversed_div  # type: ignore[assignment]
    Tensor.__pow__, Tensor.__rpow__ = _power, lambda self, other: _operated(pow, other, self, other)  # type: ignore[assignment]
    for name, function in {"add": add, "sub": sub, "mul": mul}.items():
        setattr(Tensor, f"__i{name}__", inplace_call(function.op, operator=True))
    inplace = {"truediv": div_, "floordiv": OPS["floor_divide_"].call, "mod": OPS["remainder_"].call, "pow": pow_, "lshift": OPS["bitwise_left_shift_"].call,
               "rshift": OPS["bitwise_right_shift_"].call, "and": OPS["bitwise_and_"].call, "or": OPS["bitwise_or_"].call,
               "xor": OPS["bitwise_xor_"].call}  # fmt: skip
    for name, function in inplace.items():
        setattr(Tensor, f"__i{name}__", lambda self, other, f=function: f(self, other) if _taken(other) else NotImplemented)
    Tensor.__neg__ = neg  # type: ignore[assignment]
    Tensor.__abs__ = _abs  # type: ignore[assignment]
    Tensor.__invert__ = _invert  # type: ignore[assignment]


_install()


#: elements from which a kernel that overwrites pays for being compiled; fewer are added by the kernel of `add`
WORTH = 4096


@cache
def _adding(name: str, target: dtype, source: dtype, once: bool) -> PointwiseKernel:
    inputs = [Input(target.name), Input(source.name)]
    return PointwiseKernel(name, lambda a, b: (a + b,), inputs, target.compute, [target.name], {0: 0} if once else {})


def _adder(name: str, after: Sequence[str] = (), worth: float = WORTH, overlapping: bool = False) -> Callable[[Tensor, Tensor], None]:
    """add(target, source): target += source without a history; ``after``: what follows. Expanded targets are refused, if not ``overlapping``.

    A target of ``worth`` elements or more is given to the kernel once. Of two arguments LLVM sees that they overlap, and adds one
    element after the other.
    """
    memo = Memo()

    def plan(target: Layout, source: Layout) -> tuple[Any, Any, bool]:
        whole = broadcast_shapes(target.shape, source.shape)
        if whole != target.shape:
            raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(whole)}")
        if not overlapping and is_expanded(target):
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the "
                f"tensor before performing the operation. (.grad has shape {list(target.shape)} and strides {list(target.strides)})"
            )
        once = target.size >= worth
        entry, dims = _adding(name, target.dtype, source.dtype, once).entry([target, source], [target])
        return memo.keep((target, source), (entry, dims, once))  # type: ignore[no-any-return]

    run = [
        "entry, dims, once = plan",
        "data = target._data",
        "if dims is None:",  # a flat loop runs over all that it is given, and memory may go on behind the tensor
        "    data = data[: target._layout.size]",
        "    if once:",
        "        entry(data, source._data)",
        "    else:",
        "        entry(data, source._data, data)",
        "elif once:",
        "    entry(dims, data, source._data)",
        "else:",
        "    entry(dims, data, source._data, data)",
    ]
    return shortcut(
        "target, source", "target._layout, source._layout", [*run, *after], ["plan = _plan(target._layout, source._layout)"],
        memo=memo, _plan=plan,
    )  # fmt: skip


#: gradients meeting in a buffer that is the engine's or a leaf's
_engine_add_in_place = _adder("add_", ["target._version_[0] += 1"])

#: one element after the other, where the target's elements may share memory
add_overlapping = _adder("add_overlapping", worth=float("inf"), overlapping=True)


def _fitting(have: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Return gradients for one edge in one shape: they may have two where `tensor.data` was exchanged, and the older node's is the edge's."""
    if have._layout is g._layout or have._layout.shape == g._layout.shape:
        return have, g
    return fitted(have, g.shape), g


def _engine_add(have: Tensor, g: Tensor) -> Tensor:
    """Return have + g for the same edge, recorded."""
    if have.__class__ is Tensor and g.__class__ is Tensor:
        have, g = _fitting(have, g)
    return _sum(have, g)


def _sum(have: Tensor, g: Tensor) -> Tensor:
    """Return have + g, dense where one of them is."""
    if have.is_sparse is not g.is_sparse:
        have, g = have.to_dense(), g.to_dense()
    return add(have, g)  # type: ignore[no-any-return]


def _engine_accumulated(grad: Tensor, g: Tensor) -> Tensor:
    """Return a leaf's grad + g, recorded: broadcast where the leaf has got another shape since, as in PyTorch."""
    return _sum(grad, g)


def _engine_merge(have: Tensor, g: Tensor) -> Tensor:
    """Return have + g for the same edge. A capture sees a sum of its own, which lies as this: its programs put it where memory is free."""
    if have.__class__ is Tensor and g.__class__ is Tensor:
        have, g = _fitting(have, g)
        if have._version_[1] == OURS and have._view is None and have._layout.contiguous:
            if not launch._observing:
                _engine_add_in_place(have, g)
                return have
        elif g._version_[1] == OURS and g._view is None and g._layout.contiguous:
            if not launch._observing:
                _engine_add_in_place(g, have)
                return g
            have, g = g, have
    y = _sum(have, g)
    if y.__class__ is Tensor:
        y._version_[1] = OURS
    return y


def _engine_own(g: Tensor, leaf: Tensor | None, recorded: bool) -> Tensor:
    """Return a gradient as somebody outside may keep it: memory of its own without gaps, laid out as the leaf's is.

    Without a leaf it is a result, and keeps its own order of dims. In a ``recorded`` pass a leaf's is a copy with a history.
    """
    layout, version = g._layout, g._version_
    if g.__class__ is not Tensor:
        return _copy(g)
    if version[1] == OURS and (
        strides.packed(layout) if leaf is None else (layout is leaf._layout and layout.contiguous) or strides.obeys(layout, leaf._layout)
    ):
        base = g._view
        if base is None:
            version[0] = version[1] = 0
            return g
        if base._data is g._data and base._layout.extent == layout.extent:  # the same memory under another shape
            version[0] = version[1] = 0
            return make(g._data, layout, version)
    wanted = strides.like(layout) if leaf is None else strides.kept_by(leaf._layout, layout)
    return _copy(g) if wanted is layout else relaid(g, wanted)


def _copy(g: Tensor) -> Tensor:
    return g.clone()


engine.add = _engine_add
engine.accumulated = _engine_accumulated
engine.add_in_place = _engine_add_in_place
engine.merge = _engine_merge
engine.own = _engine_own
noted.make = make
ownership.copy = _copy
ownership.retained = clone
