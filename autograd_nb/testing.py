"""Comparing tensors in tests.

Source: https://docs.pytorch.org/docs/stable/testing.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import dtypes
from .ops.core.registry import OPS
from .tensor import Tensor

#: dtype name -> (rtol, atol)
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
    check_stride: bool = False, msg: str | Callable[[str], str] | None = None,
) -> None:  # fmt: skip
    """Raise AssertionError unless |actual − expected| ≤ atol + rtol·|expected| everywhere; lists and dicts are compared by element.

    Without tolerances, those of the wider dtype: 1.3e-6 and 1e-5 for float32, 1e-7 and 1e-7 for float64, 0 for integers.
    Source: https://docs.pytorch.org/docs/stable/testing.html#torch.testing.assert_close
    """
    if (rtol is None) != (atol is None):
        raise ValueError(f"rtol and atol must both be specified or both be unspecified, but got rtol={rtol}, atol={atol}")
    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_dtype": check_dtype, "check_stride": check_stride}
    problem = _difference(actual, expected, options, "")
    if problem is None:
        return
    if callable(msg):
        problem = msg(problem)
    elif msg is not None:
        problem = msg
    raise AssertionError(problem)


def _difference(actual: Any, expected: Any, options: dict[Any, Any], where: str) -> str | None:
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            return f"The keys of the mappings do not match{where}: {sorted(map(str, actual))} and {sorted(map(str, expected))}"
        return next((d for k in actual if (d := _difference(actual[k], expected[k], options, f"{where}[{k!r}]"))), None)
    if isinstance(actual, Sequence) and isinstance(expected, Sequence) and not isinstance(actual, str):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch{where}: {len(actual)} != {len(expected)}"
        pairs = enumerate(zip(actual, expected, strict=True))
        return next((d for k, (a, b) in pairs if (d := _difference(a, b, options, f"{where}[{k}]"))), None)
    if actual is None and expected is None:
        return None
    as_tensor = OPS["as_tensor"].call
    numbers = not isinstance(actual, Tensor) and not isinstance(expected, Tensor)
    if numbers and type(actual) is type(expected) and isinstance(actual, str):
        return None if actual == expected else f"{actual!r} != {expected!r}{where}"
    try:
        a, b = as_tensor(actual).detach(), as_tensor(expected).detach()
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.") from None
    if a.shape != b.shape:
        return f"The values for attribute 'shape' do not match{where}: {a.shape} != {b.shape}."
    if options["check_dtype"] and not numbers and a.dtype is not b.dtype:
        return f"The values for attribute 'dtype' do not match{where}: {a.dtype} != {b.dtype}."
    if options["check_stride"] and a.stride() != b.stride():
        return f"The values for attribute 'stride()' do not match{where}: {a.stride()} != {b.stride()}."
    kind = dtypes.promote_types(a.dtype, b.dtype)
    rtol, atol = options["rtol"], options["atol"]
    if rtol is None:
        allowed = [_TOLERANCES.get(x.dtype.name, (0.0, 0.0)) for x in (a, b)]
        rtol, atol = max(p[0] for p in allowed), max(p[1] for p in allowed)
    a, b = a.to(kind), b.to(kind)
    close = OPS["isclose"].call(a, b, rtol=rtol, atol=atol, equal_nan=options["equal_nan"])
    wrong = close.logical_not()
    count = int(wrong.sum().item())
    if not count:
        return None
    if numbers:
        return f"Scalars are not close{where}!\n\nExpected {expected} but got {actual}.\nAllowed: rtol={rtol}, atol={atol}"
    how = "equal" if rtol == atol == 0 else "close"
    text = f"Tensor-likes are not {how}{where}!\n\nMismatched elements: {count} / {a.numel()} ({count / a.numel():.1%})"
    if kind.category >= 1:
        apart = (a - b).abs().reshape(-1).masked_fill(wrong.reshape(-1).logical_not(), 0)
        worst = int(apart.nan_to_num(nan=float("inf") if kind.category > 1 else None).argmax().item())
        text += (
            f"\nGreatest absolute difference: {apart[worst].item()} (got {a.reshape(-1)[worst].item()}, expected "
            f"{b.reshape(-1)[worst].item()}) at flat index {worst} (up to {atol} allowed, relative up to {rtol})"
        )
    return text


#: (rtol, atol) by dtype
_OLD_TOLERANCES = {dtypes.float16: (1e-3, 1e-3), dtypes.float32: (1e-4, 1e-5), dtypes.float64: (1e-5, 1e-8)}


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = ""
) -> None:
    """Do `assert_close` under its old name: dtypes may differ, nan equals nan, and tolerances are wider."""
    if rtol is None and atol is None:
        pairs = [_OLD_TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (OPS["as_tensor"].call(actual), OPS["as_tensor"].call(expected))]
        rtol, atol = (max(values) for values in zip(*pairs, strict=True))
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def make_tensor(
    *shape: Any, dtype: dtypes.dtype, device: Any = "cpu", low: float | None = None, high: float | None = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Return a tensor of random values in [low, high): by default [−9, 9), integers to 9 too, both values for bool.

    What lies outside the dtype's range is cut off. Errors: ValueError for an empty interval, one outside the dtype's range, a
    gradient of integers, and ``noncontiguous`` with a ``memory_format``.

    >>> torch.testing.make_tensor((2, 3), dtype=torch.float32, device="cpu", low=0, high=1).shape
    torch.Size([2, 3])
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {memory_format=}")
    if requires_grad and dtype.category < 2:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    noncontiguous = noncontiguous and math.prod(sizes) > 1
    if noncontiguous:
        sizes = (*sizes[:-1], 2 * sizes[-1])
    first, last = _interval(dtype, low, high)
    if dtype.category < 2:
        t = OPS["randint"].call(math.ceil(first), math.ceil(last), sizes, dtype=dtype)
    elif dtype.is_complex:
        parts = OPS["rand"].call((*sizes, 2), dtype=dtype.to_real()) * (last - first) + first
        t = OPS["view_as_complex"].call(parts).clone()  # (no view, so that its own views tell of it)
    else:
        t = OPS["rand"].call(sizes, dtype=dtype) * (last - first) + first
    if noncontiguous:
        t = t[..., 1::2]
    elif memory_format is not None:
        t = t.clone(memory_format=memory_format)
    if exclude_zero:
        t = t.masked_fill_(t == 0, 1 if dtype.category < 2 else dtypes.finfo(dtype.to_real()).tiny)
    return t.requires_grad_(requires_grad)


def _interval(dtype: dtypes.dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the bounds of `make_tensor` within the dtype's range."""
    least: float
    beyond: float
    if dtype is dtypes.bool_:
        least, beyond, low, high = 0, 2, 0 if low is None else low, 2 if high is None else high
    elif dtype.category == 1:
        info = dtypes.iinfo(dtype)
        least, beyond = info.min, info.max + (dtype is not dtypes.int64)  # (the greatest int64 is never drawn)
        low, high = -9 if low is None else low, 10 if high is None else high
    else:
        limits = dtypes.finfo(dtype.to_real())
        least, beyond, low, high = limits.min, limits.max, -9 if low is None else low, 9 if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low > high or (low == high and dtype.category < 2):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low >= beyond:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports [{least}, {beyond})")
    return min(max(low, least), beyond), min(max(high, least), beyond)
