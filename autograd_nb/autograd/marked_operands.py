"""What ops do with views that show conjugates or negatives (`ops.core.marked`): such operands are computed, in memory of their own.

A view of such a view is one of what it looks at, marked again. What works in place does so on a copy, which is then written, marked again,
into what the view looks at: that is recorded as any other change of a part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..graph import engine
from ..graph.modes import state
from ..ops.core import inplace, mutation
from ..ops.core.history import check_inplace
from ..ops.core.marked import MARKED, MARKS, Marked, _computed, computed_operand, looked_at, marked, resolved
from ..ops.core.pointwise import Pointwise
from ..ops.core.reduction import Reduction
from ..ops.core.structured import Structured
from ..ops.reduce.fused_reduction import Reduced
from ..ops.shape import strided
from ..overriding import DECOMPOSED
from ..tensor import Tensor


def _among(args: Any) -> bool:
    for a in args:
        kind = a.__class__
        if kind in MARKED or ((kind is tuple or kind is list) and a and _among(a)):
            return True
    return False


def _resolved(value: Any) -> Any:
    kind = value.__class__
    if kind in MARKED:
        return computed_operand(value)
    return kind([_resolved(v) for v in value]) if kind is tuple or kind is list else value


def _on_operands(owner: type, name: str) -> None:
    """Let a method of ops be given its operands computed. It begins anew with them, as what is computed of one may have a tangent."""

    @MARKS.at(owner, name)
    def factory(inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(op: Any, args: Sequence[Any], *rest: Any, **options: Any) -> Any:
            if _among(args):
                return getattr(owner, name)(op, [_resolved(a) for a in args], *rest, **options)
            return inner(op, args, *rest, **options)

        return call


_on_operands(Pointwise, "run")
_on_operands(Reduced, "__call__")
_on_operands(Reduction, "__call__")


def _on_function(function: Callable[..., Any], rule: Callable[..., Any]) -> None:
    """Let a function that launches kernels of its own be given its operands computed, anew as above.

    A pair is one of running statistics, which are written: by the ops of the ``rule`` where they are marked.
    """

    @MARKS.at(function)
    def factory(inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            given = (*args, *options.values())
            if not _among(given):
                return inner(*args, **options)
            if any(a.__class__ is tuple and _among(a) for a in given):
                return rule(*args, **options)
            return function(*[_resolved(a) for a in args], **{k: _resolved(v) for k, v in options.items()})

        return call


for _function, _rule in DECOMPOSED.items():
    _on_function(_function, _rule)


@MARKS.at(strided.look_strided)
def _look_strided(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, *where: Any) -> Any:
        return marked(_look_strided(inner)(looked_at(x), *where), x.mark) if x.__class__ in MARKED else inner(x, *where)

    return call


@MARKS.at(strided.scatter_strided)
def _scatter_strided(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, src: Any, *where: Any) -> Any:
        if x.__class__ not in MARKED:
            return inner(x, resolved(src), *where)
        return _computed(x.mark, _scatter_strided(inner)(x.of, _computed(x.mark, resolved(src)), *where))

    return call


@MARKS.at(Structured, "__call__")
def _structured(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Structured, *args: Any) -> Any:
        if not _among(args):
            return inner(self, *args)
        first = args[0]
        if not self.view or first.__class__ not in MARKED:
            return self(*[_resolved(a) for a in args])  # (anew, as above)
        out = self(looked_at(first), *args[1:])
        return type(out)([_again(first, t) for t in out]) if isinstance(out, (tuple, list)) else _again(first, out)

    return call


def _again(x: Marked, view: Tensor) -> Tensor:
    if view.dtype is not x.dtype and (x.mark == "conj" or view.dtype.to_real() is not x.dtype.to_real()):
        which = "conjugate" if x.mark == "conj" else "negative"
        raise RuntimeError(
            f"torch.Tensor.view is not supported for {which} view tensors when converting to a different dtype ({x.dtype} to {view.dtype}; "
            "use x.resolve_conj().resolve_neg(), a copy)"
        )
    return marked(view, x.mark)


# ---------------------------------------------------------------------------------------------------- in place


def _before(t: Tensor) -> Tensor:
    """Return what a marked tensor stands for before it is overwritten, with the history of its base: hooks on it belong to what it was."""
    return _computed(t.mark, _before(t.of)) if t.__class__ in MARKED else inplace.before(t)  # type: ignore[attr-defined]


def written(target: Marked, work: Callable[[Tensor], Any]) -> Tensor:
    """Return a marked tensor after the ``work`` in place on what it shows."""
    check_inplace(target)
    shown = _before(target) if state.grad else resolved(target)
    work(shown)
    target.of.copy_(_computed(target.mark, shown))
    if state.grad:
        inplace.answers_for(shown, target)
    return target


@MARKS.at(Pointwise, "inplace")
def _pointwise_inplace(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Pointwise, args: Sequence[Any]) -> Any:
        if not _among(args):
            return inner(self, args)
        target, *others = args
        others = [_resolved(a) for a in others]
        return written(target, lambda t: self.inplace([t, *others])) if target.__class__ in MARKED else self.inplace([target, *others])

    return call


def _on_target(function: Callable[..., Any], place: int) -> None:
    """Let a function that writes over the argument at this place know what is marked."""

    @MARKS.at(function)
    def factory(inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if not (_among(args) or _among(options.values())):
                return inner(*args, **options)
            given, target = [_resolved(a) if i != place else a for i, a in enumerate(args)], args[place]
            named = {k: _resolved(v) for k, v in options.items()}
            if target.__class__ in MARKED:
                return written(target, lambda t: function(*given[:place], t, *given[place + 1 :], **named))
            return function(*given, **named)

        return call


_on_target(inplace.in_place, 2)
_on_target(inplace.write_inplace, 2)


@MARKS.at(mutation.seen_otherwise)
def _seen_otherwise(inner: Callable[..., Any]) -> Callable[..., Any]:
    def seen_otherwise(x: Any, view: Callable[[Any], Any]) -> Any:
        if x.__class__ not in MARKED:
            return inner(x, view)
        seen_otherwise(x.of, view)
        x._layout = marked(x.of, x.mark)._layout
        return x

    return seen_otherwise


# --------------------------------------------------------------------------------------------------- gradients


@MARKS.at(engine.Pass, "add")
def _pass_add(inner: Callable[..., Any]) -> Callable[..., Any]:
    def add(self: engine.Pass, e: Any, g: Any) -> None:
        inner(self, e, resolved(g) if g.__class__ in MARKED else g)

    return add
