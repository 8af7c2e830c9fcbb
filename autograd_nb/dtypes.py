"""Data types and PyTorch's rules of type promotion.

Source: https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

NumpyDtype: TypeAlias = np.dtype[Any]


#: what carries the bits of numbers of half precision, and of two of them, into kernels
_BITS = {"float16": "uint16", "bfloat16": "uint16", "complex32": "uint32"}


class dtype:
    """The element type of a tensor, e.g. ``autograd_nb.float32``.

    Attributes: ``name`` ("float32"), ``itemsize`` in bytes, ``is_floating_point``, ``is_complex``, ``is_signed``, ``is_half`` (of
    float16 and bfloat16, which are computed in float32), ``is_barebone`` (of uint16, uint32 and uint64, which few ops take, see
    `ops.core.recording`), ``is_limited`` (of these and complex32), ``in_numpy``, and ``np``, the NumPy dtype of its storage (bfloat16 and
    complex32, which NumPy has not, are a record of one field there: nothing can be computed with it by mistake).

    >>> torch.float32.itemsize, torch.int64.is_floating_point
    (4, False)
    """

    aliases: tuple[str, ...]
    carrier: Any  # np.dtype: of that checkers do not know enough to call a class that names it known
    category: int
    in_numpy: bool
    is_barebone: bool
    is_complex: bool
    is_floating_point: bool
    is_half: bool
    is_limited: bool
    is_signed: bool
    itemsize: int
    kernel: str
    name: str
    np: Any  # np.dtype
    rank: int

    __slots__ = (
        "aliases",
        "category",
        "carrier",
        "in_numpy",
        "is_barebone",
        "is_complex",
        "is_floating_point",
        "is_half",
        "is_limited",
        "is_signed",
        "itemsize",
        "kernel",
        "name",
        "np",
        "rank",
    )

    def __init__(self, name: str, category: int, rank: int, *aliases: str):
        self.name = name
        bits = _BITS.get(name)
        self.in_numpy = name not in ("bfloat16", "complex32")
        self.np = np.dtype([(name, bits)] if not self.in_numpy else np.bool_ if name == "bool" else name)
        # Numba has no arrays of half precision on the CPU: kernels read them as integers and convert
        self.is_half = bits == "uint16"
        self.carrier = self.np if bits is None else np.dtype(bits)
        self.category = category  # 0 bool, 1 integer, 2 float, 3 complex
        self.rank = rank
        self.itemsize = self.np.itemsize
        self.is_floating_point = category == 2
        self.is_complex = category == 3
        self.is_signed = name != "bool" and not name.startswith("uint")
        self.is_barebone = name in ("uint16", "uint32", "uint64")
        self.is_limited = self.is_barebone or name == "complex32"
        self.aliases = aliases
        self.kernel = f"{bits or name}[:]"  # how build() spells an array of it

    @property
    def compute(self) -> str:
        """Return the dtype in which kernels compute on it: half precision goes through float32."""
        return "float32" if self.is_half else "complex64" if self.name == "complex32" else self.name

    def to_real(self) -> dtype:
        """Return the dtype of the parts of a complex number; a real one itself."""
        return {"complex32": float16, "complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> dtype:
        """Return the complex dtype whose parts are as precise."""
        return {"float16": complex32, "complex32": complex32, "float64": complex128, "complex128": complex128}.get(self.name, complex64)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_by_name, (self.name,))


DType: TypeAlias = dtype  #: the class, where an attribute has its name

bool_: dtype = dtype("bool", 0, 0, "bool")
uint8: dtype = dtype("uint8", 1, 1)
int8: dtype = dtype("int8", 1, 1)
int16: dtype = dtype("int16", 1, 2, "short")
int32: dtype = dtype("int32", 1, 3, "int")
int64: dtype = dtype("int64", 1, 4, "long")
uint16: dtype = dtype("uint16", 1, 2)
uint32: dtype = dtype("uint32", 1, 3)
uint64: dtype = dtype("uint64", 1, 4)
float16: dtype = dtype("float16", 2, 1, "half")
bfloat16: dtype = dtype("bfloat16", 2, 1)
float32: dtype = dtype("float32", 2, 2, "float")
float64: dtype = dtype("float64", 2, 3, "double")
complex32: dtype = dtype("complex32", 3, 1, "chalf")
complex64: dtype = dtype("complex64", 3, 2, "cfloat")
complex128: dtype = dtype("complex128", 3, 3, "cdouble")


def _without_tensors(name: str, category: int, itemsize: int, signed: bool = True) -> dtype:
    """Return a dtype that is a name: what programs compare with, hand on to autocast, or ask for its properties."""
    d = dtype("float32", category, 0)
    d.name, d.itemsize, d.is_signed, d.kernel = name, itemsize, signed, ""
    return d


#: the dtypes of PyTorch that no tensor has here, by name
ABSENT: dict[str, dtype] = {
    **{name: _without_tensors(name, 2, 1) for name in ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn_x2"]},
    **{f"uint{n}": _without_tensors(f"uint{n}", 1, 1, False) for n in range(1, 8)},
    **{f"int{n}": _without_tensors(f"int{n}", 1, 1) for n in range(1, 8)},
    **{name: _without_tensors(name, 1, 1) for name in ["qint8", "quint8", "quint4x2", "quint2x4", "bits8", "bits1x8", "bits2x4", "bits4x2"]},
    "float8_e8m0fnu": _without_tensors("float8_e8m0fnu", 2, 1, False),
    "qint32": _without_tensors("qint32", 1, 4), "bits16": _without_tensors("bits16", 1, 2),
}  # fmt: skip
ABSENT["bit"] = ABSENT["uint1"]
#: of floats that NumPy does not have: distance from 1 to the next number, largest number, smallest normal one, resolution
_LIMITS = {
    "bfloat16": (2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126, 0.01), "float8_e4m3fn": (0.125, 448.0, 2.0**-6, 1.0),
    "float8_e5m2": (0.25, 57344.0, 2.0**-14, 1.0),
}  # fmt: skip

ALL = (bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex32, complex64, complex128)
BY_NAME: dict[str, dtype] = {d.name: d for d in ALL}
BY_NUMPY: dict[Any, dtype] = {d.np: d for d in ALL if d.in_numpy}
# the same types under NumPy's other spellings (``long long`` beside ``long``)
BY_NUMPY.update({np.dtype(c): BY_NAME[np.dtype(c).name] for c in "bhilqBHILQfdeFD?" if np.dtype(c).name in BY_NAME})

_default = [float32]


def _by_name(name: str) -> dtype:
    return BY_NAME[name] if name in BY_NAME else ABSENT[name]


def get_default_dtype() -> dtype:
    """Return the dtype of floats made from Python numbers; float32 unless `set_default_dtype` changed it."""
    return _default[0]


def set_default_dtype(d: dtype) -> None:
    """Make ``d`` (float16, bfloat16, float32 or float64) the dtype of floats made from Python numbers.

    Errors: TypeError unless ``d`` is a floating dtype.

    >>> torch.set_default_dtype(torch.float64)
    >>> x = torch.ones(1)
    >>> torch.set_default_dtype(torch.float32)
    >>> x.dtype
    torch.float64
    """
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got d={d!r}")
    _default[0] = d
    for call in default_changed:
        call()


default_changed: list[Callable[[], None]] = []  #: what is to be told of another default dtype


def from_numpy_dtype(d: Any) -> dtype:
    """Return the dtype for a NumPy dtype. TypeError where there is none."""
    found = BY_NUMPY.get(np.dtype(d))
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {np.dtype(d)}. The only supported types are: "
            + ", ".join(x.name for x in reversed(ALL) if x.in_numpy)
            + "."
        )
    return found


def as_dtype(value: Any, name: str = "dtype") -> dtype:
    """Return ``value`` as a dtype: one of ours, a NumPy dtype or type, or Python's bool, int, float, complex."""
    if isinstance(value, dtype):
        if not value.kernel:
            instead = "int64 or uint8" if value.category == 1 else "float32, or bfloat16 to save memory"
            raise NotImplementedError(f"{name}={value!r}: there are no {value.name} tensors here; use {instead}")
        return value
    python = {bool: bool_, int: int64, float: float64, complex: complex128}.get(value) if isinstance(value, type) else None
    if python is not None:
        return python
    if isinstance(value, (np.dtype, type)):
        try:
            return from_numpy_dtype(value)
        except TypeError:
            pass
    raise TypeError(f"{name} must be an autograd_nb dtype such as autograd_nb.float32, not {value!r}")


