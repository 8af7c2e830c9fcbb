"""What a capture tells a captured call about arguments, results and gradients: records that do not change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...graph.node import Node
from ...shapes import Layout
from ...tensor import Tensor, above, edge, fill_node, is_lone, make


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor argument as a program saw it.

    ``buffer``: its number, None where it is a tensor that the function reaches anyway; ``shift``: bytes from the buffer's beginning.
    ``written``: how often it is changed. ``view``: see `seen_as`. ``shares``: the state tensor that it is, or (earlier argument,
    bytes between, whether it is the same tensor).
    """

    layout: Layout
    requires_grad: bool
    has_grad: bool
    leaf: bool
    inference: bool
    buffer: int | None
    shift: int
    written: int
    view: tuple[Any, ...] | None
    shares: Tensor | tuple[int, int, bool] | None

    def other_leaf(self, t: Tensor) -> bool:
        """Return whether a tensor that requires grad is a leaf where this was none, or none where this was one: programs may ask."""
        return self.requires_grad and (t._edge is None) is not self.leaf


def seen_as(t: Tensor) -> tuple[Any, ...] | None:
    """Return what decides whether a tensor may be changed in place, besides its own gradient; None where it is no view."""
    base = t._view
    return None if base is None else (t._view_kind, base.requires_grad, base.is_leaf)


def hooks_on(t: Tensor) -> tuple[Any, ...]:
    """Return the hooks on a tensor's gradient, of its own or of the node that made it."""
    e = edge(t)
    hooks = t._leaf_hook_set if e is None or e.is_leaf_edge else getattr(e, "node", e).hooks
    if hooks is None:
        return ()
    kinds = (hooks.accumulated, hooks.post, hooks.pre, hooks.retained, *hooks.tensor.values())
    return tuple([k for kind in kinds for k in kind])


class Memory(NamedTuple):
    """New memory of each run: the number of the buffer that it is, its elements and their dtype."""

    buffer: int
    size: int
    carrier: np.dtype


class NewResult(NamedTuple):
    """A result in new memory, from element ``offset`` on.

    ``shared``, where results share memory: (the result that has its counter of versions, its base's number or None, where in the
    memory the base lies, how the view was made). A view that alone has its memory has its own number and `OWN` as its base's, or none
    and the word `tensor.ALONE`.
    """

    memory: Memory
    offset: int
    layout: Layout
    version: int
    shared: tuple[Any, ...] | None


OWN = -(1 << 30)  #: the number of a base that one result looks at


def be_view(t: Tensor, data: np.ndarray, view: tuple[Any, ...]) -> None:
    """Let a result, in the memory ``data``, be the only view of its base; ``view``: the last three of `NewResult.shared`."""
    base, (offset, layout, requires_grad), how = view
    where = data[offset:] if offset else data
    if base is not None:
        t._view, t._seen, t._view_kind = hidden_base(t, where, layout, requires_grad), t._version_[0], how
    else:
        t._seen, t._view_kind = (where, layout), how
        above.lone_views = True


class _Unknown0(Node):
    """Stands for the history of a base that a compiled function did not return."""

    def run(self, g: Any) -> Any:
        raise RuntimeError("the base of a view that a compiled function returned has no history; return the base too")

    run_graph = run


def hidden_base(t: Tensor, data: np.ndarray, layout: Layout, requires_grad: bool) -> Tensor:
    """Return what a result is a view of and the function did not return: its values. Nobody knows how it came to ``requires_grad``."""
    base = make(data, layout, t._version_)
    if requires_grad:
        base._rg, base._edge = True, fill_node(_Unknown0(), ())
    return base


_base_of = above.base_of


def _or_lone_base(t: Tensor) -> Tensor | None:
    """Return the base of a tensor; that of a result that is `tensor.ALONE` is made when it is first asked for."""
    if not is_lone(t):
        return _base_of(t)
    place: Any = t._seen
    if place.__class__ is tuple:
        data, layout = place
        place = t._seen = hidden_base(t, data, layout, t._rg)
    return place  # type: ignore[no-any-return]


above.base_of = _or_lone_base


class ArgumentResult(NamedTuple):
    """A result that is an argument (``whole``), or a view of its memory.

    ``relation``: how the view was made, "detached" where it is none. ``version``: −1 where it has the argument's counter.
    """

    argument: int
    offset: int
    layout: Layout
    whole: bool
    relation: str
    version: int


class GradientResult(NamedTuple):
    """A result that is one of the gradients which the program leaves."""

    number: int


class StateResult(NamedTuple):
    """A result that is a tensor of the function's state."""

    tensor: Tensor


AnyResult = NewResult | ArgumentResult | GradientResult | StateResult


class ArgumentExit(NamedTuple):
    """A gradient leaves a part of the graph behind results here, and goes to an argument."""

    argument: int


class StateExit(NamedTuple):
    """A gradient goes to a tensor of the function's state."""

    tensor: Tensor


class PartExit(NamedTuple):
    """A gradient goes to a slot of another part."""

    part: int
    slot: int


Exit = ArgumentExit | StateExit | PartExit


class NewGradient(NamedTuple):
    """A gradient in new memory, from element ``offset`` on; ``alone``: whether no other gradient lies there."""

    memory: Memory
    offset: int
    layout: Layout
    alone: bool


class SameGradient(NamedTuple):
    """A gradient that is an incoming one."""

    which: int


class ExpandedGradient(NamedTuple):
    """A gradient that looks at the memory of an incoming one: of a sum, say."""

    which: int
    offset: int
    layout: Layout


Gradient = NewGradient | SameGradient | ExpandedGradient | None


class InitialGradient(NamedTuple):
    """A gradient that a program starts from: its leaf, buffer and layout, bytes before it, and how much its version grows."""

    leaf: Tensor
    buffer: int
    layout: Layout
    shift: int
    grows: int
