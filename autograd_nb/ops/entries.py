"""Entry points of kernels made from pointwise formulas, for operands of given layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import launch, threads
from ..codegen import loops
from ..codegen.loops import Input
from ..shapes import Layout, broadcast_strides, coalesce, dims_array, sort_dims
from .folds import nested
from .recording import real_only


@dataclass(frozen=True)
class Recipe:
    """What a generated pointwise kernel was made from; ``dims``: whether its first argument is the table of sizes."""

    formula: Callable
    inputs: list[Input]
    compute: Any
    outputs: list[str]
    in_layouts: Sequence[Layout]
    out_layouts: Sequence[Layout]
    dims: bool


_NUMBER = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}


def operand(key: Any) -> Input:
    """A layout, or the type of a number, as the input of a kernel."""
    if isinstance(key, Layout):
        return Input(key.dtype.name)
    return Input(_NUMBER[key], scalar=True)


def pointwise_entry(
    name: str,
    formula: Callable,
    inputs: list[Input],
    compute: Any,
    outputs: list[str],
    in_layouts: Sequence[Layout],
    out_layouts: Sequence[Layout],
    over: Mapping[int, int] = loops.APART,
) -> tuple[Callable, np.ndarray | None]:
    """(entry point, dims) of a pointwise kernel for these layouts; dims is None for the flat variant.

    ``over``: output → the input that it overwrites, which the kernel is given once.
    """
    with real_only(name):
        body = loops.trace_body(formula, inputs, compute, outputs)
    argtypes = [f"{loops.storage(s.dtype)}[:]" if not s.scalar else s.dtype for s in inputs]
    own = [k for k in range(len(outputs)) if k not in over]
    argtypes += [f"{loops.storage(outputs[k])}[:]" for k in own]
    first = out_layouts[0]
    everyone = [*in_layouts, *out_layouts]
    recipe: Recipe | None = Recipe(formula, inputs, compute, outputs, in_layouts, out_layouts, False)
    effort = body.effort()

    def flat() -> Callable:
        return launch.entry(
            loops.pointwise_flat(body, over=over), "kernel", tuple(argtypes), name, len(own), recipe, over.get(0),
            lambda entry: threads.flat(entry, over.get(0, len(inputs)), first.size, effort),
        )  # fmt: skip

    if all(lay.contiguous and lay.shape == first.shape for lay in everyone):
        return flat(), None
    strides: list[Sequence[int]] = [broadcast_strides(lay, first.shape) for lay in everyone]
    order = sort_dims(first.shape, strides)  # by the last output first, also where it has no argument of its own
    strides = strides[: len(in_layouts)] + [strides[len(in_layouts) + k] for k in own]
    sizes, steps = coalesce([first.shape[d] for d in order], [[s[d] for d in order] for s in strides])
    if len(sizes) <= 1 and all(not t or t[0] == 1 for t in steps):
        return flat(), None
    lead = max(0, len(sizes) - loops.RANK)
    inner_sizes = [1] * (loops.RANK - len(sizes) + lead) + sizes[lead:]
    inner_steps = [[0] * (loops.RANK - len(t) + lead) + t[lead:] for t in steps]
    kinds = loops.arrange(inner_sizes, inner_steps, len(in_layouts))
    recipe = None if lead else Recipe(formula, inputs, compute, outputs, in_layouts, out_layouts, True)

    def split(entry: Callable) -> Callable:
        return threads.walk(entry, inner_sizes, range(loops.RANK), effort) if threads.writes_apart(out_layouts) else entry

    entry = launch.entry(
        loops.pointwise_strided(body, kinds, over=over), "kernel", ("int64[:]", *argtypes), name, len(own), recipe,
        1 + over[0] if 0 in over else None, split,
    )  # fmt: skip
    dims = dims_array(inner_sizes, inner_steps)
    if lead:
        scalars = [s.scalar for s in inputs] + [False] * len(own)
        entry = nested(entry, sizes[:lead], [t[:lead] for t in steps], scalars)
    return entry, dims
