"""Forgetting what was captured."""

import gc
import weakref

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import nn

from .common import training


def test_reset_forgets_what_was_captured():
    double = torch.compile(lambda x: x * 2)
    double(torch.ones(2))
    assert len(double.programs) == 1
    torch.compiler.reset()
    assert not double.programs


def dropped():
    """Weak references to what a compiled step had, which is dropped."""
    model = nn.Linear(2, 1)
    step = torch.compile(training(model, torch.optim.SGD(model.parameters(), lr=0.1), F.mse_loss))
    for _ in range(4):
        step(torch.ones(3, 2), torch.ones(3, 1))
    variant = step.programs[0]
    assert variant.state.fast_path is not None
    return [weakref.ref(o) for o in (step, variant, variant.program, variant.guard, variant.reach, model)]


def test_a_dropped_function_is_freed_without_the_collector():
    dropped()  # (kernels that are made leave symbols in cycles)
    gc.collect()
    gc.disable()
    try:
        assert [r() for r in dropped()] == [None] * 6
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds = {type(o).__name__ for o in gc.garbage if type(o).__module__.startswith("autograd_nb")}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert kinds <= {"Sym", "Trace"}  # formulas that were written again; Numba leaves its own where a kernel is new
