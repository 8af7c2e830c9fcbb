"""Entry points of kernels made from pointwise formulas, for operands of given layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import launch, strides
from ...codegen import threads
from ...codegen.templates import loops
from ...codegen.templates.loops import Body, Input
from ...dtypes import get_default_dtype
from ...shapes import Layout, broadcast_columns, dims_array, merged, overlaps_itself, sort_dims
from .recording import real_only
from .reduction_kernel import nested


class Recipe(NamedTuple):
    """A recipe is what a generated pointwise kernel was made from; ``dims``: whether its first argument is the table of sizes.
    """

    formula: Callable[..., Any]
    inputs: list[Input]
    compute: Any
    outputs: list[str]
    in_layouts: Sequence[Layout]
    out_layouts: Sequence[Layout]
    dims: bool


_NUMBER = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}


def operand(key: Any) -> Input:
    """Return a layout, or the type of a number, as the input of a kernel."""
    if isinstance(key, Layout):
        return Input(key.dtype.name)
    return Input(_NUMBER[key], scalar=True)


def as_half(x: Any, name: str) -> Any:
    """Return the float32 that an element of half precision is to which ``x`` is rounded, a symbol of a formula."""
    return loops.loaded(loops.stored(x, name), name)


def signature(avals: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what of the operands decides all but sizes: dtypes and whether there are dims, the types of numbers."""
    return (get_default_dtype(), *[(k.dtype, k.ndim > 0) if isinstance(k, Layout) else k for k in avals])


