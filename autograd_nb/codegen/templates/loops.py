"""Loop templates: a traced loop body and a memory layout in, the source of one kernel out.

Every array operand is the flat C array of its storage, beginning at the tensor's first element; shapes and strides come
in ``dims``, one int64 array, so that the types of a kernel never depend on rank or layout. Two shapes of loop:

- pointwise: ``flat`` (all operands contiguous and of one shape: one loop), or ``strided`` (six nested loops, the innermost
  specialised per operand: ``u`` unit stride, ``0`` the same element all along, ``s`` any stride, ``t`` any stride while the
  next outer loop has unit stride). What is read at any stride is brought in order first, piece by piece, so that the body's
  loop is always one over neighbouring elements;
- reduction: four kept and reduced outer loops around an inner loop that is itself kept or reduced.

``float16`` and ``bfloat16`` arrays are passed as ``uint16``, ``complex32`` as ``uint32``, and converted in the body (`loaded`, `stored`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..formula.namespace import m
from ..formula.symbols import BOOL, COMPONENT, FLOATS, INTEGERS, ComplexError, Sym, SymbolError, Trace, literal, numpy_name

#: formats of half precision: the functions that make a float32 (or complex64) of an element's bits, and bits of one
HALVES = {
    "float16": ("half_to_float", "float_to_half"), "bfloat16": ("bfloat_to_float", "float_to_bfloat"), "complex32": ("chalf_to_complex", "parts_to_chalf"),
}  # fmt: skip

RANK = 6  #: nested loops of the strided template; the innermost is the last

HEADER = "import math\nimport numpy as np\n"
MARKS = "from autograd_nb.codegen.runtime import independent\n"
WIDENED = "from autograd_nb.codegen.runtime import wide\n"
WALK = "from autograd_nb.codegen.runtime import advance, entry, independent, pack, position, row, scratch, start, steps, turn\n"

#: elements that a loop takes at a time: what is brought in order for it stays in the first cache. In a summation lanes add up
#: in vector registers within a chunk, and chunks are added in order
CHUNK = 1024
WIDE, TALL = 128, 256  #: columns, and bytes of lines (four of the cache's), of a block that is turned
SQUARE = 16  #: steps of two loops that are worth turning blocks
SHORT = 8  #: steps of an innermost loop that are not worth entering it
LITTLE = 12  #: values that are worth computing once more in order to know what a loop need not compute
LONG = 12  #: instructions of a body that is limited by arithmetic, not by memory


class Input(NamedTuple):
    """An operand of a loop body: an array's element or a scalar argument, of a storage dtype."""

    dtype: str
    scalar: bool = False


