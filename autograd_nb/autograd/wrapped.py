"""Tensors that stand for something else while a transform is active: a batch (`vmap`), or a value with its tangent (forward mode).

A wrapped tensor looks to the ops like what it stands for: shape and dtype are those of one sample. Its layout is an object of
its own, not an interned one, so no plan is ever found by it: the quick paths of ops miss, as they do for any new layout, and
come to the few doors behind which arrays are worked on (`Pointwise.run`, `Structured.__call__`, …). Those doors are exchanged
while a transform is active, and only then: ordinary code pays nothing.

What a transform makes of an op that comes to a door is said by the methods of `Wrapped`; where several transforms are nested
the innermost one's tensors have the highest level and are asked first.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

from ..graph import engine
from ..graph.node import _internal, user_frame
from ..ops import inplace
from ..ops.fused import Reduced
from ..ops.plans import PointwiseNode
from ..ops.pointwise import Pointwise
from ..ops.reduction import Reduction
from ..ops.structured import Structured
from ..shapes import Layout
from ..tensor import Tensor
from .function import Function

__all__ = ["Wrapped", "WrappedLayout", "active", "add_door", "depth", "is_internal"]


class _Depth(threading.local):
    now = 0


depth = _Depth()  #: how many transforms are nested in this thread; a new one's level is one more


class WrappedLayout(Layout):
    """A layout that is equal to no other."""

    __slots__ = ()


class Wrapped(Tensor):
    """Base of the tensors of transforms; ``level``: how deep the transform is nested."""

    __slots__ = ("level",)
    level: int

    def pointwise(self, op: Pointwise, args: Sequence[Any]) -> Any:
        """``op.run(args)``, this tensor having the highest level among the operands."""
        raise NotImplementedError

    def pointwise_inplace(self, op: Pointwise, args: Sequence[Any]) -> Any:
        """``op.inplace(args)``."""
        raise NotImplementedError

    def structured(self, op: Structured, args: tuple) -> Any:
        """``op(*args)``."""
        raise NotImplementedError

    def reduction(self, op: Reduction, args: tuple) -> Any:
        """``op(*args)``; its first argument is this tensor."""
        raise NotImplementedError

    def reduced(self, op: Reduced, args: Sequence[Any], dims: Any, keepdim: bool, mean: bool) -> Any:
        """``op(args, dims, keepdim, mean)``."""
        raise NotImplementedError

    def function(self, op: Any, args: tuple, kwargs: dict) -> Any:
        """``op.apply(*args, **kwargs)`` of a user's `Function`."""
        raise NotImplementedError

    def in_place(self, name: str, compute: Callable, target: Any, args: tuple, kw: dict) -> Any:
        """An in-place op that is made from one out of place."""
        raise NotImplementedError

    def write_inplace(self, op: Structured, write: Callable, target: Any, args: tuple) -> Any:
        """An in-place op that writes over the target's memory, recorded as ``op``."""
        raise NotImplementedError


def innermost(args: Any) -> Any:
    """The wrapped tensor of the highest level among arguments (tensors, and lists of them), None where there is none."""
    top, level = None, -1
    for a in args:
        if isinstance(a, Wrapped):
            if a.level > level:
                top, level = a, a.level
        elif a.__class__ is tuple or a.__class__ is list:
            t = innermost(a)
            if t is not None and t.level > level:
                top, level = t, t.level
    return top


def is_internal(frame: Any) -> bool:
    """Whether a frame runs code of this library."""
    user_frame(frame)
    return _internal.get(frame.f_code.co_filename, False)


# ------------------------------------------------------------------------------------------------ the doors

_run, _inplace, _structured = Pointwise.run, Pointwise.inplace, Structured.__call__
_reduction, _reduced, _apply = Reduction.__call__, Reduced.__call__, Function.__dict__["apply"]
_node_run, _in_place, _write = PointwiseNode.run, inplace.in_place, inplace.write_inplace
_add = engine.Pass.add


