"""What was asked for is noted: a process whose kernels are all on disk does not import Numba, and finds nothing that is stale."""

from __future__ import annotations

import shutil
import types

import numpy as np
import pytest
from numba.core import intrinsics

from autograd_nb.codegen.build import compilation, digest, linking, requests
from autograd_nb.codegen.build.cache import Store

from .test_build import DOUBLE, ROOT, kernels, python

NOTES = "*" + requests.SUFFIX
TELLS = "print(len(made), 'numba' in sys.modules)"
PROGRAM = f"""
import autograd_nb as torch
from autograd_nb import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3), nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x, y = torch.randn(2, 1, 8, 8), torch.tensor([0, 2])
def step():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss
for f in (step, torch.compile(step)):
    print([f().item() for _ in range(3)])
torch.linalg.cholesky(torch.eye(3) * 2)  # by the C library that Numba brings along
{TELLS}
"""


def test_a_second_process_does_without_numba(tmp_path):
    *first, told = python(tmp_path, PROGRAM).splitlines()
    assert told.endswith("True") and len(list(tmp_path.glob(NOTES))) == 1
    count = len(kernels(tmp_path))
    *second, told = python(tmp_path, PROGRAM).splitlines()
    assert told == "0 False" and second == first and len(kernels(tmp_path)) == count
    asked = "import numba\n" + PROGRAM  # who has it already asks it
    *third, told = python(tmp_path, asked).splitlines()
    assert told == "0 True" and third == first


def test_workers_start_before_numba_is_imported(tmp_path):
    """Where nothing was ever noted; where all is there none are started."""
    code = f"""
    from autograd_nb.codegen.build import workers
    told = []
    workers.missing = lambda folder: told.append('numba' in sys.modules)
    run({DOUBLE!r})
    print(told)
    """
    assert python(tmp_path, code) == "[False, True]"
    assert python(tmp_path, code) == "[]"


def test_blas_is_bound_without_numba(tmp_path):
    """Kernels that call it look up its functions at their first call, in the midst of a kernel, unless that was done before."""
    code = f"""
    import autograd_nb as torch
    x = torch.ones(30, 30, dtype=torch.complex64)
    print((x @ x)[0, 0].item(), 'autograd_nb.kernels.products.blas' in sys.modules)
    {TELLS}
    """
    assert python(tmp_path, code).splitlines()[0] == "(30+0j) True"
    assert python(tmp_path, code) == "(30+0j) True\n0 False"


@pytest.mark.slow
def test_notes_that_do_not_hold(tmp_path):
    """Damaged, missing, of another setting, or of a kernel that is gone: the kernel is found or made as ever."""
    code = f"print(run({DOUBLE!r}))\n{TELLS}"
    doubled = "[2.0, 4.0, 6.0, 8.0]"
    assert python(tmp_path, code) == f"{doubled}\n1 True"
    assert python(tmp_path, code) == f"{doubled}\n0 False"
    assert python(tmp_path, code, NUMBA_NUM_THREADS="1") == f"{doubled}\n0 True"
    (notes,) = tmp_path.glob(NOTES)
    whole = notes.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole.replace(b"a", b"b"), b"\xff" * 100, b""):
        notes.write_bytes(damaged)
        assert python(tmp_path, code) == f"{doubled}\n0 True"
        assert python(tmp_path, code) == f"{doubled}\n0 False"
    for path in tmp_path.glob("*.kernel"):
        path.unlink()
    assert python(tmp_path, code) == f"{doubled}\n1 True"


def test_edited_kernels_are_made_anew(tmp_path):
    """A helper that a kernel calls was changed: what was noted before holds no more."""
    copy = tmp_path / "tree" / "autograd_nb"
    shutil.copytree(ROOT / "autograd_nb", copy, ignore=shutil.ignore_patterns("__pycache__"))
    helper = "from autograd_nb.codegen.jit import helper\n\n@helper\ndef twice(x):\n    return 2 * x\n"
    (copy / "codegen" / "twice.py").write_text(helper)
    source = "from autograd_nb.codegen.twice import twice\ndef kernel(x, y):\n    for i in range(y.size):\n        y[i] = twice(x[i])\n"
    code = f"print(run({source!r}))\n{TELLS}"
    folder = tmp_path / "cache"
    path = {"PYTHONPATH": str(copy.parent), "PYTHONSAFEPATH": "1"}
    assert python(folder, code, **path) == "[2.0, 4.0, 6.0, 8.0]\n1 True"
    assert python(folder, code, **path) == "[2.0, 4.0, 6.0, 8.0]\n0 False"
    (copy / "codegen" / "twice.py").write_text(helper.replace("2 * x", "3 * x"))
    assert python(folder, code, **path) == "[3.0, 6.0, 9.0, 12.0]\n1 True"


def test_what_is_not_the_librarys_is_not_noted(tmp_path):
    """A kernel that calls a function of the user's, whose file may change at any time."""
    user = tmp_path / "user_functions.py"
    user.write_text("from autograd_nb.codegen.jit import helper\n\n@helper\ndef twice(x):\n    return 2 * x\n")
    source = "from user_functions import twice\ndef kernel(x, y):\n    for i in range(y.size):\n        y[i] = twice(x[i])\n"
    code = f"sys.path.append({str(tmp_path)!r})\nprint(run({source!r}))\n{TELLS}"
    assert python(tmp_path / "cache", code) == "[2.0, 4.0, 6.0, 8.0]\n1 True"
    assert python(tmp_path / "cache", code) == "[2.0, 4.0, 6.0, 8.0]\n0 True"
    user.write_text(user.read_text().replace("2 * x", "3 * x"))
    assert python(tmp_path / "cache", code) == "[3.0, 6.0, 9.0, 12.0]\n1 True"


@pytest.mark.parametrize(
    "module, own",
    [
        ("autograd_nb.codegen.runtime", True), ("autograd_nb.kernels.nn.conv", True), ("autograd_nb.codegen.build", True),
        ("autograd_nb.ops.nn.conv", False), ("autograd_nb", False), ("somebody", False), ("math", True), ("numba.np.ufunc", True),
    ],
)  # fmt: skip
def test_whose_functions_are_told_by_the_texts(module, own):
    """Those of the folders whose texts name the file of notes."""
    found = digest.Digest()
    found.add(types.FunctionType((lambda: 0).__code__, {"__name__": module}))
    assert found.own is own


def test_functions_of_no_module():
    space: dict = {}
    exec("def kernel(x):\n    x[0] = 41.5\n", space)  # as in a notebook or a doctest
    space["kernel"].__module__ = None
    x = np.zeros(1)
    compilation.build_function(space["kernel"], ("float64[:]",))(x)
    assert x[0] == 41.5


def test_old_notes_are_removed(tmp_path):
    store = Store(tmp_path)
    for k in range(20):
        (tmp_path / f"{k:064x}{requests.SUFFIX}").write_bytes(b"")
    made = requests.Requests(store)
    made.note("answer", "words")
    assert len(list(tmp_path.glob(NOTES))) <= 9
    assert made._known is not None and made._known
    made.clear()
    assert not list(tmp_path.glob(NOTES))


def test_the_linker_is_told_the_same_functions_as_numbas():
    stems = {f"{name}{kind}" for name in linking.MATH for kind in ("", "f")}
    assert stems == set(intrinsics.INTR_MATH)
