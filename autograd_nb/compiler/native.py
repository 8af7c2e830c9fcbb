"""Machine code from LLVM text, and functions for Python that run it without converting arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from ..codegen.build import compilation

_engine: Any = None


def machine_code(text: str, name: str) -> int:
    """Return the address of a function of an LLVM module, given as text; call it in the thread of `compilation.apart`."""
    global _engine
    from llvmlite import binding

    module = binding.parse_assembly(text)
    module.verify()
    if _engine is None:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        target = binding.Target.from_default_triple().create_target_machine(opt=2)
        _engine = binding.create_mcjit_compiler(module, target)
    else:
        _engine.add_module(module)
    _engine.finalize_object()
    return int(_engine.get_function_address(name))


class _MethodDef(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


_METH_NOARGS = 4
_methods: dict[str, _MethodDef] = {}  # what Python's function objects refer to


@cache
def _maker() -> Callable[[int, int, Any], Callable[[], Any]]:
    """Return Python's function that makes functions."""
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return kind(("PyCFunction_NewEx", ctypes.pythonapi))


def method(name: str, text: str) -> Callable[[int], Callable[[], Any]]:
    """Return what makes functions for Python: ``method(name, text)(address)()`` calls the LLVM text's ``ptr @name(ptr %self, ptr %none)``.

    ``self`` is the address, as a Python int, of words that the function works on; the caller keeps them alive. A builtin function
    without arguments costs a tenth of what ctypes takes to convert some.
    """
    definition = _methods.get(name) or compilation.apart(_make_method, name, text)
    new = _maker()
    at = ctypes.addressof(definition)
    return lambda address: new(at, address, None)


def _make_method(name: str, text: str) -> _MethodDef:
    definition = _methods.get(name)
    if definition is None:
        function = machine_code(text, name)
        definition = _methods[name] = _MethodDef(name.encode(), function, _METH_NOARGS, None)
    return definition
