"""`compile(check=True)`: a call run both ways from the same state, and everything compared that it changes or gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...autograd.api import grad
from ...errors import AutogradError
from ...ops.core.numbers import numbers_of
from ...tensor import Tensor, edge, wrap
from ..nested import tensors_in


class CompileError(AutogradError):
    """A function that was to be captured whole (``fullgraph=True``) cannot be, or does something else when it is compiled."""


class _State:
    """A copy of what a call may change: memory, gradients, counters, random streams, places that it leaves tensors in."""

    def __init__(self, variant: Any, leaves: list[Tensor]):
        self.watched = [t for _, t in variant.reach.tensors.values()] + leaves
        self._grads = [t._grad for t in self.watched]
        counters = [t._version_ for t in [*self.watched, *(g for g in self._grads if g is not None)]]
        self._counters = [(c, c[0]) for c in counters]
        self._memory = [t._data.copy() for t in self.watched]
        self._grads_memory = [None if g is None else g._data.copy() for g in self._grads]
        sources = [getattr(s, "source", s) for s, _ in variant.program.draws]
        self._draws = {id(s): (s, s._place) for s in sources}
        self._places = [(k, k.get()) for k in variant.stores]

    def restore(self) -> None:
        """Let everything be as it was."""
        for t, data, g, before in zip(self.watched, self._memory, self._grads, self._grads_memory, strict=True):
            t._data[...] = data
            t._grad = g
            if g is not None and before is not None:
                g._data[...] = before
        for c, count in self._counters:
            c[0] = count
        for s, place in self._draws.values():
            s._place = place
        for k, value in self._places:
            k.set(value)

    def found(self, result: Any) -> dict[str, list[Any]]:
        """Return what a call has left, by what to call it."""
        results = tensors_in((result, [k.get() for k, _ in self._places]))
        copies: dict[str, list[Any]] = {
            "a result": [t.detach().clone() for t in results],
            "the strides of a result": [t.stride() for t in results],
            "requires_grad, grad_fn or is_leaf of a result": [
                (t.requires_grad, t.grad_fn is not None, t.is_leaf, t._version_[0]) for t in results
            ],
            "memory": [t._data.copy() for t in self.watched],
            "a gradient": [None if t._grad is None else t._grad.detach().clone() for t in self.watched],
            "version counters": [t._version_[0] for t in self.watched],
        }
        copies["the gradient of a result"] = _derivatives(results, self.watched)
        return copies


def _derivatives(results: Sequence[Tensor], watched: Sequence[Tensor]) -> list[Any]:
    """Return the gradients of each result by everything that has one, for given cotangents; or what asking for them raises."""
    given = {id(t) for t in watched}
    ends = list({id(edge(t)): t for t in watched if t.requires_grad}.values())
    held = [(t if e.is_leaf_edge else getattr(e, "node", e)) for t, e in ((t, edge(t)) for t in ends)]
    hooks = [t._leaf_hook_set if isinstance(t, Tensor) else t.hooks for t in held]
    found: list[Any] = []
    try:
        _set_hooks(held, [None] * len(held))  # these are the user's, for passes of his own
        for r in results:
            if id(r) in given or not r.requires_grad or not ends:
                continue
            numbers = 1 + np.arange(r.numel()) % 7 / 8
            cotangent = wrap(numbers.reshape(r.shape)).to(r.dtype)
            try:
                found += grad([r], ends, [cotangent], retain_graph=True, allow_unused=True)
            except Exception as error:
                found.append(type(error))
    finally:
        _set_hooks(held, hooks)
    return [g.detach().clone() if isinstance(g, Tensor) else g for g in found]


def _set_hooks(holders: list[Any], hooks: list[Any]) -> None:
    for h, value in zip(holders, hooks, strict=True):
        if isinstance(h, Tensor):
            h._leaf_hook_set = value
        else:
            h.hooks = value


def compared(variant: Any, leaves: list[Tensor], args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
    """Return the result of the eager call, after the compiled one was found to do the same; CompileError where they differ."""
    state = _State(variant, leaves)
    mine = state.found(variant.run(leaves))
    state.restore()
    expected = variant.function(*args, **kwargs)
    theirs = state.found(expected)
    for what, found in mine.items():
        wanted = theirs[what]
        for x, y in zip(found, wanted, strict=True) if len(found) == len(wanted) else [(found, wanted)]:
            if not _alike(x, y):
                raise CompileError(f"compile(check=True): compiled and eager runs differ in {what}: {x} and {y}")
    return expected


def _alike(x: Any, y: Any) -> bool:
    if not isinstance(x, (Tensor, np.ndarray)) or not isinstance(y, (Tensor, np.ndarray)):
        return x is y or (type(x) is type(y) and not isinstance(x, (Tensor, np.ndarray)) and bool(x == y))
    a, b = (v if isinstance(v, np.ndarray) else numbers_of(v.detach()) for v in (x, y))
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    tolerance = 1e-4 if a.dtype.itemsize <= 4 else 1e-9
    return bool(
        np.allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.nanmax(np.abs(b), initial=0.0))), equal_nan=True)
    )


__all__ = ["CompileError", "compared"]
