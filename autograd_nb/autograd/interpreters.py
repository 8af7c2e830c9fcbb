"""Tensors that stand for something else while a transform is active: a batch (`vmap`), or a value with its tangent (forward mode).

A wrapped tensor looks to the ops like what it stands for: shape and dtype are those of one sample. Its layout is an object of
its own, not an interned one, so no plan is ever found by it: the fast paths of ops miss, as they do for any new layout, and
come to the few functions behind which arrays are worked on (`Pointwise.run`, `Structured.__call__`, …). Those are `overridable`, and
overridden while a transform is active, and only then: ordinary code pays nothing.

What a transform makes of an op is said by the methods of `Wrapped`; where several transforms are nested the innermost one's
tensors have the highest level and are asked first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..graph import engine
from ..graph.modes import PerThread, state
from ..graph.node import _internal, user_frame
from ..graph.ownership import share
from ..ops.core import inplace, mutation
from ..ops.core.marked import MARKED
from ..ops.core.pointwise import Pointwise
from ..ops.core.pointwise_backward import PointwiseNode
from ..ops.core.reduction import Reduction
from ..ops.core.structured import Structured
from ..ops.reduce.fused_reduction import Reduced
from ..overriding import DECOMPOSED, Overrides
from ..shapes import Layout
from ..tensor import Tensor
from .function import Function

__all__ = ["OVERRIDES", "Wrapped", "WrappedLayout", "active", "depth", "forward_on", "innermost", "is_internal"]


class _Depth(PerThread):
    now = 0


depth: Any = _Depth()  #: how many transforms are nested in this thread; a new one's level is one more


@contextmanager
def forward_on(forward: bool = True) -> Iterator[None]:
    """Switch forward mode on for a transform that goes ``forward``; for what is around it, it stays off where it is."""
    before = state.still, state.apart
    if forward:
        state.still = state.apart = min(state.still, depth.now)
    try:
        yield
    finally:
        state.still, state.apart = before


class WrappedLayout(Layout):
    """A layout that is equal to no other."""

    __slots__ = ()


class Wrapped(Tensor):
    """Base of the tensors of transforms; ``level``: how deep the transform is nested."""

    __slots__ = ()  # (``level`` and the like stand in its dict: a tensor can become a plain one)
    level: int
    holds = ""  # the name of the tensor that tells how it lies

    @property
    def held(self) -> Tensor:
        """Return the tensor that tells how it lies, and what it shows of its memory."""
        return getattr(self, self.holds)  # type: ignore[no-any-return]

    def viewed(self, view: Callable[[Any], Any]) -> Any:
        """Return a view: what ``view``, which is linear, makes of all that is held."""
        raise NotImplementedError

    def pointwise(self, op: Pointwise, args: Sequence[Any]) -> Any:
        """Return ``op.run(args)``, this tensor having the highest level among the operands."""
        raise NotImplementedError

    def pointwise_inplace(self, op: Pointwise, args: Sequence[Any]) -> Any:
        """Return the result of ``op.inplace(args)``."""
        raise NotImplementedError

    def structured(self, op: Structured, args: tuple[Any, ...]) -> Any:
        """Return the result of ``op(*args)``."""
        raise NotImplementedError

    def reduction(self, op: Reduction, args: Sequence[Any], dims: Sequence[int], *rest: Any) -> Any:
        """Return ``op(args, dims, *rest)``, the rest being keepdim and options."""
        raise NotImplementedError

    def reduced(self, op: Reduced, args: Sequence[Any], dims: Any = None, keepdim: bool = False, mean: bool = False) -> Any:
        """Return the result of ``op(args, dims, keepdim, mean)``."""
        raise NotImplementedError

    def function(self, op: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
        """Return ``op.apply(*args, **kwargs)`` of a user's `Function`."""
        raise NotImplementedError

    def in_place(self, name: str, compute: Callable[..., Any], target: Any, args: tuple[Any, ...], kw: dict[Any, Any]) -> Any:
        """Run an in-place op that is made from one out of place."""
        raise NotImplementedError

    def write_inplace(self, op: Structured, write: Callable[..., Any], target: Any, args: tuple[Any, ...]) -> Any:
        """Run an in-place op that writes over the target's memory, recorded as ``op``."""
        raise NotImplementedError

    def seen_otherwise(self, view: Callable[[Any], Any]) -> Any:
        """Let this tensor itself become the ``view`` of what it was."""
        raise NotImplementedError


