"""Calls of the ops of PyTorch's database that are repeated come to the same as the calls that were noted: bits, layouts, graphs."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils._pytree import tree_map  # noqa: E402

import autograd_nb  # noqa: E402

from ..recurring import verified_calls  # noqa: E402
from . import opdb  # noqa: E402

MOST = 3  #: samples of a dtype


def whole_view(value):
    """Return a view of all of a tensor; anything else as it is."""
    return value.view_as(value) if isinstance(value, autograd_nb.Tensor) else value


@pytest.mark.parity
@pytest.mark.parametrize("op", [op for op in op_db if not opdb.outside(opdb.title(op))], ids=opdb.title)
@pytest.mark.filterwarnings("ignore")
def test_op(op):
    function = opdb.find(op)
    for dtype in (torch.float32, torch.int64, torch.complex64, torch.bfloat16):
        if function is None or dtype not in op.dtypes:
            continue
        for sample in list(op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and dtype.is_floating_point))[:MOST]:
            try:
                args, options = opdb.ours([sample.input, *sample.args]), opdb.ours(sample.kwargs)
            except opdb.Unsupported:
                continue
            with verified_calls():
                try:
                    for _ in range(3):  # it is noted the third time
                        function(*args, **options)
                    function(*tree_map(whole_view, args), **options)  # (results may be views of what these are views of)
                except opdb.ERRORS:  # which `test_op_db` compares
                    continue


#: ops whose calls must be repeated, or there is nothing to compare
SURE = {
    "addbmm", "block_diag", "cdist", "cross", "cumprod", "diag_embed", "fft.fft", "hstack", "index_copy", "kron", "linalg.pinv", "logcumsumexp",
    "nn.functional.cosine_similarity", "nn.functional.group_norm", "nn.functional.huber_loss", "nn.functional.max_pool2d", "scatter_reduce", "stack",
    "take_along_dim", "tril", "var_mean", "vstack",
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("name", sorted(SURE))
def test_calls_are_repeated(name):
    op = next(op for op in op_db if op.name == name)
    sample = next(iter(op.sample_inputs("cpu", torch.float32, requires_grad=True)))
    args, options, function = opdb.ours([sample.input, *sample.args]), opdb.ours(sample.kwargs), opdb.find(op)
    with verified_calls() as names:
        for _ in range(3):
            function(*args, **options)
    assert function.__name__ in names
