"""Reading and writing under boolean masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes, launch
from ...codegen.formula.namespace import m
from ...graph.modes import state
from ...launch import Kernel
from ...shapes import Layout, Size, broadcast_shapes, is_expanded, layout_of
from ...tensor import Tensor
from ..core.calls import inplace_call
from ..core.history import check_inplace
from ..core.inplace import assign_inplace, has_history, in_place
from ..core.numbers import SINGLE, number_as
from ..core.pointwise import Pointwise
from ..core.recording import check_written, guarded, not_for_barebone, not_for_limited, store, warn_of_expanded
from ..core.registry import public
from ..core.structured import structured, tensor_argument
from ..creation.cast import clone, dense
from ..creation.create import new_empty
from ..shape.parts import _slice
from ..shape.shape import expand
from .by_mask import picked_by_mask, true_indices
from .gather import is_windows, memory_of
from .index_select import put_
from .picking import filling, pick

_scatter_by_mask = Kernel("indexing.index", "scatter_by_mask", outputs=2)
_gather_by_mask = Kernel("indexing.index", "gather_by_mask")
_masked_select = pick.variant("MaskedSelectBackward0", samples="x(3, 4).masked_select(mask(3, 4))")


class _MaskedFill(Pointwise):
    """The value where the mask holds, in the dtype of the first operand."""

    def __init__(self):
        super().__init__(
            lambda x, mask, value: m.where(mask, value, x),
            [
                lambda g, mask: m.where(mask, m.zero_like(g), g),
                None,
                lambda g, mask: m.where(mask, g, m.zero_like(g)),
            ],
            "masked_fill", "MaskedFillBackward0", conditions=("mask",),
        )  # fmt: skip

    def result_dtypes(self, avals):
        d = avals[0].dtype
        not_for_barebone("masked_fill", d)
        return d.compute, d

    def result_layout(self, shape, avals, d):
        return layout_of(shape, None, d)  # PyTorch fills a contiguous copy


_masked_fill = _MaskedFill()
_masked_fill_inplace = inplace_call(_masked_fill)


def _masked_fill_args(input: Any, mask: Any, value: Any, name: str) -> tuple[Any, ...]:
    x = tensor_argument(input, name)
    tensor_argument(mask, name, "mask")
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(f"{name} only supports boolean masks, but got mask with dtype {mask.dtype} (use mask.bool(), or compare: mask > 0)")
    return x, mask, filling(value, x.dtype, name)


@public()
def masked_fill(input, mask, value: Tensor | float):
    """y = value where the mask holds, x elsewhere; ``value`` a number or 0-d tensor, ``mask`` broadcasts.

    Derivative: dx = g with zeros where the mask holds; dvalue = the sum of g there.
    Errors: RuntimeError unless the mask is boolean. Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill_.html

    >>> torch.masked_fill(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]), 0)
    tensor([0, 2, 0])
    """
    return _masked_fill.run(_masked_fill_args(input, mask, value, "masked_fill"))


@public(kind="inplace", namespaces=())
def masked_fill_(input, mask, value: Tensor | float):
    """Compute `masked_fill` in place and return the tensor."""
    if isinstance(input, Tensor) and is_expanded(input._layout):
        warn_of_expanded(input, "masked_fill_")
        return _fill_expanded(*_masked_fill_args(input, mask, value, "masked_fill_"))
    if not (value.__class__ is float and -SINGLE <= value <= SINGLE and mask.__class__ is Tensor and mask._layout.dtype is dtypes.bool_):
        return _masked_fill_inplace(*_masked_fill_args(input, mask, value, "masked_fill_"))
    if input._layout.dtype.category < 2:
        value = number_as(value, input._layout.dtype, "masked_fill_")
    return _masked_fill_inplace(input, mask, value)


def _fill_expanded(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return `masked_fill_` of a tensor that is stretched along dims: an element takes the value where any of its places is masked."""
    places = expand(mask, x.shape)
    part = x
    for d, (n, s) in enumerate(zip(x.shape, x._layout.strides, strict=True)):
        if not s and n > 1:
            part, places = _slice(part, d, 0, 1, 1), places.any(d, keepdim=True)
    _masked_fill_inplace(part, places, value)
    return x


