"""Old names that do something: values beside PyTorch's."""

from __future__ import annotations

from importlib import import_module

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ours  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch says that the names are old


def both(program):
    return [program(lib) for lib in (ours, torch)]


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_losses_with_numbers_for_reductions(reduction):
    def kl(t):
        return t.kl_div(t.tensor([-1.0, -0.5]), t.tensor([0.25, 0.75]), reduction).tolist()

    def bce(t):
        return t.binary_cross_entropy_with_logits(t.tensor([-1.0, 0.5]), t.tensor([0.0, 1.0]), None, None, reduction).tolist()

    for program in (kl, bce):
        mine, theirs = both(program)
        assert mine == pytest.approx(theirs)


def test_norms_and_functions_in_place():
    def run(t):
        x = t.arange(6.0).reshape(2, 3)
        y = t.detach_(x.clone())
        z = t.addmv_(t.ones(2), x, t.ones(3), beta=2, alpha=3)
        return [
            t.frobenius_norm(x, [0, 1]).item(),
            t.nuclear_norm(x).item(),
            y.tolist(),
            z.tolist(),
            t._compute_linear_combination(x, t.tensor([[1.0, -1.0], [2.0, 0.5]])).tolist(),
            t._compute_linear_combination(x.to(t.complex64), t.tensor([[1.0, -1.0]])).tolist(),
            t._compute_linear_combination(x, t.tensor([[1.0, -1.0]]), out=t.ones(1, 3)).tolist(),
            t.as_strided_(x, (2,), (3,)).tolist(),
        ]

    mine, theirs = both(run)
    assert mine[:2] == pytest.approx(theirs[:2], rel=1e-5)
    assert mine[2:] == theirs[2:]


def test_numbers_of_reductions():
    def run(t):
        of = import_module(f"{t.Tensor.__module__.partition('.')[0]}.nn._reduction")
        return [of.get_enum(r) for r in ("none", "mean", "sum")], of.legacy_get_string(False, True, emit_warning=False)

    mine, theirs = both(run)
    assert mine == theirs
