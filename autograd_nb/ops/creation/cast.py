"""Copies and casts: clone, contiguous, copy_, fill_, to(dtype) and its short names."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ... import dtypes, launch, strides
from ...dtypes import dtype
from ...errors import DeviceError, shorten, warn_user
from ...graph.modes import state
from ...shapes import Layout, is_expanded
from ...tensor import Tensor, make
from ..core.calls import inplace_call, unary_call
from ..core.foreign import asked, foreign_among
from ..core.inplace import counted, is_same_memory
from ..core.marked import MARKED, resolved
from ..core.numbers import SINGLE, number_as, plain_number
from ..core.pointwise import Pointwise
from ..core.registry import numpy_names, parameters_of, public, register
from ..core.structured import structured, tensor_argument


class _Clone(Pointwise):
    """x copied to memory of its own, in a memory format: "preserve_format" (its own order of dims), "contiguous_format", …"""

    def __init__(self, memory_format: str):
        self.memory_format = memory_format
        self.in_order = memory_format in ("preserve_format", "contiguous_format")
        super().__init__(lambda x: x, [lambda: 1], "clone", c_order=memory_format == "contiguous_format")

    def result_layout(self, shape, avals, d):
        return strides.formatted(avals[0], self.memory_format, d)


_clones = {name: unary_call(_Clone(name)) for name in strides.FORMATS}
clone: Callable[..., Any] = _clones["contiguous_format"]  #: a copy in C order, which kernels can read
copied: Callable[..., Any] = _clones["preserve_format"]  #: a copy as `Tensor.clone` makes it


@structured(
    x=lambda g: g, node="CloneBackward0", linear="jointly", batch="samples",
    samples="x(2, 3, 4, 5).clone(memory_format=torch.channels_last)",
)
def relaid(x, layout):
    """Return a copy in memory of this layout, which has no gaps."""
    return _copy(make(launch.empty(layout.size, layout.dtype.carrier), layout, [0, 0]), x)


class _Cast(Pointwise):
    """x converted to one dtype; computed in the dtype it comes from."""

    def __init__(self, target: dtype):
        self.target = target
        super().__init__(lambda x: x, [lambda: 1] if target.category >= 2 else [], f"to_{target.name}", "ToCopyBackward0")

    def result_dtypes(self, avals):
        source = avals[0].dtype
        _warn_of_loss(source, self.target)
        return source.compute, self.target

    def result_layout(self, shape, avals, d):
        return strides.like(avals[0], d)


class _Copy(Pointwise):
    """The first operand's memory takes the second's values (and its history)."""

    def __init__(self, name: str = "copy", node: str = "CopyBackwards", own: Any = None, repeats: bool = False):
        super().__init__(lambda x, source: source, [own, lambda: 1], name, node, reads=False, repeats=repeats)

    def result_dtypes(self, avals):
        source = avals[1]
        compute = source.dtype.compute if isinstance(source, Layout) else dtypes.of_scalar(source).compute
        if source is float or source is complex:
            compute = "float64" if source is float else "complex128"
        elif isinstance(source, Layout):
            _warn_of_loss(source.dtype, avals[0].dtype)
        return compute, avals[0].dtype

    def compute_list(self, compute):
        return ["bool", compute]  # the first operand is not read


class _Zero(Pointwise):
    """The first operand's memory is filled with 0."""

    def __init__(self, rules: list[Any]):
        super().__init__(lambda x: 0, rules, "zero", "ZeroBackward0", reads=False, repeats=True)

    def inplace(self, args):
        x = args[0]
        recorded = isinstance(x, Tensor) and x._view is not None and state.grad and (x._rg or x._view._rg)
        return (_cleared if recorded and self is not _cleared else super()).inplace(args)


def _warn_of_loss(source: dtype, target: dtype) -> None:
    """Give PyTorch's warning of a lost imaginary part, when a plan is made and so about once."""
    if source.is_complex and not target.is_complex and target is not dtypes.bool_:
        warn_user("Casting complex values to real discards the imaginary part")


_casts: dict[dtype, Any] = {}
copying: _Copy = _Copy()
_copy = inplace_call(copying)
#: an overwritten tensor that requires grad keeps its history, towards which the gradient is 0 (a view's is its base's business)
_copy_keeping = inplace_call(_Copy(own=lambda: 0))
_fill = inplace_call(_Copy("fill", "FillBackward0", lambda: 0, repeats=True))
_overwrite = inplace_call(_Copy(repeats=True))
_cleared = _Zero([None])
_zeroed = inplace_call(_Zero([lambda: 0]))
_zeroed.__doc__ = "Fill with 0, in place. Derivative: 0, as what was there is overwritten; [1., 2.].zero_() = [0., 0.]."
zero_ = register("zero_", _zeroed, "inplace")