def innermost(args: Any) -> Any:
    """Return the wrapped tensor of the highest level among arguments (tensors, and lists of them), None where there is none."""
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
    """Return whether a frame runs code of this library."""
    user_frame(frame)
    return _internal.get(frame.f_code.co_filename, False)


# -------------------------------------------------------------------------------------------- the overrides

OVERRIDES = Overrides()
OVERRIDES.passes_by = True  # replays are for plain tensors, what wrapped ones hold too: a wrapped one's layout is like no other
active = OVERRIDES.active  #: the overrides stand while any such context is open; operands that are not wrapped pass as always


def _asked(method: str) -> Callable[..., Any]:
    """Return the factory of an override of ``op(operands, *rest)``: the operand of the highest level is asked by its ``method``.

    What is written into a plain view of conjugates is written into a copy first (see `marked_operands`), which is asked about then.
    """

    def factory(inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(op: Any, args: Sequence[Any], *rest: Any, **options: Any) -> Any:
            top = innermost(args)
            if top is None or (method == "pointwise_inplace" and args[0].__class__ in MARKED):
                return inner(op, args, *rest, **options)
            return getattr(top, method)(op, args, *rest, **options)

        return call

    return factory


OVERRIDES.at(Pointwise, "run")(_asked("pointwise"))
OVERRIDES.at(Pointwise, "inplace")(_asked("pointwise_inplace"))
OVERRIDES.at(Reduced, "__call__")(_asked("reduced"))
OVERRIDES.at(Reduction, "__call__")(_asked("reduction"))


@OVERRIDES.at(Structured, "__call__")
def _structured(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Structured, *args: Any) -> Any:
        top = innermost(args)
        return inner(self, *args) if top is None else top.structured(self, args)

    return call


@OVERRIDES.at(Function, "_applied")
def _apply(inner: Any) -> Any:
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        top = innermost((*args, *kwargs.values()))
        return inner.__func__(cls, *args, **kwargs) if top is None else top.function(cls, args, kwargs)

    return classmethod(apply)


@OVERRIDES.at(PointwiseNode, "run")
def _node_run(inner: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: PointwiseNode, g: Any) -> tuple[Any, ...]:
        # a wrapped gradient finds no fused kernel: the rule is run on tensors
        if isinstance(g, Wrapped):
            share(g)
            return self.spec.run_graph(self, g)
        return inner(self, g)

    return run


@OVERRIDES.at(engine.Pass, "add")
def _pass_add(inner: Callable[..., Any]) -> Callable[..., Any]:
    def add(self: engine.Pass, e: Any, g: Any) -> None:
        have = self.pending.get(e)
        if isinstance(have, Wrapped) or (have is not None and isinstance(g, Wrapped)):
            if g is not None:  # never in place: the one may be a batch and the other not
                self.pending[e] = engine.add(have, g)
                self.owned.discard(e)
        else:
            inner(self, e, g)

    return add


@OVERRIDES.at(inplace.in_place)
def _in_place(inner: Callable[..., Any]) -> Callable[..., Any]:
    def in_place(name: str, compute: Callable[..., Any], target: Any, *args: Any, **kw: Any) -> Any:
        top = innermost((target, *args, *kw.values()))
        if top is None or target.__class__ in MARKED:
            return inner(name, compute, target, *args, **kw)
        return top.in_place(name, compute, target, args, kw)

    return in_place


@OVERRIDES.at(inplace.write_inplace)
def _write(inner: Callable[..., Any]) -> Callable[..., Any]:
    def write_inplace(op: Structured, write: Callable[..., Any], target: Any, *args: Any, **options: Any) -> Any:
        top = innermost((target, *args))
        if top is None or target.__class__ in MARKED:
            return inner(op, write, target, *args, **options)
        return top.write_inplace(op, write, target, args)

    return write_inplace


@OVERRIDES.at(mutation.seen_otherwise)
def _seen_otherwise(inner: Callable[..., Any]) -> Callable[..., Any]:
    def seen_otherwise(x: Any, view: Callable[[Any], Any]) -> Any:
        return x.seen_otherwise(view) if isinstance(x, Wrapped) else inner(x, view)

    return seen_otherwise


def _decomposed(rule: Callable[..., Any]) -> Callable[..., Any]:
    def factory(inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kw: Any) -> Any:
            return (inner if innermost((*args, *kw.values())) is None else rule)(*args, **kw)

        return call

    return factory


for _function, _rule in DECOMPOSED.items():
    OVERRIDES.at(_function)(_decomposed(_rule))
