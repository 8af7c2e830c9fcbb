"""What a captured program takes for granted about Python: every value that its function can reach, and a quick test of it.

`Reach` walks from a function through its closure, its globals, the objects and containers found there, and lists places: a
value and how to get at it again. `Reach.guard` turns the list into a `Guard`: what words of memory tell is compared natively
(see `watch`), the rest by a generated function, which says which place has changed.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import gc
import importlib
import io
import os
import sys
import types
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from enum import Enum
from operator import attrgetter, itemgetter, methodcaller
from pathlib import Path
from typing import Any

import numpy as np

from ... import config
from ...tensor import Tensor
from ..nested import is_plain
from . import bytecode as reading
from . import memory_words as watch
from .carried_state import Kept, form, keepable

PACKAGE = __name__.partition(".")[0]
MOST = 50_000  #: places; a function that reaches more is not captured

#: modules whose functions give other values at each call
CHANGING = {"random", "_random", "time", "secrets", "uuid", "datetime"}
_SMALL = 4096  #: bytes of a NumPy array whose contents are compared at each call
#: layers whose objects (ops, kernels, layouts, generators) are the library's own affair
_INSIDE = tuple(
    f"{PACKAGE}.{layer}" for layer in ("ops", "launch", "graph.node", "graph.modes", "codegen", "compiler", "shapes", "dtypes")
)
_FOLDER = str(Path(__file__).parents[2])
#: functions that tell a setting of the process
_SETTINGS = (config.are_deterministic_algorithms_enabled, config.get_float32_matmul_precision, config.get_num_threads)
#: of libraries, what is watched
_WATCHED = {"os": {"environ", "getenv"}}
#: classes whose objects hold values where no guard sees them
_OPAQUE = {"_ctypes._CData", "_thread._local", "array.array", "builtins.memoryview", "mmap.mmap", "weakref.ReferenceType"}
#: what stands for a value that is not there
_MISSING = object()
_LIBRARIES = {
    PACKAGE,
    "numba",
    "numpy",
    "scipy",
    "builtins",
    "typing",
    "collections",
    "functools",
    "itertools",
    "math",
    "torch",
    "os",
    "abc",
    "enum",
}


class TooMuch(Exception):
    """The function reaches something that cannot be watched."""


class Place:
    """One value: ``path`` as a user would write it, where it stands, and how it is compared.

    ``holder`` and ``key``: the name of the mapping that it is an entry of; else ``code`` fetches it. ``how``: "is" (the same
    object), "equal" (a number or text of the same type and digits) or "like" (anything that compares equal). ``part``: (object,
    which part of it) where words of memory may tell of a change (see `watch.records`).
    """

    __slots__ = ("code", "holder", "how", "key", "part", "path", "value")

    def __init__(
        self, path: str, code: str, value: Any, how: str, holder: str = "", key: str = "", part: tuple[Any, str] | None = None
    ):
        self.path, self.code, self.value, self.how, self.holder, self.key, self.part = path, code, value, how, holder, key, part


def _unchanged(now: Any, then: Any, how: str) -> bool:
    """Whether a value that is another object than before is as good as the same: 2 is not 2.0, nor 0.0 the same as −0.0."""
    if now is then or how == "is":
        return now is then
    if how == "like":
        return bool(now == then)
    return type(now) is type(then) and (now == then if isinstance(now, (str, bytes)) else repr(now) == repr(then))


def _replaceable(value: Any) -> bool:
    """Whether an attribute of one of this library's modules is what programs put something else in the place of, or such a thing."""
    return isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType)) or not in_library(
        type(value).__module__
    )


def in_library(module: str | None) -> bool:
    """Whether a module is taken to be always the same."""
    return (module or "").partition(".")[0] in _LIBRARIES


