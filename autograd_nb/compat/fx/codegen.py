"""The text of a graph as a Python function. Source: https://docs.pytorch.org/docs/stable/fx.html#torch.fx.Graph.python_code"""

from __future__ import annotations

import builtins
import enum
import keyword
import math
import re
import sys
import typing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...dtypes import dtype
from ...ops.creation.device import device
from ...shapes import Size
from .node import Node, _get_qualified_name, public_name
from .wrapping import wrap as wrap_function

if TYPE_CHECKING:
    from .graph import Graph

#: operators that PyTorch's proxies record, and how they are written
MAGIC = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}", "pos": "+{}", "neg": "-{}", "invert": "~{}",
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}",
    "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
#: those that have a form for the operand on the right
REFLECTABLE = ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor", "matmul")
IN_PLACE = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}", "imul": "{} *= {}",
    "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip

_PACKAGE = __name__.partition(".")[0]


def builtin_globals() -> dict[str, Any]:
    """Return the names that generated code finds without asking."""
    return {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": sys.modules[_PACKAGE], "device": device}


class Namespace:
    """Names that are used, each by one object."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}
        self._names: dict[Any, str] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """Return a name like ``candidate`` that is free, the same for the same object."""
        if obj is not None and obj in self._names:
            return self._names[obj]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        found = re.match(r"(.*)_(\d+)$", candidate)
        base, number = (found[1], int(found[2])) if found else (candidate, None)
        if number is None or candidate in self._used:
            number = self._counts.get(candidate if number is None else base, 0)
            base = candidate if found is None else base
        while candidate in self._used or self._is_illegal(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._counts[base] = number
        if obj is not None:
            self._names[obj] = candidate
        return candidate

    @staticmethod
    def _is_illegal(name: str, obj: Any) -> bool:
        if keyword.iskeyword(name):
            return True
        if name in vars(builtins):
            return vars(builtins)[name] is not obj
        known = builtin_globals()
        return name in known and known[name] is not obj

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Give a free name to an object."""
        self._names.setdefault(obj, name)
        self._used.add(name)

    def rename(self, obj: Any, name: str) -> None:
        """Note the new name of an object."""
        self._names[obj] = name
        self._used.add(name)


@dataclass
class PythonCode:
    """The text of a graph, and the objects that it names."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = field(default=None)


def format_target(base: str, target: str) -> str:
    """Return how an attribute is written: ``base.a.b``, by getattr where a part is no identifier."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


class _Writer:
    """Writes a graph."""

    def __init__(self, graph: Graph, root: str) -> None:
        self.graph, self.root = graph, root
        self.names = Namespace()
        self.globals: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.body: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.returns = ""
        for name, obj in builtin_globals().items():
            self.globals[name] = obj
            self.names.associate_name_with_obj(name, name)
        self.last_uses = self._last_uses()

    def _last_uses(self) -> dict[Node, list[Node]]:
        seen: set[Node] = set()
        found: dict[Node, list[Node]] = {}
        for node in reversed(self.graph.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    found.setdefault(node, []).append(used)
        return found

    def name(self, node: Node) -> str:
        return self.names.create_name(node.name, node)

    def add_global(self, hint: str, obj: Any) -> str:
        if obj is not device and public_name(obj) is not None:
            return public_name(obj) or ""
        hint = hint.replace(".", "_")
        for name, value in self.globals.items():
            if value is obj:
                return name
        name = self.names.create_name(hint, None)
        self.globals[name] = obj
        return name

    def type_text(self, kind: Any) -> str:
        if kind is None or isinstance(kind, str):
            return kind or "None"
        origin = typing.get_origin(kind)
        if origin is not None and isinstance(origin, type):
            parts = ", ".join(self.type_text(a) if a is not Ellipsis else "..." for a in typing.get_args(kind))
            return f"{self.add_global(origin.__name__, origin)}[{parts}]" if parts else self.add_global(origin.__name__, origin)
        if kind in vars(builtins).values():
            return str(kind.__name__)
        return self.add_global(_get_qualified_name(kind) if hasattr(kind, "__name__") else "type_", kind)

    def text(self, a: Any) -> str:
        """Return an argument as Python code."""
        if isinstance(a, Node):
            return self.name(a)
        if isinstance(a, Size):
            return f"torch.Size([{', '.join(map(self.text, a))}])"
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return f"{self.add_global(_get_qualified_name(type(a)), type(a))}({', '.join(map(self.text, a))})"
        if isinstance(a, tuple):
            return "(" + ", ".join(map(self.text, a)) + ("," if len(a) == 1 else "") + ")"
        if isinstance(a, list):
            return "[" + ", ".join(map(self.text, a)) + "]"
        if isinstance(a, dict):
            return "{" + ", ".join(f"{k!r}: {self.text(v)}" for k, v in a.items()) + "}"
        if isinstance(a, slice):
            return f"slice({self.text(a.start)}, {self.text(a.stop)}, {self.text(a.step)})"
        if isinstance(a, enum.Enum):
            return f"{self.add_global(type(a).__name__, type(a))}.{a.name}"
        if isinstance(a, dtype) or a is None or isinstance(a, (str, bool, int, float, complex, device)):
            return repr(a)
        name = getattr(a, "__name__", None)
        if callable(a) and name is not None:
            return str(name) if vars(builtins).get(name) is a else self.add_global(_get_qualified_name(a), a)
        return repr(a)

    def arguments(self, args: Any, kwargs: Any) -> str:
        return ", ".join([*map(self.text, args), *[f"{k} = {self.text(v)}" for k, v in kwargs.items()]])

    def _function(self, node: Node) -> str:
        target, name = node.target, getattr(node.target, "__name__", "")
        if target.__class__.__module__ == "builtins" and getattr(target, "__module__", "") == "_operator" and not node.kwargs:
            if name in MAGIC and MAGIC[name].count("{}") == len(node.args):
                return f"{self.name(node)}{self._of_type(node)} = {MAGIC[name].format(*map(self.text, node.args))}"
            if name in IN_PLACE and IN_PLACE[name].count("{}") == len(node.args):
                first = self.text(node.args[0])
                return f"{IN_PLACE[name].format(*map(self.text, node.args))};  {self.name(node)}{self._of_type(node)} = {first}"
        if target is getattr and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{self.name(node)}{self._of_type(node)} = {format_target(self.text(node.args[0]), node.args[1])}"
        known = name if vars(builtins).get(name) is target else self.add_global(_get_qualified_name(target), target)
        if node.meta.get("is_wrapped"):
            self.wrapped.setdefault(known)
        return f"{self.name(node)}{self._of_type(node)} = {known}({self.arguments(node.args, node.kwargs)})"

    def _of_type(self, node: Node) -> str:
        return "" if node.type is None else f" : {self.type_text(node.type)}"

    def emit(self, node: Node) -> None:
        match node.op:
            case "placeholder":
                default = f" = {self.text(node.args[0])}" if node.args else ""
                self.parameters.append(f"{node.target}{self._of_type(node)}{default}")
                raw = node.target.replace("*", "")
                if raw != self.name(node):
                    self.body.append(f"{self.name(node)} = {raw}\n")
                return
            case "call_method":
                first = format_target(self.text(node.args[0]), node.target)
                line = f"{self.name(node)}{self._of_type(node)} = {first}({self.arguments(node.args[1:], node.kwargs)})"
            case "call_function":
                line = self._function(node)
            case "call_module":
                line = f"{self.name(node)}{self._of_type(node)} = {format_target(self.root, node.target)}({self.arguments(node.args, node.kwargs)})"
            case "get_attr":
                line = f"{self.name(node)}{self._of_type(node)} = {format_target(self.root, node.target)}"
            case _:
                self.returns = "" if node.type is None else f" -> {self.type_text(node.type)}"
                self.body.append(f"return {self.text(node.args[0])}\n")
                return
        gone = [*self.last_uses.get(node, ()), *([] if node.users else [node])]
        self.body.append(line + (";  " + " = ".join([*map(self.name, gone), "None"]) if gone else "") + "\n")


def python_code(graph: Graph, root_module: str = "self") -> PythonCode:
    """Return the function ``forward`` that does what a graph says."""
    writer = _Writer(graph, root_module)
    for node in graph.nodes:
        writer.emit(node)
    body = "".join(writer.body or ["pass\n"])
    wrap = ""
    if writer.wrapped:
        wrap = "\n".join(f'{writer.add_global("wrap", wrap_function)}("{name}")' for name in writer.wrapped)
    if "self" not in writer.parameters[:1]:
        writer.parameters.insert(0, "self")
    head = f"def forward({', '.join(writer.parameters)}){writer.returns}:"
    lines = "\n".join("    " + line for line in body.split("\n"))
    return PythonCode(f"\n{wrap}\n\n{head}\n{lines}", writer.globals)


