"""func: transforms and their compositions, vmap, functional modules."""

from __future__ import annotations

from itertools import product

import pytest

import autograd_nb as torch
from autograd_nb.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)
from autograd_nb.nn import functional as F
from autograd_nb.ops.core.pointwise import Pointwise
from autograd_nb.ops.core.registry import OPS
from autograd_nb.shapes import layout_of

x = torch.tensor([0.5, -1.0, 2.0])
X = torch.linspace(-1, 1, 12).reshape(4, 3)


def close(a, b):
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------------------------------------------- gradients


def test_grad_of_trees_with_aux():
    p = {"w": x, "b": torch.tensor(1.0)}
    (g, (value, aux)) = grad_and_value(lambda p, k: ((p["w"] * k + p["b"]).sum(), {"aux": p["w"] * 3}), has_aux=True)(p, 2.0)
    assert g["w"].tolist() == [2, 2, 2] and g["b"].item() == 3 and value.item() == 6 and close(aux["aux"], x * 3)
    assert not value.requires_grad and not g["w"].requires_grad
    a, b = grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, x * 2)
    assert close(a, x * 2) and close(b, x)


def test_nested_grads_are_not_confused():
    assert grad(grad(grad(lambda t: t**4)))(torch.tensor(2.0)).item() == 48
    assert grad(lambda t: t * grad(lambda s: t * s)(torch.tensor(1.0)))(torch.tensor(3.0)).item() == 6


def test_results_belong_to_outer_graphs_only():
    w = torch.tensor(3.0, requires_grad=True)
    g = grad(lambda t: (t**2 * w).sum())(x)
    g.sum().backward()
    assert close(w.grad, (2 * x).sum())
    with torch.no_grad():
        assert not grad(lambda t: (t**2 * w).sum())(x).requires_grad


def test_maml_step():
    w = torch.tensor(1.0, requires_grad=True)

    def loss(w, a):
        return ((w * a - 1) ** 2).mean()

    def adapted(w):
        return loss(w - 0.1 * grad(loss)(w, x), x)

    expected = torch.autograd.functional.jacobian(adapted, w)
    assert close(grad(adapted)(w.detach()), expected)
    adapted(w).backward()
    assert close(w.grad, expected)


def test_vjp_jvp_linearize():
    out, pull = vjp(lambda a, b: (a * b, {"s": a.sum()}), x, x + 1)
    g = pull((torch.ones(3), {"s": torch.tensor(2.0)}))
    assert close(g[0], x + 3) and close(g[1], x) and close(out[0], x * (x + 1))
    assert close(pull((torch.ones(3), {"s": torch.tensor(0.0)}))[0], x + 1)  # as often as wanted
    out, t = jvp(lambda a: a**2, (x,), (torch.ones(3),))
    assert close(t, 2 * x) and close(out, x**2)
    out, push = linearize(lambda a: a**3, x)
    assert close(push(x), 3 * x**3) and close(push(2 * x), 6 * x**3)
    with pytest.raises(RuntimeError, match="same python structure"):
        jvp(lambda a: a, (x,), (x, x))


def test_matrices():
    f = lambda a: a.exp() * a.sum()
    expected = torch.autograd.functional.jacobian(f, x)
    for j in (jacrev(f), jacfwd(f), jacrev(f, chunk_size=2), vmap(jacrev(f), in_dims=1, out_dims=2)):
        found = j(x if j.__wrapped__ is f else x.unsqueeze(1))
        assert close(found.reshape(3, 3), expected)
    scalar = lambda a: (a.exp() * a.sum()).sum()
    expected = torch.autograd.functional.hessian(scalar, x)
    for h in (hessian(scalar), jacrev(jacrev(scalar)), jacfwd(jacfwd(scalar)), jacrev(jacfwd(scalar))):
        assert close(h(x), expected)
    v = torch.ones(3)
    assert close(jvp(grad(scalar), (x,), (v,))[1], expected @ v)
    assert close(vjp(grad(scalar), x)[1](v)[0], expected @ v)


