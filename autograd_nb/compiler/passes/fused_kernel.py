"""A group's kernel: the formulas of its members one after the other on one set of symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ... import launch
from ...codegen.templates.loops import Input
from ...dtypes import BY_NAME
from ...ops.core.entries import pointwise_entry
from ...ops.core.reduction_kernel import LONG, Blocks, Folding, fold_entry
from ...shapes import Layout, layout_of
from ..ir import Buffer, Step, Use
from ..live_numbers import _Slot
from .buffer_reuse import Lives
from .fusion_group import Group
from .pointwise_step import FoldMember, Member, walk

#: work from which folds are made in blocks, with the pointwise steps among them: as alone
BLOCKS = LONG


def merged(
    group: Group, needed: set[int], numbers: Iterator[int], lives: Lives | None = None, place: int = -1
) -> list[Step] | None:
    """Return the group as a step, or the few steps of a fold in blocks; of what it writes only the buffers ``needed`` are stored.

    ``numbers``: of buffers that are unused. ``lives``: of its buffers, where the group's ``place`` is the last of an operand, a
    result may take its memory. None where the formulas do not run together.
    """
    work = _Work(group, needed)
    inherited = {} if lives is None else lives.over(group, place, work.arrays, work.stored)
    work.over = {**work.in_place(), **inherited}
    if not work.results and not work.stored:
        return None
    names = [m.step.name for m in group.members]
    name = "+".join(names[:4]) + (f"+{len(names) - 4} more" if len(names) > 4 else "")
    try:
        entry, dims = work.entry(name)
    except Exception:  # a formula that does not run on these symbols: the kernels stay apart
        return None
    line = group.members[0].step.line
    if lives is not None:
        reads, writes = list(work.arrays.values()), list(work.stored.values())
        for k, j in inherited.items():
            lives.inherit(writes[k][0].buffer, reads[j][0].buffer)

    def step(entry: Callable[..., Any], dims: np.ndarray | None, operands: list[Any], written: int, over: Iterable[int]) -> Step:
        if dims is not None:
            buffer = Buffer(next(numbers), dims, "constant")
            operands = [Use(buffer, 0, dims.size, dims.dtype), *operands]
            over = [1 + j for j in over]
        n = len(operands)
        return Step(launch.described(entry, name, written), operands, (*over, *range(n - written, n)), line)

    blocks: Blocks | None = getattr(entry, "blocks", None)
    if blocks is None:
        return [step(entry, dims, work.operands, len(work.results) + len(work.own), work.over.values())]
    all_operands = work.operands
    for size, d in blocks.partial:
        stand_in = np.lib.stride_tricks.as_strided(np.empty(1, d.carrier), (size,), (0,))
        all_operands.append(Use(Buffer(next(numbers), stand_in, "temporary"), 0, size, d.carrier))
    return [
        step(one.entry, one.dims, [_from(all_operands[k], start) for k, start in one.picks], one.written, one.over)
        for one in blocks.launches
    ]


def _from(operand: Any, start: int) -> Any:
    """Return an operand from one of its elements on."""
    if not isinstance(operand, Use):
        return operand
    return Use(operand.buffer, operand.offset + start * operand.dtype.itemsize, operand.size - start, operand.dtype)


def _cut(operand: Any, layout: Any) -> Any:
    """Return a use without what lies behind a layout's last element; other operands as they are."""
    if not isinstance(operand, Use) or not isinstance(layout, Layout) or operand.size <= layout.extent:
        return operand
    return Use(operand.buffer, operand.offset, layout.extent, operand.dtype)