def _door_run(self: Pointwise, args: Sequence[Any]) -> Any:
    top = innermost(args)
    return _run(self, args) if top is None else top.pointwise(self, args)


def _door_inplace(self: Pointwise, args: Sequence[Any]) -> Any:
    top = innermost(args)
    return _inplace(self, args) if top is None else top.pointwise_inplace(self, args)


def _door_structured(self: Structured, *args: Any) -> Any:
    top = innermost(args)
    return _structured(self, *args) if top is None else top.structured(self, args)


def _door_reduction(self: Reduction, *args: Any) -> Any:
    top = innermost(args)
    return _reduction(self, *args) if top is None else top.reduction(self, args)


def _door_reduced(self: Reduced, args: Sequence[Any], dims: Any = None, keepdim: bool = False, mean: bool = False) -> Any:
    top = innermost(args)
    return _reduced(self, args, dims, keepdim, mean) if top is None else top.reduced(self, args, dims, keepdim, mean)


def _door_function(cls: Any, *args: Any, **kwargs: Any) -> Any:
    top = innermost((*args, *kwargs.values()))
    return _apply.__func__(cls, *args, **kwargs) if top is None else top.function(cls, args, kwargs)


def _door_node(self: PointwiseNode, g: Any) -> tuple:
    # a wrapped gradient finds no fused kernel: the rule is run on tensors
    return self.spec.run_graph(self, g) if isinstance(g, Wrapped) else _node_run(self, g)


def _door_add(self: engine.Pass, e: Any, g: Any) -> None:
    have = self.pending.get(e)
    if isinstance(have, Wrapped) or (have is not None and isinstance(g, Wrapped)):
        if g is not None:  # never in place: the one may be a batch and the other not
            self.pending[e] = engine.add(have, g)
            self.owned.discard(e)
    else:
        _add(self, e, g)


def _door_in_place(name: str, compute: Callable, target: Any, *args: Any, **kw: Any) -> Any:
    top = innermost((target, *args, *kw.values()))
    return _in_place(name, compute, target, *args, **kw) if top is None else top.in_place(name, compute, target, args, kw)


def _door_write(op: Structured, write: Callable, target: Any, *args: Any) -> Any:
    top = innermost((target, *args))
    return _write(op, write, target, *args) if top is None else top.write_inplace(op, write, target, args)


#: (where, name, what ordinary code finds there, what it finds while a transform is active)
DOORS: list[tuple[Any, str, Any, Any]] = [
    (Pointwise, "run", _run, _door_run),
    (Pointwise, "inplace", _inplace, _door_inplace),
    (Structured, "__call__", _structured, _door_structured),
    (Reduction, "__call__", _reduction, _door_reduction),
    (Reduced, "__call__", _reduced, _door_reduced),
    (Function, "apply", _apply, classmethod(_door_function)),
    (PointwiseNode, "run", _node_run, _door_node),
    (engine.Pass, "add", _add, _door_add),
]


def add_door(owner: Any, name: str, door: Callable) -> None:
    """Exchange one more function while transforms are active."""
    DOORS.append((owner, name, owner.__dict__[name], door))


def _everywhere(name: str, original: Callable, door: Callable) -> None:
    """A helper function of the ops, in every module that imported it."""
    DOORS.extend(
        (module, name, original, door)
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith(inplace.__package__ + ".") and vars(module).get(name) is original
    )


_everywhere("in_place", _in_place, _door_in_place)
_everywhere("write_inplace", _write, _door_write)

_count = 0
_lock = threading.Lock()


@contextmanager
def active() -> Any:
    """The doors are exchanged while any such context is open, in any thread; operands that are not wrapped pass as always."""
    global _count
    with _lock:
        _count += 1
        if _count == 1:
            for owner, name, _, door in DOORS:
                setattr(owner, name, door)
    try:
        yield
    finally:
        with _lock:
            _count -= 1
            if not _count:
                for owner, name, original, _ in DOORS:
                    setattr(owner, name, original)