def test_errors_of_grad():
    with pytest.raises(RuntimeError, match="to return a scalar Tensor"):
        grad(lambda a: a)(x)
    with pytest.raises(RuntimeError, match="Expected f\\(\\*args\\) to return a Tensor"):
        grad(lambda a: 1.0)(x)
    with pytest.raises(RuntimeError, match="only 1 positional inputs"):
        grad(lambda a: a.sum(), argnums=1)(x)


# --------------------------------------------------------------------------------------------------------- vmap


def test_dims():
    assert close(vmap(torch.dot)(X, X), (X * X).sum(1))
    assert close(vmap(lambda a, b: a + b, in_dims=(1, None), out_dims=1)(X, torch.ones(4)), X + 1)
    out = vmap(lambda d: {"a": d["p"] * d["q"]}, in_dims=({"p": 0, "q": None},))({"p": X, "q": x})
    assert close(out["a"], X * x)
    table = vmap(vmap(lambda a, b: a @ b, in_dims=(None, 0)), in_dims=(0, None))(X, X)
    assert close(table, X @ X.T)
    assert vmap(lambda a: (a, 3), out_dims=(0, None))(X)[1] == 3
    assert close(vmap(lambda a: a * 2, chunk_size=3)(X), X * 2)


SAMPLES = {
    "shapes": lambda a: torch.stack([a, a.flip(0)]).transpose(0, 1).reshape(-1)[1:4].unsqueeze(0).expand(2, 3),
    "reductions": lambda a: torch.stack([a.sum(), a.mean(), a.max(), a.std(), a.norm(), a.prod(), a.logsumexp(0)]),
    "softmax": lambda a: torch.softmax(a, -1) + F.log_softmax(a, 0),
    "norm": lambda a: F.layer_norm(a, (3,), torch.ones(3), torch.zeros(3)),
    "linear": lambda a: F.linear(a, torch.ones(2, 3), torch.ones(2)),
    "where": lambda a: torch.where(a > 0, a, 0.0).masked_fill(a < -0.5, 7.0),
    "index": lambda a: a[torch.tensor([2, 0])] * a[0],
    "sort": lambda a: a.sort(descending=True)[0] + a.argmax() + a.argsort(),
    "loss": lambda a: F.cross_entropy(a.unsqueeze(0), torch.tensor([1])) + F.mse_loss(a, a * 0),
    "promotion": lambda a: a.sum().double() * a,
    "conv": lambda a: F.conv1d(a.reshape(1, 1, 3), torch.ones(2, 1, 2)),
    "loop": lambda a: torch.cdist(a.reshape(3, 1), a.reshape(3, 1)),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_vmap_is_a_loop(name):
    f = SAMPLES[name]
    expected = torch.stack([f(r) for r in X])
    found = vmap(f)(X)
    assert found.dtype is expected.dtype and close(found, expected)


def test_in_place_and_indices_of_each_sample():
    def f(a, i):
        y = a.clone()
        y[0] = 1.0
        y += a
        y[i] = 5.0
        return y, a[i]

    index = torch.tensor([0, 1, 2, 1])
    y, picked = vmap(f)(X, index)
    expected = [f(a, i) for a, i in zip(X, index, strict=True)]
    assert close(y, torch.stack([e[0] for e in expected])) and close(picked, torch.stack([e[1] for e in expected]))
    with pytest.raises(RuntimeError, match=r"vmap: .*is not possible"):
        vmap(lambda a: x.clone().add_(a))(X)


def test_tensors_made_beside_a_sample():
    def f(a):
        y, z = torch.zeros_like(a), a.new_ones(2, 3)
        y[1:] = a[:2]
        z[0] *= a
        return y, z

    y, z = vmap(f)(X)
    assert close(y[:, 1:], X[:, :2]) and close(y[:, 0], torch.zeros(4))
    assert close(z[:, 0], X) and close(z[:, 1], torch.ones(4, 3))
    assert close(vmap(vmap(f, in_dims=0))(X.reshape(2, 2, 3))[1].reshape(4, 2, 3), z)
    assert vmap(lambda i: F.one_hot(i, 3))(torch.tensor([1, 2])).tolist() == [[0, 1, 0], [0, 0, 1]]


def test_per_sample_gradients():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    params = {k: p.detach() for k, p in model.named_parameters()}
    target = torch.tensor([0, 1, 1, 0])

    def loss(p, a, y):
        return F.cross_entropy(functional_call(model, p, (a.unsqueeze(0),)), y.unsqueeze(0))

    found = vmap(grad(loss), in_dims=(None, 0, 0))(params, X, target)
    for i in range(4):
        one = grad(loss)(params, X[i], target[i])
        assert all(close(found[k][i], one[k]) for k in params)


def test_convolution_per_sample():
    image, w = torch.randn(2, 3, 5, 5), torch.randn(4, 3, 3, 3)

    def loss(w, a):
        return F.max_pool2d(F.conv2d(a.unsqueeze(0), w, padding=1).relu(), 2).square().sum()

    found = vmap(grad(loss), in_dims=(None, 0))(w, image)
    assert torch.allclose(found, torch.stack([grad(loss)(w, a) for a in image]), rtol=1e-3, atol=1e-3)


def test_ensemble():
    models = [torch.nn.Linear(3, 2) for _ in range(3)]
    params, buffers = stack_module_state(models)
    assert params["weight"].shape == (3, 2, 3) and params["weight"].requires_grad
    out = vmap(lambda p, b: functional_call(models[0], (p, b), (X,)))(params, buffers)
    assert close(out, torch.stack([m(X) for m in models]))


def test_batched_backward():
    a = x.clone().requires_grad_()
    y = a.exp() * a.sum()
    rows = vmap(lambda v: torch.autograd.grad(y, a, v, retain_graph=True)[0])(torch.eye(3))
    (batched,) = torch.autograd.grad(y, a, torch.eye(3), is_grads_batched=True)
    expected = torch.autograd.functional.jacobian(lambda t: t.exp() * t.sum(), x)
    assert close(rows, expected) and close(batched, expected)


def test_compositions():
    f = lambda a: (a.exp() * a.sum()).sum()
    assert close(vmap(hessian(f))(X), torch.stack([hessian(f)(r) for r in X]))
    assert close(jacrev(vmap(f))(X).sum(1), vmap(grad(f))(X))
    _, t = vmap(lambda a, v: jvp(f, (a,), (v,)))(X, X)
    assert close(t, (vmap(grad(f))(X) * X).sum(1))
    w = torch.ones(3, requires_grad=True)
    vmap(lambda a: (a * w).sin().sum())(X).sum().backward()
    assert close(w.grad, (X.cos() * X).sum(0))


def test_randomness():
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda a: a + torch.rand(3))(X)
    same = vmap(lambda a: a * 0 + torch.rand(3), randomness="same")(X)
    different = vmap(lambda a: F.dropout(a * 0 + 1, 0.5), randomness="different")(torch.ones(6, 50))
    assert close(same[0], same[1]) and not close(different[0], different[1])


