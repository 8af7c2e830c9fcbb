"""`GraphModule`: a module whose ``forward`` is written from a graph.

Source: https://docs.pytorch.org/docs/stable/fx.html#torch.fx.GraphModule
"""

from __future__ import annotations

import copy
import itertools
import linecache
from typing import Any

from ...nn import Module, Parameter
from ...tensor import Tensor
from .codegen import builtin_globals
from .graph import Graph
from .node import Node

_numbers = itertools.count()


class Above:
    """The tracer that pickles are traced with, handed in by its module."""

    tracer: Any


above: Above = Above()


def _forward_of(source: str, names: dict[str, Any]) -> Any:
    """Return the function ``forward`` of a text, which tracebacks can show."""
    names = dict(names)
    file = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), names)
    return names["forward"]


def _copy_attribute(source: Module, target: Module, name: str) -> None:
    *above, last = name.split(".")
    for part in above:
        found = getattr(source, part, None)
        if found is None:
            return
        if getattr(target, part, None) is found:  # it is there as a whole
            return
        if not hasattr(target, part):
            setattr(target, part, Module())
        source, target = found, getattr(target, part)
    value = getattr(source, last)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        target.register_buffer(last, value, persistent=last not in getattr(source, "_non_persistent_buffers_set", ()))
    else:
        setattr(target, last, value)


