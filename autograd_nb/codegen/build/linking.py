"""Machine code in memory: object code, linked with what it calls, and the functions by which Python calls it.

Whoever compiled object code, this process or another, it is linked here. That takes LLVM's linker (llvmlite) and two small libraries in C that Numba
brings along, and not Numba: to import it takes longer than to link the kernels of a whole program.
"""

from __future__ import annotations

import builtins
import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import Any, NamedTuple

import numpy as np

NOARGS, FASTCALL = 4, 0x80  #: how Python calls a function in C: METH_NOARGS, METH_FASTCALL

#: functions of the C library that Numba takes from where Python has it, each for doubles and, with an f, for floats
MATH = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh", "exp", "expm1", "fabs", "floor", "fmod", "log", "log10",
    "log1p", "pow", "round", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip


class Code(NamedTuple):
    """A kernel's machine code, as it is kept on disk: plain values alone."""

    name: str  #: as Python shows it
    support: tuple[str, bytes]  #: symbol and object code of what all entry points call
    entry: tuple[str, bytes]  #: of what Python calls, which kernels of the same types share
    kernel: tuple[str, bytes]  #: its own
    environments: tuple[str, ...]  #: symbols of the places that hold Numba's environments


class Linked(NamedTuple):
    """A kernel in memory."""

    name: str
    entry: int  #: address of what Python calls
    address: int  #: of the kernel itself
    parse: int  #: of what reads the arguments of a call
    call: int  #: of what calls the kernel with them
    throw: int  #: of what makes an error of what a kernel returned


_engine: Any = None
_addresses: dict[str, int] = {}  # of what many kernels share, by symbol
_environments: dict[str, Any] = {}  # what machine code refers to


def link(code: Code) -> Linked:
    """Return a kernel, linked. OSError where its code defines no such kernel."""
    symbol, machine_code = code.kernel
    _linked_once(*code.support)
    entry = _linked_once(*code.entry)
    address = add(machine_code, symbol)
    for name in code.environments:
        _set_environment(name)
    own, support = code.entry[0].partition("_")[2], code.support[0].partition("_")[2]
    return Linked(code.name, entry, address, _within(f"parse_{own}"), _within(f"call_{own}"), _within(f"raise_{support}"))


def _linked_once(symbol: str, machine_code: bytes) -> int:
    """Return the address of what many kernels share, linked if it is not."""
    found = _addresses.get(symbol)
    if found is None:
        found = _addresses[symbol] = add(machine_code, symbol)
    return found


def _within(symbol: str) -> int:
    """Return the address of another function of what is linked."""
    found = _addresses.get(symbol)
    if found is None:
        found = _addresses[symbol] = int(ready().get_function_address(symbol))
        if not found:
            raise OSError(f"machine code without {symbol}")
    return found


def add(machine_code: bytes, symbol: str) -> int:
    """Return the address of a function of object code, linked. OSError where there is none."""
    from llvmlite import binding

    engine = ready()
    engine.add_object_file(binding.ObjectFileRef.from_data(machine_code))
    address = int(engine.get_function_address(symbol))
    if not address:
        raise OSError(f"machine code without {symbol}")
    return address


def global_variable(symbol: str) -> int:
    """Return the address of a variable of machine code that is linked; 0 where there is none."""
    return int(_engine.get_global_value_address(symbol))


def ready() -> Any:
    """Return what links, made once: an engine that knows where the functions are that kernels call."""
    global _engine
    from llvmlite import binding

    if _engine is not None:
        return _engine
    with suppress(RuntimeError):  # new versions do it by themselves
        binding.initialize()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for name, address in _symbols():
        binding.add_symbol(name, address)
    target = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(jit=True)
    _engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target)
    return _engine


def _symbols() -> Iterator[tuple[str, int]]:
    """Yield what Numba tells its own linker: names and addresses of the helpers that it has in C, and of Python's constants."""
    yield "_Py_NoneStruct", id(None)
    for obj in vars(builtins).values():
        if isinstance(obj, type) and issubclass(obj, BaseException):
            yield f"PyExc_{obj.__name__}", id(obj)
    helpers = extension("numba._helperlib").c_helpers
    for name, address in [*helpers.items(), *extension("numba._dynfunc").c_helpers.items()]:
        yield f"numba_{name}", address
    for name in (n + kind for n in MATH for kind in ("", "f")):
        if name in helpers:
            yield name, helpers[name]
    for name, address in extension("numba.core.runtime._nrt_python").c_helpers.items():
        yield (name if name.startswith("_") else f"NRT_{name}"), address


def extension(name: str) -> Any:
    """Return an extension module of Numba, of which only the module itself is loaded."""
    known = sys.modules.get(name)
    if known is not None:
        return known
    package = find_spec("numba")
    assert package is not None and package.origin is not None
    path = os.path.join(os.path.dirname(package.origin), *name.split(".")[1:])
    for suffix in EXTENSION_SUFFIXES:
        spec = spec_from_file_location(name, path + suffix) if os.path.exists(path + suffix) else None
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules.pop(name, None)  # Numba's own import finds it as it left it
            return module
    raise ImportError(f"no {name}")


def _set_environment(symbol: str) -> None:
    """Tell machine code where the object is that a function refers to when it makes a message of numbers, or prints."""
    place = global_variable(symbol)
    if place:
        _environments[symbol] = found = _known_environment(symbol) or extension("numba._dynfunc").Environment({"__name__": __name__})
        ctypes.c_void_p.from_address(place).value = id(found)


def _known_environment(symbol: str) -> Any:
    """Return the object of a function that Numba has compiled in this process, or None."""
    module = sys.modules.get("numba.core.environment")
    return module.lookup_environment(symbol) if module is not None else None


# ------------------------------------------------------------------------------------------------ what Python calls


class Method(ctypes.Structure):
    """A built-in function as Python's own struct ``PyMethodDef`` describes it."""

    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def described(name: str, address: int, flags: int) -> Method:
    """Return what Python's function objects refer to."""
    method = Method(name.encode(), address, flags, None)
    # the interpreter reads it whenever it looks for garbage, even at its end, when modules have been emptied: it is never freed
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(method))
    return method


def function(linked: Linked, widths: bytes) -> Any:
    """Return the function that Python calls for a kernel.

    ``widths``: for each word of a block of arguments the bytes of an element, where it is the size of an array whose address comes next, else 0.
    """
    bound = struct.pack("@PPPPP", id(np.ndarray), linked.address, linked.parse, linked.call, linked.throw) + widths
    return new_function(ctypes.addressof(described(linked.name, linked.entry, FASTCALL)), bound, None)