@dataclass
class Body:
    """A traced loop body: what to load, the instructions, and what to store where."""

    trace: Trace
    inputs: list[Input]
    symbols: list[Sym]
    results: list[tuple[Sym, str]]  # (value, storage dtype)

    def used(self) -> set[str]:
        return {s.name for s in self.trace.instructions}

    def conditions(self) -> list[Sym]:
        """Return the conditions of `usually` that the results depend on, if they are told by little."""
        live = _live([v for v, _ in self.results])
        conditions = list(dict.fromkeys(s.args[0] for s in self.trace.instructions if s.op == "usually" and s.name in live))
        return conditions if len(_live(conditions)) <= LITTLE else []

    def long(self) -> bool:
        """Return whether arithmetic takes longer than reading and writing, so that vectors are as wide as the processor's."""
        return sum(s.op not in ("input", "constant") for s in self.trace.instructions) >= LONG

    def effort(self) -> int:
        """Return what one element costs, in units of an array's element moved: roughly, a unit is as good as four instructions."""
        arrays = sum(not s.scalar for s in self.inputs) + len(self.results)
        return max(arrays, len(self.trace.instructions) // 4)


def storage(dtype: str) -> str:
    """Return the dtype of the NumPy array that carries ``dtype`` into a kernel."""
    return "uint32" if dtype == "complex32" else "uint16" if dtype in HALVES else dtype


def loaded(element: Sym, dtype: str) -> Sym:
    """Return the number that an element of an array of dtype ``dtype`` is."""
    return getattr(m, HALVES[dtype][0])(element) if dtype in HALVES else element


def stored(value: Sym, target: str) -> Sym:
    """Return a value as an array of dtype ``target`` holds it: a real array takes the real part of a complex one."""
    if target == "complex32":
        value = value.cast("complex64")
        return m.parts_to_chalf(value.real, value.imag)  # type: ignore[no-any-return]
    if target != BOOL and target not in COMPONENT:
        value = value.real
    return getattr(m, HALVES[target][1])(value.cast("float32")) if target in HALVES else value.cast(target)


def trace_body(
    formula: Callable[..., Sequence], inputs: Sequence[Input], compute: str | Sequence[str], outputs: Sequence[str | None]
) -> Body:
    """Run ``formula(*symbols)`` (it returns one value per output) on inputs cast to the compute dtype.

    ``compute`` is one dtype for all inputs, or one for each (a condition stays "bool").
    """
    per_input = [compute] * len(inputs) if isinstance(compute, str) else list(compute)
    base = compute if isinstance(compute, str) else next((c for c in per_input if c != "bool"), "float32")
    trace = Trace(base)
    elements = []
    symbols = []
    for j, (spec, dtype) in enumerate(zip(inputs, per_input, strict=True)):
        x = trace.input(f"x{j}", storage(spec.dtype))
        elements.append(x)
        symbols.append((x if spec.scalar else loaded(x, spec.dtype)).cast(dtype))
    values = formula(*symbols)
    results = []
    for value, output in zip(values, outputs, strict=True):
        value = trace.as_sym(value)
        target = output or value.dtype
        results.append((stored(value, target), target))
    return Body(trace, list(inputs), elements, results)


#: of a kernel whose results all have arrays of their own
APART: Mapping[int, int] = MappingProxyType({})


def _targets(first: int, count: int, over: Mapping[int, int]) -> tuple[list[str], list[str]]:
    """Return the names of the arrays of ``count`` results, the first being ``o{first}``, and those of them that are arguments of their own."""
    names = [f"a{over[k]}" if k in over else f"o{first + k}" for k in range(count)]
    return names, [o for k, o in enumerate(names) if k not in over]


def _indent(lines: Sequence[str], level: int) -> str:
    return "".join("    " * level + line + "\n" for line in lines)


def _rounds(body: Body, extent: str, loads: Sequence[str], stores: Sequence[str], level: int) -> str:
    """Return the loop over the elements ``range(extent)``, before which constants are known: two of them where what is usual is quicker."""
    values = [v for v, _ in body.results]
    lines = body.trace.lines(values)[1]
    loop = f"for i in range({extent}):"
    general = [loop, *("    " + line for line in ("independent()", *loads, *lines, *stores))]
    conditions = body.conditions()
    if not conditions:
        return _indent(general, level)
    live = _live(conditions)
    test = [line for line in loads if line.partition(" ")[0] in live] + body.trace.lines(conditions)[1]
    test += [f"rare = rare | (not {c.name})" for c in conditions]
    usual = ["independent()", *loads, *body.trace.lines(values, usual=True)[1], *stores]
    text = _indent(["rare = False", loop, *("    " + line for line in test), "if rare:"], level)
    text += _indent(general, level + 1)
    return text + _indent(["else:", "    " + loop, *("        " + line for line in usual)], level)


def pointwise_flat(body: Body, over: Mapping[int, int] = APART) -> str:
    """Return the text of ``kernel(x0, x1, …, o0, …)``: one loop over contiguous operands of one size (scalars stand among the inputs).

    ``over``: result → the input array that it overwrites; it has no argument of its own then. (Passing one array twice would
    do, but LLVM, seeing that they overlap, would take its unvectorised loop.)
    """
    values = [v for v, _ in body.results]
    before = body.trace.lines(values)[0]
    live = _live(values)
    args = [f"a{j}" if not s.scalar else f"x{j}" for j, s in enumerate(body.inputs)]
    loads = [f"x{j} = a{j}[i]" for j, s in enumerate(body.inputs) if not s.scalar and f"x{j}" in live]
    outs, own = _targets(0, len(values), over)
    stores = [f"{o}[i] = {v.name}" for o, v in zip(outs, values, strict=True)]
    text = HEADER + MARKS + WIDENED * body.long() + body.trace.preamble() + before + f"def kernel({', '.join(args + own)}):\n"
    text += _indent(["wide()"] if body.long() else [], 1)
    if not body.conditions():
        return text + _rounds(body, f"{outs[0]}.size", loads, stores, 1)
    text += _indent([f"n = {outs[0]}.size", f"for c in range(0, n, {CHUNK}):", f"    end = min(c + {CHUNK}, n)"], 1)
    return text + _rounds(body, "c, end", loads, stores, 2)


def arrange(sizes: list[int], steps: Sequence[list[int]], inputs: int, free: bool = True) -> str:
    """Bring the six loops into the order that suits `pointwise_strided` if that is ``free``, and return its ``kinds``.

    ``sizes`` and ``steps`` (by array operand, the ``inputs`` first) are changed in place.
    """
    inner, kinds = RANK - 1, {1: "u", 0: "0"}
    if not free:
        return "".join([kinds.get(t[inner], "s") for t in steps])

    def move(d: int, to: int) -> None:
        for row in (sizes, *steps):
            row.insert(to, row.pop(d))

    if sizes[inner] < SQUARE:
        lines = [d for d in range(inner) if sizes[d] >= 2 * sizes[inner] and any(t[d] == 1 for t in steps[:inputs])]
        longest = max(range(RANK), key=lambda d: (sizes[d], d))
        if lines and any(t[inner] not in kinds for t in steps[:inputs]):
            move(max(lines, key=lambda d: sizes[d]), inner)  # what is read one after the other is written apart
        elif sizes[inner] < SHORT and sizes[longest] >= SHORT * sizes[inner]:
            move(longest, inner)
    across = {d for t in steps[:inputs] if t[inner] not in kinds for d in range(inner) if t[d] == 1 and sizes[d] >= SQUARE}
    if across and sizes[inner] >= SQUARE:
        move(max(across), inner - 1)
    else:
        return "".join([kinds.get(t[inner], "s") for t in steps])
    return "".join(
        ["t" if p < inputs and t[inner] not in kinds and t[inner - 1] == 1 else kinds.get(t[inner], "s") for p, t in enumerate(steps)]
    )


def pointwise_strided(body: Body, kinds: str, over: Mapping[int, int] = APART) -> str:
    """Return the text of ``kernel(dims, x0, …, o0, …)``: six nested loops; ``kinds`` has one letter per array operand, outputs last.

    ``dims``: the six sizes, then six element strides for each array operand, outputs last. ``over``: see `pointwise_flat`.
    """
    values = [v for v, _ in body.results]
    before = body.trace.lines(values)[0]
    live = _live(values)
    arrays = [f"a{j}" for j, s in enumerate(body.inputs) if not s.scalar]
    outs, own = _targets(0, len(values), over)
    everyone = arrays + own
    keep = [a for a in arrays if f"x{a[1:]}" in live]
    args = ["dims"] + [f"a{j}" if not s.scalar else f"x{j}" for j, s in enumerate(body.inputs)] + own
    inner = RANK - 1
    turned = [a for a in keep if kinds[everyone.index(a)] == "t"]
    walked = inner - bool(turned)
    chunked = turned or any(kinds[everyone.index(a)] == "s" for a in keep) or body.conditions()
    size, column, line = "size" if chunked else f"n{inner}", "c" if chunked else "", "r0 + r" if turned else ""
    reads = _Rows(everyone, keep, kinds, size, column, line, body.inputs)
    writes = _Rows(everyone, outs, kinds, size, column, line)
    stores = [f"{o}r[{writes.step(o)}] = {v.name}" for o, v in zip(outs, values, strict=True)]
    n = len(everyone)
    text = HEADER + WALK + WIDENED * body.long() + body.trace.preamble() + before + f"def kernel({', '.join(args)}):\n"
    text += _indent([*(["wide()"] if body.long() else []), f"n{inner} = entry(dims, {inner})", *dict.fromkeys([*reads.before, *writes.before])], 1)
    text += _indent([f"if n{inner} < 1:", "    return"], 1)
    text += _indent([f"place = start({n})", f"for _ in range(steps(dims, 0, {walked})):"], 1)
    level = 2
    if turned:
        height = TALL // max(reads.itemsize(a) for a in turned)
        text += _indent([f"for r0 in range(0, n{walked}, {height}):", f"    rows = min({height}, n{walked} - r0)"], level)
        text += _indent([f"for c in range(0, n{inner}, {WIDE}):", f"    size = min({WIDE}, n{inner} - c)"], level + 1)
        text += _indent([*reads.turns, "for r in range(rows):"], level + 2)
        level += 3
    elif chunked:
        text += _indent([f"for c in range(0, n{inner}, {CHUNK}):", f"    size = min({CHUNK}, n{inner} - c)"], level)
        level += 1
    text += _indent([*dict.fromkeys([*reads.rows, *writes.rows])], level)
    text += _rounds(body, size, reads.loads, stores, level)
    return text + _indent([f"advance(place, dims, {n}, 0, {walked})"], 2)


_TRUTH = " != 0"  #: rows of booleans hold bytes


class _Rows:
    """The text that finds the rows of the operands ``which`` where the walk stands, and loads their element ``i``.

    ``everyone`` gives the order of the operands in ``dims``. ``size``: of a row; ``column``: the element to begin at, ``line``: how
    many steps further in the loop around it (names, or "" for none). ``inputs``: of the operands that are read, which are brought
    in order where they are not.

    ``before``: what to know before all loops; ``turns``: for a block of lines; ``rows``: for each row; ``loads``: for each element.
    """

    def __init__(
        self,
        everyone: list[str],
        which: list[str],
        kinds: str,
        size: str,
        column: str,
        line: str = "",
        inputs: Sequence[Input] = (),
    ):
        self.everyone, self.kinds, self.inputs = everyone, kinds, inputs
        self.before: list[str] = [f"n{RANK - 2} = entry(dims, {RANK - 2})"] if line and inputs else []
        self.turns: list[str] = []
        self.rows: list[str] = []
        self.loads: list[str] = []
        for a in which:
            p = everyone.index(a)
            kind = kinds[p] if inputs or kinds[p] == "u" else "s"  # each element of an output is written
            truth = _TRUTH if inputs and inputs[int(a[1:])].dtype == BOOL else ""
            begin = f"position(place, {p})"
            step = f"{a}s{RANK - 1}"
            if kind in "st":
                self.before.append(f"{step} = entry(dims, {RANK * (p + 1) + RANK - 1})")
            moved = "" if kind == "0" or not column else f" + {column}" if kind == "u" else f" + {column} * {step}"
            if kind == "t":
                self.scratch(a, TALL // self.itemsize(a) * WIDE)
                self.turns.append(f"turn({a}b, {WIDE}, {a}, {begin} + r0{moved}, rows, {size}, {step})")
                self.loads.append(f"x{a[1:]} = {a}b[r * {WIDE} + i]{truth}")
                continue
            if line:
                self.before.append(f"{a}s{RANK - 2} = entry(dims, {RANK * (p + 1) + RANK - 2})")
                begin += f" + ({line}) * {a}s{RANK - 2}"
            if kind == "0":
                self.rows.append(f"x{a[1:]} = row({a}, {begin}, 1, 1)[0]{truth}")
            elif kind == "u":
                self.rows.append(f"{a}r = row({a}, {begin}{moved}, {size}, 1)")
                self.loads.append(f"x{a[1:]} = {a}r[i]{truth}")
            elif inputs:
                self.scratch(a, CHUNK)
                self.rows.append(f"pack({a}b, {a}, {begin}{moved}, {size}, {step})")
                self.loads.append(f"x{a[1:]} = {a}b[i]{truth}")
            else:
                self.rows.append(f"{a}r = row({a}, {begin}{moved}, {size}, {step})")

    def step(self, o: str) -> str:
        """Return where in its row element ``i`` of an output is."""
        return "i" if self.kinds[self.everyone.index(o)] == "u" else f"i * {o}s{RANK - 1}"

    def dtype(self, a: str) -> str:
        return numpy_name(storage(self.inputs[int(a[1:])].dtype))

    def itemsize(self, a: str) -> int:
        return np.dtype(self.dtype(a)).itemsize

    def scratch(self, a: str, size: int) -> None:
        self.before.append(f"{a}b = scratch({size}, np.{self.dtype(a)})")


def _live(values: Sequence[Sym]) -> set[str]:
    """Return the names of all that these values depend on."""
    needed: set[str] = set()
    stack = list(values)
    while stack:
        s = stack.pop()
        if s.name not in needed:
            needed.add(s.name)
            stack.extend(a for a in s.args if isinstance(a, Sym))
    return needed


# ------------------------------------------------------------------------------------------------- reductions


def _wide(dtype: str) -> str:
    if dtype in COMPONENT:
        return "complex128"
    return "float64" if dtype in FLOATS else "int64"


class Fold(NamedTuple):
    """The combining step of a reduction.

    ``init``: the total of nothing, which changes nothing that it is combined with. ``combine``: a formula of the total so far and
    one more value. ``accumulator``: from the values' dtype to the total's. ``loose``, ``ordered``: the combination as text over
    {a} and {x}, with leave to reassociate and without, where the formula's own is not what is wanted.
    """

    name: str
    init: float
    combine: Callable[[Any, Any], Any]
    accumulator: Callable[[str], str] = _wide
    loose: str = ""
    ordered: str = ""

    def start(self, dtype: str) -> str:
        """Return the literal with which a total of this dtype begins."""
        if dtype == BOOL:
            return str(self.init > 0)
        if dtype in INTEGERS and self.init in (math.inf, -math.inf):  # the largest or least there is
            return f"np.{dtype}(np.iinfo(np.{dtype}).{'max' if self.init > 0 else 'min'})"
        return literal(self.init, dtype)

    def text(self, a: str, x: str, dtype: str, ordered: bool = False) -> str:
        """Return the combination of two expressions of this dtype; ``ordered``: as it stands, between chunks the order is fixed."""
        known = self.ordered if ordered and self.ordered else self.loose
        return known.format(a=a, x=x) if known else combination(self.combine, a, x, dtype)


LONGEST = 1000  #: characters of a combination: every value is written where it is used, as often as it is


def combination(combine: Callable[[Any, Any], Any], a: str, x: str, dtype: str) -> str:
    """Return the text of a formula of two values as one expression."""
    trace = Trace(dtype)
    value = trace.as_sym(combine(trace.input(a, dtype), trace.input(x, dtype))).cast(dtype)
    text = _expression(value)
    return text.removeprefix("(").removesuffix(")") if value.op not in ("input", "constant") else text


def _expression(s: Sym) -> str:
    """Return a symbol's computation as the text of one expression."""
    if s.op in ("input", "constant"):
        return s.name if s.op == "input" else s.text()
    if s.op == "gather" or (s.op == "libm" and s.args[0].startswith("iterative.")):
        raise SymbolError("combine= is one expression: a function that needs a table belongs into the formula or finish=")
    found = f"({s.text([_expression(arg) if isinstance(arg, Sym) else str(arg) for arg in s.args])})"
    if len(found) > LONGEST:
        raise SymbolError("combine= is one short expression: what can be done before or after belongs into the formula or finish=")
    return found


def _same(dtype: str) -> str:
    return dtype


def _truth(dtype: str) -> str:
    return BOOL


SUM = Fold("sum", 0, lambda a, x: a + x, loose="radd({a}, {x})", ordered="{a} + {x}")
# two sums: so that each may be added in any order
COMPLEX_SUM = SUM._replace(loose="complex(radd({a}.real, {x}.real), radd({a}.imag, {x}.imag))")
PROD = Fold("prod", 1, lambda a, x: a * x, loose="rmul({a}, {x})", ordered="{a} * {x}")
MAX = Fold("max", -math.inf, lambda a, x: m.where(x > a, x, a), _same)
MIN = Fold("min", math.inf, lambda a, x: m.where(x < a, x, a), _same)
FIRST = MIN._replace(name="first")  #: of the places in a row that count, which are less than its length; later ones need not be looked at
ANY = Fold("any", 0, lambda a, x: a | x, _truth)
ALL = Fold("all", 1, lambda a, x: a & x, _truth)

# reassociation only where it is wanted: on the additions of the fold, never inside the formula that feeds it
_REDUCE_HEADER = HEADER + WALK + "from autograd_nb.codegen.runtime import radd, rmul, rolled\n"

EACH = ("for i in range(size):", "    independent()")  #: a loop over the columns of a block
LEVEL = 32  #: rows that are added up before their sum goes up one level
TOGETHER = 4  #: rows that are folded at once, where they need no computing; a divisor of `LEVEL`
PARTS = 64  #: products that a complex one is made of, as each factor would wait for the one before
KEPT = 3  #: outer loops over kept dims
REDUCED = 2  #: outer loops over reduced dims


def reduction(
    body: Body,
    folds: Sequence[Fold],
    inner: str,
    kinds: str,
    finish: Callable[[list[Sym], list[Sym]], Sequence[Sym]],
    outs: Sequence[str],
    wide: bool,
    over: Mapping[int, int] = APART,
) -> str:
    """Return the text of ``kernel(dims, x0, …, o0, …)``, which folds the body's first results over the reduced loops and stores the others.

    ``dims``: three kept sizes, two reduced sizes, the inner size; then the same six strides for each array operand and for
    each output (0 along reduced loops for what is made of totals; these outputs stand first). ``inner``: "reduced" or "kept".
    ``kinds``: inner stride of each array operand and output. ``finish``: formula from the totals and the inputs to what is stored
    of them, of dtypes ``outs``; it may read inputs that are the same along the reduced loops. ``wide``: whether every single float32
    is added in float64; else the lanes of a chunk, or a few rows, a few dozen numbers each, add up in float32. ``over``: of those that are
    stored as they are, see `pointwise_flat`.
    """
    return _Reduction(body, folds, kinds, finish, outs, wide, over).text(inner)


class _Reduction:
    """The parts of a reduction's text.

    Of each fold: ``lanes``, the dtype in which a chunk's values add up, ``accs``, that of totals, ``lows`` and ``begins``, where these begin.
    ``reads``, ``writes``: the rows of operands, and of what is stored as it is; ``epilogue``: the operands that ``finish`` reads.
    """

    def __init__(
        self, body: Body, folds: Sequence[Fold], kinds: str, finish: Callable, outs: Sequence[str], wide: bool, over: Mapping[int, int]
    ):
        self.body = body
        values = [v for v, _ in body.results]
        self.folded = values[: len(folds)]
        self.folds = [COMPLEX_SUM if v.dtype in COMPONENT and f is SUM else f for f, v in zip(folds, values, strict=False)]
        for f, v in zip(self.folds, values, strict=False):
            if v.dtype in COMPONENT and f in (MAX, MIN):
                raise ComplexError(f"complex values have no {f.name}")
        self.accs = [f.accumulator(v.dtype) for f, v in zip(self.folds, values, strict=False)]
        self.parted = [k for k, (f, acc) in enumerate(zip(self.folds, self.accs, strict=True)) if f is PROD and acc in COMPONENT]
        self.begins = [f.start(acc) for f, acc in zip(self.folds, self.accs, strict=True)]
        before, self.lines = body.trace.lines(values)
        self.lanes = []
        for k, (fold, value, acc) in enumerate(zip(self.folds, values, self.accs, strict=False)):
            lane = value.dtype if fold is SUM and value.dtype == "float32" and not wide else acc
            self.lanes.append(lane)
            self.lines.append(f"v{k} = np.{numpy_name(lane)}({value.name})" if value.dtype != lane else f"v{k} = {value.name}")
        self.lows = [f.start(lane) for f, lane in zip(self.folds, self.lanes, strict=True)]
        done_before = self._finished(finish, outs)
        self.header = _REDUCE_HEADER + body.trace.preamble() + before + self.done_trace.preamble() + done_before
        self._operands(values, kinds, outs, over)

    def _finished(self, finish: Callable[..., Any], outs: Sequence[str]) -> str:
        """Run ``finish`` on symbols of totals and inputs; the text of its constants."""
        self.done_trace = Trace(self.accs[0], "d")
        totals = [self.done_trace.input(f"total{k}", acc) for k, acc in enumerate(self.accs)]
        given = [self.done_trace.input(f"x{j}", storage(s.dtype)) for j, s in enumerate(self.body.inputs)]
        self.done = [stored(v, out) for v, out in zip(finish(totals, given), outs, strict=True)]
        before, self.done_lines = self.done_trace.lines(self.done)
        return before

    def _operands(self, values: Sequence[Sym], kinds: str, outs: Sequence[str], over: Mapping[int, int]) -> None:
        """Name the kernel's arguments, and write how their rows are found."""
        inputs, live = self.body.inputs, _live(values)
        arrays = [f"a{j}" for j, s in enumerate(inputs) if not s.scalar]
        keep = [a for a in arrays if f"x{a[1:]}" in live]
        self.epilogue = [a for a in arrays if f"x{a[1:]}" in _live(self.done)]
        self.results = [f"o{k}" for k in range(len(outs))]
        stored, own = _targets(len(outs), len(values) - len(self.folds), over)
        self.everyone = [*arrays, *self.results, *own]
        self.args = ["dims"] + [f"a{j}" if not s.scalar else f"x{j}" for j, s in enumerate(inputs)] + self.results + own
        self.truth = {a: _TRUTH if inputs[int(a[1:])].dtype == BOOL else "" for a in arrays}
        self.reads = _Rows(self.everyone, keep, kinds, "size", "c", inputs=inputs)
        writes = _Rows(self.everyone, stored, kinds, "size", "c")
        self.stores = [f"{o}r[{writes.step(o)}] = {v.name}" for o, v in zip(stored, values[len(self.folds) :], strict=True)]
        self.before = [*dict.fromkeys([*self.reads.before, *writes.before])]
        self.rows = [f"size = min({CHUNK}, n5 - c)", *dict.fromkeys([*self.reads.rows, *writes.rows])]

    def text(self, inner: str) -> str:
        """Return the kernel whose innermost loop is ``inner``: "reduced" or "kept"."""
        n = len(self.everyone)
        text = self.header + f"def kernel({', '.join(self.args)}):\n"
        text += _indent(["n5 = entry(dims, 5)", *self.before], 1)
        text += _indent([f"rows = steps(dims, {KEPT}, {KEPT + REDUCED})", f"place = start({n})"], 1)
        text += self._inner_reduced() if inner == "reduced" else self._inner_kept()
        return text + _indent([f"advance(place, dims, {n}, 0, {KEPT})"], 2)

    def _next_row(self, level: int) -> str:
        return _indent([f"advance(place, dims, {len(self.everyone)}, {KEPT}, {KEPT + REDUCED})"], level)

    def _inner_reduced(self) -> str:
        """Return the loops in which the chunks of a row are folded in lanes, and the chunks in order; a complex product in `PARTS`."""
        text = _indent([f"part{k} = scratch({PARTS}, np.{self.accs[k]})" for k in self.parted] + [f"for _ in range(steps(dims, 0, {KEPT})):"], 1)
        text += _indent([*[f"total{k} = {begin}" for k, begin in enumerate(self.begins)], "for _ in range(rows):"], 2)
        text += _indent([f"for c in range(0, n5, {CHUNK}):"], 3)
        text += _indent([*self.rows, *[f"acc{k} = {low}" for k, low in enumerate(self.lows)]], 4)
        if self.parted:
            text += _indent([f"whole = size // {PARTS} * {PARTS}", "if whole > 0:"], 4)
            text += _indent([f"for i in range({PARTS}):", *[f"    part{k}[i] = {self.lows[k]}" for k in self.parted]], 5)
            text += _indent([f"for b in range(0, whole, {PARTS}):", f"    for i in range(b, b + {PARTS}):"], 5) + _indent(self._folded(True), 7)
            for half in (PARTS // 2, PARTS // 4, PARTS // 8):
                text += _indent([f"for i in range({half}):", *[f"    part{k}[i] *= part{k}[i + {half}]" for k in self.parted]], 5)
            text += _indent([f"for i in range({half}):", *[f"    acc{k} = acc{k} * part{k}[i]" for k in self.parted]], 5)
        text += _indent(["for i in range(whole, size):" if self.parted else "for i in range(size):"], 4) + _indent(self._folded(False), 5)
        text += _indent([f"total{k} = {f.text(f'total{k}', f'acc{k}', self.accs[k], True)}" for k, f in enumerate(self.folds)], 4)
        one = {a: f"row({a}, position(place, {k}), 1, 1)[0]" for k, a in enumerate(self.everyone)}
        text += self._next_row(3) + _indent([f"x{a[1:]} = {one[a]}{self.truth[a]}" for a in self.epilogue], 2)
        return text + _indent([*self.done_lines, *[f"{one[o]} = {v.name}" for o, v in zip(self.results, self.done, strict=True)]], 2)

    def _folded(self, parted: bool) -> list[str]:
        """Return what is done with element ``i`` of a row, where it is of a whole block of products, or not."""
        # else sums would depend on how near the arrays lie, as in `row`
        lines = ["independent()"] if self.stores or (parted and len(self.parted) == len(self.folds)) else []
        lines += [*self.reads.loads, *self.lines]
        for k, (f, lane) in enumerate(zip(self.folds, self.lanes, strict=True)):
            acc = f"part{k}[i - b]" if parted and k in self.parted else f"acc{k}"
            lines.append(f"{acc} = {f.text(acc, f'v{k}', lane)}")
        return [*lines, *self.stores]

    def _inner_kept(self) -> str:
        """Return the loops that take a block of columns at a time, whose rows are folded into a buffer.

        Of a sum of floats every few dozen rows go up one level: accumulators wider than the values would halve the vectors of the whole loop.
        """
        lanes, accs = self.lanes, self.accs
        high = [k for k, f in enumerate(self.folds) if f is SUM and (self.folded[k].dtype == "float64" or lanes[k] != accs[k])]
        ends = _Rows(self.everyone, [*self.epilogue, *self.results], "s" * len(self.everyone), "size", "c")
        text = _indent(ends.before, 1)
        text += _indent([f"row{k} = scratch({CHUNK}, np.{numpy_name(lane)})" for k, lane in enumerate(lanes)], 1)
        text += _indent([f"sum{k} = scratch({CHUNK}, np.{numpy_name(accs[k])})" for k in high], 1)
        plain = self._plain()
        if plain:
            text += _indent([f"none = scratch({CHUNK}, np.{numpy_name(lanes[0])})", f"at = scratch({TOGETHER}, np.int64)"], 1)
        text += _indent([f"for _ in range(steps(dims, 0, {KEPT})):", f"    for c in range(0, n5, {CHUNK}):"], 1)
        text += _indent([self.rows[0], *EACH, *[f"    row{k}[i] = {low}" for k, low in enumerate(self.lows)]], 3)
        if plain:
            text += _indent([f"    none[i] = {self.lows[0]}"], 3)
        if high:
            text += _indent([*[f"    sum{k}[i] = {self.begins[k]}" for k in high], "count = 0"], 3)
        text += self._fold_rows_together() if plain else self._fold_a_row()
        if high:
            text += _indent([f"count += {TOGETHER if plain else 1}", f"if count == {LEVEL}:", "    count = 0", *["    " + line for line in EACH]], 4)
            text += _indent([line for k in high for line in (f"sum{k}[i] += row{k}[i]", f"row{k}[i] = {self.lows[k]}")], 6)
        if not plain:
            text += self._next_row(4)
        text += _indent([*ends.rows, *EACH], 3)
        for k, acc in enumerate(accs):
            text += _indent([f"total{k} = {f'sum{k}[i] + ' if k in high else ''}row{k}[i]{_TRUTH if acc == BOOL else ''}"], 4)
        text += _indent([f"x{a[1:]} = {a}r[i * {a}s5]{self.truth[a]}" for a in self.epilogue], 4)
        return text + _indent([*self.done_lines, *[f"{o}r[i * {o}s5] = {v.name}" for o, v in zip(self.results, self.done, strict=True)]], 4)

    def _plain(self) -> bool:
        """Return whether rows are folded as they lie in memory."""
        return len(self.rows) == 2 and self.reads.loads == ["x0 = a0r[i]"] and self.lines == ["v0 = x0"] and not self.stores

    def _fold_a_row(self) -> str:
        text = _indent(["for _ in range(rows):"], 3) + _indent([*self.rows[1:], "for i in range(size):"], 4)
        text += _indent([*self.reads.loads, *self.lines], 5)
        for k, f in enumerate(self.folds):
            text += _indent([f"acc{k} = row{k}[i]{_TRUTH if self.accs[k] == BOOL else ''}"], 5)
            text += _indent([f"row{k}[i] = {f.text(f'acc{k}', f'v{k}', self.lanes[k], True)}"], 5)
        return text + _indent(self.stores, 5)

    def _fold_rows_together(self) -> str:
        """Return the loop over rows that are folded a few at a time, in their order: in place of those beyond the last ``none`` is read."""
        text = _indent([f"for first in range(0, rows, {TOGETHER}):", f"    for k in range({TOGETHER}):"], 3)
        text += _indent(["rolled()", "at[k] = -1", "if first + k < rows:", "    at[k] = position(place, 0) + c"], 5) + self._next_row(6)
        text += _indent([f"a0r{k} = row(a0, at[{k}], size, 1) if at[{k}] >= 0 else none" for k in range(TOGETHER)], 4)
        text += _indent([*EACH, "    acc0 = row0[i]"], 4)
        for k in range(TOGETHER):
            text += _indent([f"v0 = a0r{k}[i]", f"acc0 = {self.folds[0].text('acc0', 'v0', self.lanes[0], True)}"], 5)
        return text + _indent(["row0[i] = acc0"], 5)
