"""Row-wise fused kernels as callables: (dtypes, whether rows are interleaved) -> one compiled kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import launch
from ...codegen import threads
from ...codegen.templates.row import Step, Total, row_kernel, together
from ...shapes import numel
from .memo import Memo
from .recording import not_for_complex, real_only


class RowRecipe(NamedTuple):
    """A recipe is what a row kernel was made from; ``operands``, ``outputs``: (kind, dtype) by name, in the order of its
    arguments.
    """

    operands: Mapping[str, tuple[str, str]]
    outputs: Mapping[str, tuple[str, str]]
    steps: Sequence[Step]
    compute: str


def as_rows(operands: Mapping[str, str], outputs: Mapping[str, str], step: Step) -> Callable[[tuple[Any, ...]], RowRecipe]:
    """Return the recipe of a hand-written kernel of (outer, n, inner, operands, outputs) that does as this step would."""

    def recipe(args: tuple[Any, ...]) -> RowRecipe:
        dtypes = [launch.argument_type(a).removesuffix("[:]") for a in args[3:]]
        mine = list(zip([*operands.values(), *outputs.values()], dtypes, strict=True))
        given, made = dict(zip(operands, mine, strict=False)), dict(zip(outputs, mine[len(operands) :], strict=True))
        return RowRecipe(given, made, [step], next(d for kind, d in mine if kind != "number"))

    return recipe


class RowKernel:
    """A list of steps (see `autograd_nb.codegen.templates.row`) with the kinds of its operands and outputs.

    Call with (compute dtype, (outer, n, inner), operands in order, outputs in order); arrays are flat and in C order, numbers
    are floats or ints. Half arrays are cast before.
    """

    __slots__ = ("entries", "name", "operands", "outputs", "steps", "texts")
    name: str
    operands: dict[str, str]
    outputs: dict[str, str]
    steps: list[Step]
    entries: Memo

    def __init__(self, name: str, operands: Mapping[str, str], outputs: Mapping[str, str], steps: Sequence[Step]):
        self.name, self.operands, self.outputs, self.steps = name, dict(operands), dict(outputs), list(steps)
        self.entries = Memo()
        self.texts: dict[tuple[Any, ...], str] = {}

    def __call__(
        self, compute: str, sizes: tuple[int, int, int], operands: Sequence[Any], outputs: Sequence[np.ndarray]
    ) -> None:
        self.entry(compute, sizes, operands, outputs)(*sizes, *operands, *outputs)

    def entry(self, compute: str, sizes: tuple[int, int, int], operands: Sequence[Any], outputs: Sequence[np.ndarray]) -> Any:
        """Return the entry point for such arguments, for plans that forget it when observing begins."""
        columns = sizes[2] > 1
        key = (compute, columns, *[a.dtype if isinstance(a, np.ndarray) else a.__class__ for a in (*operands, *outputs)])
        entry = self.entries.plans.get(key) or self.entries.keep(key, self._build(compute, columns, operands, outputs))
        if entry.__class__ is _Rows and threads.alone(entry.work(*sizes)):
            return entry.entry  # which does not ask at each call
        return entry

    def _build(self, compute: str, columns: bool, operands: Sequence[Any], outputs: Sequence[np.ndarray]) -> Any:
        types = [launch.argument_type(a) for a in (*operands, *outputs)]
        dtypes = {p: t.removesuffix("[:]") for p, t in zip([*self.operands, *self.outputs], types, strict=True)}
        if "complex" in compute:
            raise not_for_complex(self.name)
        source = self.texts.get((compute, columns, *types))
        if source is None:
            with real_only(self.name):
                source = row_kernel(self.operands, self.outputs, self.steps, dtypes, compute, columns)
            self.texts[compute, columns, *types] = source
        operands_, outputs_ = ({p: (kind, dtypes[p]) for p, kind in part.items()} for part in (self.operands, self.outputs))
        recipe = RowRecipe(operands_, outputs_, self.steps, compute)
        split = split_rows([*self.operands.values(), *self.outputs.values()], self.steps)
        return launch.entry(source, "kernel", (*["int64"] * 3, *types), self.name, len(outputs), recipe, split=split)


def split_rows(kinds: Sequence[str], steps: Sequence[Step]) -> Callable[[Any], Any] | None:
    """Return how the launches of a row kernel are dealt out to threads, see `launch.entry`; ``kinds``: of its arrays and
    numbers.
    """
    if any(isinstance(step, Total) for step in steps):
        return None
    return lambda entry: _Rows(entry, kinds, PASS * len(steps))


PASS = 2  #: what one pass over an element costs, see `threads.WORTH`


class _Rows(threads.Split):
    """Rows of one launch dealt out to threads."""

    __slots__ = ("effort", "kinds")

    def __init__(self, entry: Any, kinds: Sequence[str], effort: int):
        self.entry, self.kinds, self.effort = entry, kinds, effort

    def work(self, outer: int, n: int, inner: int) -> int:
        """Return what these rows cost."""
        return outer * n * inner * self.effort

    def __call__(self, outer: int, n: int, inner: int, *args: Any) -> None:
        if threads.alone(self.work(outer, n, inner)):
            self.entry(outer, n, inner, *args)
        else:
            threads.Split.__call__(self, outer, n, inner, *args)

    def parts(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        outer, n, inner = args[:3]
        work = self.work(outer, n, inner)
        if work < threads.WORTH:
            return [args]
        if outer == 1 and inner > 1:
            step = threads.aligned([a for a in args[3:] if isinstance(a, np.ndarray)])
            return [
                (begin - end, n, inner, *[a[begin:] if kind in ("full", "row") else a for a, kind in zip(args[3:], self.kinds, strict=True)])
                for begin, end in threads.pieces(inner, work, step)
            ]
        strides = [{"full": n * inner, "row": inner}.get(kind, 0) for kind in self.kinds]
        return threads.rows(args, (0, 0, *strides), work, together(n) if inner == 1 else 1)


def row_sizes(shape: Sequence[int], d: int) -> tuple[int, int, int]:
    """Return (outer, n, inner) of a contiguous shape seen along dim ``d``."""
    return (numel(shape[:d]), shape[d], numel(shape[d + 1 :])) if shape else (1, 1, 1)
