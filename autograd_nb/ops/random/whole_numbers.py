"""Random integers: uniform between bounds, in a random order, or filled in place."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ... import dtypes, launch
from ...codegen.templates import draws
from ...dtypes import dtype
from ...errors import warn_user
from ...graph.node import tensor_lines
from ...launch import Kernel
from ...shapes import as_int, as_shape, check_sizes
from ..core.call_path import shortcut, written_lines
from ..core.memo import Memo
from ..core.recording import made_in, not_for_barebone, store_new
from ..core.registry import public
from ..core.structured import tensor_argument
from ..creation.cast import cast, placed
from ..creation.create import _finish, new_empty
from .draws import _DRAWING, _DRAWING_NAMES, DRAWN_LINES, Law, _fill, _keep_drawing, _laid_as, _new
from .generator import stream


def _narrow_int(w, low, width):
    """Return low + ⌊w · width / 2^32⌋; the bias is below width / 2^32."""
    return low + ((w.cast("uint64") * width.cast("uint64")) >> 32).cast("int64")


def _middle_int(w, low, width):
    """Return low + ⌊w · width / 2^64⌋ for width < 2^32."""
    r = width.cast("uint64")
    return low + (((w >> 32) * r + (((w & 0xFFFFFFFF) * r) >> 32)) >> 32).cast("int64")


_INT_NARROW = Law("randint", draws.bits, _narrow_int)
_INT_MIDDLE = Law("randint", draws.wide_bits, _middle_int)
_INT_WIDE = Law("randint", draws.wide_bits, lambda w, low, width: low + (w % width.cast("uint64")).cast("int64"))
_INT_ALL = Law("randint", draws.wide_bits, lambda w: w.cast("int64"))


def _ints(low: int, width: int) -> tuple[Any, ...]:
    """Return (the law, \\*its operands) of integers on [low, low + width)."""
    if width >= 1 << 64:
        return (_INT_ALL,)
    if width >= 1 << 32:
        return _INT_WIDE, low, width if width < 1 << 63 else width - (1 << 64)
    return (_INT_MIDDLE if width > 1 << 16 else _INT_NARROW), low, width


#: the whole numbers up to which floats hold all of them
_WHOLE = {"bfloat16": 1 << 8, "float16": 1 << 11, "float32": 1 << 24, "float64": 1 << 53}


@cache
def _limits(d: dtype) -> tuple[int, int]:
    if d.category == 0:
        return 0, 1
    if d.category == 1:
        info = dtypes.iinfo(d)
        return info.min, info.max
    most = 65504 if d is dtypes.float16 else 1 << 63
    return -most, most


def _int_range(low: Any, high: Any, d: dtype) -> tuple[int, int]:
    low, high = as_int(low, "low"), as_int(high, "high")
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    least, most = _limits(d)
    if not least <= low <= most:
        raise RuntimeError(f"from is out of bounds for {d.name} (from={low})")
    if not least <= high - 1 <= most:
        raise RuntimeError(f"to - 1 is out of bounds for {d.name} (to={high})")
    whole = _WHOLE.get(d.name)
    if whole is not None:
        for name, value in (("from", low), ("to - 1", high - 1)):
            if not -whole <= value <= whole:
                _tell_of_gaps(name, d, whole)
    return low, high


def _tell_of_gaps(name: str, d: dtype, whole: int) -> None:
    """Warn of a bound beyond the whole numbers that a floating dtype has all of."""
    power = whole.bit_length() - 1
    warn_user(
        f"{name} is out of bounds [-(2^{power}), 2^{power}]. Due to precision limitations {d.name} can support discrete uniform distribution only "
        "within this range: not all integers between the bounds are drawn (use a wider dtype).",
    )  # fmt: skip


_integers = Memo()


def _drawing_ints(slow: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of `randint`: small tensors of bounds and sizes that were seen are drawn straight away."""

    def miss(key: Any, args: tuple[Any, ...], dtype: Any, generator: Any, requires_grad: bool) -> Any:
        t = slow(*args, dtype=dtype, generator=generator, requires_grad=requires_grad)
        if key is not None:
            low, high = (0, args[0]) if len(args) == 2 else args[:2]
            _keep_drawing(_integers, (key, dtype), t._layout, *_ints(low, high - low))
        return t

    return shortcut(
        "*args, dtype=None, generator=None, requires_grad=False, **options", "key, dtype", _DRAWING,
        ["return _miss(key, args, dtype, generator, requires_grad)"], memo=_integers,
        first=["if options:", "    return _slow(*args, dtype=dtype, generator=generator, requires_grad=requires_grad, **options)"],
        before=written_lines("args"), function=slow, _miss=miss, _slow=slow, **_DRAWING_NAMES,
    )  # fmt: skip


@public(method=False)
@_drawing_ints
@placed
def randint(*args, low=None, high=None, size=None, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False,
            pin_memory=False):  # fmt: skip
    """Return integers uniform on [low, high): ``randint(high, size)`` or ``randint(low, high, size)``; int64 unless ``dtype``.

    Errors: RuntimeError for low >= high, and for bounds that the dtype does not hold.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.randint.html

    >>> torch.randint(3, 4, (2,))
    tensor([3, 3])
    """
    rest = list(args)
    if size is None:
        if not rest or not isinstance(rest[-1], (tuple, list)):
            raise TypeError("randint() missing a required argument: 'size' (a tuple of ints), as in randint(0, 10, (3,))")
        size = rest.pop()
    if high is None:
        if not rest:
            raise TypeError("randint() missing a required argument: 'high'")
        high = rest.pop()
    if rest:
        low = rest.pop()
    if rest:
        raise TypeError(f"randint() takes low, high and size, but {len(args)} positional arguments were given")
    d = made_in(out, dtype) or dtypes.int64
    low, high = _int_range(0 if low is None else low, high, d)
    shape = as_shape((size,))
    check_sizes(shape)
    law, *operands = _ints(low, high - low)
    return _new(shape, d, law, generator, out, requires_grad, "randint", *operands)


