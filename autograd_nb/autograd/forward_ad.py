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
from math import inf
from typing import Any, NamedTuple, Self

from ..graph.modes import Function, _Mode, state
from ..ops.core.foreign import asked
from ..ops.core.registry import OPS
from ..ops.creation.create import new_full
from ..overriding import whole
from ..tensor import Tensor, edge
from .api import grad
from .carried import Carrier
from .duals import Dual, dual, levels, lose_tangent, parts_of, pushed_in, taken_apart
from .forward_over_reverse import tangents_of_gradients
from .interpreters import Wrapped, active, depth, forward_on, innermost
from .own_tangents import OTHER_SIZE
from .pytree import tree_flatten, tree_unflatten
from .tangents import lying_as
from .transforms import by_duals, pushed

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`; ``tangent`` is None for a tensor without one."""

    primal: Tensor
    tangent: Tensor | None


def __getattr__(name: str) -> Any:
    if name == "_current_level":  # which user functions read to behave otherwise in forward mode
        return len(levels.stack) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def enter_dual_level() -> int:
    """Begin a level in which tensors may have tangents; its number, for `exit_dual_level`. RuntimeError within another one."""
    if levels.stack:
        raise RuntimeError("Nested forward mode AD is not supported at the moment (func.jvp may be nested: jvp(lambda x: jvp(f, …), …))")
    return _begin()


def _begin() -> int:
    depth.now += 1
    context = active()
    context.__enter__()
    levels.stack.append((depth.now, context))
    levels.living[depth.now], levels.given[depth.now] = weakref.WeakValueDictionary(), []
    asked.moving, asked.moving_among = _moving_gradients, _level_among
    return len(levels.stack) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """End the innermost level: its tensors lose their tangents. RuntimeError for any other."""
    last = len(levels.stack) - 1
    if last < 0:
        raise RuntimeError("Trying to exit a forward AD level but no level is active: call enter_dual_level() first.")
    if level is not None and level != last:
        raise RuntimeError(
            f"Trying to exit a forward AD level that was not the last one that was created. This is not supported. (level={level}, "
            f"the last one is {last})"
        )
    number, context = levels.stack.pop()
    depth.now -= 1
    context.__exit__(None, None, None)
    levels.given.pop(number)
    for t in list(levels.living.pop(number).values()):
        lose_tangent(t)


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


@contextmanager
def _level() -> Iterator[None]:
    """Run `jvp` in a level of its own, also within another one."""
    with forward_on():
        number = _begin()
        try:
            yield
        finally:
            exit_dual_level(level=number)


def _number(level: int | None, what: str) -> int | None:
    if not levels.stack:
        return None
    k = len(levels.stack) - 1 if level is None or level == -1 else level
    if not 0 <= k < len(levels.stack):
        raise RuntimeError(f"{what}: no forward AD level {level} is active")
    return levels.stack[k][0]


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
    at = f"{len(levels.stack) - 1 if level is None else level}"
    if number <= state.still:
        tensor = parts_of(tensor, number)[0]
    if parts_of(tensor, number)[1] is not None:
        raise RuntimeError(
            f"Making a dual Tensor based on a Tensor that already has a forward gradient at the same level {at} is not supported (unpack_dual "
            "gives its primal)."
        )
    if parts_of(tangent, number)[1] is not None:
        raise RuntimeError(f"Setting a forward grad that itself has a forward gradient at the same level {at} is not supported.")
    out = dual(OPS["view_as"].call(tensor, tensor), lying_as(tensor, tangent), number)
    if isinstance(out, Dual):
        levels.given[number].append(edge(out.tangent))
    return out


def _moving_gradients(roots: Sequence[Any], targets: Sequence[Any], seeds: Any) -> tuple[Any, Callable[[list[Any]], list[Any]] | None]:
    """Return what a `grad` is to start from, and what gives its results their tangents; for roots and seeds that have some."""
    if state.still == inf:
        return seeds, None
    given = [None] * len(roots) if seeds is None else [seeds] if isinstance(seeds, Tensor) else list(seeds)
    moving = [t for t in (*roots, *given) if isinstance(t, Dual)]
    whole = not any(isinstance(t, Wrapped) and not isinstance(t, Dual) for t in given) and len(given) == len(roots)
    if not moving or not whole or not all(isinstance(r, Tensor) and r.requires_grad for r in roots):
        return seeds, None
    level = max(t.level for t in moving)
    pairs = [None if s is None else parts_of(s, level) for s in given]
    starts, ends = ([parts_of(t, level) for t in tensors] for tensors in (roots, targets))
    tangents = tangents_of_gradients(grad, starts, ends, pairs, levels.given.get(level, ()))
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
    if number <= state.still:
        return UnpackedDualTensor(_split(tensor, number)[0], None)
    return UnpackedDualTensor(*_split(tensor, number))


def _split(tensor: Any, level: int) -> tuple[Any, Tensor | None]:
    """Return the primal and the tangent of a level, also of a batch of duals as seen from inside the vmap."""
    if not isinstance(tensor, Wrapped) or isinstance(tensor, Dual):
        return parts_of(tensor, level)
    from .batching.batched import batch

    primal, tangent = _split(tensor.value, level)  # type: ignore[attr-defined]
    return batch(primal, tensor.level), None if tangent is None else batch(tangent, tensor.level)


def _moved_by(function: Callable[..., list[Tensor]], primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> list[Tensor]:
    """Return the tangents of the function's outputs, zeros where nothing moves them."""
    top = innermost(tangents)  # (what is written into memory with a tangent beside batches is a batch)
    tangents = [t if top is None or isinstance(t, Wrapped) else top._beside(t) for t in tangents]
    with _level():
        found = [unpack_dual(t) for t in function(*[make_dual(p, t) for p, t in zip(primals, tangents, strict=True)])]
    return [new_full(f.primal.shape, 0, f.primal.dtype) if f.tangent is None else f.tangent for f in found]


by_duals.append(_moved_by)


def _moving(value: Any) -> Dual | None:
    """Return the tensor with a tangent that a value is, or whose samples it holds."""
    while isinstance(value, Wrapped) and not isinstance(value, Dual):
        value = getattr(value, "value", None)
    return value if isinstance(value, Dual) else None


def _level_among(values: Iterable[Any]) -> int | None:
    return max([d.level for d in map(_moving, values) if d is not None], default=None) if levels.stack else None


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
    if level <= state.still:
        given, named = tree_unflatten([_split(t, level)[0] for t in flat], spec)
        return _carried(function, given, named)

    def tensors(*values: Any) -> tuple[Tensor, ...]:
        given, named = tree_unflatten(list(values), spec)
        whole[:] = tree_flatten(function(*given, **named))
        return tuple([t for t in whole[0] if isinstance(t, Tensor)])

    if any(isinstance(t, Dual) for t in flat):
        out, moved = pushed_in(tensors, *taken_apart(flat, level), level)
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


def _is_fwd_grad_enabled() -> bool:
    """Return whether what is computed of tensors with tangents has tangents in this thread, as it has outside of `inference_mode`."""
    return state.still != inf


class _set_fwd_grad_enabled(_Mode):
    """Give results tangents or not, according to ``mode``: at once when called as a function, or for the length of a ``with`` block.

    >>> import autograd_nb.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor(3.), torch.tensor(1.))
    ...     with fwAD._set_fwd_grad_enabled(False):
    ...         y = x * x
    ...     fwAD.unpack_dual(y).tangent, fwAD.unpack_dual(x * y).tangent
    (None, tensor(9.))
    """

    @whole
    def __init__(self, mode: bool):
        self._mode, self._previous = bool(mode), state.still
        state.still = state.apart if mode else inf
        state.switched += not mode  # (as passes go the other way, such a function is run in forward mode)

    def __call__(self, function: Function) -> Function:
        state.still = self._previous
        return super().__call__(function)

    def _clone(self) -> Self:
        return type(self)(self._mode)

    def __enter__(self) -> None:
        pass

    @whole
    def __exit__(self, *error: Any) -> None:
        state.still = self._previous
