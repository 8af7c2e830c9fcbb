"""`Node`: one step of a graph. Source: https://docs.pytorch.org/docs/stable/fx.html#torch.fx.Node"""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ... import fft, linalg, nn, special
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

OPS = ("placeholder", "get_attr", "call_function", "call_module", "call_method", "output", "root")
_PACKAGE = __name__.partition(".")[0]
Argument = Target = Any


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Return ``a`` with ``fn`` of each element in the place of it, within tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        found = tuple([map_aggregate(v, fn) for v in a])
        return found if not hasattr(a, "_fields") else type(a)(*found)
    if isinstance(a, list):
        return immutable_list([map_aggregate(v, fn) for v in a])
    if isinstance(a, dict):
        return immutable_dict({k: map_aggregate(v, fn) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Return ``a`` with ``fn(node)`` in the place of each node in it."""
    return map_aggregate(a, lambda v: fn(v) if isinstance(v, Node) else v)


def public_name(obj: Any) -> str | None:
    """Return by which name PyTorch's programs find an object of this library ("torch.relu"); None for others."""
    name = getattr(obj, "__name__", "")
    package = sys.modules[_PACKAGE]
    places = [("torch", package), ("torch.nn.functional", nn.functional), ("torch.linalg", linalg), ("torch.fft", fft), ("torch.special", special)]
    for prefix, module in places:
        for own in (name, name.rpartition(".")[2]):
            if own and vars(module).get(own) is obj:
                return f"{prefix}.{own}"
    if getattr(package.Tensor, name, None) is obj:
        return f"torch.Tensor.{name}"
    module_name = getattr(obj, "__module__", None) or ""
    if module_name.partition(".")[0] in (_PACKAGE, "torch") and name:
        return f"torch.{module_name.partition('.')[2]}.{name}".replace("..", ".")
    return None


def _get_qualified_name(func: Any) -> str:
    """Return the name by which generated code finds a function."""
    name = getattr(func, "__name__", type(func).__name__)
    if getattr(builtins, name, None) is func:
        return str(name)
    found = public_name(func)
    if found is not None:
        return found
    if name == "<lambda>":
        name = getattr(func, "__qualname__", name).replace("<lambda>", "_lambda_")
    module = getattr(func, "__module__", None) or ""
    return f"{'operator' if module == '_operator' else module}.{name}"


class Node:
    """A step of a graph: what is called (``op``, ``target``), with what (``args``, ``kwargs``), and who uses the result (``users``).

    ``op`` is "placeholder", "get_attr", "call_function", "call_module", "call_method" or "output". Lists and dicts among the arguments cannot be
    changed; assigning ``args`` or ``kwargs`` keeps ``users`` right. ``meta`` is for notes.
    """

    _args: tuple[Any, ...]
    _kwargs: dict[str, Any]

    def __init__(
        self, graph: Graph, name: str, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], return_type: Any = None
    ) -> None:  # fmt: skip
        if op not in OPS:
            raise AssertionError(f"Node: argument 'op' must be one of {OPS[:-1]}, not {op!r}")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target).__name__} but a Callable is expected")
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target).__name__} but a str is expected")
        self.graph: Graph
        self.name: str
        self.op: str
        self.target: Any
        self.type: Any
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Any = None
        self.meta: dict[str, Any] = {}
        self._args, self._kwargs = (), {}
        self._update(tuple(args), dict(kwargs))

    @property
    def next(self) -> Node:
        """Return the step behind this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """Return the step before this one."""
        return self._prev

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Move ``x`` to the place before this step."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move ``x`` to the place behind this step."""
        self._next.prepend(x)

    @property
    def args(self) -> tuple[Any, ...]:
        """Return the arguments by place."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._update(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """Return the arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._update(self._args, k)

    def _update(self, args: Any, kwargs: Any) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def use(n: Node) -> Node:
            self._input_nodes.setdefault(n)
            n.users.setdefault(self)
            return n

        self._args, self._kwargs = map_arg(tuple(args), use), map_arg(dict(kwargs), use)

    @property
    def all_input_nodes(self) -> list[Node]:
        """Return the steps whose results this one uses, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace one argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Add an argument before the one at ``idx``."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replace an argument by name."""
        self.kwargs = {**self._kwargs, key: arg}

    @property
    def stack_trace(self) -> str | None:
        """Return where the program was when this was traced, if that was noted."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True, *, propagate_meta: bool = False
    ) -> list[Node]:  # fmt: skip
        """Let all users of this step use ``replace_with``; the users. ``delete_user_cb(user)``: False leaves one as it is."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use ``new_input`` where this step uses ``old_input``."""

        def other(n: Node) -> Node:
            return new_input if n is old_input else n

        self._update(map_arg(self._args, other), map_arg(self._kwargs, other))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether it has effects but for its result: it is an input or output, or changes something in place."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_method":
            return self.target.endswith("_") and not self.target.endswith("__")
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            return self.target in _EFFECTS or (name.endswith("_") and not name.endswith("__") and getattr(operator, name, None) is not self.target)
        return False

    def __repr__(self) -> str:
        return self.name if self._repr_fn is None else self._repr_fn(self)  # type: ignore[no-any-return]

    def __lt__(self, other: Node) -> bool:
        return list(self.graph.nodes).index(self) < list(self.graph.nodes).index(other)

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        name = _get_qualified_name(target)
        return name if "." in name else f"builtins.{name}"

    def format_node(self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None) -> str | None:
        """Return the line of this step in a graph's text; None for an input where ``placeholder_names`` collects them."""
        of_type = f"{_type_text(self.type)} " if self.type is not None else ""
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(self.target + (f": {of_type.strip()}" if of_type else ""))
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {of_type}[num_users={len(self.users)}] = {self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : {of_type}[num_users={len(self.users)}] = {self.op}[target={self.target}]"
        if self.op == "output":
            if of_type and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {of_type.strip()}"
            return f"return {self.args[0]}"
        return (
            f"%{self.name} : {of_type}[num_users={len(self.users)}] = {self.op}[target={self._pretty_print_target(self.target)}]"
            f"(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"
        )


def _type_text(kind: Any) -> str:
    return kind if isinstance(kind, str) else public_name(kind) or getattr(kind, "__name__", None) or str(kind)


def _shown(a: Any) -> str:
    """Return arguments as texts of graphs show them: nodes with a percent sign."""
    if isinstance(a, Node):
        return f"%{a.name}"
    if isinstance(a, tuple):
        return "(" + ", ".join(map(_shown, a)) + ("," if len(a) == 1 else "") + ")"
    if isinstance(a, list):
        return "[" + ", ".join(map(_shown, a)) + "]"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{k}: {_shown(v)}" for k, v in a.items()) + "}"
    return str(a)


def _effects() -> Iterator[Any]:
    package = sys.modules[_PACKAGE]
    yield from (package._assert, operator.setitem, setattr)


_EFFECTS = set(_effects())


def has_side_effect(fn: Any) -> Any:
    """Declare that calls of ``fn`` are kept though nothing uses their results."""
    _EFFECTS.add(fn)
    return fn
