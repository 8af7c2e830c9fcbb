"""Functions that are written as LLVM text: those of compiled programs that are no kernels, and what Python asks at each call.

Their machine code is made by LLVM alone, for any processor of this kind, and kept on disk beside the kernels: to load it takes a fifth of the time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from . import linking, machine_code
from .apart import apart
from .hashed import hashed

_methods: dict[str, linking.Method] = {}  # by name
_functions: dict[str, int] = {}  # addresses, by name


def address_of(text: str, name: str) -> int:
    """Return the address of the function ``name`` of an LLVM module, given as text; call it in the thread of `apart`, once for each name."""
    from llvmlite import __version__, binding

    about = machine_code.ABI, __version__, binding.get_process_triple(), name, text
    content = hashed(repr(about).encode()).hexdigest()
    code = machine_code.kept(content)
    if code is None:
        code = _object_code(text)
        machine_code.keep(content, code, name)
    return linking.add(code, name)


def _object_code(text: str) -> bytes:
    """Return the machine code of an LLVM module."""
    from llvmlite import binding

    linking.ready()
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(jit=True)
    module = binding.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    return bytes(machine.emit_object(module))


def linked(text: str, name: str) -> int:
    """Return the address of the function ``name`` of an LLVM module, made once."""
    return _functions.get(name) or apart(_function, text, name)


def _function(text: str, name: str) -> int:
    if name not in _functions:
        _functions[name] = address_of(text, name)
    return _functions[name]


def bound_to(to: Any, name: str, text: str, flags: int = linking.NOARGS) -> Callable[..., Any]:
    """Return a function that calls the LLVM text's ``ptr @name(ptr %self, ptr %none)``, or with `FASTCALL` its
    ``ptr @name(ptr %self, ptr %arguments, i64 %count)``.

    ``self`` is the Python object ``to``; where that is an address, as an int, of words that the function works on, the caller keeps them
    alive. Such a builtin costs a tenth of what ctypes takes to convert some arguments.
    """
    method = _methods.get(name) or apart(_method, name, text, flags)
    made: Callable[..., Any] = linking.new_function(ctypes.addressof(method), to, None)
    return made


def _method(name: str, text: str, flags: int) -> linking.Method:
    if name not in _methods:
        _methods[name] = linking.described(name, address_of(text, name), flags)
    return _methods[name]
