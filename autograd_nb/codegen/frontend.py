"""What Numba's front end asks again and again while it compiles a kernel, asked once.

Kernels are short and many, so that what Numba does for each of them besides translating counts: it looks through some
hundred overloads at every ``a + b``, has LLVM parse a module to learn the size of an int64, computes after each of twenty
passes how long variables live, and tells whoever may listen of each call into LLVM. `brief` puts shorter ways in their place
for as long as a kernel is compiled; what comes out is the same, to the bit (`tests/codegen/test_frontend.py`).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from llvmlite import ir as llvm
from llvmlite.binding import ffi
from numba.core import base, errors, event, transforms, types
from numba.core.base import BaseContext
from numba.core.compiler_machinery import PassManager, _pass_registry
from numba.core.types.functions import BaseFunction


def _overloads_without_scipy() -> None:
    """Import Numba's overloads of NumPy's functions of arrays; they only look whether SciPy has a BLAS, which takes a tenth of a second.

    Where products of matrices are compiled Numba looks again, and finds it: SciPy is installed with this library.
    """
    from numba.np import linalg

    look = getattr(linalg, "ensure_blas", None)
    if look is None or "numba.np.arraymath" in sys.modules:
        return
    linalg.ensure_blas = lambda: None  # type: ignore[attr-defined]
    try:
        arraymath = import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = look  # type: ignore[attr-defined]
    arraymath.ensure_blas = look  # type: ignore[attr-defined]


_overloads_without_scipy()


class Passes(PassManager):
    """A list of passes of which each is run, and nothing else is done."""

    def _runPass(self, index: int, step: Any, state: Any) -> None:
        step.analysis = self._analysis
        with errors.new_error_context("Pass {name}", name=step.name()):  # type: ignore[attr-defined]
            changed = [step.run_initialization(state), step.run_pass(state), step.run_finalizer(state)]
        # how long variables live is computed where it is asked for, at the end
        if any(changed) and _pass_registry.get(type(step)).mutates_CFG and state.func_ir is not None:
            state.func_ir.blocks = transforms.canonicalize_cfg(state.func_ir.blocks)


# ------------------------------------------------------------------------------------------------ sizes and overloads

# whether the code of an overload asks for its place in the text
_takes_loc = functools.lru_cache(1 << 12)(getattr(base, "_has_loc", lambda fn: False))

_size_of = BaseContext.get_abi_sizeof
_sizes: dict[tuple, int] = {}


def _size(self: Any, kind: Any) -> int:
    if not isinstance(kind, llvm.IntType | llvm.FloatType | llvm.DoubleType | llvm.PointerType):
        return _size_of(self, kind)
    wanted = (type(kind), getattr(kind, "width", 0))
    size = _sizes.get(wanted)
    if size is None:
        size = _sizes[wanted] = _size_of(self, kind)
    return size


_call_type = BaseFunction.get_call_type
_signatures: dict[tuple, tuple] = {}
#: of functions of these modules the types of arguments alone decide
_PURE = {"_operator", "operator", "math", "builtins", "numpy"}
_VALUES = (types.Number, types.Boolean, types.IntegerLiteral, types.BooleanLiteral)


def _resolved(self: Any, context: Any, args: Any, kws: Any) -> Any:
    key = self.typing_key
    if kws or not all(isinstance(a, _VALUES) for a in args) or not _pure(key):
        return _call_type(self, context, args, kws)
    wanted = (id(self), tuple(args))
    found = _signatures.get(wanted)
    if found is not None:
        return found[0]
    signature = _call_type(self, context, args, kws)
    # an overload in Python has another key, and is compiled for the options of its caller
    if signature is not None and getattr(self, "_impl_keys", {}).get(signature.args) is key:
        _signatures[wanted] = (signature, self)  # itself: an id names what lives
    return signature


def _pure(key: Any) -> bool:
    return isinstance(key, np.ufunc) or getattr(key, "__module__", None) in _PURE


# --------------------------------------------------------------------------------------------------- what was registered

_refresh = BaseContext.refresh
_seen = 0


def _refreshed(self: Any) -> None:
    """Refresh the registries if they may have what is looked for in vain: if there are more entries, or more modules, than the last time."""
    global _seen
    count = len(sys.modules)
    known: list[Any] = [getattr(context, "_registries", None) for context in (self, self.typing_context)]
    if None in known:
        _refresh(self)
        return
    for registry in itertools.chain(*known):
        count += sum([len(entries) for entries in vars(registry).values() if isinstance(entries, list)])
    if count != _seen:
        _refresh(self)
        _seen = count


# ------------------------------------------------------------------------------------------------------- in their place


def fits(place: Any, name: str, function: Callable) -> bool:
    """Return whether this version of Numba has such a function with as many parameters; otherwise it keeps its own."""
    own = vars(place).get(name)
    return callable(own) and len(inspect.signature(own).parameters) == len(inspect.signature(function).parameters)


_PLACES: tuple[tuple[Any, str, Callable], ...] = tuple(
    place
    for place in (
        (BaseContext, "get_abi_sizeof", _size),
        (BaseFunction, "get_call_type", _resolved),
        (BaseContext, "refresh", _refreshed),
        (base, "_has_loc", _takes_loc),
    )
    if fits(*place)
)


@contextlib.contextmanager
def brief() -> Iterator[None]:
    """Let Numba compile, within the block, without what it does in vain; under its lock, and in one thread."""
    before = [(place, name, place.__dict__[name]) for place, name, _ in _PLACES]
    global _seen
    _seen = 0
    told = getattr(getattr(ffi.lib, "_lock", None), "_cblist", [])
    callbacks = list(told)
    for place, name, function in _PLACES:
        setattr(place, name, function)
    if not any(event._registered.values()):  # nobody listens
        told.clear()
    try:
        yield
    finally:
        told[:] = callbacks
        for place, name, function in before:
            setattr(place, name, function)
