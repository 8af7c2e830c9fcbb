"""What a captured program takes for granted about Python: every value that its function can reach.

`Reach` walks from a function through its closure, its globals, the objects and containers found there, and enters each as a place
(`places`), of which `guard.build_guard` makes a test. What cannot be watched ends the walk: TooMuch.
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
import weakref
from collections import deque
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from enum import Enum
from operator import attrgetter, itemgetter, methodcaller
from pathlib import Path
from typing import Any

import numpy as np

from ... import config
from ...ops.core.marked import MARKED
from ...tensor import Tensor
from ..nested import is_plain, is_sparse
from . import bytecode
from .carried_state import Kept, form, keepable
from .places import BY_DIGITS, BY_IDENTITY, BY_VALUE, EMPTY, MISSING, Entry, NotYet, Place, Places, TooMuch, in_library

PACKAGE = __name__.partition(".")[0]

#: modules whose functions give other values at each call
CHANGING = {"random", "_random", "time", "secrets", "uuid", "datetime"}
_SMALL = 4096  #: bytes of a NumPy array whose contents are compared at each call
#: layers whose objects (ops, kernels, layouts, generators, groups of processes) are the library's own affair
_INSIDE = tuple(
    f"{PACKAGE}.{layer}"
    for layer in ("ops", "launch", "graph.node", "graph.modes", "codegen", "compiler", "shapes", "dtypes", "distributed", "nn.parallel.buckets")
)
_FOLDER = str(Path(__file__).parents[2])
#: functions that tell a setting of the process
_SETTINGS = (config.are_deterministic_algorithms_enabled, config.get_float32_matmul_precision, config.get_num_threads)
#: of libraries, what is watched
_WATCHED = {"os": {"environ", "getenv"}}
#: classes whose objects hold values where no guard sees them
_OPAQUE = {"_ctypes._CData", "_thread._local", "array.array", "builtins.memoryview", "mmap.mmap"}
#: methods of tensors in whose place a capture puts others
_EXCHANGED = ("__getattr__", "__hash__")


def _replaceable(value: Any) -> bool:
    """Return whether an attribute of one of this library's modules is what programs put something else in the place of, or such a thing."""
    return isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType)) or not in_library(
        type(value).__module__
    )


