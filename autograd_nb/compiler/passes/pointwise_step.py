"""Pointwise steps taken apart, and made: what the passes that move computations between kernels work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ...codegen.formula.symbols import Trace
from ...codegen.templates.loops import HALVES, Input
from ...ops.core.entries import Recipe
from ...ops.core.reduction_kernel import Folding
from ...shapes import Layout, broadcast_strides, layout_of, numel, view_strides
from ..ir import Step, Use


class Formula:
    """The call of a step that a pass has made: only a recipe as yet, which `fuse` compiles, alone or with others."""

    __slots__ = ("entry", "name", "origin", "outputs", "over", "parts", "recipe")
    name: str
    outputs: int
    recipe: Recipe
    entry: None
    over: None
    origin: tuple[()]
    parts: None

    def __init__(self, name: str, recipe: Recipe):
        self.entry, self.name, self.outputs, self.recipe, self.over, self.origin, self.parts = (
            None,
            name,
            1,
            recipe,
            None,
            (),
            None,
        )


def pointwise(
    name: str, formula: Callable[..., Any], inputs: list[tuple[Any, Any]], compute: list[str],
    outputs: list[tuple[Use, Layout, str]], line: Any,
) -> Step:  # fmt: skip
    """Return a step of `Formula`. ``inputs``: (Use, layout) or (number, dtype name), in the formula's order."""
    specs = [Input(layout.dtype.name) if isinstance(o, Use) else Input(layout, scalar=True) for o, layout in inputs]
    layouts = [layout for o, layout in inputs if isinstance(o, Use)]
    recipe = Recipe(formula, specs, compute, [d for _, _, d in outputs], layouts, [layout for _, layout, _ in outputs], False)
    operands = [o for o, _ in inputs] + [u for u, _, _ in outputs]
    call = Formula(name, recipe)
    call.outputs = len(outputs)
    return Step(call, operands, tuple(range(len(inputs), len(operands))), line)


@dataclass
class Member:
    """A pointwise step taken apart."""

    step: Step
    inputs: list[tuple[Any, Any]]  # (Use, layout) or (number, dtype name), in the formula's order
    compute: list[str]
    outputs: list[tuple[Use, Layout, str]]

    epilogue: bool = False  # whether it works on what the folds of its group have made

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape that it loops over."""
        return tuple(self.outputs[0][1].shape)

    @cached_property
    def weight(self) -> int:
        """Return how many instructions its formula takes."""
        of = self.step.call.recipe
        trace = Trace(next((c for c in self.compute if c != "bool"), "float32"))
        of.formula(*[trace.input(f"x{k}", c) for k, c in enumerate(self.compute)])
        return sum(s.op not in ("input", "constant") for s in trace.instructions)


@dataclass
class FoldMember(Member):
    """A reduction taken apart: a loop over ``whole``, whose outputs have size 1 along ``axes``."""

    whole: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape that it loops over."""
        return self.whole


def member(step: Step) -> Member | None:
    """Return a step as a member of a group, or None for other kernels."""
    recipe = getattr(step.call, "recipe", None)
    if not isinstance(recipe, Recipe) or step.check is not None:
        return None
    operands = step.operands[1:] if recipe.dims else step.operands
    layouts = iter(recipe.in_layouts)
    inputs: list[tuple[Any, Any]] = []
    for spec, o in zip(recipe.inputs, operands, strict=False):
        if spec.dtype in HALVES or (spec.scalar and spec.dtype.startswith("complex")):
            return None
        inputs.append((o, spec.dtype) if spec.scalar else (o, next(layouts)))
    outs = operands[len(recipe.inputs) :] if step.call.over is None else [step.operands[step.call.over]]
    if len(outs) != len(recipe.outputs) or not HALVES.keys().isdisjoint(recipe.outputs):
        return None
    if step.call.over is not None and recipe.in_layouts[0].shape != recipe.out_layouts[0].shape:
        return None
    compute = recipe.compute
    compute = [compute] * len(inputs) if isinstance(compute, str) else list(compute)
    return Member(step, inputs, compute, list(zip(outs, recipe.out_layouts, recipe.outputs, strict=True)))


def fold_member(step: Step) -> FoldMember | None:
    """Return a reduction of real numbers as a member of a group, or None for other kernels."""
    of = getattr(step.call, "recipe", None)
    if not isinstance(of, Folding) or of.stored or numel(of.shape[d] for d in of.axes) < 2:
        return None
    layouts = iter(of.in_layouts)
    inputs = [(o, s.dtype) if s.scalar else (o, next(layouts)) for s, o in zip(of.inputs, step.operands[1:], strict=False)]
    kinds = {s.dtype for s in of.inputs} | {layout.dtype.name for layout in of.results}
    if not HALVES.keys().isdisjoint(kinds) or any(k.startswith("complex") for k in kinds):
        return None
    outs = step.operands[1 + len(inputs) :]
    outputs = [(u, layout, layout.dtype.name) for u, layout in zip(outs, of.results, strict=True)]
    return FoldMember(step, inputs, list(of.compute), outputs, whole=of.shape, axes=of.axes)


def reshaped(m: Member, shape: tuple[int, ...]) -> Member | None:
    """Return the same step as a loop over another shape of as many elements, or None where an operand has no strides for that."""
    if numel(shape) != numel(m.shape):
        return None
    if isinstance(m, FoldMember):
        return _flattened(m, shape)
    outputs = []
    for u, layout, dtype in m.outputs:
        strides = view_strides(layout, shape)
        if strides is None:
            return None
        outputs.append((u, layout_of(shape, strides, layout.dtype), dtype))
    inputs = _inputs(m, shape)
    return None if inputs is None else replace(m, inputs=inputs, outputs=outputs)


def _inputs(m: Member, shape: tuple[int, ...]) -> list[tuple[Any, Any]] | None:
    """Return what a member reads, walked in another shape."""
    inputs: list[tuple[Any, Any]] = []
    for o, layout in m.inputs:
        if isinstance(o, Use):
            full = layout_of(m.shape, broadcast_strides(layout, m.shape), layout.dtype)
            strides = view_strides(full, shape)
            if strides is None:
                return None
            inputs.append((o, layout_of(shape, strides, layout.dtype)))
        else:
            inputs.append((o, layout))
    return inputs


def _flattened(m: FoldMember, shape: tuple[int, ...]) -> FoldMember | None:
    """Return a reduction of everything, over another shape."""
    inputs = _inputs(m, shape) if len(m.axes) == len(m.whole) else None
    if inputs is None:
        return None
    outputs = [(u, layout_of([1] * len(shape), None, layout.dtype), dtype) for u, layout, dtype in m.outputs]
    return replace(m, inputs=inputs, outputs=outputs, whole=shape, axes=tuple(range(len(shape))))


def walk(use: Use, layout: Layout, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return how a use is walked: two equal walks meet the same element at the same index."""
    strides = tuple(s if n != 1 else 0 for s, n in zip(broadcast_strides(layout, shape), shape, strict=True))
    return use.buffer.number, use.offset, strides, layout.dtype.name
