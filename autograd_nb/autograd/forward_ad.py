"""Forward mode: tensors that carry a tangent, the derivative in one direction, through every op.

Inside a dual level, `make_dual` gives a tensor with a tangent; what is computed from it has one too. The tangent of a pointwise
op comes from the same formulas as its gradient (a diagonal matrix is its own transpose); an op that is linear in its operand is
applied to the tangent; all others are differentiated by two passes over their own backward rule.

Source: https://docs.pytorch.org/docs/stable/autograd.html#forward-mode-automatic-differentiation
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..dtypes import promote_types
from ..graph.modes import PerThread, _Mode, no_grad
from ..ops.core import mutation
from ..ops.core.foreign import asked
from ..ops.core.registry import OPS
from ..ops.creation.cast import cast
from ..ops.creation.create import new_full
from ..shapes import overlaps_itself
from ..tensor import Tensor, _new, edge
from .api import grad
from .carried import Carrier
from .forward_over_reverse import tangents_of_gradients
from .function import Function
from .gained import gains, restored
from .interpreters import Wrapped, WrappedLayout, active, depth, innermost
from .own_tangents import OTHER_SIZE, changed_inputs, moved_by, tuple_of
from .pytree import tree_flatten, tree_unflatten
from .tangents import lie_alike, lying_as
from .transforms import by_duals, pushed

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class _Levels(PerThread):
    def __init__(self) -> None:
        self.stack: list[tuple[int, Any]] = []
        self.living: dict[int, Any] = {}  # level -> its tensors, by their ids
        self.given: dict[int, list[Any]] = {}  # level -> the edges of tangents of `make_dual`


_levels = _Levels()


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
        _levels.living.get(self.level, {}).pop(id(self), None)
        _lose_tangent(self)
        return self

    @property  # type: ignore[misc]
    def data(self) -> Tensor:  # type: ignore[override]
        """Return the primal's memory as a leaf outside the graph."""
        return self.primal.data

    def _beside(self, fresh: Tensor) -> Tensor:
        if fresh.dtype.category < 2:
            return fresh
        primal = self.primal._beside(fresh)
        return dual(primal, new_full(primal.shape, 0, primal.dtype), self.level)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self.primal.requires_grad_(requires_grad)
        return self

    def __repr__(self, **kw: Any) -> str:
        return f"{repr(self.primal)[:-1]}, tangent={self.tangent!r})"

    __str__: Callable[..., str] = __repr__

    # ---- what interpreters answer
    holds = "primal"

    def viewed(self, view: Callable[[Any], Any]) -> Any:
        return dual(view(self.primal), view(self.tangent), self.level)

    def pointwise(self, op: Any, args: Sequence[Any]) -> Any:
        primals, tangents = _taken_apart(args, self.level)
        out = op.run(primals)
        t = _pointwise_tangent(op, primals, tangents, out, self.level)
        return out if t is None else dual(out, t, self.level)

    def pointwise_inplace(self, op: Any, args: Sequence[Any]) -> Any:
        target = args[0]
        _check_target(target, self.level, op.name + "_")
        primals, tangents = _taken_apart(args, self.level)
        needs = isinstance(target, Dual) and any(t is not None and r is not None for t, r in zip(tangents, op.rules, strict=True))
        new = None
        if needs:
            old, moving = ([OPS["clone"].call(first), *others] for first, *others in (primals, tangents))
            new = _pointwise_tangent(op, old, moving, op.run(old), self.level)
        op.inplace(primals)
        _set_tangent(target, new)
        return target

    def structured(self, op: Any, args: tuple[Any, ...]) -> Any:
        primals, tangents = _taken_apart(args, self.level)
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
        return op(_taken_apart(args, self.level)[0], dims, *rest)  # what is differentiated is a structured op

    def reduced(self, op: Any, args: Sequence[Any], dims: Any = None, keepdim: bool = False, mean: bool = False) -> Any:
        return _differentiated(lambda *xs: op(xs, dims, keepdim, mean), tuple(args), self.level)

    def function(self, op: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
        if op.jvp is Function.jvp:
            if op.backward is Function.backward and op.vjp is Function.vjp:
                op.jvp(None)  # which refuses: nothing says what the tangents are
            return _differentiated(lambda *xs: op.apply(*xs, **kwargs), args, self.level)
        primals, tangents = _taken_apart(args, self.level)
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
            primals[i], tangents[i] = _parts(args[i], self.level)
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
        _check_target(target, self.level, name)
        return self._overwritten(target, compute(OPS["clone"].call(target), *args, **kw))

    def write_inplace(self, op: Any, write: Callable[..., Any], target: Any, args: tuple[Any, ...]) -> Any:
        _check_target(target, self.level, op.name + "_")
        return self._overwritten(target, op(OPS["clone"].call(target), *args))

    def seen_otherwise(self, view: Callable[[Any], Any]) -> Any:
        tangent = view(self).tangent
        primal = mutation.seen_otherwise(self.primal, view)
        self.primal, self.tangent, self._layout = primal, tangent, WrappedLayout(primal.shape, primal._layout.strides, primal.dtype)
        return self

    def _overwritten(self, target: Any, result: Any) -> Any:
        (value,), (t,) = _taken_apart((result,), self.level)
        _parts(target, self.level)[0].copy_(value)
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
    living = _levels.living.get(level)
    if living is not None:
        living[id(t)] = t


def _lose_tangent(t: Dual) -> None:
    """Make of a tensor whose level has ended what its primal is."""
    p = t.primal
    if isinstance(p, Wrapped) and not isinstance(p, Dual):
        return  # (a batch, which ends with its vmap)
    for name in ("primal", "tangent", "level"):
        del t.__dict__[name]
    if isinstance(p, Dual):  # of a level around this one
        t.primal, t.tangent, t.level, t._layout = p.primal, p.tangent, p.level, p._layout
        living = _levels.living.get(p.level)
        if living is not None:
            living[id(t)] = t
        return
    restored(p, t)


def _parts(a: Any, level: int) -> tuple[Any, Tensor | None]:
    if isinstance(a, Dual) and a.level == level:
        return a.primal, a.tangent
    return a, None


def _taken_apart(args: Sequence[Any], level: int) -> tuple[list[Any], list[Any]]:
    """Return (primals, tangents) of arguments; a tuple of tensors has a tuple of tangents, or None."""
    primals, tangents = [], []
    for a in args:
        t: Any
        if isinstance(a, (tuple, list)) and a and isinstance(a[0], Tensor):
            ps, ts = _taken_apart(a, level)
            p = type(a)(ps)
            t = tuple(_tangent_or_zero(x, y) for x, y in zip(ps, ts, strict=True)) if any(y is not None for y in ts) else None
        else:
            p, t = _parts(a, level)
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
        return _pushed(lambda *xs: op.run(xs), primals, tangents, level)[1]
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


def _pushed(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], level: int) -> tuple[Any, Any]:
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
    primals, tangents = _taken_apart(args, level)
    if all(t is None for t in tangents):
        return op(*primals)
    out, moved = _pushed(op, primals, tangents, level)
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


