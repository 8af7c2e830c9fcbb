"""Making tensors: filled, and like others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes, launch, strides
from ...config import determinism_changed, settings
from ...dtypes import as_dtype, dtype
from ...errors import refuse_keywords, shorten
from ...graph import modes
from ...graph.modes import state
from ...graph.node import tensor_lines
from ...graph.ownership import OURS
from ...shapes import Layout, as_shape, check_sizes, contiguous_strides, layout_of
from ...tensor import Tensor, make, set_requires_grad
from ..core.call_path import shortcut, written_lines
from ..core.foreign import asked, asking
from ..core.memo import Memo
from ..core.numbers import number_argument, plain_number
from ..core.recording import check_output, fit_output, made_in, mark_inference
from ..core.registry import public
from ..core.structured import tensor_argument
from .cast import as_device, format_name, is_meta, is_sparse, placed, strided_only

_dtype = dtype


def new_empty(shape: Sequence[int], d: dtype) -> Tensor:
    """Return uninitialised contiguous memory as a tensor."""
    layout = layout_of(shape, None, d)
    return make(launch.empty(layout.size, d.carrier), layout, [0, 0])


def new_like(x: Tensor, d: dtype | None = None, memory_format: Any = None) -> Tensor:
    """Return uninitialised memory as a tensor of the same shape and, unless ``memory_format`` says another, order of dims."""
    layout = strides.formatted(x._layout, format_name(memory_format), d)
    return make(launch.empty(layout.size, layout.dtype.carrier), layout, [0, 0])


def new_full(shape: Sequence[int], value: Any, d: dtype) -> Tensor:
    """Return a tensor of one value, outside the graph."""
    if value.__class__ is int and not value:
        layout = layout_of(shape, None, d)
        data = launch.zeros(layout.size, d.carrier)
        if data is not None:
            return make(data, layout, [0, 0])
    elif (value.__class__ is float or value.__class__ is int) and value == value and value and not launch._observing:  # (0.0 has a sign)
        layout, key = layout_of(shape, None, d), (value, value.__class__, d)
        pattern = _patterns.plans.get(key)
        if pattern is not None and layout.size <= pattern.size:
            return make(pattern[: layout.size].copy(), layout, [0, 0])
        if layout.size and pattern is None:
            many = _filled_with((_BYTES // d.itemsize,), value, d)
            _patterns.remember(key, many._data, 1 + _BYTES // 256)
    return _filled_with(shape, value, d)


_BYTES = 4096  #: the largest pattern
_patterns = Memo()  #: by number and dtype, so many bytes that small tensors are copied from


def _filled_with(shape: Sequence[int], value: Any, d: dtype) -> Tensor:
    t = new_empty(shape, d)
    t.fill_(value)
    t._version_[0] = 0
    return t


_ONES: dict[dtype, np.ndarray] = {}


def seed(layout: Layout) -> Tensor:
    """Return what a backward pass of one element begins with: a new 1, which the pass may overwrite."""
    one = None if launch._observing else _ONES.get(layout.dtype)
    if one is None or layout.__class__ is not Layout:
        t = new_full(layout.shape, 1, layout.dtype)
        if not launch._observing:
            _ONES[layout.dtype] = t._data.copy()
        t._version_[1] = OURS
        return t
    return make(one.copy(), layout if layout.usual else layout_of(layout.shape, None, layout.dtype), [0, OURS])


def _finish(t: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad is not False and requires_grad is not None:
        if requires_grad.__class__ is not bool:
            raise TypeError(f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__} (requires_grad={shorten(requires_grad)})")
        set_requires_grad(t, True)
    if modes.inference_used and state.inference:
        mark_inference(t)
    return t


def _options(dtype: Any, device: Any, layout: Any = None, pin_memory: Any = False, default: dtype | None = None) -> _dtype:
    if device is not None:
        as_device(device)
    return as_dtype(dtype) if dtype is not None else (default or dtypes.get_default_dtype())


# ------------------------------------------------------------------------------------------------- filled


#: a new tensor with the contents of a pattern (layout, array), or where there is no array with any
COPY = [
    "layout, pattern = plan",
    "data = _allocate(layout.size, layout.dtype.carrier) if pattern is None else pattern.copy()",
    *tensor_lines("layout"),
    "return _finish(t, requires_grad) if requires_grad or _modes.inference_used else t",
]


def on_meta(t: Tensor) -> Any:
    """Return a tensor like this on the device "meta" (see `autograd.meta`)."""
    return asked.meta().on_meta(t)


_COPY_NAMES: dict[str, Any] = {"_modes": modes, "_finish": _finish, "_is_meta": is_meta, "_on_meta": on_meta}


_blank_memos: list[Memo] = []  #: of functions whose contents do not matter, unless `use_deterministic_algorithms` says what they are


def _forget_blank() -> None:
    for memo in _blank_memos:
        memo.plans.clear()


determinism_changed.append(_forget_blank)


def told(t: Tensor) -> Tensor:
    """Return a tensor of memory that is not written yet, with the contents that `use_deterministic_algorithms` asks for."""
    if settings.deterministic and t._layout.size:
        d = t.dtype
        t.fill_(math.nan if d.is_floating_point or d.is_complex else True if d is dtypes.bool_ else dtypes.iinfo(d).max)
        t._version_[0] = 0
    return t


def _keep_pattern(memo: Memo, key: tuple[Any, ...], t: Tensor, blank: bool) -> None:
    if blank and settings.deterministic:
        return
    layout = t._layout
    bytes_ = layout.size * layout.dtype.itemsize
    if blank or bytes_ <= _BYTES:
        pattern = None if bytes_ > _BYTES else t._data[: layout.size].copy()
        memo.remember(key, (layout, pattern), 1 + bytes_ // 256 if pattern is not None else 1)


def repeated(function: Callable[..., Tensor], blank: bool = False, sparse: bool = False) -> Callable[..., Tensor]:
    """Decorator of a function that makes tensors of nothing but its arguments: what is small is made once, and copied then.

    Not so while launches are observed: a captured program makes it anew. ``blank``: contents do not matter; ``sparse``: layouts may be sparse.
    """
    memo = Memo()
    if blank:
        _blank_memos.append(memo)

    def miss(key: Any, args: tuple[Any, ...], dtype: Any, device: Any, requires_grad: Any) -> Tensor:
        t = function(*args, dtype=dtype, device=device, requires_grad=requires_grad)
        if key is not None:
            _keep_pattern(memo, (key, dtype), t, blank)
        return t

    return shortcut(
        "*args, dtype=None, device=None, requires_grad=False, **options", "key, dtype", COPY,
        ["return _miss(key, args, dtype, device, requires_grad)"], memo=memo, before=written_lines("args", True),
        first=[
            "if device is not None and options.get('out') is None and _is_meta(device):",
            "    return _on_meta(_function(*args, dtype=dtype, requires_grad=requires_grad, **options))",
            "if options:",
            "    if options.get('layout') is not None and not (_sparse and _is_sparse(options['layout'])):",
            "        _strided_only(options['layout'])",
            "    return _function(*args, dtype=dtype, device=device, requires_grad=requires_grad, **options)",
        ],
        function=function, **_COPY_NAMES, _function=function, _miss=miss, _strided_only=strided_only, _sparse=sparse, _is_sparse=is_sparse,
    )  # fmt: skip


def _filled_output(out: Any, shape: Sequence[int], value: Any, dtype: Any, name: str, requires_grad: Any = False) -> Tensor:
    """Return ``out`` in this shape, filled with a number as its dtype keeps it; as it is where ``value`` is None."""
    check_output(out, name)
    made_in(out, dtype)
    if tuple(out.shape) != tuple(shape):
        fit_output(out, shape, quiet=True)
    if value is not None:
        out.fill_(value)
    elif settings.deterministic:
        out.copy_(told(new_like(out)))
    return _finish(out, requires_grad)


def _filled_like(name: str, make_filled: Callable[..., Tensor], value: Any) -> Callable[..., Tensor]:
    memo = Memo()
    if value is None:
        _blank_memos.append(memo)

    def like(input, *, dtype=None, device=None, requires_grad=False, layout=None, memory_format=None, pin_memory=False):
        if layout is not None and value == 0 and is_sparse(layout):
            return make_filled(input.shape, dtype=dtype or input.dtype, layout=layout, device=device, requires_grad=requires_grad)
        if layout is not None:
            strided_only(layout)
        given = tensor_argument(input, name)._layout
        d = _options(dtype or given.dtype, device)
        if memory_format is None and given.contiguous:
            fresh = make_filled(given.shape, dtype=d, requires_grad=requires_grad)
        else:
            fresh = new_like(input, d, memory_format)
            if value is None:
                told(fresh)
            else:
                fresh.fill_(value)
                fresh._version_[0] = 0
            _finish(fresh, requires_grad)
        t = input._beside(fresh)
        if t is fresh and memory_format is None:
            _keep_pattern(memo, (given, dtype), t, value is None)
        return t

    like.__name__ = like.__qualname__ = name
    shown = ".shape = torch.Size([1])" if value is None else f" = [{value}.]"
    like.__doc__ = f"Return what `{make_filled.__name__}` does with the shape and dtype of another tensor; {name}([7.]){shown}."
    slow = asking(like)
    call = slow.public = shortcut(  # type: ignore[attr-defined]
        "input, *, dtype=None, device=None, requires_grad=False, layout=None, memory_format=None, pin_memory=False", "input._layout, dtype",
        COPY, ["return _like(input, dtype=dtype, device=device, requires_grad=requires_grad)"], memo=memo,
        first=[
            "if device is not None and _is_meta(device):",
            "    return _on_meta(_like(input, dtype=dtype, requires_grad=requires_grad))",
            "if memory_format is not None or layout is not None:",
            "    return _like(input, dtype=dtype, device=device, requires_grad=requires_grad, layout=layout, memory_format=memory_format)",
        ],
        function=like, **_COPY_NAMES, _like=slow,
    )  # fmt: skip
    return call


def _filled(name: str, value: Any) -> Any:
    def make_filled(
        *args, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None
    ):  # fmt: skip
        if size is not None:
            args = (size,)
        shape = as_shape(args, op=name)
        check_sizes(shape)
        if out is not None:
            if (layout is not None and is_sparse(layout)) or (device is not None and is_meta(device)):
                raise RuntimeError(f"{name}(): layout or device (layout={layout}, device={device}) does not match that of out")
            return _filled_output(out, shape, value, dtype, name, requires_grad)
        d = _options(dtype, device)
        if layout is not None and is_sparse(layout):
            return asked.sparse_zeros(shape, d, layout, requires_grad)
        t = told(new_empty(shape, d)) if value is None else new_full(shape, value, d)
        if memory_format is not None:
            t = make(t._data, strides.formatted(t._layout, format_name(memory_format)), t._version_)
        return _finish(t, requires_grad)

    make_filled.__name__ = make_filled.__qualname__ = name
    filled = "whatever was in memory" if value is None else value
    shown = ".shape = torch.Size([2])" if value is None else f" = [{value}., {value}.]"
    make_filled.__doc__ = f"Return a tensor of ``size`` filled with {filled}, of the default dtype or ``dtype``; {name}(2){shown}."
    sized = public(method=False, name=name)(repeated(make_filled, blank=value is None, sparse=not value))
    public(method=False, name=name + "_like")(_filled_like(name + "_like", make_filled, value))

    def new(self, *size, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, **kw):
        if layout is not None and not (is_sparse(layout) and not value and not kw):
            strided_only(layout)
        elif layout is not None and is_sparse(layout):
            return sized(*size, dtype=dtype or self._layout.dtype, layout=layout, device=device, requires_grad=requires_grad)
        if kw:
            refuse_keywords(f"Tensor.new_{name}", kw, ("size", "dtype", "layout", "device", "requires_grad", "pin_memory"))
        elif not size:
            raise TypeError(f'new_{name}() missing 1 required positional arguments: "size"')
        return self._beside(
            sized(*(size or (kw["size"],)), dtype=dtype or self._layout.dtype, device=device, requires_grad=requires_grad)
        )

    new.__name__ = new.__qualname__ = "new_" + name
    new.__doc__ = f"Return what `{name}` does with this tensor's dtype; [7.].new_{name}(2){shown}."
    public(namespaces=(), name="new_" + name)(new)
    return sized


zeros: Any = _filled("zeros", 0)
ones: Any = _filled("ones", 1)
empty: Any = _filled("empty", None)


@public(method=False)
@repeated
def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Return a tensor of ``size`` filled with one number; its dtype follows the number; full((2,), 7) = [7, 7]."""
    if isinstance(size, int):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not int (size={size})")
    shape = as_shape((size,))
    check_sizes(shape)
    fill_value = plain_number(number_argument(fill_value, "full", "fill_value"))
    if fill_value is None:
        raise TypeError("full(): argument 'fill_value' must be Number")
    if out is not None:
        return _filled_output(out, shape, fill_value, dtype, "full", requires_grad)
    kind = dtypes.of_scalar(type(fill_value))
    if kind.is_limited:  # complex numbers fill no tensor of half precision, as in PyTorch, unless one is asked for
        kind = dtypes.complex64
    t = new_full(shape, fill_value, _options(dtype, device, default=kind))
    return _finish(t, requires_grad)


