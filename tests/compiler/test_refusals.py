"""A value that is refused in the middle of a compiled call leaves what an eager call leaves."""

from __future__ import annotations

import pytest

import autograd_nb as torch
from autograd_nb import nn

from .common import same


def _outcome(step, *args):
    try:
        return "result", step(*args).tolist()
    except (IndexError, RuntimeError) as error:
        return type(error), str(error)


def _train(decorate, optimizer):
    """Losses and refusals of an embedding that is changed before its indices are looked at, and the model in the end."""
    torch.manual_seed(0)
    model = nn.Embedding(4, 2)
    optimizer = optimizer(model.parameters())

    def step(indices):
        with torch.no_grad():
            model.weight.mul_(0.5)
        optimizer.zero_grad()
        loss = model(indices).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = decorate(step)
    return [(_outcome(step, torch.tensor([k, 0])), model.weight._version) for k in (1, 2, 3, 4, 2)], model


@pytest.mark.parametrize(
    "optimizer", [lambda p: torch.optim.SGD(p, 0.1), lambda p: torch.optim.Adam(p, 0.1)], ids=["sgd", "adam"]
)
def test_indices_are_looked_at_before_anything_changes(optimizer):
    expected, eager = _train(lambda f: f, optimizer)
    steps = []

    def decorate(function):
        steps.append(torch.compile(function, fullgraph=True))
        return steps[0]

    found, compiled = _train(decorate, optimizer)
    assert [(kind, version) for (kind, _), version in found] == [(kind, version) for (kind, _), version in expected]
    assert found[3][0] == expected[3][0]  # the refusal
    same(compiled, eager)
    assert not steps[0].programs[0].program.undone


def test_what_has_changed_is_undone():
    total, weight = torch.zeros(2), torch.ones(2, 2, requires_grad=True)

    def step(a):
        total.add_(1)
        weight.grad = None
        (a * weight).sum().backward()
        factor = torch.linalg.cholesky(a * total[0])
        total.add_(1)
        return factor

    compiled = torch.compile(step, fullgraph=True)
    for k in range(3):
        assert compiled(torch.eye(2)).isfinite().all()
        assert (total.tolist(), total._version) == ([2 * k + 2] * 2, 2 * k + 2)
    assert compiled.programs[0].program.undone
    weight.grad = torch.full((2, 2), 7.0)
    with pytest.raises(RuntimeError, match="positive-definite"):
        compiled(-torch.eye(2))
    assert (total.tolist(), total._version, weight.grad.tolist()) == ([7, 7], 7, [[-1, 0], [0, -1]])
    compiled(torch.eye(2))
    assert (total.tolist(), total._version, weight.grad.tolist()) == ([9, 9], 9, [[1, 0], [0, 1]])


def test_a_function_that_handles_refusals():
    count = torch.zeros(1)

    def step(a):
        count.add_(1)
        try:
            return torch.linalg.cholesky(a * count)
        except RuntimeError:
            return torch.zeros_like(a)

    compiled = torch.compile(step, fullgraph=True)
    for k, sign in enumerate((1, 1, -1, 1)):
        assert compiled(sign * torch.eye(2)).any().item() is (sign > 0)
        assert count.item() == k + 1


def test_random_numbers_of_a_refused_call_are_those_of_the_eager_one():
    def step(a):
        return torch.linalg.cholesky(a) + torch.rand(2, 2)

    def draws(step):
        torch.manual_seed(1)
        return [_outcome(step, sign * torch.eye(2)) for sign in (1, 1, -1, 1)]

    assert draws(torch.compile(step, fullgraph=True)) == draws(step)


def test_kernels_of_other_libraries_read_parts_of_arrays():
    compiled = torch.compile(lambda x: torch.fft.rfft(x).abs(), fullgraph=True)
    base = torch.randn(20)
    for start in (2, 2, 5, 0):
        part = base[start : start + 8]
        torch.testing.assert_close(compiled(part), torch.fft.rfft(part).abs())


def test_a_checked_function_is_refused_as_the_eager_one_is():
    weight = torch.zeros(3)

    @torch.compile(check=True)
    def put(index):
        weight.add_(1)
        return weight[index]

    put(torch.tensor([0]))
    put(torch.tensor([2]))
    with pytest.raises(IndexError):
        put(torch.tensor([3]))
    assert (weight.tolist(), weight._version) == ([3, 3, 3], 3)


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("forgotten", [True, False])
def test_sparse_gradients(forgotten):
    def seen(decorate):
        torch.manual_seed(0)
        model = nn.Embedding(4, 2, sparse=True)
        found = []

        @decorate
        def step(indices):
            if forgotten:
                model.weight.grad = None
            model(indices).square().sum().backward()

        for k in range(4):
            step(torch.tensor([k, 1]))
            found.append((model.weight.grad.is_sparse, model.weight.grad.to_dense().tolist()))
        return found

    assert seen(torch.compile) == seen(lambda f: f)


