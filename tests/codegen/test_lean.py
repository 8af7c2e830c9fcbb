"""What keeps kernels cheap for LLVM: it makes no copies of loops that gain nothing, and leaves shared functions alone."""

from __future__ import annotations

import os
import re

import llvmlite
import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import launch
from autograd_nb.codegen.build import compilation
from autograd_nb.codegen.jit import helper


def llvm(function, argtypes) -> str:
    """What LLVM makes code of."""
    library = compilation._compile(function, argtypes, os.urandom(32).hex()).library
    library._disable_inspection = False
    return str(library._final_module)


def generated(f, kind: str = "source") -> str:
    """What LLVM makes code of, of the last kernel that a program runs, whose text is generated (or that is written by hand: "kernel")."""
    origins = []
    with launch.observe(lambda call, args: (origins.append(call.origin), call.entry(*args))):
        f()
    *path, types = next(origin[1:] for origin in reversed(origins) if origin[0] == kind)
    if kind == "kernel":
        return llvm(compilation.written(*path), types)
    return llvm(compilation.defined((*path, types), path[0], "kernel"), types)


@helper(shared=True)
def apart(x, i):
    return x[i] + np.float32(1.0)


@helper
def within(x, i):
    return x[i] + np.float32(2.0)


def test_a_shared_helper_stays_a_function():
    def kernel(x, y):
        y[0] = apart(x, y.size) + within(x, x.size)
        y[1] = apart(x, x.size) + within(x, y.size)

    functions = re.findall(r"^define .*@(\S+)\(", llvm(kernel, ("float32[:]", "float32[:]")), re.M)
    assert sum("apart" in name for name in functions) == 1 and not any("within" in name for name in functions)


@pytest.mark.skipif(int(llvmlite.__version__.split(".")[1]) < 47, reason="early versions of LLVM write the loop twice all the same")
def test_random_numbers_have_one_loop():
    """The ten rounds of Philox are written out once, in vectors: no scalar copy for what remains of a tile."""
    text = generated(lambda: torch.rand(5))
    scalar, vectors = (len(re.findall(rf"= mul [a-z ]*{kind} ", text)) for kind in ("i64", r"<\d+ x i64>"))
    assert vectors >= 10 > scalar


def test_the_walk_over_strides_is_written_once():
    """To move on in five loops is a loop over them, not five times the same."""
    x = torch.ones(3, 4)
    text = generated(lambda: x + torch.ones(4))
    assert len(re.findall(r"^wrap\S*:", text, re.M)) == 1


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        (lambda x: x * 2.5 + x, "source"),
        (lambda x: x[:, :2] * 2.5, "source"),
        (lambda x: torch.cat([x, x], 1), "source"),
        (lambda x: x.index_put((torch.tensor([0, 1]),), x[:2]), "kernel"),
        (lambda x: x[torch.tensor([0, 1])], "kernel"),
    ],
    ids=["flat", "strided", "cat", "index_put", "index"],
)
def test_loops_over_elements_do_not_ask_whether_arrays_overlap(program, kind):
    """A result's memory is nobody else's, or that of an operand which has the same place in it."""
    x = torch.ones(4, 4)
    assert not re.findall("memcheck|diff.check", generated(lambda: program(x), kind))
