"""PyTorch's old API, as the programs of its day use it."""

from __future__ import annotations

from collections import deque

import pytest

import autograd_nb as torch
from autograd_nb.autograd import Variable


def test_variable():
    x = Variable(torch.ones(2, 2), requires_grad=True)
    assert isinstance(x, Variable)
    assert isinstance(x, torch.Tensor)
    y = x + 2
    z = y * y * 3
    z.mean().backward()
    assert x.grad.tolist() == [[4.5, 4.5], [4.5, 4.5]]
    assert y.grad_fn is not None
    assert x.grad_fn is None
    assert x.data.requires_grad is False
    assert not Variable(torch.ones(1)).requires_grad


def test_variable_shares_memory():
    t = torch.zeros(2)
    Variable(t).data.fill_(1)
    assert t.tolist() == [1, 1]


def test_volatile_has_no_effect_and_a_warning_names_the_remedy():
    with pytest.warns(UserWarning, match="no_grad"):
        assert Variable(torch.ones(1), volatile=True).tolist() == [1]


def test_constructors_without_arguments_are_empty_and_take_any_sequence():
    assert torch.Tensor().shape == torch.LongTensor().shape == (0,)
    assert torch.FloatTensor(deque([1, 2])).tolist() == [1, 2]


def test_a_gpu_is_refused_with_both_types_of_error():
    for error in (AssertionError, RuntimeError):
        with pytest.raises(error, match="Torch not compiled with CUDA enabled"):
            torch.ones(1).cuda()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("FloatTensor", torch.float32), ("DoubleTensor", torch.float64), ("LongTensor", torch.int64), ("ByteTensor", torch.uint8)],
)
def test_type_constructors(name, dtype):
    make = getattr(torch, name)
    assert make([1, 2, 3]).dtype is dtype
    assert make([1, 2, 3]).tolist() == [1, 2, 3]
    assert make(2, 3).shape == (2, 3)
    assert isinstance(make([1]), make)
    assert not isinstance(torch.ones(1, dtype=torch.int16), make)
    assert make([1]).type() == f"torch.{name}"
    assert torch.ones(2, dtype=torch.int16).type(f"torch.{name}").dtype is dtype
    assert torch.ones(2, dtype=torch.int16).type(make).dtype is dtype


def test_tensor_constructor():
    assert torch.Tensor([1, 2]).dtype is torch.float32
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor(torch.Size([4])).shape == (4,)
    with pytest.raises(TypeError, match="float"):
        torch.Tensor(2.5)
    with pytest.raises(ValueError, match="invalid type"):
        torch.ones(1).type("torch.NoTensor")


def test_old_module_names():
    from autograd_nb.autograd.variable import Variable as Same

    assert Same is Variable
    assert torch.is_tensor(torch.ones(1))
    assert not torch.is_tensor([1])
