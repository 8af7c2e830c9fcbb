"""nn.utils and lazy modules: parametrised weights, norms, pruning, fusion, modules without shapes."""

from __future__ import annotations

import copy
import pickle

import pytest

import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.nn.utils import parametrizations, parametrize, prune


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, x):
        return x.triu()


class Exp(nn.Module):
    def forward(self, x):
        return x.exp()


# ------------------------------------------------------------------------------------------------------ parametrize


def test_a_parametrised_weight_is_computed_from_its_original():
    m = nn.Linear(3, 3)
    before = m.weight
    assert parametrize.register_parametrization(m, "weight", Symmetric()) is m
    assert m.parametrizations.weight.original is before
    assert type(m).__name__ == "ParametrizedLinear"
    assert isinstance(m, nn.Linear)
    assert parametrize.type_before_parametrizations(m) is nn.Linear
    assert bool((m.weight == m.weight.mT).all())
    assert list(m.state_dict()) == ["bias", "parametrizations.weight.original"]
    m(torch.ones(1, 3)).sum().backward()
    assert before.grad is not None
    m.weight = torch.ones(3, 3)
    assert m.weight.tolist() == [[1.0] * 3] * 3
    assert parametrize.is_parametrized(m, "weight")
    assert not parametrize.is_parametrized(m, "bias")
    twin = copy.deepcopy(m)
    assert twin.weight.tolist() == m.weight.tolist()
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(m)
    parametrize.remove_parametrizations(m, "weight")
    assert type(m) is nn.Linear
    assert m.weight is before
    assert m.weight.tolist() == [[1.0] * 3] * 3
    assert parametrize.is_parametrized(twin)


def test_parametrisations_follow_one_another_and_are_cached():
    m = nn.Linear(2, 2, bias=False)
    parametrize.register_parametrization(m, "weight", Symmetric())
    parametrize.register_parametrization(m, "weight", Exp())
    assert bool((m.weight > 0).all())
    with parametrize.cached():
        assert m.weight is m.weight
    assert m.weight is not m.weight
    with pytest.raises(RuntimeError, match="does not implement right_inverse"):
        m.weight = torch.ones(2, 2)
    original = m.parametrizations.weight.original.tolist()
    parametrize.remove_parametrizations(m, "weight", leave_parametrized=False)
    assert m.weight.tolist() == original


def test_parametrisations_that_are_refused():
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized element"):
        parametrize.register_parametrization(nn.Linear(2, 2), "gamma", Exp())
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Flatten(0))
    for what, inverse in (("dtype", torch.Tensor.double), ("shape", torch.Tensor.flatten)):
        m, back = nn.Linear(2, 2), Exp()
        parametrize.register_parametrization(m, "weight", Symmetric())
        back.right_inverse = inverse
        with pytest.raises(ValueError, match=f"right_inverse must have the same {what}"):
            parametrize.register_parametrization(m, "weight", back)
    with pytest.raises(ValueError, match="does not have a parametrization on"):
        parametrize.remove_parametrizations(nn.Linear(2, 2), "weight")


def test_weight_norm():
    m = nn.Linear(3, 2)
    weight = m.weight.detach().clone()
    parametrizations.weight_norm(m)
    assert torch.allclose(m.weight, weight)
    with torch.no_grad():
        m.parametrizations.weight.original0.mul_(2)
    assert torch.allclose(m.weight, 2 * weight)
    with pytest.warns(FutureWarning, match="deprecated"):
        old = nn.utils.weight_norm(nn.Linear(3, 2))
    assert list(old.state_dict()) == ["bias", "weight_g", "weight_v"]
    m.load_state_dict(old.state_dict())
    assert torch.allclose(m.weight, old.weight)
    old(torch.ones(1, 3)).sum().backward()
    assert old.weight_g.grad.shape == (2, 1)
    assert list(nn.utils.remove_weight_norm(old).state_dict()) == ["bias", "weight"]


@pytest.mark.parametrize("apply", [parametrizations.spectral_norm, nn.utils.spectral_norm])
def test_spectral_norm(apply):
    torch.manual_seed(0)
    m = nn.Linear(4, 4)
    greatest = torch.linalg.svdvals(m.weight.detach())[0]
    weight = m.weight.detach().clone()
    apply(m, n_power_iterations=50)
    m(torch.ones(1, 4)).sum().backward()
    assert torch.allclose(m.weight, weight / greatest, atol=1e-4)
    m.eval()
    state = {k: v.clone() for k, v in m.state_dict().items()}
    m(torch.ones(1, 4))
    assert all(torch.equal(v, state[k]) for k, v in m.state_dict().items())  # no steps in evaluation
    if apply is nn.utils.spectral_norm:
        assert set(state) == {"bias", "weight_orig", "weight_u", "weight_v"}
        nn.utils.remove_spectral_norm(m)
        assert list(m.state_dict()) == ["bias", "weight"]


