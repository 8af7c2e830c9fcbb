"""Joining tensors: `cat`, `stack`, and copies of one side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from ... import dtypes, launch, strides
from ...graph.modes import state
from ...shapes import Layout, Size, as_shape, layout_of, wrap_dim
from ...tensor import Tensor, make
from ..core.foreign import asked, foreign_among
from ..core.recording import can_cast, check_output, fresh, scalar_type, store
from ..core.registry import public
from ..core.structured import structured, tensor_argument, tensors_argument
from ..creation.cast import clone
from ..creation.create import new_empty, new_full
from .joining import Joins
from .parts import _select, _slice
from .shape import _unsqueeze, expand, reshape


def _cat_rule(g: Tensor, tensors_shape: Sequence[Size], d: int) -> tuple[Any, ...]:
    out, start = [], 0
    for shape in tensors_shape:
        n = shape[d]
        out.append(_slice(g, d, start, n, 1) if tuple(shape) != (0,) else new_full((0,), 0, g.dtype))
        start += n
    return tuple(out)


def _joined(layouts: Sequence[Layout], shape: Sequence[int]) -> Layout:
    """Return the layout of parts joined to ``shape``: channels last if all parts are."""
    formats = {strides.suggested(layout) for layout in layouts}
    if formats == {"contiguous_format"} or len(formats) > 1:
        return layout_of(shape, None, layouts[0].dtype)
    return strides.channels_last(shape, layouts[0].dtype)


@structured(tensors=_cat_rule, node="CatBackward0", linear="jointly", batch="shift", samples="torch.cat([x(3, 4), x(3, 2)], 1)")
def _cat(tensors, d):
    first = tensors[0]
    shape = list(first.shape)
    shape[d] = sum(t.shape[d] for t in tensors)
    layout = _joined([t._layout for t in tensors], shape)
    y = make(launch.empty(layout.size, layout.dtype.carrier), layout, [0, 0])
    start = 0
    for t in tensors:
        n = t.shape[d]
        if t._layout.size:
            _slice(y, d, start, n, 1).copy_(t)
        start += n
    y._version_[0] = 0
    return y


_cats = Joins(_cat)


def check_joined(out: Any, tensors: Sequence[Tensor], name: str) -> None:
    """Refuse an ``out=`` that cannot hold the dtype of joined tensors: TypeError, unlike that of other ops."""
    check_output(out, name, state.grad and any(t.requires_grad for t in tensors))
    if not can_cast(_promoted(tensors), out.dtype):
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {scalar_type(out.dtype)}")


def _promoted(tensors: Sequence[Tensor]) -> dtypes.dtype:
    return reduce(dtypes.promote_types, (t.dtype for t in tensors))


@public("concat", "concatenate", method=False)
def cat(tensors, dim=0, *, axis=None, out=None):
    """Join tensors along ``dim``; other sizes must be equal. dtypes are promoted.

    Derivative: each tensor gets its part of the gradient.
    Errors: RuntimeError for an empty list or sizes that differ. Source: https://docs.pytorch.org/docs/stable/generated/torch.cat.html

    >>> torch.cat((torch.ones(2, 1), torch.zeros(2, 2)), 1)
    tensor([[1., 0., 0.],
            [1., 0., 0.]])
    """
    if out is None and axis is None:
        y = _cats.find(dim, tensors)
        if y is not None:
            return y
    if foreign_among((tensors,)):
        return asked.redefined(cat, (tensors, dim), {} if out is None else {"out": out})
    ts = tensors_argument(tensors, "cat")
    # PyTorch lets old-style empty tensors of shape (0,) join anything
    several = [t for t in ts if t._layout.sizes != (0,)]
    kept = several or [ts[0]]
    first, sizes = kept[0], kept[0]._layout.sizes
    if () in [t._layout.sizes for t in ts]:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    d = dim if axis is None else axis
    d = wrap_dim(d, len(sizes)) if several or d.__class__ is not int else 0  # (there is nothing that has dims: any will do)
    if out is not None:
        check_joined(out, ts, "cat")
    before, behind, total = sizes[:d], sizes[d + 1 :], 0
    for i, t in enumerate(kept):
        own = t._layout.sizes
        if len(own) != len(sizes) or own[:d] != before or own[d + 1 :] != behind:
            _refuse_sizes(sizes, own, d, i)
        total += own[d]
    if len(kept) == len(ts) and out is None and axis is None:
        y = _cats.first(dim, ts, d, (*before, total, *behind))
        if y is not None:
            return y
    if len(kept) < len(ts):  # (those lie in C order, and so does the result; one that requires grad gets a gradient of no elements)
        kept[0] = first.contiguous()
        nothing = [*before, 0, *behind]
        kept += [_nothing_of(t, nothing) for t in ts if t.requires_grad and tuple(t.shape) == (0,) and t is not first]
    kind = _promoted(ts)
    y = _cat(tuple(t.to(kind) for t in kept), d)
    if out is None:
        return y
    return store(out, y, "cat", ts)


def _refuse_sizes(sizes: tuple[int, ...], own: tuple[int, ...], d: int, i: int) -> None:
    """Raise RuntimeError for tensor ``i`` of a list, whose sizes do not fit those of the first."""
    if len(own) != len(sizes):
        raise RuntimeError(f"Tensors must have same number of dimensions: got {len(sizes)} and {len(own)}")
    for k, (a, b) in enumerate(zip(sizes, own, strict=True)):
        if k != d and a != b:
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {d}. Expected size {a} but got size {b} for tensor number {i} in the list."
            )


@structured(
    tensors=lambda g, tensors_shape, d: tuple([_select(g, d, i) for i in range(len(tensors_shape))]), node="StackBackward0",
    linear="jointly", batch="shift",
    samples="torch.stack([x(3, 4), x(3, 4)], 1)",
)
def _stack(tensors, d):
    first = tensors[0]._layout
    if d == first.ndim:
        return _cat.forward([_unsqueeze(t, d) for t in tensors], d)
    y = _cat.forward(tensors, d)
    layout, n = y._layout, first.shape[d]
    shape = (*layout.shape[:d], len(tensors), *first.shape[d:])
    steps = (*layout.strides[:d], n * layout.strides[d], *layout.strides[d:])
    return make(y._data, layout_of(shape, steps, layout.dtype), y._version_)


_stacks = Joins(_stack)


@public(method=False)
def stack(tensors, dim=0, *, axis=None, out=None):
    """Join tensors of one shape along a new dim. RuntimeError when shapes differ; stack(([1, 2], [3, 4])) = [[1, 2], [3, 4]].

    Derivative: each tensor gets its slice of the gradient.
    """
    dim = dim if axis is None else axis
    if out is None:
        y = _stacks.find(dim, tensors)
        if y is not None:
            return y
    if foreign_among((tensors,)):
        return asked.redefined(stack, (tensors, dim), {} if out is None else {"out": out})
    ts = tensors_argument(tensors, "stack")
    d = wrap_dim(dim, ts[0].ndim + 1)
    for i, t in enumerate(ts):
        if t.shape != ts[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(ts[0].shape)} at entry 0 and {list(t.shape)} at entry {i}"
            )
    kind = _promoted(ts)
    if out is None:
        y = _stacks.first(dim, ts, d, [*ts[0].shape[:d], len(ts), *ts[0].shape[d:]])
        if y is not None:
            return y
    else:
        check_joined(out, ts, "stack")
    y = _stack(tuple(t.to(kind) for t in ts), d)
    if out is None:
        return y
    return store(out, y, "stack")


@structured(
    x=lambda g, x_shape: new_full(x_shape, 0, g.dtype), node="RepeatBackward0", linear="jointly", batch="samples", samples="x(3).repeat(0)"
)
def _nothing_of(x, shape):
    """Return a tensor without elements: a gradient of zeros, which depends on nothing, is all that comes of it."""
    return new_empty(shape, x.dtype)


@public()
def tile(input, *counts, dims: int | Sequence[int] | None = None):
    """Repeat the tensor ``dims`` times along each dim (missing dims count as 1); tile([1, 2], (2,)) = [1, 2, 1, 2]."""
    x = tensor_argument(input, "tile")
    if not counts and dims is None:
        raise TypeError('tile() missing 1 required positional arguments: "dims"')
    reps = as_shape(counts if dims is None else (dims,), "dims")
    return repeat(x, (1,) * (x.ndim - len(reps)) + tuple(reps))


@public(namespaces=())
def repeat(input, *counts, repeats: int | Sequence[int] | None = None):
    """Repeat the tensor along each dim; needs at least as many numbers as dims; [1, 2].repeat(2) = [1, 2, 1, 2]."""
    x = tensor_argument(input, "repeat")
    if not counts and repeats is None:
        raise TypeError('repeat() missing 1 required positional arguments: "repeats"')
    reps = as_shape(counts if repeats is None else (repeats,), "repeats")
    if len(reps) < x.ndim:
        raise RuntimeError(
            f"Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor (repeats={list(reps)}, "
            f"tensor has {x.ndim})"
        )
    if any(n < 0 for n in reps):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(reps)}: {list(reps)}")
    shape = (1,) * (len(reps) - x.ndim) + tuple(x.shape)
    if 0 in reps:
        return _nothing_of(x, tuple([r * n for r, n in zip(reps, shape, strict=True)]))
    y = reshape(x, [k for n in shape for k in (1, n)])
    y = expand(y, [k for r, n in zip(reps, shape, strict=True) for k in (r, n)])
    return fresh(reshape(clone(y), [r * n for r, n in zip(reps, shape, strict=True)]))
