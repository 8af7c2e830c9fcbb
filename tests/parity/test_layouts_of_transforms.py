"""How results of `vmap` lie in memory, tangents beside their primals, and copies of storages of which a part is replaced."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402

from .snippets import check  # noqa: E402

PRIMALS = (
    "t.ones(2, 3)", "t.ones(8)[:6].reshape(2, 3)", "t.ones(2, 6)[:, ::2]", "t.ones(3, 2).T", "t.ones(4, 3)[1:3]", "t.ones(4, 2, 3)[1]",
    "t.ones(2, 1, 3)[:, 0]", "t.ones(2, 3, dtype=t.complex64).real", "t.ones(0, 3)",
)  # fmt: skip
TANGENTS = (
    "t.full({}, 2., dtype=t.float64)", "t.full({}, 2.)", "t.tensor(2., dtype=t.float64).expand({})", "t.full((*{}, 2), 2., dtype=t.float64)[..., 0]",
    "t.full({}, 2., dtype=t.float64).requires_grad_()", "t.full({}[::-1], 2.).T",
)  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("primal", PRIMALS)
def test_a_tangent_lies_as_its_primal(primal):
    """One that does not is copied, in the primal's dtype; one that does is kept as it is."""
    given = {tangent: f"p = {primal}; q = {tangent.format('tuple(p.shape)')}\n" for tangent in TANGENTS}
    look = "u.dtype, u.requires_grad, u.sum().detach(), *((u.stride(), u.storage_offset()) if u.numel() else ())"
    check({
        **{f"dual {k}": f"{v}with fw.dual_level(): u = fw.unpack_dual(fw.make_dual(p, q)).tangent\nr = {look}" for k, v in given.items()},
        **{f"jvp of {f}, {k}": f"{v}u = t.func.jvp(lambda z: {f}, (p,), (q,))[1]; r = u.dtype, u.requires_grad, u.sum().detach()"
           for k, v in given.items() for f in ("z", "z * z", "z.exp()")},
    }, "fw = t.autograd.forward_ad")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("name", ("sin", "clone", "neg", "logical_not", "square"))
def test_the_order_of_dims_that_lie_alike(name):
    """Which of two dims with one stride, or of several stretched ones, comes first in a result follows from where the batch stands."""
    stretched = (((3, 1), (3, 4)), ((1, 4), (3, 4)), ((2, 1, 3), (2, 4, 3)), ((), (2, 3)), ((3, 1, 1), (3, 2, 4)))
    check({
        f"{a} {b} {order} {i} {o}": f"y = t.func.vmap(t.Tensor.{name}, {i}, {o})(t.ones({a}).expand({b}).permute({order})); r = y.shape, y.stride()"
        for a, b in stretched for order in itertools.permutations(range(len(b))) for i in range(len(b)) for o in (0, -1)
    })  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("how", ("v.contiguous()", "v.clone(memory_format=t.contiguous_format)", "v.t().contiguous()"))
def test_samples_asked_for_in_c_order_are(how):
    """Also those of a batch with gaps, whose dim is not the first, and of batches of batches: their samples can be viewed as one row."""
    one = ("x[..., :3]", "x[:, ::2]", "x[1:]", "x.permute(2, 1, 0)[:4]", "x[..., ::2].movedim(0, 1)")
    two = ("x[None, ..., :3].expand(2, -1, -1, -1)", "x.view(2, 4, 2, 6)", "x.view(2, 4, 2, 6)[..., :3]", "x.view(2, 4, 2, 6)[:, 1:].transpose(1, 2)")
    look = "r = y, y.stride(), y.is_contiguous()"
    row = ".view(-1).as_strided((2,), (1,))"
    check({
        **{f"{x} {i} {o} {r}": f"y = t.func.vmap(lambda v: {how}{r}, {i}, {o})({x}); {look}"
           for x in one for i in range(3) for o, r in ((0, ""), (-1, ""), (0, row))},
        **{f"twice {x} {i} {j} {r}": f"y = t.func.vmap(t.func.vmap(lambda v: {how}{r}, {i}), {j})({x}); {look}"
           for x in two for i in range(3) for j in range(4) for r in ("", row)},
    }, "x = t.arange(96.).view(2, 4, 12) - 40")  # fmt: skip


@pytest.mark.parity
def test_as_strided_scatter_copies_the_storage():
    inputs = ("b", "b[1:]", "b[:0]", "b[:1]", "b.T", "b.T[1:, :2]", "b[:, 1]", "b[:, 0].expand(2, 3)")
    parts = (("(2, 2)", "(1, 2)"), ("(2, 2)", "(4, 1)"), ("(3,)", "(4,)"), ("(0, 2)", "(1, 1)"))
    check({
        f"{x} {size} {stride} {at}": f"x = {x}; y = t.as_strided_scatter(x, -t.ones({size}), {size}, {stride}, {at}); "
        "r = [y, y.stride(), y.storage_offset(), y.untyped_storage().nbytes(), y._is_view(), b]"
        for x in inputs for size, stride in parts for at in (None, 0, 3, 5, 6, 11, 20)
    }, "b = t.arange(12.).reshape(3, 4)")  # fmt: skip


@pytest.mark.parametrize("at", (0, 2, 4, 7, 8))
def test_gradients_of_as_strided_scatter(at):
    """By finite differences: what is written outside the tensor has none (PyTorch's are known to be wrong)."""
    base, src = ag.arange(12.0, dtype=ag.float64).reshape(3, 4).requires_grad_(), -ag.ones(2, 2, dtype=ag.float64, requires_grad=True)
    for start in (0, 1):
        assert ag.autograd.gradcheck(lambda x, s: ag.as_strided_scatter((x * 1)[start:], s, (2, 2), (1, 2), at).sin(), (base, src))


@pytest.mark.parity
def test_results_that_are_no_views_are_none_in_batches():
    """Of ops that shape their result last: a batch of results is the base of its views."""
    calls = (
        "v.index_put((t.tensor([0, 2]),), t.ones(2, 3))", "v.index_fill(0, t.tensor([1]), 2.)", "v.take_along_dim(t.zeros(4, 1, dtype=t.int64), 1)",
        "t.cdist(v, v + 1)", "v @ v.T", "v.repeat_interleave(t.tensor([1, 2, 1, 1]), 0)", "v.tile((2, 1))", "t.kron(v, v)", "F.layer_norm(v, (3,))",
    )  # fmt: skip
    check({call: f"y = t.func.vmap(lambda v: {call})(x); r = y._is_view(), y[:1]._base is y" for call in calls}, "x = t.rand(2, 4, 3)")
