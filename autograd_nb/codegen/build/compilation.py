"""Compile kernels, or find the machine code on disk (`machine_code`): only here and there is known how Numba does both.

A kernel is found by its content: the key is the hash (`digest`) of all that its machine code depends on, which is its text, the
code and constants of every function that it calls (in whatever file), the options, the argument types, the versions of
Python, NumPy, Numba and llvmlite, and the processor. So nothing is ever stale, and nothing needs to be invalidated.
Numba's own cache misses edits to functions in other files and changed constants, hence this one.

The key is part of the kernel's name, and so of its LLVM symbol: equal symbols mean equal bodies. For the functions that
Numba compiles along with it, numbered by a counter that starts at 1 in every process, the counter is set to a random
start (see `_compile`): otherwise two cached kernels from two processes could bring different bodies of one name, and
the linker would take the first for both (numba #10486).

Where Numba lacks the private interfaces used here, kernels are compiled without being kept.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import os
import sys
import types as pytypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...overriding import overridable
from ..interpreted import argument, plainly
from . import machine_code, workers
from .apart import apart, imported
from .cache import CacheWarning
from .digest import GENERATED, Digest, Unknown
from .hashed import hashed
from .linking import Code, Linked, link
from .linking import function as callable_of
from .machine_code import requests, store
from .notice import compiling

__all__ = ["CacheWarning", "apart", "build", "build_function", "foreign", "numba", "store", "written"]

Entry = Callable[..., Any]

_built: dict[tuple[Any, ...], Entry] = {}
_by_key: dict[str, Entry] = {}  # one text may be built under two names, one function be imported twice
_linked: dict[int, tuple[Entry, Linked, tuple[str, ...]]] = {}  # by the id of the entry point: itself, what it calls, argument types
_alive: list[Any] = []  # what Numba has compiled: machine code refers to its objects


def build(source: str, name: str, argtypes: tuple[str, ...], checked: bool = False) -> Entry:
    """Return the compiled entry point of function ``name`` that the text ``source`` defines.

    ``argtypes``: "float32[:]" (a flat C array), "int64", "float64", "complex128", "bool", "(3)" (a tuple of three int64), or
    "[float32]" (a list of flat arrays, see `arrays`). ``checked``: every index of an array is tested (the text imports what looks
    at bounds itself).
    """
    wanted = (source, name, argtypes, "checked") if checked else (source, name, argtypes)
    found = _built.get(wanted)
    return found if found is not None else _entry(_build, wanted, source, name, argtypes, checked)


def built(source: str, name: str, argtypes: tuple[str, ...]) -> Entry | None:
    """Return what `build` has made of a text before, or None."""
    return _built.get((source, name, argtypes))


def _build(wanted: tuple[Any, ...], source: str, name: str, argtypes: tuple[str, ...], checked: bool) -> Entry:
    found = _built.get(wanted)  # another thread may have waited for it too
    if found is None:
        words = ("text", source, name, argtypes, checked)
        found = _built[wanted] = _known(words, argtypes) or _made(defined(wanted, source, name), argtypes, source, checked, words)
    return found


def defined(wanted: tuple[Any, ...], source: str, name: str) -> pytypes.FunctionType:
    """Return the function ``name`` that a text defines."""
    digest = hashed(repr(wanted).encode()).hexdigest()
    filename = f"<autograd_nb:{name}:{digest[:8]}>"
    # no modification time: linecache keeps the entry, so tracebacks and debuggers show the text
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    space: dict[str, Any] = {"__name__": GENERATED}
    exec(compile(source, filename, "exec"), space)
    if "math" in space:
        from ..jit import math

        space["math"] = math
    function: pytypes.FunctionType = space[name]
    return function


def source_of(entry: Entry) -> tuple[Any, ...]:
    """Return ("source", text, argument types) of an entry point that `build` made, or is going to; empty for another."""
    known: tuple[Any, ...] | None = getattr(entry, "origin", None)
    if known is not None:
        return known
    for wanted, made in reversed(list(_built.items())):
        if made is entry and len(wanted) == 3:
            return ("source", wanted[0], wanted[2])
    return ()


def build_function(function: Any, argtypes: tuple[str, ...], checked: bool = False) -> Entry:
    """Return the compiled entry point of a hand-written kernel: a plain function, or one decorated with `jit.helper`."""
    wanted = (function, argtypes, checked, "")
    found = _built.get(wanted)
    return found if found is not None else _entry(_build_function, wanted, function, argtypes, checked)


def _build_function(wanted: tuple[Any, ...], function: Any, argtypes: tuple[str, ...], checked: bool) -> Entry:
    found = _built.get(wanted)
    if found is None:
        path = _path_of(function)
        words = ("function", *path, argtypes, checked) if path else ()
        found = _known(words, argtypes)
        if found is None:
            function = function.itself() if isinstance(function, Written) else function
            found = _made(getattr(function, "py_func", function), argtypes, "", checked, words)
        _built[wanted] = found
    return found


class Written:
    """A hand-written kernel as far as it is known without its module: ``foreign``, ``parameters`` (their names) and what else was said of it."""

    foreign = False

    def __init__(self, path: tuple[str, str], about: dict[str, Any]):
        self.path = path
        for name, value in about.items():
            setattr(self, name, tuple(value))

    def itself(self) -> Any:
        """Return the kernel, whose module (and Numba with it) is imported if need be."""
        return getattr(imported(self.path[0]), self.path[1])


def _path_of(function: Any) -> tuple[str, str] | None:
    """Return (module, name) of a kernel of the library; None of any other function."""
    if isinstance(function, Written):
        return function.path
    module, name = function.__module__ or "", function.__name__
    known = sys.modules.get(module) if module.startswith(_KERNELS + ".") else None
    return (module, name) if getattr(known, name, None) is function else None


_KERNELS = "autograd_nb.kernels"
_BLAS = f"{_KERNELS}.products.blas"  #: where BLAS and LAPACK are bound


def parameters(function: Any) -> tuple[str, ...]:
    """Return the names of a kernel's arguments."""
    if isinstance(function, Written):
        return function.parameters  # type: ignore[attr-defined,no-any-return]
    code = getattr(function, "py_func", function).__code__
    return tuple(code.co_varnames[: code.co_argcount])


