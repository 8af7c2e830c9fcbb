"""PyTorch's module database: outputs, gradients, second derivatives, state after (`python -m tests.parity.moduledb` runs all)."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_modules import module_db  # noqa: E402

from .moduledb import check  # noqa: E402

MOST = 6  #: samples here, of float64 only; the program runs all


@pytest.mark.parity
@pytest.mark.parametrize("info", module_db, ids=[info.module_cls.__name__ for info in module_db])
def test_module(info):
    outcome = check(info, MOST, (torch.float64,))
    assert outcome.samples == outcome.passed, "\n".join(outcome.reasons)
    assert outcome.errors == outcome.refused, "\n".join(outcome.reasons)
