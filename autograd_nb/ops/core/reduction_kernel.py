"""Kernels of reductions: how the dims are brought into the template's loops, and sums that are made in blocks.

A `Folding` says what a kernel computes: the formula that feeds it, the folds, the formula that finishes them. Reductions make one
of themselves; the compiler makes larger ones, which take in what stands before and behind a reduction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, product, repeat
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes, launch
from ...codegen import threads
from ...codegen.formula.symbols import COMPONENT
from ...codegen.templates import loops
from ...codegen.templates.loops import Body, Fold, Input
from ...shapes import Layout, broadcast_columns, broadcast_strides, contiguous_strides, dims_array, layout_of, merged, numel
from .call_path import generated
from .recording import real_only

FEW = 8  #: blocks of one long fold; as many steps of a loop around it are as good
LONG = 2 * threads.WORTH  #: work from which a long fold is one of blocks, for threads to share


class Folding(NamedTuple):
    """A folding is what a kernel that folds is made from. Its arguments: dims, the inputs, the results, what is stored.

    ``formula``: from the inputs (but the last ``epilogue``) to the values that are folded over ``axes`` of ``shape``, one for each of
    ``folds``, and then those that are stored as they are, one for each of ``stored``. ``finish``: from (totals, inputs) to the
    ``results``, which have size 1 along ``axes``, as have the ``epilogue`` inputs; of the others it may read the numbers. ``wide``:
    whether sums of float32 are asked for in more digits. ``over``: one of ``stored`` → the input whose array it overwrites.
    """

    formula: Callable[..., Sequence]
    inputs: Sequence[Input]
    compute: Sequence[str]
    in_layouts: Sequence[Layout]
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    folds: tuple[Fold, ...]
    finish: Callable[[list[Any], list[Any]], Sequence]
    results: tuple[Layout, ...]
    stored: tuple[Layout, ...] = ()
    wide: bool = False
    epilogue: int = 0
    over: Mapping[int, int] = loops.APART

    @property
    def own(self) -> list[int]:
        """Return which of ``stored`` have arguments of their own."""
        return [k for k in range(len(self.stored)) if k not in self.over]

    @property
    def out_layouts(self) -> tuple[Layout, ...]:
        """Return the layouts of the arguments behind the inputs."""
        return self.results + tuple([self.stored[k] for k in self.own])


def folding(
    formula: Callable, inputs: Sequence[Input], compute: str | Sequence[str], fold: Fold, finish: Callable | None, out: str,
    in_layouts: Sequence[Layout], shape: Sequence[int], axes: Sequence[int], count: int = 1,
) -> Folding:  # fmt: skip
    """Return the folding of the ``count`` values of ``formula(*inputs)``, each of them finished by ``finish(total, *numbers)``.

    The results have dtype ``out`` and are contiguous.
    """
    whole = layout_of([1 if d in axes else n for d, n in enumerate(shape)], None, dtypes.BY_NAME[out])
    compute = [compute] * len(inputs) if isinstance(compute, str) else list(compute)

    def finished(totals: list[Any], given: list[Any]) -> list[Any]:
        if finish is None:
            return totals
        kind = COMPONENT.get(totals[0].dtype, totals[0].dtype)
        numbers = [x.cast(kind) for x, spec in zip(given, inputs, strict=True) if spec.scalar]
        return [finish(total, *numbers) for total in totals]

    return Folding(
        formula, inputs, compute, in_layouts, tuple(shape), tuple(axes), (fold,) * count, finished, (whole,) * count,
        wide=out == "float64",
    )  # fmt: skip


class NestedReduction(Exception):
    """The reduced dims do not merge into the template's loops; the caller copies into a friendlier layout first."""


class Loops(NamedTuple):
    """The template's six loops, of which the innermost is ``inner``: "reduced" or "kept"; and kept ones too many around them."""

    sizes: list[int]
    steps: list[list[int]]  # by operand
    inner: str
    outer: tuple[list[int], list[list[int]]]


