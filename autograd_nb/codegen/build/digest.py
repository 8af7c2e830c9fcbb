"""What a kernel's machine code depends on besides the processor and the versions of libraries, as one number: see `Digest`."""

from __future__ import annotations

import sys
import types as pytypes
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..processor import Sized
from .hashed import hashed

#: the module that generated functions say they are of; its own text does not matter to them
GENERATED = __package__ or ""

_PACKAGE = __name__.partition(".")[0]
#: the folders of the package whose functions kernels consist of
ROOMS = ("codegen", "kernels")


class Unknown(Exception):
    """Met an object whose influence on the machine code cannot be told."""


class Digest:
    """The hash of a value as a kernel sees it: functions by their code and by all that it refers to, transitively.

    It reads the functions in memory, not their files, as those may have been edited since they were imported.
    The text of autograd_nb's modules that are met goes in as well, for what does not show in code (``@overload``).
    """

    def __init__(self) -> None:
        self._hash = hashed()
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # an id names an object only while it lives
        self.external: bool = False  #: whether it calls another library, by a name
        self.own: bool = True  #: whether there was nothing in it but what is in `ROOMS`, and of libraries whose versions the key has

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def _put(self, kind: str, *parts: str | bytes) -> None:
        for part in (kind, *parts):
            data = part.encode() if isinstance(part, str) else part
            self._hash.update(b"%d:" % len(data) + data)

    def _first_time(self, value: Any) -> bool:
        number = self._seen.get(id(value))
        if number is not None:
            self._put("again", str(number))
            return False
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        return True

    def add(self, value: Any) -> None:
        """Take in a value of any kind. Raises `Unknown` for one whose influence on the machine code cannot be told."""
        for kinds, take in _KINDS:
            if isinstance(value, kinds):
                return take(self, value)
        return self._numba(value)

    def _sized(self, value: Sized) -> None:
        """Take in where the number comes from: its value follows from the text, and the processor is said elsewhere."""
        self._put("sized", *value.modules)
        for module in value.modules:
            self._text(module)

    def _number(self, value: Any) -> None:
        self._put(type(value).__name__, value.tobytes() if isinstance(value, np.generic) else repr(value))

    def _sequence(self, value: tuple[Any, ...] | list[Any]) -> None:
        self._put(type(value).__qualname__, str(len(value)))
        for item in value:
            self.add(item)

    def _dict(self, value: dict[Any, Any]) -> None:
        self._put("dict", str(len(value)))
        for key, item in sorted(value.items(), key=lambda pair: _alone(pair[0])):
            self.add(key)
            self.add(item)

    def _array(self, value: np.ndarray) -> None:
        if value.dtype.hasobject:
            raise Unknown
        self._put("array", repr(value.dtype), repr(value.shape), repr(value.flags.c_contiguous), value.tobytes())

    def _class(self, value: type) -> None:
        self._put("class", value.__module__, value.__qualname__)
        self._text(value.__module__)

    def _numba(self, value: Any) -> None:
        from numba.core import types
        from numba.core.dispatcher import Dispatcher

        if isinstance(value, Dispatcher):
            if self._first_time(value):
                self._put("dispatcher")
                self.add(value.targetoptions)
                self.add(value.py_func)
        elif isinstance(value, types.ExternalFunctionPointer):
            raise Unknown  # an address of this process
        elif isinstance(value, types.ExternalFunction):
            self._put("external", str(value.symbol), str(value.sig))
            self.external = True
        elif isinstance(value, types.Type):
            self._put("type", str(value))
        elif isinstance(getattr(value, "_defn", None), pytypes.FunctionType):  # an intrinsic
            self._put("intrinsic")
            self.add(value._defn)
        elif isinstance(getattr(value, "__wrapped__", None), pytypes.FunctionType) and value.__module__.startswith("numpy"):
            self._put("builtin", value.__module__, value.__name__)  # np.empty and its like
        else:
            raise Unknown

    def _code(self, code: pytypes.CodeType) -> None:
        self._put("code", code.co_code, getattr(code, "co_exceptiontable", b""), code.co_name)
        self.add((code.co_flags, code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount))
        self.add((code.co_consts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))

    def _function(self, function: pytypes.FunctionType) -> None:
        if not self._first_time(function):
            return
        module = function.__module__ or ""
        if module.partition(".")[0] in ("numba", "numpy", "math", "operator"):
            self._put("library", module, function.__qualname__)  # its version is in the key
            return
        self._put("function", module)
        self._code(function.__code__)
        self.add(function.__defaults__)
        self.add(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            self.add(cell.cell_contents)
        self._text(module)
        names = sorted(set(_names(function.__code__)))
        for name in names:
            if name not in function.__globals__:
                continue  # a builtin or an attribute
            value = function.__globals__[name]
            self._put("global", name)
            self.add(value)
            if isinstance(value, pytypes.ModuleType) and value.__name__.partition(".")[0] not in _LIBRARIES:
                self._meet(value.__name__)
                for attribute in names:
                    if hasattr(value, attribute):
                        self._put("attribute", attribute)
                        self.add(getattr(value, attribute))

    def _text(self, module: str) -> None:
        if module.startswith(_PACKAGE + ".") and module != GENERATED:
            self._put("text", _module_digest(module))
        self._meet(module)

    def _meet(self, module: str) -> None:
        """Take note of who has written what is in it."""
        top, _, rest = module.partition(".")
        if top == _PACKAGE:
            self.own = self.own and rest.partition(".")[0] in ROOMS
        else:
            self.own = self.own and (top in _VERSIONED or top in sys.stdlib_module_names)


#: kinds of values, the narrower ones first, and what takes them in; all others are Numba's
_KINDS: tuple[tuple[Any, Callable[[Digest, Any], None]], ...] = (
    (Sized, Digest._sized),
    ((type(None), bool, int, float, complex, str, np.generic), Digest._number),
    (bytes, lambda digest, value: digest._put("bytes", value)),
    ((tuple, list), Digest._sequence),
    ((set, frozenset), lambda digest, value: digest._put("set", *sorted(_alone(item) for item in value))),
    (dict, Digest._dict),
    (np.ndarray, Digest._array),
    (np.dtype, lambda digest, value: digest._put("dtype", repr(value))),
    (pytypes.CodeType, Digest._code),
    (pytypes.FunctionType, Digest._function),
    (pytypes.ModuleType, lambda digest, value: digest._put("module", value.__name__)),  # what is used of it is added where it is used
    ((pytypes.BuiltinFunctionType, np.ufunc), lambda digest, value: digest._put("builtin", str(getattr(value, "__module__", "")), value.__name__)),
    (type, Digest._class),
    (slice, lambda digest, value: digest._put("slice", repr(value))),
    (type(...), lambda digest, value: digest._put("ellipsis")),
)

_VERSIONED = {"numba", "numpy", "llvmlite"}
_LIBRARIES = {"numba", "numpy", "math", "cmath", "operator"}  # with versions of their own, which are in the key


def _alone(value: Any) -> str:
    digest = Digest()
    digest.add(value)
    return digest.hexdigest()


def _names(code: pytypes.CodeType) -> Iterable[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, pytypes.CodeType):
            yield from _names(constant)


_module_digests: dict[str, str] = {}


def _module_digest(name: str) -> str:
    found = _module_digests.get(name)
    if found is None:
        module = sys.modules.get(name)
        loader = getattr(getattr(module, "__spec__", None), "loader", None)
        try:
            text = loader.get_source(name) if loader is not None else None
        except (AttributeError, ImportError, OSError):
            text = None
        found = _module_digests[name] = hashed((text or "").encode()).hexdigest()
    return found