@overridable
def written(module: str, name: str, package: str = _KERNELS) -> Any:
    """Return a hand-written kernel; where it is not known from before, its module (and Numba with it) is imported, which nothing interrupts."""
    path = f"{package}.{module}", name
    about = machine_code.answer("written", *path)
    if about is not None:
        return Written(path, about)
    function = getattr(imported(path[0]), name)
    if package == _KERNELS and not hasattr(function, "foreign"):
        said = {name: value for name, value in vars(function).items() if isinstance(value, tuple)}
        apart(requests.note, {"parameters": parameters(function), **said}, "written", *path)
    return function


def numba() -> Any:
    """Return the module Numba, imported if need be."""
    return imported("numba")


def disabled() -> bool:
    """Return whether kernels run as Python (``NUMBA_DISABLE_JIT=1``)."""
    asked = "numba" in sys.modules or "NUMBA_DISABLE_JIT" in os.environ or os.path.exists(".numba_config.yaml")
    return asked and bool(numba().config.DISABLE_JIT)


def foreign(function: Any) -> Any:
    """Decorator: a kernel that is Python calling another library's compiled code on the arrays; it is not compiled."""
    function.foreign = True
    return function


@overridable
def _entry(make: Callable[..., Entry], *args: Any) -> Entry:
    """Return the entry point that ``make(*args)`` loads or compiles."""
    return apart(make, *args)


def _known(words: tuple[Any, ...], argtypes: tuple[str, ...]) -> Entry | None:
    """Return a kernel that another process has asked for in the same words, without defining it; None where that is not known."""
    answer = machine_code.answer(*words) if words else None
    if answer is None:
        if words and "numba" not in sys.modules and requests.is_new() and not any(machine_code.packs.named()):
            workers.missing(store.folder)  # they start while this process imports Numba
        return None
    content = answer["content"]
    if answer["external"]:
        bound = imported(_BLAS)
        (bound.lapack_ready if "linalg" in words[1] else bound.ready)()
    known = requests.find("machine") is not None  # and so the names of kernels in the cache; else only packs have it
    key = machine_code.key_of(content) if known else content
    found = _by_key.get(key)
    if found is None:
        code = machine_code.load(key) if known else machine_code.packed(content)
        if code is None:
            return None
        found = _by_key[key] = _entry_of(code, argtypes)
    return found


def _made(function: pytypes.FunctionType, argtypes: tuple[str, ...], source: str, checked: bool, words: tuple[Any, ...] = ()) -> Entry:
    """Load or compile, in the thread that does so. ``words``: what it was asked for by."""
    from numba import config

    if config.DISABLE_JIT:
        return _interpreted(function)
    key = _key(function, argtypes, source, checked, words)
    if key is None:
        return _entry_of(_compiled(function, argtypes, None, checked), argtypes)
    found = _by_key.get(key)
    if found is None:
        found = _by_key[key] = _entry_of(_code(function, argtypes, key, checked), argtypes)
    return found


def _key(function: pytypes.FunctionType, argtypes: tuple[str, ...], source: str, checked: bool, words: tuple[Any, ...] = ()) -> str | None:
    """Return under what a kernel's machine code is kept; None where it cannot be kept."""
    if machine_code.machine() is None:
        return None
    digest = Digest()
    try:
        digest.add(("autograd_nb", machine_code.ABI, _options(checked), source, argtypes))
        digest.add(function)
    except Unknown:  # refers to something whose content cannot be told: compile, keep nothing
        return None
    content = digest.hexdigest()
    if words and digest.own:
        requests.note({"content": content, "external": digest.external}, *words)
    return machine_code.key_of(content)


