"""Tensors of random numbers, new or filled in place.

A number depends only on the generator's seed, on how many calls it has served, and on the element's index: streams are the
same for any number of threads, and differ from PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes, launch, strides
from ...codegen import threads
from ...codegen.formula.namespace import m
from ...codegen.templates import draws
from ...codegen.templates.loops import Input
from ...dtypes import as_dtype, dtype
from ...errors import refuse_keywords
from ...graph import modes
from ...graph.modes import state
from ...graph.node import tensor_lines
from ...overriding import whole
from ...shapes import Layout, as_shape, check_sizes, is_expanded
from ...tensor import Tensor, make
from ..core.call_path import planned, shortcut, written_lines
from ..core.history import check_inplace
from ..core.marked import MARKED
from ..core.memo import Memo, ordinary
from ..core.numbers import float_argument
from ..core.recording import made_in, not_for_limited, store_new, tensor_type
from ..core.registry import OPS, public
from ..core.structured import tensor_argument
from ..creation.cast import format_name, is_meta, strided_only
from ..creation.create import _finish, new_empty, on_meta
from .generator import default_generator, stream

_dtype = dtype


# ------------------------------------------------------------------------------------------------------- filling


class Law:
    """The way in which the elements of a tensor are drawn: the kind of draw, and the formula that finishes it.

    ``finish(draw, *operands)``; operands are arrays of the output's size or numbers. ``compute``: dtype of the draws,
    None for the output's own.
    """

    name: str
    draw: Callable[..., Any]
    finish: Callable[..., Any]
    compute: str | None

    def __init__(self, name: str, draw: Callable[..., Any], finish: Callable[..., Any], compute: str | None = None):
        self.name, self.draw, self.finish, self.compute = name, draw, finish, compute
        self.texts: dict[tuple[Any, ...], str] = {}

    def __call__(self, key: tuple[int, int], out: np.ndarray, d: dtype, *operands: Any) -> None:
        """Fill the flat array ``out`` of dtype ``d``; operands are (flat array, dtype), ints or floats."""
        if not operands:
            entry = _entry_of(self, (d,))
            seed, call = key
            if entry.__class__ is _Drawn and threads.alone(out.size * DRAW):
                entry = entry.entry
            entry(seed, call, 0, out)
            return
        kinds = (d, *[a[1] if type(a) is tuple else type(a) for a in operands])
        _entry_of(self, kinds)(*key, 0, *[a[0] if type(a) is tuple else a for a in operands], out)

    def compiled(self, kinds: tuple[Any, ...]) -> Callable[..., Any]:
        """Return the kernel for a dtype of the output and the kinds of the operands."""
        d, *rest = kinds
        inputs = [
            Input({int: "int64", float: "float64"}[k], scalar=True) if isinstance(k, type) else Input(k.name) for k in rest
        ]
        source = self.texts.get(kinds)
        if source is None:
            compute = self.compute or (d.compute if d.category == 2 else "float32")
            source = self.texts[kinds] = draws.random_map(self.draw, self.finish, inputs, compute, d.name)
        types = [s.dtype if s.scalar else k.kernel for s, k in zip(inputs, rest, strict=True)]
        return launch.entry(source, "kernel", ("int64", "int64", "int64", *types, d.kernel), self.name, split=_Drawn)


@planned
def _entry_of(law: Law, kinds: tuple[Any, ...]) -> Any:
    return law.compiled(kinds)


class _Drawn(threads.Split):
    """Draws are counted, so any piece of a stream can be made by itself."""

    __slots__ = ()

    def __call__(self, *args: Any) -> None:
        if threads.alone(args[-1].size * DRAW):
            self.entry(*args)
        else:
            threads.Split.__call__(self, *args)

    def parts(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        seed, call, skipped, *rest = args
        size = rest[-1].size
        if size * DRAW < threads.WORTH:
            return [args]
        return [
            (seed, call, skipped + begin, *[a[begin:end] if isinstance(a, np.ndarray) else a for a in rest])
            for begin, end in threads.pieces(size, size * DRAW, threads.ALIGN)
        ]


DRAW = 16  #: what a random number costs, see `threads.WORTH`


def _below(v: Any, low: Any, high: Any) -> Any:
    return m.where(v < high, v, low)  # rounding may reach the upper end, which is excluded


_UNIT = Law("rand", draws.uniform, lambda u: u)
_UNIFORM = Law("uniform_", draws.uniform, lambda u, low, high: _below(u * (high - low) + low, low, high))
_STANDARD = Law("randn", draws.normal, lambda z: z)
_NORMAL = Law("normal_", draws.normal, lambda z, mean, std: z * std + mean)
_EXPONENTIAL = Law("exponential_", draws.positive, lambda u, rate: -m.log(u) / rate)
_LOG_NORMAL = Law("log_normal_", draws.normal, lambda z, mean, std: m.exp(z * std + mean))
_CAUCHY = Law("cauchy_", draws.ratio, lambda c, median, sigma: c * sigma + median)
_GEOMETRIC = Law("geometric_", draws.positive, lambda u, log_q: m.where(u < 1.0, m.ceil(m.log(u) / log_q), 1.0))
_BERNOULLI = Law("bernoulli_", draws.uniform, lambda u, p: m.where(u < p, u * 0.0 + 1.0, u * 0.0), "float64")
_BERNOULLI_32 = Law("bernoulli", draws.uniform, lambda u, p: m.where(u < p, u * 0.0 + 1.0, u * 0.0))


def _sized(name: str, args: tuple[Any, ...], size: Any) -> tuple[int, ...]:
    if size is not None:
        if args:
            raise TypeError(f"{name}() got multiple values for argument 'size'")
        args = (size,)
    shape = as_shape(args, op=name)
    check_sizes(shape)
    return shape


def _float_dtype(value: Any, kernel: str) -> dtype:
    if value is None:
        return dtypes.get_default_dtype()
    d = dtypes.get_default_dtype() if value is None else as_dtype(value)
    if not d.is_floating_point and not d.is_complex:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{_kind(d)}' (dtype={d!r}; use a floating dtype)")
    return d


def _kind(d: dtype) -> str:
    return {"bool": "Bool"}.get(d.name, tensor_type(d).removesuffix("Tensor"))


def _draw_parts(t: Tensor, law: Callable[..., Any], generator: Any, operands: tuple[Any, ...]) -> None:
    """Fill complex memory with both parts drawn by themselves; a normal number of variance v has parts of variance v/2."""
    part = t.dtype.to_real()
    if law is _STANDARD or law is _NORMAL:
        law, operands = _NORMAL, (0.0, (operands[1] if operands else 1.0) * math.sqrt(0.5))
    law(stream(generator), t._data.view(part.carrier), part, *operands)


def _new(
    shape: Sequence[int], d: dtype, law: Callable[..., Any], generator: Any, out: Any, requires_grad: bool, name: str, *operands: Any
) -> Tensor:
    t = new_empty(shape, d)
    if d.is_complex:
        _draw_parts(t, law, generator, operands)
    else:
        law(stream(generator), t._data, d, *operands)
    if out is not None:
        return store_new(out, t, name, requires_grad)
    return _finish(t, requires_grad)


def _drawing(law: Law, kernel: str, doc: str) -> Callable[..., Tensor]:
    """Return the public function that makes tensors of a law without operands; ``kernel``: what PyTorch calls it in errors."""
    name, memo = law.name, Memo()

    def miss(key, size, generator, out, dtype, requires_grad, kw):
        shape = _sized(name, size, _only_size(name, kw) if kw else None)
        d = _float_dtype(made_in(out, dtype), kernel)
        t = _new(shape, d, law, generator, out, requires_grad, name)
        if key is not None:
            _keep_drawing(memo, (key, dtype), t._layout, law)
        return t

    call = shortcut(
        "*size, generator=None, names=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, **kw",
        "key, dtype", _DRAWING, ["return _miss(key, size, generator, None, dtype, requires_grad, kw)"], memo=memo,
        first=[
            "if layout is not None:",
            "    _strided_only(layout)",
            "if device is not None and _is_meta(device):",
            "    return _on_meta(_miss(None, size, generator, None, dtype, requires_grad, kw))",
            "if out is not None or kw:",
            "    return _miss(None, size, generator, out, dtype, requires_grad, kw)",
        ],
        before=written_lines("size"),
        _miss=miss, _is_meta=is_meta, _on_meta=on_meta, _strided_only=strided_only, **_DRAWING_NAMES,
    )  # fmt: skip
    call.__name__ = call.__qualname__ = name
    call.__doc__, call.__module__ = doc, __name__
    return public(method=False, name=name)(call)


_DRAWING_NAMES: dict[str, Any] = {"_default_generator": default_generator, "_stream": stream, "_modes": modes, "_finish": _finish}
#: a small tensor drawn, by its layout and the entry point of the law
DRAWN_LINES = ["seed, served = _default_generator._next() if generator is None else _stream(generator)"]  #: the key of a call's draws
_DRAWING = [
    "layout, entry, operands = plan",
    *DRAWN_LINES,
    "data = _empty(layout.size, layout.dtype.carrier)",
    "entry(seed, served, 0, *operands, data)",
    *tensor_lines("layout"),
    "return _finish(t, requires_grad) if requires_grad or _modes.inference_used else t",
]


def _keep_drawing(memo: Memo, key: tuple[Any, ...], layout: Layout, law: Law, *operands: Any) -> None:
    """Remember how memory of a layout is drawn, if it is small enough for one thread and memory of its own."""
    d = layout.dtype
    if ordinary(layout) and not d.is_complex and layout.size * max(d.itemsize, DRAW) < min(launch.BIG, threads.WORTH):
        entry = _entry_of(law, (d, *map(type, operands)))
        memo.remember(key, (layout, entry.entry if entry.__class__ is _Drawn else entry, operands))


rand: Callable[..., Any] = _drawing(
    _UNIT, "check_uniform_bounds",
    """Return a tensor of ``size`` filled with numbers uniform on [0, 1).

    Example:
        >>> torch.rand(2, 3).shape
        torch.Size([2, 3])

    Source: https://docs.pytorch.org/docs/stable/generated/torch.rand.html
    """,
)  # fmt: skip
randn: Callable[..., Any] = _drawing(
    _STANDARD, "normal_kernel_cpu",
    """Return a tensor of ``size`` filled with standard normal numbers; randn(2, 3).shape = torch.Size([2, 3]).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.randn.html
    """,
)  # fmt: skip


def _only_size(name: str, kw: dict[Any, Any]) -> Any:
    refuse_keywords(name, kw, ("size", "generator", "names", "out", "dtype", "layout", "device", "requires_grad", "pin_memory"))
    return kw.get("size")


def _laid_as(x: Tensor, draws: Tensor, memory_format: Any, requires_grad: bool) -> Tensor:
    """Return fresh draws in the order of dims of another tensor."""
    layout = strides.formatted(x._layout, format_name(memory_format), draws._layout.dtype)
    if layout is not draws._layout and draws.__class__ is Tensor:
        draws = make(draws._data, layout, draws._version_)
    return _finish(draws, requires_grad)


def _drawing_like(law: Law) -> Callable[..., Any]:
    """Decorator of a function that draws as another tensor lies: small ones whose like was seen are drawn straight away."""

    def decorate(slow: Callable[..., Any]) -> Callable[..., Any]:
        memo = Memo()

        def miss(input, generator, dtype, requires_grad):
            t = slow(input, generator=generator, dtype=dtype, requires_grad=requires_grad)
            if ordinary(input._layout):
                _keep_drawing(memo, (input._layout, dtype), t._layout, law)
            return t

        return shortcut(
            "input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False",
            "input._layout, dtype", _DRAWING, ["return _miss(input, generator, dtype, requires_grad)"], memo=memo,
            first=[
                "if layout is not None or device is not None or memory_format is not None:",
                "    return _slow(input, generator=generator, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad,",
                "        memory_format=memory_format)",
            ],
            function=slow, _miss=miss, _slow=slow, **_DRAWING_NAMES,
        )  # fmt: skip

    return decorate


@public(method=False)
@_drawing_like(_UNIT)
def rand_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """Return `rand` with the shape, dtype and order of dims of another tensor."""
    if layout is not None:
        strided_only(layout)
    return _drawn_like("rand_like", rand, input, generator, dtype, device, requires_grad, memory_format)


@public(method=False)
@_drawing_like(_STANDARD)
def randn_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """Return `randn` with the shape, dtype and order of dims of another tensor."""
    if layout is not None:
        strided_only(layout)
    return _drawn_like("randn_like", randn, input, generator, dtype, device, requires_grad, memory_format)


def _drawn_like(
    name: str, draw: Callable[..., Any], input: Any, generator: Any, dtype: Any, device: Any, requires_grad: Any, memory_format: Any
) -> Tensor:
    x = tensor_argument(input, name)
    if device is not None and is_meta(device):
        return on_meta(draw(x._layout.shape, dtype=dtype or x._layout.dtype, requires_grad=requires_grad))
    y = draw(x._layout.shape, dtype=dtype or x._layout.dtype, generator=generator)
    return _laid_as(x, y, memory_format, requires_grad)


# ------------------------------------------------------------------------------------------------------ in place


@whole
def _fill(name: str, target: Any, law: Callable[..., Any], generator: Any, *operands: Any) -> Tensor:
    """Overwrite ``target`` with draws; the gradient of what it held is 0."""
    x = tensor_argument(target, name, "self")
    check_inplace(x)
    layout = x._layout
    if is_expanded(layout):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    key = stream(generator)
    recorded = x._rg and state.grad
    if recorded:
        OPS["zero_"].call(x)
    if layout.contiguous and x.__class__ not in MARKED:
        law(key, x._data[: layout.size], layout.dtype, *operands)
    else:
        t = new_empty(layout.shape, layout.dtype)
        law(key, t._data, layout.dtype, *operands)
        if x.__class__ in MARKED:
            x.detach().copy_(t)
            return x
        make(x._data, layout, [0, 0]).copy_(t)
    if not recorded:
        x._version_[0] += 1
    return x


def _floats(name: str, x: Any, kernel: str) -> None:
    if not tensor_argument(x, name, "self").dtype.is_floating_point:
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{_kind(x.dtype)}' ({name}() needs a floating tensor, got {x.dtype!r})"
        )


def _number(name: str, argument: str, value: Any) -> float:
    return float_argument(value, name, argument)


def _found(x: float) -> str:
    return f"{x:g}"


#: a small tensor filled by two numbers; what has a history goes the long way
_FILLING = [
    "layout, entry, operands = plan",
    "version, data = self._version_, self._data",
    "if version[0] < 0 or (_state.grad and (self._rg or (self._view is not None and self._view._rg))):",
    "    return _slow(self, {a}, {b}, generator=generator)",
    "if data.size != layout.size:",
    "    data = data[:layout.size]",
    *DRAWN_LINES,
    "version[0] += 1",
    "entry(seed, served, 0, *operands, data)",
    "return self",
]
_PLAIN = frozenset((int, float))


def _filling(a: str, b: str, law_of: Callable[[Any, Any], tuple[Any, ...]]) -> Callable[..., Any]:
    """Decorator of a function that fills a tensor by two numbers ``a`` and ``b``, given as "name=default": small ones whose like was seen are
    filled straight away. law_of(a, b): the law and its operands."""

    def decorate(slow: Callable[..., Any]) -> Callable[..., Any]:
        memo = Memo()

        def miss(x, a, b, generator):
            slow(x, a, b, generator=generator)
            if x._layout.contiguous and x.__class__ not in MARKED and _PLAIN.issuperset((a.__class__, b.__class__)):
                _keep_drawing(memo, (x._layout, a, b), x._layout, *law_of(float(a), float(b)))
            return x

        names = {"a": a.split("=")[0], "b": b.split("=")[0]}
        given = "{a}, {b}".format(**names)
        return shortcut(
            f"self, {a}, {b}, *, generator=None, **others", f"self._layout, {given}", [line.format(**names) for line in _FILLING],
            [f"return _miss(self, {given}, generator)"], memo=memo,
            first=["if others:", f"    return _slow(self, {given}, generator=generator, **others)"],
            function=slow, _miss=miss, _slow=slow, _default_generator=default_generator, _stream=stream,
        )  # fmt: skip

    return decorate


def _uniform(low: float, high: float) -> tuple[Any, ...]:
    return (_UNIT,) if low == 0 and high == 1 else (_UNIFORM, low, high)


def _normal(mean: float, std: float) -> tuple[Any, ...]:
    return (_STANDARD,) if mean == 0 and std == 1 else (_NORMAL, mean, std)


@public(kind="inplace", namespaces=())
@_filling("from_=0", "to=1", _uniform)
def uniform_(self, from_: float = 0, to: float = 1, *, generator=None, **kw):
    """Fill with numbers uniform on [from, to). Derivative: 0, as what was there is overwritten.

    >>> torch.empty(2).uniform_(1.0, 1.0)
    tensor([1., 1.])
    """
    if kw:
        refuse_keywords("uniform_", kw, ("from", "to", "generator"))
    low, high = _number("uniform_", "from", kw.get("from", from_)), _number("uniform_", "to", to)
    if tensor_argument(self, "uniform_", "self").dtype.is_complex:
        shown = new_empty(self.shape, self.dtype) if self.__class__ in MARKED else self
        OPS["view_as_real"].call(shown).uniform_(low, high, generator=generator)
        return self if shown is self else self.copy_(shown)
    _floats("uniform_", self, "check_uniform_bounds")
    if not low <= high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={_found(low)} > to={_found(high)}")
    limit = dtypes.finfo(self.dtype).max
    if not (abs(low) <= limit and abs(high) <= limit and high - low <= limit):
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{self.dtype.name}>::max(), but found to={high} and from={low}"
        )
    law, *operands = _uniform(low, high)
    return _fill("uniform_", self, law, generator, *operands)


def _check_std(std: float) -> float:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {_found(std)}")
    return std


@public(kind="inplace", namespaces=())
@_filling("mean=0", "std=1", _normal)
def normal_(self, mean=0, std=1, *, generator=None):
    """Fill with normal numbers of the given mean and standard deviation. RuntimeError for std < 0.

    >>> torch.empty(2).normal_(std=0.0)
    tensor([0., 0.])
    """
    mean, std = _number("normal_", "mean", mean), _check_std(_number("normal_", "std", std))
    if tensor_argument(self, "normal_", "self").dtype.is_complex:
        return self.copy_(randn(self.shape, generator=generator, dtype=self.dtype) * std + mean)
    _floats("normal_", self, "normal_kernel_cpu")
    law, *operands = _normal(mean, std)
    return _fill("normal_", self, law, generator, *operands)


@public(kind="inplace", namespaces=())
def log_normal_(self, mean=1, std=2, *, generator=None):
    """Fill with exp(z) of normal z with the given mean and standard deviation. Derivative: 0, as what was there is overwritten.

    >>> torch.empty(2).log_normal_().shape
    torch.Size([2])
    """
    mean, std = _number("log_normal_", "mean", mean), _number("log_normal_", "std", std)
    _floats("log_normal_", self, "log_normal_cpu")
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={_found(std)}")
    return _fill("log_normal_", self, _LOG_NORMAL, generator, mean, std)


@public(kind="inplace", namespaces=())
def exponential_(self, lambd=1, *, generator=None):
    """Fill with exponentially distributed numbers of rate ``lambd``. Derivative: 0, as what was there is overwritten."""
    rate = _number("exponential_", "lambd", lambd)
    _floats("exponential_", self, "exponential_cpu")
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={_found(rate)}")
    return _fill("exponential_", self, _EXPONENTIAL, generator, rate)


@public(kind="inplace", namespaces=())
def cauchy_(self, median=0, sigma=1, *, generator=None):
    """Fill with numbers of the Cauchy distribution. Derivative: 0, as what was there is overwritten.

    >>> torch.empty(2).cauchy_().shape
    torch.Size([2])
    """
    median, sigma = _number("cauchy_", "median", median), _number("cauchy_", "sigma", sigma)
    _floats("cauchy_", self, "cauchy_cpu")
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={_found(sigma)}")
    return _fill("cauchy_", self, _CAUCHY, generator, median, sigma)


@public(kind="inplace", namespaces=())
def geometric_(self, p, *, generator=None):
    """Fill with the number of trials up to the first success of probability ``p``: 1, 2, … Derivative: 0, as what was there is overwritten."""
    p = _number("geometric_", "p", p)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={_found(p)}")
    if tensor_argument(self, "geometric_", "self").dtype.category == 0:
        raise NotImplementedError("\"geometric_cpu\" not implemented for 'Bool' (geometric_() needs numbers)")
    not_for_limited("geometric_cpu", self.dtype)
    return _fill("geometric_", self, _GEOMETRIC, generator, math.log1p(-p))