def arranged(shape: Sequence[int], axes: Sequence[int], columns: Sequence[tuple[int, ...]], count: int) -> Loops:
    """Return the loops of a fold over ``count`` operands of these strides, by dim; the innermost goes along the narrowest dim of the first of
    them."""
    kept, kept_steps = _group(range(len(shape)), shape, columns, count, axes)
    # the reduced dims may be walked in any order: widest strides of the first operand outermost
    red, red_steps = _group(sorted(axes, key=columns.__getitem__, reverse=True), shape, columns, count)
    inner = "reduced"
    if not red:
        inner = "kept" if kept else "reduced"
    elif kept and kept[-1] >= 8:
        narrow_kept, narrow_red = abs(kept_steps[0][-1]) or 1 << 60, abs(red_steps[0][-1]) or 1 << 60
        inner = "kept" if narrow_kept < narrow_red else "reduced"
    most_kept, most_red = loops.KEPT + (inner == "kept"), loops.REDUCED + (inner == "reduced")
    if len(red) > most_red:
        if 0 not in shape:
            raise NestedReduction
        red, red_steps = [numel(red)], [[0] for _ in range(count)]  # nothing is read
    lead = max(0, len(kept) - most_kept)
    more_kept, more_red = most_kept - len(kept) + lead, most_red - len(red)

    rows = []
    for k, r, fill in zip((kept, *kept_steps), (red, *red_steps), chain((1,), repeat(0))):  # noqa: B905  (the sizes first)
        row = [fill] * more_kept + k[lead:] + [fill] * more_red + r
        if inner == "kept":
            row.append(row.pop(most_kept - 1))
        rows.append(row)
    return Loops(rows[0], rows[1:], inner, (kept[:lead], [k[:lead] for k in kept_steps] if lead else []))


class FoldKernel:
    """A kernel that folds operands of given dtypes, of whatever sizes: its body is traced once, each text is written once."""

    __slots__ = ("argtypes", "blocks", "body", "effort", "inputs", "name", "results", "scalars", "step", "texts", "totals")
    name: str
    body: Body
    argtypes: tuple[str, ...]
    effort: int
    step: int
    scalars: list[bool]
    inputs: int
    results: int

    def __init__(self, name: str, of: Folding):
        self.name = name
        folded_inputs = len(of.inputs) - of.epilogue
        with real_only(name):
            self.body = loops.trace_body(
                lambda *xs: of.formula(*xs[:folded_inputs]),
                of.inputs,
                of.compute,
                [None] * len(of.folds) + [layout.dtype.name for layout in of.stored],
            )
        types = [f"{loops.storage(s.dtype)}[:]" if not s.scalar else s.dtype for s in of.inputs]
        self.argtypes = ("int64[:]", *types, *[f"{loops.storage(layout.dtype.name)}[:]" for layout in of.out_layouts])
        self.effort = self.body.effort()
        self.step = threads.aligned([layout.dtype for layout in (*of.in_layouts, *of.out_layouts)])  # where kept dims may be cut
        self.scalars = [s.scalar for s in of.inputs] + [False] * len(of.out_layouts)
        self.inputs, self.results = len(of.in_layouts), len(of.results)
        self.texts: dict[tuple[str, str], str] = {}  # by the innermost loop and the operands' strides in it
        self.blocks: FoldKernel | None = None  # folds the blocks of one long fold
        self.totals: FoldKernel | None = None  # and their results

    def entry(self, of: Folding, least: int = LONG) -> tuple[Callable[..., Any], np.ndarray]:
        """Return (entry point, dims) of a folding of these dtypes; from ``least`` work on, one long fold is a fold of blocks."""
        return self.at(of.shape, of.axes, [*of.in_layouts, *of.out_layouts], lambda: of, least)

    def at(
        self, shape: Sequence[int], axes: Sequence[int], layouts: Sequence[Layout], of: Callable[[], Folding], least: int = LONG
    ) -> tuple[Callable[..., Any], np.ndarray]:
        """Return the same for the ``layouts`` of inputs and outputs; ``of`` makes the folding, where more than sizes is asked for."""
        shape = tuple(shape)  # plain ones are quicker to take numbers from
        walk = arranged(shape, axes, broadcast_columns(layouts, shape), len(layouts))
        sizes, more, dims = walk.sizes, walk.outer[0], dims_array(walk.sizes, walk.steps)
        source = self._text(of, walk)
        work = math.prod(sizes) * self.effort
        # (a program makes blocks of a fold with all that it is fused with, see `compiler.passes.fused_kernel`)
        if not more and work >= least and (work >= threads.MANY or not launch._observing) and all(n < FEW for n in sizes[: loops.KEPT]):
            blocks = _blocks(self, of())
            if blocks is not None:
                return blocks, dims

        def split(entry: Callable[..., Any]) -> Callable[..., Any]:
            axes = [*range(loops.KEPT), *[loops.RANK - 1] * (walk.inner == "kept")]
            return threads.walk(entry, sizes, axes, self.effort, self.step)

        recipe = of() if launch._observing and not more else None
        entry = launch.entry(source, "kernel", self.argtypes, self.name, len(layouts) - self.inputs, recipe, split=split)
        if more:
            entry = nested(entry, *walk.outer, self.scalars)
        return entry, dims

    def _text(self, make: Callable[[], Folding], walk: Loops) -> str:
        first, last, single = self.inputs, self.inputs + self.results, walk.sizes[-1] == 1
        kinds = ""
        for p, t in enumerate(walk.steps):
            stride = t[-1]
            if first <= p < last:
                kinds += "s"
            elif stride == 1 or (stride == 0 and single):  # a loop of one step may take any; unit keeps the variants few
                kinds += "u"
            else:
                kinds += "0" if stride == 0 and p < first else "s"
        found = self.texts.get((walk.inner, kinds))
        if found is None:
            of = make()
            outs = [layout.dtype.name for layout in of.results]
            with real_only(self.name):
                found = loops.reduction(self.body, of.folds, walk.inner, kinds, of.finish, outs, of.wide, over=of.over)
            self.texts[walk.inner, kinds] = found
        return found