def _code(function: pytypes.FunctionType, argtypes: tuple[str, ...], key: str, checked: bool) -> Code:
    """Return a kernel's machine code, loaded from disk, compiled, or waited for while a worker compiles it."""
    from numba.core.compiler_lock import global_compiler_lock

    code = machine_code.load(key)
    if code is not None:
        return code
    workers.missing(store.folder)
    with workers.claimed(key), global_compiler_lock:
        return machine_code.load(key) or _compiled(function, argtypes, key, checked)


def _compiled(function: pytypes.FunctionType, argtypes: tuple[str, ...], key: str | None, checked: bool) -> Code:
    """Return the machine code that Numba makes of a kernel, which is kept on disk under its key."""
    from .entry_point import code_of

    result = _compile(function, argtypes, key, checked)
    code = code_of(result)
    _alive.append(result)
    if key is not None:
        machine_code.save(key, code, result, function.__name__, argtypes)
    return code


def prepare(claims: int, function: pytypes.FunctionType, argtypes: tuple[str, ...], source: str, checked: bool) -> None:
    """Put a kernel into the cache, in a worker, unless it is there or somebody else has begun it. ``claims``: see `workers`."""
    from numba.core.compiler_lock import global_compiler_lock

    key = _key(function, argtypes, source, checked)
    if key is None or machine_code.holds(key):
        return
    with workers.unclaimed(claims, key) as mine, global_compiler_lock:
        if mine and not machine_code.holds(key):
            _compiled(function, argtypes, key, checked)


def _interpreted(function: pytypes.FunctionType) -> Entry:
    """Return a kernel as Python runs it: on numbers of the types that a compiled one has, and as quiet about dividing by zero."""
    if not hasattr(function, "foreign"):
        plainly(function)

    @functools.wraps(function)
    def run(*args):
        with np.errstate(all="ignore"):
            function(*map(argument, args))

    return run


def _entry_of(code: Code, argtypes: tuple[str, ...]) -> Entry:
    """Return the function that Python calls for machine code, linked."""
    linked = link(code)
    entry: Entry = callable_of(linked, bytes(itertools.chain.from_iterable(map(_widths, argtypes))))
    _linked[id(entry)] = entry, linked, argtypes
    return entry


def _widths(argtype: str) -> Sequence[int]:
    """Return what `linking.function` asks of the words of an argument."""
    if argtype.endswith("[:]"):
        return np.dtype(argtype[:-3]).itemsize, 0
    if argtype.startswith("("):
        return [0] * int(argtype.strip("()"))
    return (0, 0) if argtype.startswith("[") or argtype == "complex128" else (0,)


def native(entry: Entry) -> tuple[int, tuple[str, ...]]:
    """Return (address, argument types) of the machine code behind an entry point, for callers that speak Numba's convention.

    KeyError for what is not an entry point of this module (a Python function under ``NUMBA_DISABLE_JIT``).
    """
    _, linked, argtypes = _linked[id(entry)]
    return linked.address, argtypes


# ------------------------------------------------------------------------------------------------------ compiling


def _options(checked: bool = False) -> dict[str, Any]:
    from ..jit import OPTIONS

    # Numba's wrappers are never called (see `entry_point`); without them kernels compile faster
    options = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return {**options, "boundscheck": True} if checked else options


def _type(text: str) -> Any:
    from numba import types

    if text.endswith("[:]"):
        return types.Array(_type(text[:-3]), 1, "C")
    if text.startswith("["):
        from ..arrays import Arrays

        return Arrays(_type(text.strip("[]")))
    if text.startswith("("):
        return types.UniTuple(types.int64, int(text.strip("()")))
    return types.boolean if text == "bool" else getattr(types, text)


def _compile(
    function: pytypes.FunctionType, argtypes: tuple[str, ...], key: str | None, checked: bool = False
) -> Any:
    from numba import njit

    from ..frontend import brief
    from .pipeline import Kernel

    options = {**_options(checked), "pipeline_class": Kernel}
    label = f"{function.__name__}_{(key or os.urandom(8).hex())[:16]}"
    # a copy under the new name: the function itself belongs to its module
    copy = pytypes.FunctionType(function.__code__, function.__globals__, label, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__module__ = function.__module__
    copy.__qualname__ = label
    signature = tuple(_type(t) for t in argtypes)
    dispatcher = njit(**options)(copy)
    try:
        from numba.core.bytecode import FunctionIdentity

        counter = FunctionIdentity._unique_ids
    except (ImportError, AttributeError):
        return _through_llvm(dispatcher, signature)
    FunctionIdentity._unique_ids = itertools.count(int.from_bytes(os.urandom(7), "little") << 6)
    try:
        with brief(), compiling(function.__name__, key):
            return _through_llvm(dispatcher, signature)
    finally:
        FunctionIdentity._unique_ids = counter


def _through_llvm(dispatcher: Any, signature: tuple[Any, ...]) -> Any:
    """Return what Numba makes of a function for arguments of these types; its machine code is there, and that of what Python calls."""
    from numba.core.compiler_lock import global_compiler_lock

    from .entry_point import shared

    with global_compiler_lock:
        dispatcher.compile(signature)
        result = dispatcher.overloads[signature]
        result.library.object_code()
        shared(signature)
    return result
