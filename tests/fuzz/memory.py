"""Whether gradients on their way have the memory that they seem to have: ``python -m tests.fuzz.memory [op …]``.

A node may write over a gradient that this pass made and that is no view: it takes its array to be as large as its layout. So each op is
differentiated twice of operands that are parts of others, whose gradients of gradients are parts too, and what comes to nodes is looked at.
"""

from __future__ import annotations

import collections
import re
import sys
from typing import Any

import autograd_nb as ag
from autograd_nb.graph import engine, ownership
from autograd_nb.ops.core.pointwise_backward import PointwiseNode

from . import sweep
from .program import Program, trace

MOST = 3  #: templates of an op


def wrong(g: Any) -> bool:
    """Whether a gradient that may be written over, and is no view, has more or less memory than it reaches."""
    return (
        type(g) is ag.Tensor
        and g._view is None
        and g._version_[1] == ownership.OURS
        and g._data.size != g._layout.extent
        and g._layout.size > 0
    )


def of_parts(program: Program) -> Program:
    """A program whose operands are the middle parts of what is thrice as long, differentiated twice by these."""
    statements, kept = [], []
    for s in program.statements[:-2]:
        statements.append(s)
        if name := re.match(r"v\d+(?= = )", s):
            v = name[0]
            kept.append(f"l{v}")
            flat = f"{v}.reshape(-1)"
            statements += [
                f"l{v} = {v}",
                f"{v} = torch.cat([{flat}, {flat}, {flat}])[{v}.numel():2 * {v}.numel()].reshape({v}.shape)",
            ]
    leaves = f"[v for v in [{', '.join(kept)}] if v.requires_grad]"
    return Program((
        *statements, f"gs = torch.autograd.grad({sweep.SUM}, {leaves}, create_graph=True, allow_unused=True)",
        "t = sum((g * g).abs().sum() for g in gs if g is not None and g.requires_grad)", "t.backward()",
    ))  # fmt: skip


def main() -> int:
    found: collections.Counter = collections.Counter()
    at = ""

    def looking(function: Any, where: str) -> Any:
        def call(*args: Any) -> Any:
            found.update([f"{at}: {where}"] * any(map(wrong, args)))
            return function(*args)

        return call

    PointwiseNode.run = looking(PointwiseNode.run, "a node")  # type: ignore[method-assign]
    engine.merge, engine.own = looking(engine.merge, "a sum of gradients"), looking(engine.own, "a gradient that is kept")
    programs = sweep.drawn(sys.argv[1:], ["leaf"], MOST)
    for at, program in programs:
        for step in trace(of_parts(program), ag):
            if isinstance(step.error, IndexError) and "is out of bounds for axis" in str(step.error):  # NumPy's: a kernel's
                found[f"{at}: {step.error}"] += 1
    print(f"{len(programs)} programs, {len(found)} differ", *found, sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
