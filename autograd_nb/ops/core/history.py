"""How histories are handed on: to views, to what stands for a leaf, and by changes in place, some of which are refused."""

from __future__ import annotations

from typing import Any

from ... import launch
from ...errors import AutogradError
from ...graph.modes import state
from ...graph.node import Node, Nowhere, Output, Within, set_edges
from ...graph.ownership import settled
from ...graph.versions import COUNTED
from ...overriding import whole
from ...shapes import Layout
from ...tensor import (
    AsStridedBackward0,
    Tensor,
    above,
    fill_node,
    move_retained,
    offset_in,
    refresh,
    refuse_view,
)


def check_recorded(t: Tensor) -> None:
    """Refuse, before anything is changed, to write what has a history into a view that `check_inplace` lets pass without one."""
    refuse_view(t)
    _needs_room(8)


def _needs_room(calls: int) -> None:
    """Raise RecursionError now, rather than once the values are changed and the history is not (`rewrite_history` calls so deep)."""
    if calls:
        _needs_room(calls - 1)


_OF_LEAF = "a {}leaf Variable that requires grad is being used in an in-place operation. {}."
_REMEDY = "Update it inside `with torch.no_grad():`, or compute a new tensor instead"


def _within(edge: Any, end: Any) -> bool:
    """Return whether a view's history leads to what a transform gave its function, before it comes to that of its base."""
    while edge is not end and edge is not None and not edge.is_leaf_edge:
        node = edge.node if edge.__class__ is Output else edge
        if node.__class__ is Within:
            return True
        if len(node.edges) != 1:
            return False
        (edge,) = node.edges
    return False


def check_inplace(t: Tensor, *sources: Any) -> None:
    """Refuse, before anything is changed, an in-place op that PyTorch refuses on ``t``: also one that writes what has a history.

    It comes before all checks of arguments, as in PyTorch.
    """
    if t._version_[0] < 0 and not state.inference and (t._version_[0] < COUNTED or t._view is not None):
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
            "tensor before doing inplace update."
        )
    if not state.grad:
        return
    base = t._view
    if base is None:
        if t._rg and t._edge is None and t.requires_grad:  # (a tensor with a tangent says so for the sake of its ops)
            raise AutogradError(_OF_LEAF.format("", _REMEDY))
        if t._layout.__class__ is not Layout and hasattr(t, "rewrite"):  # it shows conjugates of what it looks at
            check_inplace(t.of, *sources)  # type: ignore[attr-defined]
        return
    refresh(t)
    kind = t._view_kind
    if t._edge.__class__ is Within:
        raise AutogradError(_OF_LEAF.format("", _REMEDY))
    for s in sources:
        if isinstance(s, Tensor) and s._rg:
            refuse_view(t)
    if (t._rg or base._rg) if kind.startswith("multi:") or (t._edge is not None and kind) else base._rg and kind:
        refuse_view(t)
    of_leaf = base._edge is None or (base._edge.__class__ is not Output and "of_leaf" in base._edge.__dict__)
    of_leaf = of_leaf or (state.transformed > 0 and _within(t._edge, base._edge))
    if (of_leaf and (t._rg or base._rg)) or (t._rg and (t._edge is None or t._edge.__class__ is Nowhere)):
        raise AutogradError(_OF_LEAF.format("view of a ", "Do it inside `with torch.no_grad():`, or clone() the leaf first"))


class CopySlices(Node):
    """The base after one of its views was changed in place: the view's gradient goes to the change, the rest to the old base."""

    __slots__ = ("base_layout", "offset", "view_layout")

    def run(self, g: Any) -> tuple[Any, ...]:
        return settled(
            g,
            above.without_view(g, self.view_layout, self.offset, self.base_layout),
            above.read_view(g, self.view_layout, self.offset, self.base_layout),
        )

    run_graph = run


@whole
def rewrite_history(t: Tensor, new_edge: Any) -> None:
    """Rewrite the history of ``t``, whose memory was changed by the op behind ``new_edge`` (None: the new contents need no gradient)."""
    base = t._view
    if t._layout.__class__ is not Layout and hasattr(t, "rewrite"):
        t.rewrite(new_edge)  # type: ignore[attr-defined]
        return
    if base is None:
        had, old = t._rg, t._edge
        t._edge, t._rg = new_edge, new_edge is not None
        if had or t._rg:
            t._version_[1] += 1
        if old is not None:
            move_retained(t, old, new_edge)
        return
    if new_edge is not None and t._edge is not None:
        _pass_by(t, base, new_edge)
    offset = offset_in(t, base)
    rewrite_part(base, new_edge, t._layout, offset)
    refresh(t, offset=offset)