@pytest.mark.filterwarnings("ignore:compile")
def test_sparse_tensors():
    def made(k):
        return torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, k]]), torch.tensor([1.0, 2.0 + k]), (2, 3))

    held, w = made(2), torch.ones(3, 2)
    functions = [lambda s: torch.sparse.mm(s, w), lambda s: s * 2, lambda s: torch.sparse.mm(held, w) + s.to_dense()[:, :2], lambda s: s.to_sparse_csr()]
    for function in functions:
        compiled = torch.compile(function)
        for k in range(3):
            found, expected = compiled(made(k)), function(made(k))
            assert found.layout is expected.layout
            assert found.to_dense().tolist() == expected.to_dense().tolist()
    compiled = torch.compile(lambda x: x.to_sparse())
    for k in range(3):
        assert compiled(torch.eye(2) * k).to_dense().tolist() == (torch.eye(2) * k).tolist()


def test_swapped_tensors_are_refused_in_every_call_where_a_graph_holds_them():
    """What stands in nobody's launches is not forgotten by a program, and the library's own weak references are none of the user's."""
    w = torch.ones(2, requires_grad=True)

    @torch.compile
    def step(x):
        torch.utils.swap_tensors(w, w)
        return w * x

    x = torch.ones(2)
    with pytest.warns(UserWarning, match="it swaps tensors"):
        step(x)
    step(x)
    held = step(x)
    with pytest.raises(RuntimeError, match="Expected use_count of t1"):
        step(x)
    assert held.requires_grad
    assert not step.programs


F = nn.functional
#: functions that look at values before they go on, what they take, and what they refuse
LOOKING = {
    "max_unpool1d": (lambda i: F.max_unpool1d(torch.ones(1, 1, 2), i, 2), torch.tensor([[[0, 3]]]), torch.tensor([[[0, 4]]])),
    "embedding_bag": (lambda i: F.embedding_bag(i.view(1, 2), torch.ones(3, 2)), torch.tensor([0, 2]), torch.tensor([0, 3])),
    "offsets": (lambda o: F.embedding_bag(torch.arange(2), torch.ones(3, 2), o), torch.tensor([0, 1]), torch.tensor([0, 3])),
    "gaussian_nll_loss": (lambda v: F.gaussian_nll_loss(torch.ones(2), torch.zeros(2), v), torch.ones(2), torch.tensor([1.0, -1.0])),
    "ctc_loss": (
        lambda labels: F.ctc_loss(torch.zeros(3, 1, 2), labels, [3], [1]), torch.tensor([[1, 1]]), torch.tensor([[2, 1]]),
    ),
    "what ctc_loss reads nothing of": (
        lambda labels: F.ctc_loss(torch.zeros(3, 1, 2), labels, [3], [1]), torch.tensor([[1, 7]]), torch.tensor([[-1, 1]]),
    ),
    "lengths of ctc_loss": (
        lambda n: F.ctc_loss(torch.zeros(3, 1, 2), torch.tensor([[1, 1]]), n, torch.tensor([1])), torch.tensor([3]), torch.tensor([4]),
    ),
    "lengths of targets one after the other": (
        lambda n: F.ctc_loss(torch.zeros(3, 2, 2), torch.tensor([1, 1]), torch.tensor([3, 2]), n), torch.tensor([1, 1]), torch.tensor([2, 1]),
    ),
    "fractional_max_pool2d": (
        lambda s: F.fractional_max_pool2d(torch.ones(1, 1, 4, 4), 2, 2, _random_samples=s), torch.full((1, 1, 2), 0.5), torch.full((1, 1, 2), 1e9),
    ),
}  # fmt: skip


@pytest.mark.parametrize("looking", LOOKING)
def test_values_are_looked_at_in_each_compiled_call(looking):
    function, good, bad = LOOKING[looking]
    compiled = torch.compile(function, fullgraph=True)
    with pytest.raises((RuntimeError, ValueError)) as refused:
        function(bad)
    for _ in range(2):
        assert torch.equal(compiled(good), function(good))
        with pytest.raises(refused.type) as error:
            compiled(bad)
        assert str(error.value) == str(refused.value)
    assert len(compiled.programs) == 1
