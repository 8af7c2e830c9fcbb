"""Where forward mode is off (`_set_fwd_grad_enabled`, `inference_mode`): results of every op have no tangent, operands keep theirs."""

from __future__ import annotations

import pytest

import autograd_nb as torch
import autograd_nb.autograd.forward_ad as fw

from ..ops.samples import SAMPLES, tensors
from ..ops.walk import cases

POINTWISE = {name: (function, arrays) for name, function, arrays in cases() if name.startswith(("op ", "other "))}
OFF = {"off": lambda: fw._set_fwd_grad_enabled(False), "inference": torch.inference_mode}


def check(function, arrays, off):
    given = [torch.from_numpy(a.copy()) for a in arrays]
    torch.manual_seed(0)
    expected = tensors(function(*given))
    given = [torch.from_numpy(a.copy()) for a in arrays]
    with fw.dual_level():
        operands = [fw.make_dual(g, torch.ones_like(g)) if g.is_floating_point() or g.is_complex() else g for g in given]
        torch.manual_seed(0)
        with off():
            found = tensors(function(*operands))
            assert all(fw.unpack_dual(f).tangent is None for f in found)
        for f, e in zip(found, expected, strict=True):
            primal, tangent = fw.unpack_dual(f)
            view = any(f is o or primal._version_ is g._version_ for o, g in zip(operands, given, strict=True))
            assert (tangent is None) != view or not (f.is_floating_point() or f.is_complex())
            assert torch.allclose(primal, e, equal_nan=True) if e.dtype.is_floating_point else primal.shape == e.shape
        assert all(o is g or (fw.unpack_dual(o).tangent == 1).all() for o, g in zip(operands, given, strict=True))


@pytest.mark.parametrize("off", OFF)
@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise(name, off):
    check(*POINTWISE[name], OFF[off])


@pytest.mark.parametrize("off", OFF)
@pytest.mark.parametrize("text", SAMPLES)
def test_structured(text, off):
    op, sample = SAMPLES[text]
    if op.linear or op.rules or op.every:
        check(sample, sample.operands("float64"), OFF[off])


def test_of_transforms():
    """`jvp` switches it on for itself alone, and a function may switch it off in there."""
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])

    def still(q):
        with fw._set_fwd_grad_enabled(False):
            return q * q

    assert torch.func.jvp(still, (x,), (t,))[1].tolist() == [0, 0]
    assert torch.func.jvp(lambda q: still(q) + q, (x,), (t,))[1].tolist() == [3, 4]
    assert not torch.func.jacfwd(still)(x).any() and torch.func.hessian(lambda q: still(q).sum())(x).tolist() == [[2, 0], [0, 2]]
    with fw._set_fwd_grad_enabled(False):
        assert torch.func.jvp(lambda q: q * q, (x,), (t,))[1].tolist() == [6, 16]

    def inner(mode):
        def function(r, q):
            with fw._set_fwd_grad_enabled(mode):
                return r * q

        return function

    def outer(q, mode):
        with fw._set_fwd_grad_enabled(False):
            return torch.func.jvp(lambda r: inner(mode)(r, q), (q,), (t,))

    for mode, moved in ((True, [3, 8]), (False, [0, 0])):
        found, tangents = torch.func.jvp(lambda q, m=mode: outer(q, m), (x,), (t,))
        assert [f.tolist() for f in (*found, *tangents)] == [[1, 4], moved, [0, 0], [0, 0]]


def test_at_once_and_as_a_decorator():
    was = fw._set_fwd_grad_enabled(False)
    try:
        assert not fw._is_fwd_grad_enabled()
        with torch.inference_mode(False):
            assert fw._is_fwd_grad_enabled()
        assert not fw._is_fwd_grad_enabled()
    finally:
        was.__exit__(None, None, None)
    assert fw._is_fwd_grad_enabled()
    square = fw._set_fwd_grad_enabled(False)(lambda q: q * q)
    assert fw._is_fwd_grad_enabled()
    with fw.dual_level():
        x = fw.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        assert fw.unpack_dual(square(x)).tangent is None and fw.unpack_dual(x * x).tangent == 6
        with fw._set_fwd_grad_enabled(False):
            assert repr(x) == "tensor(3.)"


def test_gradients_of_what_has_tangents():
    p, t = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0])
    with fw.dual_level():
        y = (fw.make_dual(p, t) ** 2).sum()
        with fw._set_fwd_grad_enabled(False):
            (g,) = torch.autograd.grad(y, p, retain_graph=True)
        assert fw.unpack_dual(g).tangent is None and g.tolist() == [2, 4]
