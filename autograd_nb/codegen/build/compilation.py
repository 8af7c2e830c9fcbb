"""Compile kernels, or find the machine code on disk (`machine_code`): only here and there is known how Numba does both.

A kernel is found by its content: the key is the sha256 (`digest`) of all that its machine code depends on, which is its text, the
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
import gc
import hashlib
import itertools
import linecache
import os
import types as pytypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ...overriding import overridable
from ..interpreted import argument, plainly
from . import machine_code, workers
from .apart import apart, imported
from .cache import CacheWarning
from .digest import GENERATED, Digest, Unknown
from .machine_code import store
from .notice import compiling

__all__ = ["CacheWarning", "apart", "build", "build_function", "foreign", "numba", "store", "written"]

Entry = Callable[..., Any]

_built: dict[tuple[Any, ...], Entry] = {}
_by_key: dict[str, Entry] = {}  # one text may be built under two names, one function be imported twice
_results: dict[int, Any] = {}  # by the id of the entry point, which lives as long
_alive: list[Any] = []  # compile results own what machine code refers to; they live as long as the process


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
        found = _built[wanted] = _made(defined(wanted, source, name), argtypes, source, checked)
    return found


def defined(wanted: tuple[Any, ...], source: str, name: str) -> pytypes.FunctionType:
    """Return the function ``name`` that a text defines."""
    digest = hashlib.sha256(repr(wanted).encode()).hexdigest()
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
        found = _built[wanted] = _made(getattr(function, "py_func", function), argtypes, "", checked)
    return found


@overridable
def written(module: str, name: str, package: str = "autograd_nb.kernels") -> Any:
    """Return a hand-written kernel, whose module (and Numba with it) is imported if need be, which nothing interrupts."""
    return getattr(imported(f"{package}.{module}"), name)


def numba() -> Any:
    """Return the module Numba, imported if need be."""
    return imported("numba")


def foreign(function: Any) -> Any:
    """Decorator: a kernel that is Python calling another library's compiled code on the arrays; it is not compiled."""
    function.foreign = True
    return function


@overridable
def _entry(make: Callable[..., Entry], *args: Any) -> Entry:
    """Return the entry point that ``make(*args)`` loads or compiles."""
    return apart(make, *args)


def _made(function: pytypes.FunctionType, argtypes: tuple[str, ...], source: str, checked: bool) -> Entry:
    """Load or compile, in the thread that does so."""
    from numba import config

    if config.DISABLE_JIT:
        return _interpreted(function)
    key = _key(function, argtypes, source, checked)
    if key is None:
        return _keep_alive(_compile(function, argtypes, None, checked))
    found = _by_key.get(key)
    if found is None:
        found = _by_key[key] = _keep_alive(_result(function, argtypes, key, checked))
    return found


def _key(function: pytypes.FunctionType, argtypes: tuple[str, ...], source: str, checked: bool) -> str | None:
    """Return under what a kernel's machine code is kept; None where it cannot be kept."""
    if machine_code.machine() is None:
        return None
    digest = Digest()
    try:
        digest.add(("autograd_nb", machine_code.ABI, _options(checked), source, argtypes))
        digest.add(function)
    except Unknown:  # refers to something whose content cannot be told: compile, keep nothing
        return None
    return machine_code.key_of(digest.hexdigest())


def _result(function: pytypes.FunctionType, argtypes: tuple[str, ...], key: str, checked: bool) -> Any:
    """Return what Numba makes of a kernel, loaded from disk, compiled, or waited for while a worker compiles it."""
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        result = machine_code.load(key)
    if result is not None:
        return result
    workers.missing(store.folder)
    with workers.claimed(key), global_compiler_lock:
        result = machine_code.load(key)
        return result if result is not None else _compiled(function, argtypes, key, checked)


def _compiled(function: pytypes.FunctionType, argtypes: tuple[str, ...], key: str, checked: bool) -> Any:
    """Return what Numba makes of a kernel, which is compiled and kept on disk."""
    result = _compile(function, argtypes, key, checked)
    machine_code.save(key, result, function.__name__, argtypes)
    return result


def prepare(claims: int, function: pytypes.FunctionType, argtypes: tuple[str, ...], source: str, checked: bool) -> None:
    """Put a kernel into the cache, in a worker, unless it is there or somebody else has begun it. ``claims``: see `workers`."""
    from numba.core.compiler_lock import global_compiler_lock

    key = _key(function, argtypes, source, checked)
    if key is None or machine_code.holds(key):
        return
    with workers.unclaimed(claims, key) as mine, global_compiler_lock:
        if mine and not machine_code.holds(key):
            _alive.append((_compiled(function, argtypes, key, checked), None))


def _interpreted(function: pytypes.FunctionType) -> Entry:
    """Return a kernel as Python runs it: on numbers of the types that a compiled one has, and as quiet about dividing by zero."""
    if not hasattr(function, "foreign"):
        plainly(function)

    @functools.wraps(function)
    def run(*args):
        with np.errstate(all="ignore"):
            function(*map(argument, args))

    return run


def _keep_alive(result: Any) -> Entry:
    from .entry_point import entry_point

    entry = entry_point(result)
    _alive.append((result, entry))
    _results[id(entry)] = result
    return entry


def native(entry: Entry) -> tuple[int, tuple[str, ...]]:
    """Return (address, argument types) of the machine code behind an entry point, for callers that speak Numba's convention.

    KeyError for what is not an entry point of this module (a Python function under ``NUMBA_DISABLE_JIT``).
    """
    from .entry_point import address_of

    result = _results[id(entry)]
    address = address_of(result)
    if not address:
        raise KeyError(result.fndesc.llvm_func_name)
    return address, tuple(_spelled(t) for t in result.signature.args)


def _spelled(t: Any) -> str:
    from numba import types

    from ..arrays import Arrays

    if isinstance(t, types.Array):
        return f"{_spelled(t.dtype)}[:]"
    if isinstance(t, Arrays):
        return f"[{_spelled(t.dtype)}]"
    if isinstance(t, types.UniTuple):
        return f"({t.count})"
    return "bool" if t is types.boolean else str(t)


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
    from .entry_point import shared
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
        dispatcher.compile(signature)
        return dispatcher.overloads[signature]
    FunctionIdentity._unique_ids = itertools.count(int.from_bytes(os.urandom(7), "little") << 6)
    collecting = gc.isenabled()
    gc.disable()  # it would look through a million new objects, again and again
    try:
        with brief(), compiling(function.__name__, key):
            dispatcher.compile(signature)
            shared(signature)
    finally:
        FunctionIdentity._unique_ids = counter
        if collecting:
            gc.enable()
    return dispatcher.overloads[signature]
