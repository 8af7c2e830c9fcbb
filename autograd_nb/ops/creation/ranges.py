"""Evenly spaced values: `arange`, `linspace`, `logspace`; and `eye`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...codegen.templates import loops
from ...dtypes import dtype
from ...errors import warn_user
from ...shapes import as_int, check_sizes
from ...tensor import Tensor
from ..core.call_path import planned
from ..core.numbers import number_argument, number_as
from ..core.recording import made_in, not_for_limited, store_new
from ..core.registry import OPS, public
from .cast import cast, placed
from .create import _finish, _options, new_empty, new_full, repeated

#: an element of a ramp, counted from both ends, so that both are exact
_ELEMENT = "start + i * step if i < half else stop - (n - 1 - i) * step"


@planned
def _ramp_entry(d: dtype, kind: type) -> Any:
    """Return the kernel that writes a ramp of numbers of a kind into memory of a dtype."""
    number = "int64" if kind is int else "float64"
    source = (
        loops.HEADER + "def kernel(n, start, step, half, stop, out):\n    for i in range(n):\n"
        f"        out[i] = np.{d.np.name if d.name != 'bool' else 'bool_'}({_ELEMENT})\n"
    )
    return launch.entry(source, "kernel", ("int64", number, number, "int64", number, d.kernel), "arange")


def _ramp(n: int, start: float, step: float, d: dtype, half: int | None = None, stop: float = 0.0) -> Tensor:
    """Return start + i·step for i < n; from element ``half`` on counted back from ``stop``, so that both ends are exact."""
    if d.is_half:
        return cast(_ramp(n, start, step, dtypes.float32, half, stop), d)
    t = new_empty((n,), d)
    _ramp_entry(d, type(start))(n, start, step, n if half is None else half, type(start)(stop), t._data)
    return t


@planned
def _between_entry(a: dtype, b: dtype, d: dtype) -> Any:
    """Return the kernel that writes a ramp between two numbers in memory, in a real floating dtype, with the steps of `linspace`."""
    number = "np.float32" if d is dtypes.float32 else "np.float64"
    source = (
        loops.HEADER + "def kernel(n, low, high, out):\n"
        f"    first, last = {number}(low[0]), {number}(high[0])\n"
        f"    step = np.float64((last - first) / {number}(n - 1)) if n > 1 else 0.0\n"
        "    start, stop, half = np.float64(first), np.float64(last), max(n // 2, 1)\n"
        "    for i in range(n):\n"
        f"        out[i] = {number}({_ELEMENT})\n"
    )
    return launch.entry(source, "kernel", ("int64", a.kernel, b.kernel, d.kernel), "linspace")


def _in_memory(start: Any, end: Any, d: dtype) -> bool:
    """Return whether both ends are plain 0-d tensors of real numbers, and a ramp of dtype ``d`` is made by `_between_entry`, which reads them."""
    return d in (dtypes.float32, dtypes.float64) and all(
        x.__class__ is Tensor and not x._layout.ndim and not x.dtype.is_complex and not x.dtype.is_half and not x.dtype.is_limited for x in (start, end)
    )


def _between(start: Any, end: Any, n: int, d: dtype) -> Tensor:
    t = new_empty((n,), d)
    _between_entry(start.dtype, end.dtype, d)(n, start._data, end._data, t._data)
    return t


def warn_of_count(out: Any, n: int) -> None:
    """Warn where ``out`` has elements, but not the ``n`` that `arange` counts."""
    if isinstance(out, Tensor) and out._layout.size not in (0, n):
        warn_user(
            f"The number of elements in the out tensor of shape {list(out.shape)} is {out._layout.size} which does not match the computed number "
            f"of elements {n}. Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of shape "
            f"({n},).",
        )


def stored_in_order(out: Tensor, values: Tensor, name: str, requires_grad: bool) -> Tensor:
    """Put a row of values into ``out``, which keeps its shape if it has as many elements."""
    if isinstance(out, Tensor) and out._layout.size == values._layout.size:
        values = values.reshape(out.shape)
    return store_new(out, values, name, requires_grad)


@public(method=False)
@repeated
def arange(
    start: float | None = None, end: float | None = None, step: float = 1, *, out=None, dtype=None, layout=None, device=None,
    requires_grad=False, pin_memory=False,
):
    """Return start, start + step, … below ``end``; int64 when all numbers are ints. RuntimeError for step 0 or the wrong sign.

    >>> torch.arange(1, 2, 0.5)
    tensor([1.0000, 1.5000])
    """
    if end is None:
        start, end = 0, start
    if end is None:
        raise TypeError("arange() missing 1 required positional argument: 'end'")
    start, end, step = (
        x.item() if isinstance(x, np.generic) else number_argument(x, "arange", n)
        for n, x in (("start", 0 if start is None else start), ("end", end), ("step", step))
    )
    for name, x in (("start", start), ("end", end), ("step", step)):
        if not isinstance(x, (int, float)):
            raise TypeError(f"arange(): argument '{name}' must be Number, not {type(x).__name__}")
        if not math.isfinite(x):
            raise RuntimeError(f"unsupported range: {start} -> {end}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign (start={start}, end={end}, step={step})")
    integral = all(isinstance(x, int) for x in (start, end, step))
    d = _options(made_in(out, dtype), device, default=dtypes.int64 if integral else None)
    if d.is_complex:
        raise NotImplementedError(f'"arange_cpu" not implemented for complex tensors (dtype={d!r})')
    if d is dtypes.bool_:
        raise NotImplementedError("\"arange_cpu\" not implemented for 'Bool'")
    not_for_limited("arange_cpu", d)
    n = -(-(end - start) // step) if integral else math.ceil((end - start) / step)
    if d.category < 2 and not integral:  # PyTorch rounds the ends towards 0 first
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise RuntimeError("step must be nonzero")
        n = -(-(end - start) // step) if d is dtypes.int64 else n  # only int64 is counted by the rounded ends
        integral = True
    kind = int if integral else float
    t = _ramp(int(n), kind(start), kind(step), d)
    if out is None:
        return _finish(t, requires_grad)
    warn_of_count(out, int(n))
    return stored_in_order(out, t, "arange", requires_grad)


@public(method=False)
@repeated
def linspace(
    start: float | Tensor, end: float | Tensor, steps=None, *, out=None, dtype=None, layout=None, device=None, requires_grad=False,
    pin_memory=False,
):
    """Return ``steps`` evenly spaced values from ``start`` to ``end``, both included; linspace(0, 1, 5) = [0.0000, 0.2500, 0.5000, 0.7500, 1.0000]."""
    dtype = made_in(out, dtype)
    if steps.__class__ is int and steps >= 0 and out is None and _in_memory(start, end, d := _options(dtype, device)):
        return _finish(_between(start, end, steps, d), requires_grad)
    start, end = _ends(start, end, dtype, "linspace")
    n = as_int(steps, "steps")
    if isinstance(start, complex) or isinstance(end, complex):
        d = _options(dtype, device, default=dtypes.get_default_dtype().to_complex())
        re, im = (linspace(a, b, n, dtype=d.to_real()) for a, b in ((start.real, end.real), (start.imag, end.imag)))
        t = cast(OPS["complex"].call(re, im), d)
        return _finish(t, requires_grad) if out is None else stored_in_order(out, t, "linspace", requires_grad)
    if n < 0:
        raise RuntimeError(f"number of steps must be non-negative (steps={steps})")
    d = _options(dtype, device)
    _not_of_bool(d, n, "linspace")
    start, end = (number_as(x, d, "linspace") for x in (start, end))
    start, end = (float(int(x) if d.category < 2 else x) for x in (start, end))
    number = np.float32 if d is dtypes.float32 else np.float64  # in which PyTorch computes the step
    with np.errstate(all="ignore"):
        first, last = number(start), number(end)
        step = (last - first) / number(n - 1) if n > 1 else 0.0
    t = _ramp(n, float(first), float(step), d, half=max(n // 2, 1), stop=float(last))
    return _finish(t, requires_grad) if out is None else stored_in_order(out, t, "linspace", requires_grad)


def _not_of_bool(d: dtype, n: int, name: str) -> None:
    """Raise NotImplementedError for several booleans; one is filled in."""
    not_for_limited(f"{name}_cpu", d)
    if d is dtypes.bool_ and n > 1:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")


def _ends(start: Any, end: Any, dtype: Any, name: str) -> tuple[Any, Any]:
    """Return both ends as numbers; RuntimeError for tensors with dims and for complex ends of what is to be real."""
    if any(isinstance(x, Tensor) and x.ndim for x in (start, end)):
        dims = " and ".join(f"{n} with {x.ndim} dimension(s)" for n, x in (("start", start), ("end", end)) if isinstance(x, Tensor))
        raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got {dims}.")
    start, end = (x.item() if isinstance(x, Tensor) else number_argument(x, name, n) for n, x in (("start", start), ("end", end)))
    if dtype is not None and not dtype.is_complex and any(isinstance(x, complex) for x in (start, end)):
        raise RuntimeError(f"torch.{name}(): inferred dtype c10::complex<float> can't be safely cast to passed dtype {dtype}")
    return start, end


@public(method=False)
@repeated
@placed
def logspace(
    start: float | Tensor, end: float | Tensor, steps, base=10.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False,
    pin_memory=False,
):
    """Return base ** linspace(start, end, steps); an integer dtype truncates the ends, then the powers; logspace(0, 2, 3) = [ 1., 10., 100.]."""
    dtype = made_in(out, dtype)
    d = _options(dtype, device)
    if not _in_memory(start, end, d):
        start, end = _ends(start, end, dtype, "logspace")
    steps = as_int(steps, "steps")
    _not_of_bool(d, steps, "logspace")
    if d.category < 2 and steps != 1:  # (a single power is truncated alone)
        start, end = (int(number_as(x, d, "logspace")) for x in (start, end))
    wide = dtypes.complex128 if isinstance(start, complex) or isinstance(end, complex) else dtypes.float64
    if wide is dtypes.complex128 and dtype is None:
        d = d.to_complex()
    t = cast(number_argument(base, "logspace", "base") ** linspace(start, end, steps, dtype=wide), d)
    return _finish(t, requires_grad) if out is None else stored_in_order(out, t, "logspace", requires_grad)


@public(method=False)
@repeated
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Return an n × m matrix with ones on the diagonal; eye(2) = [[1., 0.], [0., 1.]]."""
    n = as_int(n, "n")
    k = n if m is None else as_int(m, "m")
    for size, given in (("n", n), ("m", k)):
        if given < 0:
            raise RuntimeError(f"{size} must be greater or equal to 0, got {given}")
    check_sizes((n, k))
    d = _options(made_in(out, dtype), device)
    not_for_limited("eye", d)
    t = new_full((n, k), 0, d)
    if t._layout.size:
        t.diagonal().fill_(1)
    t._version_[0] = 0
    return _finish(t, requires_grad) if out is None else store_new(out, t, "eye", requires_grad)
