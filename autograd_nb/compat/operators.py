"""``torch.ops`` and ``torch.library``: ops by the names of PyTorch's dispatcher, and ops that programs declare themselves.

``torch.ops.aten.add.Tensor`` is a function of this library under PyTorch's name; an overload is the function itself, as functions look at their
arguments here. What a program declares with `custom_op` or `Library` is found as ``torch.ops.namespace.name``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from ..autograd.function import Function
from ..ops.core.registry import functions
from ..tensor import Tensor

#: "namespace::name" -> the op that a program declared
DECLARED: dict[str, CustomOpDef] = {}

_OWN_NAMES = {"_to_copy": "clone", "_unsafe_view": "reshape", "alias": "view_as", "_pin_memory": "clone", "slice": "narrow"}


def _own(name: str) -> Callable[..., Any] | None:
    """Return the function that PyTorch's dispatcher has as ``aten::name``, None where there is none here."""
    place, _, rest = name.partition("_")
    if place in ("linalg", "fft", "special") and rest in (known := functions(place)):
        return known[rest]
    for space in ("torch", "nn.functional"):
        public = functions(space).get(name)
        if public is not None:
            return public
    return getattr(Tensor, name, None)


class OpOverload:
    """One overload of an op: ``torch.ops.aten.add.Tensor``."""

    def __init__(self, packet: OpOverloadPacket, overload: str):
        self.overloadpacket, self._overloadname = packet, overload

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def name(self) -> str:
        """Return the name as the dispatcher has it: "aten::add.Tensor"."""
        end = "" if self._overloadname == "default" else "." + self._overloadname
        return self.overloadpacket._qualified_op_name + end

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket._qualified_op_name}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An op of a namespace, which gives its overloads as attributes: ``torch.ops.aten.add``."""

    def __init__(self, namespace: str, name: str, function: Callable[..., Any] | None):
        self.__name__, self._qualified_op_name, self._function = name, f"{namespace}::{name}", function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is None:
            raise NotImplementedError(f"torch.ops: there is no {self._qualified_op_name} in this library; call the public function that uses it")
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        found = self.__dict__[overload] = OpOverload(self, overload)
        return found

    def overloads(self) -> list[str]:
        """Return the names of overloads that were asked for, "default" among them."""
        return ["default", *(name for name, value in vars(self).items() if isinstance(value, OpOverload) and name != "default")]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")


class OpNamespace(ModuleType):
    """The ops of a namespace: ``torch.ops.aten``; those that a program declared, or in ``aten`` those of this library."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        space = self.__name__.rpartition(".")[2]
        function: Callable[..., Any] | None = DECLARED.get(f"{space}::{name}")
        if function is None and space in ("aten", "prims"):
            function = _own(_OWN_NAMES.get(name, name))
        elif function is None:
            raise AttributeError(f"'_OpNamespace' {space!r} object has no attribute {name!r}")
        packet = OpOverloadPacket(space, name, function)
        self.__dict__[name] = packet
        return packet


def load_library(path: Any) -> None:
    """Raise OSError: ops in C++ are not loaded here; packages go on without them, or say so."""
    raise OSError(f"torch.ops.load_library({path!r}): libraries of ops in C++ cannot be loaded by this library, whose kernels Numba compiles")


def namespace(name: str) -> Any:
    """Return what ``torch.ops`` gives as an attribute: the namespace of ops of this name, `load_library`, or the libraries that were loaded."""
    if name == "load_library":
        return load_library
    if name == "loaded_libraries":
        return frozenset()
    return _ATEN if name == "aten" else OpNamespace(f"torch.ops.{name}")


_ATEN = OpNamespace("torch.ops.aten")  # whose ops are the same each time


