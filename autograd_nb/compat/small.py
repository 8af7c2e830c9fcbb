"""Small helpers of PyTorch's that packages take from where they are kept."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from ..display import _joined, contents
from ..dtypes import as_dtype, int64
from ..ops.core.registry import OPS
from ..ops.creation.device import device
from ..tensor import Tensor

HASH_REGEX: re.Pattern[str] = re.compile(r"-([a-f0-9]*)\.")


class ScriptError(RuntimeError):
    """An error of a script: raised by nothing here."""


class TracerWarning(Warning):
    """A warning of PyTorch's tracer: given by nothing here."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing: there are none to be ignored."""


class TorchVersion(str):
    """A version, compared as such with texts and tuples.

    >>> from autograd_nb.torch_version import TorchVersion
    >>> TorchVersion("2.13.0+x") >= "2.9", TorchVersion("2.13.0") < (2, 14)
    (True, True)
    """

    @staticmethod
    def _numbers(version: Any) -> tuple[int, ...]:
        parts = version if isinstance(version, (tuple, list)) else re.split(r"[^0-9]", str(version).partition("+")[0])
        numbers = [int(p) for p in parts if p != ""]
        while numbers and numbers[-1] == 0:
            numbers.pop()
        return tuple(numbers)

    def __lt__(self, other: Any) -> bool:
        return self._numbers(self) < self._numbers(other)

    def __le__(self, other: Any) -> bool:
        return self._numbers(self) <= self._numbers(other)

    def __gt__(self, other: Any) -> bool:
        return self._numbers(self) > self._numbers(other)

    def __ge__(self, other: Any) -> bool:
        return self._numbers(self) >= self._numbers(other)

    def __eq__(self, other: object) -> bool:
        return self._numbers(self) == self._numbers(other)

    if TYPE_CHECKING:

        def __hash__(self) -> int: ...

    else:
        __hash__ = str.__hash__


class WeakIdRef(ref):  # type: ignore[type-arg]
    """A weak reference that is equal to another of the same object, whatever the object's own ``==`` says."""

    def __init__(self, key: Any, callback: Any = None):
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        a, b = self(), other() if isinstance(other, ref) else None
        return a is b if a is not None and b is not None else self is other


class TensorWeakRef:
    """A weak reference to a tensor."""

    ref: ref[Tensor]

    def __init__(self, tensor: Tensor):
        self.ref = ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()


class WeakIdKeyDictionary:
    """A dict whose keys are objects by identity, which it does not keep alive."""

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef):
        self.data: Any = {}
        self.update(dict or {})

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[WeakIdRef(key, lambda gone: self.data.pop(gone, None))] = value

    def __getitem__(self, key: Any) -> Any:
        return self.data[WeakIdRef(key)]

    def __delitem__(self, key: Any) -> None:
        del self.data[WeakIdRef(key)]

    def __contains__(self, key: Any) -> bool:
        return WeakIdRef(key) in self.data

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return iter([k for r in list(self.data) if (k := r()) is not None])

    def keys(self) -> list[Any]:
        """Return the objects that are still there."""
        return list(self)

    def values(self) -> list[Any]:
        """Return the values of the objects that are still there."""
        return [self[k] for k in self]

    def items(self) -> list[tuple[Any, Any]]:
        """Return the pairs of objects that are still there and their values."""
        return [(k, self[k]) for k in self]

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of an object, or the default."""
        return self.data.get(WeakIdRef(key), default)

    def pop(self, key: Any, *default: Any) -> Any:
        """Remove an object; its value."""
        return self.data.pop(WeakIdRef(key), *default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return the value of an object, which is set to the default where there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, other: Any) -> None:
        """Set all values of another dict."""
        for k, v in other.items():
            self[k] = v

    def clear(self) -> None:
        """Forget all objects."""
        self.data.clear()


WeakTensorKeyDictionary = WeakIdKeyDictionary


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Return the elements of all the tensors in one vector."""
    return OPS["cat"].call([t.reshape(-1) for t in tensors], 0)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the parts of a vector in the shapes of the tensors."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(p.view(t.shape) for p, t in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Return the tensors in groups of one dtype and of up to so many bytes."""
    groups: dict[Any, tuple[list[Tensor], int]] = {}
    for t in tensors:
        found, size = groups.get(t.dtype, ([], 0))
        if found and size + t.nbytes > size_limit:
            yield found
            found, size = [], 0
        groups[t.dtype] = ([*found, t], size + t.nbytes)
    for found, _ in groups.values():
        yield found


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Callable[..., Any], if_false: Callable[..., Any], module_name: Any, func_name: str
) -> Callable[..., Any]:
    """Return a function that is the one or the other of two, as an argument says."""

    def dispatched(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return if_true(*args, **kwargs) if flag else if_false(*args, **kwargs)

    dispatched.__name__, dispatched.__doc__ = func_name, if_true.__doc__
    return dispatched


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Return (device, dtype, non_blocking, memory_format) from the arguments of ``Module.to``."""
    where, d, flags = kwargs.get("device"), kwargs.get("dtype"), []
    for a in args:
        if isinstance(a, Tensor):
            where, d = a.device, a.dtype
        elif isinstance(a, bool):
            flags.append(a)
        elif isinstance(a, (str, device)):
            where = a
        elif a is not None:
            d = a
    found = device(where) if where is not None else None
    return found, None if d is None else as_dtype(d), kwargs.get("non_blocking", flags[0] if flags else False), kwargs.get("memory_format")


def is_instance(obj: Any, target_type: Any) -> bool:
    """Return whether an object is of a type; of types with parameters the type alone counts."""
    return isinstance(obj, getattr(target_type, "__origin__", None) or target_type)


_hub: list[str] = []


def torch_home() -> str:
    """Return ``$TORCH_HOME``, or its place in the user's cache."""
    return os.path.expanduser(os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "torch"))


