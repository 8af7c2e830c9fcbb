"""Drawn equations of einsum against PyTorch, and the places of equal elements."""

import itertools
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402

from .snippets import check  # noqa: E402


def draw(seed):
    """An equation and the shapes of its operands: repeated letters, ellipses, sizes of 1, sometimes an output."""
    r = random.Random(seed)
    letters = "abcdXY"
    sizes = {c: r.choice([1, 2, 3, 4]) for c in letters}
    terms, shapes = [], []
    for _ in range(r.randint(1, 6)):
        term = [r.choice(letters) for _ in range(r.randint(0, 3))]
        if r.random() < 0.3:
            term.insert(r.randint(0, len(term)), "...")
        stretched = [n if r.random() < 0.8 else 1 for n in [2, 3][r.randint(0, 2) :]]
        short = {c for c in term if r.random() < 0.08}
        terms.append(term)
        shapes.append([n for c in term for n in (stretched if c == "..." else [1 if c in short else sizes[c]])])
    equation = ",".join("".join(t) for t in terms)
    if r.random() < 0.7:
        used = sorted({c for t in terms for c in t} - {"..."})
        r.shuffle(used)
        out = used[: r.randint(0, len(used))]
        if any("..." in t for t in terms) and r.random() < 0.8:
            out.insert(r.randint(0, len(out)), "...")
        equation += "->" + "".join(out)
    return equation, shapes


@pytest.mark.parametrize("seed", range(40))
def test_einsum(seed):
    equation, shapes = draw(seed)
    rng = np.random.default_rng(seed)
    arrays = [np.asarray(rng.normal(size=s)) for s in shapes]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    mine = [ours.tensor(a, requires_grad=True) for a in arrays]
    y, z = torch.einsum(equation, *theirs), ours.einsum(equation, *mine)
    assert tuple(y.shape) == tuple(z.shape), equation
    np.testing.assert_allclose(z.detach().numpy(), y.detach().numpy(), rtol=1e-9, atol=1e-9, err_msg=equation)
    w = np.asarray(rng.normal(size=tuple(y.shape)))
    y.backward(torch.tensor(w))
    z.backward(ours.tensor(w))
    for a, b in zip(theirs, mine, strict=True):
        np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-9, atol=1e-9, err_msg=equation)


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["float64", "int32", "bool"])
def test_an_einsum_of_one_operand_is_a_view_where_nothing_is_summed(kind):
    """A sum over dims of size 1 has memory and a dtype of its own, as any sum."""
    equations = "iji->j ii-> ii->i ij->j ij->i ij-> ij->ji ij->ij ijk->ik ...i->... i...->... i->i -> i-> iij->j iij->ij"
    for equation, n in itertools.product(equations.split(), (1, 2)):
        term = equation.partition("->")[0].replace("...", "X")

        def told(t, shape, equation=equation):
            x = t.ones(shape, dtype=getattr(t, kind))
            y = t.einsum(equation, x)
            return tuple(y.shape), y.tolist(), str(y.dtype).partition(".")[2], y is x, y._is_view(), y._base is x, y.data_ptr() == x.data_ptr()

        shape = [n if c == "i" else 3 for c in term]
        assert told(ours, shape) == told(torch, shape), (equation, n)


STEPS = {
    "ij,jk->ik": ([(3, 2), (2, 4)], [(3, 1), (1, 4)], [(3, 2), (1, 4)]), "ij,jk,kl->il": ([(3, 2), (1, 4), (4, 3)], [(3, 1), (2, 4), (4, 3)]),
    "bij,bjk->bik": ([(2, 3, 1), (2, 1, 3)], [(2, 3, 2), (2, 2, 3)], [(1, 3, 1), (2, 1, 3)]), "ii,ij->j": ([(1, 1), (1, 3)], [(2, 2), (2, 3)]),
    ",ad,d,X": ([(), (1, 1), (1,), (3,)],), "i,i->": ([(1,), (1,)], [(3,), (3,)], [(3,), (1,)]),
}  # fmt: skip


