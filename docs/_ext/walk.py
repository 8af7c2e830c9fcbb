"""Find the public names of the library, what they are, and where they were declared."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import autograd_nb
from autograd_nb.ops.core.registry import OPS

PACKAGE = Path(autograd_nb.__file__).parent

#: where users look for names; what an earlier one holds is not told again in a later one
NAMESPACES = (
    "", "nn.functional", "linalg", "fft", "special", "signal.windows", "nn", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize",
    "nn.utils.parametrizations", "nn.parallel", "optim", "optim.lr_scheduler", "autograd", "autograd.functional", "autograd.graph", "autograd.forward_ad",
    "func", "distributions", "utils.data", "utils.checkpoint", "random", "serialization", "viz", "profiler", "testing", "distributed", "errors", "Tensor",
)  # fmt: skip


@dataclass
class Entry:
    """A public name: its full name, what it is, the other names of the same thing, and the page that tells of it."""

    name: str
    thing: Any
    page: str
    op: str = ""
    also: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return its docstring."""
        return inspect.getdoc(self.thing) or ""


def namespace(name: str) -> Any:
    """Return a namespace of the library by its name below the package."""
    space: Any = autograd_nb
    for part in filter(None, name.split(".")):
        try:
            space = getattr(space, part)
        except AttributeError:
            space = importlib.import_module(f"autograd_nb.{name}")
            break
    return space


@cache
def declarations() -> dict[str, tuple[Path, str]]:
    """Return, for each function that a file of `ops/` defines, the file and its text with the decorators."""
    found: dict[str, tuple[Path, str]] = {}
    for path in sorted((PACKAGE / "ops").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and "/core/" not in path.as_posix():
                start = min([d.lineno for d in node.decorator_list] or [node.lineno])
                name = node.name.removeprefix("_f_")
                if node.decorator_list or name not in found:
                    found[name] = (path, "\n".join(lines[start - 1 : node.end_lineno]))
    return found


@cache
def files() -> dict[Path, str]:
    """Return the texts of the files that declare ops."""
    return {path: path.read_text(encoding="utf-8") for path in sorted((PACKAGE / "ops").rglob("*.py")) if "/signatures/" not in path.as_posix()}


def home(name: str) -> Path:
    """Return the file that declares an op: by its definition, by the formula's own place, else by its name in quotes."""
    short = name.rsplit(".", 1)[-1].rstrip("_") or name
    for key in (name.rsplit(".", 1)[-1], short):
        if key in declarations():
            return declarations()[key][0]
    rule = OPS[name].rule if name in OPS else None
    formula = getattr(rule, "formula", None)
    made = inspect.unwrap(OPS[name].call) if name in OPS else None
    for function in (formula, made):
        place = getattr(getattr(function, "__code__", None), "co_filename", "")
        if place.startswith(str(PACKAGE / "ops")) and "/core/" not in place:
            return Path(place)
    for path, text in files().items():
        if "/core/" not in path.as_posix() and re.search(rf"\"{re.escape(short)}\"|def _?{re.escape(short)}_?\(", text):
            return path
    return PACKAGE / "ops" / "creation" / "more.py"


def _in_place_of(name: str, names: dict[str, Entry]) -> Entry | None:
    """Return the entry that an in-place spelling (``exp_``) belongs to."""
    return names.get(name[:-1]) if name.endswith("_") and not name.endswith("__") else None


def op_entries() -> dict[str, Entry]:
    """Return an entry for each op that has a public function or method, by the op's name; in-place spellings are told with their op."""
    found: dict[str, Entry] = {}
    for name, op in sorted(OPS.items(), key=lambda item: (item[0].endswith("_"), item[0])):
        short = name.rsplit(".", 1)[-1]
        spaces = [space.removeprefix("torch").lstrip(".") for space in op.namespaces]
        spellings = [".".join(filter(None, ("autograd_nb", space, short))) for space in spaces]
        if op.method and hasattr(autograd_nb.Tensor, short):
            spellings.append(f"autograd_nb.Tensor.{short}")
        if short.startswith("_") or not spellings:
            continue
        same = found.get(short)
        owner = same if same and same.text == (inspect.getdoc(op.call) or "") else _in_place_of(name, found)
        if owner is not None:
            owner.also += spellings
            continue
        path = home(name).relative_to(PACKAGE / "ops")
        page = "/".join(path.with_suffix("").parts)
        found[name] = Entry(spellings[0], op.call, f"ops/{page}", op=name, also=spellings[1:])
    return found


def _public(space: Any) -> list[str]:
    return [name for name in (getattr(space, "__all__", None) or dir(space)) if not name.startswith("_")]


def entries() -> list[Entry]:
    """Return all entries, each public callable once."""
    ops = op_entries()
    told = {id(entry.thing) for entry in ops.values()}
    names = {entry.name for entry in ops.values()} | {name for entry in ops.values() for name in entry.also}
    by_id: dict[int, Entry] = {}
    found = list(ops.values())
    for space_name in NAMESPACES:
        space = namespace(space_name)
        for name in _public(space):
            thing = inspect.getattr_static(space, name) if space_name == "Tensor" else getattr(space, name, None)
            full = ".".join(filter(None, ("autograd_nb", space_name, name)))
            described = isinstance(thing, property) or callable(thing)
            at = getattr(thing, "__module__", None) or "autograd_nb"
            if not described or full in names or id(thing) in told or inspect.ismodule(thing) or not at.startswith(("autograd_nb", "torch")):
                continue
            if at.startswith("autograd_nb.compat.symbols") or isinstance(thing, autograd_nb.dtype):
                continue
            if id(thing) in by_id:
                first = by_id[id(thing)]
                if name == getattr(thing, "__name__", "") != first.name.rsplit(".", 1)[-1] and first.page == _page(space_name, thing):
                    first.name, full = full, first.name  # the name that it gives itself comes first
                first.also.append(full)
                continue
            if space_name == "Tensor" and name.endswith("_") and f"autograd_nb.Tensor.{name[:-1]}" in names:
                continue
            if not inspect.getdoc(thing):
                continue
            entry = Entry(full, thing, _page(space_name, thing))
            by_id[id(thing)] = entry
            names.add(full)
            found.append(entry)
    return found


#: how the docstrings begin of names that programs for PyTorch ask for, and that have nothing to do here
ANSWERS = ("The answer is", "Not available here", "Do nothing", "Change nothing", "The function does nothing", "The function raises", "The old ",
           "Accepted for", "False: there are no", "Raise ")  # fmt: skip


def _page(space: str, thing: Any) -> str:
    if space in ("", "Tensor") and (inspect.getdoc(thing) or "").startswith(ANSWERS):
        return "names/answers"
    if space == "nn":
        return "nn/" + (thing.__module__.rsplit(".", 1)[-1] if thing.__module__.startswith("autograd_nb.nn.modules") else "parts")
    return f"names/{space or 'root'}"

