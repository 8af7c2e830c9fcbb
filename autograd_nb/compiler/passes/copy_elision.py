"""A kernel that writes by strides writes where its output would only be copied to.

The gradients of queries, keys and values go straight into that of the projection of which they are parts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from ...shapes import contiguous_strides, layout_of, numel, view_strides
from ..ir import Step, Use, users
from .pointwise_step import member

#: kernel of attention -> the names of its arguments: for each output that of the strides by batch, head and row, its rows, its
#: columns. ``last`` is behind the last matrix, of which each batch has ``heads``.
_STRIDED: dict[str, dict[str, tuple[str, str, str]]] = {
    "forward": {"y": ("y_steps", "length", "value_width")},
    "backward": {
        "dq": ("dq_steps", "length", "width"),
        "dk": ("dk_steps", "source", "width"),
        "dv": ("dv_steps", "source", "value_width"),
    },
}


def elide_copies(steps: list[Step], live_out: Collection[int], numbers: Iterator[int]) -> list[Step]:
    """Return the steps without copies of what can be written to its target at once."""
    steps = list(steps)
    uses = users(steps)
    dropped: set[int] = set()
    for i, step in enumerate(steps):
        free: dict[int, np.ndarray] = {}  # buffer -> which of its elements this step has not been given to write
        strided = _STRIDED[step.call.origin[2]] if step.runs("nn.attention", *_STRIDED) else {}
        for output, (walk, rows, columns) in strided.items():
            source = step.argument(output).buffer
            mine = uses[source.number]
            if source.kind != "temporary" or source.number in live_out or not step.argument(output).whole:
                continue
            if len(mine) != 2 or mine[0] != (i, True) or mine[1][1]:
                continue
            j, heads = mine[1][0], step.argument("heads")
            shape = (step.argument("last") // heads, heads, step.argument(rows), step.argument(columns))
            found = _target(steps[j], shape, step.argument(walk))
            if found is None:
                continue
            target, strides = found
            n, item = target.buffer.number, target.dtype.itemsize
            if any(i <= at < j and at not in dropped and (at > i or n not in free) for at, _ in uses[n]):
                continue
            own = free.get(n)
            if own is None:
                own = free[n] = np.ones(target.buffer.nbytes // item, bool)
            there = np.lib.stride_tricks.as_strided(own[target.offset // item :], shape, (*strides, 1))
            if not there.all():  # two copies to one place, of which the later one counts
                continue
            there[...] = False
            into = Use(target.buffer, target.offset, target.size, target.dtype)
            steps[i] = step = step.with_arguments(**{output: into, walk: strides})
            uses[n].append((i, True))
            dropped.add(j)
    return [step for i, step in enumerate(steps) if i not in dropped]


def _target(step: Step, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[Use, tuple[int, ...]] | None:
    """Return where a step copies an array of this shape to, and the strides of all but the last dim there; that is dense in
    both.
    """
    m = member(step)
    if m is None or step.name not in ("clone", "copy_", "contiguous") or len(m.inputs) != 1 or len(m.outputs) != 1:
        return None
    (_, layout), (target, out, dtype) = m.inputs[0], m.outputs[0]
    if target.buffer.kind != "temporary" or layout.dtype is not out.dtype or m.compute != [dtype]:
        return None
    if layout.shape != out.shape or layout.size != numel(shape):
        return None
    read_order = sorted(range(layout.ndim), key=lambda d: -layout.strides[d])
    order = sorted(range(len(shape)), key=lambda d: -(*strides, 1)[d])
    in_memory = [shape[d] for d in order]
    read, written = (
        view_strides(layout_of([x.shape[d] for d in read_order], [x.strides[d] for d in read_order], x.dtype), in_memory)
        for x in (layout, out)
    )
    if read is None or written is None:
        return None
    if any(n > 1 and a != b for n, a, b in zip(in_memory, read, contiguous_strides(in_memory), strict=True)):
        return None
    found = [written[order.index(d)] for d in range(len(shape))]
    return (target, tuple(found[:-1])) if found[-1] == 1 or shape[-1] == 1 else None
