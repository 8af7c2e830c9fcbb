"""Functions and classes of PyTorch's documentation with a meaning for dense work on the CPU, that few programs take (`documented` says from where)."""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any

from ..dtypes import bool_
from ..errors import warn_user
from ..graph.transformed import transformed
from ..nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..nn.modules.hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..nn.modules.module import Module
from ..ops.core.registry import OPS
from ..tensor import Tensor


def set_module(obj: Any, mod: Any) -> None:
    """Set the module that an object says it is of."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return the options for functions that make tensors: device, dtype and memory_format. TypeError for others."""
    if kwargs is None:
        return {}
    names = {"device", "dtype", "memory_format"}
    if unknown := set(kwargs) - names - {"factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for k in names & kwargs.keys():
        if k in found:
            raise TypeError(f"{k} specified twice, in **kwargs and in factory_kwargs")
        found[k] = kwargs[k]
    return found


def _converted(module: Any, kinds: tuple[Any, ...], memory_format: Any) -> Any:
    for m in module.modules():
        if isinstance(m, kinds):
            m.weight.data = m.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay the weights of two-dimensional convolutions in a memory format; the module is returned."""
    return _converted(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay the weights of three-dimensional convolutions in a memory format; the module is returned."""
    return _converted(module, (Conv3d, ConvTranspose3d), memory_format)


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix off the names of a state dict, and of its metadata, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    metadata: dict[str, Any] = getattr(state_dict, "_metadata", None) or {}
    for key in list(metadata):
        if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)


class Container(Module):
    """Holds modules that are given by name, as programs of PyTorch's first years wrote it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        warn_user("nn.Container is deprecated. All of it's functionality is now implemented in nn.Module. Subclass that instead.")
        for key, value in kwargs.items():
            self.add_module(key, value)


class CheckpointPolicy(enum.Enum):
    """The answers of a policy of what a checkpoint keeps."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4


def noop_context_fn() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return two contexts that do nothing."""
    return nullcontext(), nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the inputs, tensors detached and requiring grad as before. RuntimeError for what is no tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(t.detach().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t for t in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if none of the inputs requires grad."""
    if not any(t.requires_grad for t in inputs if isinstance(t, Tensor)):
        warn_user("None of the inputs have requires_grad=True. Gradients will be None")


class DefaultDeviceType:
    """Says which device a checkpoint of tensors of the CPU alone is of."""

    _default_device_type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set the kind of device."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """Return the kind of device."""
        return DefaultDeviceType._default_device_type


class DLDeviceType(enum.IntEnum):
    """The kinds of devices of DLPack."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


class LoadEndianness(enum.Enum):
    """The orders of bytes that a file without one may be read in."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def unserializable_hook(f: Any) -> Any:
    """Mark a hook as one that is not written into files."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Warn of the hooks of a tensor that are lost where it is sent."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warn_user(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function with "
                "@torch.utils.hooks.unserializable_hook to suppress this warning",
            )


class ModuleTracker:
    """Tells, within a ``with`` block, in ``parents`` the paths of the modules whose forward is running ("Global" above all).

    >>> from autograd_nb.utils.module_tracker import ModuleTracker
    >>> with ModuleTracker() as tracker:
    ...     sorted(tracker.parents)
    ['Global']
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: dict[int, str] = {}
        self._handles: tuple[Any, ...] = ()

    @property
    def is_bw(self) -> bool:
        """Return whether a backward pass is running, which is not followed here."""
        return False

    def _name(self, module: Any) -> str:
        if id(module) not in self._names:
            whole = type(module).__name__
            self._names.update({id(m): f"{whole}.{path}" if path else whole for path, m in module.named_modules()})
        return self._names[id(module)]

    def __enter__(self) -> ModuleTracker:
        self._handles = (
            register_module_forward_pre_hook(lambda module, args: self.parents.add(self._name(module))),
            register_module_forward_hook(lambda module, args, out: self.parents.discard(self._name(module)), always_call=True),
        )
        return self

    def __exit__(self, *error: Any) -> None:
        for handle in self._handles:
            handle.remove()


class CausalVariant(enum.IntEnum):
    """Tells where the triangle of a causal mask begins: at the first key, or such that the last query sees the last key."""

    UPPER_LEFT = enum.auto()
    LOWER_RIGHT = enum.auto()


class CausalBias(Tensor):
    """A mask of attention, true where a query sees a key, bool (L, S)."""

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int


def _causal(variant: CausalVariant, size: tuple[Any, ...]) -> CausalBias:
    sizes = size[0] if len(size) == 1 else size
    if len(sizes) != 2:
        raise AssertionError(f"causal_{variant.name.lower()} only supports 2D tensors, got {len(sizes)}D")
    q, kv = (int(n) for n in sizes)
    kept = OPS["ones"].call(q, kv, dtype=bool_).tril(kv - q if variant is CausalVariant.LOWER_RIGHT else 0)
    bias = kept.as_subclass(CausalBias)
    bias.variant, bias.seq_len_q, bias.seq_len_kv = variant, q, kv
    return bias  # type: ignore[no-any-return]


def causal_upper_left(*size: int) -> CausalBias:
    """Return the mask of L queries and S keys by which query i sees keys up to i."""
    return _causal(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """Return the mask of L queries and S keys by which the last query sees all keys."""
    return _causal(CausalVariant.LOWER_RIGHT, size)


def is_namedtuple(tree: Any) -> bool:
    """Return whether an object, or a class, is a named tuple's."""
    cls = tree if isinstance(tree, type) else type(tree)
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def key_get(obj: Any, key: Any) -> Any:
    """Return what stands at a key of a path."""
    return key.get(obj)


def treespec_pprint(treespec: Any) -> str:
    """Return a tree's structure as a text."""
    return repr(treespec)


#: of files that say nothing of it
_endianness: OrderedDict[str, Any] = OrderedDict()


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the order of bytes of files that say none. TypeError for what is none."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    if endianness is LoadEndianness.BIG:
        raise NotImplementedError("set_default_load_endianness(): old files in the other order of bytes are not read by this library")
    _endianness["default"] = endianness


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the order of bytes of files that say none, None for the processor's."""
    return _endianness.get("default")


def location_tag(storage: Any) -> str:
    """Return the device of a storage, as files name it."""
    return "cpu"


def default_restore_location(storage: Any, location: str) -> Any:
    """Return a storage at a place that a file names: the CPU."""
    return storage


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function that does what ``func`` does, which may write into tensors as it is, and calls no backward pass.

    remove: what PyTorch writes with other ops, "mutations" or "mutations_and_views"; RuntimeError for anything else.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize(func, remove=...): remove must be 'mutations' or 'mutations_and_views', not {remove!r}")

    @wraps(func)
    def functionalized(*args: Any, **kwargs: Any) -> Any:
        with transformed():
            return func(*args, **kwargs)

    return functionalized
