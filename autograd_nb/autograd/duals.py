"""Tensors that carry a tangent (see `forward_ad`): what ops make of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import promote_types
from ..graph.modes import PerThread, no_grad, state
from ..ops.core import inplace, mutation
from ..ops.core.registry import OPS
from ..ops.creation.cast import cast
from ..ops.creation.create import new_full
from ..shapes import overlaps_itself
from ..tensor import Tensor, _new
from .function import Function
from .gained import gains, restored
from .interpreters import Wrapped, WrappedLayout
from .own_tangents import changed_inputs, moved_by, tuple_of
from .tangents import lie_alike
from .transforms import pushed


class _Levels(PerThread):
    def __init__(self) -> None:
        self.stack: list[tuple[int, Any]] = []
        self.living: dict[int, Any] = {}  # level -> its tensors, by their ids
        self.given: dict[int, list[Any]] = {}  # level -> the edges of tangents of `make_dual`


levels = _Levels()


def _unless_still(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method answer only where forward mode is on for its level: else ``op``, its first argument, is run on the primals."""
    in_place = rule.__name__ == "pointwise_inplace"
    run = {"pointwise": "run", "pointwise_inplace": "inplace", "function": "apply"}.get(rule.__name__, "__call__")
    several = rule.__name__ in ("structured", "function")

    @functools.wraps(rule)
    def method(self: Any, op: Any, args: Sequence[Any], *rest: Any, **options: Any) -> Any:
        if self.level > state.still:
            return rule(self, op, args, *rest, **options)
        primals = taken_apart(args, self.level)[0]
        if rule.__name__ == "function":
            return op.apply(*primals, **dict(zip(rest[0], taken_apart([*rest[0].values()], self.level)[0], strict=True)))
        out = getattr(op, run)(*primals) if several else getattr(op, run)(primals, *rest, **options)
        if several and isinstance(args[0], Dual) and _looks_at(out, primals[0]):
            return rule(self, op, args)  # a view, whose tangent is one of its base's
        return args[0] if in_place else out

    return method


def _looks_at(out: Any, x: Any) -> bool:
    """Return whether a result is a view of ``x``, or several are."""
    if isinstance(out, (tuple, list)):
        return bool(out) and _looks_at(out[0], x)
    return isinstance(out, Tensor) and isinstance(x, Tensor) and out._version_ is x._version_


