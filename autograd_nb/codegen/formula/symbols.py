"""Symbolic scalars: run a formula on them and they write the text of a kernel's loop body.

A formula is plain branch-free Python over operators and the namespace ``m`` (`autograd_nb.codegen.formula.namespace`).
Running it on `Sym` records a straight list of typed primitive instructions (static single assignment, with
common subexpressions shared); `Trace.lines` prints them as Python statements for Numba.

Every value has a concrete dtype, and every literal is typed: in Numba ``float32 * 2`` is a float64.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, Union

from .namespace import COMPLEX, FORMULAS, m

FLOATS = ("float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
BOOL = "bool"
COMPONENT = {"complex64": "float32", "complex128": "float64"}  #: a complex dtype and that of its parts

_RANK = {name: i for i, name in enumerate(("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"))}

# How each primitive is written for Numba. {0}, {1}… are the operands, {t} the NumPy type of the result.
_TEXT = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "neg": "-{0}",
    "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}", "ge": "{0} >= {1}", "eq": "{0} == {1}", "ne": "{0} != {1}",
    "and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}", "not": "not {0}", "invert": "~{0}",
    "shl": "{0} << {1}", "shr": "{0} >> {1}",
    "where": "{1} if {0} else {2}", "usually": "{1} if {0} else {2}",
    "floordiv": "{0} // {1}", "mod": "{0} % {1}",
    "sqrt": "math.sqrt({0})", "abs": "abs({0})", "floor": "np.floor({0})", "ceil": "np.ceil({0})",
    "trunc": "np.trunc({0})", "rint": "np.rint({0})", "copysign": "math.copysign({0}, {1})",
    "cast": "{t}({0})", "bitcast": "np.{source}({0}).view({t})",
    "isnan": "{0} != {0}",
    "gather": "{0}[{1}]",
    "complex": "complex({0}, {1})", "real": "{0}.real", "imag": "{0}.imag", "conj": "{0}.conjugate()",
}  # fmt: skip
_COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne", "isnan"}
_WIDE_UNSIGNED = {"uint16", "uint32", "uint64"}
_NARROW_INTEGERS = {"int8", "int16", "int32", "uint8", "uint16", "uint32"}


class SymbolError(TypeError):
    """A formula did something that has no symbolic meaning; the message names the remedy."""


class ComplexError(SymbolError):
    """A formula met a complex value where it has no meaning (an order, a rounding, …)."""


#: what stands beside a symbol in a formula: another one, or a Python number
Operand: TypeAlias = Union["Sym", complex]


class Trace:
    """The instructions that one formula (or several together) wrote, with common subexpressions shared.

    ``compute`` is the dtype in which literals without a typed partner are written ("float32", "float64", "int64"…).
    A trace owns its symbols, which refer to it weakly, so that neither is left to the collector of cycles: who keeps symbols in order to
    go on writing with them, or to write them once more, keeps their trace too.
    """

    def __init__(self, compute: str, prefix: str = "t"):
        self.compute = compute
        self.prefix = prefix  # of the names it makes up; apart where one kernel holds several traces
        self.instructions: list[Sym] = []
        self.tables: dict[str, tuple[Any, ...]] = {}
        self._known: dict[tuple[Any, ...], Sym] = {}
        self._weak = weakref.ref(self)

    def input(self, name: str, dtype: str) -> Sym:
        """Return a value that the loop loads under ``name`` before the body runs."""
        return self._emit("input", (name,), dtype)

    def constant(self, value: float | int | bool, dtype: str) -> Sym:
        # repr keeps -0.0 and nan apart in the table of known values
        return self._emit("constant", (repr(value), value), dtype)

    def table(self, values: tuple[Any, ...], dtype: str) -> str:
        """Return the name under which the kernel's text defines a constant array, for ``gather`` to read."""
        for name, (known, kind) in self.tables.items():
            if known == values and kind == dtype:
                return name
        name = f"{self.prefix}able{len(self.tables)}"
        self.tables[name] = (values, dtype)
        return name

    def preamble(self) -> str:
        """Return what the kernel's text needs before its function: the constant tables, and the scalar functions' module."""
        scalar = any(s.op == "libm" and s.args[0].startswith("iterative.") for s in self.instructions)
        return ("from autograd_nb.codegen import iterative\n" if scalar else "") + "".join(
            f"{name} = np.array([{', '.join(literal(v, dtype) for v in values)}], dtype=np.{dtype})\n"
            for name, (values, dtype) in self.tables.items()
        )

    def _emit(self, op: str, args: tuple[Any, ...], dtype: str) -> Sym:
        key = (op, dtype, *(a.name if isinstance(a, Sym) else a for a in (args[:1] if op == "constant" else args)))
        known = self._known.get(key)
        if known is not None:
            return known
        name = args[0] if op == "input" else f"{self.prefix}{len(self.instructions)}"
        sym = Sym(self._weak, op, args, dtype, name)
        self._known[key] = sym
        self.instructions.append(sym)
        return sym

    def as_sym(self, value: Any, dtype: str | None = None) -> Sym:
        """Return ``value`` as a symbol: a symbol as it is, a Python number as a typed literal."""
        if isinstance(value, Sym):
            return value
        if isinstance(value, bool):
            return self.constant(value, BOOL)
        if isinstance(value, complex):
            parts = COMPONENT.get(dtype or self.compute, dtype or self.compute)
            whole = "complex128" if parts == "float64" else "complex64"
            return self._emit("complex", tuple(self.constant(v, COMPONENT[whole]) for v in (value.real, value.imag)), whole)
        if isinstance(value, (int, float)):
            dtype = dtype or self.compute
            dtype = COMPONENT.get(dtype, dtype)  # a real number stays real beside complex ones
            if dtype == BOOL or (dtype in INTEGERS and isinstance(value, float)):
                dtype = self.compute if self.compute in FLOATS or isinstance(value, int) else "float32"
            return self.constant(float(value) if dtype in FLOATS else int(value), dtype)
        raise SymbolError(
            f"a formula met {value!r} of type {type(value).__name__}; use Python numbers, the operands, and m.* only"
        )

    def lines(self, results: list[Sym], usual: bool = False) -> tuple[str, list[str]]:
        """Return the text for before the function and the statements of the loop body, which compute ``results``; unused ones are left out.

        ``usual``: what holds where all conditions of `usually` do.

        The text defines the constants: as globals they have types already, and Numba is quicker by a sixth than where it infers
        those of calls. The rest of what must stand there is the `preamble`.
        """
        needed: set[str] = set()
        stack = list(results)
        while stack:
            s = stack.pop()
            if s.name in needed:
                continue
            needed.add(s.name)
            stack.extend(a for a in (s.args[1:2] if usual and s.op == "usually" else s.args) if isinstance(a, Sym))
        before = ""
        body: list[str] = []
        for s in self.instructions:
            if s.name not in needed or s.op == "input":
                continue
            if s.op == "constant":
                before += f"{s.name} = {s.text()}\n"
            elif usual and s.op == "usually":
                body.append(f"{s.name} = {s.args[1].name}")
            else:
                body.append(f"{s.name} = {s.text()}")
        return before, body


