"""A row kernel from formulas of neighbouring steps: in which pass over a row each value is computed, and where it is kept between.

Values belong to the elements of a row or to the row. A fold of pass p makes a value of the row that is there from pass p + 1 on;
every other value can be computed in the last of the passes that its operands wait for, or later. Where a later pass needs it again,
it is computed again if that is cheap, and else kept: in the array that it is stored to anyway, or in a row of the kernel's own.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass

from ...codegen.formula.symbols import Sym, Trace, closure
from ...codegen.templates.loops import Fold
from ...codegen.templates.row import Each, Row, Step, named
from .shared_factor import replay

CHEAP = 4  #: instructions that are as quickly computed again as kept


@dataclass
class Value:
    """A value is what a formula makes of named values, once an element or once a row."""

    rows: bool  #: whether it is a value of the row
    dtype: str
    phase: int  #: the first pass in which it is known
    weight: int = 0  #: instructions for an element, from memory on
    parameters: tuple[str, ...] = ()
    result: Sym | None = None  #: of symbols named by the parameters; None: an operand of the kernel
    fold: Fold | None = None
    trace: Trace | None = None  #: what ``result`` was written in


def _same(x: Sym) -> Sym:
    return x


class Plan:
    """Values as they are found, each under a name; then the steps of a kernel that stores some of them."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = {"n": Value(True, "int64", 0), "i": Value(False, "int64", 0)}
        self._known: dict[tuple, str] = {}

    def operand(self, name: str, rows: bool, dtype: str) -> str:
        """Return a value that the kernel is given."""
        self.values[name] = Value(rows, dtype, 0)
        return name

    def add(self, formula: Callable, parameters: Sequence[str], literals: str = "float32", fold: Fold | None = None) -> str:
        """Return the name of ``formula`` of values, or of its fold over the row. ``literals``: the dtype of numbers beside no value."""
        given = {p: self.values[p].dtype for p in parameters}
        whole = Trace(literals)
        known = {p: whole.input(p, dtype) for p, dtype in given.items()}
        made = whole.as_sym(formula(*[known[p] for p in parameters]))
        if made.op == "input" and fold is None:
            return made.name
        read = {s.name for s in closure([made])}
        used = [p for p in given if p in read] or list(given)[:1]
        trace = Trace(literals)
        result = replay([made], {p: trace.input(p, given[p]) for p in used}, trace)[0]
        constants, lines = trace.lines([result])
        key = (constants, tuple(lines), result.name, fold, tuple(used))  # (a number is one of elements or of rows by what it is beside)
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = f"v{len(self.values)}"
            mine = [self.values[p] for p in used]
            phase = max(v.phase for v in mine) + (fold is not None)
            rows = fold is not None or all(v.rows for v in mine)
            dtype = result.dtype if fold is None else fold.accumulator(result.dtype)
            weight = 0 if rows else len(lines) + sum(v.weight for v in mine)
            self.values[name] = Value(rows, dtype, phase, weight, tuple(used), result, fold, trace)
        return name

    def passes(self, wanted: Sequence[str]) -> int:
        """Return how many passes over the elements of a row these values take."""
        mine = [self.values[name] for name in self.needed(wanted)]
        return 1 + max((v.phase - (v.fold is not None) for v in mine if not v.rows or v.fold is not None), default=0)

    def needed(self, wanted: Iterable[str], given: Container[str] = ()) -> list[str]:
        """Return these values and all that they are made of, in order; not what ``given`` ones are made of."""
        found: set[str] = set()
        stack = list(wanted)
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack.extend(() if name in given else self.values[name].parameters)
        return [name for name in self.values if name in found]

    def steps(self, full: dict[str, str], rows: dict[str, str]) -> tuple[list[Step], dict[str, str]]:
        """Return (the steps of a kernel, the dtypes of what it keeps).

        ``full``, ``rows``: outputs of an element per element and of one per row, with the values that they are.
        """
        needed = self.needed([*full.values(), *rows.values()])
        last = max(self.values[name].phase for name in needed)
        place = {name: output for output, name in full.items()}  # values that later passes find in memory
        kept: dict[str, str] = {}
        here: list[set[str]] = [set() for _ in range(last + 1)]  # values that a pass computes
        read: list[set[str]] = [set() for _ in range(last + 1)]  # and those that it finds

        def visit(name: str, p: int) -> None:
            waiting = [name]
            while waiting:
                name = waiting.pop()
                value = self.values[name]
                if value.rows or value.result is None or name in here[p]:
                    continue
                if value.phase < p and (name in place or value.weight > CHEAP):
                    if name not in place:
                        place[name] = f"{name}k"
                        kept[place[name]] = value.dtype
                    read[p].add(name)
                    continue
                here[p].add(name)
                waiting.extend(reversed(value.parameters))

        found: list[Step] = []
        for p in range(last, -1, -1):
            folds = {name: v for name in needed if (v := self.values[name]).fold is not None and v.phase == p + 1}
            stores = {output: name for name, output in place.items() if self.values[name].phase == p}
            stores |= {output: name for output, name in full.items() if self.values[name].phase == p}
            for name in stores.values():
                visit(name, p)
            for fold in folds.values():
                for parameter in fold.parameters:
                    visit(parameter, p)
            values = {name: named(_same, place[name]) for name in needed if name in read[p]}
            for name in needed:
                if name in here[p]:
                    values[name] = self._formula(name)
            if stores or folds:
                found.append(
                    Each(
                        values,
                        {output: named(_same, name) for output, name in stores.items()},
                        {name: (v.fold, self._formula(name)) for name, v in folds.items() if v.fold is not None},
                    )
                )
            once = {name: self._formula(name) for name in needed if self._once(name) and self.values[name].phase == p}
            once |= {output: named(_same, name) for output, name in rows.items() if self.values[name].phase == p}
            if once:
                found.append(Row(once))
        return found[::-1], kept

    def _once(self, name: str) -> bool:
        value = self.values[name]
        return value.rows and value.fold is None and value.result is not None

    def _formula(self, name: str) -> Callable:
        value = self.values[name]
        assert value.result is not None
        results = [value.result]

        def again(*xs: Sym) -> Sym:
            return replay(results, dict(zip(value.parameters, xs, strict=True)), xs[0].trace)[0]

        return named(again, *value.parameters)
