"""Compile kernels, and keep the machine code on disk: the only place that knows how Numba compiles and serialises.

A kernel is found by its content: the key is the sha256 of all that its machine code depends on, which is its text, the
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
import pickle
import sys
import types as pytypes
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..overriding import overridable
from .apart import apart, imported
from .cache import CacheWarning, Store

__all__ = ["CacheWarning", "apart", "build", "build_function", "foreign", "numba", "store", "written"]

ABI = 3  #: raised when machine code of old keys must not be used any more (what a change of this file may require)

Entry = Callable[..., Any]

store = Store()

_built: dict[tuple, Entry] = {}
_by_key: dict[str, Entry] = {}  # one text may be built under two names, one function be imported twice
_results: dict[int, Any] = {}  # by the id of the entry point, which lives as long
_alive: list[Any] = []  # compile results own what machine code refers to; they live as long as the process


def build(source: str, name: str, argtypes: tuple[str, ...], checked: bool = False) -> Entry:
    """The compiled entry point of function ``name`` that the text ``source`` defines.

    ``argtypes``: "float32[:]" (a flat C array), "int64", "float64", "complex128", "bool", "(3)" (a tuple of three int64), or
    "[float32]" (a list of flat arrays, see `arrays`). ``checked``: every index of an array is tested (the text imports what looks
    at bounds itself).
    """
    wanted = (source, name, argtypes, "checked") if checked else (source, name, argtypes)
    found = _built.get(wanted)
    return found if found is not None else _entry(_build, wanted, source, name, argtypes, checked)


def _build(wanted: tuple, source: str, name: str, argtypes: tuple[str, ...], checked: bool) -> Entry:
    found = _built.get(wanted)  # another thread may have waited for it too
    if found is None:
        digest = hashlib.sha256(repr(wanted).encode()).hexdigest()
        filename = f"<autograd_nb:{name}:{digest[:8]}>"
        # no modification time: linecache keeps the entry, so tracebacks and debuggers show the text
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        space: dict[str, Any] = {"__name__": __name__}
        exec(compile(source, filename, "exec"), space)
        if "math" in space:
            from .jit import math

            space["math"] = math
        found = _built[wanted] = _made(space[name], argtypes, source, checked)
    return found


def source_of(entry: Entry) -> tuple:
    """("source", text, argument types) of an entry point that `build` made; empty for another."""
    for wanted, made in reversed(list(_built.items())):
        if made is entry and len(wanted) == 3:
            return ("source", wanted[0], wanted[2])
    return ()


def build_function(function: Any, argtypes: tuple[str, ...], checked: bool = False) -> Entry:
    """The compiled entry point of a hand-written kernel: a plain function, or one decorated with `jit.helper`."""
    wanted = (function, argtypes, checked, "")
    found = _built.get(wanted)
    return found if found is not None else _entry(_build_function, wanted, function, argtypes, checked)


def _build_function(wanted: tuple, function: Any, argtypes: tuple[str, ...], checked: bool) -> Entry:
    found = _built.get(wanted)
    if found is None:
        found = _built[wanted] = _made(getattr(function, "py_func", function), argtypes, "", checked)
    return found


def written(module: str, name: str, package: str = "autograd_nb.kernels") -> Any:
    """A hand-written kernel; its module, and Numba with it, is imported if need be, which nothing interrupts."""
    return getattr(imported(f"{package}.{module}"), name)


def numba() -> Any:
    """Numba."""
    return imported("numba")


def foreign(function: Any) -> Any:
    """Decorator: a kernel that is Python calling another library's compiled code on the arrays; it is not compiled."""
    function.foreign = True
    return function


@overridable
def _entry(make: Callable[..., Entry], *args: Any) -> Entry:
    """What ``make(*args)`` loads or compiles."""
    return apart(make, *args)


