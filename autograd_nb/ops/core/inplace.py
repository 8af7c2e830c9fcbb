"""In-place ops from out-of-place ones: checks, the write, the version, the rewritten history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import launch
from ...graph.modes import state
from ...graph.versions import same_storage
from ...overriding import overridable, whole
from ...shapes import Layout
from ...tensor import Tensor, edge, make, refresh
from .history import check_inplace, check_recorded, past_hooks, rewrite_history
from .recording import check_result, guarded, refuse_overlap
from .registry import OPS, public
from .structured import Structured, tensor_argument


@whole
def assign_inplace(target: Tensor, result: Tensor) -> Tensor:
    """Make ``result``, computed from `before` of ``target``, the new contents and history of ``target``."""
    if state.grad and target._view is not None and result.requires_grad:
        check_recorded(target)
    make(target._data, target._layout, [0, 0]).copy_(result.detach())
    target._version_[0] += 1
    if state.grad:
        new = edge(result) if result.dtype is target.dtype else edge(result.to(target.dtype))
        answers_for(result, target)
        if new is not None or target._rg:
            rewrite_history(target, new)
    return target


def answers_for(result: Tensor, target: Tensor) -> None:
    """Let a node that kept its own result keep the target from now on: changing it again is refused."""
    node = getattr(result._edge, "node", result._edge)
    if node is None or node.is_leaf_edge:
        return
    counters = node.counters()
    times = sum(v is result._version_ for v in counters)
    if times:
        node.versions = tuple(target._version_ if v is result._version_ else v for v in counters)
        node.stamp += times * (target._version_[0] - result._version_[0])


def before(target: Tensor) -> Tensor:
    """Return a copy of ``target`` with its place in the graph, for the derivative of what will overwrite it."""
    old = target.detach().clone()
    e = edge(target)
    if e is not None:
        old._edge, old._rg = e if target._view is None or target._edge is None else past_hooks(target, target._view), True
    return old


def has_history(t: Any) -> bool:
    """Return whether an op on this operand may be recorded."""
    return isinstance(t, Tensor) and (t._rg or (t._view is not None and t._view._rg))


#: what PyTorch does not look at where operands lie: products, which compute apart
_READ_BEFORE = frozenset(("addmm_", "addmv_", "addbmm_", "baddbmm_", "masked_scatter_"))


@overridable
def in_place(name: str, compute: Callable[..., Tensor], target: Any, *args: Any, **kw: Any) -> Tensor:
    """Return ``target`` overwritten with ``compute(target, *args)``, checked before anything changes."""
    tensor_argument(target, name)
    check_inplace(target, *args, *kw.values())
    if name not in _READ_BEFORE:
        refuse_overlap(target, (*args, *kw.values()), name in ("index_reduce_", "scatter_reduce_"))
    plain = target._layout.__class__ is Layout and not (state.grad and any(map(has_history, (target, *args, *kw.values()))))
    result = compute(target.detach() if plain else before(target), *args, **kw)
    check_result(name, target._layout, result._layout)
    return assign_inplace(target, result)


def counted(target: Tensor) -> Tensor:
    """Return ``target`` after an op in place that changes nothing of it: refused and counted as any other."""
    check_inplace(target)
    target._version_[0] += 1
    return target


def is_same_memory(t: Tensor, other: Any) -> bool:
    """Return whether two tensors have the same elements in the same places of one memory."""
    if t is other:
        return True
    if t._layout.__class__ is not Layout and hasattr(t, "mark") and hasattr(other, "mark"):  # what is computed of it lies elsewhere each time
        return t.mark == other.mark and is_same_memory(t.of, other.of)  # type: ignore[attr-defined]
    return (
        isinstance(other, Tensor)
        and other._layout is t._layout
        and same_storage(other._version_, t._version_)
        and launch.memory.address(other._data) == launch.memory.address(t._data)
    )


def inplace_version(name: str) -> Callable[..., Tensor]:
    """Register ``<name>_``, the in-place form of the op ``name``."""
    function = OPS[name].call

    def call(input, *args, **kw):
        return in_place(name + "_", function, input, *args, **kw)

    call.__name__ = call.__qualname__ = name + "_"
    call.__doc__ = f"Compute `{name}` in place and return the tensor."
    return public(kind="inplace", namespaces=())(call)


@overridable
@whole
def write_inplace(
    op: Structured, write: Callable[..., None], target: Tensor, *args: Any, repeats: bool = False, kept: Sequence[Any] = ()
) -> Tensor:
    """Run ``write(memory, *args)`` on the target's own memory, recorded as the structured ``op(target, *args)``.

    For ops whose rules save neither the target's old values nor the output; checks of shapes and dtypes are done. ``repeats``: as
    for `check_result`. ``kept``: what else may not be changed before the backward pass (see `guarded`).
    """
    check_inplace(target)
    check_result(op.name + "_", target._layout, target._layout, repeats)
    if target._view is not None and state.grad and any(isinstance(a, Tensor) and a.requires_grad for a in args):
        check_recorded(target)
    # memory that is read while it is rewritten: read a copy
    args = tuple(
        a.clone() if isinstance(a, Tensor) and same_storage(a._version_, target._version_) else a for a in args
    )
    out = make(target._data, target._layout, target._version_)
    record = state.grad
    if record:
        for a in args:
            if isinstance(a, Tensor) and a._view is not None:
                refresh(a)  # a view without a clear history is refused before anything is written
        state.grad = False
    try:
        write(make(target._data, target._layout, [0, 0]), *args)
    finally:
        state.grad = record
    if record:
        op.record((target, *args), out)
        if kept:
            guarded(out, *kept)
    target._version_[0] += 1
    if out._rg or (record and target._rg):
        rewrite_history(target, out._edge)
    return target
