"""`Graph`: a program as a list of steps, which can be rewritten. Source: https://docs.pytorch.org/docs/stable/fx.html#torch.fx.Graph"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from .codegen import Namespace, PythonCode, python_code
from .node import Node, _get_qualified_name, map_arg

_Namespace = Namespace


class _node_list:
    """The steps of a graph in order; it may be changed while one walks along."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph: Graph = graph
        self.direction: str = direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root, node = self.graph._root, getattr(self.graph._root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_next" if self.direction == "_prev" else "_prev")


class _InsertPoint:
    """A context in which new steps stand at another place."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph: Graph = graph
        self.before: Callable[[Node], None] = graph._insert
        graph._insert = insert

    def __enter__(self) -> None: ...

    def __exit__(self, *error: Any) -> None:
        self.graph._insert = self.before


def _snake_case(name: str) -> str:
    text = "".join("_" + c.lower() if c.isupper() and i and not name[i - 1].isupper() and name[i - 1] != "_" else c.lower() for i, c in enumerate(name))
    return text


class Graph:
    """A list of steps (`Node`), each with what it uses and who uses it.

    New steps stand at the end, or where `inserting_before` and `inserting_after` say. `lint` checks the rules, `python_code` writes the program.

    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(torch.relu, (x,))
    >>> _ = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._len = 0
        self._insert: Callable[[Node], None] = self._root.prepend
        self._graph_namespace = Namespace()
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self.owning_module = owning_module
        self._used_names: dict[str, int] = {}

    @property
    def nodes(self) -> _node_list:
        """Return the steps in order."""
        return _node_list(self)

    @property
    def output_node_or_none(self) -> Node | None:
        """Return the last step, or None where none was made."""
        last = self._root._prev
        return last if last.op == "output" else None

    def output_node(self) -> Node:
        """Return the step that returns."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """Return the steps of a kind, with a ``target`` if it is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # ------------------------------------------------------------------------------------------------- making steps

    def _target_to_str(self, target: Any) -> str:
        text = target if isinstance(target, str) else target.__name__
        if text.startswith("__") and text.endswith("__"):
            text = text[2:-2]
        return _snake_case(text)

    def create_node(
        self, op: str, target: Any, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None, name: str | None = None, type_expr: Any = None
    ) -> Node:  # fmt: skip
        """Add a step of any kind where new steps stand."""
        args, kwargs = args or (), kwargs or {}
        for used in [v for v in [*args, *kwargs.values()] if isinstance(v, Node)]:
            if used.graph is not self:
                raise RuntimeError(f"Node argument '{used}' of a new step belongs to another Graph")
        found = self._graph_namespace.create_name(name if name is not None else self._target_to_str(target), None)
        node = Node(self, found, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(found, node)
        self._insert(node)
        self._len += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = None, **given: Any) -> Node:
        """Add an input; ``*name`` and ``**name`` take the rest of the arguments."""
        return self.create_node("placeholder", name, (default_value,) if default_value is not None else (), type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add the reading of an attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Add a call of a child module."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function: Callable[..., Any], args: Any = None, kwargs: Any = None, type_expr: Any = None, name: Any = None) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the step that returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Add a copy of a step, from another graph as a rule; ``arg_transform`` says what stands for its arguments."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, dict(kwargs), node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False) -> Any:
        """Add copies of all steps of a graph, and return its result; ``val_map``: what stands for its steps, which is completed."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        new = Graph(tracer_cls=self._tracer_cls)
        made: dict[Node, Any] = {}
        result = new.graph_copy(self, made, return_output_node=True)
        if result is not None:
            output = new.output(result[0], result[1].type)
            output.meta = copy.copy(result[1].meta)
        return new

    # ----------------------------------------------------------------------------------------------- changing steps

    def erase_node(self, to_erase: Node) -> None:
        """Take a step out. RuntimeError where it is used."""
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {dict(to_erase.users)}! "
                "(replace_all_uses_with gives them another)"
            )
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update(map_arg(to_erase.args, lambda n: None), map_arg(to_erase.kwargs, lambda n: None))

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Let new steps stand before ``n``, or at the beginning, within a ``with`` block or from now on."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Let new steps stand behind ``n``, or at the end, within a ``with`` block or from now on."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take out the steps that nobody uses and that have no effects; whether there were any."""
        impure = is_impure_node or Node.is_impure
        before = len(self.nodes)
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
        return len(self.nodes) < before

    def lint(self) -> None:
        """Check that the steps follow one another, have names of their own, and name what their module has. RuntimeError else."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used not in seen:
                    there = used.graph is self and not used._erased
                    what = "was used before it has been defined!" if there else "does not belong to this Graph, or was erased!"
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' {what} Please check that Nodes in the graph are topologically ordered\n{self}")
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                if node.op in ("get_attr", "call_module"):
                    self._check_target(node)

    def _check_target(self, node: Node) -> None:
        place = self.owning_module
        for part in node.target.split("."):
            if not hasattr(place, part):
                raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part} of {type(place).__name__}")
            place = getattr(place, part)

    # ------------------------------------------------------------------------------------------------------- texts

    def python_code(self, root_module: str = "self", *, verbose: bool = False, **options: Any) -> PythonCode:
        """Return the function that does what the graph says: its text, and the objects that this names."""
        return python_code(self, root_module)

    def __str__(self) -> str:
        names: list[str] = []
        returns = [""]
        lines = [node.format_node(None, returns) for node in self.nodes]
        return f"graph({', '.join(names)}){returns[0]}:" + "".join(f"\n    {line}" for line in lines if line)

    def print_tabular(self) -> None:
        """Print the steps as a table.

        >>> torch.fx.symbolic_trace(lambda x: x + 1).graph.print_tabular()
        opcode         name    target                   args    kwargs
        -------------  ------  -----------------------  ------  --------
        placeholder    x       x                        ()      {}
        call_function  add     <built-in function add>  (x, 1)  {}
        output         output  output                   (add,)  {}
        """
        rows = [["opcode", "name", "target", "args", "kwargs"]]
        rows += [[n.op, n.name, str(n.target), str(tuple(n.args)), str(dict(n.kwargs))] for n in self.nodes]
        widths = [max(len(row[k]) for row in rows) for k in range(5)]
        widths = [max(w, len(title) + 2) for w, title in zip(widths, rows[0], strict=True)]
        for row in (rows[0], ["-" * w for w in widths], *rows[1:]):
            print("  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip())


__all__ = ["Graph", "Namespace", "PythonCode", "_get_qualified_name"]
