"""Helper functions of the ops that look at memory themselves, and how they look at that of a batch.

Checks of indices look at all samples at once; the rest work along a dim, which the batch moves by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...graph.modes import state
from ...graph.ownership import share
from ...ops.core.structured import Structured
from ...ops.indexing import embedding, picking, sorting
from ...ops.linalg import common
from ...ops.nn import cross_entropy
from ...ops.reduce import statistics
from ...ops.shape import strided
from ...tensor import Tensor
from ..interpreters import OVERRIDES, innermost
from .batched import Batched, Unbatched, batch, materialize

__all__: list[str] = []


def _whole(t: Any) -> Any:
    """Return the tensor that a batch holds, of all levels."""
    while isinstance(t, Batched):
        t = t.value
    return t


# what takes off one level of batches after the other is made anew by its module's name: a function that refers to itself is a
# cycle, and these are made at each call of `vmap`


@OVERRIDES.at(picking.checked_index)
def _checked_index(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(index: Any, *args: Any, **kw: Any) -> Any:
        if isinstance(index, Batched):
            return batch(_checked_index(inner)(index.value, *args, **kw), index.level)
        return inner(index, *args, **kw)

    return call


@OVERRIDES.at(cross_entropy._checked_indices)
def _checked_indices(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(target: Any, *args: Any) -> Any:
        if isinstance(target, Batched):
            found, ignored = _checked_indices(inner)(target.value, *args)
            return batch(found, target.level), ignored
        return inner(target, *args)

    return call


@OVERRIDES.at(embedding.one_hot)
def _one_hot(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(tensor: Any, num_classes: int = -1) -> Any:
        if isinstance(tensor, Batched):
            if num_classes == -1:
                raise RuntimeError(
                    "vmap: one_hot() needs num_classes inside vmap, as the number of classes depends on the data"
                )
            return batch(_one_hot(inner)(tensor.value, num_classes), tensor.level)
        return inner(tensor, num_classes)

    return call


@OVERRIDES.at(strided.look_strided)
def _look_strided(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, shape: Any, strides: Any, storage_offset: Any) -> Any:
        if isinstance(x, Batched):
            return x.as_strided(shape, strides, storage_offset)
        return inner(x, shape, strides, storage_offset)

    return call


@OVERRIDES.at(strided.scatter_strided)
def _scatter_strided(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, src: Any, shape: Any, strides: Any, storage_offset: Any) -> Any:
        if storage_offset is not None and isinstance(innermost((x, src)), Batched):
            raise RuntimeError(
                "as_strided_scatter requires special handling, and does not yet have a batching rule: inside vmap a storage_offset, which "
                "counts from the beginning of the storage, would be the same for all samples"
            )
        return inner(x, src, shape, strides, storage_offset)

    return call


@OVERRIDES.at(statistics._where_extreme)
def _where_extreme(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, d: int, values: Any) -> Any:
        top = innermost((x, values))
        if isinstance(top, Batched):
            if not x.ndim:  # a number has no dims, but answers to dim 0
                raise Unbatched(top.level)
            size = top.value.shape[0]
            values = materialize(values, top.level, size)
            return batch(_where_extreme(inner)(materialize(x, top.level, size), d + 1, values), top.level)
        return inner(x, d, values)

    return call


@OVERRIDES.at(sorting.order_of)
def _order_of(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, d: int, descending: bool) -> Any:
        if isinstance(x, Batched):
            if not x.ndim:
                raise Unbatched(x.level)
            return batch(_order_of(inner)(x.value, d + 1, descending), x.level)
        return inner(x, d, descending)

    return call


@OVERRIDES.at(common.check)
def _check(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(info: Any, *args: Any) -> None:
        inner(_whole(info), *args)

    return call


@OVERRIDES.at(Structured, "gradients")
def _gradients(inner: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule's gradients made by ops, which serve batches, where the rule has kernels of its own that do not."""

    def gradients(self: Structured, node: Any, g: Any) -> tuple[Any, ...]:
        if state.grad or innermost(g if node.several else (g,)) is None:
            return inner(self, node, g)
        try:
            return inner(self, node, g)
        except Unbatched:
            for t in g if node.several else (g,):
                if t is not None:
                    share(t)
            state.grad = True
            try:
                found = inner(self, node, g)
            finally:
                state.grad = False
            return tuple(t.detach() if isinstance(t, Tensor) else t for t in found)

    return gradients