DRAWS = {
    "rand": lambda t: torch.rand(4), "randn": lambda t: torch.randn(2, 2), "randperm": lambda t: torch.randperm(4), "rand_like": torch.rand_like,
    "randint": lambda t: torch.randint(0, 9, (4,)), "normal": lambda t: torch.normal(t, t), "bernoulli": lambda t: torch.bernoulli(t * 0.5),
    "dropout": lambda t: F.dropout(t, 0.5), "alpha_dropout": lambda t: F.alpha_dropout(t, 0.5, True), "rrelu": lambda t: F.rrelu(-t, training=True),
    "multinomial": lambda t: torch.multinomial(t, 2), "poisson": torch.poisson, "gumbel_softmax": F.gumbel_softmax,
    "normal_": torch.Tensor.normal_, "uniform_": torch.Tensor.uniform_, "exponential_": torch.Tensor.exponential_, "random_": torch.Tensor.random_,
    "geometric_": lambda t: t.geometric_(0.5), "cauchy_": torch.Tensor.cauchy_, "log_normal_": torch.Tensor.log_normal_,
}  # fmt: skip


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_draws_that_recur_are_refused_too(draw):
    """Calls that have recurred are repeated from notes, which a vmap must see nevertheless."""
    t = torch.ones(4)
    for _ in range(30):
        draw(t)
    places = []
    for _ in range(30):
        with pytest.raises(RuntimeError, match="randomness error mode"):
            vmap(lambda a: a + draw(t).sum())(X)
        places.append(torch.default_generator.get_state().tolist())
    assert places == places[:1] * 30
    assert vmap(lambda a: a * 0 + draw(t).sum(), randomness="same")(X).unique().numel() == 1