def fold_entry(name: str, of: Folding, least: int = LONG) -> tuple[Callable[..., Any], np.ndarray]:
    """Return (entry point, dims) of a kernel that is not asked for again, see `FoldKernel`."""
    return FoldKernel(name, of).entry(of, least)


def nested(entry: Callable[..., Any], sizes: list[int], steps: list[list[int]], scalars: list[bool]) -> Callable[..., Any]:
    """Return the launches of a fold with more loops than the template has: the outermost run here, each step one launch on sliced arrays."""

    def run(dims: np.ndarray, *args: Any) -> None:
        for index in product(*map(range, sizes)):
            moved, k = [], 0
            for a, scalar in zip(args, scalars, strict=True):
                if not scalar:
                    a = a[sum(i * s for i, s in zip(index, steps[k], strict=True)) :]
                    k += 1
                moved.append(a)
            entry(dims, *moved)

    return run


def _group(
    dims: Iterable[int], shape: Sequence[int], columns: Sequence[tuple[int, ...]], count: int, without: Sequence[int] = ()
) -> tuple[list[int], list[list[int]]]:
    """Return these dims as `coalesce` makes them, but for those ``without``."""
    sizes, steps = [], []
    for d in dims:
        if d not in without:
            sizes.append(shape[d])
            steps.append(columns[d])
    return merged(sizes, steps, count)


# ------------------------------------------------------------------------------------------------------- blocks


class Launch(NamedTuple):
    """One of the launches of `Blocks`. ``picks``: (argument or partial result, its first element) in the order of its arguments,
    the last ``written`` of which it writes, and those at ``over``."""

    entry: Callable[..., Any]
    dims: np.ndarray
    picks: list[tuple[int, int]]
    written: int
    over: tuple[int, ...] = ()


