"""Forms of the view ops that copy: ``permute_copy`` and the like, and splits whose parts may be changed in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ...errors import with_guess
from ...shapes import as_int, wrap_dim
from ...tensor import Tensor, make
from ..core.recording import store
from ..core.registry import OPS, numpy_names, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, clone
from .parts import _join_parts, _split, slice_dim, split
from .shape import alias_view


def _copy_of(name: str, function: Callable[..., Any] | None = None, method: bool = False) -> None:
    """Register ``<name>_copy``: what ``name`` gives, in memory of its own."""
    view: Callable[..., Any] = function or OPS[name].call

    def call(input, *args, out=None, **kw):
        tensor_argument(input, name + "_copy")
        try:
            y = view(input, *args, **kw)
        except TypeError as error:
            # Python's words for a call that does not fit name the function within
            error.args = (re.sub(r"^[\w<>.]+\(\) (?=got|takes|missing)", f"{name}_copy() ", str(error)),)
            with_guess(error, view, ("out",))
            raise
        if isinstance(y, tuple):
            parts = tuple(clone(t) for t in y)
            if out is None:
                return parts
            for target, t in zip(out, parts, strict=True):
                store(target, t, name + "_copy")
            return None
        y = clone(y)
        return y if out is None else store(out, y, name + "_copy")

    call.__name__ = call.__qualname__ = name + "_copy"
    call.__doc__ = (
        f"Return what `{name}` does in memory of its own, in C order: what is written to the result leaves the input as it is. "
        f"Its derivative is that of `{name}`."
    )
    public(method=method)(call)


for _name in (
    "as_strided", "diagonal", "expand", "permute", "select", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind",
    "unfold", "unsqueeze", "view_as_complex", "view_as_real",
):  # fmt: skip
    _copy_of(_name)


def _viewed(x: Tensor, *args: Any, **kw: Any) -> Tensor:
    """Return `view`, or a copy in C order under the new shape where the strides allow none."""
    if args and not kw and not isinstance(args[0], dtypes.dtype):
        return OPS["reshape"].call(x, *args)
    return OPS["view"].call(x, *args, **kw)


_copy_of("view", _viewed)


def _narrowed(x: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """Return `narrow`, which says otherwise where there is no such dim behind."""
    if x.ndim and as_int(dim, "dim") >= x.ndim:
        raise RuntimeError(f"Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false. (narrow_copy(): dim={dim})")
    return OPS["narrow"].call(x, dim, start, length)  # type: ignore[no-any-return]


_copy_of("narrow", numpy_names(_narrowed), method=True)
_copy_of("alias", alias_view)
_copy_of("detach", lambda x: x.detach())


def _slice(input: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    return slice_dim(input, wrap_dim(dim, input.ndim), start, end, step)


_copy_of("slice", _slice)


@public(method=False)
def detach(input):
    """Return the same memory without a history; detach([1, 2]) = [1, 2]."""
    return tensor_argument(input, "detach").detach()


# ---------------------------------------------------------------------------------------- parts that are not views


@structured(
    x=lambda g, x_shape, d, sizes: _join_parts(g, x_shape, d, sizes), node="UnsafeSplitBackward0",
    linear="no", batch="samples",
    samples="torch.unsafe_split(x(3, 4), 3, 1)",
)
def _unsafe_split(x, d, sizes):
    return [make(t._data, t._layout, [0, 0]) for t in _split(x, d, sizes)]


def _sizes(input: Tensor, parts: tuple[Tensor, ...], dim: int) -> tuple[Tensor, ...]:
    d = wrap_dim(dim, input.ndim)
    return tuple(_unsafe_split(input, d, tuple(t.shape[d] for t in parts)))


@public()
def unsafe_split(input, split_size: int | Sequence[int], dim=0) -> tuple[Tensor, ...]:
    """Return `split`, whose parts autograd does not know to be views: each may be changed in place, if the input is not used again."""
    return _sizes(input, split(tensor_argument(input, "unsafe_split").detach(), split_size, dim), dim)


@public()
def unsafe_split_with_sizes(input, split_sizes, dim=0) -> tuple[Tensor, ...]:
    """Return `split_with_sizes` as `unsafe_split` does it."""
    return _sizes(input, split(tensor_argument(input, "unsafe_split_with_sizes").detach(), list(split_sizes), dim), dim)


@public()
def unsafe_chunk(input, chunks, dim=0) -> tuple[Tensor, ...]:
    """Return `chunk` as `unsafe_split` does it."""
    return _sizes(input, OPS["chunk"].call(tensor_argument(input, "unsafe_chunk").detach(), chunks, dim), dim)


# ------------------------------------------------------------------------------------------------------ filling


@structured(
    x=lambda g: OPS["zeros_like"].call(g), value=lambda g, value: cast(g.sum(), value.dtype), node="FillBackward1",
    linear="no", batch="samples",
    samples="torch.fill(x(3, 4), x())",
)
def _fill(x, value):
    return OPS["empty_like"].call(x).fill_(value)


@public(method=False)
def fill(input, value: Tensor | float):
    """Return a tensor like the input, every element ``value`` (a number or a 0-d tensor, which gets the sum of the gradients); fill([1, 2], 9) = [9, 9]."""
    x = tensor_argument(input, "fill")
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(
            f"fill only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions (value.shape="
            f"{list(value.shape)})"
        )
    return _fill(x, value)


@public(method=False)
def unravel_index(indices, shape) -> tuple[Tensor, ...]:
    """Return the coordinates of flat ``indices`` into a tensor of ``shape``: a tuple with one integer tensor for each dim.

    Errors: TypeError for indices that are not integers and a shape that is not of ints, ValueError for negative sizes.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.unravel_index.html

    >>> torch.unravel_index(torch.tensor([5]), (2, 3))
    (tensor([1]), tensor([2]))
    """
    x = tensor_argument(indices, "unravel_index", "indices")
    if x.dtype.category != 1:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {x.dtype}")
    if not isinstance(shape, (int, tuple, list)) or isinstance(shape, bool):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape).__name__}")
    for n in () if isinstance(shape, int) else shape:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n).__name__}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    out = []
    step = 1
    for n in reversed(sizes):
        out.append(OPS["div"].call(x, step, rounding_mode="floor") % n if n else x)
        step *= n
    return OPS["stack"].call(out[::-1], -1).unbind(-1) if out else ()
