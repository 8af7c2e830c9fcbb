"""`Proxy`: stands for a value while a program is traced, and records what is done with it.

Source: https://docs.pytorch.org/docs/stable/fx.html#torch.fx.Proxy
"""

from __future__ import annotations

import dis
import enum
import inspect
import operator
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from ...autograd.torch_function import INTERCEPTION, nowrap_functions
from ...dtypes import dtype
from ...ops.creation.device import device, layout, memory_format
from ...shapes import Size
from ...tensor import Tensor
from .codegen import MAGIC, REFLECTABLE
from .graph import Graph
from .immutable_collections import immutable_dict
from .node import Node, map_aggregate, public_name

#: values that steps have as arguments themselves
base_types: tuple[type, ...] = (
    str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout, enum.Enum, type(None), type(Ellipsis), Size,
)  # fmt: skip


class TraceError(ValueError):
    """The error for what a program does with a value that cannot be traced."""


class TracerBase:
    """The base of what makes steps of a graph, and proxies for their results."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None, type_expr: Any = None
    ) -> Node:  # fmt: skip
        """Add a step to the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """Return what stands for the result of a step."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Any] | None = None,
    ) -> Any:  # fmt: skip
        """Add a step whose arguments are proxies and values, and return what stands for its result."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Any:
        """Return an argument as a step has it: proxies as their steps. NotImplementedError for what graphs cannot hold."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, Size):
            return a
        if isinstance(a, tuple):
            made = [self.create_arg(v) for v in a]
            return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
        if isinstance(a, list):
            return [self.create_arg(v) for v in a]
        if isinstance(a, dict):
            for k in a:
                map_aggregate(k, self._refuse_key)
            return immutable_dict({k: self.create_arg(v) for k, v in a.items()})
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, base_types) or a is ... or isinstance(a, type) or callable(a):
            return a
        if is_dataclass(a):
            return self.create_node("call_function", a.__class__, (), {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)})
        raise NotImplementedError(f"argument of type: {type(a)} cannot be in a graph (torch.fx: tensors, numbers, strings, containers, dataclasses, functions)")

    @staticmethod
    def _refuse_key(key: Any) -> Any:
        if isinstance(key, Proxy):
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Raise TraceError: a traced program cannot branch by a value."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Return the parts of a value where the program unpacks it into a known number of names. TraceError else."""
        frame: Any = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        steps = {i.offset: i for i in dis.get_instructions(frame.f_code)}
        found = steps.get(frame.f_lasti)
        if found is not None and found.opname == "UNPACK_SEQUENCE":
            return iter([operator.getitem(obj, i) for i in range(found.arg or 0)])  # type: ignore[call-overload]
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function argument. "
            "Make the number of steps known: for i in range(n): x[i]"
        )

    def keys(self, obj: Proxy) -> Any:
        """Return what stands for the keys of a value."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds steps to a graph that is there."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """Stands for the result of a step; operators, methods, attributes and functions of it become steps.

    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder("x"))
    >>> (x.relu() + 1).node.name
    'add'
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer: TracerBase = tracer if tracer is not None else GraphAppendingTracer(node.graph)
        self.node = node
        INTERCEPTION.enter()  # functions ask for it while there is one
        self._entered = True

    _entered = False

    def __del__(self) -> None:
        if self._entered:
            INTERCEPTION.leave()

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k in ("node", "tracer") or (k.startswith("__") and k.endswith("__")):
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, key, value), {})

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call torch.fx.wrap('len') at module scope"
        )

    def __contains__(self, value: Any) -> bool:
        raise TraceError("'in' cannot be traced: a traced program cannot branch by a value")

    def __index__(self) -> int:
        return int(self.tracer.to_bool(self))

    def keys(self) -> Any:
        """Return what stands for the keys."""
        return self.tracer.keys(self)

    __hash__ = object.__hash__

    def __deepcopy__(self, memo: Any) -> Proxy:
        return self

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return what stands for the result of a function of this library."""
        found: list[TracerBase] = []

        def look(a: Any) -> Any:
            if isinstance(a, Proxy):
                found.append(a.tracer)
            return a

        map_aggregate(args, look)
        map_aggregate(kwargs or {}, look)
        if any(t is not found[0] for t in found):
            raise RuntimeError(f"Found multiple different tracers {found} while trying to trace operations {orig_method}")
        if _is_method(orig_method):
            return found[0].create_proxy("call_method", orig_method.__name__, args, kwargs or {})
        return found[0].create_proxy("call_function", orig_method, args, kwargs or {}, name=_short_name(orig_method))


def _short_name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__)).rpartition(".")[2]


def _is_method(function: Any) -> bool:
    """Return whether a function is only found as a method of tensors."""
    return function in nowrap_functions() or (public_name(function) or "torch.Tensor.").startswith("torch.Tensor.")


class Attribute(Proxy):
    """Stands for an attribute, or for a method until it is called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root: Proxy = root
        self.attr: str = attr
        self.tracer = root.tracer
        self._node: Any = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """Return the step that reads it, which is made when it is first wanted."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node  # type: ignore[no-any-return]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _operator(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)

    def call(*args: Any) -> Any:
        return args[0].tracer.create_proxy("call_function", function, args, {})

    return call


def _reflected(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)
    return lambda self, other: self.tracer.create_proxy("call_function", function, (other, self), {})


for _name in MAGIC:
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name))
for _name in REFLECTABLE:
    setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_name))