class _Work:
    """The work of a group's kernel is what it reads and writes: by walk, or by number."""

    def __init__(self, group: Group, needed: set[int]):
        self.group = group
        arrays: dict[tuple[Any, ...], tuple[Use, Layout]] = {}
        self.ends: dict[tuple[Any, ...], tuple[Use, Layout]] = {}  # read at the end of folds
        self.numbers: dict[Any, tuple[Any, str]] = {}
        self.stored: dict[tuple[Any, ...], tuple[Use, Layout, str]] = {}
        self.results: dict[tuple[Any, ...], tuple[Use, Layout, str]] = {}  # of folds
        self.over: dict[int, int] = {}  # which of ``stored`` -> which of ``arrays`` it overwrites
        made: set[tuple[Any, ...]] = set()
        for m in group.members:
            for o, layout in m.inputs:
                if isinstance(o, Use):
                    w = self._read(m, o, layout)
                    if w not in made:
                        (self.ends if m.epilogue else arrays).setdefault(w, (o, layout))
                else:
                    self.numbers.setdefault(_number_key(o, layout), (o, layout))
            for u, layout, dtype in m.outputs:
                w = self._written(m, u, layout)
                made.add(w)
                if u.buffer.number in needed:
                    (self.results if m.epilogue or isinstance(m, FoldMember) else self.stored)[w] = (u, layout, dtype)
        # the loops of folds are made for the first of the arrays, which should be one that is walked along all dims
        self.arrays = dict(sorted(arrays.items(), key=lambda item: item[0][2].count(0) if group.axes else 0))

    def in_place(self) -> dict[int, int]:
        """Return which of ``stored`` are read, too, element by element, as where a gradient is added to one that is there.

        They are one argument of the kernel: of two LLVM would see that they overlap, and take its loop over single elements.
        """
        places = {walked: j for j, walked in enumerate(self.arrays)}
        return {k: places[walked] for k, walked in enumerate(self.stored) if walked in places}

    @property
    def own(self) -> list[tuple[Use, Layout, str]]:
        """Return the members' results that are stored in arrays of their own."""
        return [stored for k, stored in enumerate(self.stored.values()) if k not in self.over]

    @property
    def operands(self) -> list[Any]:
        """Return the operands in the kernel's order, arrays as long as what is walked: a flat loop runs over all that it is given."""
        kinds: tuple[dict[Any, Any], ...] = self.arrays, self.numbers, self.ends, self.results
        return [_cut(operand, of) for kind in kinds for operand, of, *_ in kind.values()] + [_cut(use, layout) for use, layout, *_ in self.own]

    def entry(self, name: str) -> tuple[Callable[..., Any], np.ndarray | None]:
        """Return (entry point, dims) of the compiled kernel."""
        inputs = [Input(w[3]) for w in self.arrays] + [Input(dtype, scalar=True) for _, dtype in self.numbers.values()]
        layouts = [layout for _, layout in self.arrays.values()]
        stored = [layout for _, layout, _ in self.stored.values()]
        group = self.group
        if not group.axes:
            outputs = [dtype for _, _, dtype in self.stored.values()]
            return pointwise_entry(name, self.formula, inputs, [i.dtype for i in inputs], outputs, layouts, stored, self.over)
        inputs += [Input(w[3]) for w in self.ends]
        ends = [_over(w, group.kept) for w in self.ends]
        folds = [f for m in group.members if isinstance(m, FoldMember) for f in m.step.call.recipe.folds]
        wide = any(m.step.call.recipe.wide for m in group.members if isinstance(m, FoldMember))
        of = Folding(
            self.formula, inputs, [i.dtype for i in inputs], layouts + ends, group.shape, group.axes, tuple(folds), self.finish,
            tuple([_over(w, group.kept) for w in self.results]), tuple(stored), wide, len(ends), self.over,
        )  # fmt: skip
        return fold_entry(name, of, BLOCKS)

    def formula(self, *symbols: Any) -> list[Any]:
        """Return what is folded, then what is stored, for symbols of the operands."""
        values = dict(zip(self.arrays, symbols, strict=False))
        given = dict(zip(self.numbers, symbols[len(self.arrays) :], strict=False))
        folded = []
        for m in self.group.members:
            if m.epilogue:
                continue
            made = self._run(m, values, given, symbols[0].trace)
            if isinstance(m, FoldMember):
                folded += made
            else:
                self._keep(m, values, made)
        return folded + [values[w] for w in self.stored]

    def finish(self, totals: list[Any], symbols: list[Any]) -> list[Any]:
        """Return what is made of the totals."""
        numbers, ends = symbols[len(self.arrays) :][: len(self.numbers)], symbols[len(symbols) - len(self.ends) :]
        given = dict(zip(self.numbers, numbers, strict=True))
        values = dict(zip(self.ends, ends, strict=True))
        rest = list(totals)
        for m in self.group.members:
            if isinstance(m, FoldMember):
                of = m.step.call.recipe
                mine, rest = rest[: len(of.folds)], rest[len(of.folds) :]
                own = [None if isinstance(o, Use) else given[_number_key(o, layout)] for o, layout in m.inputs]
                self._keep(m, values, [totals[0].trace.as_sym(v) for v in of.finish(mine, own)])
            elif m.epilogue:
                self._keep(m, values, self._run(m, values, given, totals[0].trace))
        return [values[w] for w in self.results]

    def _run(self, m: Member, values: dict[Any, Any], given: dict[Any, Any], trace: Any) -> list[Any]:
        """Return a member's formula, run on values by walk and on given numbers."""
        operands = []
        for (o, layout), dtype in zip(m.inputs, m.compute, strict=True):
            x = values[self._read(m, o, layout)] if isinstance(o, Use) else given[_number_key(o, layout)]
            operands.append(x.cast(dtype))
        return [trace.as_sym(v) for v in m.step.call.recipe.formula(*operands)]

    def _keep(self, m: Member, values: dict[Any, Any], made: list[Any]) -> None:
        for (u, layout, dtype), value in zip(m.outputs, made, strict=True):
            values[self._written(m, u, layout)] = value.cast(dtype)

    def _read(self, m: Member, use: Use, layout: Layout) -> tuple[Any, ...]:
        return walk(use, layout, self.group.kept if m.epilogue else self.group.shape)

    def _written(self, m: Member, use: Use, layout: Layout) -> tuple[Any, ...]:
        return walk(use, layout, self.group.kept if m.epilogue or isinstance(m, FoldMember) else self.group.shape)


def _over(walked: tuple[Any, ...], shape: tuple[int, ...]) -> Layout:
    """Return the layout of a walk over a shape."""
    return layout_of(shape, walked[2], BY_NAME[walked[3]])


def _number_key(value: Any, dtype: str) -> tuple[Any, ...]:
    return (id(value), dtype) if isinstance(value, _Slot) else (type(value), repr(value), dtype)
