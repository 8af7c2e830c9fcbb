"""What a captured program takes for granted about Python: every value that its function can reach, and a quick test of it.

`Reach` walks from a function through its closure, its globals, the objects and containers found there, and lists places: a
value and how to get at it again. `Reach.checker` turns the list into one generated function that says which place has changed.
"""

from __future__ import annotations

import contextlib
import dis
import io
import re
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from enum import Enum
from operator import itemgetter
from pathlib import Path
from typing import Any

from ..tensor import Tensor

PACKAGE = __name__.partition(".")[0]
MOST = 50_000  #: places; a function that reaches more is not captured

#: modules whose functions give other values at each call
CHANGING = {"random", "time", "secrets", "uuid", "datetime"}
_ENTRY = re.compile(r"(o\d+)\.get\((.+), MISSING\)")
_LENGTH = re.compile(r"len\((o\d+)\)")
#: layers whose objects (ops, kernels, layouts, generators) are the library's own affair
_INSIDE = tuple(f"{PACKAGE}.{layer}" for layer in ("ops", "launch", "graph.node", "graph.modes", "codegen", "compiler", "shapes", "dtypes"))
_FOLDER = str(Path(__file__).parents[1])
_PLAIN = (int, float, str, bytes, complex, slice, range)
_LIBRARIES = {PACKAGE, "numba", "numpy", "scipy", "builtins", "typing", "collections", "functools", "itertools", "math", "torch", "os", "abc", "enum"}


class TooMuch(Exception):
    """The function reaches something that cannot be watched."""


class Place:
    """One value: ``path`` as a user would write it, ``code`` that fetches it, and how it is compared."""

    __slots__ = ("code", "how", "path", "value")

    def __init__(self, path: str, code: str, value: Any, how: str):
        self.path, self.code, self.value, self.how = path, code, value, how


def _library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _LIBRARIES