def test_what_vmap_refuses():
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        vmap(lambda a: a if a.sum() > 0 else -a)(X)
    with pytest.raises(RuntimeError, match=r"calling .item\(\) on a Tensor"):
        vmap(lambda a: a * a.sum().item())(X)
    with pytest.raises(ValueError, match="same size in the mapped dimension"):
        vmap(torch.add)(X, torch.ones(3, 3))
    with pytest.raises(ValueError, match="in_dim=3 for some input"):
        vmap(torch.sin, in_dims=3)(X)
    with pytest.raises(ValueError, match="must only return Tensors"):
        vmap(lambda a: 1)(X)
    with pytest.raises(ValueError, match="got no inputs"):
        vmap(torch.sin)()
    with pytest.raises(RuntimeError, match="'error', 'different', or 'same'"):
        vmap(torch.sin, randomness="all")


def test_nothing_stays_exchanged():
    run = Pointwise.run
    with pytest.raises(ZeroDivisionError):
        vmap(lambda a: 1 / 0)(X)
    vmap(torch.sin)(X)
    assert Pointwise.run is run


def test_functional_call():
    model = torch.nn.Linear(3, 2)
    own = model.weight
    zero = {"weight": torch.zeros(2, 3), "bias": torch.ones(2)}
    assert functional_call(model, zero, X).tolist() == [[1, 1]] * 4 and model.weight is own
    tied = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2), "b": torch.nn.Linear(2, 2)})
    tied["b"].weight = tied["a"].weight
    tied.forward = lambda t: tied["a"](t) - tied["b"](t)
    out = functional_call(tied, {"a.weight": torch.zeros(2, 2)}, torch.ones(2))
    assert close(out, tied["a"].bias - tied["b"].bias)
    with pytest.raises(RuntimeError, match="Missing key"):
        functional_call(model, {"weight": own}, X, strict=True)
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        functional_call(model, (zero, zero), X)


SHARED = [info.rule for info in OPS.values() if isinstance(info.rule, Pointwise) and len(info.rule.params) > 1]


@pytest.mark.parametrize("op", SHARED, ids=lambda op: op.name)
def test_a_batch_of_one_dtype_is_promoted_as_its_samples_are(op):
    """A batch of numbers has a dim, which counts among different dtypes only: its result need not be asked for otherwise."""

    def promoted(operands):
        try:
            return op.result_dtypes(operands)
        except Exception as error:
            return type(error)

    seen = 0
    for d in (torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128):
        sizes = {"number": (), "vector": (3,)}
        kinds = [*sizes, bool, int, float, complex]
        for drawn in product(kinds, repeat=len(op.params)):
            if any(kind in sizes for kind in drawn):
                sample, batch = [
                    tuple(layout_of((*lead, *sizes[kind]), None, d) if kind in sizes else kind for kind in drawn) for lead in ((), (2,))
                ]
                assert promoted(sample) == promoted(batch), (d, drawn)
                seen += not isinstance(promoted(sample), type)
    assert seen
