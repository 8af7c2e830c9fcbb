"""Two tensors' contents exchanged, while each object stays where it is referred to."""

from __future__ import annotations

import copyreg
import gc
import weakref
from typing import Any

from .. import launch
from ..graph.collector import OwnReference
from ..graph.node import Node, Output
from ..overriding import whole
from ..tensor import Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Let ``t1`` and ``t2`` exchange all that they are: class, memory, shape, gradient, place in the graph and attributes.

    Errors: RuntimeError where somebody has a weak reference to one of them, where their classes have other slots, and where a graph or a
    view holds on to one of them (PyTorch lets a leaf of a graph pass, and refuses that graph's backward pass).
    Source: https://github.com/pytorch/pytorch/blob/main/torch/utils/__init__.py

    >>> a, b = torch.ones(2), torch.zeros(1)
    >>> torch.utils.swap_tensors(a, b)
    >>> a, b
    (tensor([0.]), tensor([1., 1.]))
    """
    launch.unrepeatable("it swaps tensors; swap them outside of the function")
    for name, t in (("t1", t1), ("t2", t2)):
        if not isinstance(t, Tensor):
            raise TypeError(f"swap_tensors(): argument '{name}' must be a Tensor, not {type(t).__name__}")
        if any(type(r) is not OwnReference for r in weakref.getweakrefs(t)):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    own = [set(copyreg._slotnames(type(t))) for t in (t1, t2)]  # type: ignore[attr-defined]
    if own[0] != own[1]:
        raise RuntimeError(f"Cannot swap t1 and t2 if they have different slots: {sorted(own[0] ^ own[1])}")
    for name, t in (("t1", t1), ("t2", t2)):
        if _is_held(t):
            raise RuntimeError(
                f"Expected use_count of {name} to be 1, but a graph or a view refers to it: make sure you are not holding references to the "
                "tensor in other places (let go of what was computed from it, or take its detach())."
            )
    _exchange(t1, t2, [*dict.fromkeys([*_slots(Tensor), *own[0]])])


def _slots(cls: type) -> list[str]:
    return [name for c in cls.__mro__ for name in getattr(c, "__slots__", ()) if name not in ("__dict__", "__weakref__")]


def _is_held(t: Tensor) -> bool:
    """Return whether a node or another tensor refers to ``t``, itself or by a tuple, a list or a dict."""
    for holder in gc.get_referrers(t):
        if isinstance(holder, (Node, Output, Tensor)):
            return True
        if holder.__class__ in (tuple, list) and any(isinstance(h, Node) for h in gc.get_referrers(holder)):
            return True
    return False


_MISSING = object()


@whole
def _exchange(t1: Any, t2: Any, names: list[str]) -> None:
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for name in names:
        first, second = getattr(t1, name, _MISSING), getattr(t2, name, _MISSING)
        for t, value in ((t1, second), (t2, first)):
            if value is not _MISSING:
                object.__setattr__(t, name, value)
            elif hasattr(t, name):
                object.__delattr__(t, name)