def hub_directory() -> str:
    """Return where programs keep files of weights: ``$TORCH_HOME/hub``, or in the user's cache."""
    return _hub[-1] if _hub else os.path.join(torch_home(), "hub")


class Attribute(NamedTuple):
    """A module's attribute with the type that a script gives it."""

    value: Any
    type: Any


def set_hub_directory(d: Any) -> None:
    """Set where programs keep files of weights."""
    _hub[:] = [os.path.expanduser(os.fspath(d))]


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Return g · v / ‖v‖, the norm over all dims but ``dim``."""
    return v * (g / OPS["norm_except_dim"].call(v, 2, dim))


def _shape_as_tensor(self: Tensor) -> Tensor:
    """Return the sizes as a tensor."""
    return OPS["tensor"].call(list(self.shape), dtype=int64)


shape_as_tensor = _shape_as_tensor


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> list[Any]:
    """Return the inputs in a list: there is one device, and all goes to it."""
    return [inputs]


def scatter_kwargs(inputs: Any, kwargs: Any, target_gpus: Sequence[Any], dim: int = 0) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return positional and named arguments for the one device."""
    return (tuple(inputs),), (dict(kwargs or {}),)


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """Return what several devices computed as one: tensors are put together along ``dim``, and so within lists and dicts."""
    first = outputs[0]
    if isinstance(first, Tensor):
        return OPS["cat"].call([x if x.ndim else OPS["unsqueeze"].call(x, 0) for x in outputs], dim)
    if isinstance(first, dict):
        return type(first)((key, gather([out[key] for out in outputs], target_device, dim)) for key in first)
    return None if first is None else type(first)([gather(list(parts), target_device, dim) for parts in zip(*outputs, strict=True)])


DEFAULT_TIMEOUT: timedelta = timedelta(minutes=30)  #: how long collectives wait in PyTorch


class CompilerError(RuntimeError):
    """An error of PyTorch's compiler: raised by nothing here."""


def _get_accelerator(check: bool = False) -> device:
    """Return the device that computes: the CPU."""
    return device("cpu")


def is_contiguous_or_false(input: Tensor, memory_format: Any = None) -> bool:
    """Return whether a tensor is contiguous."""
    return bool(input.is_contiguous())


def statically_known_true(condition: Any) -> bool:
    """Return the condition: sizes are numbers here."""
    return bool(condition)


guard_or_true = guard_or_false = guard_size_oblivious = statically_known_true


def _tensor_str(self: Tensor, indent: int) -> str:
    """Return the numbers of a tensor as they are printed, in brackets."""
    return contents(self.detach().numpy(), indent)


def _add_suffixes(tensor_str: str, suffixes: Sequence[str], indent: int, force_newline: bool = False) -> str:
    """Return what is printed with ", dtype=…" and the like behind it, and the closing bracket."""
    return _joined(tensor_str, list(suffixes), indent)
