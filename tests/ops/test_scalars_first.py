"""Calls of old programs, with factors in front of what they multiply."""

import warnings

import pytest

import autograd_nb as torch
from autograd_nb.ops.core import scalars_first

pytestmark = pytest.mark.filterwarnings("ignore:This overload of")


def test_old_optimizers_step():
    p, g, square = torch.ones(3, requires_grad=True), torch.tensor([1.0, 2.0, 4.0]), torch.ones(3)
    p.data.add_(-0.5, g)
    assert p.tolist() == [0.5, 0.0, -1.0]
    square.mul_(0.5).addcmul_(0.5, g, g)
    assert square.tolist() == [1.0, 2.5, 8.5]
    p.data.addcdiv_(-1.0, g, torch.full((3,), 2.0))
    assert p.tolist() == [0.0, -1.0, -3.0]


def test_products():
    m, a = torch.ones(2, 2), torch.eye(2)
    new = torch.addmm(m, a, a, beta=0.5, alpha=3)
    for old in (torch.addmm(0.5, m, 3, a, a), m.addmm(0.5, 3, a, a), m.clone().addmm_(0.5, 3, a, a)):
        assert torch.equal(old, new)


def test_gradients_compiled_and_mapped():
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    def f(x):
        return torch.add(x, 3, x).addcmul(2, x, x).sum()

    (g,) = torch.autograd.grad(f(x), x)
    assert g.tolist() == [8.0, 12.0]
    assert torch.equal(torch.compile(f)(x), f(x))
    assert torch.vmap(lambda v: v.add(2, v))(x.detach()).tolist() == [3.0, 6.0]


def test_one_warning(monkeypatch):
    monkeypatch.setattr(scalars_first, "_told", False)
    x = torch.ones(2)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        x.add(2, x)
        x.addcmul(2, x, x)
    assert [w.filename for w in found] == [__file__] and "alpha=" in str(found[0].message)


@pytest.mark.parametrize("call", ["x.mul(2, x)", "x.add(x, 2)", "x.add(2, x, alpha=2)", "x.addcmul(2, x, x, value=3)", "torch.addmm(m, m, m, 2)",
                                  "torch.addmm(2, m, m, m, alpha=2)", "m.addmm(1, 2, 3, m, m)", "x.mul_(2, x)"])  # fmt: skip
def test_refused(call):
    with pytest.raises(TypeError, match="positional arguments"):
        eval(call, {"torch": torch, "x": torch.ones(2), "m": torch.ones(2, 2)})


@pytest.mark.parametrize("factor", [3, torch.tensor(2.0)], ids=["number", "tensor"])
def test_a_factor_is_refused_beside_the_same_object_by_name(factor):
    x = torch.ones(3)
    for call in (torch.add, torch.sub, torch.Tensor.add_, torch.Tensor.sub_):
        with pytest.raises(TypeError):
            call(x, 2, factor, alpha=factor)
    assert x.tolist() == [1.0, 1.0, 1.0]
