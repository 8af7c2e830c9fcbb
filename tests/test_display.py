"""repr, format and print options."""

import pytest

import autograd_nb as torch


def test_floats():
    assert repr(torch.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    assert repr(torch.tensor([[1.5, -2.0], [3.25, 100.0]])) == "tensor([[  1.5000,  -2.0000],\n        [  3.2500, 100.0000]])"
    assert repr(torch.tensor([1e-5, 1.0])) == "tensor([1.0000e-05, 1.0000e+00])"
    assert repr(torch.tensor([float("nan"), float("-inf"), 1.0])) == "tensor([nan, -inf, 1.])"
    assert repr(torch.tensor(3.0, dtype=torch.float64)) == "tensor(3., dtype=torch.float64)"
    assert repr(torch.zeros(0, 2)) == "tensor([], size=(0, 2))"


def test_other_types():
    assert repr(torch.tensor([True, False])) == "tensor([ True, False])"
    assert repr(torch.tensor([1, -20])) == "tensor([  1, -20])"
    assert repr(torch.tensor([1], dtype=torch.int32)) == "tensor([1], dtype=torch.int32)"


def test_graph():
    x = torch.tensor([1.0], requires_grad=True)
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], grad_fn=<MulBackward0>)"


def test_summary():
    assert repr(torch.arange(2000)) == "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"
    text = repr(torch.zeros(100, 100))
    assert text.count("\n") == 6 and "..." in text


def test_format():
    assert f"{torch.tensor(3.14159):.2f}" == "3.14"
    assert f"{torch.tensor([1.0])}" == "tensor([1.])"
    with pytest.raises(TypeError, match="unsupported format string"):
        format(torch.ones(2), ".2f")


def test_printoptions():
    try:
        torch.set_printoptions(precision=2)
        assert repr(torch.tensor([1.5])) == "tensor([1.50])"
        with pytest.raises(ValueError, match="profile"):
            torch.set_printoptions(profile="wide")
    finally:
        torch.set_printoptions(profile="default")


def test_parameter():
    from autograd_nb.nn.parameter import Parameter

    assert repr(Parameter(torch.tensor([1.5]))) == "Parameter containing:\ntensor([1.5000], requires_grad=True)"