class Reach:
    """The places that a function can reach, and among them the tensors and the optimizers."""

    def __init__(self, kept: Mapping[tuple[int, Any], Kept] = types.MappingProxyType({})) -> None:
        self._places = Places()
        self.kept: list[Kept] = []  # those of ``kept`` that it reaches
        self._kept = kept
        self.tensors: dict[int, tuple[str, Tensor]] = {}
        self.optimizers: list[Any] = []
        self._reads_groups = self._calculates = False
        self.tells_apart: bool = False  # whether one asks if two objects are the same
        self.names: set[str] = set()  # those of all attributes that the user's functions read
        self.codes: set[types.CodeType] = set()  # theirs, and that of what is defined in them
        self._modules: dict[int, tuple[str, types.ModuleType, set[str]]] = {}  # (path, module, names that were looked into)
        self._queue: deque = deque()
        self._methods: dict[str, Any] = {}  # those of tensors

    @property
    def places(self) -> list[Place]:
        """Return the places that it has found."""
        return self._places.found

    def scope(self) -> dict[str, Any]:
        """Return the objects that the names in the code of the places stand for, by name."""
        return self._places.scope()

    @property
    def live_numbers(self) -> bool:
        """Return whether learning rates may be read anew at each run: not where compiled code of others (math, NumPy) may work on them."""
        return not (self._reads_groups and self._calculates)

    def function(self, function: Any, path: str = "") -> None:
        """Walk from a function, a bound method or a callable object."""
        self._methods = {k: v for k, v in vars(Tensor).items() if k not in _EXCHANGED}
        for k, v in self._methods.items():
            if isinstance(v, types.FunctionType) and not v.__code__.co_filename.startswith(_FOLDER):
                self._value(f"Tensor.{k}", "", v)
        self._value(path or getattr(function, "__name__", "function"), "", function)
        self._run()

    def anew(self) -> Reach:
        """Return a walk that begins anew, with what this one knows of places in which the function leaves tensors."""
        return Reach(self._kept)

    def pass_by(self, functions: Iterable[Any]) -> None:
        """Do not look into these functions where the walk meets them."""
        for f in functions:
            self._places.name(f)

    def note_methods(self) -> None:
        """Take for granted that the methods of tensors are as they were."""
        entries = gc.get_referents(vars(Tensor))[0]  # the dict behind the proxy
        if self._methods:
            code = f"{self._places.name(itemgetter(*self._methods))}({self._places.name(entries)})"
            self._places.add("a method of Tensor", code, tuple(self._methods.values()), BY_VALUE, (entries, "entries"))
        self._methods = {}

    def value(self, path: str, value: Any) -> None:
        """Walk on from an object: enter what it is, and all that can be reached from it."""
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
                self._value(f"{path}.{k}", self._places.entry(inside, k), inside[k])
        return bool(self._queue)

    def _value(self, path: str, code: str | Entry, value: Any, part: tuple[Any, str] | None = None) -> None:
        """Note a value at a place (``code``: how it is fetched; empty: held by the caller), and look into it."""
        plain = is_plain(value) or (isinstance(value, tuple) and all(is_plain(v) or v is None for v in value))
        single = value is None or isinstance(value, (bool, Enum))
        if code:
            self._places.add(path, code, value, BY_DIGITS if plain and not single else BY_IDENTITY, part)
        if isinstance(value, Tensor):
            self._tensor(path, value)
        if plain or single or isinstance(value, Tensor):
            return
        if self._places.named(value):
            return
        self._places.name(value)
        self._queue.append((self._inside, path, value))

    def _tensor(self, path: str, t: Tensor) -> None:
        if id(t) in self.tensors:
            return
        if t.__class__ in MARKED:
            raise TooMuch(f"it reaches a view that shows conjugates or negatives ({path}); keep its resolve_conj().resolve_neg() there")
        if is_sparse(t):
            raise TooMuch(f"it reaches a sparse tensor ({path}); pass its values, or make it dense (to_dense())")
        if type(t)._layout is not Tensor._layout:
            raise NotYet
        self.tensors[id(t)] = (path, t)
        name = self._places.name(t)
        self._places.add(path + " (its memory)", f"{name}._data", t._data, BY_IDENTITY, (t, "_data"))
        self._places.add(path + " (its shape)", f"{name}._layout", t._layout, BY_IDENTITY, (t, "_layout"))
        _ = t.requires_grad  # a view looks at its base first
        self._places.add(path + ".requires_grad", f"{name}._rg", t._rg, BY_IDENTITY, (t, "_rg"))
        if t._rg and t._edge is None:  # which an op in place may end after detach_()
            self._places.add(path + ".is_leaf", f"{name}._edge", None, BY_IDENTITY, (t, "_edge"))
        elif t._rg:
            self._places.add(path + ".is_leaf", f"({name}._edge is None)", False, BY_IDENTITY)
        if t._view is not None:
            base = t._view
            self._places.add(f"{path}._base.requires_grad", f"{self._places.name(base)}._rg", base._rg, BY_IDENTITY, (base, "_rg"))
        self._places.add(path + "'s hooks", f"{name}._leaf_hook_set", t._leaf_hook_set, BY_IDENTITY, (t, "_leaf_hook_set"))
        self._attributes(path, t.__dict__)
        if t._leaf_hook_set is not None:
            self._queue.append((self._hooks, path, t._leaf_hook_set))

    def _hooks(self, path: str, hooks: Any) -> None:
        """Walk to the hooks of a leaf."""
        self._mapping(f"{path}'s hooks", hooks.accumulated)
        self._mapping(f"{path}'s hooks", hooks.tensor)

    def _inside(self, path: str, value: Any) -> None:
        """Walk on to what a value holds, in the way of its kind."""
        walk = next((walk for kinds, walk in _WALKS if isinstance(value, kinds)), Reach._other)
        walk(self, path, value)

    def _other(self, path: str, value: Any) -> None:
        if type(value).__module__.startswith(PACKAGE + ".compiler") and hasattr(value, "__wrapped__"):
            self._value(path, "", value.__wrapped__)  # a compiled function stands for the function
        elif hasattr(type(value), "__next__"):
            raise TooMuch(
                f"it reaches an iterator ({path}), which gives another value at each call; call next() outside and pass the value"
            )
        else:
            self._object(path, value)

    def _builtin(self, path: str, function: types.BuiltinFunctionType) -> None:
        owner = function.__self__
        self._calculates = self._calculates or function.__module__ in ("math", "cmath", "numpy")
        self._changing(path, function.__module__ or getattr(owner, "__module__", None))
        if not isinstance(owner, (type, types.ModuleType)):
            self._value(f"{path}.__self__", "", owner)

    def _module(self, path: str, module: types.ModuleType) -> None:
        if module.__name__.partition(".")[0] in CHANGING:
            raise TooMuch(
                f"it uses the module {module.__name__}, whose functions give another value at each call; pass such values as arguments"
            )
        self._modules.setdefault(id(module), (path, module, set()))

    def _type(self, path: str, value: type) -> None:
        self._changing(path, value.__module__)
        if not in_library(value.__module__):
            self._class(path, value)

    def _array(self, path: str, value: np.ndarray) -> None:
        if value.nbytes > _SMALL or value.dtype.hasobject:
            raise TooMuch(f"it reaches a NumPy array ({path}), whose values may change unseen; make it a tensor")
        self._places.add(f"the values of {path}", f"{self._places.name(value)}.tobytes()", value.tobytes(), BY_VALUE)

    def _file(self, path: str, value: io.IOBase) -> None:
        raise TooMuch(f"it reaches a file ({path}), which a captured run would neither read nor write")

    def _getter(self, path: str, getter: attrgetter | methodcaller) -> None:
        """Note the attributes that it reads."""
        self.names.update(part for name in getter.__reduce__()[1] if isinstance(name, str) for part in name.split("."))

    def _partial(self, path: str, value: functools.partial) -> None:
        for part in ("func", "args", "keywords"):
            self._value(f"{path}.{part}", "", getattr(value, part))

    def _reference(self, path: str, reference: weakref.ref[Any]) -> None:
        """Walk to what a weak reference is to, and see that it is still there."""
        if type(reference) is not weakref.ref:
            self._object(path, reference)
            return
        there = reference()
        self._places.add(f"whether {path} refers to anything", f"{self._places.name(reference)}() is None", there is None, BY_VALUE)
        if there is not None:
            self._value(f"{path}()", "", there)

    def _context_variable(self, path: str, variable: ContextVar) -> None:
        unset = self._places.name(MISSING)
        self._value(f"{path}.get()", f"{self._places.name(variable)}.get({unset})", variable.get(MISSING))

    def _length(self, path: str, value: Any) -> None:
        """Enter how many entries a container has."""
        name, size = self._places.name(value), len(value)
        self._places.add(path, f"len({name})" if size else name, size, BY_VALUE if size else EMPTY, (value, "entries"))

    def _container(self, path: str, value: Any) -> None:
        """Walk to the entries, and to the attributes of an object of a user's class."""
        if isinstance(value, (dict, types.MappingProxyType)):
            self._mapping(path, value)
        elif isinstance(value, (list, tuple, deque)):
            self._length(f"len({path})", value)
            for i, v in enumerate(value):
                self._entry(f"{path}[{i}]", value, i, self._places.entry(value, i), v)
        else:
            self._places.add(f"the contents of {path}", self._places.name(value), value.copy(), BY_VALUE, (value, "entries"))
            for v in value:
                self._value(f"an element of {path}", "", v)
        if not in_library(type(value).__module__):
            self._object(path, value)

    def _mapping(self, path: str, d: Any) -> None:
        name = self._places.name(d)
        if d:
            self._places.add(f"the keys of {path}", f"tuple({name})", tuple(d), BY_VALUE, (d, "entries"))
        else:
            self._length(f"len({path})", d)
        for k, v in d.items():
            self._value(f"a key of {path}", "", k)
            text = repr(k) if type(k) in (str, int, bool) else self._places.name(k)
            self._entry(f"{path}[{k if isinstance(k, (str, int)) else '…'!r}]", d, k, self._places.entry(d, k, text), v)

    def _entry(self, path: str, holder: Any, k: Any, code: str | Entry, value: Any, part: Any = None) -> None:
        """Enter what a mapping, a sequence or a cell holds. Where the function leaves tensors, only their form is noted; where
        it reads them too they are arguments.
        """
        kept = self._kept.get((id(holder), k))
        if kept is None:
            self._value(path, code, value, part)
            return
        self.kept.append(kept)
        if not kept.read:
            there = code if isinstance(code, str) else code.code
            self._places.add(f"the form of {path}", f"form({there})", form(value), BY_VALUE)

    def _functional(self, kind: type) -> None:
        """Walk to what stands in ``nn.functional``, with which this library's modules compute: programs may put something else there."""
        module = sys.modules.get(f"{PACKAGE}.nn.functional")
        forward = getattr(kind, "forward", None)
        if module is None or not isinstance(forward, types.FunctionType):
            return
        inside = vars(module)
        for k in sorted(bytecode.attributes(forward.__code__) & inside.keys()):
            if _replaceable(inside[k]):
                self._value(f"nn.functional.{k}", self._places.entry(inside, k), inside[k])

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
        name = self._places.name(value)
        self._places.add(f"the class of {path}", f"type({name})", kind, BY_IDENTITY, (value, "class"))
        if isinstance(attributes, dict):
            if value.__dict__ is attributes:  # no property that makes one
                self._places.add(f"{path}.__dict__", f"{name}.__dict__", attributes, BY_IDENTITY, (value, "attributes"))
            if isinstance(attributes.get("param_groups"), list) and isinstance(attributes.get("state"), dict):
                self.optimizers.append(value)
            self._attributes(path, attributes)
        self._slots(path, name, value)
        if not in_library(kind.__module__):
            self._class(path, kind)
        elif kind.__module__.startswith(f"{PACKAGE}.nn."):
            self._functional(kind)

    def _slots(self, path: str, name: str, value: Any) -> None:
        """Walk to what the slots of an object hold; that one is empty is noted too."""
        for cls in type(value).__mro__:
            for slot, member in vars(cls).items() if not in_library(cls.__module__) else ():
                if isinstance(member, types.MemberDescriptorType):
                    there = getattr(value, slot, MISSING)
                    self._value(f"{path}.{slot}", f"getattr({name}, {slot!r}, MISSING)", there)

    def _attributes(self, path: str, attributes: dict[Any, Any]) -> None:
        """Walk to the entries of an object's ``__dict__``."""
        self._length(f"attributes of {path}", attributes)
        for k, v in attributes.items():
            self._entry(f"{path}.{k}", attributes, k, self._places.entry(attributes, k), v)

    def _class(self, path: str, cls: type) -> None:
        self._places.add(f"the bases of {path}", f"{self._places.name(cls)}.__mro__", cls.__mro__, BY_IDENTITY, (cls, "__mro__"))
        for base in cls.__mro__:
            if in_library(base.__module__):
                continue
            entries = gc.get_referents(vars(base))[0]  # the dict behind the proxy
            count = f"len(vars({self._places.name(base)}))"  # one more may stand before one of another base
            self._places.add(f"the attributes of the class {base.__name__}", count, len(entries), BY_VALUE, (entries, "entries"))
            for k, v in list(vars(base).items()):
                code = f"vars({self._places.name(base)}).get({k!r}, MISSING)"
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
                self._places.add(f"{base.__name__}.{k}", code, v, BY_IDENTITY, (entries, "entries"))

    def _function(self, path: str, function: Any) -> None:
        """Walk into a function: what it is made with, and what its code names."""
        if isinstance(function, types.MethodType):
            self._value(f"{path}.__self__", "", function.__self__)
            function = function.__func__
            if not isinstance(function, types.FunctionType):
                return
        self._changing(path, function.__module__)
        if function in _SETTINGS:
            self._value(f"{function.__name__}()", f"{self._places.name(function)}()", function())
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
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._cell(name, cell)
        name = self._places.name(function)
        self._places.add(f"the code of {path}", f"{name}.__code__", function.__code__, BY_IDENTITY, (function, "__code__"))
        self._places.add(f"the defaults of {path}", f"{name}.__defaults__", function.__defaults__, BY_IDENTITY, (function, "__defaults__"))
        for k, v in enumerate(function.__defaults__ or ()):
            self._value(f"default {k} of {path}", "", v)
        if function.__kwdefaults__:
            self._mapping(f"the keyword defaults of {path}", function.__kwdefaults__)
        self._attributes(path, function.__dict__)
        self._code(function, module)

    def _code(self, function: types.FunctionType, module: str) -> None:
        """Note which attributes, globals and modules the code of a function reads."""
        code = function.__code__
        self.tells_apart = self.tells_apart or bytecode.tells_apart(code)
        names = bytecode.attributes(code)
        standard = module.partition(".")[0] in sys.stdlib_module_names
        if not standard:
            self.names |= names
            self.codes.update(bytecode.codes(code))
        self._reads_groups = self._reads_groups or "param_groups" in names or "get_last_lr" in names
        scope = self._places.name(function.__globals__)
        for name in sorted(bytecode.globals_of(code)):
            if name in function.__globals__:
                self._global(name, function.__globals__, names)
            elif name in bytecode.BLIND and not standard:
                raise TooMuch(f"it calls {name}(), so that names are read or set unseen; write the names themselves")
            elif not hasattr(builtins, name):
                self._places.add(f"the global {name}", f"{scope}.get({name!r}, MISSING)", MISSING)
        for name in sorted(bytecode.imports(code, function.__globals__.get("__package__") or "")):
            self._value(f"the module {name}", f"{self._places.name(sys.modules)}.get({name!r})", sys.modules.get(name))

    def _changing(self, path: str, module: str | None) -> None:
        """Refuse what gives another value at each call."""
        if (module or "").partition(".")[0] in CHANGING or (module or "").startswith("numpy.random"):
            raise TooMuch(f"it uses {path} of {module}, which gives another value at each call; pass such values as arguments")

    def _global(self, name: str, scope: dict[str, Any], names: set[str]) -> None:
        value = scope[name]
        self._entry(name, scope, name, self._places.entry(scope, name), value)
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
        self._entry(name, cell, None, f"{self._places.name(cell)}.cell_contents", value, (cell, "cell"))

    def reaches(self, value: Any) -> bool:
        """Return whether the walk has met an object."""
        return self._places.named(value)

    def left(self) -> dict[tuple[int, Any], Kept]:
        """Return the places that hold other tensors now, as where a layer keeps its last loss."""
        found = {}
        for p in self.places:
            if p.entry is not None:
                kept = Kept(p.entry.holder, p.entry.key, p.path)
            elif p.part is not None and p.part[1] == "cell":
                kept = Kept(p.part[0], None, p.path)
            else:
                continue
            now = kept.get()
            if now is not p.value and keepable(now):
                found[kept.place] = kept
        return found


#: how the walk goes on from values of some kinds
_WALKS: tuple[tuple[Any, Any], ...] = (
    ((types.FunctionType, types.MethodType), Reach._function),
    (types.BuiltinFunctionType, Reach._builtin),
    (types.ModuleType, Reach._module),
    (type, Reach._type),
    (np.ndarray, Reach._array),
    ((dict, types.MappingProxyType, list, tuple, deque, set, frozenset, bytearray), Reach._container),
    (io.IOBase, Reach._file),
    ((attrgetter, methodcaller), Reach._getter),
    (functools.partial, Reach._partial),
    (ContextVar, Reach._context_variable),
    (weakref.ref, Reach._reference),
)