class CustomOpDef:
    """An op that a program declared: called, it computes with its kernel, and with the derivative that was registered for it."""

    def __init__(self, name: str, kernel: Callable[..., Any] | None = None):
        self._qualname, self._kernel = name, kernel
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self.__name__: str = name.rpartition("::")[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._kernel is None:
            raise NotImplementedError(f"{self._qualname}: no kernel for the CPU was registered; give one by impl() or register_kernel()")
        if self._backward is None or not any(isinstance(x, Tensor) and x.requires_grad for x in (*args, *kwargs.values())):
            return self._kernel(*args, **kwargs)
        return self._recorded(kwargs).apply(*args)

    def _recorded(self, named: dict[str, Any]) -> type[Function]:
        op = self

        class Recorded(Function):
            @staticmethod
            def forward(*args: Any) -> Any:
                assert op._kernel is not None
                return op._kernel(*args, **named)

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                if op._setup is not None:
                    op._setup(ctx, inputs, output, **({"keyword_only_inputs": named} if named else {}))

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                assert op._backward is not None
                return op._backward(ctx, *grads)

        Recorded.__name__ = self.__name__
        return Recorded

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Let ``fn`` compute the op where "cpu" is among the devices, or as a decorator."""
        if fn is None:
            return lambda given: self.register_kernel(device_types, given)
        devices = [device_types] if device_types is None or isinstance(device_types, str) else list(device_types)
        if any(d is None or str(d).lower() in ("cpu", "", "compositeexplicitautograd", "compositeimplicitautograd") for d in devices):
            self._kernel = fn
        return fn

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None) -> None:
        """Let ``backward(ctx, *gradients)`` be the derivative; ``setup_context(ctx, inputs, output)`` saves what it needs."""
        self._backward, self._setup = backward, setup_context

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Accept a function of tensors without values, which nothing here asks for, and return it."""
        return fn

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Accept a rule for batches, and return it: `vmap` maps over what the kernel calls."""
        return (lambda given: given) if func is None else func

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


def _declared(name: Any) -> CustomOpDef:
    if isinstance(name, CustomOpDef):
        return name
    if isinstance(name, (OpOverload, OpOverloadPacket)):
        name = (name.overloadpacket if isinstance(name, OpOverload) else name)._qualified_op_name
    key = name.partition("(")[0].strip().partition(".")[0]
    if "::" not in key:
        raise ValueError(f"the name of an op has the form namespace::name, got {name!r}")
    return DECLARED.setdefault(key, CustomOpDef(key))


def custom_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Sequence[str] = (), device_types: Any = None, schema: str | None = None,
    tags: Any = None,
) -> Any:  # fmt: skip
    """Declare an op, its kernel ``fn``, or return a decorator for it. ``mutates_args`` and ``schema`` are for PyTorch's compiler.

    >>> import autograd_nb as torch
    >>> @torch.library.custom_op("doc::twice", mutates_args=())
    ... def twice(x: torch.Tensor) -> torch.Tensor: return 2 * x
    >>> twice.register_autograd(lambda ctx, g: 2 * g)
    >>> torch.ops.doc.twice(torch.ones(2, requires_grad=True)).sum().backward()
    """
    if fn is None:
        return lambda given: custom_op(name, given, mutates_args=mutates_args, device_types=device_types)
    made = _declared(name)
    made.__doc__ = fn.__doc__
    made.register_kernel(device_types, fn)
    return made


def define(qualname: str, schema: str = "", *, lib: Any = None, tags: Any = ()) -> None:
    """Declare an op, whose kernels `impl` gives."""
    _declared(qualname)


def impl(qualname: str, types: Any, func: Callable[..., Any] | None = None, *, lib: Any = None) -> Any:
    """Let ``func`` compute an op that was declared, or return a decorator."""
    return _declared(qualname).register_kernel(types, func)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Let ``func`` compute an op that was declared, or return a decorator."""
    return _declared(op).register_kernel(device_types, func)


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Any = None) -> None:
    """Let ``backward`` be the derivative of an op that was declared."""
    _declared(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, _stacklevel: int = 1, allow_override: bool = False) -> Any:
    """Accept a function of tensors without values, and return it, or a decorator that does."""
    return (lambda given: given) if func is None else func


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Accept a rule for batches, and return it, or a decorator that does."""
    return (lambda given: given) if func is None else func


class Library:
    """The ops of a namespace that a program declares: ``Library("mine", "DEF")``."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        self.ns: str = ns
        self.kind: str = kind

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declare ``name(Tensor x) -> Tensor`` and return the name."""
        return _declared(f"{self.ns}::{schema}").__name__

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False, allow_override: bool = False) -> None:
        """Let ``fn`` compute an op, where the key is the CPU's or that of all devices; the ops of PyTorch's own namespaces stay as they are."""
        if self.ns != "aten":
            name = op_name if isinstance(op_name, str) else op_name.__name__
            _declared(name if "::" in name else f"{self.ns}::{name}").register_kernel(dispatch_key, fn)
