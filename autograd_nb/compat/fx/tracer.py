"""Tracing: a program is run on proxies, and what it does is written into a graph.

Source: https://docs.pytorch.org/docs/stable/fx.html#torch.fx.Tracer
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

from ...autograd.torch_function import INTERCEPTION
from ...nn import Module, Parameter, Sequential
from ...tensor import Tensor
from ..checks import _assert
from .graph import Graph
from .graph_module import GraphModule, above
from .node import Node, map_aggregate
from .proxy import Proxy, TracerBase
from .wrapping import WRAPPED, wrap

_PACKAGE = __name__.partition(".")[0]
_tracing = [0]


def is_fx_tracing() -> bool:
    """Return whether a program is being traced."""
    return bool(_tracing[0])


def _proxies(values: Any) -> list[Proxy]:
    found: list[Proxy] = []
    map_aggregate(values, lambda v: found.append(v) if isinstance(v, Proxy) else None)
    return found


def _recorded(function: Callable[..., Any], method: str | None = None) -> Callable[..., Any]:
    """Return a function whose calls with proxies are steps."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = _proxies((args, kwargs))
        if not found:
            return function(*args, **kwargs)
        result = found[0].tracer.create_proxy("call_function", function, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


class PHWithMeta:
    """An input that keeps a place, with notes for its step."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


class _Placeholder:
    """PyTorch's ``PH``: marks, among concrete arguments, what is an input all the same."""

    def __repr__(self) -> str:
        return "PH"


PH = _Placeholder()


class Tracer(TracerBase):
    """Traces modules and functions; what is overridden says how.

    `is_leaf_module`: modules whose calls are one step (those of `nn` but for `Sequential`). ``autowrap_modules`` and ``autowrap_functions``:
    functions whose calls with proxies are steps. ``param_shapes_constant`` is accepted: shapes of parameters are numbers here in any case.
    """

    def __init__(
        self, autowrap_modules: tuple[ModuleType, ...] = (math,), autowrap_functions: tuple[Callable[..., Any], ...] = (), param_shapes_constant: bool = False
    ) -> None:  # fmt: skip
        self._autowrap_search, self._autowrap_functions = list(autowrap_modules), tuple(autowrap_functions)
        self.param_shapes_constant = param_shapes_constant
        self.root: Any = None
        self.module_stack: dict[str, tuple[str, Any]] = {}

    def create_arg(self, a: Any) -> Any:
        """Return an argument as a step has it; parameters, buffers, other tensors and modules of the root as readings of attributes."""
        if isinstance(a, Parameter) or (isinstance(a, Tensor) and not isinstance(a, Proxy)):
            named = self.root.named_parameters() if isinstance(a, Parameter) else self.root.named_buffers()
            for name, value in named:
                if value is a:
                    return self.create_node("get_attr", name, (), {})
            if isinstance(a, Parameter):
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", self._constant(a), (), {})
        if isinstance(a, Module):
            for name, module in self.root.named_modules():
                if module is a:
                    return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _constant(self, a: Tensor) -> str:
        name = self.tensor_attrs.get(id(a))
        if name is None:
            k = 0
            while hasattr(self.root, f"_tensor_constant{k}"):
                k += 1
            name = f"_tensor_constant{k}"
            self.tensor_attrs[id(a)] = name
            setattr(self.root, name, a)
        return name

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Return whether calls of a module are one step; to be overridden."""
        place = m.__module__
        own = place.startswith((f"{_PACKAGE}.nn", "torch.nn", f"{_PACKAGE}.ao.nn"))
        return own and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """Return the name of a module below the root. NameError where it is not there."""
        for name, module in self.root.named_modules():
            if module is mod:
                return str(name)
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a call of a module gives: a step for a leaf, else what its ``forward`` gives."""
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return self.create_proxy("call_module", name, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return what a module gives for an attribute that is a parameter or buffer: a step that reads it."""
        kinds: list[tuple[Any, Any]] = [(Parameter, self.root.named_parameters)]
        if self.proxy_buffer_attributes:
            kinds.append((Tensor, self.root.named_buffers))
        for kind, named in kinds:
            if isinstance(attr_val, kind):
                for name, value in named():
                    if value is attr_val:
                        if name not in parameter_proxy_cache:
                            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                        return parameter_proxy_cache[name]
        return attr_val

    # -------------------------------------------------------------------------------------------------- inputs

    def _input(self, name: str, concrete: Any, default: Any, kind: Any) -> Any:
        if name in concrete and not isinstance(concrete[name], (_Placeholder, PHWithMeta)):
            return self._checked_input(name, concrete[name])
        args = () if default is inspect.Parameter.empty else (default,)
        return self.create_proxy("placeholder", name, args, {}, type_expr=kind)

    def _checked_input(self, name: str, value: Any) -> Any:
        """Return a value that the traced program is made for; its input stays, and is compared when the program is called."""
        if value is ... or isinstance(value, (tuple, list, dict)):
            def each(v: Any) -> Any:
                if isinstance(v, (_Placeholder, PHWithMeta)):
                    raise NotImplementedError(f"concrete_args: inputs within containers (of {name!r}) are not in this library; give the container's parts")
                return v

            map_aggregate(value, each)
        plain = isinstance(value, (bool, int, float, str, type(None)))
        proxy = self.create_proxy("placeholder", f"{name}_1", (value,) if plain else (), {})
        if plain and value is not None:
            message = f"{name} has been specialized to have value {value} but got another value"
            same = self.create_proxy("call_function", operator.eq, (proxy, value), {})
            self.create_proxy("call_function", _assert, (same, message), {})
        return value

    def create_args_for_root(self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None) -> tuple[Any, list[Any]]:
        """Return the function to run, and the proxies and values to run it on."""
        function = inspect.unwrap(root_fn)
        signature, hints = inspect.signature(function), getattr(function, "__annotations__", {})
        args: list[Any] = [self.root] if is_module else []
        concrete = concrete_args or {}
        names = list(signature.parameters.values())[1 if is_module else 0 :]
        if isinstance(concrete, tuple):
            if len(concrete) != len(names):
                raise RuntimeError(f"Tracing expected {len(names)} arguments but got {len(concrete)} concrete arguments")
            concrete = {p.name: v for p, v in zip(names, concrete, strict=True)}
        keywords: dict[str, Any] = {}
        for p in names:
            kind = hints.get(p.name)
            kind = None if isinstance(kind, str) else kind
            if p.kind is p.VAR_POSITIONAL:
                args.append(self.create_proxy("placeholder", f"*{p.name}", (), {}))
            elif p.kind is p.VAR_KEYWORD:
                keywords[f"**{p.name}"] = self.create_proxy("placeholder", f"**{p.name}", (), {})
            elif p.kind is p.KEYWORD_ONLY:
                keywords[p.name] = self._input(p.name, concrete, p.default, kind)
            else:
                args.append(self._input(p.name, concrete, p.default, kind))
        if keywords or any(p.kind is p.VAR_POSITIONAL for p in names):
            root_fn = _packed(function, names, keywords, is_module)
        return root_fn, args

    def trace(self, root: Module | Callable[..., Any], concrete_args: Any = None) -> Graph:
        """Return the graph of a module's ``forward`` or of a function."""
        if isinstance(root, Module):
            self.root = root
            function = getattr(type(root), self.traced_func_name)
        else:
            self.root, function = Module(), root
        self.root_module_name: str = type(self.root).__name__
        self.tensor_attrs: dict[int, str] = {}
        for prefix, module in self.root.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, Tensor):
                    self.tensor_attrs[id(value)] = f"{prefix}.{name}" if prefix else name
        self.graph: Graph = Graph(tracer_cls=type(self))
        run, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        with _standing(self, function):
            result = run(*args)
        hints = getattr(inspect.unwrap(function), "__annotations__", {}).get("return")
        self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=None if isinstance(hints, str) else hints)
        return self.graph

    def __deepcopy__(self, memo: Any) -> Tracer:
        return type(self).__new__(type(self))


