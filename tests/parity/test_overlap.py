"""In-place ops on memory that elements share: PyTorch refuses most for expanded tensors, and leaves windows to the user."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ours  # noqa: E402

from .snippets import check  # noqa: E402

#: tensors of shape (3, 4) in which elements share memory, and the memory
EXPANDED = {
    "columns": "x = t.arange(1., 4.)[:, None].expand(3, 4); b = x",
    "rows": "x = t.arange(1., 5.).expand(3, 4); b = x",
    "a number": "x = t.tensor(2.).expand(3, 4); b = x",
}
WINDOWS = {
    "unfold": "b = t.arange(1., 7.); x = b.unfold(0, 4, 1)",
    "unfold by 2": "b = t.arange(1., 9.); x = b.unfold(0, 4, 2)",
    "as_strided": "b = t.arange(1., 13.); x = b.as_strided((3, 4), (2, 1))",
    "as_strided, transposed": "b = t.arange(1., 13.); x = b.as_strided((3, 4), (1, 2))",
}
#: of which each element is changed as often as it appears, in whatever order
COMMUTING = [
    "x.add_(1.)", "x.sub_(1.)", "x.mul_(2.)", "x.div_(2.)", "x.neg_()", "x.fill_(3.)", "x.zero_()", "x.clamp_(1., 2.)", "x.abs_()",
    "x.relu_()", "x.pow_(2.)", "x.sqrt_()", "x.reciprocal_()", "x.masked_fill_(x > 2, 0.)", "x.index_fill_(0, i, 7.)", "x[x > 2] = 0.",
    "x[i] = 9.", "x[1, 1] = 3.", "x += 1", "x[0] += 1", "x[0] = 5.", "x[:, 0] = 5.", "x.detach().zero_()", "x.T.add_(1)", "F.relu(x, inplace=True)",
    "x.sign_()", "x.square_()", "x.floor_()", "x.round_()", "t.zeros(x.shape, out=x)", "t.full(x.shape, 2., out=x)", "nn.init.zeros_(x)",
]  # fmt: skip
#: refused for expanded tensors
REFUSED = [
    "x.copy_(w)", "x.add_(w)", "x.mul_(w)", "x.lerp_(w, 0.5)", "x.addcmul_(w, w)", "x.atan2_(w)", "x.index_add_(0, i, w[:2])",
    "x.index_copy_(0, i, w[:2])", "x.scatter_(0, i2, 7.)", "x.scatter_add_(0, i2, w[:2])", "x.uniform_()", "x.normal_()", "x.bernoulli_()",
    "x.exponential_()", "x.cumsum_(0)", "x.cumprod_(0)", "x.eq_(2.)", "x.lt_(w)", "x.logical_not_()", "x.renorm_(2, 0, 1.)", "x.fill_diagonal_(5.)",
    "x.masked_scatter_(w > 2, w)", "x.put_(i, w.flatten()[:2])", "x[...] = 5.", "x[...] = w", "x *= w", "x[:] = x.clone()", "x.fill_(t.tensor(2.))",
    "t.add(w, w, out=x)", "t.exp(w, out=x)", "t.cat([w], out=x)", "t.add(x, 1, out=x)", "x.clip_(1., 2.)", "x.remainder_(2.)",
]  # fmt: skip
OPERANDS = "\nkept = x; w = (t.arange(12.) / 5 + 1).reshape(3, 4); i = t.tensor([0, 2]); i2 = t.tensor([[0, 1, 1, 0], [0, 0, 2, 1]])"


@pytest.mark.parity
@pytest.mark.parametrize("source", EXPANDED)
def test_expanded(source):
    check({call: f"{call}\nr = x, b" for call in COMMUTING + REFUSED}, EXPANDED[source] + OPERANDS)


#: of which what is written last stays
ORDERED = ["x.copy_(w)", "x.atan2_(w)", "x.lerp_(w, 0.5)", "x.copysign_(-w)", "x[:] = w", "t.add(w, 1, out=x)"]


@pytest.mark.parity
@pytest.mark.parametrize("shape, strides", [((2, 3), (1, 1)), ((3, 2), (1, 1)), ((3, 3), (1, 1)), ((2, 3, 4), (1, 1, 1)), ((3, 4), (2, 1))])
def test_windows_are_walked_in_pytorchs_order(shape, strides):
    size = 1
    for n in shape:
        size *= n
    before = f"b = t.arange(1., 25.); x = b.as_strided({shape}, {strides}); w = (t.arange({size}.) / 7 + 0.3).reshape({shape})"
    check({call: f"{call}\nr = x, b" for call in ORDERED}, before)


@pytest.mark.parity
def test_ops_in_place_that_change_nothing_count():
    check({f"{call}, {x}": f"x = {x}; v = x._version; {call}; r = x._version - v"
           for call in ("x.conj_physical_()", "x.nan_to_num_()") for x in ("t.ones(2)", "t.ones(2, dtype=t.int64)", "t.ones(0)", "t.ones(2).requires_grad_()",
                                                                        "t.ones(2).requires_grad_() * 2")})  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("source", WINDOWS)
def test_windows(source):
    check({call: f"{call}\nr = x, b" for call in [*COMMUTING, "x.add_(w)", "x.mul_(w)", "x.sub_(w)", "x[i] = w[:2]"]}, WINDOWS[source] + OPERANDS)


@pytest.mark.parity
@pytest.mark.parametrize("d", ["float32", "int64"])
def test_addmv_of_an_expanded_tensor(d):
    before = f"b = t.arange(1, 4).to(t.{d}); x = b.as_strided((3,), (0,)); m = t.arange(6).reshape(3, 2).to(b.dtype); v = b[1:].clone(); kept = b"
    calls = ["x.addmv_(m, v)", "x.addmv_(m, v, beta=2, alpha=3)", "x.addmv_(m[:2], v)", "x.addmv_(m.half(), v.half())", "x.addmv_(m, b)"]
    check({call: f"{call}\nr = x, b, b._version" for call in calls}, before)


@pytest.mark.parity
@pytest.mark.parametrize("name", ("threshold", "relu", "hardtanh"))
def test_activations_in_place_of_expanded_tensors(name):
    found = []
    for library in (torch, ours):
        x = library.tensor([[-1.0], [0.7], [3.0]]).expand(3, 2)
        try:
            found.append(getattr(library.nn.functional, name)(x, *((0.5, 2.0) if name == "threshold" else ()), inplace=True).tolist())
        except RuntimeError:
            found.append("refused")
    assert found[0] == found[1]


#: of which each write is seen by the next
DIRECT = [
    "x.put_(i, s[:2])", "x.put_(t.tensor([4, -8, 4]), s[:3], accumulate=True)", "x.masked_scatter_(w > 1.5, s)", "x.scatter_(0, i2, 2., reduce='multiply')",
    "x.scatter_reduce_(0, i2, v, 'sum')", "x.scatter_reduce_(0, i2, v, 'amax', include_self=False)", "x.index_reduce_(0, i, v, 'amin')",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("source", ["unfold", "as_strided, transposed"])
def test_ops_by_index_write_into_windows(source):
    before = WINDOWS[source] + OPERANDS + "; s = -t.arange(12.); v = s[:8].reshape(2, 4)"
    check({call: f"{call}\nr = x, b, b._version" for call in DIRECT}, before)
    history = before + "; s.requires_grad_(); v = s[:8].reshape(2, 4); b = b.clone(); x = b.as_strided(x.shape, x.stride())"
    check({call: f"{call}; y = b * t.arange(1., 1 + len(b)); r = y, *t.autograd.grad(y.sum(), [s])" for call in DIRECT[1:3]}, history)


#: operands that lie in the memory that is written to
SHARING = [
    "v = b[:4].add_(b[1:5])", "v = b[1:5].copy_(b[:4])", "b[1:5] = b[:4]", "b[:4] = b[1]", "v = b[:4].mul_(b[0])", "v = b[:4].fill_(b[0])", "v = b.sub_(b[:1])",
    "b[1:5].add_(b.data[:4])", "b.data[1:5].add_(b[:4])", "b.data[1:5].mul_(b.data[:4])", "b[1:5] = b.data[:4]", "b[1:5].copy_(b.data[:4])",
    "t.add(b.data[:4], 1, out=b[1:5])", "b[1:5].index_add_(0, i, b.data[:2])", "b[:3].add_(b.data[3:])", "b.data.add_(b)", "b.data.add_(b.data)",
    "v = b[:4].view(2, 2); v.add_(v.T)", "v = b[:4].view(2, 2); v.copy_(v.T)", "v = b[:4].view(2, 2); v += v[0]", "v = b[::2].add_(b[1::2])",
    "v = b[:4].copy_(b[:4])", "v = b[:4].mul_(b[:4])", "v = b.masked_fill_(b > 2, b[1])", "v = b[:4].lerp_(b[1:5], .5)", "v = b[:4].eq_(b[1:5])",
    "v = b[:4].logical_xor_(b[2:6])", "v = b[:4].clamp_(b[1:5])", "v = b[:4].index_add_(0, i, b[:2])", "v = b.index_copy_(0, i, b[2:4])", "b[i] = b[:2]",
    "b[i] = b[1]", "v = b.scatter_(0, i, b[2:4])", "v = b.put_(i, b[:2])", "v = b.index_fill_(0, i, b[1])", "v = t.add(b[:4], 1, out=b[1:5])",
    "v = t.exp(b, out=b)", "v = t.where(b[:4] > 2, b[:4], 0., out=b[1:5])", "v = t.masked_select(b[::2], b[::2] > 2, out=b[1::2])",
    "v = t.cumsum(b[:4], 0, out=b[1:5])",
]  # fmt: skip


@pytest.mark.parity
def test_operands_in_the_memory_that_is_written_to():
    before = "b = t.arange(1., 7.); kept = b; i = t.tensor([0, 2])"
    check({call: f"{call}\nr = b" for call in SHARING}, before)
    check({call: f"{call}\nr = y, t.autograd.grad(y.sum(), a)" for call in SHARING[:7] + SHARING[17:27] + SHARING[30:31]},
          "a = t.arange(1., 7.).requires_grad_(); b = a * 1; y = b; i = t.tensor([0, 2])")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("source", EXPANDED)
def test_an_expanded_tensor_may_be_written_over_itself(source):
    calls = ["x[...] = x", "x[:] = x", "x[0] = x[0]", "x[..., :2] = x[..., :2]", "x.copy_(x)", "x.copy_(x.view_as(x))", "x[1:] = x[:2]", "x.copy_(x.clone())"]
    square = ["x = x[:, :3]; x.copy_(x.T)"]
    check({call: f"{call}\nr = x, b, b._version" for call in (*calls, *square)}, EXPANDED[source])


#: in place over what is read with gaps, which is saved: the backward pass is refused
SAVED = [
    "b.index_copy_(1, i, v)", "b.index_add_(1, i, v)", "b.index_add_(1, i, v, alpha=2)", "b.index_reduce_(1, i, v, 'amax')", "b.mul_(v)", "b.div_(v)",
    "b.addcmul_(v, v)", "b.lerp_(v, v)", "b.atan2_(v)", "b.clamp_(min=v)", "b.pow_(v)", "b.scatter_reduce_(1, i.expand(2, 1), v, 'sum')",
]
#: and this is not
UNSAVED = [
    "b.scatter_(1, i.expand(2, 1), v)", "b.lerp_(v, 0.5)", "b.index_copy_(1, i, v.clone())", "b.index_add_(1, i, v.detach())",
    "b.mul_(v.clone())", "b.copy_(v)",
]


@pytest.mark.parity
@pytest.mark.parametrize("view", ["b[:, 1:2]", "b[:, ::4]", "b[0, 0].expand(2, 1)"])
def test_what_is_read_in_place_was_saved_before(view):
    before = f"a = t.arange(1., 7.).reshape(2, 3).requires_grad_(); b = a * 1; i = t.tensor([1]); v = {view}"
    check({call: f"{call}\nr = t.autograd.grad((b * b).sum(), a)" for call in (SAVED if view != "b[:, ::4]" else SAVED[:1]) + UNSAVED}, before)


@pytest.mark.parity
def test_one_element_goes_where_a_mask_says_wherever_it_lies():
    masks = ["t.tensor([True, False, True])", "w > 1.5", "[True, False, True],", "None, t.tensor([True, False, True])", "..., w[0] > 1.3"]
    calls = [f"x[{mask}] = {value}" for mask in masks for value in ("x[0, 0]", "x[0, :1]", "x[2:, 3:]", "x[0, :2]", "w[:1, :1]")]
    calls += [
        f"x.index_put_(({mask},), {value}, accumulate={accumulate})"
        for mask in ("w[:, 0] > 1.3", "w > 1.5", "t.tensor([0, 2])") for value in ("x[0, 0]", "x[2:, 3:]", "w[:1, :1]") for accumulate in (True, False)
    ]  # fmt: skip
    check({call: f"{call}\nr = x" for call in calls}, "x = (t.arange(12.) / 7).reshape(3, 4)" + OPERANDS)


SOLVERS = {
    "solve": "t.linalg.solve(a, b, out=o)", "solve, right": "t.linalg.solve(a, b, left=False, out=o)",
    "solve_ex": "t.linalg.solve_ex(a, b, out=(o, t.zeros((), dtype=t.int32)))", "lu_solve": "t.linalg.lu_solve(f, p, b, out=o)",
    "lu_solve, right": "t.linalg.lu_solve(f, p, b, left=False, out=o)", "lu_solve, adjoint": "t.linalg.lu_solve(f, p, b, adjoint=True, out=o)",
    "older lu_solve": "t.lu_solve(b, f, p, out=o)", "cholesky_inverse": "t.cholesky_inverse(b, out=o)", "cholesky_solve": "t.cholesky_solve(b, a, out=o)",
    "solve_triangular": "t.linalg.solve_triangular(a, b, upper=True, out=o)",
}  # fmt: skip
PLACES = ("b", "b.T", "m[1:]", "m.view(-1)[3:].view(3, 3).T", "t.empty(0)", "t.zeros(4, 4)[::2, ::2]", "t.zeros(1, 3)", "t.zeros(6, 6)[::2, ::2]")


@pytest.mark.parity
@pytest.mark.parametrize("name", SOLVERS)
def test_solutions_in_the_memory_of_the_right_hand_side(name):
    before = "m = t.eye(4, 3) * 2 + t.arange(12.).view(4, 3) / 50; b = m[:3]; a = t.eye(3) * 3 + .5; f, p = t.linalg.lu_factor(a)"
    check({o: f"o = {o}; v = o._version; {SOLVERS[name]}\nr = o, o.stride(), o._version - v" for o in PLACES}, before)


#: what changes a view of windows, and records that it does
RECORDED = [
    "v.add_(1.)", "v.mul_(k)", "v.mul_(2.)", "v.exp_()", "v.sigmoid_()", "v.mul_(v.detach())", "v.copy_(k)", "v[0] = k", "v.add_(k * v.detach())",
    "v.pow_(2.)", "v.zero_()", "b.mul_(2.); v.mul_(3.)", "v.mul_(2.).mul_(k)", "v.mul_(k); b.mul_(3.)",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize(
    "view", ("b.unfold(0, 2, 1)", "b.unfold(1, 2, 1)", "b.unfold(0, 3, 2)", "b.unfold(0, 2, 2)", "b.as_strided((3, 3), (1, 1), 2)", "b.t().unfold(1, 2, 1)[1:]")
)
def test_gradients_of_windows_that_were_changed(view):
    before = (
        "x = t.arange(1., 21.).mul(0.1).reshape(4, 5).requires_grad_(); k = t.tensor(0.7, requires_grad=True); b = x * 1\n"
        f"v = {view}; g = t.arange(20.).reshape(4, 5) / 7"
    )
    check({change: f"{change}\n((b * g).sum() + (v * 2).sum()).backward(); r = x.grad, k.grad, b, v" for change in RECORDED}, before)


#: operands that are the very tensor that is written
ITSELF = ["x.add_(x)", "x.sub_(x)", "x.mul_(x)", "x.div_(x)", "x.pow_(x)", "x.atan2_(x)", "x.copysign_(x)", "x.fmod_(x)", "x.lerp_(x, 0.5)", "x.lerp_(x, x)",
          "x.addcmul_(x, x)", "x.addcdiv_(x, x)", "x.hypot_(x)", "x.xlogy_(x)", "x.ge_(x)", "x.copy_(x)", "x.logaddexp(x)"]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("source", ["w * 1", "(w * 1)[0:2]", "(w * 1).T", "(w * 1)[:, ::2]", "w.detach().clone()", "w.detach().clone()[1:]"])
def test_in_place_by_itself_again_and_again(source):
    """What is kept of the first call is as right for the others: values, counts of changes, gradients and what is refused."""
    again = "for _ in range(4):\n    w.grad = None; x = {}; v = x._version; {}\n    if x.requires_grad: x.sum().backward()"
    before = "w = (t.arange(12.) / 5 + 1).reshape(3, 4).requires_grad_()"
    check({call: f"{again.format(source, call)}\nr = x, x._version - v, w.grad" for call in ITSELF}, before)


@pytest.mark.parity
@pytest.mark.parametrize("d", ["float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool", "complex64"])
def test_equal(d):
    before = f"a = (t.arange(2600) % 7 % 3).to(t.{d}); b = a.clone(); b[2599] = 2 if not a[2599] else 0"
    before += "; n = t.full((3,), float('nan')); m = a[:2500].reshape(50, 50)"
    pairs = ["a, a", "a, a.clone()", "a, b", "b, a", "a[:2599], b[:2599]", "a[1:], b[1:]", "a[::2], b[::2]", "m, m.T", "m.T, m.T.clone()", "m.T, m.clone().T",
             "a[:0], b[:0]", "a[:3], a[:4]", "n, n", "a, a.double().real" if "complex" not in d else "a, a"]  # fmt: skip
    check({f"equal({p})": f"for _ in range(3): r = t.equal({p})" for p in pairs}, before)
