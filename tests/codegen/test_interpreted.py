"""What kernels are given where Python runs them (``NUMBA_DISABLE_JIT=1``)."""

from __future__ import annotations

import numpy as np

from autograd_nb.codegen.interpreted import argument
from autograd_nb.graph.noted import DRAWN


def test_numbers_have_the_types_of_a_compiled_kernel():
    assert all(type(argument(kind(2**40 + 3))) is np.int64 for kind in (int, *DRAWN))
    assert type(argument(True)) is bool and type(argument(0.5)) is np.float64
    assert int(np.uint32(argument(DRAWN[0](2**40 + 3)))) == 3  # the seed of a pass that is repeated