class Reach:
    """The places that a function can reach, and among them the tensors and the optimizers."""

    def __init__(self, kept: Mapping[tuple[int, Any], Kept] = types.MappingProxyType({})) -> None:
        self.places: list[Place] = []
        self.kept: list[Kept] = []  # those of ``kept`` that it reaches
        self._kept = kept
        self.tensors: dict[int, tuple[str, Tensor]] = {}
        self.optimizers: list[Any] = []
        self._reads_groups = self._calculates = False
        self.tells_apart = False  # whether one asks if two objects are the same
        self.names: set[str] = set()  # those of all attributes that the user's functions read
        self.codes: set[types.CodeType] = set()  # theirs, and that of what is defined in them
        self._modules: dict[int, tuple[str, types.ModuleType, set[str]]] = {}  # (path, module, names that were looked into)
        self._objects: list[Any] = []  # what the generated code names o0, o1, …
        self._seen: dict[int, int] = {}
        self._queue: deque = deque()

    def _name(self, value: Any) -> str:
        number = self._seen.get(id(value))
        if number is None:
            number = self._seen[id(value)] = len(self._objects)
            self._objects.append(value)
        return f"o{number}"

    def _place(self, path: str, code: str | tuple[str, str], value: Any, how: str, part: tuple[Any, str] | None = None) -> None:
        if len(self.places) >= MOST:
            raise TooMuch(
                f"it reaches more than {MOST} values (the last: {path}); pass large containers as arguments or keep them out of it"
            )
        if isinstance(code, tuple):
            holder = self._objects[int(code[0][1:])]
            scope = isinstance(holder, dict) and "__builtins__" in holder and not in_library(holder.get("__name__"))
            # any line of a script changes its globals: comparing those that matter is quicker
            self.places.append(
                Place(path, f"{code[0]}[{code[1]}]", value, how, *code, part=None if scope else (holder, "entries"))
            )
        else:
            self.places.append(Place(path, code, value, how, part=part))

    @property
    def live_numbers(self) -> bool:
        """Whether learning rates may be read anew at each run: not where compiled code of others (math, NumPy) may work on them."""
        return not (self._reads_groups and self._calculates)

    def function(self, function: Any, path: str = "") -> None:
        """Walk from a function, a bound method or a callable object."""
        self._value(path or getattr(function, "__name__", "function"), "", function)
        self._run()

    def value(self, path: str, value: Any) -> None:
        """Walk from an object."""
        self._value(path, "", value)
        self._run()

    def _run(self) -> None:
        while self._queue or self._look_into_modules():
            step, *args = self._queue.popleft()
            step(*args)

    def _look_into_modules(self) -> bool:
        """Note what the user's functions may read of the modules that they reach; whether there was more than before."""
        for path, module, done in list(self._modules.values()):
            inside = vars(module)
            names = self.names & inside.keys()
            if module.__name__.partition(".")[0] == PACKAGE:
                names = {k for k in names if _replaceable(inside[k])}
            elif in_library(module.__name__):
                names &= _WATCHED.get(module.__name__, set())
            elif "__dict__" in self.names:
                self._value(f"{path}.__dict__", "", inside)
            for k in sorted(names - done):
                done.add(k)
                self._value(f"{path}.{k}", (self._name(inside), repr(k)), inside[k])
        return bool(self._queue)

    def _value(self, path: str, code: str | tuple[str, str], value: Any, part: tuple[Any, str] | None = None) -> None:
        """Note a value at a place (``code``: how it is fetched, or (mapping, key); empty: held by the caller), and look into it."""
        plain = is_plain(value) or (isinstance(value, tuple) and all(is_plain(v) or v is None for v in value))
        single = value is None or isinstance(value, (bool, Enum))
        if code:
            self._place(path, code, value, "equal" if plain and not single else "is", part)
        if isinstance(value, Tensor):
            self._tensor(path, value)
        if plain or single or isinstance(value, Tensor):
            return
        if id(value) in self._seen:
            return
        self._name(value)
        self._queue.append((self._inside, path, value))

    def _tensor(self, path: str, t: Tensor) -> None:
        if id(t) in self.tensors:
            return
        self.tensors[id(t)] = (path, t)
        name = self._name(t)
        self._place(path + " (its memory)", f"{name}._data", t._data, "is", (t, "_data"))
        self._place(path + " (its shape)", f"{name}._layout", t._layout, "is", (t, "_layout"))
        self._place(path + ".requires_grad", f"{name}._rg", t._rg, "is", (t, "_rg"))
        self._place(path + "'s hooks", f"{name}._leaf_hook_set", t._leaf_hook_set, "is", (t, "_leaf_hook_set"))
        self._attributes(path, t.__dict__)
        if t._leaf_hook_set is not None:
            self._queue.append((self._hooks, path, t._leaf_hook_set))

    def _hooks(self, path: str, hooks: Any) -> None:
        """The hooks of a leaf."""
        self._mapping(f"{path}'s hooks", hooks.accumulated)
        self._mapping(f"{path}'s hooks", hooks.tensor)

    def _inside(self, path: str, value: Any) -> None:
        if isinstance(value, (types.FunctionType, types.MethodType)):
            self._function(path, value)
        elif isinstance(value, types.BuiltinFunctionType):
            owner = value.__self__
            self._calculates = self._calculates or value.__module__ in ("math", "cmath", "numpy")
            self._changing(path, value.__module__ or getattr(owner, "__module__", None))
            if not isinstance(owner, (type, types.ModuleType)):
                self._value(f"{path}.__self__", "", owner)
        elif isinstance(value, types.ModuleType):
            if value.__name__.partition(".")[0] in CHANGING:
                raise TooMuch(
                    f"it uses the module {value.__name__}, whose functions give another value at each call; pass such values as arguments"
                )
            self._modules.setdefault(id(value), (path, value, set()))
        elif isinstance(value, type):
            self._changing(path, value.__module__)
            if not in_library(value.__module__):
                self._class(path, value)
        elif isinstance(value, np.ndarray):
            if value.nbytes > _SMALL or value.dtype.hasobject:
                raise TooMuch(f"it reaches a NumPy array ({path}), whose values may change unseen; make it a tensor")
            self._place(f"the values of {path}", f"{self._name(value)}.tobytes()", value.tobytes(), "like")
        elif isinstance(value, (dict, types.MappingProxyType, list, tuple, deque, set, frozenset, bytearray)):
            self._container(path, value)
            if not in_library(type(value).__module__):
                self._object(path, value)
        elif isinstance(value, io.IOBase):
            raise TooMuch(f"it reaches a file ({path}), which a captured run would neither read nor write")
        elif type(value).__module__.startswith(PACKAGE + ".compiler") and hasattr(value, "__wrapped__"):
            self._value(path, "", value.__wrapped__)  # a compiled function stands for the function
        elif isinstance(value, (attrgetter, methodcaller)):
            self.names.update(part for name in value.__reduce__()[1] if isinstance(name, str) for part in name.split("."))
        elif isinstance(value, functools.partial):
            for part, v in (("func", value.func), ("args", value.args), ("keywords", value.keywords)):
                self._value(f"{path}.{part}", "", v)
        elif isinstance(value, ContextVar):
            unset = self._name(_MISSING)
            self._value(f"{path}.get()", f"{self._name(value)}.get({unset})", value.get(_MISSING))
        elif hasattr(type(value), "__next__"):
            raise TooMuch(
                f"it reaches an iterator ({path}), which gives another value at each call; call next() outside and pass the value"
            )
        else:
            self._object(path, value)

    def _container(self, path: str, value: Any) -> None:
        if isinstance(value, (dict, types.MappingProxyType)):
            self._mapping(path, value)
        elif isinstance(value, (list, tuple, deque)):
            name = self._name(value)
            self._place(f"len({path})", f"len({name})", len(value), "like", (value, "entries"))
            for i, v in enumerate(value):
                self._entry(f"{path}[{i}]", value, i, (name, str(i)), v)
        else:
            self._place(f"the contents of {path}", self._name(value), value.copy(), "like", (value, "entries"))
            for v in value:
                self._value(f"an element of {path}", "", v)

    def _mapping(self, path: str, d: Any) -> None:
        name = self._name(d)
        if d:
            self._place(f"the keys of {path}", f"tuple({name})", tuple(d), "like", (d, "entries"))
        else:
            self._place(f"len({path})", f"len({name})", 0, "like", (d, "entries"))
        for k, v in d.items():
            self._value(f"a key of {path}", "", k)
            key = repr(k) if type(k) in (str, int, bool) else self._name(k)
            self._entry(f"{path}[{k if isinstance(k, (str, int)) else '…'!r}]", d, k, (name, key), v)

    def _entry(self, path: str, holder: Any, k: Any, code: str | tuple[str, str], value: Any, part: Any = None) -> None:
        """What a mapping, a sequence or a cell holds. Where the function leaves tensors, only their form is noted; where it reads
        them too they are arguments."""
        kept = self._kept.get((id(holder), k))
        if kept is None:
            self._value(path, code, value, part)
            return
        self.kept.append(kept)
        if not kept.read:
            there = code if isinstance(code, str) else f"{code[0]}[{code[1]}]"
            self._place(f"the form of {path}", f"form({there})", form(value), "like")

    def _functional(self, kind: type) -> None:
        """A module of this library computes with what stands in ``nn.functional``, where programs may put something else."""
        module = sys.modules.get(f"{PACKAGE}.nn.functional")
        forward = getattr(kind, "forward", None)
        if module is None or not isinstance(forward, types.FunctionType):
            return
        inside = vars(module)
        for k in sorted(reading.attributes(forward.__code__) & inside.keys()):
            if _replaceable(inside[k]):
                self._value(f"nn.functional.{k}", (self._name(inside), repr(k)), inside[k])

    def _object(self, path: str, value: Any) -> None:
        kind = type(value)
        if kind.__module__.startswith(_INSIDE) or (
            kind.__module__.partition(".")[0] == PACKAGE and kind.__name__ == "RemovableHandle"
        ):
            return
        self._changing(path, kind.__module__)
        if kind.__module__.partition(".")[0] == "logging":  # its records are seen where they are made
            return
        if any(f"{base.__module__}.{base.__qualname__}" in _OPAQUE for base in kind.__mro__):
            raise TooMuch(
                f"it reaches {path}, an object of the class {kind.__name__}, whose values may change unseen; pass them as arguments"
            )
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            if isinstance(attributes.get("param_groups"), list) and isinstance(attributes.get("state"), dict):
                self.optimizers.append(value)
            self._attributes(path, attributes)
        for cls in kind.__mro__:
            for slot in getattr(cls, "__slots__", ()) if not in_library(cls.__module__) else ():
                if hasattr(value, slot):
                    self._value(f"{path}.{slot}", f"getattr({self._name(value)}, {slot!r}, MISSING)", getattr(value, slot))
        if not in_library(kind.__module__):
            self._class(path, kind)
        elif kind.__module__.startswith(f"{PACKAGE}.nn."):
            self._functional(kind)

    def _attributes(self, path: str, attributes: dict) -> None:
        """The ``__dict__`` of an object."""
        name = self._name(attributes)
        self._place(f"attributes of {path}", f"len({name})", len(attributes), "like", (attributes, "entries"))
        for k, v in attributes.items():
            self._entry(f"{path}.{k}", attributes, k, (name, repr(k)), v)

    def _class(self, path: str, cls: type) -> None:
        for base in cls.__mro__:
            if in_library(base.__module__):
                continue
            entries = gc.get_referents(vars(base))[0]  # the dict behind the proxy
            for k, v in list(vars(base).items()):
                code = f"vars({self._name(base)}).get({k!r}, MISSING)"
                if isinstance(v, (staticmethod, classmethod)):
                    self._value(f"{base.__name__}.{k}", "", v.__func__)
                elif isinstance(v, property):
                    for f in (v.fget, v.fset):
                        if f is not None:
                            self._value(f"{base.__name__}.{k}", "", f)
                elif isinstance(v, types.FunctionType) or not k.startswith("__"):
                    self._value(f"{base.__name__}.{k}", code, v, (entries, "entries"))
                    continue
                else:
                    continue
                self._place(f"{base.__name__}.{k}", code, v, "is", (entries, "entries"))

    def _function(self, path: str, function: Any) -> None:
        if isinstance(function, types.MethodType):
            self._value(f"{path}.__self__", "", function.__self__)
            function = function.__func__
            if not isinstance(function, types.FunctionType):
                return
        self._changing(path, function.__module__)
        if function in _SETTINGS:
            self._value(f"{function.__name__}()", f"{self._name(function)}()", function())
        elif function is os.getenv:
            self._value("os.environ", "", os.environ)
        elif function is importlib.import_module:
            raise TooMuch("it imports modules by computed names (importlib.import_module); write an import statement")
        module, file = function.__module__ or "", function.__code__.co_filename
        # (an example in one of our docstrings is a user's function, whatever its module is called)
        if file.startswith(_FOLDER) or (in_library(module) and module.partition(".")[0] != PACKAGE):
            for cell in function.__closure__ or ():  # a decorator's wrapper around the user's function
                with contextlib.suppress(ValueError):  # an empty cell
                    if isinstance(cell.cell_contents, (types.FunctionType, types.MethodType)):
                        self._value(path, "", cell.cell_contents)
            return
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._cell(name, cell)
        self._place(f"the defaults of {path}", f"{self._name(function)}.__defaults__", function.__defaults__, "is")
        for k, v in enumerate(function.__defaults__ or ()):
            self._value(f"default {k} of {path}", "", v)
        if function.__kwdefaults__:
            self._mapping(f"the keyword defaults of {path}", function.__kwdefaults__)
        self._attributes(path, function.__dict__)
        self.tells_apart = self.tells_apart or reading.tells_apart(code)
        names = reading.attributes(code)
        standard = module.partition(".")[0] in sys.stdlib_module_names
        if not standard:
            self.names |= names
            self.codes.update(reading.codes(code))
        self._reads_groups = self._reads_groups or "param_groups" in names or "get_last_lr" in names
        scope = self._name(function.__globals__)
        for name in sorted(reading.globals_of(code)):
            if name in function.__globals__:
                self._global(name, scope, function.__globals__[name], names)
            elif name in reading.BLIND and not standard:
                raise TooMuch(f"it calls {name}(), so that names are read or set unseen; write the names themselves")
            elif not hasattr(builtins, name):
                self._place(f"the global {name}", f"{scope}.get({name!r}, MISSING)", _MISSING, "is")
        for name in sorted(reading.imports(code, function.__globals__.get("__package__") or "")):
            self._value(f"the module {name}", f"{self._name(sys.modules)}.get({name!r})", sys.modules.get(name))

    def _changing(self, path: str, module: str | None) -> None:
        """Refuse what gives another value at each call."""
        if (module or "").partition(".")[0] in CHANGING or (module or "").startswith("numpy.random"):
            raise TooMuch(f"it uses {path} of {module}, which gives another value at each call; pass such values as arguments")

    def _global(self, name: str, scope: str, value: Any, names: set[str]) -> None:
        self._entry(name, self._objects[int(scope[1:])], name, (scope, repr(name)), value)
        if isinstance(value, types.ModuleType):
            self._calculates = self._calculates or value.__name__ in ("math", "cmath", "numpy")
            if value.__name__.partition(".")[0] == "numpy" and "random" in names:
                raise TooMuch(
                    "it uses numpy.random, which gives another value at each call; draw with this library's random functions"
                )

    def _cell(self, name: str, cell: Any) -> None:
        try:
            value = cell.cell_contents
        except ValueError:
            return
        self._entry(name, cell, None, f"{self._name(cell)}.cell_contents", value, (cell, "cell"))

    def left(self) -> dict[tuple[int, Any], Kept]:
        """The places that hold other tensors now, as where a layer keeps its last loss."""
        found = {}
        scope = self._scope()
        for p in self.places:
            if p.holder:
                kept = Kept(scope[p.holder], eval(p.key, scope), p.path)
            elif p.part is not None and p.part[1] == "cell":
                kept = Kept(p.part[0], None, p.path)
            else:
                continue
            now = kept.get()
            if now is not p.value and keepable(now):
                found[kept.place] = kept
        return found

    def _scope(self) -> dict[str, Any]:
        """The names of generated code."""
        return {f"o{i}": o for i, o in enumerate(self._objects)} | {"MISSING": _MISSING, "form": form}

    # ---- the test
    def guard(self, skip: Collection[tuple[str, str]] = ()) -> Guard:
        """The test of all places. ``skip``: entries that are live numbers."""
        parts: dict[tuple[int, str], list[Place]] = {}
        for p in self.places:
            if p.part is not None:
                parts.setdefault((id(p.part[0]), p.part[1]), []).append(p)
        dicts: list[dict] = []
        words: list[watch.Record] = []
        told: set[tuple[int, str]] = set()  # the parts of which words tell
        for key, places in parts.items():
            of, part = places[0].part  # type: ignore[misc]
            if part == "entries" and watch.versioned(of):
                dicts.append(of)
            else:
                found = watch.records(of, part, [p.value for p in places if p.holder or part != "entries"])
                if found is None:
                    continue
                words += found
            told.add(key)
        always: list[int] = []
        watched: list[int] = []
        for i, p in enumerate(self.places):
            if (p.holder, p.key) not in skip:
                (watched if p.part is not None and (id(p.part[0]), p.part[1]) in told else always).append(i)
        return Guard(self._test(always), self._test(watched), watch.Watch(dicts, words) if told else None)

    def _test(self, numbers: list[int]) -> Callable[[], int] | None:
        """A function that gives the first of some places that has changed, or −1; None where there are none.

        The entries of one mapping or sequence are fetched together and compared by identity, empty containers are tested
        together: a few dozen comparisons cost a microsecond. Only where an object is another is it looked at closer.
        """
        if not numbers:
            return None
        together: dict[str, list[int]] = {}
        empty: list[int] = []
        lines: list[str] = []
        values: dict[str, Any] = self._scope() | {"find": self._find}

        def differs(i: int, code: str) -> str:
            value = self.places[i].value
            if value is None or isinstance(value, bool):
                return f"{code} is not {value!r}"
            values[f"v{i}"] = value
            return f"{code} is not v{i}"

        for i in numbers:
            p = self.places[i]
            if p.holder:
                together.setdefault(p.holder, []).append(i)
            elif p.how == "is":
                lines += [f"if {differs(i, p.code)}:", f"    return {i}"]
            elif p.how == "equal":
                lines += [f"if {differs(i, p.code)} and find(({i},)) >= 0:", f"    return {i}"]
            elif p.code.startswith("len(") and p.value == 0:
                empty.append(i)
            else:
                values[f"v{i}"] = p.value
                lines += [f"if {p.code} != v{i}:", f"    return {i}"]
        for name, entries in together.items():
            get = f"get{entries[0]}"
            values[get] = eval(
                f"itemgetter({', '.join(self.places[i].key for i in entries)})", {"itemgetter": itemgetter, **values}
            )
            lines.append(f"{', '.join(f'x{i}' for i in entries)} = {get}({name})")
            values[f"all{entries[0]}"] = tuple(entries)
            lines.append(f"if {' or '.join(differs(i, f'x{i}') for i in entries)}:")
            lines += [f"    n = find(all{entries[0]})", "    if n >= 0:", "        return n"]
        for k in range(0, len(empty), 32):
            part = empty[k : k + 32]
            values[f"all{part[0]}"] = tuple(part)
            lines += [f"if {' or '.join(self.places[i].code[4:-1] for i in part)}:", f"    return find(all{part[0]})"]
        body = "".join(f"        {line}\n" for line in lines)
        text = f"def check():\n    try:\n{body or '        pass'}\n    except Exception:\n        return {len(self.places)}\n    return -1\n"
        exec(compile(text, "<guards of a compiled function>", "exec"), values)
        return values["check"]  # type: ignore[no-any-return]

    def _find(self, numbers: tuple[int, ...]) -> int:
        """Which of some places has changed, or −1."""
        scope = self._scope()
        for i in numbers:
            p = self.places[i]
            if not _unchanged(eval(p.code, scope), p.value, p.how):
                return i
        return -1

    def describe(self, number: int) -> str:
        """What has changed, in words."""
        if not 0 <= number < len(self.places):
            return "a container that it reads has changed"
        p = self.places[number]
        return f"{p.path} is no longer {_short(p.value)}" if p.how == "equal" else f"{p.path} has changed"


class Guard:
    """Whether all places are as they were. ``always`` tests those that no words tell of, ``watched`` the others; −1: unchanged.

    ``same()``: whether the others are surely unchanged, numbers that programs read anew included. It is what a call begins with.
    """

    def __init__(self, always: Callable[[], int] | None, watched: Callable[[], int] | None, words: watch.Watch | None):
        self.always, self._watched, self._words = always, watched, words
        self.same: Callable[[], bool] = bool  # nothing has been looked at yet

    def __call__(self) -> int:
        """The number of a place that has changed, or −1."""
        changed = -1 if self.always is None else self.always()
        return changed if changed >= 0 or self.same() else self.look()

    def look(self) -> int:
        """The number of a place that has changed among those that words tell of, or −1."""
        if self._watched is None or self._words is None:
            return -1
        versions = self._words.versions()
        changed = self._watched()
        if changed < 0:
            self._words.renew(versions)
            self.same = self._words.same
        return changed

    def sees(self, mapping: dict) -> bool:
        """Whether a change of this dict is a change to `same`."""
        return self._words is not None and any(d is mapping for d in self._words.dicts)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "…"
