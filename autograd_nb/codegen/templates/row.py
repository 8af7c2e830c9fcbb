"""Row-wise fused kernels: several passes over each row, with what they found so far, written as formulas.

A row is one line of elements along the dim that an op works on (softmax, norms, losses). The operands are arrays of shape
(outer, n, inner), a row being the n elements for one outer and one inner index, in several kinds:

- ``full``: an element per element of the row; ``row``: one value per row; ``col``: one value per position, the same for all
  rows; ``one``: a single value, an array of one element; ``number``: a scalar argument.
- ``line``: an element per element of the row, where rows begin anywhere, and ``spot``: one value per row, anywhere; an operand
  of kind ``row`` tells where, under the name of `begins`. Contiguous rows only, as is
- ``kept``: an element per element of the row for later passes to read, in memory of the kernel's own.

A kernel is a list of steps. Formulas name what they need by their parameters: operands, outputs written by an earlier step,
row values found by an earlier step, ``n`` (the row's length) and ``i`` (the position in it).

    [Each(folds={"top": (MAX, lambda x: x)}),
     Each(stores={"y": lambda x, top: m.exp(x - top)}, folds={"s": (SUM, lambda y: y)}),
     Each(stores={"y": lambda y, s: y / s})]

Rows that are contiguous (inner = 1) are walked one by one; otherwise a block of neighbouring rows at a time, so that the
vectorised loop runs over memory in order either way. Of short contiguous rows some go through each step together: one does not
wait for the other's sum, and what is computed once a row is computed for vectors of rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..formula.namespace import m
from ..formula.symbols import BOOL, FLOATS, Sym, Trace, closure, numpy_name
from .loops import CHUNK, FIRST, MAX, MIN, SUM, Fold, _indent

SEARCHED = 64  #: elements between two looks whether what is searched for is found
BLOCK = 256  #: rows at a time where rows are interleaved
SHORT = 16  #: contiguous rows at a time at most,
ROOM = 2048  #: and elements at which they stay in the first cache from step to step

_HEADER = "import math\nimport numpy as np\nfrom autograd_nb.codegen.runtime import independent, radd, rmul, row, scratch\n"


def begins(name: str) -> str:
    """Return the operand that tells where the rows or values of a ``line`` or ``spot`` begin."""
    return f"{name}_at"


def together(n: int) -> int:
    """Return how many contiguous rows of ``n`` elements go through the steps of a kernel together."""
    return min(SHORT, max(1, ROOM // max(n, 1)))


class Each(NamedTuple):
    """One pass over the elements of a row: fold values into row values, store values into full outputs.

    ``values``: what formulas of this pass further down have in common.
    """

    values: Mapping[str, Callable[..., Any]] = MappingProxyType({})
    stores: Mapping[str, Callable[..., Any]] = MappingProxyType({})
    folds: Mapping[str, tuple[Fold, Callable[..., Any]]] = MappingProxyType({})


class Row(NamedTuple):
    """Values computed once a row from other row values; those named as row outputs are stored."""

    values: Mapping[str, Callable[..., Any]]


class Pick(NamedTuple):
    """A row value: the element of a full or col operand ``at`` an index that is a row value (which must be in range)."""

    name: str
    operand: str
    at: str


class Put(NamedTuple):
    """Overwrite one element of a full output, ``at`` an index that is a row value, by a formula (which may read the element)."""

    output: str
    at: str
    formula: Callable[..., Any]


class Total(NamedTuple):
    """Sum row values over all rows, and store a formula of the sums in outputs of one element."""

    sums: Mapping[str, Callable[..., Any]]
    outputs: Mapping[str, Callable[..., Any]]


Step = Each | Row | Pick | Put | Total


class _Traced(NamedTuple):
    """Formulas that were run on symbols: their results, the statements that compute these, the names of the values that those read."""

    results: list[Sym]
    lines: list[str]
    used: list[str]


class _Pass(NamedTuple):
    """The parts of the text of one pass over the elements of rows.

    ``walked``: the operands and outputs with an element per element of the row, ``loads``: those of them that are read, ``cols``: the
    operands that all rows share, ``row_values``: the lines that load what is known of the row, ``position``: whether a formula asks for
    it, ``lines``: the statements and stores of one element, ``folded``: (name of the row value, fold, value of one element).
    """

    walked: list[str]
    loads: list[str]
    cols: list[str]
    row_values: list[str]
    position: bool
    lines: list[str]
    folded: list[tuple[str, Fold, Sym]]


class _Writer:
    """The text of one kernel as it grows; its subclasses say in which order the loops go."""

    lane: str  #: the variable that is the number of a row in its block
    level: int  #: how deep the loops of the steps stand

    def __init__(self, kinds: Mapping[str, str], dtypes: Mapping[str, str], outputs: Sequence[str], compute: str | None):
        self.kinds, self.dtypes, self.outputs, self.compute = kinds, dtypes, outputs, compute
        self.values: dict[str, str] = {}  # row values found so far and their dtypes
        self.sums: dict[str, str] = {}
        self.before: list[str] = []
        self.tables = ""
        self.buffers: dict[str, str] = {}
        self.body = ""
        self.tail = ""
        self.phases = 0
        self.rows_end = -1  #: where the text of the last loop of `_row` ends

    # ---- what differs between rows one by one and rows that are interleaved
    def element(self, name: str, index: str) -> str:
        """Return the element of the row at ``index``, a row value, of a full operand."""
        raise NotImplementedError

    def write_pass(self, p: _Pass) -> None:
        """Write the loops of one pass."""
        raise NotImplementedError

    def loops(self) -> str:
        """Return the loops over blocks of rows, around the steps."""
        raise NotImplementedError

    # ---- formulas
    def trace(self, formulas: Sequence[Callable[..., Any]], known: Iterable[str] = (), cast: bool = True) -> _Traced:
        """Run formulas over named values. ``known``: the names of the first results, which later formulas may ask for.

        ``cast``: floats come in the dtype that the kernel computes in, if it has one.
        """
        trace = Trace(self.compute or "float32", f"p{self.phases}t")
        self.phases += 1
        loaded: dict[str, Sym] = {}
        results: list[Sym] = []
        made: dict[str, Sym] = {}
        names = list(known)
        for k, f in enumerate(formulas):
            args = []
            for p in inspect.signature(f).parameters:
                if p in made:
                    args.append(made[p])
                    continue
                dtype = self.dtype_of(p)
                x = loaded.get(p)
                if x is None:
                    x = loaded[p] = trace.input(f"{p}_", dtype)
                args.append(x.cast(self.compute) if self.compute and cast and dtype in FLOATS else x)
            value = trace.as_sym(f(*args))
            results.append(value)
            if k < len(names):
                made[names[k]] = value
        needed = {s.name for s in closure(results)}
        before, lines = trace.lines(results)
        self.tables += trace.preamble() + before
        return _Traced(results, lines, [p for p, s in loaded.items() if s.name in needed])

    def dtype_of(self, name: str) -> str:
        if name in ("n", "i"):
            return "int64"
        if name in self.values:
            return self.values[name]
        if name in self.sums:
            return "float64"
        if name in self.dtypes:
            return self.dtypes[name]
        raise NameError(f"a row formula asks for {name!r}; there are {', '.join([*self.dtypes, *self.values])}, n and i")

    @staticmethod
    def done(value: Sym, dtype: str) -> str:
        """Return the text of a result as ``dtype``."""
        return value.name if value.dtype == dtype else f"np.{numpy_name(dtype)}({value.name})"

    # ---- where things are
    def load_row_values(self, names: Iterable[str]) -> list[str]:
        """Return the lines that load, in a loop over rows, the row values that a formula uses."""
        out = []
        for p in names:
            if p in self.values:
                out.append(f"{p}_ = {p}_b[{self.lane}]{self.truth(self.values[p])}")
            elif self.kinds.get(p) == "row":
                out.append(f"{p}_ = row({p}, rows, size, 1)[{self.lane}]{self.truth(self.dtypes[p])}")
            elif self.kinds.get(p) == "spot":
                out.append(f"{p}_ = {p}[row({begins(p)}, rows, size, 1)[{self.lane}]]")
        return out

    @staticmethod
    def truth(dtype: str) -> str:
        return " != 0" if dtype == BOOL else ""  # rows of booleans hold bytes

    def load(self, p: str, index: str) -> str:
        return f"{p}_ = {p}_r[{index}]{self.truth(self.dtypes[p])}"

    def buffer(self, name: str, dtype: str) -> None:
        """Add a buffer of one value for each row of the block."""
        self.buffers[name] = dtype
        self.values[name] = dtype

    def at(self, name: str, index: str) -> str:
        """Return the element of the row at ``index``, a row value, of a full or col operand."""
        return f"{name}[{index}_]" if self.kinds[name] == "col" else self.element(name, index)

    # ---- steps
    def step(self, step: Step) -> None:
        """Write one step."""
        write: Any = {Each: self._each, Row: self._row, Pick: self._pick, Put: self._put, Total: self._total}[type(step)]
        write(step)

    def _each(self, step: Each) -> None:
        by_key: set[str] = set()
        fed = [self._fed(name, fold, f, by_key) for name, (fold, f) in step.folds.items()]
        known = dict.fromkeys([*step.values, *step.stores])
        traced = self.trace([*step.values.values(), *step.stores.values(), *fed], known)
        first_fold = len(traced.results) - len(fed)
        stored = zip(step.stores, traced.results[len(step.values) : first_fold], strict=True)
        full = sorted({*[p for p in traced.used if self.kinds.get(p) in ("full", "line", "kept")], *step.stores})
        folded = [
            # of integers that stand for floats, the float is to be found
            (f"{name}_t" if name in by_key else name, fold, value)
            for (name, (fold, _)), value in zip(step.folds.items(), traced.results[first_fold:], strict=True)
        ]
        self.write_pass(
            _Pass(
                walked=full,
                loads=[p for p in full if p in traced.used],
                cols=[p for p in traced.used if self.kinds.get(p) == "col"],
                row_values=self.load_row_values(traced.used),
                position="i" in traced.used,
                lines=[*traced.lines, *[f"{o}_r[i] = {self.done(v, self.dtypes[o])}" for o, v in stored]],
                folded=folded,
            )
        )
        for name, fold, value in folded:
            self.buffer(name, fold.accumulator(value.dtype))
        if by_key:
            self._row(Row({name: named(m.from_order_key, f"{name}_t") for name in step.folds if name in by_key}))

    @staticmethod
    def _fed(name: str, fold: Fold, f: Callable[..., Any], by_key: set[str]) -> Callable[..., Any]:
        """Return what is folded; floats with an order by integers of the same order, which is then noted in ``by_key``."""
        if fold not in (MAX, MIN):
            return f
        key = m.order_key if fold is MAX else m.order_key_min

        def ordered(*args):
            value = f(*args)
            if value.dtype not in FLOATS:
                return value
            by_key.add(name)
            return key(value)

        return named(ordered, *inspect.signature(f).parameters)

    def _row(self, step: Row) -> None:
        traced = self.trace(list(step.values.values()), step.values, cast=False)
        keep = [f"{name}_b[{self.lane}] = {v.name}" for name, v in zip(step.values, traced.results, strict=True)]
        out = [name for name in step.values if self.kinds.get(name) == "row" and name in self.outputs]
        keep += [
            f"row({name}, rows, size, 1)[{self.lane}] = {name}_b[{self.lane}]{self.truth(self.dtypes[name])}" for name in out
        ]
        lines = [*self.load_row_values(traced.used), *traced.lines, *keep]
        if self.rows_end == len(self.body):  # of the same rows, in the loop before
            self.put(2, lines)
        else:
            self.each_row(["independent()", *lines])
        self.rows_end = len(self.body)
        for name, v in zip(step.values, traced.results, strict=True):
            self.buffer(name, v.dtype)

    def _pick(self, step: Pick) -> None:
        self.each_row([*self.load_row_values([step.at]), f"{step.name}_b[{self.lane}] = {self.at(step.operand, step.at)}"])
        self.buffer(step.name, self.dtypes[step.operand])

    def _put(self, step: Put) -> None:
        traced = self.trace([step.formula])
        target = self.at(step.output, step.at)
        own = [f"{step.output}_ = {target}"] if step.output in traced.used else []
        value = self.done(traced.results[0], self.dtypes[step.output])
        row_values = self.load_row_values(dict.fromkeys([*traced.used, step.at]))
        self.each_row([*row_values, *own, *traced.lines, f"{target} = {value}"])

    def _total(self, step: Total) -> None:
        traced = self.trace(list(step.sums.values()))
        self.before += [f"{name}_ = 0.0" for name in step.sums]
        add = [f"{name}_ += np.float64({v.name})" for name, v in zip(step.sums, traced.results, strict=True)]
        self.each_row([*self.load_row_values(traced.used), *traced.lines, *add])
        self.sums.update(dict.fromkeys(step.sums, "float64"))
        traced = self.trace(list(step.outputs.values()), cast=False)
        stores = [f"{o}[0] = {self.done(v, self.dtypes[o])}" for o, v in zip(step.outputs, traced.results, strict=True)]
        self.tail += _indent([*traced.lines, *stores], 1)

    # ---- lines
    def each_row(self, lines: Sequence[str]) -> None:
        """Write a loop over the rows of a block."""
        self.put(1, [f"for {self.lane} in range(size):"])
        self.put(2, lines)

    def put(self, level: int, lines: Sequence[str]) -> None:
        """Write lines, ``level`` deep in the text of a step."""
        self.body += _indent(lines, level + self.level)


class _RowByRow(_Writer):
    """The text for contiguous rows: each is walked in chunks, one row of the block after the other."""

    lane, level = "k", 1

    def element(self, name: str, index: str) -> str:
        return f"{name}[(rows + k) * n + {index}_]"

    def chunk(self, p: str) -> str:
        """Return the line that finds the elements of row ``k`` from ``c`` on."""
        begin = {"line": f"row({begins(p)}, rows, size, 1)[k]", "kept": "k * n"}.get(self.kinds[p], "at")
        return f"{p}_r = row({p}, {begin} + c, width, 1)"

    def write_pass(self, p: _Pass) -> None:
        """Write a loop over rows, one over chunks, one over elements; lanes fold a chunk, and its result joins that of the row."""
        totals, lanes, fold_lines, joined, keep = [], [], [], [], []
        for name, fold, value in p.folded:
            total = fold.accumulator(value.dtype)
            lane = value.dtype if fold is SUM and value.dtype == "float32" else total
            totals.append(f"{name}_s = {fold.start(total)}")
            lanes.append(f"{name}_a = {fold.start(lane)}")
            fold_lines += [f"{name}_v = {self.done(value, lane)}", f"{name}_a = {fold.text(f'{name}_a', f'{name}_v', lane)}"]
            joined.append(f"{name}_s = " + fold.text(f"{name}_s", f"np.{numpy_name(total)}({name}_a)", total, True))
            keep.append(f"{name}_b[k] = {name}_s")
        stores = bool(p.lines) and "_r[i] = " in p.lines[-1]
        ends = bool(p.folded) and all(fold is FIRST for _, fold, _ in p.folded) and not stores
        chunk = SEARCHED if ends else CHUNK
        self.each_row(["at = (rows + k) * n", *p.row_values, *totals, f"for c in range(0, n, {chunk}):"])
        self.put(3, [f"width = min({chunk}, n - c)", *[self.chunk(x) for x in p.walked]])
        self.put(3, [*[f"{x}_r = row({x}, c, width, 1)" for x in p.cols], *lanes, "for i in range(width):"])
        position = ["i_ = c + i"] if p.position else []
        # (a fold that stores as well: with tests of overlap its sums would depend on how near the arrays lie)
        mark = ["independent()"] if p.lines and (not p.folded or stores) else []
        self.put(4, [*mark, *position, *[self.load(x, "i") for x in [*p.loads, *p.cols]], *p.lines, *fold_lines])
        self.put(3, joined)
        if ends:
            self.put(3, [f"if {' and '.join(f'{name}_s < n' for name, _, _ in p.folded)}:", "    break"])
        self.put(2, keep)

    def loops(self) -> str:
        text = f"    block = min({SHORT}, max(1, {ROOM} // max(n, 1)))\n"  # as `together` has it
        text += "    for rows in range(0, outer, block):\n"
        return text + _indent(["size = min(block, outer - rows)"], 2)


class _Interleaved(_Writer):
    """The text for rows that are interleaved: element by element, for a block of neighbouring rows at a time."""

    lane, level = "i", 2

    def element(self, name: str, index: str) -> str:
        return f"{name}[at + {index}_ * inner + i]"

    def write_pass(self, p: _Pass) -> None:
        """Write a loop over the positions in a row and one over the rows of the block, whose folds stand in buffers."""
        start, fold_lines = [], []
        for name, fold, value in p.folded:
            total = fold.accumulator(value.dtype)
            start.append(f"{name}_b[i] = {fold.start(total)}")
            fold_lines += [f"{name}_v = {self.done(value, total)}", f"{name}_o = {name}_b[i]{self.truth(total)}"]
            fold_lines.append(f"{name}_b[i] = " + fold.text(f"{name}_o", f"{name}_v", total, True))
        if start:
            self.each_row(start)
        self.put(1, ["for j in range(n):"])
        self.put(2, ["q = at + j * inner", *[f"{x}_r = row({x}, q, size, 1)" for x in p.walked]])
        self.put(2, [*[f"{x}_ = {x}[j]" for x in p.cols], "for i in range(size):"])
        position = ["i_ = j"] if p.position else []
        self.put(3, [*position, *[self.load(x, "i") for x in p.loads], *p.row_values, *p.lines, *fold_lines])

    def loops(self) -> str:
        text = "    columns = inner if outer > 0 else -outer\n    for r in range(max(outer, 1)):\n"
        text += f"        for rows in range(r * inner, r * inner + columns, {BLOCK}):\n"
        return text + _indent([f"size = min({BLOCK}, r * inner + columns - rows)", "at = r * n * inner + rows - r * inner"], 3)


def named(f: Callable[..., Any], *parameters: str) -> Callable[..., Any]:
    """Return the function ``f`` with parameters of these names."""

    def g(*args):
        return f(*args)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    g.__signature__ = inspect.Signature([inspect.Parameter(p, kind) for p in parameters])  # type: ignore[attr-defined]
    return g


def row_kernel(
    operands: Mapping[str, str],
    outputs: Mapping[str, str],
    steps: Sequence[Step],
    dtypes: Mapping[str, str],
    compute: str | None,
    columns: bool,
    kept: Sequence[str] = (),
    longest: int = ROOM,
) -> str:
    """Return the source of ``kernel(outer, n, inner, *operands, *outputs)``.

    operands, outputs: name -> kind. dtypes: name -> dtype of each. compute: what full and col floats are computed in; None: each
    formula sees to that. columns: for interleaved rows (inner > 1), of which a negative ``outer`` stands for as many, the first. kept:
    what passes hand on, of rows of at most ``longest`` elements.
    """
    kinds = {**operands, **outputs, **dict.fromkeys(kept, "kept")}
    w = (_Interleaved if columns else _RowByRow)(kinds, dict(dtypes), list(outputs), compute)
    for step in steps:
        w.step(step)
    ones = [f"{p}_ = {p}[0]" for p, kind in operands.items() if kind == "one"]
    ones += [f"{p}_ = {p}" for p, kind in operands.items() if kind == "number"]
    room = BLOCK if columns else SHORT
    buffers = [f"{b}_b = scratch({room}, np.{numpy_name(d)})" for b, d in w.buffers.items()]
    buffers += [f"{p} = scratch({max(ROOM, longest)}, np.{numpy_name(dtypes[p])})" for p in kept]
    text = _HEADER + w.tables + f"def kernel({', '.join(['outer', 'n', 'inner', *operands, *outputs])}):\n"
    return text + _indent(["n_ = n", *ones, *w.before, *buffers], 1) + w.loops() + w.body + w.tail