_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class _CodeOnlyModule(Module):
    """A module with the attributes of another, without its methods: what a graph module is copied by."""

    def __init__(self, body: dict[str, Any]):
        super().__init__()
        self.__dict__ = body


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Copy a parameter, buffer or other attribute, named by its path, with the modules on the way."""
    _copy_attribute(from_module, to_module, target)


def _assign(value: Any, target: Module, name: str) -> None:
    *above, last = name.split(".")
    for part in above:
        if not hasattr(target, part):
            setattr(target, part, Module())
        target = getattr(target, part)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        target.register_buffer(last, value)
    else:
        setattr(target, last, value)


class GraphModule(Module):
    """A module that runs a graph: ``graph`` is what it does, ``code`` the text that was written from it.

    root: the module, or a dict of qualified names, that has what the graph reads and calls. After a change of the graph `recompile` writes the
    code anew. It is saved, copied and pickled as any module; pickling goes by the code.

    >>> graph = torch.fx.Graph()
    >>> _ = graph.output(graph.call_function(torch.neg, (graph.placeholder("x"),)))
    >>> torch.fx.GraphModule(torch.nn.Module(), graph)(torch.tensor(2.))
    tensor(-2.)
    """

    _graph: Graph
    _code: str

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        base = next(c for c in cls.__mro__ if "_of_one_object" not in vars(c))
        own = type("GraphModuleImpl", (base,), {"_of_one_object": True, "__module__": cls.__module__})
        return super().__new__(own)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        wanted = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for name in wanted:
                _copy_attribute(root, self, name)
        elif isinstance(root, dict):
            for name in wanted:
                if name not in root:
                    raise RuntimeError(f"Node target {name} is referenced by the graph, but a target of that name was not provided in `root`!")
            for name in sorted(set(wanted), key=lambda name: name.count(".")):
                _assign(root[name], self, name)
        else:
            raise RuntimeError(f"Unsupported type {type(root).__name__} passed for root! It must be a Module or a dict of qualified names")
        self.graph = graph
        self._tracer_cls = graph._tracer_cls
        self.meta: dict[str, Any] = {}
        if isinstance(root, Module) and isinstance(getattr(root, "meta", None), dict):
            self.meta.update(root.meta)

    @property
    def graph(self) -> Graph:
        """Return what the module does; assigning another graph recompiles."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = copy.deepcopy(g) if g.owning_module is not None and g.owning_module is not self else g
        self._graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """Return the text of ``forward``."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug: call recompile() first")
        return self._code

    def recompile(self) -> Any:
        """Write ``forward`` from the graph, after a change of it."""
        written = self._graph.python_code("self")
        self._code = written.src
        self.__class__.forward = _forward_of(written.src, written.globals)  # type: ignore[method-assign, assignment]
        return written

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a qualified name; False where something else than a module is on the way."""
        *above, last = target.split(".")
        place: Any = self
        for part in above:
            if not hasattr(place, part):
                setattr(place, part, Module())
            place = getattr(place, part)
            if not isinstance(place, Module):
                return False
        place.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take the module at a qualified name away; whether there was one."""
        *above, last = target.split(".")
        place: Any = self
        for part in above:
            place = getattr(place, part, None)
        if not isinstance(getattr(place, last, None), Module):
            return False
        delattr(place, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take away the modules that the graph neither calls nor reads from."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[: k + 1]) for k in range(len(parts)))
                if node.op == "call_module":
                    used.update(f"{node.target}.{name}" for name, _ in self.get_submodule(node.target).named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def __deepcopy__(self, memo: Any) -> GraphModule:
        holder = Module()
        holder.__dict__ = copy.deepcopy({k: v for k, v in self.__dict__.items() if k != "_graph"}, memo)
        new: GraphModule = GraphModule.__new__(type(self))
        GraphModule.__init__(new, holder, copy.deepcopy(self._graph), self.__class__.__name__)
        for name, value in holder.__dict__.items():
            if name not in ("_code", "_graph") and name not in new.__dict__:
                new.__dict__[name] = value
        for kept in ("_parameters", "_buffers", "_modules"):
            for name, value in holder.__dict__[kept].items():
                new.__dict__[kept].setdefault(name, value)
        for hooks in ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_forward_hooks", "_forward_pre_hooks"):
            if hooks in holder.__dict__:
                new.__dict__[hooks] = holder.__dict__[hooks]
        new.training, new.meta = self.training, holder.__dict__.get("meta", {})
        memo[id(self)] = new
        return new

    def __copy__(self) -> GraphModule:
        return GraphModule(self, self.graph, self.__class__.__name__)

    def __reduce__(self) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k != "_graph"}
        written = self._graph.python_code("self")
        return (_unpickled, (state, self.__class__.__name__, written.src, _importable(written.globals)))

    __reduce_ex__ = lambda self, protocol: self.__reduce__()  # type: ignore[assignment]

    def __str__(self) -> str:
        return "\n".join([super().__str__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`"])

    def print_readable(self, print_output: bool = True, *args: Any, **kwargs: Any) -> str:
        """Return, and print, the class with its code."""
        body = "\n".join("    " + line for line in self._code.strip("\n").split("\n"))
        text = f"class {self.__class__.__name__}(torch.nn.Module):\n{body}"
        if print_output:
            print(text)
        return text


def _importable(names: dict[str, Any]) -> dict[str, Any]:
    """Return the objects that a text names and that pickle can take along; those that every text finds are left out."""
    return {name: value for name, value in names.items() if name not in builtin_globals()}


def _unpickled(state: dict[str, Any], class_name: str, source: str, names: dict[str, Any]) -> GraphModule:
    """Return the module of a pickle, whose graph is traced from its code."""
    Tracer: Any = above.tracer
    holder = type(class_name, (Module,), {"forward": _forward_of(source, {**builtin_globals(), **names})})()
    holder.__dict__.update(state)

    class KeepModules(Tracer):  # type: ignore[misc]
        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    graph = KeepModules().trace(holder)
    graph._tracer_cls = state.get("_tracer_cls")
    new = GraphModule(holder, graph, class_name)
    for name, value in state.items():
        if name not in new.__dict__ and name != "_code":
            new.__dict__[name] = value
    for kept in ("_parameters", "_buffers", "_modules"):
        for name, value in state[kept].items():
            new.__dict__[kept].setdefault(name, value)
    return new


__all__ = ["GraphModule", "Node"]
