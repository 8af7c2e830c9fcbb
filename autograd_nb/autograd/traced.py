"""A function that a transform has called on inputs of its own, and the passes over what it recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..graph.modes import recorded, state
from ..graph.node import Within
from ..graph.transformed import transformed
from ..ops.core.history import LeafBackward0, attach, check_inplace, rewrite_history
from ..ops.core.marked import MARKED
from ..ops.core.recording import pushed as running
from ..ops.core.recording import reaches
from ..ops.creation.create import new_full
from ..ops.shape.shape import alias_view
from ..tensor import Tensor, edge, fill_node
from .api import grad as backward_pass
from .batching.batched import Batched, Level, batch, levels, materialize
from .carried import Carrier, all_parts, detached, pulled, refuse_captured, taken_off
from .interpreters import forward_on
from .pytree import tree_flatten, tree_map, tree_unflatten
from .returned import apart, tensors_of


def peel(t: Tensor, base: Sequence[Level]) -> Tensor:
    """Return a tensor with the batches of these levels as ordinary dims in front; deeper levels stay around it."""
    if isinstance(t, Batched) and all(t.level != lv.number for lv in base):
        return batch(peel(t.value, base).movedim(len(base), 0), t.level) if base else t
    for lv in reversed(base):
        t = materialize(t, lv.number, lv.size)
    return t


def wrap(t: Tensor, base: Sequence[Level]) -> Tensor:
    """Return the inverse of `peel`."""
    if isinstance(t, Batched) and all(t.level != lv.number for lv in base):
        return batch(wrap(t.value.movedim(0, len(base)), base), t.level) if base else t
    for lv in base:
        t = batch(t, lv.number)
    return t


class PrimalBackward0(LeafBackward0):
    """Stands before a tensor that others differentiate by too."""


def _within(plain: Tensor, forward: bool) -> Tensor:
    """Return what stands for a tensor that others differentiate by too: a view of it, which says that it is a leaf where the passes go back.

    Forward, where a function may change it in place, it is no view, as its history is to stay what it is.
    """
    if forward and _may_change(plain):
        leaf = plain.detach()
        leaf._version_ = plain._version_
        attach(leaf, fill_node(PrimalBackward0(), (edge(plain),)))
        return leaf
    leaf = alias_view(plain)
    if not forward:
        looks, at = (leaf.of, plain.of) if leaf.__class__ in MARKED else (leaf, plain)
        if looks.__class__ not in MARKED and edge(at) is not None:
            looks._edge = fill_node(Within(), (edge(at),))
    return leaf


def _may_change(plain: Tensor) -> bool:
    """Return whether a recorded op may change the tensor in place."""
    try:
        with recorded():
            check_inplace(plain)
    except RuntimeError:
        return False
    return True


class _Call:
    """Whether the function that was called on some leaves is still running; known to the leaves."""

    __slots__ = ("running",)

    def __init__(self) -> None:
        self.running = True


_FINISHED = _Call()
_FINISHED.running = False



@contextmanager
def _constants(some: bool) -> Iterator[None]:
    """Let what a function takes from outside be constants where nothing is recorded there: also views that have no clear history."""
    before = state.constant
    if some:
        state.constant = lambda t: not reaches([edge(t)], _Others())
    try:
        yield
    finally:
        state.constant = before


class _Others:
    """All leaves but those of functions that are running."""

    def __contains__(self, leaf: Any) -> bool:
        return "_call" not in leaf.__dict__


_LATER = ("vjp", "linearize")  #: transforms that give a function, which is called later


class Trace:
    """A function called once on inputs of its own, ready for backward passes.

    ``outside``: whether what was recorded reaches tensors that others differentiate by; then the passes are recorded too. Of what is run
    ``later``, where gradients may be wanted again, that holds under `no_grad` as well, while the results are outside the graph.
    """

    def __init__(self, func: Callable[..., Any], primals: Sequence[Any], has_aux: bool, name: str):
        self.base = tuple(levels.stack)
        self.recording, call = state.grad, _Call()
        recording = self.recording or name.startswith(_LATER)
        flat, self.spec = tree_flatten(list(primals))
        for t in flat:
            if not isinstance(t, Tensor):
                raise RuntimeError(f"{name}: Expected the inputs to only contain Tensors, got {type(t)}")
        self.forward = forward = name.startswith(("jvp", "jacfwd", "linearize"))
        with recorded():
            self.leaves, plains, moving = [], [], []
            connected = False
            for t in flat:
                if forward and t.dtype.category < 2:
                    raise ValueError(f"Expected primal to be floating point or complex, but got: {t.dtype} ({name})")
                whole, again = (t, None) if forward else taken_off(t)
                moving.append(again)
                plain = peel(whole, self.base)
                plains.append(plain)
                if plain.requires_grad and recording:
                    connected = True
                    self.leaves.append(_within(plain, forward))
                else:
                    leaf = plain.detach()
                    if plain.is_inference() and plain.dtype.category >= 2:
                        leaf._rg, leaf._version_ = True, plain._version_  # (which cannot be asked for)
                    else:
                        leaf.requires_grad_()
                    leaf.__dict__["_call"] = call
                    self.leaves.append(leaf)
            self.given = [self._changeable(t) for t in self.leaves] if forward else self.leaves
            self.unchanged = [edge(t) for t in self.given]
            wrapped = [wrap(t, self.base) for t in self.given]
            self.arguments = [t if again is None else again(t) for t, again in zip(wrapped, moving, strict=True)]
            self.primals = flat
            new = tree_unflatten(self.arguments, self.spec)
            outer, switched = running.only, state.switched
            try:
                running.only = self._moved_alone(outer) if forward else None
                with forward_on(forward), transformed(not name.startswith("linearize")), _constants(not recording):  # (which PyTorch runs as it is)
                    result = func(*new)
            finally:
                call.running, running.only = False, outer
                self.plains = plains
                if forward:
                    self._hand_back()
            self.cut = state.switched != switched
            if not forward:  # what goes back is differentiated again by going back: duals would lose their tangents in here
                state.switched = switched
            self.result, self.aux = apart(result, has_aux, name)
            outputs, self.out_spec = tensors_of(self.result, name, forward)
            self.outputs = [peel(t, self.base) for t in outputs]
        if forward:
            refuse_captured(outputs, name)
        self.like = outputs
        self.outside = recording and (connected or any(map(self._leads_outside, [*outputs, *tree_flatten(self.aux)[0]])))

    @staticmethod
    def _changeable(leaf: Tensor) -> Tensor:
        """Return the leaf as a tensor that may be changed in place, as there is no leaf in forward mode."""
        if not (leaf.is_leaf or edge(leaf).__class__ is PrimalBackward0):
            return leaf  # a view, which may not be changed
        t = leaf.detach()
        if leaf.is_inference():
            t._version_ = leaf._version_  # (it has another)
        attach(t, edge(leaf))
        return t

    def _hand_back(self) -> None:
        """Give what others differentiate by too, or by now, the history of the changes that the function has made in place."""
        for k in self.changed():
            if edge(self.leaves[k]).__class__ is PrimalBackward0 or (self.recording and self._leads_outside(self.given[k])):
                rewrite_history(self.plains[k], edge(self.given[k]))

    def _leads_outside(self, t: Any) -> bool:
        """Return whether a result depends on what others differentiate by."""
        return isinstance(t, Tensor) and reaches([edge(peel(part, self.base)) for part in all_parts(t)], set(self.leaves))

    def changed(self) -> list[int]:
        """Return which inputs the function has changed in place."""
        return [
            k for k, (t, leaf) in enumerate(zip(self.given, self.leaves, strict=True))
            if t is not leaf and edge(t) is not self.unchanged[k] and t.shape == leaf.shape
        ]  # fmt: skip

    def _moved_alone(self, outer: Callable[[Tensor], bool] | None) -> Callable[[Tensor], bool]:
        """Return a test of tensors: whether nobody but this trace, and those around it that are pushed too, differentiates by them."""
        own = set(self.leaves)
        own.update(getattr(outer, "leaves", ()))

        def alone(t: Tensor) -> bool:
            return not reaches([edge(peel(t, self.base))], own)

        alone.leaves = own  # type: ignore[attr-defined]
        return alone

    def value(self) -> Any:
        """Return the function's result, outside the graph unless others are to differentiate it."""
        return self.released(self.result)

    def released(self, tree: Any) -> Any:
        """Return what a function has returned without the history of what depends on nothing that others differentiate by."""
        kept = self.outside and self.recording
        return tree_map(lambda t: self._outside(t, kept) if isinstance(t, Tensor) else t, tree)

    def _outside(self, t: Tensor, kept: bool) -> Tensor:
        """Return one of the tensors that a function has returned, as `released` does: of an argument, what the caller gave."""
        for argument, primal in zip(self.arguments, self.primals, strict=True):
            if t is argument and not self.forward:
                return primal
        if not (kept and self._leads_outside(t)):
            return detached(t)
        for given, leaf, plain in zip(self.given, self.leaves, self.plains, strict=True):
            if given is not leaf and given._view is None:
                if t is given:
                    return alias_view(plain)
                if t._view is given:
                    t._view, t._view_kind = (plain, t._view_kind) if plain._view is None else (plain._view, plain._view_kind or t._view_kind)
        return t

    def pull(self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor], retain: bool) -> list[Tensor | None]:
        """Return Σ vᵀJ for each leaf; None for what does not matter."""
        with recorded():
            peeled = [peel(t, self.base) for t in outputs]
        kept = [(o, peel(c, self.base)) for o, c in zip(peeled, cotangents, strict=True) if o.requires_grad]
        if not kept:
            return [None] * len(self.leaves)
        graph = self.outside or (state.grad and any(c.requires_grad for _, c in kept))
        with self._hooked():
            found = backward_pass(
                [o for o, _ in kept], self.leaves, [c for _, c in kept], create_graph=graph, retain_graph=retain or graph, allow_unused=True
            )
        if self.outside:  # some are constants to those who differentiate by what is outside
            own = set(self.leaves)
            found = tuple([g.detach() if g is not None and g.requires_grad and not reaches([edge(g)], own) else g for g in found])
        return [None if g is None else wrap(g, self.base) for g in found]

    @contextmanager
    def _hooked(self) -> Iterator[None]:
        """Let hooks that the function has registered on its arguments see the gradients by these, and not those of passes that go on behind them."""
        hooked = [leaf for leaf in self.leaves if leaf._leaf_hook_set is not None and leaf._edge.__class__ is Within]
        for leaf in hooked:
            leaf._edge.hooks = leaf._leaf_hook_set
        try:
            yield
        finally:
            for leaf in hooked:
                leaf._edge.hooks = None

    def gradients(self, cotangents: Sequence[Tensor], retain: bool = True) -> Any:
        """Return the same as the caller sees them, zeros where nothing depends."""
        moving = Carrier.level((*self.like, *cotangents)) is not None
        found = pulled(functools.partial(self.pull, retain=retain or moving), self.like, cotangents)
        filled = [wrap(new_full(t.shape, 0, t.dtype), self.base) if g is None else g for g, t in zip(found, self.leaves, strict=True)]
        return tree_unflatten(filled, self.spec)

    def pusher(self) -> Callable[[Sequence[Tensor]], list[Tensor]]:
        """Return tangents -> J · tangents for each output."""
        with recorded():
            # not 0, which rules may treat by itself (x·ln y); rules of complex results may ask that it be a possible gradient, as 0 is
            dummies = [
                new_full(o.shape, 0 if o.dtype.is_complex else 1, o.dtype).requires_grad_() if o.requires_grad else None
                for o in self.outputs
            ]
            for u in dummies:
                if u is not None:
                    u.__dict__["_call"] = _FINISHED  # nobody else is to differentiate by them
            seeds = [new_full(o.shape, 0, o.dtype) if u is None else u for o, u in zip(self.outputs, dummies, strict=True)]
            kept = [(o, u) for o, u in zip(self.outputs, seeds, strict=True) if o.requires_grad]
            pulled: list[Any] = [None] * len(self.leaves)
            if kept:
                pulled = list(
                    backward_pass([o for o, _ in kept], self.leaves, [u for _, u in kept], create_graph=True, allow_unused=True)
                )

        def push(tangents: Sequence[Tensor]) -> list[Tensor]:
            live = [
                (p, peel(v, self.base)) for p, v in zip(pulled, tangents, strict=True) if p is not None and p.requires_grad
            ]
            wanted = [u for u in dummies if u is not None]
            found: list[Any] = [None] * len(wanted)
            if live and wanted:
                graph = self.outside or (state.grad and any(v.requires_grad for _, v in live))
                found = list(
                    backward_pass(
                        [p for p, _ in live],
                        wanted,
                        [v for _, v in live],
                        create_graph=graph,
                        retain_graph=True,
                        allow_unused=True,
                    )
                )
            each = iter(found)
            out = []
            for o, u in zip(self.outputs, dummies, strict=True):
                t = next(each) if u is not None else None
                out.append(wrap(new_full(o.shape, 0, o.dtype) if t is None else t, self.base))
            return out

        return push
