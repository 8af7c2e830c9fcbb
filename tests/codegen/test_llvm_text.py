"""Functions that are LLVM text are made once: later processes find their machine code in the cache or in a pack."""

from __future__ import annotations

import pytest

from autograd_nb.codegen.build.hashed import hashed

from .test_build import kernels, python

PROGRAM = """
import autograd_nb as torch
from autograd_nb.codegen.build import llvm_text
texts = []
make = llvm_text._object_code
llvm_text._object_code = lambda text: texts.append(text) or make(text)
x = torch.tensor([1.0, 2.0], requires_grad=True)
@torch.compile
def step():
    x.grad = None
    loss = (x * x).sum()
    loss.backward()
    return loss
for _ in range(3):
    print(step().item(), x.grad.tolist())
print(len(texts))
"""
RESULT = ["5.0 [2.0, 4.0]"] * 3


def test_a_second_process_makes_none(tmp_path):
    *first, count = python(tmp_path, PROGRAM).splitlines()
    assert first == RESULT and int(count) > 3
    assert python(tmp_path, PROGRAM).splitlines() == [*RESULT, "0"]


def test_what_is_damaged_is_made_again(tmp_path):
    python(tmp_path, PROGRAM)
    for path in kernels(tmp_path):
        path.write_bytes(path.read_bytes()[:-1])
    *again, count = python(tmp_path, PROGRAM).splitlines()
    assert again == RESULT and int(count) > 3


def test_packs_have_them(tmp_path):
    program, pack = tmp_path / "program.py", tmp_path / "some.pack"
    program.write_text(PROGRAM)
    python(tmp_path / "cache", f"""
    from pathlib import Path
    from autograd_nb.cache import packing
    packing.write(Path({str(pack)!r}), programs=[{str(program)!r}])
    """)
    assert python(tmp_path / "empty", PROGRAM, AUTOGRAD_NB_PACK=str(pack)).splitlines() == [*RESULT, "0"]


@pytest.mark.skipif(tuple.__basicsize__ != 24, reason="objects lie otherwise in this interpreter, and so the text is another one")
def test_entry_points_of_another_text_have_another_abi():
    """Code that is on disk is linked with what this version expects of it: a change of the text raises `machine_code.ABI`."""
    from numba import types

    from autograd_nb.codegen.arrays import Arrays
    from autograd_nb.codegen.build import entry_point, machine_code

    array = types.Array(types.float32, 1, "C")
    kinds = (array, types.int64, types.UniTuple(types.int64, 2), types.boolean, types.float64, types.complex128, Arrays(types.float32))
    text = "\n".join([entry_point._SHARED, entry_point._DECLARED, *entry_point._Text(kinds).lines])
    assert (machine_code.ABI, hashed(text.encode()).hexdigest()[:16]) == (12, "a761feeb147aa422")
