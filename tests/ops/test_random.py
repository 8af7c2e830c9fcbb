"""Random numbers: known answers, reproducibility, distributions, errors; dropout."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from scipy import stats

import autograd_nb as torch
from autograd_nb.codegen.build import compilation
from autograd_nb.codegen.templates import draws
from autograd_nb.nn import functional as F

N = 100_000


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(20)


def test_philox_known_answers():
    """The published answers for counter and key all zeros, and all ones."""
    entry = compilation.build(
        draws.random_map(draws.bits, lambda w: w, [], "float32", "uint32"), "kernel", ("int64", "int64", "int64", "uint32[:]")
    )
    out = np.empty(256, np.uint32)
    entry(0, 0, 0, out)
    assert [hex(w) for w in out[::64]] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]


def test_an_element_depends_on_its_index_only():
    for n in (1, 63, 64, 65, 255, 256, 257, 1000):
        torch.manual_seed(1)
        a = torch.randn(n).numpy()
        torch.manual_seed(1)
        b = torch.randn(2000).numpy()
        whole = n // 256 * 256
        assert (a[:whole] == b[:whole]).all()
        np.testing.assert_array_equal(a, b[:n])


def test_same_seed_same_numbers():
    def all_of_them():
        return [
            torch.rand(5), torch.randn(2, 3), torch.randint(0, 10, (7,)), torch.randperm(9), torch.bernoulli(torch.full((9,), 0.5)),
            torch.normal(0.0, 2.0, (4,)), torch.multinomial(torch.ones(5), 3), torch.zeros(3).exponential_(), torch.poisson(torch.full((5,), 20.0)),
        ]  # fmt: skip

    torch.manual_seed(5)
    a = all_of_them()
    torch.manual_seed(5)
    b = all_of_them()
    torch.manual_seed(6)
    c = all_of_them()
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    assert not any(torch.equal(x, y) for x, y in zip(a[:4], c[:4], strict=True))


def test_calls_differ():
    assert not torch.equal(torch.rand(5), torch.rand(5))


#: name -> (what fills a tensor, SciPy's distribution)
LAWS = {
    "uniform": (lambda t: t.uniform_(), stats.uniform()),
    "uniform(-2,3)": (lambda t: t.uniform_(-2, 3), stats.uniform(-2, 5)),
    "normal": (lambda t: t.normal_(), stats.norm()),
    "normal(1,3)": (lambda t: t.normal_(1, 3), stats.norm(1, 3)),
    "exponential": (lambda t: t.exponential_(2), stats.expon(scale=0.5)),
    "cauchy": (lambda t: t.cauchy_(1, 2), stats.cauchy(1, 2)),
    "log_normal": (lambda t: t.log_normal_(0.5, 0.25), stats.lognorm(0.25, scale=np.exp(0.5))),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("name", LAWS)
def test_draws_have_the_distribution_of_their_name(name, dtype):
    draw, law = LAWS[name]
    x = draw(torch.empty(20_000, dtype=dtype)).numpy().astype(np.float64)
    if dtype is torch.float16:
        x = x[:500]  # its rounding is seen in larger samples
    assert np.isfinite(x).all()
    assert stats.kstest(x, law.cdf).pvalue > 1e-3


def test_normal_moments_and_tails():
    x = torch.randn(1_000_000).numpy().astype(np.float64)
    assert abs(x.mean()) < 5e-3
    assert abs(x.var() - 1) < 5e-3
    assert abs(stats.kurtosis(x)) < 0.03
    assert 4.3 < np.abs(x).max() < 7
    for lag in (1, 63, 64, 128, 192, 256):
        assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < 5e-3


def test_bounds():
    x = torch.rand(1_000_000).numpy()
    assert x.min() >= 0
    assert x.max() < 1
    y = torch.empty(100_000).uniform_(1, 1 + 2**-23).numpy()  # rounding would reach the upper end
    assert (y == 1).all()


@pytest.mark.parametrize(("low", "high"), [(0, 10), (-5, 5), (0, 100_000), (-(2**40), 2**40), (-(2**63), 2**63 - 1)])
def test_randint(low, high):
    x = torch.randint(low, high, (N,)).numpy()
    assert x.dtype == np.int64
    assert x.min() >= low
    assert x.max() < high
    u = (x.astype(np.float64) - low + 0.5) / (float(high) - low)
    assert stats.kstest(u, "uniform").statistic < (0.06 if high - low < 100 else 0.01)
    if high - low < 100:
        assert stats.chisquare(np.bincount(x - low, minlength=high - low)).pvalue > 1e-3


def test_other_counts():
    assert stats.chisquare(np.bincount(torch.empty(N, dtype=torch.int64).geometric_(0.5).clamp_(max=8).numpy())[1:],
                           N * np.array([*(0.5 ** np.arange(1, 8)), 0.5**7])).pvalue > 1e-3  # fmt: skip
    for rate in (0.0, 0.5, 5.0, 12.0, 1000.0):
        x = torch.poisson(torch.full((20_000,), rate)).numpy().astype(np.float64)
        assert abs(x.mean() - rate) <= 5 * np.sqrt(rate / 20_000)
        if rate:
            assert abs(x.var() / rate - 1) < 0.1
    x = torch.bernoulli(torch.tensor([0.0, 0.25, 1.0]).repeat(20_000)).numpy().reshape(-1, 3).mean(0)
    assert x[0] == 0
    assert x[2] == 1
    assert abs(x[1] - 0.25) < 0.02
    assert abs(torch.empty(N).bernoulli_(0.1).mean().item() - 0.1) < 0.01
    y = torch.empty(N, dtype=torch.int8).random_()
    assert y.min().item() == 0
    assert y.max().item() == 127


def test_randperm():
    for n in (0, 1, 2, 100):
        assert sorted(torch.randperm(n).tolist()) == list(range(n))
    first = [torch.randperm(4)[0].item() for _ in range(2000)]
    assert stats.chisquare(np.bincount(first)).pvalue > 1e-3


def test_multinomial():
    p = torch.tensor([0.1, 0.0, 0.3, 0.6])
    x = np.bincount(torch.multinomial(p, 20_000, True).numpy(), minlength=4)
    assert x[1] == 0
    assert stats.chisquare(x[[0, 2, 3]], 20_000 * np.array([0.1, 0.3, 0.6])).pvalue > 1e-3
    rows = torch.multinomial(torch.tensor([[1.0, 2.0, 3.0]]).repeat(5000, 1), 2).numpy()
    assert (rows[:, 0] != rows[:, 1]).all()
    assert stats.chisquare(np.bincount(rows[:, 0]), 5000 * np.array([1, 2, 3]) / 6).pvalue > 1e-3
    # given that 2 was first, 0 and 1 follow as 1 : 2
    after = rows[rows[:, 0] == 2, 1]
    assert abs((after == 0).mean() - 1 / 3) < 0.04


def test_normal_of_tensors():
    mean, std = torch.tensor([0.0, 100.0]), torch.tensor([[1.0], [10.0]])
    x = torch.stack([torch.normal(mean, std) for _ in range(500)]).numpy()
    assert x.shape == (500, 2, 2)
    np.testing.assert_allclose(x.mean(0), [[0, 100], [0, 100]], atol=2.5)
    np.testing.assert_allclose(x.std(0), [[1, 1], [10, 10]], rtol=0.15)
    assert torch.normal(mean, 2.0).shape == (2,)
    assert torch.normal(1.0, std).shape == (2, 1)


def test_generator():
    g = torch.Generator()
    assert g.manual_seed(3) is g
    assert g.initial_seed() == 3
    a = torch.rand(3, generator=g)
    state = g.get_state()
    assert state.dtype is torch.uint8
    b = torch.rand(3, generator=g)
    g.set_state(state)
    assert torch.equal(torch.rand(3, generator=g), b)
    assert not torch.equal(a, b)
    for other in (copy.deepcopy(g), pickle.loads(pickle.dumps(g))):
        assert torch.equal(torch.rand(3, generator=other), torch.rand(3, generator=g.clone_state()))
    torch.manual_seed(3)
    assert torch.equal(torch.rand(3), a)  # the default generator is of the same kind
    assert g.seed() == g.initial_seed()
    assert torch.manual_seed(-1).initial_seed() == 2**64 - 1
    assert g.device == torch.device("cpu")


def test_saved_state():
    state = torch.get_rng_state()
    a = torch.rand(3)
    torch.set_rng_state(state)
    assert torch.equal(torch.rand(3), a)
    with torch.random.fork_rng():
        b = torch.rand(2)
    assert torch.equal(torch.rand(2), b)


def test_in_place_on_views_and_history():
    x = torch.zeros(4, 6)
    v = x.t()[::2]
    v.uniform_(1, 2)
    assert ((x[:, ::2] >= 1) & (x[:, ::2] <= 2)).all()
    assert (x[:, 1::2] == 0).all()
    assert x._version == 1
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    y.normal_()
    (y * w).sum().backward()
    assert torch.equal(w.grad, y.detach())  # what y held before gets nothing
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        w.uniform_()


#: PyTorch's key phrase -> (call, type of the error)
REFUSED = {
    r"normal expects std >= 0.0, but found std -1": (lambda: torch.zeros(3).normal_(0, -1), RuntimeError),
    r"normal expects all elements of std >= 0.0": (lambda: torch.normal(torch.zeros(2), torch.tensor([1.0, -1.0])), RuntimeError),
    r"found from=2 > to=1": (lambda: torch.zeros(3).uniform_(2, 1), RuntimeError),
    r"expects lambda > 0.0, but found lambda=0": (lambda: torch.zeros(3).exponential_(0), RuntimeError),
    r"expects sigma > 0.0, but found sigma=0": (lambda: torch.zeros(3).cauchy_(0, 0), RuntimeError),
    r"expects std > 0.0, but found std=0": (lambda: torch.zeros(3).log_normal_(0, 0), RuntimeError),
    r"expects p to be in \(0, 1\), but got p=1": (lambda: torch.zeros(3).geometric_(1), RuntimeError),
    r"expects p to be in \[0, 1\], but got p=2": (lambda: torch.zeros(3).bernoulli_(2), RuntimeError),
    r"Expected p_in >= 0 && p_in <= 1": (lambda: torch.bernoulli(torch.tensor([2.0])), RuntimeError),
    r"expected rate to be non-negative": (lambda: torch.poisson(torch.tensor([-1.0])), RuntimeError),
    r"expects 'from' to be less than 'to', but got from=3 >= to=3": (lambda: torch.randint(3, 3, (1,)), RuntimeError),
    r"to - 1 is out of bounds": (lambda: torch.randint(0, 300, (1,), dtype=torch.uint8), RuntimeError),
    r"missing a required argument: 'size'": (lambda: torch.randint(3), TypeError),
    r"cannot sample n_sample > prob_dist.size\(-1\)": (lambda: torch.multinomial(torch.ones(2), 3), RuntimeError),
    r"cannot sample n_sample <= 0": (lambda: torch.multinomial(torch.ones(2), 0), RuntimeError),
    r"invalid multinomial distribution": (lambda: torch.multinomial(torch.zeros(2), 1), RuntimeError),
    r"contains either `inf`, `nan` or element < 0": (lambda: torch.multinomial(torch.tensor([1.0, float("nan")]), 1), RuntimeError),
    r"not implemented for 'Long'": (lambda: torch.rand(2, dtype=torch.int64), RuntimeError),
    r"negative dimension -1": (lambda: torch.rand(-1), RuntimeError),
    r"generator must be a Generator": (lambda: torch.rand(2, generator=3), TypeError),
    r"cuda": (lambda: torch.rand(2, device="cuda"), RuntimeError),
    r"seed": (lambda: torch.manual_seed("x"), ValueError),
    r"Overflow": (lambda: torch.manual_seed(2**64), ValueError),
    r"RNG state must be a torch.ByteTensor": (lambda: torch.set_rng_state(torch.zeros(3)), TypeError),
    r"-1": (lambda: torch.randperm(-1), RuntimeError),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_wrong_parameters_of_distributions_are_refused(text):
    call, kind = REFUSED[text]
    with pytest.raises(kind, match=text):
        call()


# ------------------------------------------------------------------------------------------------------ dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_dropout(dtype):
    x = torch.ones(200, 300, dtype=dtype)
    y = F.dropout(x, 0.25).numpy()
    assert sorted(set(y.ravel().tolist())) == [0, y.dtype.type(1 / 0.75)]
    assert abs((y == 0).mean() - 0.25) < 0.01
    assert F.dropout(x, 0.5, training=False) is x
    assert (F.dropout(x, 1.0) == 0).all()
    assert torch.equal(F.dropout(x, 0.0), x)


def test_dropout_derivatives():
    x = torch.randn(30, 40, dtype=torch.float64, requires_grad=True)
    y = F.dropout(x, 0.4)
    mask = torch.where(x == 0, 0.0, y / x).detach()
    v = torch.randn(30, 40, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(y, x, v, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), (mask * v).detach().numpy())
    (h,) = torch.autograd.grad((g * g).sum(), v)
    np.testing.assert_allclose(h.numpy(), (2 * mask * mask * v).detach().numpy())
    assert y.grad_fn.name() == "NativeDropoutBackward0"


def test_dropout_of_strided_and_in_place():
    x = torch.arange(1.0, 13.0).reshape(3, 4).t().requires_grad_()
    y = F.dropout(x, 0.5)
    assert ((y == 0) | (y == 2 * x)).all()
    base = torch.ones(50, 50, requires_grad=True)
    z = base * 3
    out = F.dropout(z, 0.5, inplace=True)
    assert out is z
    z.sum().backward()
    assert torch.equal(base.grad, z.detach())


def test_dropout_of_channels():
    x = torch.ones(40, 50, 3, 3, requires_grad=True)
    y = F.dropout2d(x, 0.5)
    planes = y.detach().numpy().reshape(40, 50, 9)
    assert (planes == planes[:, :, :1]).all()
    assert abs((planes == 0).mean() - 0.5) < 0.05
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert F.dropout1d(torch.ones(4, 5), 0.5).shape == (4, 5)
    assert F.dropout3d(torch.ones(4, 2, 2, 2), 0.5).shape == (4, 2, 2, 2)
    with pytest.raises(RuntimeError, match="2D or 3D"):
        F.dropout1d(torch.ones(3), 0.5)


@pytest.mark.parametrize("function", [F.alpha_dropout, F.feature_alpha_dropout])
def test_alpha_dropout(function):
    x = torch.randn(300, 400, requires_grad=True)
    y = function(x, 0.2, True)
    assert abs(y.mean().item()) < 0.02
    assert abs(y.var().item() - 1) < 0.03
    y.sum().backward()
    kept = x.grad.numpy() != 0
    assert abs(kept.mean() - 0.8) < 0.02
    assert len(np.unique(x.grad.numpy())) == 2
    assert function(x, 0.2) is x


def test_dropout_errors():
    with pytest.raises(ValueError, match=r"dropout probability has to be between 0 and 1, but got 1.5"):
        F.dropout(torch.ones(2), 1.5)
    with pytest.raises(RuntimeError, match="can't be cast"):
        F.dropout(torch.ones(2, dtype=torch.int64), 0.5)
    with pytest.raises(TypeError, match="must be Tensor"):
        F.dropout([1.0], 0.5)


def test_threads_draw_each_call_of_a_generator_once():
    g = torch.Generator().manual_seed(1)
    found: list[float] = []

    def draw() -> None:
        found.extend([torch.rand(2, generator=g).tolist()[0] for _ in range(500)])

    workers = [threading.Thread(target=draw) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    g.manual_seed(1)
    assert sorted(found) == sorted(torch.rand(2, generator=g).tolist()[0] for _ in range(2000))


def test_the_count_of_calls_goes_around_as_64_bits_do():
    g, last = torch.Generator(), (3).to_bytes(8, "little") + b"\xff" * 8
    g.set_state(torch.tensor(list(last), dtype=torch.uint8))
    torch.rand(2, generator=g)
    assert g.get_state().tolist() == [3] + [0] * 15
    assert torch.equal(torch.rand(2, generator=g), torch.rand(2, generator=g.manual_seed(3)))


def test_the_tensors_of_a_law_get_zero_gradients():
    p = torch.full((2, 3), 0.5, requires_grad=True)
    mean, std = torch.zeros(3, requires_grad=True), torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    samples = {
        "BernoulliBackward0": torch.bernoulli(p), "PoissonBackward0": torch.poisson(p), "NormalBackward1": torch.normal(mean, 1.0),
        "NormalBackward2": torch.normal(0.0, std), "NormalBackward3": torch.normal(mean, std),
    }  # fmt: skip
    assert [type(t.grad_fn).__name__ for t in samples.values()] == list(samples)
    sum(t.sum() for t in samples.values()).backward()
    for x in (p, mean, std):
        assert x.grad.dtype is x.dtype
        assert torch.equal(x.grad, torch.zeros_like(x))
    for draw in (lambda out: torch.bernoulli(p, out=out), lambda out: torch.normal(p, 1.0, out=out)):
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            draw(torch.empty(2, 3))
    assert torch.normal(mean.detach(), 1.0).grad_fn is None


def test_a_compiled_step_gives_a_law_zero_gradients():
    p = torch.full((3,), 0.25, requires_grad=True)

    def step(p):
        return torch.autograd.grad((torch.bernoulli(p) * p + torch.normal(p, 1.0)).sum(), p)[0]

    compiled = torch.compile(step, check=True)
    for _ in range(3):
        assert set(compiled(p).tolist()) <= {0.0, 1.0}
    assert compiled.programs
