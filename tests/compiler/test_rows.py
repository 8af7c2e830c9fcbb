"""Steps along rows become one kernel: what it is made of, and what it computes."""

from __future__ import annotations

import math

import pytest

import autograd_nb as torch
from autograd_nb.compiler.passes import row_fusion
from autograd_nb.nn import functional as F

pytestmark = pytest.mark.slow  # many kernels


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def log_softmax(x):
    x = x - x.amax(-1, keepdim=True).detach()
    return x - x.exp().sum(-1, keepdim=True).log()


def layer_norm(x, w, b):
    gap = x - x.mean(-1, keepdim=True)
    return gap / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5) * w + b


def rms_norm(x, w):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w


def standard(x):
    return (x - x.mean((-2, -1), keepdim=True)) / x.std((-2, -1), keepdim=True)


def backward_of(function):
    """The function's gradients for fixed weights of its results, and the results."""

    def both(*tensors):
        leaves = [t.detach().requires_grad_() for t in tensors]
        y = function(*leaves)
        (y * torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape).sin()).sum().backward()
        return [y.detach(), *[t.grad for t in leaves]]

    return both


def compiled(function, *tensors):
    """The program of a function that leaves its arguments as they are, after its results were compared with eager ones."""
    expected = function(*tensors)
    step = torch.compile(function, fullgraph=True)
    for _ in range(3):
        found = step(*tensors)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    return step.programs[0].program


def kernels(program):
    return [s.name for s in program.steps]


def rand(*shape, dtype=torch.float32):
    torch.manual_seed(len(shape))
    return torch.randn(shape, dtype=dtype)


@pytest.mark.parametrize("shape", [(7, 33), (3, 4, 5, 18), (1, 40), (300, 2)])
@pytest.mark.parametrize("function", [softmax, log_softmax])
def test_exponentials_by_hand(function, shape):
    assert len(kernels(compiled(function, rand(*shape)))) == 1


def test_norms_by_hand():
    assert len(kernels(compiled(layer_norm, rand(6, 5, 33), rand(33), rand(33)))) == 1
    assert len(kernels(compiled(rms_norm, rand(6, 5, 33), rand(33)))) == 1
    assert len(kernels(compiled(standard, rand(6, 5, 7)))) == 1
    assert len(kernels(compiled(lambda x: F.normalize(x), rand(6, 35)))) == 1
    assert len(kernels(compiled(lambda x, y: F.cosine_similarity(x, y), rand(6, 35), rand(6, 35) + 1))) == 1


@pytest.mark.parametrize("function", [softmax, log_softmax, standard])
def test_backward_joins_forward(function):
    assert len(kernels(compiled(backward_of(function), rand(5, 4, 21)))) == 1


def test_the_gradient_of_an_extreme_goes_to_its_first_place():
    x = rand(5, 4, 21).round()  # most rows have it several times
    x[0, 0, 7] = math.nan
    assert len(kernels(compiled(backward_of(lambda x: (x - x.max(-1, keepdim=True).values).exp()), x))) == 1
    compiled(backward_of(lambda x: x.min(-1).values / x.square().sum(-1)), x)
    compiled(lambda x: (x == x.max(-1, keepdim=True).values, x.max(-1).indices), x)
    compiled(lambda x: (x == x.max(-1, keepdim=True).values, x.max(-1).indices), x > 0)


def test_sums_of_columns_stay_apart():
    names = kernels(compiled(backward_of(layer_norm), rand(20, 21), rand(21), rand(21)))
    assert len(names) == 3  # all rows, and the gradients of weight and bias


def test_neighbours_of_a_row_kernel():
    x, y, w, b = rand(6, 40), rand(6, 40) + 1, rand(40), rand(40)
    assert kernels(compiled(lambda x, y, w, b: F.gelu(F.layer_norm(x + y, (40,), w, b)), x, y, w, b)) == ["add+layer_norm+gelu"]
    mask = torch.zeros(5, 16).masked_fill(torch.ones(5, 16).tril() == 0, -math.inf)
    scores = rand(2, 3, 5, 16)
    assert kernels(compiled(lambda s, m: torch.softmax(s * 0.3 + m, -1), scores, mask)) == ["mul+add+softmax"]
    assert len(kernels(compiled(lambda s, m: torch.softmax(s * m[:, :1], -1), scores, mask + 1))) == 1  # a value for some rows


