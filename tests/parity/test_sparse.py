"""Sparse tensors beside PyTorch's: values, gradients and their forms, errors, updates from sparse gradients, files."""

from __future__ import annotations

import inspect
import io

import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402

from .snippets import check as check_snippets  # noqa: E402

I, V, W = [[0, 1, 1, 0], [2, 0, 2, 2]], [3.0, 4.0, 5.0, 6.0], [[1.0, -2.0], [3.0, 0.5], [-1.0, 4.0]]


def plain(x):
    """What can be compared: shape, layout, dtype and elements of a tensor."""
    if hasattr(x, "layout") and hasattr(x, "to_dense"):
        parts = []
        if str(x.layout) == "torch.sparse_coo":
            c = x.detach().coalesce()
            parts = [c.indices().tolist()]
        elif str(x.layout) == "torch.sparse_csr":
            parts = [x.crow_indices().tolist(), x.col_indices().tolist()]
        return [str(x.layout), str(x.dtype), list(x.shape), parts, flat(x.detach().to_dense())]
    return [plain(v) for v in x] if isinstance(x, (list, tuple)) else x


def flat(x):
    return x.double().flatten().tolist()


def same(a, b):
    """Whether two results are, but for rounding."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == pytest.approx(b, rel=1e-5, abs=1e-6, nan_ok=True) if isinstance(a, float) and isinstance(b, float) else a == b


PROGRAMS = {
    "coalesce": "s.coalesce(), s._nnz(), s.coalesce()._nnz(), s.is_coalesced(), s.sparse_dim(), s.dense_dim(), s._values(), s._indices()",
    "kinds": "s.is_sparse, c.is_sparse, str(c.layout), w.is_sparse, c.crow_indices(), c.col_indices(), c.values(), w.sparse_dim(), w.dense_dim()",
    "conversions": "w.to_sparse(), w.to_sparse(1), w.to_sparse_csr(), s.to_sparse_csr(), c.to_sparse_coo(), c.to_sparse(), w.to_dense(), c.to_dense()",
    "products": "s @ w, torch.mm(s, w), torch.sparse.mm(s, w), s.mv(w[:, 0]), c @ w, torch.mv(c, w[:, 0]), torch.matmul(s, w), w.t() @ s.t()",
    "sparse by sparse": "torch.sparse.mm(s, s.t())",
    "addmm": "torch.addmm(h, s, w), torch.sparse.addmm(h, s, w, beta=2, alpha=3), torch.addmm(h, c, w, alpha=0.5)",
    "sums": "torch.sparse.sum(s), torch.sparse.sum(s, 0), torch.sparse.sum(s, (0, 1)), torch.sparse.sum(b, 2), torch.sparse.sum(b, (0, 2)), s.sum()",
    "softmax": "torch.sparse.softmax(s, 1), torch.sparse.log_softmax(s, 0), torch.sparse.softmax(b, 1), torch.sparse.softmax(b, 2)",
    "arithmetic": "s * 2, 2 * s, s / 2, -s, s + s, s - 2 * s, x + s, x - s, s * s, s.pow(2), s.abs(), torch.sqrt(s), s.sin(), x * s.coalesce()",
    "shapes": "s.t(), s.transpose(0, 1), b.transpose(0, 1), s.unsqueeze(0), s[1], b[0], torch.cat([s, s]), torch.cat([s, s], 1), s.T",
    "casts": "s.double(), s.to(torch.float64), s.long(), s.clone(), s.detach(), s.type(), torch.zeros_like(s), s.float(), s.dtype, s.shape, s.numel()",
    "masks": "x.sparse_mask(s.coalesce()), x.sparse_mask(c)",
    "new": "s.new(torch.tensor(I), torch.tensor(V)), s.new(torch.tensor(I), torch.tensor(V), (2, 4)), s.new(2, 3), s.double().new(2, 3)",
    "legacy": "torch.sparse.FloatTensor(torch.tensor(I), torch.tensor(V), torch.Size([2, 3])), torch.sparse.FloatTensor(2, 3)",
    "made": "torch.sparse_coo_tensor(I, V), torch.sparse_coo_tensor((2, 3)), torch.sparse_coo_tensor(I, [1, 2, 3, 4], (2, 4), dtype=torch.float64)",
    "in place": "s.clone().mul_(3), s.clone().zero_(), x.clone().add_(s, alpha=-2), s.clone().add_(s), s.clone().copy_(s * 2)",
    "of nothing": "torch.zeros(2, 3, layout=torch.sparse_coo), torch.empty((2, 3), layout=torch.sparse_coo, dtype=torch.int64), s.new_zeros(2), "
    "b.new_empty(2, 2, 2)",
    "of nothing, by rows": "torch.zeros(2, 3, layout=torch.sparse_csr), w.new_zeros(2, 2, layout=torch.sparse_csr), "
    "torch.zeros_like(s, layout=torch.sparse_csr)",
    "as others": "torch.zeros_like(s, layout=torch.strided), torch.zeros_like(w, layout=torch.sparse_coo), "
    "s.new_zeros(2, layout=torch.strided), torch.zeros_like(c)",
    "stacked": "torch.stack([s, s * 2]), torch.stack([s, s], 1), torch.stack([s, s], -1), torch.stack([b, b])",
    "narrowed": "s.narrow_copy(1, 0, 2), s.narrow_copy(0, 1, 1), b.narrow_copy(2, 1, 1), b.narrow_copy(1, 0, 0)",
    "print": "repr(s), repr(s.coalesce()), repr(c), repr(s.double()), repr(b), repr(torch.sparse_coo_tensor((2, 3))), repr(r)",
    "norm": "s.norm(), torch.norm(s)",
    "batches": "torch.bmm(torch.stack([s, s * 2]), torch.stack([w, -w])), torch.stack([s]).bmm(w[None])",
    "divided, rounded down": "s // 2, torch.floor_divide(s, torch.tensor(4.0)), s.clone().floor_divide_(3), torch.div(s, 2, rounding_mode='floor')",
    "sparse products": "torch.smm(s, w), torch.hspmm(s, w), torch.dsmm(s, w), torch.spmm(s, w), s.smm(w), "
    "torch.sspaddmm(h.to_sparse(), s, w, beta=2, alpha=3), torch.saddmm(h.to_sparse(), s, w), torch.hsmm(s, w)",
    "resized": "s.clone().sparse_resize_((4, 3), 2, 0), b.clone().sparse_resize_((2, 3, 4), 2, 1)._values().flatten()[:6], "
    "s.clone().resize_as_(torch.zeros(3, 5).to_sparse()), "
    "s.clone().sparse_resize_and_clear_((2, 2, 2), 1, 2), torch.zeros_like(s).sparse_resize_((1, 2, 3), 1, 2), s.new().resize_as_(b)",
    "of nothing, added": "torch.zeros(2, 3, layout=torch.sparse_coo) + rows, rows - torch.zeros(2, 3, layout=torch.sparse_coo), "
    "torch.add(torch.zeros(2, 3, layout=torch.sparse_coo), rows, alpha=3), torch.zeros(2, 3, layout=torch.sparse_coo).add_(rows), "
    "(torch.zeros(2, 3, layout=torch.sparse_coo) + rows).sparse_dim(), torch.zeros(2, 3, layout=torch.sparse_coo) * rows",
    "truth": "one.is_nonzero(), bool(one), bool(one * 0), bool(torch.sparse_coo_tensor(([0, 0],), (-1.0, 1.0), (1,)))",
    "of lists": "torch.sparse_coo_tensor(([0], [2]), 1.0), torch.sparse_coo_tensor(([0], [2]), 1.0, [3, 3])",
    "in place, turned": "s.clone().t_(), s.clone().transpose_(0, 1), torch.sparse_coo_tensor((2, 3, 4)).transpose_(0, 2)",
    "one number": "torch.tensor(0.0).to_sparse(), torch.tensor(2.0).to_sparse(), torch.tensor(0.0).to_sparse(0), "
    "torch.tensor(0.0).to_sparse()._nnz(), torch.tensor(3.0).to_sparse()._nnz(), torch.tensor(0.0).to_sparse()._indices().shape",
    "written": "torch.empty(2, out=s.clone(), requires_grad=True).requires_grad, "
    "torch.zeros(3, 2, out=s.clone()), torch.empty(3, 2, 1, out=b.clone()), torch.zeros((2,), out=s.clone())",
    "batches of nothing": "torch.bmm(torch.sparse_coo_tensor((2, 3, 0)), torch.ones(2, 0, 2)), "
    "torch.bmm(torch.sparse_coo_tensor((0, 3, 2)), torch.ones(0, 2, 2))",
    "transposed, in order": "torch.zeros_like(s).t().is_coalesced(), s.coalesce().t().is_coalesced(), s.coalesce().transpose(0, 0).is_coalesced(), "
    "b.coalesce().permute(0, 1, 2).is_coalesced()",
    "linear": "torch.nn.functional.linear(s, w.t())",
}  # fmt: skip


def names(lib):
    v = lib.tensor(V)
    s = lib.sparse_coo_tensor(I, v, (2, 3))
    return {
        "torch": lib, "I": I, "V": V, "s": s, "w": lib.tensor(W), "h": lib.tensor([[1.0, 2.0], [3.0, 4.0]]), "c": s.coalesce().to_sparse_csr(),
        "x": lib.arange(1.0, 7.0).reshape(2, 3), "b": lib.sparse_coo_tensor([[0, 1, 1], [1, 0, 1]], lib.arange(6.0).reshape(3, 2), (2, 2, 2)),
        "rows": lib.sparse_coo_tensor([[0, 1]], lib.tensor(W)[:, :2].t(), (2, 3)), "one": lib.sparse_coo_tensor(([0],), 2.5, (1,)),
        "r": lib.sparse_coo_tensor(I, V, (2, 3), requires_grad=True),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_are_pytorchs(program):
    here, there = (eval(f"({PROGRAMS[program]},)", names(lib)) for lib in (ours, torch))
    text = [[str(v) if type(v).__name__ in ("dtype", "Size") else plain(v) for v in values] for values in (here, there)]
    for k, (mine, theirs) in enumerate(zip(*text, strict=True)):
        assert same(mine, theirs), (k, mine, theirs)


GRADIENTS = {
    "mm": "torch.sparse.mm(s, w)",
    "matmul": "s @ w",
    "to_dense": "s.to_dense() * h3",
    "addmm": "torch.sparse.addmm(h, s, w, alpha=2)",
    "sum": "torch.sparse.sum(s * 3).reshape(1)",
    "sum of a dim": "torch.sparse.sum(s, 0).to_dense() * h3",
    "coalesce": "s.coalesce().to_dense() * h3",
    "softmax": "torch.sparse.softmax(s.coalesce(), 1).to_dense() * h3",
    "log_softmax": "torch.sparse.log_softmax(s.coalesce(), 1).to_dense() * h3",
    "transpose": "torch.sparse.mm(s.t(), w[:2])",
    "add": "(s + s).to_dense() * h3",
    "values": "s.coalesce().values() * 2",
    "copied": "torch.zeros_like(s).copy_(s).to_dense() * h3",
    "copied and changed": "(torch.zeros_like(s).copy_(s) * 3).to_dense() * h3",
    "stacked": "torch.stack([s, s * 2]).to_dense() * h3",
    "dense + sparse": "(h3 * 2 + s) * h3",
    "nothing + sparse": "(torch.zeros(2, 3, layout=torch.sparse_coo) + s).to_dense() * h3",
    "in place": "(s * 2).t_().to_dense() * h3.t()",
    "batches": "torch.bmm(torch.stack([s, s * 2]), torch.stack([w, -w]))",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", GRADIENTS)
@pytest.mark.parametrize("leaf", ["values", "sparse"])
def test_gradients_are_pytorchs(program, leaf):
    found = []
    for lib in (ours, torch):
        env = names(lib)
        w, v = env["w"].requires_grad_(), lib.tensor([3.0, 4.0, 5.0], requires_grad=leaf == "values")
        s = lib.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], v, (2, 3))
        if leaf == "sparse":
            s = s.coalesce().requires_grad_()
        env.update(s=s, w=w, h3=lib.tensor([[1.0, -2.0, 3.0], [0.5, 2.0, -1.0]]))
        (eval(GRADIENTS[program], env) ** 2).sum().backward()
        g = v.grad if leaf == "values" else s.grad
        if leaf == "sparse" and not g.is_sparse:  # PyTorch's are dense in places; here they are sparse, with the same elements
            g = g.sparse_mask(s.detach())
        found.append([str(g.layout), flat(g.to_dense()), None if w.grad is None else flat(w.grad)])
    assert same(*found), found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", GRADIENTS)
def test_gradients_of_places_that_are_there_twice(program):
    """The leaf is not coalesced: its gradient is that of the sum, and counts once for a place."""
    found = []
    for lib in (ours, torch):
        env = names(lib)
        s = lib.sparse_coo_tensor([[0, 1, 1, 1], [2, 0, 2, 0]], [3.0, 4.0, 5.0, 6.0], (2, 3)).requires_grad_()
        env.update(s=s, h3=lib.tensor([[1.0, -2.0, 3.0], [0.5, 2.0, -1.0]]))
        (eval(GRADIENTS[program], env) ** 2).sum().backward()
        g = s.grad.to_dense() if s.grad.is_sparse else s.grad
        found.append(flat(g * lib.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0]])))  # PyTorch's is dense in places
    assert same(*found), found


ERRORS = [
    "torch.sparse_coo_tensor([0], [1.], (3,))", "torch.sparse_coo_tensor(I, V, (2, 3, 4))", "s.values()", "s.indices()", "w.coalesce()", "w.values()",
    "w.crow_indices()", "s.crow_indices()", "s.numpy()", "s.mm(h)", "s + x", "torch.linalg.svd(s)", "s.view(3, 2)", "torch.fft.fft(s)", "s.cumsum(0)", "s / x",
    "w.sparse_mask(x)", "s.reshape(6)", "w.clone().copy_(s)",
    "r.copy_(s)", "r.mul_(2)", "torch.ones(2, layout=torch.sparse_coo)", "torch.zeros(2, layout=torch.sparse_csr)", "torch.rand(2, layout=torch.sparse_coo)",
    "torch.optim.SparseAdam([torch.zeros(3, layout=torch.sparse_coo)])", "s.narrow_copy(1, -2, 1)", "s.narrow_copy(1, 2, 2)", "torch.stack([s, s.t()])",
    "torch.bmm(s, w)", "torch.bmm(torch.stack([s]), w)", "torch.bmm(torch.stack([s]), x[None])", "torch.bmm(torch.stack([b]), w[None])", "s // s", "w // s",
    "s.new([2])", "s.new((2, 3))", "s.new(w)", "s.new(w.untyped_storage())", "s.clone().sparse_resize_((1, 3), 2, 0)", "s.clone().sparse_resize_((3,), 1, 0)",
    "s.clone().sparse_resize_((2, 3, 1), 2, 1)", "s.clone().sparse_resize_((4, 4), 1, 0)", "b.clone().sparse_resize_((2, 2, 1), 2, 1)", "(r * 1).resize_as_(s)",
    "r.sparse_resize_((4, 4), 2, 0)", "s.resize_as_(w)", "torch.smm(w, w)", "torch.hspmm(s, x)", "torch.sspaddmm(s, s, w)",
    "torch.cat([s, torch.sparse_coo_tensor((4, 4))])", "torch.cat([s, rows])", "torch.cat([s, x])", "torch.cat([s, s], 2)", "torch.cat([s, s], -3)",
    "s.unsqueeze(3)", "s.unsqueeze(-4)", "s.transpose(0, 5)", "b.transpose(0, 2)", "rows.t()", "s.sum(2)", "torch.sparse.sum(s, -3)", "s[5]", "s.select(2, 0)",
    "s + rows", "s * rows", "torch.ones(4) + s", "torch.ones(2, 1) + s", "torch.ones(3) + s", "s.mv(torch.ones(5))", "torch.mv(x, s)",
    "bool(s)", "torch.sparse_coo_tensor(([0, 1],), torch.zeros(2, 0), (4, 0)).is_nonzero()", "torch.ones(2, out=s.clone())",
    "torch.sparse.FloatTensor(device='cuda')", "s.new(device='cuda')", "torch.sparse.FloatTensor([6])", "torch.sparse.FloatTensor((2, 3))",
    "torch.sparse.FloatTensor(w)", "torch.sparse.FloatTensor(w.untyped_storage())", "torch.sparse.FloatTensor(s._indices(), s._values(), device='cuda')",
    "torch.zeros(3, 2, out=r)", "w.to_sparse(0)", "w.to_sparse(3)", "w.to_sparse(-1)", "r.t_()",
    "s.exp()", "torch.nn.functional.conv2d(s, s)", "s.double().mm(w)", "b.to_sparse_csr()[0] if False else b.t()", "torch.sigmoid(s)",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", ERRORS)
def test_errors_are_pytorchs(program):
    with pytest.raises(Exception) as theirs:
        eval(program, names(torch))
    with pytest.raises(Exception) as mine:
        eval(program, names(ours))
    assert issubclass(mine.type, RuntimeError if issubclass(theirs.type, RuntimeError) else theirs.type), (theirs.type, mine.type)


@pytest.mark.parametrize(
    "program",
    ["torch.sparse_coo_tensor([[0, 5]], [1., 2.], (3,))", "torch.sparse_coo_tensor([[0, -1]], [1., 2.], (3,))", "torch.sparse_coo_tensor(I, V, (2, 1))",
     "torch.sparse_csr_tensor([1, 2], [0], [1.])", "torch.sparse_csr_tensor([0, 1], [5], [1.], (1, 2))"],
)  # fmt: skip
def test_places_outside_are_refused(program):
    """As PyTorch does where its checks of invariants are switched on: it would read other memory else."""
    with torch.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError):
        eval(program, names(torch))
    with pytest.raises(RuntimeError):
        eval(program, names(ours))


OPTIMIZERS = {
    "SGD": {"lr": 0.1}, "momentum": {"lr": 0.1, "momentum": 0.9}, "nesterov": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.1}, "SparseAdam": {"lr": 0.1}, "maximize": {"lr": 0.1, "maximize": True},
}  # fmt: skip


@pytest.mark.parametrize("case", OPTIMIZERS)
@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("bag", [None, "sum", "mean"])
def test_sparse_gradients_of_embeddings(case, padding, bag):
    found = []
    for lib in (ours, torch):
        e = lib.nn.Embedding(6, 2, padding, sparse=True) if bag is None else lib.nn.EmbeddingBag(6, 2, mode=bag, padding_idx=padding, sparse=True)
        with lib.no_grad():
            e.weight.copy_(lib.arange(12.0).reshape(6, 2) / 7)
        name = case if hasattr(lib.optim, case) else "SparseAdam" if case == "maximize" else "SGD"
        step = getattr(lib.optim, name)(list(e.parameters()), **OPTIMIZERS[case])
        for i in range(3):
            step.zero_grad()
            for _ in range(2):  # accumulated
                (e(lib.tensor([[1, 1, 3], [5, 0, i]])) ** 2).sum().backward()
            step.step()
        found.append([e.weight.grad.is_sparse, flat(e.weight.data), flat(e.weight.grad.to_dense())])
    assert same(*found), found


@pytest.mark.parametrize("make", ["Adam", "RMSprop", "AdamW"])
def test_other_optimizers_refuse_sparse_gradients(make):
    for lib in (torch, ours):
        e = lib.nn.Embedding(3, 2, sparse=True)
        e(lib.tensor([1])).sum().backward()
        with pytest.raises(RuntimeError, match="sparse gradients"):
            getattr(lib.optim, make)(e.parameters(), lr=0.1).step()


@pytest.mark.filterwarnings("ignore")
def test_files_go_both_ways():
    for first, second in ((ours, torch), (torch, ours)):
        env, file = names(first), io.BytesIO()
        first.save({"s": env["s"], "c": env["c"]}, file)
        file.seek(0)
        read = second.load(file)
        assert plain(read["s"]) == plain(env["s"]) and plain(read["c"]) == plain(env["c"])


@pytest.mark.parametrize("op", ["mm", "to_dense", "softmax", "add"])
def test_gradcheck_through_values(op):
    calls = {
        "mm": lambda s, w: ours.sparse.mm(s, w), "to_dense": lambda s, w: s.to_dense() @ w,
        "softmax": lambda s, w: ours.sparse.softmax(s, 1).to_dense() @ w, "add": lambda s, w: (s + s * 2).to_dense() @ w,
    }  # fmt: skip
    v, w = ours.tensor(V, dtype=ours.float64, requires_grad=True), ours.tensor(W, dtype=ours.float64, requires_grad=True)

    def f(v, w):
        return calls[op](ours.sparse_coo_tensor(I, v, (2, 3)), w)

    assert ours.autograd.gradcheck(f, (v, w)) and ours.autograd.gradgradcheck(f, (v, w))


@pytest.mark.parity
def test_sparse_gradients_by_frequency_are_refused_when_they_are_asked_for():
    """The rows themselves are computed."""
    weight = "w = t.arange(12.).reshape(4, 3).requires_grad_(); i = t.tensor([[1, 2], [1, 3]]); s = t.ones(2, 2, requires_grad=True)\n"
    calls = {
        "rows": "y = F.embedding(i, w, sparse=True, scale_grad_by_freq=True)",
        "sums": "y = F.embedding_bag(i, w, mode='sum', sparse=True, scale_grad_by_freq=True)",
        "means": "y = F.embedding_bag(i, w, mode='mean', sparse=True, scale_grad_by_freq=True, padding_idx=1)",
        "weighted": "y = F.embedding_bag(i, w, mode='sum', sparse=True, scale_grad_by_freq=True, per_sample_weights=s)",
    }
    for then in ("", "; y.sum().backward()"):
        check_snippets({name: f"{weight}{call}{then}; r = y" for name, call in calls.items()}, kinds=True)


@pytest.mark.parity
def test_a_product_by_its_old_name():
    check_snippets({"dsmm": "r = t.dsmm(t.tensor([[0., 2.], [1., 0.]]).to_sparse(), t.arange(6.).reshape(2, 3))"}, "")


@pytest.mark.parity
def test_transposes_of_batches():
    check_snippets({name: f"s = t.arange(24.).reshape(2, 3, 4).to_sparse(); r = s.{name}.to_dense()" for name in ("mT", "transpose(-1, 0)")}, "")


@pytest.mark.parametrize("op", ["add", "sub", "mul", "add_", "sub_", "mul_", "div_"])
@pytest.mark.parametrize("first", ["uint8", "int16", "int64", "float32", "float64"])
def test_two_dtypes(op, first):
    """Promoted as dense ones, before anything is computed; in place the dtype stays, and what it cannot hold is refused."""

    def outcome(lib, second, sparse):
        a = lib.tensor([[1, 0, 3], [2, 250, 0]]).to(getattr(lib, first))
        b = lib.tensor([[1, 2, 0], [5, 250, 0]]).to(getattr(lib, second))
        a, b = a.to_sparse() if sparse[0] else a, b.to_sparse() if sparse[1] else b
        if op == "div_":
            b = lib.tensor(2, dtype=getattr(lib, second))
        try:
            return plain(getattr(a.clone(), op)(b))
        except (RuntimeError, TypeError) as error:
            return type(error).__name__

    for second in ("uint8", "int16", "int64", "float32", "float64"):
        for sparse in ((True, True), (False, True)):
            if op != "div_" or sparse[0]:
                mine, theirs = outcome(ours, second, sparse), outcome(torch, second, sparse)
                assert mine == theirs, (second, sparse, mine, theirs)


#: an op with ``out=`` for each handler that has one, and what it writes into
WRITTEN = {
    "add": ("torch.add(s, s, out=o)", "s"), "sub": ("torch.sub(s, s, out=o)", "s"), "subtract": ("torch.subtract(s, s, out=o)", "s"),
    "mul": ("torch.mul(s, s, out=o)", "s"), "multiply": ("torch.multiply(s, s, out=o)", "s"), "div": ("torch.div(s, 2, out=o)", "s"),
    "divide": ("torch.divide(s, 2, out=o)", "s"), "true_divide": ("torch.true_divide(s, 2, out=o)", "s"),
    "floor_divide": ("torch.floor_divide(s, 2, out=o)", "s"), "mm": ("torch.mm(s, d, out=o)", "d"), "matmul": ("torch.matmul(s, d, out=o)", "d"),
    "spmm": ("torch.spmm(s, d)", "d"), "addmm": ("torch.addmm(d, s, d, out=o)", "d"),
    "bmm": ("torch.bmm(torch.stack([s, s]), torch.stack([d, d]), out=o)", "torch.stack([d, d])"), "hspmm": ("torch.hspmm(s, d, out=o)", "d.to_sparse(1)"),
    "hsmm": ("torch.hspmm(s, d, out=o)", "d.to_sparse(1)"), "sspaddmm": ("torch.sspaddmm(s, s, d, out=o)", "s"),
}  # fmt: skip
#: handlers whose ``out`` PyTorch does not write for sparse operands: refused there, or an argument of the others alone
NOT_WRITTEN = {"cat", "concat", "concatenate", "mv", "saddmm", "stack", "sum", "mean", "norm", "__truediv__", "__floordiv__", "__matmul__", "zeros", "empty"}


@pytest.mark.parametrize("name", WRITTEN)
def test_results_are_written_where_out_says(name):
    """What took the word and passed it over had left ``out`` as it was, without a word."""
    code, kind = WRITTEN[name]
    found = []
    for lib in (torch, ours):
        d = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
        given = {"torch": lib, "s": lib.tensor([[0.0, 0.0], [0.0, 3.0]]).to_sparse(), "d": d}
        given["o"] = o = eval(kind, given).clone() * 7
        result = eval(code, given)
        assert "out=" not in code or result is o
        found.append((str(result.layout), result.to_dense().tolist() if result.layout != lib.strided else result.tolist()))
    assert found[0] == found[1]


def test_every_function_with_out_is_among_them():
    ours.ones(2).to_sparse()
    from autograd_nb.sparse.tensor import HANDLERS

    assert {n for n, f in HANDLERS.items() if "out" in inspect.signature(f).parameters} == {*WRITTEN, *NOT_WRITTEN}


def test_results_that_do_not_fit_out_leave_it():
    s, d = ours.eye(2).to_sparse(), ours.ones(2, 2)
    for code, o in (("torch.mm(s, d, out=o)", s.clone()), ("torch.add(s, s, out=o)", d.clone()), ("torch.add(s, s, out=o)", s.double())):
        before = o.to_dense().tolist() if o.is_sparse else o.tolist()
        with pytest.raises((RuntimeError, NotImplementedError)):
            eval(code, {"torch": ours, "s": s, "d": d, "o": o})
        assert (o.to_dense() if o.is_sparse else o).tolist() == before
