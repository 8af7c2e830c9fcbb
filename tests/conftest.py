"""What holds for all tests."""

import gc
import os

import pytest

#: tests run on all cores, and count kernels: who wants one compiles it, unless the test is of the workers
os.environ.setdefault("AUTOGRAD_NB_COMPILE_WORKERS", "0")


@pytest.fixture(scope="module", autouse=True)
def _only_what_is_new():
    """Set aside, file by file, the hundreds of thousands of objects that tests, libraries and Numba's results consist of.

    Each capture by `compile` looks at all objects there are, and each full collection too. (Captures see the tensors that were set
    aside: `graph.collector.living`.)
    """
    from autograd_nb.autograd.torch_function import INTERCEPTION, LINGER

    gc.collect()
    for _ in range(LINGER + 1):  # what a region of autocast, and sparse tensors, have left behind
        INTERCEPTION.pass_by()
    gc.freeze()


@pytest.fixture
def nobody_takes_calls_over():
    """While there is a sparse tensor, functions ask for classes that take calls over: one that another test of this process has made."""
    from autograd_nb.autograd.torch_function import INTERCEPTION

    entered = INTERCEPTION.count
    for _ in range(entered):
        INTERCEPTION.leave()
    yield
    for _ in range(entered):
        INTERCEPTION.enter()
