"""Row-wise fused kernels: several passes over each row, with what they found so far, written as formulas.

A row is one line of elements along the dim that an op works on (softmax, norms, losses). The operands are arrays of shape
(outer, n, inner), a row being the n elements for one outer and one inner index, in four kinds:

- ``full``: an element per element of the row; ``row``: one value per row; ``col``: one value per position, the same for all
  rows; ``one``: a single value, an array of one element; ``number``: a scalar argument.

A kernel is a list of steps. Formulas name what they need by their parameters: operands, outputs written by an earlier step,
row values found by an earlier step, ``n`` (the row's length) and ``i`` (the position in it).

    [Each(folds={"top": (MAX, lambda x: x)}),
     Each(stores={"y": lambda x, top: m.exp(x - top)}, folds={"s": (SUM, lambda y: y)}),
     Each(stores={"y": lambda y, s: y / s})]

Rows that are contiguous (inner = 1) are walked one by one; otherwise a block of neighbouring rows at a time, so that the
vectorised loop runs over memory in order either way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .loops import CHUNK, MAX, MIN, Fold, _indent, _ordered
from .maths import m
from .symbols import FLOATS, Sym, Trace, numpy_name

BLOCK = 256  #: rows at a time where rows are interleaved

_HEADER = "import math\nimport numpy as np\nfrom autograd_nb.codegen.runtime import radd, rmul\n"


@dataclass(frozen=True)
class Each:
    """One pass over the elements of a row: fold values into row values, store values into full outputs."""

    stores: Mapping[str, Callable] = field(default_factory=dict)
    folds: Mapping[str, tuple[Fold, Callable]] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """Values computed once a row from other row values; those named as row outputs are stored."""

    values: Mapping[str, Callable]


@dataclass(frozen=True)
class Pick:
    """A row value: the element of a full or col operand at an index that is a row value (which must be in range)."""

    name: str
    operand: str
    index: str


@dataclass(frozen=True)
class Put:
    """Overwrite one element of a full output, at an index that is a row value, by a formula (which may read the element)."""

    output: str
    index: str
    formula: Callable


@dataclass(frozen=True)
class Total:
    """Sum row values over all rows, and store a formula of the sums in outputs of one element."""

    sums: Mapping[str, Callable]
    outputs: Mapping[str, Callable]


Step = Each | Row | Pick | Put | Total


class _Writer:
    """The text of one kernel as it grows."""

    def __init__(
        self, kinds: Mapping[str, str], dtypes: Mapping[str, str], outputs: Sequence[str], compute: str, columns: bool
    ):
        self.kinds, self.dtypes, self.outputs, self.compute, self.columns = kinds, dtypes, outputs, compute, columns
        self.values: dict[str, str] = {}  # row values found so far and their dtypes
        self.sums: dict[str, str] = {}
        self.written: set[str] = set()
        self.before: list[str] = []
        self.tables = ""
        self.buffers: dict[str, str] = {}
        self.body = ""
        self.tail = ""
        self.phases = 0

    # ---- formulas
    def trace(self, formulas: Sequence[Callable], known: Mapping[str, Any]) -> tuple[list[Sym], list[str], list[str]]:
        """(results, statements, names loaded) of formulas over named values; ``known`` names those of this step."""
        trace = Trace(self.compute, f"p{self.phases}t")
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
                args.append(x.cast(self.compute) if self.cast_to_compute and dtype in FLOATS else x)
            value = trace.as_sym(f(*args))
            results.append(value)
            if k < len(names) and names[k]:
                made[names[k]] = value
        needed = {s.name for s in self._closure(results)}
        used = [p for p, s in loaded.items() if s.name in needed]
        self._trace = trace
        before, lines = trace.lines(results)
        self.before += before
        self.tables += trace.preamble()
        return results, lines, used

    cast_to_compute = True

    @staticmethod
    def _closure(results: Sequence[Sym]) -> list[Sym]:
        seen: dict[str, Sym] = {}
        stack = list(results)
        while stack:
            s = stack.pop()
            if s.name not in seen:
                seen[s.name] = s
                stack.extend(a for a in s.args if isinstance(a, Sym))
        return list(seen.values())

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

    def is_row(self, name: str) -> bool:
        return name in self.values or self.kinds.get(name) == "row"

    def done(self, value: Sym, dtype: str) -> tuple[str, list[str]]:
        """The text of a result as ``dtype``."""
        return (value.name, []) if value.dtype == dtype else (f"np.{numpy_name(dtype)}({value.name})", [])

    # ---- where things are
    def load_row_values(self, names: Iterable[str]) -> list[str]:
        """In a loop over a block of rows: the row values that a formula uses."""
        out = []
        for p in names:
            if p in self.values:
                out.append(f"{p}_ = {p}_b[i]")
            elif self.kinds.get(p) == "row":
                out.append(f"{p}_ = {p}[rows + i]")
        return out

    def buffer(self, name: str, dtype: str) -> None:
        self.buffers[name] = dtype

    # ---- steps
    def each(self, step: Each) -> None:
        names = [*step.stores, *[""] * len(step.folds)]
        folds = list(step.folds.items())
        formulas = [*step.stores.values(), *[self._fed(fold, f) for _, (fold, f) in folds]]
        results, lines, used = self.trace(formulas, dict.fromkeys(n for n in names if n))
        stored = results[: len(step.stores)]
        folded = results[len(step.stores) :]
        full = [p for p in used if self.kinds.get(p) == "full"]
        cols = [p for p in used if self.kinds.get(p) == "col"]
        loads = [f"{p}_ = {p}_r[i]" for p in full]
        stores = [f"{o}_r[i] = {self.done(v, self.dtypes[o])[0]}" for o, v in zip(step.stores, stored, strict=True)]
        slices = sorted({*full, *step.stores})
        bound = f"{slices[0]}_r.size" if slices else "size"
        if not self.columns:
            accs, after, start = [], [], []
            for (name, (fold, _)), value in zip(folds, folded, strict=True):
                total = fold.accumulator(value.dtype)
                lane = value.dtype
                start.append(f"{name}_t = {fold.start(total)}")
                accs.append((name, fold, value, lane))
                after.append(f"{name}_t = " + _ordered(fold).format(a=f"{name}_t", x=f"np.{numpy_name(total)}({name}_a)"))
            self.put(1, start)
            self.put(1, [f"for c in range(0, n, {CHUNK}):"])
            self.put(2, [f"size = min({CHUNK}, n - c)"])
            self.put(2, [f"{p}_r = {p}[at + c:at + c + size]" for p in slices])
            self.put(2, [f"{p}_r = {p}[c:c + size]" for p in cols])
            self.put(2, [f"{name}_a = {fold.start(lane)}" for name, fold, _, lane in accs])
            self.put(2, [f"for i in range({bound}):"])
            if "i" in used:
                loads.append("i_ = c + i")
            loads += [f"{p}_ = {p}_r[i]" for p in cols]
            self.put(3, [*loads, *lines, *stores])
            for name, fold, value, _ in accs:
                self.put(3, [f"{name}_v = {value.name}", f"{name}_a = " + fold.combine.format(a=f"{name}_a", x=f"{name}_v")])
            self.put(2, after)
        else:
            for (name, (fold, _)), value in zip(folds, folded, strict=True):
                total = fold.accumulator(value.dtype)
                self.buffer(f"{name}_t", total)
                self.put(1, [f"{name}_tb = {name}_t_buffer[:size]", f"{name}_tb[:] = {fold.start(total)}"])
            self.put(1, ["for j in range(n):"])
            self.put(2, ["q = at + j * inner"])
            self.put(2, [f"{p}_r = {p}[q:q + size]" for p in slices])
            self.put(2, [f"{p}_ = {p}[j]" for p in cols])
            self.put(2, [f"for i in range({bound}):"])
            loads += self.load_row_values(used)
            if "i" in used:
                loads.append("i_ = j")
            self.put(3, [*loads, *lines, *stores])
            for (name, (fold, _)), value in zip(folds, folded, strict=True):
                total = fold.accumulator(value.dtype)
                self.put(3, [f"{name}_v = {self.done(value, total)[0]}", f"{name}_o = {name}_tb[i]",
                             f"{name}_tb[i] = " + _ordered(fold).format(a=f"{name}_o", x=f"{name}_v")])  # fmt: skip
        self.written |= set(step.stores)
        # what the fold found, brought back to a float where it was an ordered integer
        finishing: dict[str, Callable] = {}
        for (name, (fold, f)), value in zip(folds, folded, strict=True):
            total = fold.accumulator(value.dtype)
            self.dtypes = {**self.dtypes, f"{name}_t": total}
            self.values[f"{name}_t"] = total
            keyed = self._fed(fold, f) is not f
            finishing[name] = _named(f"{name}_t", (lambda k: m.from_order_key(k)) if keyed else (lambda s: s))
        if finishing:
            if self.columns:
                for name in finishing:
                    self.put(1, [f"{name}_t_b = {name}_tb"])
            else:
                self.put(1, [f"{name}_t_ = {name}_t" for name in finishing])
            self.row(Row(finishing))

    def _fed(self, fold: Fold, f: Callable) -> Callable:
        if fold not in (MAX, MIN):
            return f
        key = m.order_key if fold is MAX else m.order_key_min

        def keyed(*args):
            return key(f(*args))

        keyed.__signature__ = inspect.signature(f)  # type: ignore[attr-defined]
        return keyed

    def row(self, step: Row) -> None:
        self.cast_to_compute = False
        results, lines, used = self.trace(list(step.values.values()), step.values)
        self.cast_to_compute = True
        if not self.columns:
            self.put(1, lines)
            for name, v in zip(step.values, results, strict=True):
                self.put(1, [f"{name}_ = {v.name}"])
        else:
            for name, v in zip(step.values, results, strict=True):
                self.buffer(name, v.dtype)
                self.put(1, [f"{name}_b = {name}_buffer[:size]"])
            self.put(1, ["for i in range(size):"])
            self.put(2, [*self.load_row_values(used), *lines])
            self.put(2, [f"{name}_b[i] = {v.name}" for name, v in zip(step.values, results, strict=True)])
        for name, v in zip(step.values, results, strict=True):
            if self.kinds.get(name) == "row" and name in self.outputs:
                if self.columns:
                    self.put(1, ["for i in range(size):", f"    {name}[rows + i] = {name}_b[i]"])
                else:
                    self.put(1, [f"{name}[r] = {name}_"])
            self.values[name] = v.dtype

    def pick(self, step: Pick) -> None:
        dtype = self.dtypes[step.operand]
        if self.kinds[step.operand] == "col":
            place, one = f"{step.operand}[{step.index}_]", f"{step.operand}[{step.index}_]"
        else:
            place, one = f"{step.operand}[at + {step.index}_ * inner + i]", f"{step.operand}[at + {step.index}_]"
        if self.columns:
            self.buffer(step.name, dtype)
            self.put(1, [f"{step.name}_b = {step.name}_buffer[:size]", "for i in range(size):",
                         *["    " + s for s in self.load_row_values([step.index])],
                         f"    {step.name}_b[i] = {place}"])  # fmt: skip
        else:
            self.put(1, [f"{step.name}_ = {one}"])
        self.values[step.name] = dtype

    def put_one(self, step: Put) -> None:
        known = {step.output: ""}
        (result,), lines, used = self.trace([step.formula], {})
        value = self.done(result, self.dtypes[step.output])[0]
        place = f"{step.output}[at + {step.index}_ * inner + i]" if self.columns else f"{step.output}[at + {step.index}_]"
        text = [f"{p}_ = {place}" for p in used if p in known]
        if self.columns:
            self.put(1, ["for i in range(size):"])
            self.put(2, [*self.load_row_values({*used, step.index}), *text, *lines, f"{place} = {value}"])
        else:
            self.put(1, [*text, *lines, f"{place} = {value}"])

    def total(self, step: Total) -> None:
        results, lines, used = self.trace(list(step.sums.values()), {})
        self.before += [f"{name}_ = 0.0" for name in step.sums]
        add = [f"{name}_ += np.float64({v.name})" for name, v in zip(step.sums, results, strict=True)]
        if self.columns:
            self.put(1, ["for i in range(size):"])
            self.put(2, [*self.load_row_values(used), *lines, *add])
        else:
            self.put(1, [*lines, *add])
        self.sums.update(dict.fromkeys(step.sums, "float64"))
        self.cast_to_compute = False
        results, lines, _ = self.trace(list(step.outputs.values()), {})
        self.cast_to_compute = True
        self.tail += _indent(
            [*lines, *[f"{o}[0] = {self.done(v, self.dtypes[o])[0]}" for o, v in zip(step.outputs, results, strict=True)]], 1
        )

    def put(self, level: int, lines: Sequence[str]) -> None:
        self.body += _indent(lines, level + (2 if self.columns else 1))


def _named(parameter: str, f: Callable) -> Callable:
    """``f`` with its one parameter called ``parameter``."""

    def g(x):
        return f(x)

    one = inspect.Parameter(parameter, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    g.__signature__ = inspect.Signature([one])  # type: ignore[attr-defined]
    return g


def row_kernel(
    operands: Mapping[str, str],
    outputs: Mapping[str, str],
    steps: Sequence[Step],
    dtypes: Mapping[str, str],
    compute: str,
    columns: bool,
    name: str = "kernel",
) -> str:
    """The source of ``name(outer, n, inner, *operands, *outputs)``.

    operands, outputs: name -> kind. dtypes: name -> dtype of each. compute: what full and col floats are computed in.
    columns: for interleaved rows (inner > 1).
    """
    kinds = {**operands, **outputs}
    w = _Writer(kinds, dict(dtypes), list(outputs), compute, columns)
    for step in steps:
        run: Any = {Each: w.each, Row: w.row, Pick: w.pick, Put: w.put_one, Total: w.total}[type(step)]
        run(step)
    ones = [f"{p}_ = {p}[0]" for p, kind in operands.items() if kind == "one"]
    ones += [f"{p}_ = {p}" for p, kind in operands.items() if kind == "number"]
    buffers = [f"{b}_buffer = np.empty({BLOCK}, dtype=np.{numpy_name(d)})" for b, d in w.buffers.items()]
    text = _HEADER + w.tables + f"def {name}({', '.join(['outer', 'n', 'inner', *operands, *outputs])}):\n"
    text += _indent(["n_ = n", *ones, *w.before, *buffers], 1)
    text += "    for r in range(outer):\n"
    if columns:
        text += f"        for rows in range(r * inner, (r + 1) * inner, {BLOCK}):\n"
        text += _indent([f"size = min({BLOCK}, (r + 1) * inner - rows)", "at = r * n * inner + rows - r * inner"], 3)
    else:
        text += "        at = r * n\n"
        text += _indent([f"{p}_ = {p}[r]" for p, kind in operands.items() if kind == "row"], 2)
    return text + w.body + w.tail