_promotions: dict[tuple[dtype, dtype], dtype] = {}


def promote_types(a: dtype, b: dtype) -> dtype:
    """Return the smallest dtype to which both ``a`` and ``b`` can be cast safely (PyTorch's table)."""
    if a is b and a.__class__ is dtype:
        return a
    known = _promotions.get((a, b))
    if known is None:
        known = _promotions[a, b] = _promote(as_dtype(a, "type1"), as_dtype(b, "type2"))
    return known


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    if a.category != b.category:
        wide, other = (a, b) if a.category > b.category else (b, a)
        if wide.category == 3 and other.category == 2:
            wide = promote_types(wide, other.to_complex())  # of the wider one's width
        if wide.category == 2 or (not other.is_barebone and not wide.is_barebone):
            return wide
    if a.is_barebone or b.is_barebone:
        raise RuntimeError(f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a.name} and {b.name} (convert one)")
    if a.category == 1 and uint8 in (a, b):
        other = b if a is uint8 else a
        return int16 if other is int8 else other
    if a.rank == b.rank:  # float16 and bfloat16: neither holds the other's numbers
        return float32
    return a if a.rank >= b.rank else b


def converted(array: np.ndarray[Any, Any], d: dtype) -> np.ndarray[Any, Any]:
    """Return NumPy's numbers as an array of the NumPy dtype of ``d``; in bfloat16 each is the nearest float32's nearest, ties to even."""
    if d.in_numpy:
        return array.astype(d.np)
    if d is complex32:
        parts = np.ascontiguousarray(array.astype(np.complex64)).view(np.float32).astype(np.float16)
        return parts.view(d.np).reshape(array.shape)
    numbers = array.astype(np.float32)
    bits = numbers.view(np.uint32)
    nearest = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return np.where(np.isnan(numbers), np.uint32(0x7FC0), nearest).astype(np.uint16).view(d.np)