@pytest.mark.parametrize("equation", STEPS)
@pytest.mark.parametrize("kinds", ["float32 float64 float64 float32", "float64 float32 float32 float64", "float32 float32 float64 float64"])
def test_einsum_of_mixed_dtypes_is_refused_where_a_step_is_a_matrix_product(equation, kinds):
    """A sum over one element is none, so that what stands beside it is multiplied element by element, and promoted."""
    check({
        f"{equation} {shapes}": f"r = t.einsum('{equation}', {', '.join(f't.ones({s}, dtype=t.{k})' for s, k in zip(shapes, kinds.split()))})"
        for shapes in STEPS[equation]
    }, kinds=True)  # fmt: skip


@pytest.mark.parametrize("beta", [0, 1])
@pytest.mark.parametrize("kind", ["float64", "int64", "bool"])
def test_addr_has_the_order_of_dims_of_what_is_added_to(beta, kind):
    inputs = {
        "C": "t.ones(3, 4)", "turned": "t.ones(4, 3).t()", "row": "t.ones(4)", "column": "t.ones(3, 1)", "expanded": "t.ones(4).expand(3, 4)",
        "one": "t.ones(())", "gaps": "t.ones(3, 8)[:, ::2]",
    }  # fmt: skip
    check({
        f"{name} {part}": f"r = t.addr({x}.to(t.{kind}), t.ones(6).to(t.{kind})[{part}], t.ones(4).to(t.{kind}), beta={beta}).stride()"
        for name, x in inputs.items() for part in ("::2", ":3")
    })  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 17, 100, 3000])
