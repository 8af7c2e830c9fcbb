"""``device``: the one place where tensors live, under the names that PyTorch programs give it."""

from __future__ import annotations

import importlib
import threading
from typing import Any

from ...tensor import Tensor
from ..core.foreign import asked
from ..core.registry import OPS, public
from .cast import as_device, is_meta

_KINDS = ("cpu", "cuda", "mps", "xpu", "xla", "meta", "hpu", "mtia")


class device:
    """``device("cpu")``. Other kinds can be named and compared, but no tensor can be put there.

    On ``device("meta")`` tensors have a shape and a dtype, and no numbers. Inside ``with torch.device("meta")`` they are made there.

    Source: https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device

    >>> torch.device("cpu").type
    'cpu'
    """

    __slots__ = ("index", "type")
    index: int | None
    type: str

    def __init__(self, type: Any, index: int | None = None):
        if isinstance(type, device):
            kind, index = type.type, type.index if index is None else index
        elif isinstance(type, str):
            kind, colon, number = type.partition(":")
            if colon:
                if index is not None:
                    raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {type}")
                if not number.isdigit():
                    raise RuntimeError(f"Invalid device string: '{type}'")
                index = int(number)
        elif isinstance(type, int) and not isinstance(type, bool):
            kind, index = "cuda", type
        else:
            raise TypeError(f"device(): argument 'type' must be str, not {type.__class__.__name__}")
        if kind not in _KINDS:
            raise RuntimeError(f"Expected one of {', '.join(_KINDS)} device type at start of device string: {kind}")
        if index is not None and index < 0:
            raise RuntimeError(f"Device index must not be negative (device({kind!r}, {index}))")
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __enter__(self) -> device:
        """Return the device that factories use inside: the CPU, or "meta". RuntimeError for any other."""
        if is_meta(self):
            asked.meta().OnMeta().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.type == "meta":
            asked.meta().leave()

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + (")" if self.index is None else f", index={self.index})")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> Any:
        return (device, (self.type, self.index))


CPU = device("cpu")


class _Named:
    """A constant that is its name."""

    name: str

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> Any:
        return (_constant, (type(self), self.name))


class layout(_Named):
    """Return how a tensor is stored: `strided`, here always."""


class memory_format(_Named):
    """An order of dims in memory that programs may ask for.

    >>> torch.channels_last
    torch.channels_last
    """


strided: layout = layout("strided")
sparse_coo: layout
sparse_csr: layout
sparse_csc: layout
sparse_bsr: layout
sparse_bsc: layout
jagged: layout
sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged, _mkldnn = (
    layout(name) for name in ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged", "_mkldnn")
)
contiguous_format: memory_format
preserve_format: memory_format
channels_last: memory_format
channels_last_3d: memory_format
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")


def _constant(kind: type, name: str) -> Any:
    return globals()[name]


@public(namespaces=())
def cpu(input, memory_format=None):
    """Return the tensor itself: it lives on the CPU (a copy where ``memory_format`` asks for another order of dims). Derivative: the gradient itself."""
    return input if memory_format is None else OPS["to"].call(input, memory_format=memory_format)


class _Default(threading.local):
    """The device that `set_default_device` has set in this thread: None for the CPU."""

    mode: Any = None


_default: Any = _Default()


def set_default_device(device: Any) -> None:
    """Let tensors be made on a device where none is named: the CPU, or "meta", where they have no numbers; None for the CPU. In this thread.

    Errors: RuntimeError for any other. Source: https://docs.pytorch.org/docs/stable/generated/torch.set_default_device.html

    >>> torch.set_default_device("cpu")
    >>> torch.get_default_device()
    device(type='cpu')
    """
    wanted = device is not None and is_meta(device)
    if _default.mode is not None and not wanted:
        _default.mode.__exit__(None, None, None)
        _default.mode = None
    elif wanted and _default.mode is None:
        _default.mode = asked.meta().OnMeta()
        _default.mode.__enter__()


@public(method=False)
def get_default_device() -> device:
    """Return where tensors are made if no device is named; get_default_device() = device(type='cpu')."""
    return device("meta") if _default.mode is not None or (asked.meta_used and asked.meta().is_around()) else CPU


def _elsewhere(kind: str) -> None:
    def method(input, device=None, non_blocking=False, memory_format=None):
        as_device(kind if device is None else f"{kind}:{device}" if isinstance(device, int) else device)
        return input

    method.__name__ = kind
    method.__doc__ = f"Raise RuntimeError: there is no {kind} device here (but see `compat.gpus`)."
    public(namespaces=())(method)


for _kind in ("cuda", "xpu", "mtia"):
    _elsewhere(_kind)


def _shared() -> Any:
    """Return the module of shared memory, which few programs need."""
    return importlib.import_module(".shared", __package__)


@public(namespaces=())
def pin_memory(input, device=None):
    """Return the tensor itself: pinned memory serves copies to GPUs, of which there are none.

    >>> torch.ones(1).pin_memory()
    tensor([1.])
    """
    return input


@public(namespaces=())
def is_pinned(input, device=None) -> bool:
    """Return False: there is no GPU that would read it.

    >>> torch.ones(1).is_pinned()
    False
    """
    return False


@public(namespaces=())
def share_memory_(input):
    """Move the tensor's elements into memory that processes share, and return it; other views that were made before keep the memory they had.

    A process that is given the tensor, by `torch.multiprocessing` or a fork, reads and writes the same elements. Derivative: the gradient itself.

    >>> torch.ones(1).share_memory_()
    tensor([1.])
    """
    _shared().share(input)
    return input


@public(namespaces=())
def is_shared(input) -> bool:
    """Return whether the tensor lies in memory that processes share.

    >>> torch.ones(1).is_shared()
    False
    """
    return _shared().memory_of(input._data) is not None


@public()
def get_device(input) -> int:
    """Return −1, which stands for the CPU.

    >>> torch.get_device(torch.tensor([1.]))
    -1
    """
    return -1


def _property(name: str, value: Any, doc: str) -> None:
    setattr(Tensor, name, property(lambda self: value, doc=doc))


_property("device", CPU, "Where the tensor lives: the CPU.")
_property("layout", strided, "How it is stored: with strides.")
_property("is_cpu", True, "True.")
for _name in ("cuda", "sparse", "sparse_csr", "quantized", "mkldnn", "mps", "xla", "xpu", "meta", "nested", "vulkan", "ipu", "maia", "mtia"):
    _property("is_" + _name, False, f"False: there are no {_name} tensors here.")
_property("name", None, "None; names belong to the tensors of other frameworks.")