def _made(function: pytypes.FunctionType, argtypes: tuple[str, ...], source: str, checked: bool) -> Entry:
    """Load or compile, in the thread that does so."""
    from numba import config

    if config.DISABLE_JIT:
        return _interpreted(function)
    from numba.core.compiler_lock import global_compiler_lock

    machine = _machine()
    key = None
    if machine is not None:
        try:
            digest = _Digest()
            digest.add(("autograd_nb", ABI, machine, _options(checked), source, argtypes))
            digest.add(function)
            key = digest.hexdigest()
        except _Unknown:  # refers to something whose content cannot be told: compile, keep nothing
            key = None
    if key is None:
        return _keep_alive(_compile(function, argtypes, None, source != "", checked))
    found = _by_key.get(key)
    if found is None:
        with global_compiler_lock:
            found = _load(key)
            if found is None:
                result = _compile(function, argtypes, key, source != "", checked)
                found = _keep_alive(result)
                _save(key, result, function.__name__, argtypes)
        _by_key[key] = found
    return found


def _interpreted(function: pytypes.FunctionType) -> Entry:
    """A kernel as Python runs it: on numbers of the types that a compiled one has, and as quiet about dividing by zero."""

    @functools.wraps(function)
    def run(*args):
        with np.errstate(all="ignore"):
            function(*(_NUMBERS.get(type(a), _same)(a) for a in args))

    return run


_NUMBERS: dict[type, Callable] = {int: np.int64, float: np.float64, complex: np.complex128}


def _same(value: Any) -> Any:
    return value


def _keep_alive(result: Any) -> Entry:
    from .entry import entry_point

    entry, owner = entry_point(result)
    _alive.append((result, owner, entry))
    _results[id(entry)] = result
    return entry


def native(entry: Entry) -> tuple[int, tuple[str, ...]]:
    """(address, argument types) of the machine code behind an entry point, for callers that speak Numba's convention.

    KeyError for what is not an entry point of this module (a Python function under ``NUMBA_DISABLE_JIT``).
    """
    result = _results[id(entry)]
    # the engine itself is asked: Numba's library knows only the symbols of the bitcode, which files on disk go without
    engine = result.library._codegen._engine
    address = int(getattr(engine, "_ee", engine).get_function_address(result.fndesc.llvm_func_name))
    if not address:
        raise KeyError(result.fndesc.llvm_func_name)
    return address, tuple(_spelled(t) for t in result.signature.args)


def _spelled(t: Any) -> str:
    from numba import types

    from .arrays import Arrays

    if isinstance(t, types.Array):
        return f"{_spelled(t.dtype)}[:]"
    if isinstance(t, Arrays):
        return f"[{_spelled(t.dtype)}]"
    if isinstance(t, types.UniTuple):
        return f"({t.count})"
    return "bool" if t is types.boolean else str(t)


# ------------------------------------------------------------------------------------------------------ compiling


def _options(checked: bool = False) -> dict[str, Any]:
    from .jit import OPTIONS

    # the C function wrapper is never called; without it kernels compile faster
    options = {**OPTIONS, "no_cfunc_wrapper": True}
    return {**options, "boundscheck": True} if checked else options


def _type(text: str) -> Any:
    from numba import types

    if text.endswith("[:]"):
        return types.Array(_type(text[:-3]), 1, "C")
    if text.startswith("["):
        from .arrays import Arrays

        return Arrays(_type(text.strip("[]")))
    if text.startswith("("):
        return types.UniTuple(types.int64, int(text.strip("()")))
    return types.boolean if text == "bool" else getattr(types, text)


def _compile(
    function: pytypes.FunctionType, argtypes: tuple[str, ...], key: str | None, generated: bool, checked: bool = False
) -> Any:
    from numba import njit

    from .pipeline import Generated, Written

    options = {**_options(checked), "pipeline_class": Generated if generated else Written}
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
        dispatcher.compile(signature)
    finally:
        FunctionIdentity._unique_ids = counter
        if collecting:
            gc.enable()
    return dispatcher.overloads[signature]


# ---------------------------------------------------------------------------------------- machine code on disk

_machine_known: tuple | None = None