@pytest.mark.parametrize("values", [2, 5, 1000])
def test_equal_elements_are_named_as_pytorch_names_them(n, values):
    rng = np.random.default_rng(n * values)
    for _ in range(5):
        a = rng.integers(0, values, n)
        x, y = torch.tensor(a), ours.tensor(a)
        for name in ("median", "mode"):
            assert getattr(y, name)(0).indices.item() == getattr(x, name)(0).indices.item(), name
        for k in {1, 2, n // 3, n} - {0}:
            if k <= n:
                for largest in (True, False):
                    assert y.topk(k, largest=largest).indices.tolist() == x.topk(k, largest=largest).indices.tolist()
        b = np.where(rng.random(n) < 0.1, np.nan, a)
        assert ours.tensor(b).nanmedian(0).indices.item() == torch.tensor(b).nanmedian(0).indices.item()
        k = rng.integers(1, n + 1)
        assert y.kthvalue(int(k)).indices.item() == x.kthvalue(int(k)).indices.item()


@pytest.mark.parity
@pytest.mark.parametrize("bias", (None, (), (1,), (3,), (2, 3), (1, 3)))
def test_which_results_of_linear_are_views(bias):
    """PyTorch's are where it adds a row to a product of rows, and need not copy the operand."""
    operands = {
        "a vector": "t.ones(4)", "rows": "t.ones(2, 4)", "several": "t.ones(5, 2, 4)", "more": "t.ones(5, 2, 2, 4)", "turned": "t.ones(5, 4, 2).mT",
        "expanded": "t.ones(1, 2, 4).expand(5, 2, 4)", "gaps": "t.ones(5, 2, 8)[..., ::2]", "none": "t.ones(2, 0, 8)[..., ::2]", "one": "t.ones(1, 1, 4)",
    }  # fmt: skip
    b = "None" if bias is None else f"t.ones({bias}, requires_grad=True)"
    check({
        f"{name}, {changed}": f"y = F.linear({x}, t.ones(3, 4, requires_grad=True), {b}); r = y._is_view(), y.stride()\n{changed}"
        for name, x in operands.items()
        for changed in ("r = r, y", "y.detach_()", "y.mul_(2); y.sum().backward(); r = r, y")
    })  # fmt: skip


def multiplied(lib, m, n, way):
    """Products with vectors, three times, as later calls are known: what lies apart, is expanded, turned or empty."""
    a, v = lib.arange(m * n * 1.0, dtype=lib.float64).sin().reshape(m, n), lib.arange(2.0 * n, dtype=lib.float64).cos()
    a, v = a.requires_grad_(), v.requires_grad_()
    left = a.t().clone().t() if way == "turned" else a
    right = {"apart": v[::2], "expanded": v[:1].expand(n)}.get(way, v[:n])
    for _ in range(3):
        y = left @ right
        z = right @ right if n else left.sum()
        w = lib.mv(left, right) + lib.dot(right, right)
    (y.sum() + z + w.sum()).backward()
    return [t.detach().numpy() for t in (y, z, w, a.grad, v.grad)], y.grad_fn.name(), [y.stride(), z.stride()]


@pytest.mark.parametrize("way", ["plain", "turned", "apart", "expanded"])
@pytest.mark.parametrize(("m", "n"), [(3, 4), (1, 5), (4, 1), (300, 7), (0, 3), (3, 0)])
def test_matrix_times_vector(m, n, way):
    if way == "expanded" and not n:
        n = 1
    (found, *more), (wanted, *others) = (multiplied(lib, m, n, way) for lib in (ours, torch))
    assert more == others
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("call", ["m @ w", "m.mv(w)", "v.dot(w)", "v @ w", "m @ i", "v.dot(i)"])
def test_vectors_that_do_not_fit_are_refused_however_often_products_were_taken(call):
    check({f"{call} {k}": (
        f"m, v, w, i = t.ones(2, 3), t.ones(3), t.ones(4), t.ones(3, dtype=t.int64)\nfor _ in range({k}):\n    r = m @ v, v @ v, m.mv(v), v.dot(v)\n{call}"
    ) for k in (0, 3)}, kinds=True)  # fmt: skip


PRODUCTS = {
    "prod": lambda x: x.prod(), "prod of rows": lambda x: x.view(1, -1).prod(1), "prod of one dim": lambda x: x.prod(0),
    "cumprod": lambda x: x.cumprod(0), "cumprod of rows": lambda x: x.view(1, -1).cumprod(1),
}  # fmt: skip


def slopes(t, f, values):
    """The gradient of a product by itself, recorded, and that of the recorded one."""
    x = t.tensor(values, dtype=t.float64, requires_grad=True)
    y = f(x)
    w = t.arange(1, y.numel() + 1, dtype=t.float64).view(y.shape)
    alone, = t.autograd.grad(y, x, w, retain_graph=True)
    recorded, = t.autograd.grad(y, x, w, create_graph=True)
    total = (recorded * t.arange(1, len(values) + 1, dtype=t.float64)).sum()
    second, = t.autograd.grad(total, x, allow_unused=True) if total.requires_grad else (None,)
    return [np.zeros(len(values)) if g is None else g.detach().numpy() for g in (alone, recorded, second)]


@pytest.mark.parametrize("name", PRODUCTS)
def test_slopes_of_products_with_zeros_and_what_is_not_finite(name):
    """To the nan: which products a derivative is made of shows where 0 meets infinity."""
    other = []
    for values in itertools.product([1.5, 0.0, np.inf, np.nan], repeat=3):
        found, expected = slopes(ours, PRODUCTS[name], values), slopes(torch, PRODUCTS[name], values)
        if name == "prod of one dim" and values.count(0.0) == 2:
            found[0] = expected[0]  # its rule does not know whether a dim was named: of two zeros there is no slope (PyTorch's is nan beside infinity)
        if not all(np.array_equal(f, e, equal_nan=True) for f, e in zip(found, expected)):
            other.append((values, found, expected))
    assert not other


#: products of bools of sizes m, k and n
BOOLS = (
    "mm(b(m, k), b(k, n))", "b(m, k) @ b(k, n)", "bmm(b(2, m, k), b(2, k, n))", "bmm(b(0, m, k), b(0, k, n))", "mv(b(m, k), b(k))", "dot(b(k), b(k))",
    "vdot(b(k), b(k))", "addmm(b(m, n), b(m, k), b(k, n))", "addmm(b(m, n), b(m, k), b(k, n), beta=0, alpha=2)", "addmv(b(m), b(m, k), b(k))",
    "baddbmm(b(2, m, n), b(2, m, k), b(2, k, n))", "tensordot(b(m, k), b(k, n), 1)", "inner(b(m, k), b(n, k))", "b(2, m, k) @ b(k, n)",
    "linalg.matrix_power(b(k, k), 2)", "linalg.multi_dot([b(m, k), b(k, n), b(n, 2)])", "F.linear(b(m, k), b(n, k))",
    "F.bilinear(b(2, m), b(2, k), b(n, m, k))", "einsum('ij,jk->ik', b(m, k), b(k, n))", "tensordot(b(m, k), b(m, k), 2)", "inner(b(k), b(k))",
)  # fmt: skip


@pytest.mark.parity
def test_bools_are_multiplied_by_no_product_and_nothing_else_makes_them_known():
    """What PyTorch takes is where there is nothing to multiply; each product is asked for also after all others were."""
    sizes = ((0, 3, 2), (2, 0, 3), (0, 0, 2), (2, 3, 0), (0, 0, 0), (2, 3, 2))
    ones = "b = lambda *s: t.ones(s, dtype=t.bool)\nm, k, n = {}"
    for times in range(2):
        check({
            f"{call} of {size}, {times}": f"{ones.format(size)}\nr = {call if call[:2] in ('F.', 'b(') else 't.' + call}"
            for call in BOOLS for size in sizes
            if not ("bilinear" in call and 0 in size)  # (whose reshape PyTorch cannot tell the sizes of)
        })  # fmt: skip


LYING = {
    "rows": lambda t, m, n: t.arange(float(m * n)).view(m, n), "columns": lambda t, m, n: t.arange(float(m * n)).view(n, m).t(),
    "cut": lambda t, m, n: t.arange(float(m * n + 2 * m)).view(m, n + 2)[:, :n], "expanded": lambda t, m, n: t.arange(float(n)).expand(m, n),
    "cut columns": lambda t, m, n: t.arange(float(m * n + 2 * n)).view(n, m + 2)[:, :m].t(),
}  # fmt: skip


@pytest.mark.parametrize("name", ["mm", "matmul", "addmm", "turned", "einsum", "linear", "linear with a bias"])
@pytest.mark.parametrize(("m", "k", "n"), [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1)])
def test_gradients_of_products_lie_as_the_matrices_do(name, m, k, n):
    """Which saves a copy of the gradient of a weight that is turned."""
    calls = {
        "mm": lambda t, a, b: t.mm(a, b), "matmul": lambda t, a, b: a @ b, "addmm": lambda t, a, b: t.addmm(t.ones(n), a, b),
        "turned": lambda t, a, b: a @ b.t().contiguous().t(), "einsum": lambda t, a, b: t.einsum("ij,jk->ik", a, b),
        "linear": lambda t, a, b: t.nn.functional.linear(a, b.t()), "linear with a bias": lambda t, a, b: t.nn.functional.linear(a, b.t(), t.ones(n)),
    }  # fmt: skip
    if name == "einsum" and 1 in (m, k, n):
        return
    for first, second in itertools.product(LYING.values(), repeat=2):
        lie_alike(calls[name], lambda t, first=first, second=second: [first(t, m, k), second(t, k, n)])