above.tracer = Tracer


def _packed(function: Callable[..., Any], names: list[inspect.Parameter], keywords: dict[str, Any], is_module: bool) -> Callable[..., Any]:
    """Return a function that stands for one with ``*args``, ``**kwargs`` or keywords: within it these are proxies."""
    code = function.__code__  # type: ignore[attr-defined]
    starred = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    n = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    plain = code.replace(co_argcount=n, co_kwonlyargcount=0, co_posonlyargcount=0, co_flags=code.co_flags & ~starred)
    made = FunctionType(plain, function.__globals__, function.__name__, None, function.__closure__)  # type: ignore[attr-defined]
    order = code.co_varnames[:n]

    def run(*args: Any) -> Any:
        given = dict(keywords)
        positional = [p for p in names if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
        first = 1 if is_module else 0
        given.update({p.name: a for p, a in zip(positional, args[first:], strict=True)})
        if is_module:
            given[order[0]] = args[0]
        return made(*[given[name] if name in given else given[f"**{name}"] for name in order])

    return run


@contextmanager
def _standing(tracer: Tracer, function: Callable[..., Any]) -> Iterator[None]:
    """Let modules' calls and parameters, and wrapped functions, be steps within the context."""
    cache: dict[str, Any] = {}
    call, read = Module.__call__, Module.__getattr__

    def of_module(mod: Module, *args: Any, **kwargs: Any) -> Any:
        return tracer.call_module(mod, lambda *a, **k: call(mod, *a, **k), args, kwargs)

    def attribute(mod: Module, attr: str) -> Any:
        return tracer.getattr(attr, read(mod, attr), cache)

    undo: list[tuple[dict[str, Any], str, Any]] = []

    def stand(place: dict[str, Any], name: str) -> None:
        value: Any = place.get(name, vars(builtins).get(name))
        undo.append((place, name, place.get(name, undo)))
        place[name] = _recorded(value)

    own = {id(f) for f in tracer._autowrap_functions}
    own |= {id(v) for module in tracer._autowrap_search for name, v in vars(module).items() if callable(v) and not name.startswith("_")}
    places: dict[int, dict[str, Any]] = {id(p): p for p in [getattr(function, "__globals__", {}), *(vars(m) for m in tracer._autowrap_search)]}
    for place in places.values():
        for name, value in list(place.items()):
            if not name.startswith("_") and callable(value) and id(value) in own:
                stand(place, name)
    for (_, name), place in list(WRAPPED.items()):
        stand(place, name)
    Module.__call__, Module.__getattr__ = of_module, attribute  # type: ignore[method-assign, assignment]
    INTERCEPTION.enter()
    _tracing[0] += 1
    try:
        yield
    finally:
        _tracing[0] -= 1
        INTERCEPTION.leave()
        Module.__call__, Module.__getattr__ = call, read  # type: ignore[method-assign]
        for place, name, before in reversed(undo):
            if before is undo:
                place.pop(name, None)
            else:
                place[name] = before


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: Any = None) -> GraphModule:
    """Return the graph of a module or function as a module.

    The program is run once on stand-ins for values; so it may not branch by a value. ``concrete_args`` fixes arguments by name.

    Source: https://docs.pytorch.org/docs/stable/fx.html#torch.fx.symbolic_trace

    >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    >>> traced(torch.tensor([-1., 2.]))
    tensor([1., 3.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


__all__ = ["Node", "PH", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]