class Blocks(NamedTuple):
    """Several launches in the place of one: folds of blocks, which depend on the shape only, and the fold of those.

    ``partial``: (elements, dtype) of the arrays between them, which are numbered after the ``arguments``.
    """

    launches: list[Launch]
    partial: list[tuple[int, dtypes.dtype]]
    arguments: int

    def entry(self) -> Callable[..., Any]:
        """Return the entry point of all of them, written out; its attribute ``blocks`` is this."""
        names: dict[str, Any] = {}

        def named(name: str, value: Any) -> str:
            names[name] = value
            return name

        def array(k: int, start: int, name: str) -> str:
            own = f"a{k}" if k < self.arguments else f"p{k - self.arguments}"
            return f"{own}[{named(name, start)}:]" if start else own

        lines = [f"p{k} = _allocate({named(f'size{k}', size)}, {named(f'kind{k}', d.carrier)})" for k, (size, d) in enumerate(self.partial)]
        for i, one in enumerate(self.launches):
            given = [named(f"dims{i}", one.dims), *[array(k, start, f"start{i}_{j}") for j, (k, start) in enumerate(one.picks)]]
            lines.append(f"{named(f'launch{i}', one.entry)}({', '.join(given)})")
        entry = generated("entry", ", ".join(["dims", *[f"a{k}" for k in range(self.arguments)]]), lines, many=True, **names)
        entry.blocks = self  # type: ignore[attr-defined]
        return entry


def _blocks(kernel: FoldKernel, of: Folding) -> Callable[..., Any] | None:
    """Return the entry point of a fold over one long dim by blocks; None where that does not pay."""
    work = numel(of.shape) * kernel.effort
    folded = numel(of.shape[d] for d in of.axes)
    values = [v.dtype for v, _ in kernel.body.results[: len(of.folds)]]
    accumulators = [f.accumulator(d) for f, d in zip(of.folds, values, strict=True)]
    if any(a not in dtypes.BY_NAME or "complex" in a for a in [*accumulators, *values]):
        return None
    most = 4 * FEW if work >= 8 * threads.MANY and folded >= 1024 else FEW
    axis = next((d for d in of.axes if of.shape[d] >= 4 * most), max(of.axes, key=lambda d: of.shape[d]))
    n = of.shape[axis]
    step = loops.CHUNK if n == folded and n >= most * loops.CHUNK else 1
    each = n // most if n % most == 0 else -(-n // (most * step)) * step  # with nothing left over, which is another launch
    count, remainder = divmod(n, each)
    if count < 2 or folded < 32 * (count + bool(remainder)):
        return None
    return _Cut(kernel, of, axis, each, [dtypes.BY_NAME[a] for a in accumulators]).blocks(count, remainder).entry()