class Dual(Wrapped):
    """A ``primal`` with its ``tangent``."""

    __slots__ = ()
    primal: Tensor
    tangent: Tensor

    @property
    def _data(self) -> Any:  # type: ignore[override]
        return self.primal._data

    @property
    def _version_(self) -> list[int]:  # type: ignore[override]
        return self.primal._version_

    @property
    def _rg(self) -> bool:  # type: ignore[override]
        return True  # so that ops take the way on which they record

    @property
    def _edge(self) -> Any:  # type: ignore[override]
        p = self.primal
        return (p._edge if p._edge is not None else p) if p.requires_grad else None

    @property
    def _view(self) -> None:  # type: ignore[override]
        return None

    @property
    def _grad(self) -> Any:  # type: ignore[override]
        return self.primal._grad

    @_grad.setter
    def _grad(self, value: Any) -> None:
        self.primal._grad = value

    @property
    def _leaf_hook_set(self) -> Any:  # type: ignore[override]
        return self.primal._leaf_hook_set

    @property
    def requires_grad(self) -> bool:
        """Return whether gradients flow to the primal; settable on leaves."""
        return self.primal.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.primal.requires_grad = value

    @property
    def is_leaf(self) -> bool:
        return self.primal.is_leaf

    @property
    def grad_fn(self) -> Any:
        return self.primal.grad_fn

    def detach(self) -> Tensor:
        return self.primal.detach()

    def detach_(self) -> Tensor:
        """Leave the graph in place, and lose the tangent."""
        self.primal.detach_()
        levels.living.get(self.level, {}).pop(id(self), None)
        lose_tangent(self)
        return self

    def share_memory_(self) -> Tensor:
        """Move the primal into memory that processes share."""
        self.primal.share_memory_()
        return self

    @property  # type: ignore[misc]
    def data(self) -> Tensor:  # type: ignore[override]
        """Return the primal's memory as a leaf outside the graph."""
        return self.primal.data

    def _beside(self, fresh: Tensor) -> Tensor:
        if fresh.dtype.category < 2:
            return fresh
        primal = self.primal._beside(fresh)
        if self.level <= state.still:
            return primal
        return dual(primal, new_full(primal.shape, 0, primal.dtype), self.level)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self.primal.requires_grad_(requires_grad)
        return self

    def __repr__(self, **kw: Any) -> str:
        return repr(self.primal) if self.level <= state.still else f"{repr(self.primal)[:-1]}, tangent={self.tangent!r})"

    __str__: Callable[..., str] = __repr__

    # ---- what interpreters answer
    holds = "primal"

    def viewed(self, view: Callable[[Any], Any]) -> Any:
        return dual(view(self.primal), view(self.tangent), self.level)

    @_unless_still
    def pointwise(self, op: Any, args: Sequence[Any]) -> Any:
        primals, tangents = taken_apart(args, self.level)
        out = op.run(primals)
        t = _pointwise_tangent(op, primals, tangents, out, self.level)
        return out if t is None else dual(out, t, self.level)

    @_unless_still
    def pointwise_inplace(self, op: Any, args: Sequence[Any]) -> Any:
        target = args[0]
        _check_target(target, self.level, op.name + "_")
        primals, tangents = taken_apart(args, self.level)
        needs = isinstance(target, Dual) and any(t is not None and r is not None for t, r in zip(tangents, op.rules, strict=True))
        new = None
        if needs:
            old, moving = ([OPS["clone"].call(first), *others] for first, *others in (primals, tangents))
            new = _pointwise_tangent(op, old, moving, op.run(old), self.level)
        op.inplace(primals)
        _set_tangent(target, new)
        return target

    @_unless_still
    def structured(self, op: Any, args: tuple[Any, ...]) -> Any:
        primals, tangents = taken_apart(args, self.level)
        if not (op.rules or op.every):
            return op(*primals)
        if op.linear == "jointly" or (op.linear == "lying" and lie_alike(primals, tangents)):
            out = op(*primals)
            moved = op(*[_tangent_or_zero(p, t) for p, t in zip(primals, tangents, strict=True)])
            if isinstance(out, (tuple, list)):
                return type(out)([dual(o, m, self.level) for o, m in zip(out, moved, strict=True)])
            return dual(out, moved, self.level)
        if op.linear == "each":
            (a, b), (s, t) = primals[:2], tangents[:2]
            parts = [op(s, b, *primals[2:])] if s is not None else []
            if t is not None:
                parts.append(op(a, t, *primals[2:]))
            return dual(op(*primals), parts[0] if len(parts) == 1 else parts[0] + parts[1], self.level)
        return _differentiated(op, args, self.level)

    def reduction(self, op: Any, args: Sequence[Any], dims: Sequence[int], *rest: Any) -> Any:
        return op(taken_apart(args, self.level)[0], dims, *rest)  # what is differentiated is a structured op

    @_unless_still
    def reduced(self, op: Any, args: Sequence[Any], dims: Any = None, keepdim: bool = False, mean: bool = False) -> Any:
        return _differentiated(lambda *xs: op(xs, dims, keepdim, mean), tuple(args), self.level)

    @_unless_still
    def function(self, op: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
        if op.jvp is Function.jvp:
            if op.backward is Function.backward and op.vjp is Function.vjp:
                op.jvp(None)  # which refuses: nothing says what the tangents are
            return _differentiated(lambda *xs: op.apply(*xs, **kwargs), args, self.level)
        primals, tangents = taken_apart(args, self.level)
        # the user's rule reads a context of its own, of copies, as forward may write what it is given
        ctx = op._node_class()
        ctx.needs_input_grad = tuple(t is not None for t in tangents)
        with no_grad():
            given = [OPS["clone"].call(p) if isinstance(p, Tensor) else p for p in primals]
            if op.setup_context is not Function.setup_context:
                found = op.forward(*given)
                op.setup_context(ctx, tuple(given), found)
            else:
                found = op.forward(ctx, *given)
        for i in changed_inputs(ctx, given):  # they have tangents from now on
            _check_target(args[i], self.level, op.__name__)
            primals[i], tangents[i] = parts_of(args[i], self.level)
        out = op.apply(*primals, **kwargs)
        pairs = [*zip(tuple_of(found), tuple_of(out), strict=True), *zip(given, primals, strict=True)]
        ctx._to_save = tuple([next((place for t, place in pairs if t is kept), kept) for kept in ctx._for_forward])
        if ctx._materialize:
            tangents = [
                OPS["zeros_like"].call(p) if t is None and isinstance(p, Tensor) and p.dtype.category > 1 else t
                for p, t in zip(primals, tangents, strict=True)
            ]
        moved = moved_by(op.jvp, ctx, tangents, given, tuple_of(found))
        whole = []
        for o, p, m in zip(tuple_of(found), tuple_of(out), moved, strict=True):
            place = next((i for i in changed_inputs(ctx, given) if given[i] is o), None)
            whole.append(args[place] if place is not None else p if m is None else dual(p, m, self.level))
        return tuple(whole) if isinstance(out, tuple) else whole[0]

    def in_place(self, name: str, compute: Callable[..., Any], target: Any, args: tuple[Any, ...], kw: dict[Any, Any]) -> Any:
        if self.level <= state.still:
            (primal, *others), named = taken_apart((target, *args), self.level)[0], taken_apart([*kw.values()], self.level)[0]
            inplace.in_place(name, compute, primal, *others, **dict(zip(kw, named, strict=True)))
            return target
        _check_target(target, self.level, name)
        return self._overwritten(target, compute(OPS["clone"].call(target), *args, **kw))

    def write_inplace(self, op: Any, write: Callable[..., Any], target: Any, args: tuple[Any, ...]) -> Any:
        if self.level <= state.still:
            inplace.write_inplace(op, write, *taken_apart((target, *args), self.level)[0])
            return target
        _check_target(target, self.level, op.name + "_")
        return self._overwritten(target, op(OPS["clone"].call(target), *args))

    def seen_otherwise(self, view: Callable[[Any], Any]) -> Any:
        tangent = view(self).tangent
        primal = mutation.seen_otherwise(self.primal, view)
        self.primal, self.tangent, self._layout = primal, tangent, WrappedLayout(primal.shape, primal._layout.strides, primal.dtype)
        return self

    def _overwritten(self, target: Any, result: Any) -> Any:
        (value,), (t,) = taken_apart((result,), self.level)
        parts_of(target, self.level)[0].copy_(value)
        _set_tangent(target, t)
        return target


def dual(primal: Tensor, tangent: Tensor, level: int) -> Tensor:
    """Return a tensor with a tangent; without one if it cannot have a derivative."""
    if primal._layout.dtype.category < 2:
        return primal
    t = _new(Dual)
    _set_parts(t, primal, tangent, level)
    return t


def _set_parts(t: Dual, primal: Tensor, tangent: Tensor, level: int) -> None:
    layout = primal._layout
    t.primal, t.tangent, t.level = primal, tangent, level
    t._layout = WrappedLayout(layout.shape, layout.strides, layout.dtype)
    living = levels.living.get(level)
    if living is not None:
        living[id(t)] = t


def lose_tangent(t: Dual) -> None:
    """Make of a tensor whose level has ended what its primal is."""
    p = t.primal
    if isinstance(p, Wrapped) and not isinstance(p, Dual):
        return  # (a batch, which ends with its vmap)
    for name in ("primal", "tangent", "level"):
        del t.__dict__[name]
    if isinstance(p, Dual):  # of a level around this one
        t.primal, t.tangent, t.level, t._layout = p.primal, p.tangent, p.level, p._layout
        living = levels.living.get(p.level)
        if living is not None:
            living[id(t)] = t
        return
    restored(p, t)


def parts_of(a: Any, level: int) -> tuple[Any, Tensor | None]:
    if isinstance(a, Dual) and a.level == level:
        return a.primal, a.tangent
    return a, None


def taken_apart(args: Sequence[Any], level: int) -> tuple[list[Any], list[Any]]:
    """Return (primals, tangents) of arguments; a tuple of tensors has a tuple of tangents, or None."""
    primals, tangents = [], []
    for a in args:
        t: Any
        if isinstance(a, (tuple, list)) and a and isinstance(a[0], Tensor):
            ps, ts = taken_apart(a, level)
            p = type(a)(ps)
            t = tuple(_tangent_or_zero(x, y) for x, y in zip(ps, ts, strict=True)) if any(y is not None for y in ts) else None
        else:
            p, t = parts_of(a, level)
        primals.append(p)
        tangents.append(t)
    return primals, tangents


def _tangent_or_zero(primal: Any, tangent: Any) -> Any:
    if tangent is not None or not isinstance(primal, Tensor) or primal.dtype.category < 2:
        return primal if tangent is None else tangent
    return new_full(primal.shape, 0, primal.dtype)


def _pointwise_tangent(op: Any, primals: Sequence[Any], tangents: Sequence[Any], out: Tensor, level: int) -> Tensor | None:
    """Return Σ dy/dx · tangent over the operands that have one."""
    live = [i for i, t in enumerate(tangents) if t is not None and op.rules[i] is not None]
    d = out.dtype
    if not live or d.category < 2:
        return None
    if d.is_complex or any(isinstance(p, Tensor) and p.dtype.is_complex for p in (*primals, *tangents)):
        # rules give g · conj(dy/dx), and some functions of complex numbers have no dy/dx
        return pushed_in(lambda *xs: op.run(xs), primals, tangents, level)[1]
    values: dict[Any, Any] = {"out": out}
    for i, p in enumerate(primals):
        values[i] = cast(p, d) if isinstance(p, Tensor) and op.params[i] not in op.conditions else p
    total: Any = None
    for i in live:
        # two operands may meet in a larger shape than the tangent has
        part = op.rules[i].whole(cast(tangents[i], d), values, op.params)
        kind = d if tangents[i].dtype is primals[i].dtype else promote_types(d, tangents[i].dtype)  # a tangent may have a wider one than its primal
        total = cast(part, kind) if total is None else total + cast(part, kind)
    if total.shape != out.shape:
        total = total.expand(out.shape)
    # in memory of its own, as the primal is, so that either may be overwritten
    return OPS["clone"].call(total) if len(live) == 1 and (total is tangents[live[0]] or total._view is not None) else total


def pushed_in(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], level: int) -> tuple[Any, Any]:
    """Return (function(*primals), its tangent) from the function's own backward rules."""
    from .batching.batched import levels

    where = [i for i, t in enumerate(tangents) if t is not None]

    def of_live(*live: Any) -> Any:
        full = list(primals)
        for i, x in zip(where, live, strict=True):
            full[i] = x
        return function(*full)

    # the vmaps inside this dual level have taken their batches apart already
    stack, levels.stack = levels.stack, [lv for lv in levels.stack if lv.number < level]
    try:
        return pushed(of_live, tuple(primals[i] for i in where), [tangents[i] for i in where])
    finally:
        levels.stack = stack


