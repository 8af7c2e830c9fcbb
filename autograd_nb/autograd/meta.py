"""Tensors of the device ``meta``: a shape, a dtype and a graph, whose numbers nobody may read.

Programs make large models there and let a file bring the numbers: ``with torch.device("meta"): model = Net()``. A `Meta` has memory that the
operating system keeps as a promise (zeros, which no one has touched), so that every op can find shapes by computing; what would only write
numbers does nothing, and what would read them raises. It takes calls over as a program's subclass does (see `torch_function`), and only
as long as there is one.

Source: https://docs.pytorch.org/docs/stable/meta.html
"""

from __future__ import annotations

import weakref
from importlib import import_module
from typing import Any

from .. import launch
from ..dtypes import get_default_dtype
from ..ops.core.foreign import asked
from ..ops.creation.device import device
from ..shapes import layout_of
from ..tensor import Tensor, adopt, make
from .subclasses import Redefining
from .torch_function import INTERCEPTION, TorchFunctionMode, _switched

META = device("meta")

#: methods that write no numbers, though they are named as those that do
_KEPT = {
    "requires_grad_", "detach_", "squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "resize_", "resize_as_", "as_strided_",
    "share_memory_", "rename_", "apply_",
}  # fmt: skip
_WRITTEN = {"__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__", "__iand__", "__ior__", "__ixor__"}
#: what reads numbers -> the type of the error
_READ = {
    "numpy": TypeError, "__array__": TypeError, "to_dlpack": BufferError,
    **dict.fromkeys(("nonzero", "masked_select", "unique", "unique_consecutive", "equal"), NotImplementedError),
    **dict.fromkeys(("item", "tolist", "is_nonzero", "bincount", "allclose", "__contains__"), RuntimeError),
    **dict.fromkeys(("__bool__", "__float__", "__int__", "__index__", "__complex__"), RuntimeError),
}  # fmt: skip

#: functions that make tensors on the device that stands around them
MAKERS = {
    "empty", "zeros", "ones", "full", "eye", "arange", "range", "linspace", "logspace", "rand", "randn", "randint", "randperm", "normal",
    "tensor", "as_tensor", "asarray", "scalar_tensor", "empty_strided", "empty_permuted", "tril_indices", "triu_indices", "vander", "complex", "polar",
    "hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window", "fftfreq", "rfftfreq",
}  # fmt: skip


def _no_data(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}(): Cannot copy out of meta tensor; no data! (make it without torch.device('meta'), or use torch.nn.Module.to_empty() instead of "
        "torch.nn.Module.to() and fill it)"
    )


class Meta(Redefining, Tensor):
    """A tensor of the device ``meta``."""

    __slots__ = ()
    device = META  # type: ignore[assignment]
    is_meta, is_cpu = True, False  # type: ignore[assignment]
    counted = True

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return what ``func`` makes of shapes."""
        return _called(func, args, kwargs or {})

    def __repr__(self, **options: Any) -> str:
        with _switched(1):
            kind = "" if self.dtype is get_default_dtype() else f", dtype={self.dtype}"
            return f"tensor(..., device='meta', size={tuple(self.shape)}{kind}{', requires_grad=True' * (self.requires_grad and self.is_leaf)})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _unpickled, (tuple(self.shape), self.dtype, self.requires_grad)


def _unpickled(shape: Any, dtype: Any, requires_grad: bool) -> Tensor:
    t: Tensor = _new(layout_of(shape, None, dtype)).requires_grad_(requires_grad)
    return t


def _new(layout: Any) -> Any:
    return counted(adopt(Meta, make(launch.promised(layout.size, layout.dtype.carrier), layout, [0, 0])))


def of_layout(layout: Any) -> Any:
    """Return a tensor of the device that lies so in memory; in C order where that has gaps, for which no memory is promised."""
    return _new(layout if layout.extent <= layout.size else layout_of(layout.shape, None, layout.dtype))


def counted(t: Any) -> Any:
    """Return a new object of the device, for whose life calls are taken over."""
    INTERCEPTION.enter()
    asked.meta_used = True
    weakref.finalize(t, INTERCEPTION.leave).atexit = False
    return t


def parameter(t: Tensor, requires_grad: bool) -> Any:
    """Return a parameter of the device, with the shape of a tensor of the device."""
    return import_module(f"{__name__.partition('.')[0]}.nn.meta").MetaParameter(t, requires_grad)


def on_meta(t: Tensor) -> Any:
    """Return a tensor of this shape and dtype on the device ``meta``; itself where it is one."""
    if isinstance(t, Meta):
        return t
    with _switched(2):
        layout = t._layout
        return _new(layout if layout.usual else layout_of(layout.shape, None, layout.dtype)).requires_grad_(t._rg and t._edge is None)


def _marked(result: Any) -> Any:
    """Return what an op computed, with its tensors on the device."""
    if isinstance(result, Tensor):
        return result if isinstance(result, Meta) else counted(adopt(Meta, result))
    if isinstance(result, (tuple, list)):
        made = [_marked(r) for r in result]
        return type(result)._make(made) if hasattr(result, "_make") else type(result)(made)  # type: ignore[attr-defined]
    return result


def _elsewhere(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a call names a device that has numbers."""
    named = [kwargs.get("device")]
    if name == "to":
        named += [str(a) for a in args[1:] if type(a).__name__ in ("device", "str")]
        named += [a.device for a in args[1:] if isinstance(a, Tensor)]
    return any(n is not None and str(n) != "meta" for n in named)


def _called(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = getattr(func, "__name__", "")
    if name == "__set__" and func.__self__.fget.__name__ == "data" and not isinstance(args[1], Meta):
        raise RuntimeError("Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type.")
    if name in _READ:
        raise _READ[name](f"{name}(): tensors of the device meta have a shape and a dtype, and no data")
    if name not in _KEPT and ((name[-1:] == "_" and name[-2:] != "__") or name in _WRITTEN):
        if not isinstance(args[0], Meta):
            raise _no_data(name)
        return args[0]
    away = _elsewhere(name, args, kwargs)
    if (away and not (name.endswith("_like") or name.startswith("new_"))) or name == "cpu":
        raise _no_data(name)
    with _switched(1):
        result = func(*args, **kwargs)
    return result if away else _marked(result)


class OnMeta(TorchFunctionMode):
    """``with torch.device("meta")``: what makes tensors makes them there, unless it is told another device."""

    def __enter__(self) -> Any:
        asked.meta_used = True
        return super().__enter__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the result of the call, on the device where a maker was called."""
        kwargs = kwargs or {}
        result = _called(func, args, kwargs) if any(issubclass(t, Meta) for t in types) else func(*args, **kwargs)
        if getattr(func, "__name__", "") in MAKERS and kwargs.get("device") is None and isinstance(result, Tensor):
            return on_meta(result)
        return result


def is_around() -> bool:
    """Return whether the innermost device that stands around is ``meta``."""
    from .torch_function import state

    return any(isinstance(mode, OnMeta) for mode in state.modes)


def leave() -> None:
    """Leave the innermost device that stands around."""
    from .torch_function import state

    next(mode for mode in reversed(state.modes) if isinstance(mode, OnMeta)).__exit__()