@public(method=False)
@placed
def randint_like(
    input, *args, low=None, high=None, generator=None, dtype=None, layout=None, device=None, requires_grad=False,
    memory_format=None, pin_memory=False,
):  # fmt: skip
    """Return `randint` with the shape, dtype and order of dims of another tensor: ``randint_like(x, high)`` or ``randint_like(x, low, high)``."""
    x = tensor_argument(input, "randint_like")
    y = randint(*args, low=low, high=high, size=tuple(x.shape), generator=generator, dtype=dtype or x.dtype, device=device)
    return _laid_as(x, y, memory_format, requires_grad)


_shuffle = Kernel("random", "shuffle")
_WORDS = dtypes.int64
_orders = Memo()


def _drawing_order(slow: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of `randperm`: small numbers of integers that were seen are shuffled straight away."""

    def miss(n: Any, dtype: Any, generator: Any, requires_grad: Any) -> Any:
        t = slow(n, dtype=dtype, generator=generator, requires_grad=requires_grad)
        if t._layout.dtype is _WORDS:
            _keep_drawing(_orders, (n, n.__class__, dtype), t._layout, _INT_ALL)
        return t

    return shortcut(
        "n, *, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False", "n, n.__class__, dtype",
        [
            "layout, entry, operands = plan",
            *DRAWN_LINES,
            "words, data = _empty(n, _words), _empty(n, _words)",
            "entry(seed, served, 0, words)",
            "_shuffle(0, words, data)",
            *tensor_lines("layout"),
            "return _finish(t, requires_grad) if requires_grad or _modes.inference_used else t",
        ],
        ["return _miss(n, dtype, generator, requires_grad)"], memo=_orders,
        first=[
            "if out is not None or layout is not None or device is not None or pin_memory:",
            "    return _slow(n, generator=generator, out=out, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad,",
            "        pin_memory=pin_memory)",
        ],
        function=slow, _miss=miss, _slow=slow, _shuffle=_shuffle, _words=_WORDS.np, **_DRAWING_NAMES,
    )  # fmt: skip


@public(method=False, differentiable=False)
@_drawing_order
@placed
def randperm(n, *, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Return a random order of the integers 0 … n-1; int64 unless ``dtype``."""
    n = as_int(n, "n")
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}] (randperm needs n >= 0)")
    d = made_in(out, dtype) or dtypes.int64
    not_for_barebone("randperm", d)
    most = 1 << 63 if d is dtypes.bfloat16 else _WHOLE.get(d.name) or _limits(d)[1]
    if n > most + 1:
        raise RuntimeError(f"n is too large for result tensor type: n={n} for {d!r}")
    words = launch.empty(n, _WORDS.np)
    _INT_ALL(stream(generator), words, _WORDS)
    t = new_empty((n,), _WORDS)
    _shuffle(0, words, t._data)
    t = cast(t, d)
    if out is not None:
        return store_new(out, t, "randperm", requires_grad)
    return _finish(t, requires_grad)


@public(kind="inplace", namespaces=())
def random_(self, *bounds: int | None, generator=None, **kw):
    """Fill with integers: uniform on [from, to), on [0, to), or up to the largest that the dtype holds exactly, from 0 or ``from`` on.

    ``random_()``, ``random_(to)`` or ``random_(from, to)``, where None for ``to`` stands for that largest one. Derivative: 0, as what was there is overwritten.

    >>> torch.empty(2).random_(3, 4)
    tensor([3., 3.])
    """
    d = tensor_argument(self, "random_", "self").dtype
    not_for_barebone("random_kernel_cpu", d)
    low, high = _random_bounds(bounds, kw)
    low, high = _up_from(low, d) if high is None else _int_range(low, high, d)
    law, *operands = _ints(low, high - low)
    return _fill("random_", self, law, generator, *operands)


def _random_bounds(bounds: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
    """Return the first number and the one behind the last, None where the dtype sets it; TypeError for other arguments than `random_` has."""
    names = ("to",) if len(bounds) == 1 and not named else ("from", "to")
    given = {**named, **dict(zip(names, bounds, strict=False))}
    known = set(given) in ({"from", "to"}, {"to"}, set()) and len(given) == len(bounds) + len(named)
    if not known or any(v is None for name, v in given.items() if name == "from" or len(given) == 1):
        raise TypeError(
            f"random_() received an invalid combination of arguments - got {(*bounds, *named.items())}, expected (from, to) or (to)"
        )
    return given.get("from", 0), given.get("to")


def _up_from(low: Any, d: dtype) -> tuple[int, int]:
    """Return ``low`` and what follows the largest number up to which the dtype holds all."""
    low = as_int(low, "from")
    top = _WHOLE.get(d.name) or _limits(d)[1]
    if low == -1 << 63 and d.name in ("int64", "float32", "float64"):
        return low, 1 << 63
    if low == -1 << 63 and d.name in ("bool", "float16"):
        raise NotImplementedError(f"\"random_full_64_bits_range_kernel_cpu\" not implemented for '{d.name}' (random_(from={low}, None))")
    if not _limits(d)[0] <= low <= _limits(d)[1]:
        raise RuntimeError(f"from is out of bounds for {d.name} (random_(from={low}, None))")
    if low > top:
        raise RuntimeError(
            f"random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got from={low} > to_inc={top}"
        )
    return low, top + 1