def lie_alike(call, operands):
    """Gradients of a call have PyTorch's strides and numbers, recorded or not; ``operands(t)``: of a library."""
    told = []
    for t in (torch, ours):
        given = [x.requires_grad_() for x in operands(t)]
        found = []
        for _ in range(3):  # the second and third are found by what they are known by
            found += [t.autograd.grad(call(t, *given).sin().sum(), given, create_graph=again) for again in (False, True)]
        told.append([(g.stride(), g.detach().numpy()) for both in found for g in both])
    assert [stride for stride, _ in told[0]] == [stride for stride, _ in told[1]]
    for (_, theirs), (_, mine) in zip(*told, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


IN_BATCHES = {
    "in order": lambda x: x, "turned": lambda x: x.mT.contiguous().mT, "batch inside": lambda x: x.movedim(0, -2).contiguous().movedim(-2, 0),
    "batch last": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0), "cut": lambda x: x.repeat_interleave(2, -1)[..., ::2],
}  # fmt: skip
#: left out: a matrix times a batch, which PyTorch folds; and einsum of what lies otherwise, whose dims stay here in the order in which operands hold them
BATCHED = {
    "bmm": (lambda t, a, b: t.bmm(a, b), (2, 3, 4), (2, 4, 5)), "matmul": (lambda t, a, b: a @ b, (2, 3, 4), (2, 4, 5)),
    "times a matrix": (lambda t, a, b: a @ b, (2, 3, 4), (4, 5)), "broadcast": (lambda t, a, b: a @ b, (2, 1, 3, 4), (2, 4, 5)),
    "baddbmm": (lambda t, a, b: t.baddbmm(t.ones(5), a, b), (2, 3, 4), (2, 4, 5)), "linear": (lambda t, a, b: t.nn.functional.linear(a, b), (2, 3, 4), (5, 4)),
    "linear with a bias": (lambda t, a, b: t.nn.functional.linear(a, b, t.ones(5)), (2, 3, 4), (5, 4)),
    "linear of two batches": (lambda t, a, b: t.nn.functional.linear(a, b), (2, 2, 3, 4), (5, 4)),
    "einsum": (lambda t, a, b: t.einsum("bij,bjk->bik", a, b), (2, 3, 4), (2, 4, 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", BATCHED)
def test_gradients_of_batched_products_lie_as_theirs(name):
    call, first, second = BATCHED[name]

    def made(t, shape, lies):
        x = t.arange(float(np.prod(shape))).view(shape)
        return lies(x) if len(shape) > 2 else lies(x[None])[0]

    for one, other in itertools.product(IN_BATCHES.values(), repeat=2):
        lie_alike(call, lambda t, one=one, other=other: [made(t, first, one), made(t, second, other)])


@pytest.mark.parity
@pytest.mark.parametrize("turned", [False, True])
def test_the_gradient_by_a_matrix_beside_a_batch_lies_as_it_does(turned):
    """Recorded or not, and of second derivatives."""

    def strides(t):
        found = []
        operands = (((3, 4), (5, 4, 2)), ((3, 4), (2, 5, 4, 2)), ((5, 2, 3), (3, 4)), ((3, 4), (5, 2, 4)))
        for record, shapes in itertools.product((False, True), operands):
            a, b = (t.linspace(-1, 1, int(np.prod(s))).reshape(s[::-1] if turned else s) for s in shapes)
            a, b = (x.permute(*range(x.ndim)[::-1]).requires_grad_() if turned else x.requires_grad_() for x in (a, b))
            y = t.nn.functional.linear(b, a) if shapes[1] == (5, 2, 4) else a @ b
            grads = t.autograd.grad((y * y).sum(), [a, b], create_graph=record)
            if record:
                grads = (*grads, *t.autograd.grad(sum((g * g).sum() for g in grads), [a, b]))
            found.append([g.stride() for g, x in zip(grads, (a, b) * 2, strict=False) if x.ndim == 2])
        return found

    assert strides(ours) == strides(torch)


@pytest.mark.parity
def test_einsum_of_nothing_and_of_other_subscripts():
    calls = ("''", "'', []", "", "x, [-1]", "x, [52]", "x, [0], [52]", "x, [0.0]", "'ij', y", "'i', x, x", "'i,j', x", "'i->j', x", "'i->ii', x")
    check({call: f"r = t.einsum({call})" for call in calls}, "x, y = t.ones(2), t.ones(2)", kinds=True)
