"""softmax and log_softmax against SciPy, their derivatives against differences."""

import numpy as np
import pytest
from scipy import special

import autograd_nb as torch
import autograd_nb.nn.functional as F

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("shape", "dim"), [((5,), 0), ((3, 5), 1), ((3, 5), 0), ((2, 3, 4), 1), ((2, 1500), 1), ((2, 3, 300), 1)]
)
def test_values_against_scipy(shape, dim):
    x = RNG.normal(size=shape) * 10
    np.testing.assert_allclose(torch.softmax(torch.tensor(x), dim).numpy(), special.softmax(x, dim), rtol=1e-12)
    np.testing.assert_allclose(
        torch.log_softmax(torch.tensor(x), dim).numpy(), special.log_softmax(x, dim), rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("f", [torch.softmax, torch.log_softmax, F.softmin])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_derivatives_against_differences(f, dim):
    x = torch.tensor(RNG.normal(size=(2, 3, 4)), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: f(x, dim), (x,))
    assert torch.autograd.gradgradcheck(lambda x: f(x, dim), (x,))


def test_large_numbers_and_infinities():
    x = torch.tensor([[1e30, 0.0], [-1e30, 0.0], [float("-inf"), 1.0]], dtype=torch.float64)
    assert torch.softmax(x, 1).tolist() == [[1, 0], [0, 1], [0, 1]]
    assert torch.log_softmax(x, 1)[2].tolist() == [float("-inf"), 0]


def test_dtype_and_errors():
    assert torch.softmax(torch.tensor([1, 2]), 0, dtype=torch.float64).dtype is torch.float64
    with pytest.raises(NotImplementedError, match="softmax"):
        torch.softmax(torch.tensor([1, 2]), 0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.softmax(torch.zeros(2), 1)
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        F.softmax(torch.zeros(2, 2))
