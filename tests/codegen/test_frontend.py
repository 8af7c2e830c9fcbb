"""Numba's front end on short ways: the code is what Numba makes on its own ways, and they end with the kernel."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from numba.core.base import BaseContext
from numba.core.compiler_machinery import PassManager

from autograd_nb.codegen import frontend
from autograd_nb.codegen.build import compilation, entry_point

WALKED = """
import math
import numpy as np
from autograd_nb.codegen.runtime import advance, entry, pack, position, row, scratch, start, steps, turn
def kernel(dims, a0, x1, o0):
    n5 = entry(dims, 5)
    a0s5 = entry(dims, 17)
    a0b = scratch(1024, np.float32)
    if n5 == 0:
        return
    place = start(2)
    for _ in range(steps(dims, 0, 5)):
        for c in range(0, n5, 1024):
            size = min(1024, n5 - c)
            pack(a0b, a0, position(place, 0) + c * a0s5, size, a0s5)
            o0r = row(o0, position(place, 1) + c, size, 1)
            for i in range(size):
                x0 = a0b[i]
                o0r[i] = np.float32(max(x0 * np.float32(x1) + np.float32(1.0), math.sqrt(abs(x0))))
        advance(place, dims, 2, 0, 5)
"""
FOLDED = """
import numpy as np
def kernel(a0, o0):
    total = 0
    for i in range(a0.size):
        if a0[i] > 2 and a0[i] != 7:
            total += a0[i] // 3
    o0[0] = total * 2
"""
CASES = {
    "walked": (WALKED, ("int64[:]", "float32[:]", "float64", "float32[:]")),
    "folded": (FOLDED, ("int64[:]", "int64[:]")),
}


def llvm(function, argtypes) -> str:
    """What LLVM makes code of, without the names of what differs from one compilation to the next."""
    result = compilation._compile(function, argtypes, os.urandom(32).hex())
    result.library._disable_inspection = False
    bodies = re.findall(r"^define .*?^}$", str(result.library._final_module), re.M | re.S)
    return re.sub(r'@"?[\w.$%:]+"?|0x[0-9a-f]+|[#!]\d+', "", "\n".join(bodies))


def function_of(name: str):
    space: dict = {"__name__": compilation.GENERATED}
    exec(CASES[name][0], space)
    return space["kernel"]


@pytest.mark.parametrize("name", CASES)
def test_the_same_code_as_on_numbas_own_ways(name, monkeypatch):
    short = llvm(function_of(name), CASES[name][1])
    monkeypatch.setattr(frontend, "_PLACES", ())
    monkeypatch.setattr(frontend.Passes, "_runPass", PassManager._runPass)
    assert llvm(function_of(name), CASES[name][1]) == short != ""


def test_written_kernels_too(monkeypatch):
    function, types = compilation.written("indexing.index", "flip"), ("int64", "int64", "int64", "float32[:]", "float32[:]")
    function = getattr(function, "py_func", function)
    short = llvm(function, types)
    monkeypatch.setattr(frontend, "_PLACES", ())
    monkeypatch.setattr(frontend.Passes, "_runPass", PassManager._runPass)
    assert llvm(function, types) == short != ""


def test_nothing_stays_in_the_place_of_numbas():
    def now():
        return [vars(place)[name] for place, name, _ in frontend._PLACES], list(frontend.ffi.lib._lock._cblist)

    before = now()
    with pytest.raises(KeyError), frontend.brief():
        assert BaseContext.refresh is not before[0][-2] and not frontend.ffi.lib._lock._cblist
        raise KeyError
    assert now() == before and before[1]


def test_kernels_of_the_same_types_share_what_python_calls():
    def kernel(text: str):
        return compilation.build(f"def kernel(x, k, y):\n    for i in range(y.size):\n        y[i] = {text}\n", "kernel", types)

    types = ("float32[:]", "int64", "float32[:]")
    first = kernel("x[i] + k")
    made = dict(entry_point._shared)
    second = kernel("x[i] * k")
    assert entry_point._shared == made
    x, y, z = np.arange(3, dtype=np.float32), np.empty(3, np.float32), np.empty(3, np.float32)
    first(x, 2, y)
    second(x, 2, z)
    assert y.tolist() == [2.0, 3.0, 4.0] and z.tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(TypeError, match="not of its type"):
        second(x, 2)


def test_what_another_numba_lacks_is_left_alone():
    """Where a version of Numba has no such function, or one with other parameters, it keeps its own."""
    assert all(frontend.fits(*place) for place in frontend._PLACES)
    assert frontend.fits(BaseContext, "refresh", lambda context: None)
    assert not frontend.fits(BaseContext, "refresh", lambda context, registries: None)
    assert not frontend.fits(BaseContext, "refreshed", lambda context: None)


ALONE = """
import sys
import autograd_nb.codegen.frontend
from numba import njit
from numba.core.registry import cpu_target
cpu_target.target_context
assert "numba.np.arraymath" in sys.modules and "scipy.linalg" not in sys.modules

import numpy as np
product = njit(lambda a, b: np.dot(a, b))
assert product(np.eye(2), np.full((2, 2), 3.0)).sum() == 12 and "scipy.linalg" in sys.modules
"""


def test_scipys_linear_algebra_is_imported_where_a_kernel_multiplies_matrices():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