class PointwiseKernel:
    """A pointwise kernel for operands of given dtypes, of whatever sizes: its body is traced once, each text is written once.

    ``over``: output → the input that it overwrites, which the kernel is given once.
    """

    __slots__ = ("argtypes", "body", "compute", "effort", "formula", "inputs", "name", "outputs", "over", "own", "texts")
    name: str
    formula: Callable[..., Any]
    inputs: list[Input]
    compute: Any
    outputs: list[str]
    over: Mapping[int, int]
    body: Body
    own: list[int]
    argtypes: tuple[str, ...]
    effort: int

    def __init__(
        self, name: str, formula: Callable[..., Any], inputs: list[Input], compute: Any, outputs: list[str],
        over: Mapping[int, int] = loops.APART,
    ):  # fmt: skip
        self.name, self.formula, self.inputs, self.compute, self.outputs, self.over = name, formula, inputs, compute, outputs, over
        with real_only(name):
            self.body = loops.trace_body(formula, inputs, compute, outputs)
        self.own = [k for k in range(len(outputs)) if k not in over]
        types = [f"{loops.storage(s.dtype)}[:]" if not s.scalar else s.dtype for s in inputs]
        self.argtypes = (*types, *[f"{loops.storage(outputs[k])}[:]" for k in self.own])
        self.effort = self.body.effort()
        self.texts: dict[str, str] = {}  # by the kinds of the innermost strides, "" for the flat loop

    def entry(self, in_layouts: Sequence[Layout], out_layouts: Sequence[Layout]) -> tuple[Callable[..., Any], np.ndarray | None]:
        """Return (entry point, dims) for these layouts; dims is None for the flat loop."""
        first = out_layouts[0]
        everyone = [*in_layouts, *out_layouts]
        shape = first.shape
        for layout in everyone:
            if not layout.contiguous or layout.shape != shape:
                break
        else:
            return self.flat(in_layouts, out_layouts), None
        columns = broadcast_columns(everyone, shape)
        sizes: Sequence[int] = first.sizes
        last = everyone[-1]
        if not (last.usual and last.sizes == sizes):  # else the dims are in order
            if overlaps_itself(last):  # what is written last stays: in PyTorch's order
                order = strides.walked(shape, [[here[-1] for here in columns], *list(zip(*columns))[:-1]])  # noqa: B905
            else:
                order = sort_dims(columns)  # by the last output first, also where it has no argument of its own
            sizes, columns = [shape[d] for d in order], [columns[d] for d in order]
        if self.over:
            chosen = [*range(len(in_layouts)), *[len(in_layouts) + k for k in self.own]]
            columns = [tuple([here[k] for k in chosen]) for here in columns]
        sizes, steps = merged(sizes, columns, len(in_layouts) + len(self.own))
        if not sizes or (len(sizes) == 1 and not [t for t in steps if t[0] != 1]):
            return self.flat(in_layouts, out_layouts), None
        return self._walk(sizes, steps, in_layouts, out_layouts)

    def resized(self, entry: Callable[..., Any], size: int) -> Callable[..., Any]:
        """Return `flat` for another size, of an entry point of which nobody is told."""
        if entry.__class__ is threads.Flat:
            entry = entry.entry  # type: ignore[attr-defined]
        return threads.flat(entry, self.over.get(0, len(self.inputs)), size, self.effort)

    def _recipe(self, in_layouts: Sequence[Layout], out_layouts: Sequence[Layout], dims: bool) -> Recipe:
        return Recipe(self.formula, self.inputs, self.compute, self.outputs, in_layouts, out_layouts, dims)

    def flat(self, in_layouts: Sequence[Layout], out_layouts: Sequence[Layout]) -> Callable[..., Any]:
        """Return the entry point of the loop over contiguous operands of one size."""
        over, size = self.over.get(0), out_layouts[0].size
        text = self.texts.get("")
        if text is None:
            text = self.texts[""] = loops.pointwise_flat(self.body, over=self.over)
        return launch.entry(
            text, "kernel", self.argtypes, self.name, len(self.own),
            self._recipe(in_layouts, out_layouts, False) if launch._observing else None, over,
            lambda entry: threads.flat(entry, len(self.inputs) if over is None else over, size, self.effort),
        )  # fmt: skip

    def _walk(
        self, sizes: list[int], steps: list[list[int]], in_layouts: Sequence[Layout], out_layouts: Sequence[Layout]
    ) -> tuple[Callable[..., Any], np.ndarray]:
        own, over = len(self.own), self.over
        lead = max(0, len(sizes) - loops.RANK)
        inner_sizes = [1] * (loops.RANK - len(sizes) + lead) + sizes[lead:]
        inner_steps = [[0] * (loops.RANK - len(t) + lead) + t[lead:] for t in steps]
        whole = threads.writes_apart(out_layouts)
        kinds = loops.arrange(inner_sizes, inner_steps, len(in_layouts), whole or not overlaps_itself(out_layouts[-1]))

        def split(entry: Callable[..., Any]) -> Callable[..., Any]:
            return threads.walk(entry, inner_sizes, range(loops.RANK), self.effort) if whole else entry

        text = self.texts.get(kinds)
        if text is None:
            text = self.texts[kinds] = loops.pointwise_strided(self.body, kinds, over=over)
        entry = launch.entry(
            text, "kernel", ("int64[:]", *self.argtypes), self.name, own,
            self._recipe(in_layouts, out_layouts, True) if launch._observing and not lead else None, 1 + over[0] if 0 in over else None, split,
        )  # fmt: skip
        if lead:
            scalars = [s.scalar for s in self.inputs] + [False] * own
            entry = nested(entry, sizes[:lead], [t[:lead] for t in steps], scalars)
        return entry, dims_array(inner_sizes, inner_steps)


def pointwise_entry(
    name: str, formula: Callable[..., Any], inputs: list[Input], compute: Any, outputs: list[str], in_layouts: Sequence[Layout],
    out_layouts: Sequence[Layout], over: Mapping[int, int] = loops.APART,
) -> tuple[Callable[..., Any], np.ndarray | None]:  # fmt: skip
    """Return (entry point, dims) of a pointwise kernel that is not asked for again, see `PointwiseKernel`."""
    return PointwiseKernel(name, formula, inputs, compute, outputs, over).entry(in_layouts, out_layouts)