class _Cut:
    """A fold that is cut along ``axis`` into blocks of ``each`` steps, whose totals have the dtypes ``found``.

    ``folded_inputs``: the inputs that the formula reads; the arrays of partial results stand behind the arguments.
    """

    def __init__(self, kernel: FoldKernel, of: Folding, axis: int, each: int, found: list[dtypes.dtype]):
        self.kernel, self.of, self.axis, self.each, self.found = kernel, of, axis, each, found
        self.kept = [1 if d in of.axes else m for d, m in enumerate(of.shape)]
        self.size = numel(self.kept)
        self.folded_inputs = range(len(of.inputs) - of.epilogue)
        self.layouts = dict(zip([j for j, spec in enumerate(of.inputs) if not spec.scalar], of.in_layouts, strict=True))
        self.results, self.partials = len(of.inputs), len(of.inputs) + len(of.out_layouts)

    def blocks(self, count: int, remainder: int) -> Blocks:
        """Return the launches for ``count`` blocks and one of ``remainder`` steps."""
        parts = [(0, count, self.each), (count, 1, remainder)] if remainder else [(0, count, self.each)]
        total = count + bool(remainder)
        launches = [*[self.part(*part) for part in parts], self.whole(total)]
        return Blocks(launches, [(total * self.size, a) for a in self.found], self.partials)

    def shaped(self, dims: Sequence[int], blocks: int, length: int) -> list[int]:
        return [*dims[: self.axis], blocks, length, *dims[self.axis + 1 :]]

    def block(self, layout: Layout, blocks: int, length: int) -> Layout:
        """Return the layout of the blocks of an operand."""
        s, axis = broadcast_strides(layout, self.of.shape), self.axis
        strides = [*s[:axis], s[axis] * self.each, s[axis], *s[axis + 1 :]]
        return layout_of(self.shaped(self.of.shape, blocks, length), strides, layout.dtype)

    def part(self, begin: int, blocks: int, length: int) -> Launch:
        """Return the call that folds ``blocks`` blocks from the one numbered ``begin`` on."""
        of, axis, kernel, layouts = self.of, self.axis, self.kernel, self.layouts
        steps = contiguous_strides(self.kept)
        part = self.shaped(self.kept, blocks, 1), [*steps[:axis], self.size, 0, *steps[axis + 1 :]]
        first = of._replace(
            inputs=[of.inputs[j] for j in self.folded_inputs],
            compute=[of.compute[j] for j in self.folded_inputs],
            in_layouts=[self.block(layouts[j], blocks, length) for j in self.folded_inputs if j in layouts],
            shape=tuple(self.shaped(of.shape, blocks, length)),
            axes=tuple(d + (d >= axis) for d in of.axes),
            finish=lambda totals, given: totals,
            results=tuple([layout_of(*part, a) for a in self.found]),
            stored=tuple([self.block(layout, blocks, length) for layout in of.stored]),
            epilogue=0,
        )
        if kernel.blocks is None:
            kernel.blocks = FoldKernel(kernel.name, first)
        entry, dims = kernel.blocks.entry(first, 1 << 60)

        def start(layout: Layout) -> int:
            return begin * self.each * broadcast_strides(layout, of.shape)[axis]

        picks = [(j, start(layouts[j]) if j in layouts else 0) for j in self.folded_inputs]
        picks += [(self.partials + k, begin * self.size) for k in range(len(self.found))]
        picks += [(self.results + p, start(of.out_layouts[p])) for p in range(len(of.results), len(of.out_layouts))]
        return Launch(entry, dims, picks, len(first.out_layouts), tuple(of.over.values()))

    def whole(self, total: int) -> Launch:
        """Return the call that folds the totals of all blocks."""
        of, kernel, found, layouts = self.of, self.kernel, self.found, self.layouts
        epilogue = [j for j, spec in enumerate(of.inputs) if spec.scalar or j not in self.folded_inputs]
        second = of._replace(
            formula=lambda *xs: xs[: len(found)],
            inputs=[*[Input(a.name) for a in found], *[of.inputs[j] for j in epilogue]],
            compute=[*[a.name for a in found], *[of.compute[j] for j in epilogue]],
            in_layouts=[*[layout_of([total, *self.kept], None, a) for a in found], *[layouts[j] for j in epilogue if j in layouts]],
            shape=(total, *self.kept),
            axes=(0,),
            finish=lambda totals, given: of.finish(totals, _placed(given[len(found) :], epilogue, len(of.inputs))),
            results=tuple([layout_of([1, *layout.shape], [0, *layout.strides], layout.dtype) for layout in of.results]),
            stored=(),
            over=loops.APART,
        )
        if kernel.totals is None:
            kernel.totals = FoldKernel(kernel.name, second)
        entry, dims = kernel.totals.entry(second, 1 << 60)
        picks = [*[(self.partials + k, 0) for k in range(len(found))], *[(j, 0) for j in epilogue]]
        return Launch(entry, dims, [*picks, *[(self.results + k, 0) for k in range(len(of.results))]], len(of.results))


def _placed(values: Sequence, which: list[int], count: int) -> list[Any]:
    """Return values in their places, among others that nobody asks for."""
    found: list[Any] = [None] * count
    for j, x in zip(which, values, strict=True):
        found[j] = x
    return found