class Sym:
    """One scalar value in a formula that is being written down."""

    __slots__ = ("_trace", "args", "dtype", "name", "op")
    __array_ufunc__ = None  # a NumPy scalar on the left must not swallow a symbol
    args: tuple[Any, ...]
    dtype: str
    name: str
    op: str
    _trace: weakref.ref[Trace]

    def __init__(self, trace: weakref.ref[Trace], op: str, args: tuple[Any, ...], dtype: str, name: str):
        self._trace, self.op, self.args, self.dtype, self.name = trace, op, args, dtype, name

    @property
    def trace(self) -> Trace:
        """Return the trace that the symbol was written in, which must still be held by somebody."""
        trace = self._trace()
        assert trace is not None, f"nobody holds the trace of {self} any more"
        return trace

    def text(self, names: Sequence[str] | None = None) -> str:
        """Return the expression that computes the symbol from its arguments, which are called ``names`` there if those are given."""
        if self.op == "constant":
            return literal(self.args[1], self.dtype)
        names = names or [a.name if isinstance(a, Sym) else str(a) for a in self.args]
        if self.op == "libm":
            return f"np.{self.dtype}({names[0]}({', '.join(names[1:])}))"
        source = self.args[0].dtype if self.op == "bitcast" else ""  # Numba wants the type spelled out before a view
        text = _TEXT[self.op].format(*names, t=f"np.{numpy_name(self.dtype)}", source=source)
        # Numba widens narrow integers to 64 bits; bring them back so that vectors stay narrow and wrap as C does
        if self.dtype in _NARROW_INTEGERS and self.op not in ("cast", "bitcast", "where", "usually", "gather"):
            text = f"np.{self.dtype}({text})"
        return text

    def _binary(self, op: str, other: Any, swap: bool = False) -> Sym:
        t = self.trace
        if self.dtype in COMPONENT or isinstance(other, complex) or (isinstance(other, Sym) and other.dtype in COMPONENT):
            arithmetic = COMPLEX["arithmetic"]
            return arithmetic(op, other, self) if swap else arithmetic(op, self, other)
        other = t.as_sym(other, self.dtype)
        a, b = (other, self) if swap else (self, other)
        a, b = unify(a, b)
        dtype = BOOL if op in _COMPARISONS else a.dtype
        if op == "div" and dtype not in FLOATS:
            raise SymbolError(f"a formula divides two {a.dtype} values; cast to a float first, or use // for integers")
        if op in ("add", "sub", "mul") and dtype == BOOL:
            raise SymbolError("a formula does arithmetic on booleans; use m.where(condition, 1, 0)")
        return t._emit(op, (a, b), dtype)

    def __add__(self, o: Operand) -> Sym: return self._binary("add", o)
    def __radd__(self, o: Operand) -> Sym: return self._binary("add", o, True)
    def __sub__(self, o: Operand) -> Sym: return self._binary("sub", o)
    def __rsub__(self, o: Operand) -> Sym: return self._binary("sub", o, True)
    def __mul__(self, o: Operand) -> Sym: return self._binary("mul", o)
    def __rmul__(self, o: Operand) -> Sym: return self._binary("mul", o, True)
    def __truediv__(self, o: Operand) -> Sym: return self._binary("div", o)
    def __rtruediv__(self, o: Operand) -> Sym: return self._binary("div", o, True)
    def __floordiv__(self, o: Operand) -> Sym: return self._binary("floordiv", o)
    def __mod__(self, o: Operand) -> Sym: return self._binary("mod", o)
    def __lt__(self, o: Operand) -> Sym: return self._binary("lt", o)
    def __le__(self, o: Operand) -> Sym: return self._binary("le", o)
    def __gt__(self, o: Operand) -> Sym: return self._binary("gt", o)
    def __ge__(self, o: Operand) -> Sym: return self._binary("ge", o)
    def __eq__(self, o: object) -> Sym: return self._binary("eq", o)  # type: ignore[override]
    def __ne__(self, o: object) -> Sym: return self._binary("ne", o)  # type: ignore[override]
    def __and__(self, o: Operand) -> Sym: return self._binary("and", o)
    def __rand__(self, o: Operand) -> Sym: return self._binary("and", o, True)
    def __or__(self, o: Operand) -> Sym: return self._binary("or", o)
    def __ror__(self, o: Operand) -> Sym: return self._binary("or", o, True)
    def __xor__(self, o: Operand) -> Sym: return self._binary("xor", o)
    def __lshift__(self, o: Operand) -> Sym: return self._binary("shl", o)
    def __rshift__(self, o: Operand) -> Sym: return self._binary("shr", o)
    def __neg__(self) -> Sym: return self._parts(lambda x: x.trace._emit("neg", (x,), x.dtype))
    def __abs__(self) -> Sym:
        return m.abs(self) if self.dtype in COMPONENT else self.trace._emit("abs", (self,), self.dtype)
    def __invert__(self) -> Sym:
        return self.trace._emit("not" if self.dtype == BOOL else "invert", (self,), self.dtype)

    def __pow__(self, o: Operand) -> Sym:
        return m.pow(self, o)

    def __rpow__(self, o: Operand) -> Sym:
        return m.pow(self.trace.as_sym(o, self.dtype), self)

    if TYPE_CHECKING:

        def __hash__(self) -> int: ...

    else:
        __hash__ = object.__hash__

    def __pointwise__(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return ``m.<name>(*args, **options)`` where one argument is a symbol."""
        if any(isinstance(a, Sym) and a.dtype in COMPONENT for a in args):
            if name not in COMPLEX:
                raise ComplexError(f"{name} is not defined for complex values")
            return COMPLEX[name](*args, **options)
        return FORMULAS[name](*args, **options) if name in FORMULAS else libm(f"math.{name}", *args)

    def __bool__(self) -> NoReturn:
        raise SymbolError(
            "a formula cannot branch on a value (if, and, or, not, max, min of an operand): "
            "every element takes the same path. Use m.where(condition, a, b), & and | instead."
        )

    def __float__(self) -> NoReturn:
        raise SymbolError("a formula cannot turn an operand into a Python number; use m.* instead of math.* and np.*")

    __int__: Callable[[Sym], NoReturn] = __float__
    __index__: Callable[[Sym], NoReturn] = __float__

    def __repr__(self) -> str:
        return f"<{self.name}: {self.dtype} = {self.op}>"

    def _parts(self, function: Callable[[Sym], Sym]) -> Sym:
        """Return what a function that acts on both parts of a complex value alike makes of the value."""
        if self.dtype not in COMPONENT:
            return function(self)
        return self.trace._emit("complex", (function(self.real), function(self.imag)), self.dtype)

    @property
    def real(self) -> Sym:
        """Return the real part, which of a real value is the value itself."""
        if self.dtype not in COMPONENT or self.op == "complex":
            return self.args[0] if self.op == "complex" else self
        return self.args[0].real if self.op == "conj" else self.trace._emit("real", (self,), COMPONENT[self.dtype])

    @property
    def imag(self) -> Sym:
        """Return the imaginary part, which of a real value is 0."""
        if self.dtype not in COMPONENT:
            return self.trace.constant(0, self.dtype)
        if self.op == "complex":
            return self.args[1]
        return -self.args[0].imag if self.op == "conj" else self.trace._emit("imag", (self,), COMPONENT[self.dtype])

    @property
    def conj(self) -> Sym:
        """Return the conjugate; a real value is its own."""
        if self.dtype not in COMPONENT or self.op == "conj":
            return self.args[0] if self.op == "conj" else self
        return self.trace._emit("conj", (self,), self.dtype)

    # primitives used by vecmath
    def cast(self, dtype: str) -> Sym:
        """Return the value converted to ``dtype`` (float to integer truncates; keep it in range first)."""
        if dtype == self.dtype:
            return self
        if dtype in COMPONENT:
            return self.trace._emit("complex", (self.real.cast(COMPONENT[dtype]), self.imag.cast(COMPONENT[dtype])), dtype)
        if self.dtype in COMPONENT:
            if dtype != BOOL:
                raise ComplexError(f"a complex value is not a {dtype} one; take its real part")
            return (self.real != 0) | (self.imag != 0)
        if dtype == BOOL:
            return self != self.trace.constant(0, self.dtype)
        if self.op == "constant":
            return self.trace.constant(float(self.args[1]) if dtype in FLOATS else int(self.args[1]), dtype)
        if self.dtype in FLOATS and dtype in _WIDE_UNSIGNED:  # as C does: −1 becomes the greatest
            signed = self.cast("int32" if dtype == "uint16" else "int64").cast(dtype)
            return where(self >= 2.0**63, self.trace._emit("cast", (self,), dtype), signed) if dtype == "uint64" else signed
        if self.dtype in FLOATS and dtype in ("int8", "int16", "uint8"):  # beyond 32 bits 0, in vectors of every width
            return self.cast("int32").cast(dtype)
        return self.trace._emit("cast", (self,), dtype)

    def bitcast(self, dtype: str) -> Sym:
        """Return the same bits read as ``dtype`` of the same width."""
        if dtype == self.dtype:
            return self
        return self.trace._emit("bitcast", (self,), dtype)

    def gather(self, table: tuple[Any, ...], dtype: str) -> Sym:
        """Return ``table[self]`` from a constant table; ``self`` is an integer within range."""
        name = self.trace.table(tuple(table), dtype)
        return self.trace._emit("gather", (name, self), dtype)


def closure(results: Sequence[Sym], given: Container[str] = ()) -> list[Sym]:
    """Return all that results depend on, each after what it depends on; but not what ``given`` ones, by name, are made of."""
    found: set[str] = set()
    stack = list(results)
    while stack:
        s = stack.pop()
        if s.name not in found:
            found.add(s.name)
            stack.extend(a for a in s.args if isinstance(a, Sym) and s.name not in given)
    return [s for s in results[0].trace.instructions if s.name in found]


def unify(a: Sym, b: Sym) -> tuple[Sym, Sym]:
    """Return two symbols brought to the wider of their dtypes."""
    if a.dtype == b.dtype:
        return a, b
    if a.dtype in COMPONENT or b.dtype in COMPONENT:
        wide = "complex128" if {"complex128", "float64"} & {a.dtype, b.dtype} else "complex64"
        return a.cast(wide), b.cast(wide)
    if a.dtype not in _RANK or b.dtype not in _RANK:
        raise SymbolError(f"a formula mixes {a.dtype} and {b.dtype}; cast one of them")
    wide = max(a.dtype, b.dtype, key=_RANK.__getitem__)
    return a.cast(wide), b.cast(wide)


def primitive(op: str, *args: Any) -> Sym:
    """Write a primitive instruction on symbols (Python numbers become literals of the first symbol's dtype)."""
    first = next(a for a in args if isinstance(a, Sym))
    syms = tuple(first.trace.as_sym(a, first.dtype) for a in args)
    return first.trace._emit(op, syms, BOOL if op in _COMPARISONS else first.dtype)


def usually(condition: Sym, a: Sym, b: Sym) -> Sym:
    """Return ``a`` where the condition holds, else ``b`` (of one dtype), as `where` does.

    The condition is one that nearly always holds. A loop that can tell beforehand that it does for many elements computes only ``a``.
    """
    return condition.trace._emit("usually", (condition, a, b), a.dtype)


def where(condition: Sym, a: Any, b: Any) -> Sym:
    """Return ``a`` where the condition holds, else ``b``; both are computed."""
    trace = condition.trace
    partner = next((v.dtype for v in (a, b) if isinstance(v, Sym)), None)
    x, y = unify(trace.as_sym(a, partner), trace.as_sym(b, partner))
    if condition.dtype != BOOL:
        condition = condition.cast(BOOL)
    if x.dtype in COMPONENT:
        return trace._emit("complex", (where(condition, x.real, y.real), where(condition, x.imag, y.imag)), x.dtype)
    return trace._emit("where", (condition, x, y), x.dtype)


def libm(name: str, *args: Any) -> Sym:
    """Return the call of a scalar function that Numba knows (``math.lgamma``, or ``iterative.<name>`` of `codegen.iterative`); it does not vectorise."""
    first = next(a for a in args if isinstance(a, Sym))
    syms = tuple(first.trace.as_sym(a, first.dtype) for a in args)
    if any(s.dtype in COMPONENT for s in syms):
        raise ComplexError(f"{name} is not defined for complex values")
    return first.trace._emit("libm", (name, *syms), first.dtype)


def numpy_name(dtype: str) -> str:
    return "bool_" if dtype == BOOL else dtype


def literal(value: float | int | bool, dtype: str) -> str:
    """Return a Python expression that Numba types as exactly ``dtype``."""
    if dtype in COMPONENT:
        return f"np.{dtype}({float(value)!r})"
    if dtype == BOOL:
        return "True" if value else "False"
    if dtype in FLOATS:
        if math.isnan(value):
            return f"np.{dtype}(np.nan)"
        if math.isinf(value):
            return f"np.{dtype}({'-' if value < 0 else ''}np.inf)"
        return f"np.{dtype}({float(value)!r})"
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    low = 0 if dtype.startswith("u") else -(1 << bits - 1)
    return f"np.{dtype}({(int(value) - low) % (1 << bits) + low})"  # it wraps, as in a kernel