def _differentiated(op: Callable[..., Any], args: tuple[Any, ...], level: int) -> Any:
    primals, tangents = taken_apart(args, level)
    if all(t is None for t in tangents):
        return op(*primals)
    out, moved = pushed_in(op, primals, tangents, level)
    if isinstance(out, (tuple, list)):
        return type(out)([dual(o, m, level) for o, m in zip(out, moved, strict=True)])
    return dual(out, moved, level)


def _check_target(target: Any, level: int, name: str) -> None:
    """Let what is overwritten have a tangent: a plain tensor gets one of zeros, with all that see its memory."""
    if (isinstance(target, Dual) and target.level == level) or target._layout.dtype.category < 2:
        return

    def become(t: Any, primal: Tensor, tangent: Tensor) -> None:
        t.__class__ = Dual
        _set_parts(t, primal, tangent, level)

    if target.__class__ is not Tensor or not gains(target, become):
        raise RuntimeError(
            f"{name}(): this tensor without a tangent cannot be overwritten with one that has a tangent, as nothing could keep it. Use "
            f"the out-of-place {name.rstrip('_')}(), or give the tensor a tangent first (make_dual(x, zeros_like(x)))."
        )


def _set_tangent(target: Any, tangent: Tensor | None) -> None:
    """Set the tangent of a tensor that was overwritten, in the old one's memory where views share it."""
    if target._layout.dtype.category < 2:
        return  # (numbers without derivatives)
    old = target.tangent
    if tangent is None:
        tangent = new_full(old.shape, 0, old.dtype)
    if overlaps_itself(old._layout) or (old.requires_grad and old.is_leaf):
        target.tangent = tangent
    else:
        old.copy_(tangent)