@public()
def masked_select(input, mask, *, out=None):
    """Return the elements where the mask holds, in one dim; input and mask broadcast. RuntimeError unless the mask is boolean.

    Derivative: g put back where the mask holds, zeros elsewhere.

    >>> torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
    tensor([1, 3])
    """
    x = tensor_argument(input, "masked_select")
    tensor_argument(mask, "masked_select", "mask")
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask (mask.dtype={mask.dtype})")
    not_for_barebone("masked_select", x.dtype)
    y = picked_by_mask(_masked_select, x, mask, (x, mask)) if out is None and x._layout.shape == mask._layout.shape else None
    if y is not None:
        return y
    shape = broadcast_shapes(x.shape, mask.shape) or Size((1,))
    whole = expand(x, shape)
    if is_expanded(whole._layout):  # (it is quicker to lay it out than to find each element's place)
        whole = clone(whole)
    index = true_indices(expand(mask, shape))
    y = guarded(_masked_select(whole, index, tuple(range(len(shape))), 0), x, mask)
    return y if out is None else store(out, y, "masked_select", (x, mask))


def _refuse_few(given: int, wanted: int) -> None:
    if given < wanted:
        raise RuntimeError(f"masked_scatter: expected number of elements of source ({given}) >= number of ones in mask ({wanted})")


def _check_masked_scatter(x: Tensor, mask: Any, source: Any, name: str) -> None:
    tensor_argument(mask, name, "mask")
    tensor_argument(source, name, "source")
    not_for_limited("masked_scatter", x.dtype)
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(f"{name} only supports boolean masks, but got mask with dtype {mask.dtype} (use mask.bool(), or compare: mask > 0)")
    if source.dtype is not x.dtype:
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got {x.dtype} and {source.dtype}")


@structured(
    x=lambda g, mask: masked_fill(g, mask, 0), source=lambda g, mask, source_shape: _to_source(g, mask, source_shape),
    node="MaskedScatterBackward0", linear="jointly", batch="samples", samples="x(3, 4).masked_scatter(mask(3, 4), x(6))",
)  # fmt: skip
def _masked_scatter(x, mask, source):
    """Return x with the elements where the mask, of its shape, holds replaced; the kernel counts what it would take of the source."""
    y, found, given = new_empty(x.shape, x.dtype), np.empty(1, np.dtype(np.int64)), source._layout.size
    _scatter_by_mask(x.dtype.carrier, dense(mask), dense(source), dense(x), y._data, found)

    def enough(found: np.ndarray) -> None:
        _refuse_few(given, found.item())

    launch.check(enough, found, passes=((0, 0, 0, given),))
    return y


@structured(g0=lambda g, mask, g0_shape: _masked_scatter(g.new_zeros(g0_shape), mask, g), linear="jointly", batch="samples")
def _to_source(g0, mask, shape):
    """Return the elements of ``g0`` where the mask holds, in order, and zeros behind them."""
    out = new_empty(shape, g0.dtype)
    _gather_by_mask(g0.dtype.carrier, dense(mask), dense(g0), out._data)
    return out


@public()
def masked_scatter(input, mask, source):
    """y = x with the elements where the mask holds replaced by those of ``source``, in order.

    Derivative: dsource = the elements of g where the mask holds, in order; dx = g with zeros there.

    >>> torch.masked_scatter(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]), torch.tensor([8, 9]))
    tensor([8, 2, 9])
    """
    x = tensor_argument(input, "masked_scatter")
    shape = broadcast_shapes(x.shape, tensor_argument(mask, "masked_scatter", "mask").shape)
    _check_masked_scatter(x, mask, source, "masked_scatter")
    return _masked_scatter(expand(x, shape), expand(mask, shape), source)


@public(kind="inplace", namespaces=())
def masked_scatter_(input, mask, source):
    """Compute `masked_scatter` in place and return the tensor."""
    x = tensor_argument(input, "masked_scatter_")
    if isinstance(mask, Tensor) and isinstance(source, Tensor):
        check_inplace(x, source)
        check_written(x)
    if is_windows(x):
        _check_masked_scatter(x, mask, source, "masked_scatter_")
        memory, at = memory_of(x)
        places = at.masked_select(mask)
        _refuse_few(source._layout.size, places._layout.size)
        put_(memory, places, source.flatten()[: places._layout.size].clone())
        return x
    if _unrecorded(x, mask, source):
        return assign_inplace(x, _masked_scatter.forward(x, expand(mask, x.shape), source))
    return in_place("masked_scatter_", masked_scatter, input, mask, source)


def _unrecorded(x: Tensor, mask: Any, source: Any) -> bool:
    """Return whether a `masked_scatter_` has nothing but numbers to write, and fits."""
    given = (x, mask, source)
    if not all(t.__class__ is Tensor and t._layout.__class__ is Layout for t in given) or (state.grad and any(map(has_history, given))):
        return False
    fits = mask._layout.dtype is dtypes.bool_ and source._layout.dtype is x._layout.dtype and not x._layout.dtype.is_limited and mask.ndim <= x.ndim
    return bool(x._layout.size) and fits and all(n in (1, of) for n, of in zip(mask.shape[::-1], x.shape[::-1], strict=False))