@public(method=False)
def full_like(input, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """Return `full` with the shape, dtype and order of dims of another tensor."""
    if layout is not None:
        strided_only(layout)
    x = tensor_argument(input, "full_like")
    d = as_dtype(dtype) if dtype is not None else x.dtype
    y = full(x.shape, fill_value, dtype=d, device=device, requires_grad=requires_grad and x._layout.contiguous)
    if memory_format is not None or not x._layout.contiguous:
        y = _finish(new_like(x, d, memory_format).copy_(y), requires_grad)
        y._version_[0] = 0
    return x._beside(y)


@public(namespaces=(), name="new_full")
def new_full_(self, size, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Return `full` with this tensor's dtype."""
    if layout is not None:
        strided_only(layout)
    return self._beside(full(size, fill_value, dtype=dtype or self._layout.dtype, device=device, requires_grad=requires_grad))


@public(method=False)
@placed
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Return uninitialised memory under given strides. RuntimeError for negative ones, and where there is not one for each size.

    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape, steps = as_shape((size,)), as_shape((stride,))
    check_sizes(shape)
    if any(s < 0 for s in steps):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(steps)}")
    found: Layout = layout_of(shape, steps, _options(dtype, device))
    return _finish(told(make(launch.empty(max(found.extent, 0), found.dtype.carrier), found, [0, 0])), requires_grad)


@public(namespaces=())
def new_empty_strided(self, size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Return `empty_strided` with this tensor's dtype."""
    if layout is not None:
        strided_only(layout)
    return empty_strided(size, stride, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)


@public(method=False, differentiable=False)
def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Return uninitialised memory of shape ``size`` whose dims lie in memory in the order ``physical_layout``, outermost first."""
    if layout is not None:
        strided_only(layout)
    shape, order = as_shape((size,)), as_shape((physical_layout,), "physical_layout")
    if len(shape) != len(order):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {len(shape)} is not "
            f"equal to len(physical_layout) = {len(order)}"
        )
    for k, d in enumerate(order):
        if not 0 <= d < len(shape):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got {d} at index {k})"
            )
        if d in order[:k]:
            raise RuntimeError(f"Duplicate dim not allowed (physical_layout={list(order)})")
    steps = contiguous_strides([shape[d] for d in order])
    strides = [steps[order.index(d)] for d in range(len(shape))]
    return empty_strided(shape, strides, dtype=dtype, device=device, requires_grad=requires_grad)


@public(method=False, name="scalar_tensor")
@placed
def scalar_tensor_(s, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Return a 0-d tensor of a number, of the default dtype unless ``dtype`` says otherwise; scalar_tensor(3.0) = tensor(3.)."""
    number = s.item() if isinstance(s, Tensor) else s
    if isinstance(number, complex) and dtype is None:
        dtype = dtypes.get_default_dtype().to_complex()
    return _finish(new_full((), number, _options(dtype, device)), requires_grad)
