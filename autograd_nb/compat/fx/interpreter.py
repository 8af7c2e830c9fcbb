"""Running graphs step by step, and writing new ones while doing so.

Source: https://docs.pytorch.org/docs/stable/fx.html#torch.fx.Interpreter
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...nn import Module
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_aggregate, map_arg
from .proxy import Proxy
from .tracer import Tracer


class Interpreter:
    """Runs the steps of a graph one after the other; a subclass overrides what becomes of a kind of step.

    >>> class Counting(torch.fx.Interpreter):
    ...     n = 0
    ...     def call_function(self, target, args, kwargs):
    ...         self.n += 1
    ...         return super().call_function(target, args, kwargs)
    >>> run = Counting(torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1))
    >>> run.run(torch.tensor(-1.)), run.n
    (tensor(1.), 2)
    """

    args_iter: Iterator[Any]

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module: Any = module
        self.submodules: dict[str, Module] = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else self.module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(self.graph.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    self.user_to_last_uses.setdefault(node, []).append(used)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Return the result of the graph for these inputs; ``initial_env``: results of steps that are known already."""
        self.env = initial_env if initial_env is not None else {}
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback and error.args and isinstance(error.args[0], str):
                    error.add_note(f"While executing {node.format_node()}")
                raise
            if self.garbage_collect_values:
                for gone in self.user_to_last_uses.get(node, []):
                    del self.env[gone]
            if node.op == "output":
                return self.env[node]
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Return `run` of a list's contents, which is emptied."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """Return the result of one step."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the next input; its default where none is left. RuntimeError without one."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!") from None

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a child module."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the graph returns."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Return an attribute of the module by its qualified name. RuntimeError where there is none."""
        found, parts = self.module, target.split(".")
        for k, part in enumerate(parts):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: k + 1])}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """Return a step's arguments with results in the place of steps."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Return ``args`` with results in the place of steps. RuntimeError for a step without one."""

        def value(used: Node) -> Any:
            if used not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {used}! Run Graph.lint() to diagnose such issues")
            return self.env[used]

        return map_arg(args, value)


class Transformer(Interpreter):
    """An interpreter whose run writes a new module: `transform` gives it.

    >>> class Negated(torch.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(torch.neg if target is torch.relu else target, args, kwargs)
    >>> Negated(torch.fx.symbolic_trace(lambda x: torch.relu(x))).transform()(torch.tensor(2.))
    tensor(-2.)
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph: Graph = Graph()
        new_graph = self.new_graph

        class TransformerTracer(Tracer):
            def __init__(self) -> None:
                super().__init__()
                self.graph, self.root, self.tensor_attrs = new_graph, module, {}

            def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
                return True

        self.tracer: Tracer = TransformerTracer()

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what stands for an input."""
        return Proxy(self.new_graph.placeholder(target, default_value=args[0] if args else None), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what stands for an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what stands for the result of a child module."""
        return self.tracer.call_module(self.fetch_attr(target), self.fetch_attr(target).forward, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what stands for the result of a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Return the new module."""
        result = super().run()
        if result is not None:
            self.new_graph.output(map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a))
        return GraphModule(self.module, self.new_graph)


__all__ = ["Interpreter", "Transformer"]