def _machine() -> tuple | None:
    """What besides its text decides a kernel's machine code; None when this Numba has no way to keep machine code."""
    global _machine_known
    if _machine_known is None:
        import llvmlite
        import numba
        from numba import config

        try:
            from numba.core.bytecode import FunctionIdentity
            from numba.core.compiler import CompileResult
            from numba.core.registry import cpu_target
            from numba.core.serialize import dumps  # noqa: F401

            known = CompileResult._reduce, CompileResult._rebuild, FunctionIdentity._unique_ids
            processor = cpu_target.target_context.codegen().magic_tuple()
        except (ImportError, AttributeError) as error:
            _machine_known = ()
            store.warn(f"this version of Numba ({numba.__version__}) keeps no machine code ({error})")
            return None
        del known
        switches = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LLVM_REFPRUNE_PASS")
        _machine_known = (
            ("python", sys.implementation.cache_tag, *sys.version_info, sys.platform),
            ("numpy", np.__version__, "numba", numba.__version__, "llvmlite", llvmlite.__version__),
            tuple(str(part) for part in processor),
            tuple((switch, repr(getattr(config, switch, None))) for switch in switches),
        )
    return _machine_known or None


_swept = False


def _save(key: str, result: Any, name: str, argtypes: tuple[str, ...]) -> None:
    global _swept
    if store.folder is None or result.lifted or result.objectmode or result.library.has_dynamic_globals:
        return
    import numba
    from numba.core.serialize import dumps

    try:
        code, fndesc, env, signature, objectmode, lifted, _, reload_init, envs = result._reduce()
        code = _without_bitcode(code, fndesc.llvm_cpython_wrapper_name)
        payload = dumps((code, fndesc, _plain(env), signature, objectmode, lifted, reload_init, [_plain(e) for e in envs]))
    except Exception:  # something in it cannot be pickled; the compiled kernel is as good as ever
        return
    if not _swept:
        _swept = True
        store.sweep()
    store.save(key, payload, {"name": name, "argtypes": list(argtypes), "numba": numba.__version__})


def _load(key: str) -> Entry | None:
    payload = store.load(key)
    if payload is None:
        return None
    from numba.core.compiler import CompileResult
    from numba.core.registry import cpu_target

    context = cpu_target.target_context  # as it is: to refresh() it would import all of Numba's typing, and SciPy
    _declare_runtime(context)
    try:
        code, fndesc, env, signature, objectmode, lifted, reload_init, envs = pickle.loads(payload)
        env, *envs = [_environment(*e) for e in (env, *envs)]
        result = CompileResult._rebuild(context, code, fndesc, env, signature, objectmode, lifted, "", reload_init, envs)
    except Exception:  # whole, yet of no use here: compile it, and replace the file
        return None
    return _keep_alive(result)


_runtime_declared = False


def _declare_runtime(context: Any) -> None:
    """Tell the linker where Numba's memory management is. (Its own initialisation also compiles the atomics, which kernels
    have inlined: 15 ms. It runs anyway when something is compiled.)"""
    global _runtime_declared
    if _runtime_declared:
        return
    try:
        from llvmlite import binding
        from numba.core.runtime._nrt_python import c_helpers

        for name, address in c_helpers.items():
            binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
    except (ImportError, AttributeError):
        from numba.core.runtime import rtsys

        rtsys.initialize(context)
    _runtime_declared = True


def _without_bitcode(code: Any, symbol: str) -> Any:
    """Serialised code without the LLVM bitcode that lets other functions inline it.

    Nothing inlines a kernel, and it is half of the file and of the time to load it. A few bytes that define ``symbol`` stand
    in for it, as Numba reads there what the machine code defines.
    """
    from llvmlite import binding

    name, kind, (machine_code, _) = code
    if kind != "object":
        return code
    stub = binding.parse_assembly(f'define void @"{symbol}"() {{ ret void }}').as_bitcode()
    return name, kind, (machine_code, stub)


def _plain(env: Any) -> tuple[str, list]:
    return env.env_name, list(env.consts)