def cast(x: Tensor, d: dtype) -> Tensor:
    """Return ``x`` as dtype ``d``; itself when it has it."""
    if x._layout.dtype is d:
        return x
    call = _casts.get(d)
    if call is None:
        call = _casts[d] = unary_call(_Cast(d))
    return call(x)


def format_name(memory_format: Any) -> str:
    """Return the name of a ``memory_format=``, None being ``preserve_format``; TypeError for what is none."""
    name = "preserve_format" if memory_format is None else getattr(memory_format, "name", None)
    if name not in _clones:
        raise TypeError(f"argument 'memory_format' must be torch.memory_format, not {type(memory_format).__name__}")
    return name


@public(name="clone")
def clone_(input, *, memory_format=None):
    """Return a copy in memory of its own, with the same order of dims unless ``memory_format`` says another; dy/dx = 1; clone([1, 2]) = [1, 2]."""
    x = tensor_argument(input, "clone")
    return copied(x) if memory_format is None else _clones[format_name(memory_format)](x)


@public(namespaces=())
def contiguous(input, memory_format=None):
    """Return the tensor itself when its elements stand in C order (or as ``memory_format`` says), else a copy so laid; [1, 2].contiguous() = [1, 2]."""
    if memory_format is None:
        return input if input._layout.contiguous else clone(input)
    name = format_name(memory_format)
    if name == "preserve_format":
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return input if strides.is_in(input._layout, name) else _clones[name](input)


def dense(x: Tensor) -> np.ndarray:
    """Return the elements of ``x`` in C order, as the flat array that structured kernels read."""
    if not x._layout.contiguous:
        x = clone(x)
    return x._data[: x._layout.size]


def in_memory_order(x: Tensor) -> tuple[Tensor, list[int] | None]:
    """Return ``x`` (a copy where it has gaps) read in the order in which its dims lie in memory, and that order; None for C order.

    An op that does not care which dim is which works on that, and `in_order_again` gives its result the operand's strides.
    """
    layout = x._layout
    if layout.contiguous:
        return x, None
    order = strides.order_in_memory(layout)
    if order == list(range(layout.ndim)):
        return clone(x), None
    if not strides.packed(layout):
        x = copied(x)
    return make(x._data, strides.permuted(x._layout, order), x._version_), order


def in_order_again(y: Tensor, order: list[int] | None) -> Tensor:
    """Return the result of an op on what `in_memory_order` gave, its dims back in their places."""
    if order is None:
        return y
    return make(y._data, strides.permuted(y._layout, sorted(range(len(order)), key=order.__getitem__)), y._version_)


def in_float32(forward: Callable[..., Any], *args: Any) -> Any:
    """Return what a structured op's forward function makes of half operands, computed in float32: most kernels do not know half precision."""
    half = next(a.dtype for a in args if isinstance(a, Tensor) and a.dtype.is_half)
    out = forward(*[cast(a, dtypes.float32) if isinstance(a, Tensor) and a.dtype.is_half else a for a in args])
    if isinstance(out, Tensor):
        return cast(out, half)
    return tuple(cast(t, half) if t.dtype is dtypes.float32 else t for t in out)