# ----------------------------------------------------------------------------------------------------- levels


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`; ``tangent`` is None for a tensor without one."""

    primal: Tensor
    tangent: Tensor | None


def __getattr__(name: str) -> Any:
    if name == "_current_level":  # which user functions read to behave otherwise in forward mode
        return len(_levels.stack) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def enter_dual_level() -> int:
    """Begin a level in which tensors may have tangents; its number, for `exit_dual_level`."""
    depth.now += 1
    context = active()
    context.__enter__()
    _levels.stack.append((depth.now, context))
    _levels.living[depth.now], _levels.given[depth.now] = weakref.WeakValueDictionary(), []
    asked.moving, asked.moving_among = _moving_gradients, _level_among
    return len(_levels.stack) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """End the innermost level: its tensors lose their tangents. RuntimeError for any other."""
    last = len(_levels.stack) - 1
    if last < 0:
        raise RuntimeError("Trying to exit a forward AD level but no level is active: call enter_dual_level() first.")
    if level is not None and level != last:
        raise RuntimeError(
            f"Trying to exit a forward AD level that was not the last one that was created. This is not supported. (level={level}, "
            f"the last one is {last})"
        )
    number, context = _levels.stack.pop()
    depth.now -= 1
    context.__exit__(None, None, None)
    _levels.given.pop(number)
    for t in list(_levels.living.pop(number).values()):
        _lose_tangent(t)


class dual_level(_Mode):
    """Context (or decorator) of a dual level.

    Example:
        >>> import autograd_nb.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(torch.tensor([1., 2.]), torch.tensor([1., 0.]))
        ...     fwAD.unpack_dual(x * x).tangent
        tensor([2., 0.])

    Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.forward_ad.dual_level.html
    """

    def __enter__(self) -> int:  # type: ignore[override]
        self._level = enter_dual_level()
        return self._level

    def __exit__(self, *error: Any) -> None:
        exit_dual_level(level=self._level)


def _number(level: int | None, what: str) -> int | None:
    if not _levels.stack:
        return None
    k = len(_levels.stack) - 1 if level is None or level == -1 else level
    if not 0 <= k < len(_levels.stack):
        raise RuntimeError(f"{what}: no forward AD level {level} is active")
    return _levels.stack[k][0]


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return ``tensor`` with a tangent of its shape.

    Errors: RuntimeError outside a dual level, or where shapes differ; ValueError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.forward_ad.make_dual.html
    """
    number = _number(level, "make_dual")
    if number is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for t, name in ((tensor, "primal"), (tangent, "tangent")):
        if not isinstance(t, Tensor):
            raise TypeError(f"make_dual(): argument '{name}' must be a Tensor, not {type(t).__name__}")
        if t.dtype.category < 2:
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(OTHER_SIZE.format(list(tensor.shape), list(tangent.shape)))
    at = f"{len(_levels.stack) - 1 if level is None else level}"
    if _parts(tensor, number)[1] is not None:
        raise RuntimeError(
            f"Making a dual Tensor based on a Tensor that already has a forward gradient at the same level {at} is not supported (unpack_dual "
            "gives its primal)."
        )
    if _parts(tangent, number)[1] is not None:
        raise RuntimeError(f"Setting a forward grad that itself has a forward gradient at the same level {at} is not supported.")
    out = dual(OPS["view_as"].call(tensor, tensor), lying_as(tensor, tangent), number)
    if isinstance(out, Dual):
        _levels.given[number].append(edge(out.tangent))
    return out


def _moving_gradients(roots: Sequence[Any], targets: Sequence[Any], seeds: Any) -> tuple[Any, Callable[[list[Any]], list[Any]] | None]:
    """Return what a `grad` is to start from, and what gives its results their tangents; for roots and seeds that have some."""
    given = [None] * len(roots) if seeds is None else [seeds] if isinstance(seeds, Tensor) else list(seeds)
    moving = [t for t in (*roots, *given) if isinstance(t, Dual)]
    whole = not any(isinstance(t, Wrapped) and not isinstance(t, Dual) for t in given) and len(given) == len(roots)
    if not moving or not whole or not all(isinstance(r, Tensor) and r.requires_grad for r in roots):
        return seeds, None
    level = max(t.level for t in moving)
    pairs = [None if s is None else _parts(s, level) for s in given]
    starts, ends = ([_parts(t, level) for t in tensors] for tensors in (roots, targets))
    tangents = tangents_of_gradients(grad, starts, ends, pairs, _levels.given.get(level, ()))
    if tangents is None:
        return seeds, None

    def attach(found: list[Any]) -> list[Any]:
        kept = [t if t is None or g is None or g.requires_grad else t.detach() for g, t in zip(found, tangents, strict=True)]
        return [g if g is None or t is None else dual(g, t, level) for g, t in zip(found, kept, strict=True)]

    return [p and p[0] for p in pairs], attach


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return (primal, tangent) of a tensor; tangent None where it has none.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.forward_ad.unpack_dual.html
    """
    number = _number(level, "unpack_dual")
    if number is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_split(tensor, number))


def _split(tensor: Any, level: int) -> tuple[Any, Tensor | None]:
    """Return the primal and the tangent of a level, also of a batch of duals as seen from inside the vmap."""
    if not isinstance(tensor, Wrapped) or isinstance(tensor, Dual):
        return _parts(tensor, level)
    from .batching.batched import batch

    primal, tangent = _split(tensor.value, level)  # type: ignore[attr-defined]
    return batch(primal, tensor.level), None if tangent is None else batch(tangent, tensor.level)


def _moved_by(function: Callable[..., list[Tensor]], primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> list[Tensor]:
    """Return the tangents of the function's outputs, zeros where nothing moves them."""
    top = innermost(tangents)  # (what is written into memory with a tangent beside batches is a batch)
    tangents = [t if top is None or isinstance(t, Wrapped) else top._beside(t) for t in tangents]
    with dual_level():
        found = [unpack_dual(t) for t in function(*[make_dual(p, t) for p, t in zip(primals, tangents, strict=True)])]
    return [new_full(f.primal.shape, 0, f.primal.dtype) if f.tangent is None else f.tangent for f in found]


by_duals.append(_moved_by)


def _moving(value: Any) -> Dual | None:
    """Return the tensor with a tangent that a value is, or whose samples it holds."""
    while isinstance(value, Wrapped) and not isinstance(value, Dual):
        value = getattr(value, "value", None)
    return value if isinstance(value, Dual) else None


def _level_among(values: Iterable[Any]) -> int | None:
    return max([d.level for d in map(_moving, values) if d is not None], default=None) if _levels.stack else None


def _joined(primal: Any, tangent: Any, level: int) -> Tensor:
    """Return a tensor with a tangent of a level around the vmaps whose samples these are."""
    if isinstance(primal, Wrapped) and not isinstance(primal, Dual) and primal.level > level:
        from .batching.batched import batch

        beside = tangent if isinstance(tangent, Wrapped) and tangent.level == primal.level else primal._beside(tangent)
        return batch(_joined(primal.value, beside.value, level), primal.level)  # type: ignore[attr-defined]
    return dual(primal, tangent, level)


def _carried(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a transform that goes forward; see `carried`."""
    flat, spec = tree_flatten((args, kwargs))
    level, whole = _level_among(flat), []  # type: ignore[var-annotated]
    if level is None:
        return function(*args, **kwargs)

    def tensors(*values: Any) -> tuple[Tensor, ...]:
        given, named = tree_unflatten(list(values), spec)
        whole[:] = tree_flatten(function(*given, **named))
        return tuple([t for t in whole[0] if isinstance(t, Tensor)])

    if any(isinstance(t, Dual) for t in flat):
        out, moved = _pushed(tensors, *_taken_apart(flat, level), level)
    else:  # samples of a vmap inside of the level
        parts = [_split(t, level) if _moving(t) is not None else (t, None) for t in flat]
        where = [i for i, (_, tangent) in enumerate(parts) if tangent is not None]

        def of_moving(*live: Any) -> Any:
            return tensors(*[live[where.index(i)] if i in where else primal for i, (primal, _) in enumerate(parts)])

        out, moved = pushed(of_moving, tuple([parts[i][0] for i in where]), [parts[i][1] for i in where])
    found = iter([_joined(o, m, level) for o, m in zip(out, moved, strict=True)])
    return tree_unflatten([next(found) if isinstance(t, Tensor) else t for t in whole[0]], whole[1])


Carrier.call, Carrier.level = staticmethod(_carried), staticmethod(_level_among)
Carrier.split, Carrier.joined = staticmethod(_split), staticmethod(_joined)


@contextmanager
def _set_fwd_grad_enabled(mode: bool) -> Iterator[None]:
    """Do nothing: it is accepted for PyTorch's sake."""
    yield
