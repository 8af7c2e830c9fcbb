"""The passes that make a captured list of steps a better one, in order, and the check of what each of them leaves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from ..ir import Outline, Program, Step, settings, verify
from .copy_elision import elide_copies
from .gemm_epilogue import fuse_gemm_epilogues
from .loop_fusion import fuse_loops
from .rematerialize import rematerialize
from .row_fusion import fuse_rows
from .shared_factor import share_factors
from .simplify import eliminate_common_steps, eliminate_copies, fold_constants, hoist_checks, remove_dead_steps
from .together import build, put_off

#: From (steps, numbers of the buffers that are read after the program, unused numbers of buffers) to steps that leave the same
#: there and in the user's memory. A pass may change the steps that it is given.
Pass = Callable[[list[Step], Collection[int], Iterator[int]], list[Step]]

#: passes that look at operands alone, not at what kernels compute
SIMPLIFYING: tuple[Pass, ...] = (remove_dead_steps, hoist_checks, fold_constants, eliminate_common_steps, eliminate_copies)

#: all passes, in order
PASSES: tuple[Pass, ...] = (
    *SIMPLIFYING,
    elide_copies,
    rematerialize,
    share_factors,
    fuse_gemm_epilogues,
    fuse_rows,
    fuse_loops,
)


def optimize(
    steps: Sequence[Step], live_out: Collection[int], numbers: Iterator[int], passes: Sequence[Pass] = PASSES
) -> list[Step]:
    """Return the steps after all passes, their kernels built.

    Args:
        steps: those of a captured program; passes may change them.
        live_out: numbers of the buffers that are read after the program (results, gradients, what a backward pass reads).
        numbers: unused numbers of buffers, for new ones.

    Errors: InvalidProgram where a pass leaves a program that breaks a rule of `ir.verify`, if `ir.settings.verifies`; Problem where a
    kernel cannot be compiled.
    """
    with put_off():
        found = _after(passes, list(steps), live_out, numbers)
    build(found)
    return found


def _after(passes: Sequence[Pass], found: list[Step], live_out: Collection[int], numbers: Iterator[int]) -> list[Step]:
    if not settings.verifies:
        for one in passes:
            found = one(found, live_out, numbers)
        return found
    given = Program.captured(found, live_out).given
    verify(Program(found, frozenset(live_out), given), "capture")
    for one in passes:
        before = Outline(found)
        found = one(found, live_out, numbers)
        verify(Program(found, frozenset(live_out), given), one.__name__, before)
    return found