def test_residual_gradient_joins_the_norm():
    def step(x):
        x = x.detach().requires_grad_()
        (x * 2 + F.layer_norm(x, (32,)).sin()).sum().backward()
        return x.grad

    assert len(kernels(compiled(step, rand(9, 32)))) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers(dtype, value):
    x = rand(4, 20, dtype=dtype)
    x[1, 3] = value
    x[3] = value
    for function in (softmax, log_softmax, standard):
        compiled(function, x)


def test_dtypes():
    compiled(lambda x: (x - x.amin(-1, keepdim=True)) * (x > x.sum(-1, keepdim=True)), torch.arange(60).reshape(3, 20))
    compiled(lambda x: x / (x > 0).sum(-1, keepdim=True), rand(3, 20, dtype=torch.float64))
    compiled(lambda x: x - x.sum(-1, keepdim=True), torch.full((3, 20), 2**30, dtype=torch.int32))
    compiled(lambda x: x - (x * 1.5).prod(-1, keepdim=True), rand(3, 20))
    compiled(lambda x: (x > 0) & (x > 0).any(-1, keepdim=True), rand(3, 20))
    assert len(kernels(compiled(lambda x: softmax(x).double() + layer_norm(x.double(), 1.0, 0.0), rand(3, 20)))) == 1


def test_operands_that_lie_otherwise():
    x, t = rand(5, 6, 20), rand(20, 6)
    compiled(lambda x: softmax(x.transpose(0, 1)), x)
    compiled(lambda x: softmax(x[:, 1:5]) * x[:, :4].amax(-1, keepdim=True), x)
    compiled(lambda x: softmax(x[..., ::2]), x)
    compiled(lambda x, t: softmax(x + t.T) + x.flip(0), x, t)
    compiled(lambda x: softmax(x[:, :1].expand(5, 6, 20)), x)
    compiled(lambda x: softmax(x.transpose(1, 2)), x)


def test_results_may_be_overwritten():
    def step(x):
        y = softmax(x)
        z = y * 2
        y.mul_(x)
        y += z.sum(-1, keepdim=True)
        return y, z

    assert len(kernels(compiled(step, rand(7, 24)))) == 1


def test_arguments_may_be_overwritten():
    def step(x):
        top = x.amax(-1, keepdim=True)
        x.sub_(top)
        return x.exp().sum(-1, keepdim=True) * top

    eager, x = rand(7, 24), rand(7, 24)
    run = torch.compile(step, fullgraph=True)
    for _ in range(3):
        torch.testing.assert_close(run(x), step(eager))
        torch.testing.assert_close(x, eager)


def test_a_path_that_leaves_the_rows():
    def step(x):
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(0) / e.sum(-1, keepdim=True)

    assert len(kernels(compiled(step, rand(7, 24)))) == 3


def test_rows_too_long_to_be_kept(monkeypatch):
    x = rand(3, 60)
    one = compiled(softmax, x)
    monkeypatch.setattr(row_fusion, "LONG", 50)
    assert len(kernels(one)) < len(kernels(compiled(softmax, x)))


def test_no_rows():
    for shape in ((0, 20), (4, 1)):
        compiled(softmax, rand(*shape))


def test_threads_change_no_bits():
    x, w, b = rand(3000, 130), rand(130), rand(130)
    step = torch.compile(backward_of(layer_norm))
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            step(x, w, b)
            found.append(step(x, w, b))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, c) for a, c in zip(found[0], other, strict=True))


def test_what_is_filled_stands_among_rows():
    """A step that reads nothing walks any rows, but its formula has no operand."""
    w = torch.ones(33, requires_grad=True)

    @torch.compile
    def step(x):
        y = w * x
        y.square().mean().backward(retain_graph=True)
        deviation = y.std()
        w.grad.zero_()
        return deviation.detach()

    for k in range(3):
        x = torch.arange(33.0) + k
        w.grad = None
        torch.testing.assert_close(step(x), x.std())
        assert w.grad.tolist() == [0] * 33


@pytest.mark.parametrize("combine", ["maximum", "mul", "add", "hypot"])
@pytest.mark.parametrize("flat", ["round", "floor", "sign"])
def test_numbers_of_rows_and_of_elements_are_not_one(flat, combine):
    """A derivative that is a number has one formula for a value of the row and for one of an element, and is yet two values."""

    def step(x, b):
        return getattr(torch, combine)(getattr(x, flat)() + x, getattr(x - b, flat)())

    def round_alone(x, b):
        return getattr(torch, combine)(getattr(x, flat)(), getattr(x - b, flat)())

    for function in (step, round_alone):
        compiled(backward_of(function), torch.linspace(-2, 2, 5).reshape(5, 1), torch.linspace(-1, 1, 6))