def of_scalar(kind: type) -> dtype:
    """Return the dtype that a Python number of type ``kind`` has when it stands alone."""
    if kind is bool:
        return bool_
    if kind is int:
        return int64
    return get_default_dtype() if kind is float else get_default_dtype().to_complex()


def result_of(operands: list[tuple[dtype, int]]) -> dtype:
    """Return the dtype of an op on operands given as (dtype, priority): 2 a tensor with dims, 1 a 0-d tensor, 0 a number.

    A lower priority takes part only by its category: ``int tensor + 2.5`` is the default float, but
    ``float32 tensor + float64 0-d tensor`` stays float32.
    """
    best: dict[int, dtype] = {}
    for d, priority in operands:
        best[priority] = promote_types(best[priority], d) if priority in best else d
    result: dtype | None = None
    for priority in (2, 1, 0):
        if priority not in best:
            continue
        d = best[priority]
        if result is None or (d.category == 3 and result.is_barebone):
            result = d
        elif d.category == 3 and result.category == 2:
            result = result.to_complex()  # of the wider float's width
        elif d.category > result.category:
            # a plain number brings the default dtype of its category, a 0-d tensor its own
            result = promote_types(result, d)
    assert result is not None
    return result


class finfo:
    """Machine limits of a floating dtype: bits, eps, max, min, tiny, smallest_normal, resolution, dtype.

    >>> torch.finfo(torch.float32).eps
    1.1920928955078125e-07
    """

    bits: int
    dtype: str
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float

    def __init__(self, d: DType | None = None):
        limits = _LIMITS.get(d.name) if isinstance(d, dtype) else None
        if d is not None and limits is not None:
            self.bits, self.dtype, (self.eps, self.max, self.tiny, self.resolution) = 8 * d.itemsize, d.name, limits
            self.min, self.smallest_normal = -self.max, self.tiny
            return
        d = get_default_dtype() if d is None else as_dtype(d, "type")
        if not (d.is_floating_point or d.is_complex):
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{d!r}'")
        info = np.finfo(d.to_real().np)
        self.bits, self.dtype = info.bits, d.to_real().name
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.resolution = float(str(info.resolution))  # (as the dtype's own numbers are written)

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join([f'{n}={getattr(self, n):g}' for n in names])}, dtype={self.dtype})"


class iinfo:
    """Machine limits of an integer dtype: bits, max, min, dtype.

    >>> torch.iinfo(torch.int8).max
    127
    """

    bits: int
    dtype: str
    max: int
    min: int

    def __init__(self, d: DType):
        d = as_dtype(d, "type")
        if d.category != 1:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{d!r}'")
        info = np.iinfo(d.name)
        self.bits, self.dtype, self.max, self.min = info.bits, d.name, int(info.max), int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