def _environment(name: str, constants: list) -> Any:
    """The objects that a compiled function refers to.

    Numba's own way to restore them imports the module of every function that was compiled along (SciPy, in the end),
    for the sake of globals that only its object mode reads.
    """
    from numba.core.environment import Environment, lookup_environment

    env = lookup_environment(name)
    if env is None:
        env = Environment({"__name__": __name__})
        env.consts[:] = constants
        env.env_name = name
        Environment._memo[name] = env
    return env


# ----------------------------------------------------------------------------------------------------- the digest


class _Unknown(Exception):
    """Met an object whose influence on the machine code cannot be told."""


class _Digest:
    """sha256 of a value as a kernel sees it: functions by their code and by all that it refers to, transitively.

    It reads the functions in memory, not their files, as those may have been edited since they were imported.
    The text of autograd_nb's modules that are met goes in as well, for what does not show in code (``@overload``).
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # an id names an object only while it lives

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
        if value is None or isinstance(value, (bool, int, float, complex, str, np.generic)):
            self._put(type(value).__name__, value.tobytes() if isinstance(value, np.generic) else repr(value))
        elif isinstance(value, bytes):
            self._put("bytes", value)
        elif isinstance(value, (tuple, list)):
            self._put(type(value).__qualname__, str(len(value)))
            for item in value:
                self.add(item)
        elif isinstance(value, (set, frozenset)):
            self._put("set", *sorted(_alone(item) for item in value))
        elif isinstance(value, dict):
            self._put("dict", str(len(value)))
            for key, item in sorted(value.items(), key=lambda pair: _alone(pair[0])):
                self.add(key)
                self.add(item)
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self._put("array", repr(value.dtype), repr(value.shape), repr(value.flags.c_contiguous), value.tobytes())
        elif isinstance(value, np.dtype):
            self._put("dtype", repr(value))
        elif isinstance(value, pytypes.CodeType):
            self._code(value)
        elif isinstance(value, pytypes.FunctionType):
            self._function(value)
        elif isinstance(value, pytypes.ModuleType):
            self._put("module", value.__name__)  # what is used of it is added where it is used
        elif isinstance(value, (pytypes.BuiltinFunctionType, np.ufunc)):
            self._put("builtin", str(getattr(value, "__module__", "")), value.__name__)
        elif isinstance(value, type):
            self._put("class", value.__module__, value.__qualname__)
            self._text(value.__module__)
        elif isinstance(value, slice):
            self._put("slice", repr(value))
        elif value is Ellipsis:
            self._put("ellipsis")
        else:
            self._numba(value)

    def _numba(self, value: Any) -> None:
        from numba.core import types
        from numba.core.dispatcher import Dispatcher

        if isinstance(value, Dispatcher):
            if self._first_time(value):
                self._put("dispatcher")
                self.add(value.targetoptions)
                self.add(value.py_func)
        elif isinstance(value, types.ExternalFunctionPointer):
            raise _Unknown  # an address of this process
        elif isinstance(value, types.ExternalFunction):
            self._put("external", str(value.symbol), str(value.sig))
        elif isinstance(value, types.Type):
            self._put("type", str(value))
        elif isinstance(getattr(value, "_defn", None), pytypes.FunctionType):  # an intrinsic
            self._put("intrinsic")
            self.add(value._defn)
        elif isinstance(getattr(value, "__wrapped__", None), pytypes.FunctionType) and value.__module__.startswith("numpy"):
            self._put("builtin", value.__module__, value.__name__)  # np.empty and its like
        else:
            raise _Unknown

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
                for attribute in names:
                    if hasattr(value, attribute):
                        self._put("attribute", attribute)
                        self.add(getattr(value, attribute))

    def _text(self, module: str) -> None:
        if module != __name__ and module.startswith(__name__.partition(".")[0] + "."):
            self._put("text", _module_digest(module))


_LIBRARIES = {"numba", "numpy", "math", "cmath", "operator"}  # with versions of their own, which are in the key


def _alone(value: Any) -> str:
    digest = _Digest()
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
        found = _module_digests[name] = hashlib.sha256((text or "").encode()).hexdigest()
    return found