def images(*ranks: int, weight: bool = False, wide: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a structured op's forward function on batches of images, or of lines or volumes.

    Where the first operand has so many dims and is channels last (or the second, if that is a ``weight``), its results are. The
    kernels know C order only, so this costs a copy before them and one behind. A parameter ``n`` says how many dims are spatial.
    Where it is ``wide``, half operands are computed `in_float32`.
    """

    def decorate(forward: Callable[..., Any]) -> Callable[..., Any]:
        names = parameters_of(forward)
        place = names.index("n") if "n" in names else None

        @wraps(forward)
        def run(*args):
            x = args[0]._layout
            out = in_float32(forward, *args) if wide and x.dtype.is_half else forward(*args)
            if x.ndim in ranks and (not x.contiguous or x.strides[1] <= x.strides[-1]) and (place is None or args[place] + 2 == x.ndim):
                if strides.looks_channels_last(x):
                    return as_images(x, out)
            if not weight:
                return out
            w = args[1]._layout  # (one of single channels or pixels may be in both orders)
            return as_images(w, out) if not w.contiguous or w.strides[1] <= w.strides[-1] else out

        return run

    return decorate


def as_images(like: Layout, out: Any) -> Any:
    """Return fresh results in C order, or channels last if images of this layout are."""
    if not strides.looks_channels_last(like):
        return out
    if isinstance(out, (tuple, list)):
        return type(out)(as_images(like, t) for t in out)
    return relaid.forward(out, strides.channels_last(out._layout.shape, out._layout.dtype))


def in_order_of(y: Tensor, x: Tensor) -> Tensor:
    """Return a fresh result in C order, of the shape of ``x``, with the dims in memory as a copy of ``x`` has them; not recorded.

    For kernels that number the elements, so that they cannot run in another order.
    """
    return y if x._layout.contiguous else relaid.forward(y, strides.like(x._layout, y._layout.dtype))


def in_format_of(y: Tensor, x: Tensor) -> Tensor:
    """Return ``y`` in channels-last order if ``x`` suggests that, else in C order; a recorded copy where it is not."""
    name = strides.suggested(x._layout)
    return y if strides.is_in(y._layout, name) else _clones[name](y)


@structured(
    x=lambda g, name: g if strides.is_in(g._layout, name) else _clones[name](g), view=True, linear="jointly", batch="samples",
    dtypes="half float", samples="(lambda v: F.instance_norm(v, v.new_zeros(3), v.new_ones(3), use_input_stats=False))(x(2, 3, 4))",
)
def _whose_gradient_is_in(x, name):
    return make(x._data, x._layout, x._version_)


def gradient_in_its_format(x: Tensor) -> Tensor:
    """Return a view of ``x``, to which gradients come in channels-last order if it suggests that, else in C order."""
    return _whose_gradient_is_in(x, strides.suggested(x._layout)) if x.__class__ is Tensor and x._rg and state.grad else x  # type: ignore[no-any-return]


@public(kind="inplace", namespaces=())
def copy_(input, src, non_blocking=False):
    """Overwrite with ``src`` (a tensor that broadcasts and is cast, or a number); the gradient goes to ``src``."""
    if src.__class__ is input.__class__ and is_expanded(input._layout) and is_same_memory(input, src):  # the one thing that may be written there: what is there
        return counted(input)
    if src.__class__ is Tensor:
        keeps = getattr(input, "_rg", False) and input._view is None
        return (_copy_keeping if keeps else _copy)(input, src)
    tensor_argument(input, "copy_")
    if src.__class__ in MARKED:
        return copy_(input, resolved(src))
    if isinstance(src, Tensor):
        return _copy(input, src)
    if not isinstance(src, (bool, int, float, complex)):
        raise TypeError(f"copy_(): argument 'src' must be Tensor, not {type(src).__name__}")
    return _copy(input, number_as(src, input.dtype, "copy_"))


@public(kind="inplace")
def fill_(input, value: Tensor | float):
    """Overwrite every element with ``value``, a number or a 0-d tensor."""
    d = tensor_argument(input, "fill_")._layout.dtype
    kind = value.__class__
    if not (kind is float and (-SINGLE <= value <= SINGLE if d is dtypes.float32 else d is dtypes.float64)):
        if not isinstance(value, Tensor):
            number = plain_number(value)
            if number is None:
                raise TypeError(f"fill_(): argument 'value' must be Tensor or a number, not {kind.__name__}")
            value = number_as(number, d, "fill_")
        elif value.ndim:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{value.ndim} dimensions (value.shape={list(value.shape)})"
            )
        elif is_expanded(input._layout):
            return copy_(input, value)  # which refuses
    return (_fill if input._rg and input._view is None else _overwrite)(input, value)


class _StandIn:
    """A place for the number of GPUs that programs find in this process, for which the CPU stands in (see `compat.gpus`)."""

    gpus: int = 0


stand_in: _StandIn = _StandIn()


def as_device(value: Any) -> None:
    """Accept every spelling of the CPU, and of the GPUs that it stands in for; RuntimeError for any other device, TypeError for what is none."""
    if value.__class__ is bool or not (value is None or isinstance(value, (str, int)) or type(value).__name__ == "device"):
        raise TypeError(f"argument 'device' must be torch.device, not {type(value).__name__} (device={shorten(value)})")
    name = str(value)
    kind, _, index = name.partition(":")
    if kind in ("cpu", "None"):
        return
    if stand_in.gpus and (kind == "cuda" or kind.isdigit()) and int((kind if kind.isdigit() else index) or 0) < stand_in.gpus:
        return
    raise DeviceError(name)


def is_meta(value: Any) -> bool:
    """Return whether a device is "meta", where tensors have no numbers; False for the CPU, RuntimeError for any other."""
    if str(value).partition(":")[0] == "meta":
        return True
    as_device(value)
    return False


def is_sparse(layout: Any) -> bool:
    """Return whether a layout is one of those of sparse tensors that are here."""
    return str(layout) in ("torch.sparse_coo", "torch.sparse_csr")


def strided_only(layout: Any) -> None:
    """Refuse a ``layout`` that is not `strided`, where a tensor is made: TypeError for what is no layout."""
    if type(layout).__name__ != "layout":
        raise TypeError(f"argument 'layout' must be torch.layout, not {type(layout).__name__}")
    if str(layout) != "torch.strided":
        raise NotImplementedError(f"layout={layout}: this is not implemented for sparse types; make a dense tensor sparse by .to_sparse()")


def placed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a function that makes tensors: its ``layout`` and ``device`` are looked at, and what is made on "meta" has no numbers."""
    make = numpy_names(function)  # (the table takes a decorated function as it is)

    @wraps(function)
    def there(*args: Any, device: Any = None, layout: Any = None, **options: Any) -> Any:
        if layout is not None:
            strided_only(layout)
        try:
            if device is None or not is_meta(device):
                return make(*args, **options)
            return asked.meta().on_meta(make(*args, **options))
        except (TypeError, AttributeError):
            if not foreign_among((*args, *options.values())):
                raise
        return asked.redefined(getattr(there, "public", there), args, options if device is None else {**options, "device": device})

    return there


def refuse_flag(args: tuple[Any, ...]) -> None:
    """Raise TypeError where ``to()`` gets a flag where a dtype stands: no signature of it has one right behind a device."""
    if len(args) > 1 and isinstance(args[1], bool) and (args[0] is None or type(args[0]).__name__ in ("str", "device")):
        kind = type(args[0]).__name__
        raise TypeError(f"to() received an invalid combination of arguments - got ({kind}, bool): a device and a dtype stand before the flags")


def _is_cpu(value: Any) -> bool:
    return value == "cpu" if value.__class__ is str else getattr(value, "type", None) == "cpu" and getattr(value, "index", 0) is None


@public(namespaces=())
def to(input, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None):
    """Return the tensor with another dtype: ``x.to(dtype)``, ``x.to("cpu")``, ``x.to("cpu", dtype)``, ``x.to(other)``.

    Itself when nothing changes and ``copy`` is not set. ``memory_format``: see `clone`. Errors: RuntimeError for a device that is not
    the CPU.

    >>> torch.tensor([1, 2]).to(torch.float32)
    tensor([1., 2.])
    """
    x = tensor_argument(input, "to")
    if len(args) == 1 and _is_cpu(args[0]) and dtype is device is memory_format is None and not copy:
        return x
    flags: list[bool] = []
    refuse_flag(args)
    for a in args:
        if isinstance(a, dtypes.dtype) or (isinstance(a, type) and a in (float, int, bool, complex)):
            dtype = a
        elif isinstance(a, Tensor):
            dtype = a.dtype
        elif isinstance(a, bool):
            flags.append(a)  # non_blocking, copy
        elif isinstance(a, (str, int)) or hasattr(a, "type") or a is None:
            device = a
        else:
            raise TypeError(f"to() received an invalid argument {a!r}: expected a dtype, a device or a Tensor")
    copy = copy or (len(flags) > 1 and flags[1])
    target = x.dtype if dtype is None else dtypes.as_dtype(dtype)
    y = cast(x, target)
    if device is not None and is_meta(device):
        return asked.meta().on_meta(y)
    name = format_name(memory_format)
    if name != "preserve_format" and ((copy and y is x) or strides.suggested(y._layout) != name):
        return _clones[name](y)
    return copied(y) if copy and y is x else y


def _short(name: str, d: dtype) -> None:
    def method(input, memory_format=None):
        return cast(input, d) if memory_format is None else to(input, d, memory_format=memory_format)

    method.__name__ = name
    method.__doc__ = f"Return the tensor as {d.name}; [1].{name}().dtype = torch.{d.name}."
    register(name, method, "cast", namespaces=())


for _name, _d in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16, "long": dtypes.int64, "int": dtypes.int32,
    "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool_,
    "chalf": dtypes.complex32, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
}.items():  # fmt: skip
    _short(_name, _d)


@public(namespaces=())
def type_as(input, other):
    """Return the tensor with the dtype of ``other``; [1, 2].type_as([0.5]) = [1., 2.]."""
    return cast(tensor_argument(input, "type_as"), tensor_argument(other, "type_as", "other").dtype)


def alias(x: Tensor) -> Tensor:
    """Return the same memory, version counter and no history."""
    return make(x._data, x._layout, x._version_)
