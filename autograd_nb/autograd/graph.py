"""``torch.autograd.graph``: nodes, gradient edges, hooks on several gradients at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from .. import locks
from ..graph import engine
from ..graph.hooks import RemovableHandle, check_callable
from ..graph.node import Node
from ..tensor import Tensor, edge
from .api import GradientEdge, get_gradient_edge
from .saved import allow_mutation_on_saved_tensors, disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version",
    "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


class _Handles:
    def __init__(self, handles: Sequence[RemovableHandle]):
        self._handles = handles

    def remove(self) -> None:
        """Remove all the hooks."""
        for h in self._handles:
            h.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all") -> _Handles:
    """Call ``fn`` with the gradients of all ``tensors`` when all have arrived (mode "all"), or with the first one ("any").

    Errors: AssertionError for a tensor that does not require grad, which "any" passes over; ValueError for another mode.

    >>> x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    >>> handle = torch.autograd.graph.register_multi_grad_hook((x, y), lambda grads: print([g.tolist() for g in grads]))
    >>> (x * 2 + y).sum().backward()
    [[2.0, 2.0], [1.0, 1.0]]
    """
    check_callable(fn)
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    under_way: WeakKeyDictionary = WeakKeyDictionary()  # pass -> [gradients so far, how many are still to come]
    lock = locks.lock()
    if mode == "any":
        tensors = [t for t in tensors if t.requires_grad]
    elif not all(t.requires_grad for t in tensors):
        raise AssertionError("Expected gradient function to be set (register_multi_grad_hook: a tensor does not require grad)")
    edges = [e for t in tensors if (e := edge(t)) is not None]

    def hook_for(i: int) -> Callable[..., Any]:
        def hook(g: Tensor) -> None:
            current, reaches = engine.current_pass() or (fn, lambda _: True)
            with lock:
                first = current not in under_way
                if first:
                    under_way[current] = [[None] * len(tensors), sum(map(reaches, edges))]
                entry = under_way[current]
                entry[0][i] = g
                entry[1] -= 1
                complete = entry[1] <= 0
                if complete:
                    del under_way[current]
            if first if mode == "any" else complete:
                fn(g if mode == "any" else entry[0])

        return hook

    return _Handles([t.register_hook(hook_for(i)) for i, t in enumerate(tensors)])


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Count a change in place that was made behind the library's back.

    >>> x = torch.ones(1)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        t._version_[0] += 1