class Reach:
    """The places that a function can reach, and among them the tensors and the optimizers."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.tensors: dict[int, tuple[str, Tensor]] = {}
        self.optimizers: list[Any] = []
        self._objects: list[Any] = []  # what the generated code names o0, o1, …
        self._seen: dict[int, int] = {}
        self._queue: deque = deque()

    def _name(self, value: Any) -> str:
        number = self._seen.get(id(value))
        if number is None:
            number = self._seen[id(value)] = len(self._objects)
            self._objects.append(value)
        return f"o{number}"

    def _place(self, path: str, code: str, value: Any, how: str) -> None:
        if len(self.places) >= MOST:
            raise TooMuch(f"it reaches more than {MOST} values (the last: {path}); pass large containers as arguments or keep them out of it")
        self.places.append(Place(path, code, value, how))

    def function(self, function: Any, path: str = "") -> None:
        """Walk from a function, a bound method or a callable object."""
        self._value(path or getattr(function, "__name__", "function"), "", function)
        self._run()

    def value(self, path: str, value: Any) -> None:
        """Walk from an object."""
        self._value(path, "", value)
        self._run()

    def _run(self) -> None:
        while self._queue:
            step, *args = self._queue.popleft()
            step(*args)

    def _value(self, path: str, code: str, value: Any) -> None:
        """Note a value at a place (``code`` empty: held by the caller), and look into it."""
        if isinstance(value, Tensor):
            if code:
                self._place(path, code, value, "is")
            self._tensor(path, value)
            return
        if value is None or isinstance(value, (bool, Enum)):
            if code:
                self._place(path, code, value, "is")
            return
        if isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(isinstance(v, _PLAIN) or v is None for v in value)):
            if code:
                self._place(path, code, value, "equal")
            return
        if code:
            self._place(path, code, value, "is")
        if id(value) in self._seen:
            return
        self._name(value)
        self._queue.append((self._inside, path, value))

    def _tensor(self, path: str, t: Tensor) -> None:
        if id(t) in self.tensors:
            return
        self.tensors[id(t)] = (path, t)
        name = self._name(t)
        self._place(path + " (its memory)", f"{name}._data", t._data, "is")
        self._place(path + " (its shape)", f"{name}._layout", t._layout, "is")
        self._place(path + ".requires_grad", f"{name}._rg", t._rg, "is")

    def _inside(self, path: str, value: Any) -> None:
        if isinstance(value, (types.FunctionType, types.MethodType)):
            self._function(path, value)
        elif isinstance(value, types.ModuleType):
            return
        elif isinstance(value, type):
            if not _library(value.__module__):
                self._class(path, value)
        elif isinstance(value, (dict, OrderedDict, defaultdict)):
            self._mapping(path, value)
        elif isinstance(value, (list, tuple, deque)):
            name = self._name(value)
            self._place(f"len({path})", f"len({name})", len(value), "equal")
            for i, v in enumerate(value):
                self._value(f"{path}[{i}]", f"{name}[{i}]", v)
        elif isinstance(value, (set, frozenset)):
            self._place(f"len({path})", f"len({self._name(value)})", len(value), "equal")
        elif isinstance(value, io.IOBase):
            return
        elif type(value).__module__.startswith(PACKAGE + ".compiler") and hasattr(value, "__wrapped__"):
            self._value(path, "", value.__wrapped__)  # a compiled function stands for the function
        elif hasattr(type(value), "__next__"):
            raise TooMuch(f"it reaches an iterator ({path}), which gives another value at each call; call next() outside and pass the value")
        else:
            self._object(path, value)

    def _mapping(self, path: str, d: Any) -> None:
        name = self._name(d)
        self._place(f"len({path})", f"len({name})", len(d), "equal")
        for k, v in d.items():
            key = repr(k) if isinstance(k, (str, int)) else self._name(k)
            self._value(f"{path}[{k if isinstance(k, (str, int)) else '…'!r}]", f"{name}.get({key}, MISSING)", v)

    def _object(self, path: str, value: Any) -> None:
        kind = type(value)
        if kind.__module__.startswith(_INSIDE) or (kind.__module__.partition(".")[0] == PACKAGE and kind.__name__ == "RemovableHandle"):
            return
        groups = getattr(value, "param_groups", None)
        if isinstance(groups, list) and isinstance(getattr(value, "state", None), dict):
            self.optimizers.append(value)
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            name = self._name(attributes)
            self._place(f"attributes of {path}", f"len({name})", len(attributes), "equal")
            for k, v in attributes.items():
                self._value(f"{path}.{k}", f"{name}.get({k!r}, MISSING)", v)
        for cls in kind.__mro__:
            for slot in getattr(cls, "__slots__", ()) if not _library(cls.__module__) else ():
                if hasattr(value, slot):
                    self._value(f"{path}.{slot}", f"getattr({self._name(value)}, {slot!r}, MISSING)", getattr(value, slot))
        if not _library(kind.__module__):
            self._class(path, kind)

    def _class(self, path: str, cls: type) -> None:
        for base in cls.__mro__:
            if _library(base.__module__):
                continue
            for k, v in list(vars(base).items()):
                if isinstance(v, (staticmethod, classmethod)):
                    v = v.__func__
                if isinstance(v, property):
                    for f in (v.fget, v.fset):
                        if f is not None:
                            self._value(f"{base.__name__}.{k}", "", f)
                elif isinstance(v, types.FunctionType):
                    self._value(f"{base.__name__}.{k}", "", v)
                elif not k.startswith("__"):
                    self._value(f"{base.__name__}.{k}", f"vars({self._name(base)}).get({k!r}, MISSING)", v)

    def _function(self, path: str, function: Any) -> None:
        if isinstance(function, types.MethodType):
            self._value(f"{path}.__self__", "", function.__self__)
            function = function.__func__
            if not isinstance(function, types.FunctionType):
                return
        if _library(function.__module__) or function.__code__.co_filename.startswith(_FOLDER):
            for cell in function.__closure__ or ():  # a decorator's wrapper around the user's function
                with contextlib.suppress(ValueError):  # an empty cell
                    if isinstance(cell.cell_contents, (types.FunctionType, types.MethodType)):
                        self._value(path, "", cell.cell_contents)
            return
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._cell(name, cell)
        for k, v in enumerate(function.__defaults__ or ()):
            self._value(f"default {k} of {path}", "", v)
        for k, v in (function.__kwdefaults__ or {}).items():
            self._value(f"default {k} of {path}", "", v)
        names = set(_names(code))
        scope = self._name(function.__globals__)
        for name in sorted(_globals(code) & function.__globals__.keys()):
            self._global(name, scope, function.__globals__[name], names)

    def _global(self, name: str, scope: str, value: Any, names: set[str]) -> None:
        code = f"{scope}.get({name!r}, MISSING)"
        if not isinstance(value, types.ModuleType):
            self._value(name, code, value)
            return
        self._place(name, code, value, "is")
        top = value.__name__.partition(".")[0]
        if top in CHANGING:
            raise TooMuch(f"it uses the module {value.__name__}, whose functions give another value at each call; pass such values as arguments")
        if top == "numpy" and "random" in names:
            raise TooMuch("it uses numpy.random, which gives another value at each call; draw with this library's random functions")
        if not _library(value.__name__):
            inner = self._name(vars(value))
            for k in sorted(names & vars(value).keys()):
                self._value(f"{name}.{k}", f"{inner}.get({k!r}, MISSING)", vars(value)[k])

    def _cell(self, name: str, cell: Any) -> None:
        try:
            value = cell.cell_contents
        except ValueError:
            return
        self._value(name, f"{self._name(cell)}.cell_contents", value)

    # ---- the test
    def checker(self, skip: set[str] = frozenset()) -> Callable[[], int]:  # type: ignore[assignment]
        """A function that gives the number of the first place that has changed, or −1. ``skip``: codes of live numbers.

        The values of one container are fetched together and compared as a tuple (which looks at identity first), containers
        that are empty are tested together: a few dozen comparisons cost a microsecond.
        """
        together: dict[str, list[tuple[str, int]]] = {}
        empty: list[tuple[str, int]] = []
        lines: list[tuple[int, str]] = []
        values: dict[str, Any] = {f"o{i}": o for i, o in enumerate(self._objects)} | {"MISSING": object()}
        for i, p in enumerate(self.places):
            if p.code in skip:
                continue
            values[f"v{i}"] = p.value
            entry = _ENTRY.fullmatch(p.code)
            length = _LENGTH.fullmatch(p.code)
            if entry is not None:
                together.setdefault(entry[1], []).append((entry[2], i))
            elif length is not None and p.value == 0:
                empty.append((length[1], i))
            elif p.how == "is":
                expected = repr(p.value) if p.value is None or isinstance(p.value, bool) else f"v{i}"
                lines.append((i, f"{p.code} is not {expected}"))
            else:
                lines.append((i, f"{p.code} != v{i}"))
        for name, entries in together.items():
            first = entries[0][1]
            keys = ", ".join(k for k, _ in entries)
            wanted = tuple(self.places[i].value for _, i in entries)
            values[f"get{first}"] = eval(f"itemgetter({keys})", {"itemgetter": itemgetter, **values})
            values[f"all{first}"] = wanted if len(entries) > 1 else wanted[0]
            if len(entries) > 1:
                lines.append((-1 - first, f"get{first}({name}) != all{first}"))
            else:
                how = "is not" if self.places[first].how == "is" else "!="
                lines.append((first, f"get{first}({name}) {how} all{first}"))
        for k in range(0, len(empty), 32):
            part = empty[k : k + 32]
            lines.append((part[0][1], " or ".join(name for name, _ in part)))
        body = "".join(f"        if {condition}:\n            return {number if number >= 0 else f'find({-1 - number})'}\n" for number, condition in lines)
        text = f"def check():\n    try:\n{body or '        pass'}\n    except Exception:\n        return {len(self.places)}\n    return -1\n"
        values["find"] = lambda first: self._find([i for _, i in next(e for e in together.values() if e[0][1] == first)])
        exec(compile(text, "<guards of a compiled function>", "exec"), values)
        return values["check"]  # type: ignore[no-any-return]

    def _find(self, numbers: list[int]) -> int:
        """Which of some places has changed."""
        scope = {f"o{i}": o for i, o in enumerate(self._objects)}
        for i in numbers:
            p = self.places[i]
            now = eval(p.code, {**scope, "MISSING": None})
            if now is not p.value and (p.how == "is" or now != p.value):
                return i
        return numbers[0]

    def describe(self, number: int) -> str:
        """What has changed, in words."""
        if not 0 <= number < len(self.places):
            return "a container that it reads has changed"
        p = self.places[number]
        return f"{p.path} is no longer {_short(p.value)}" if p.how == "equal" else f"{p.path} has changed"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "…"


def _globals(code: types.CodeType) -> set[str]:
    """The globals that code reads; `co_names` has attributes too, of which some global may have the name by chance."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            found |= _globals(c)
    return found


def _names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            found |= _names(c)
    return found
