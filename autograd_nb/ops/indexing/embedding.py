"""Rows of a table by index, and one-hot vectors.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes, launch
from ...graph.modes import state, unrecorded
from ...launch import Kernel
from ...overriding import overridable, whole
from ...shapes import as_int
from ...tensor import Tensor
from ..core.foreign import asked
from ..core.marked import resolved
from ..core.numbers import bool_argument, float_argument
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, contiguous, dense
from ..creation.create import new_full
from ..shape.shape import reshape, unsqueeze
from .along_index import scatter_into
from .picking import checked_rows, index_backward, index_of_batch, memoized_pick, pick

_bounds = Kernel("indexing.index", "bounds")
_max_norm_rows = Kernel("indexing.index", "max_norm_rows")


def _rows_rule(g: Tensor, index: Tensor, weight_shape: Any, padding: int, by_frequency: bool) -> Tensor:
    if padding >= 0:
        g = OPS["masked_fill"].call(g, unsqueeze(index == padding, -1), 0)
    if by_frequency:
        counts = OPS["bincount"].call(reshape(index, -1), minlength=weight_shape[0])
        g = g / unsqueeze(cast(pick(counts, index, (0,), 0), g.dtype), -1)
    return index_backward(g, index, tuple(weight_shape), (0,), 0)


@structured(weight=_rows_rule, node="EmbeddingBackward0", linear="no", samples="F.embedding(index(3, 2, 2), x(3, 4))")
def _embedding(weight, index, padding, by_frequency):
    return pick(weight, contiguous(index), (0,), 0)


@_embedding.batched
def _embedding_of_batch(op, args, batch):
    weight, index, padding, by_frequency = args
    (w, in_w), (i, in_i) = batch.of(weight), batch.of(index)
    if by_frequency or (in_w and padding >= 0):
        return None
    if not in_w:
        return op(w, i, padding, by_frequency)
    i = index_of_batch(i if in_i else batch.whole(i), weight.shape, (0,), batch.size)
    return op(w.reshape(batch.size * w.shape[1], w.shape[2]), i, padding, by_frequency)


def _no_rows() -> IndexError:
    return IndexError("Dimension specified as 0 but tensor has no dimensions (embedding(): weight)")


def _padding(k: int, w: Tensor) -> int:
    """Return the row without gradient, counted from the first; 0 is always one."""
    if not k:
        return 0
    if not w.ndim:
        raise _no_rows()
    n = w.shape[0]
    if not -n <= k < n:
        raise AssertionError(f"Padding_idx must be within num_embeddings (padding_idx={k}, num_embeddings={n})")
    return k % n


@public(method=False, namespaces=("nn.functional",), name="nn.functional.embedding")
def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Return the rows of ``weight`` [n, d] at the integers of ``input``: [*, d]. The gradient of a row is the sum over its uses.

    padding_idx: a row that gets no gradient. max_norm: rows used are first scaled down in place to that ``norm_type``-norm.
    scale_grad_by_freq: divide by how often a row is used. sparse: the gradient of ``weight`` is a sparse tensor of the rows used.

    Errors: IndexError for integers out of range, RuntimeError unless they are int or long, and ``weight`` 2-d.

    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), torch.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    index = tensor_argument(input, "embedding")
    w = tensor_argument(weight, "embedding", "weight")
    kind = index._layout.dtype
    padding = -1 if padding_idx is None else _padding(as_int(padding_idx, "padding_idx"), w)
    if kind is not dtypes.int64 and kind is not dtypes.int32:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{kind} instead (while checking arguments for embedding; use .long())"
        )
    if w._layout.ndim != 2:
        if not w._layout.ndim and max_norm is None and state.grad and w.requires_grad:  # (the derivative asks how many rows there are)
            raise _no_rows()
        raise RuntimeError(f"'weight' must be 2-D (weight.shape={list(w.shape)})")
    by_frequency = bool_argument(scale_grad_by_freq, "embedding", "scale_grad_by_freq")
    if bool_argument(sparse, "embedding", "sparse") and max_norm is None and state.grad and w.requires_grad:
        return asked.embedding(w, checked_rows(index, w, 0, "embedding"), padding, by_frequency)
    if max_norm is None:
        y = memoized_pick(_embedding, (w, index, padding, by_frequency), 0)
        if y is not None:
            return y
    if max_norm is not None and w.dtype.category < 2:
        raise RuntimeError(f"norm(): input dtype should be either floating point or complex. Got {w.dtype} instead. (embedding)")
    index = checked_rows(index, w, 0, "embedding" if max_norm is None else "embedding_renorm_")
    if max_norm is not None:
        _renormalise(w, index, float_argument(max_norm, "embedding", "max_norm"), float_argument(norm_type, "embedding", "norm_type"))
        if sparse and state.grad and w.requires_grad:
            return asked.embedding(w, index, padding, by_frequency)
    return _embedding(w, index, padding, by_frequency)


@public(method=False, name="embedding")
def embedding_(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """Return `nn.functional.embedding` with the table first; a ``padding_idx`` of −1 is none."""
    return embedding(indices, weight, None if padding_idx == -1 else padding_idx, None, 2.0, scale_grad_by_freq, sparse)


@whole
def _renormalise(w: Tensor, index: Tensor, most: float, p: float) -> None:
    """Scale the used rows of ``w`` down in place."""
    with unrecorded():
        rows = OPS["unique"].call(index)
        if not rows._layout.size or not w.shape[1]:
            return
        table = resolved(w.detach()).contiguous()
        table = cast(table, dtypes.BY_NAME[w.dtype.compute])
        _max_norm_rows(table.dtype, dense(rows), w.shape[1], most, p, table._data)
        if table._data is not w._data:
            w.detach().copy_(table)
        else:
            w._version_[0] += 1


@public(method=False, namespaces=("nn.functional",))
@overridable
def one_hot(tensor: Tensor, num_classes=-1):
    """Return int64 vectors with a 1 at each integer's place: [*, num_classes] (one more than the greatest, if −1).

    Errors: RuntimeError for integers outside [0, num_classes). Source:
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html

    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]), 3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    index = tensor_argument(tensor, "one_hot", "tensor")
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor. (tensor.dtype={index.dtype})")
    n = as_int(num_classes, "num_classes")
    if not index._layout.size:
        if n <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return new_full((*index.shape, n), 0, dtypes.int64)
    flat = dense(index)
    span = np.empty(2, np.int64)
    _bounds(0, flat, span)

    def inside(span: np.ndarray) -> None:
        low, high = span.tolist()
        if low < 0:
            raise RuntimeError(f"Class values must be non-negative. (least value {low})")
        if n >= 1 and high >= n:
            raise RuntimeError(f"Class values must be smaller than num_classes. (greatest value {high}, num_classes={n})")

    launch.check(inside, span, passes=((0, 0, 0, 1 << 62), (0, 1, 0, n - 1 if n >= 1 else 1 << 62)))
    if n == -1:
        launch.escapes("one_hot() without num_classes")
        n = int(span[1]) + 1
    elif n < 1:
        raise RuntimeError(f"num_classes should be positive (num_classes={n})")
    out = new_full((*index.shape, n), 0, dtypes.int64)
    scatter_into(out, index.ndim, unsqueeze(index, -1), new_full((), 1, dtypes.int64), 0)
    return out