class OverwrittenBackward0(AsStridedBackward0):
    """Stands for a view's node where the view was changed in place and sees elements several times."""

    __slots__ = ()

    def run(self, g: Any) -> tuple[Any, ...]:
        return settled(g, above.write_view(g, self.base_layout, self.view_layout, self.offset))

    run_graph = run


def _pass_by(view: Tensor, base: Tensor, change: Any) -> None:
    """Let the gradient of what was changed go to the base by `past_hooks`: hooks that the view had were of its old contents.

    Where the view is an operand once more, that is read with them.
    """
    old, node = view._edge, change.node if change.__class__ is Output else change
    if not node.is_leaf_edge:
        at = next((k for k, e in enumerate(node.edges) if e is old), None)
        if at is not None:
            set_edges(node, (*node.edges[:at], past_hooks(view, base), *node.edges[at + 1 :]))


def hooked(edge: Any, end: Any) -> bool:
    """Return whether a hook or a tensor that retains its gradient waits for one on its way from a view to the edge of the base."""
    while edge is not end:
        node = edge.node if edge.__class__ is Output else edge
        if node.is_leaf_edge:
            return False
        if node.hooks is not None and (node.hooks.tensor or node.hooks.pre or node.hooks.post or node.hooks.retained):
            return True
        if len(node.edges) != 1:
            return False
        (edge,) = node.edges
        if edge is None:
            return False
    return False


def _apart(view: Tensor, base: Tensor) -> bool:
    """Return whether the base of a view has other memory by now, by ``.data = …``."""
    return launch.memory.distance(base._data, view._data, view._layout.extent) is None


def past_hooks(view: Tensor, base: Tensor) -> Any:
    """Return the edge of a view, or where it or a view between has hooks or retains its gradient, or the base other memory, one past them to the base.

    Of elements that the view sees several times a change has one gradient each, of which PyTorch takes the last.
    """
    edge, repeated = view._edge, view._layout.size > view._layout.extent
    stale: Any = edge.node if edge.__class__ is Output else edge
    if not repeated and not hooked(edge, base._edge if base._edge is not None else base) and not _apart(view, base):
        return edge
    past = fill_node(OverwrittenBackward0() if repeated else AsStridedBackward0(), (base._edge if base._edge is not None else base,))
    past.base_layout, past.view_layout, past.offset = base._layout, view._layout, offset_in(view, base)
    past.seq = stale.seq  # it runs where that one would: after the change, before the base
    return past


@whole
def rewrite_part(base: Tensor, new_edge: Any, part: Layout, offset: int) -> None:
    """Rewrite the history of a tensor of which the op changed a part: what a view of that layout, so many elements on, would show."""
    if new_edge is None and not base._rg:
        return
    old = base._edge if base._edge is not None else (base if base._rg else None)
    node = fill_node(CopySlices(), (old, new_edge), 3)
    node.base_layout, node.view_layout, node.offset = base._layout, part, offset
    before = base._edge
    base._edge, base._rg = node, True
    base._version_[1] += 1
    if before is not None:
        move_retained(base, before, node)


class LeafBackward0(Node):
    """Stands before a leaf: for a tensor with the values that the leaf had, whose gradient is the leaf's.

    It is of no op of the user's, so any number of passes may go through it.
    """

    consumed = property(lambda self: None, lambda self, by: None, doc="What consumed it: nothing does.")  # type: ignore[assignment]

    def run(self, g: Any) -> tuple[Any, ...]:
        return (g,)

    run_graph = run


def attach(t: Tensor, target: Any) -> None:
    """Let the gradient of ``t``, which stands for what an edge leads to, flow along that edge."""
    t._edge = fill_node(LeafBackward0(), (target,)) if target.__class__ is not Output and target.is_leaf_edge else target
    t._rg = True


def share_view(t: Tensor, out: Tensor, kind: str = "") -> Tensor:
    """Declare ``out``, which reads ``t``'s memory, to be a view of ``t``'s base."""
    base = t._view
    if base is None:
        base = t
    elif not kind:
        kind = t._view_kind
    if not kind and not state.grad:
        kind = "inference" if state.inference else "no_grad"
    version = t._version_
    out._version_, out._view, out._seen, out._view_kind = version, base, version[0], kind
    return out
