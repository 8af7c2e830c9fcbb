"""gradcheck and gradgradcheck: they pass what is right and name what is wrong. Anomaly detection names the line."""

from __future__ import annotations

import pytest

import autograd_nb as torch
from autograd_nb.autograd import Function, GradcheckError, gradcheck, gradgradcheck
from tests.functions import Double, Square


def leaf(*shape):
    torch.manual_seed(0)
    return torch.rand(shape, dtype=torch.float64, requires_grad=True)


class Wrong(Square):
    """x² with a derivative that is wrong in one element."""

    @staticmethod
    def backward(ctx, g):
        out = Square.backward(ctx, g)
        mask = torch.ones_like(out)
        mask[1] = 1.5
        return out * mask


class WrongSecond(Function):
    """x³ whose gradient hides that it depends on x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * (x.detach() ** 2)


@pytest.mark.parametrize("fast", [False, True])
def test_right_functions_pass(fast):
    a, b = leaf(2, 3), leaf(3)
    assert gradcheck(lambda a, b: (a * b).exp().sum(0), (a, b), fast_mode=fast)
    assert gradgradcheck(lambda a, b: (a * b).tanh(), (a, b), fast_mode=fast)


def test_a_wrong_derivative_is_named():
    with pytest.raises(
        GradcheckError, match=r"Jacobian mismatch for output 0 with respect to input 0, at element 1 .* analytical .* numerical"
    ):
        gradcheck(Wrong.apply, (leaf(3),))
    assert not gradcheck(Wrong.apply, (leaf(3),), raise_exception=False)
    with pytest.raises(GradcheckError):
        gradcheck(Wrong.apply, (leaf(3),), fast_mode=True)


def test_a_wrong_second_derivative_is_found():
    assert gradcheck(WrongSecond.apply, (leaf(2),))
    with pytest.raises(GradcheckError):
        gradgradcheck(WrongSecond.apply, (leaf(2),))


def test_inputs_are_checked():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (torch.ones(2),))
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda x: x * 2, (torch.ones(2, requires_grad=True),), eps=1e-2, atol=1e-2)


def test_anomaly_detection_names_the_op_and_its_line():
    x = torch.zeros(2, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        watching = torch.autograd.detect_anomaly()
    with watching:
        y = (x.sqrt() * 0).sum()
        with pytest.warns(UserWarning, match="Error detected in SqrtBackward0"), pytest.raises(RuntimeError) as error:
            y.backward()
    assert "Function 'SqrtBackward0' returned nan values in its 0th output" in str(error.value)
    assert "test_gradcheck.py" in str(error.value)
    assert not torch.autograd.is_anomaly_enabled()
    (x.sqrt() * 0).sum().backward()  # silent again


def test_anomaly_detection_by_its_switch():
    torch.set_anomaly_enabled(True, check_nan=False)
    assert torch.is_anomaly_enabled()
    assert not torch.is_anomaly_check_nan_enabled()
    x = torch.zeros(2, requires_grad=True)
    (x.sqrt() * 0).sum().backward()  # not looked for
    torch.set_anomaly_enabled(True)
    with pytest.warns(UserWarning, match="Error detected"), pytest.raises(RuntimeError, match="nan values"):
        (x.sqrt() * 0).sum().backward()
    torch.set_anomaly_enabled(False)
    (x.sqrt() * 0).sum().backward()


def test_forward_mode_and_batches():
    x = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: a.exp().sum(1) / a.prod(1), (x,), check_forward_ad=True, check_batched_grad=True)

    class WrongTangent(Double):
        @staticmethod
        def jvp(ctx, t):
            return t * 3

    assert torch.autograd.gradcheck(WrongTangent.apply, (x,))
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(Wrong.apply, (x,), check_forward_ad=True)


@pytest.mark.filterwarnings("ignore:Anomaly")
def test_anomaly_detection_leaves_no_trace():
    from autograd_nb.graph import engine

    with torch.autograd.detect_anomaly():
        with torch.autograd.set_detect_anomaly(False):
            assert engine.watch is None
        assert engine.watch is not None
    assert engine.watch is None


def test_expanded_inputs_are_refused():
    """Their elements share memory, so that none can be moved alone."""
    x = torch.ones((), dtype=torch.float64).expand(3).detach().requires_grad_()
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        torch.autograd.gradcheck(torch.sin, (x,))
    assert torch.autograd.gradcheck(torch.sin, (x.detach().contiguous().requires_grad_(),))


def test_inputs_that_show_other_numbers():
    """A leaf that shows negatives is moved in the memory that it looks at, and is as before after that."""
    for memory in (torch.rand(4, dtype=torch.float64), torch.rand(3, dtype=torch.complex128).conj().imag):
        for shown in (memory, memory._neg_view(), memory._neg_view()[1:]):
            x = shown.detach().requires_grad_()
            before = x.tolist()
            for fast in (False, True):
                assert gradcheck(torch.sin, (x,), fast_mode=fast)
                with pytest.raises(GradcheckError):
                    gradcheck(lambda y: y * y.detach(), (x,), fast_mode=fast)
            assert gradgradcheck(torch.sin, (x,))
            assert x.tolist() == before
