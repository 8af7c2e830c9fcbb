"""Products and convolutions of nothing: PyTorch looks at the dtype only where there is something to multiply, and so the same dtypes are taken."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ours  # noqa: E402

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128",
]  # fmt: skip
#: of ``d`` zeros, some of which are of size ``n``
CALLS = [
    "t.mm(z(n, 2), z(2, 2))",
    "t.mm(z(2, n), z(n, 2))",
    "t.matmul(z(n, 2), z(2, 2))",
    "t.matmul(z(3, n, 2), z(2, 2))",
    "t.bmm(z(n, 2, 2), z(n, 2, 2))",
    "t.bmm(z(2, 2, n), z(2, n, 2))",
    "t.mv(z(n, 2), z(2))",
    "t.mv(z(2, n), z(n))",
    "t.dot(z(n), z(n))",
    "t.vdot(z(n), z(n))",
    "t.inner(z(2, n), z(2, n))",
    "t.outer(z(n), z(n))",
    "t.ger(z(n), z(n))",
    "t.addmm(z(2), z(n, 2), z(2, 2))",
    "t.addmm(z(2), z(2, n), z(n, 2))",
    "t.addmv(z(n), z(n, 2), z(2))",
    "t.addmv(z(2), z(2, n), z(n))",
    "t.addr(z(n, n), z(n), z(n))",
    "t.baddbmm(z(n, 2, 2), z(n, 2, 2), z(n, 2, 2))",
    "t.baddbmm(z(2, 2, 2), z(2, 2, n), z(2, n, 2))",
    "t.addbmm(z(2, 2), z(n, 2, 2), z(n, 2, 2))",
    "t.addbmm(z(2, 2), z(2, 2, n), z(2, n, 2))",
    "t.chain_matmul(z(n, 2), z(2, 2), z(2, 2))",
    "t.linalg.multi_dot([z(n, 2), z(2, 2), z(2, 2)])",
    't.einsum("ij, jk->ik", z(n, 2), z(2, 2))',
    't.einsum("ij, jk->ik", z(2, n), z(n, 2))',
    "t.tensordot(z(n, 2), z(2, 2), 1)",
    "F.linear(z(n, 2), z(2, 2))",
    "F.linear(z(n, 2), z(2, 2), z(2))",
    "F.linear(z(2, n), z(2, n), z(2))",
    "F.linear(z(2, n, 2), z(2, 2), z(2))",
    "F.bilinear(z(n, 2), z(n, 2), z(2, 2, 2))",
    "t.kron(z(n, 2), z(2, 2))",
    "t.cross(z(n, 3), z(n, 3), dim=1)",
    "F.conv1d(z(n, 2, 5), z(2, 2, 3))",
    "F.conv2d(z(n, 2, 5, 5), z(2, 2, 3, 3))",
    "t.matrix_power(z(n, 2, 2), 3)",
    "t.matrix_power(z(n, n), 0)",
    "t.cdist(z(n, 2), z(2, 2))",
    "t.trace(z(n, n))",
    "t.linalg.vecdot(z(2, n), z(2, n))",
    "F.conv1d(z(n, 2, 5), z(2, 2, 3), z(2))",
    "F.conv_transpose1d(z(n, 2, 5), z(2, 2, 3))",
    "t.cov(z(2, n))",
    "t.matmul(z(n, 2), other(2, 2))",
    "t.mm(z(n, 2), other(2, 2))",
    "t.bmm(z(n, 2, 2), other(n, 2, 2))",
]
#: what no sum of complex32 is computed for
LEFT = {("t.linalg.vecdot(z(2, n), z(2, n))", "complex32", 0)}


def outcome(t, call, d, n):
    """The dtype and the shape, or that it is refused."""
    kind, other = getattr(t, d), t.float32 if d == "float64" else t.float64
    things = {"t": t, "F": t.nn.functional, "n": n, "z": lambda *s: t.zeros(s, dtype=kind), "other": lambda *s: t.zeros(s, dtype=other)}
    try:
        y = eval(call, things)
    except (RuntimeError, TypeError, ValueError):
        return "refused"
    return str(y.dtype).rpartition(".")[2], tuple(y.shape)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_dtypes_of_nothing(call):
    """And of something: a product that was made of one dtype lets no other in."""
    cases = [(call, d, n) for n in (0, 2, 0) for d in DTYPES if (call, d, n) not in LEFT]
    differ = {case[1:]: (mine, theirs) for case in cases if (mine := outcome(ours, *case)) != (theirs := outcome(torch, *case))}
    assert not differ