@pytest.mark.parametrize("way", [pytest.param("matrix_exp", marks=pytest.mark.slow), "cayley", "householder"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_orthogonal(way, shape):
    m = parametrizations.orthogonal(nn.Linear(*shape).double(), orthogonal_map=way)
    w = m.weight if m.weight.shape[0] >= m.weight.shape[1] else m.weight.mT
    assert torch.allclose(w.mT @ w, torch.eye(w.shape[1], dtype=torch.float64), atol=1e-9)
    m(torch.ones(1, shape[0], dtype=torch.float64)).sum().backward()
    assert m.parametrizations.weight.original.grad is not None


# ----------------------------------------------------------------------------------------------------------- the rest


def test_pruning():
    m = nn.Linear(3, 2)
    with torch.no_grad():
        m.weight.copy_(torch.tensor([[1.0, -5, 2], [4, 3, -6]]))
    prune.l1_unstructured(m, "weight", amount=2)
    assert m.weight.tolist() == [[0, -5, 0], [4, 3, -6]]
    prune.ln_structured(m, "weight", amount=1, n=1, dim=0)
    assert m.weight.tolist() == [[0, 0, 0], [4, 3, -6]]
    assert set(m.state_dict()) == {"bias", "weight_orig", "weight_mask"}
    m(torch.ones(1, 3)).sum().backward()
    assert m.weight_orig.grad.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert prune.is_pruned(m)
    prune.remove(m, "weight")
    assert not prune.is_pruned(m)
    assert m.weight.tolist() == [[0, 0, 0], [4, 3, -6]]
    prune.random_unstructured(m, "bias", amount=0.5)
    assert int((m.bias == 0).sum()) == 1
    with pytest.raises(ValueError, match="has to be pruned"):
        prune.remove(m, "weight")
    with pytest.raises(ValueError, match="amount"):
        prune.l1_unstructured(m, "weight", amount=1.5)


def test_pruning_several_parameters_together():
    a, b = nn.Linear(2, 1, bias=False), nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        a.weight.copy_(torch.tensor([[1.0, 2.0]]))
        b.weight.copy_(torch.tensor([[3.0, 4.0]]))
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=3)
    assert a.weight.tolist() == [[0, 0]]
    assert b.weight.tolist() == [[0, 4]]


def test_fusing_batch_norm():
    conv, bn = nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3)
    bn(torch.randn(4, 3, 5, 5) * 2 + 1)
    conv.eval(), bn.eval()
    x = torch.randn(1, 2, 4, 4)
    assert torch.allclose(nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-5)
    with pytest.raises(AssertionError, match="only for eval"):
        nn.utils.fuse_conv_bn_eval(conv.train(), bn)


def test_functional_call_and_skip_init():
    m = nn.utils.skip_init(nn.Linear, 2, 1, bias=False)
    with pytest.warns(FutureWarning, match="deprecated"):
        y = nn.utils.stateless.functional_call(m, {"weight": torch.tensor([[1.0, 2.0]])}, torch.ones(1, 2))
    assert y.tolist() == [[3.0]]


def test_lazy_modules():
    m = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    assert isinstance(m[0].weight, nn.UninitializedParameter)
    assert repr(m[3].weight) == "<UninitializedParameter>"
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        _ = m[3].weight.shape
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        _ = m[3].weight + 1
    m = m.double()
    assert m(torch.randn(2, 3, 5, 5, dtype=torch.float64)).shape == (2, 2)
    assert [type(x) for x in m] == [nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear]
    assert m[0].weight.shape == (4, 3, 3, 3)
    assert m[0].weight.dtype is torch.float64
    assert m[1].running_var.tolist() != [1.0] * 4
    assert not m[0]._forward_pre_hooks
    other = nn.LazyLinear(2).double()
    other.load_state_dict(m[3].state_dict())
    assert other(torch.ones(1, 36, dtype=torch.float64)).shape == (1, 2)
    assert type(other) is nn.Linear


def test_lazy_modules_that_are_refused():
    with pytest.raises(RuntimeError, match="Expected 3D"):
        nn.LazyConv2d(2, 1)(torch.zeros(1, 2))

    class Forgetful(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            pass

    with pytest.raises(RuntimeError, match="has not been fully initialized"):
        Forgetful()(torch.zeros(1))


def test_amounts_of_pruning():
    prune = torch.nn.utils.prune
    assert [prune._compute_nparams_toprune(a, 15) for a in (0, 10, 1, 1.0, 0.4)] == [0, 10, 1, 15, 6]
    for bad, error in (("much", TypeError), (1.1, ValueError), (20.0, ValueError), (-10, ValueError)):
        with pytest.raises(error):
            prune._validate_pruning_amount_init(bad)
    with pytest.raises(ValueError):
        prune._validate_pruning_amount(20, 19)


def test_mask_of_a_container_has_the_dtype_of_what_is_pruned():
    container = torch.nn.utils.prune.PruningContainer()
    container._tensor_name = "x"
    method = torch.nn.utils.prune.L1Unstructured(amount=2)
    method._tensor_name = "x"
    container.add_pruning_method(method)
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    mask = container.compute_mask(x, torch.tensor([[1, 1, 1, 0], [1, 1, 0, 1]]))
    assert mask.dtype is torch.float32
    assert mask.tolist() == [[0, 0, 1, 0], [1, 1, 0, 1]]


def test_parameters_without_a_shape_have_no_memory_to_share():
    module = torch.nn.LazyLinear(3)
    with pytest.raises(RuntimeError, match="share memory on an uninitialized"):
        module.share_memory()
    module.weight.materialize(10)
    assert module.weight.shape == (10,)
    assert torch.nn.Linear(2, 3).share_memory().weight.shape == (3, 2)
