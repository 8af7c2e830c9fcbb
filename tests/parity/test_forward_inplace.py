"""Every in-place method on tensors with tangents: values and tangents are PyTorch's, and a call that is refused has changed nothing."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb  # noqa: E402

#: arguments, in turn; what a method does not take is refused by both libraries
ARGUMENTS = [
    "()", "(0.5,)", "(2,)", "(0,)", "(f(3, 3),)", "(f(3),)", "(f(3, 3), f(3, 3))", "(0, 1)", "(0.2, 0.6)", "(m, 0.5)", "(m, f(9))", "(0, k, 0.5)",
    "(0, k, f(2, 3))", "(0, i, f(1, 3))", "(0, i, 0.5)", "(k, f(2))", "(f(3), f(3))", "((k,), f(3))", "(0, k, f(2, 3), 'mean')",
    "(0, i, f(1, 3), 'sum')", "(2, 0, 1.0)", "((k, k), f(2))", "(f(1, 3, 3), f(1, 3, 3))", "((2, 2), (1, 3))",
]  # fmt: skip
RANDOM = {"bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_"}
#: what PyTorch has no tangents of, or forgets them in; what has another signature there; ties, which are shared here
OTHERWISE = {
    "acosh_",
    "arccosh_",
    "asinh_",
    "arcsinh_",
    "atanh_",
    "arctanh_",
    "index_reduce_",
    "set_",
    "resize_",
    "resize_as_",
    "requires_grad_",
}
OTHERWISE |= {
    "logical_and_",
    "logical_or_",
    "logical_xor_",
    "logical_not_",
    "as_strided_",
    "copy_",
    "apply_",
    "map_",
    "map2_",
    "clamp_",
    "clip_",
}
NAMES = sorted(n for n in dir(torch.Tensor) if n.endswith("_") and n[0] != "_" and hasattr(autograd_nb.Tensor, n))


def outcome(t, name, arguments, target, moved, on=True):
    """(values, tangent) after the call, or None where it was refused, which must have left both; ``on``: whether forward mode is for the call."""
    forward = importlib.import_module(f"{t.__name__}.autograd.forward_ad")

    def f(*shape):
        return t.linspace(0.2, 0.9, int(np.prod(shape))).reshape(shape)

    def dual(v, tangent):
        if isinstance(v, t.Tensor) and v.is_floating_point():
            return forward.make_dual(v, t.full_like(v, tangent))
        return tuple(dual(e, tangent) for e in v) if isinstance(v, tuple) else v

    names = {"f": f, "m": t.tensor([[True, False, True]] * 3), "i": t.tensor([[0, 1, 0]]), "k": t.tensor([0, 1])}
    x = t.linspace(0.1, 0.95, 9).reshape(3, 3)
    before = x.tolist()
    with forward.dual_level(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        still = "still" in target  # it has no tangent before the call
        whole = x.clone() if still else dual(x, 1.5)
        y = eval(target, {"x": whole, "still": whole})
        args = eval(arguments, names)
        t.manual_seed(0)
        args = dual(args, 0.5) if moved else args
        try:
            with forward._set_fwd_grad_enabled(on):
                getattr(y, name)(*args)
        except Exception:
            value, tangent = forward.unpack_dual(y)
            if t is autograd_nb and still:
                assert whole.tolist() == before and not np.any(tangent.tolist() if tangent is not None else 0), "a refused call has changed its operand"
            elif t is autograd_nb:
                assert value.tolist() == x.tolist() == before and set(np.ravel(tangent.tolist())) == {1.5}, (
                    "a refused call has changed its operand"
                )
            return None
        return tuple(None if v is None else np.array(v.tolist()) for seen in (y, whole) for v in forward.unpack_dual(seen))


@pytest.mark.parity
@pytest.mark.parametrize("target", ("x", "x.clone()", "x.clone()[:]", "still", "still.t()"))
@pytest.mark.parametrize("name", NAMES)
def test_in_place(name, target):
    for arguments in ARGUMENTS:
        for moved in (False, True):
            mine, theirs = (outcome(t, name, arguments, target, moved) for t in (autograd_nb, torch))
            if name in OTHERWISE or (name == "squeeze_" and arguments == "(0, 1)"):
                continue
            if "still" in target and name in ("igamma_", "igammac_"):  # whose first operand has no derivative, and needs none here
                continue
            assert (mine is None) == (theirs is None), (arguments, moved)
            if mine is not None and name not in RANDOM:
                for a, b in zip(mine, theirs, strict=True):
                    if "still" in target and (a is None or b is None):  # a tangent of zeros, or none
                        assert not np.any(a) and not np.any(b), (arguments, moved)
                        continue
                    assert (a is None) == (b is None) and (
                        a is None or np.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True)
                    ), (arguments, moved)


@pytest.mark.parity
@pytest.mark.parametrize("target", ("x[:]", "still"))
@pytest.mark.parametrize("name", NAMES)
def test_in_place_where_forward_mode_is_off(name, target):
    """The values change, the tangents do not."""
    for arguments in ARGUMENTS:
        for moved in (False, True):
            mine, theirs = (outcome(t, name, arguments, target, moved, False) for t in (autograd_nb, torch))
            if name in OTHERWISE or (name == "squeeze_" and arguments == "(0, 1)"):
                continue
            assert (mine is None) == (theirs is None), (arguments, moved)
            if mine is not None and name not in RANDOM:
                for a, b in zip(mine, theirs, strict=True):
                    assert (a is None) == (b is None) and (a is None or np.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True)), (arguments, moved)


@pytest.mark.parity
def test_rules_of_python_numbers_that_have_no_finite_value():
    """Formulas run on tensors where a pass is recorded or has tangents, and 1/0 of Python's numbers raises."""
    from .snippets import check

    calls = (
        "x / 0",
        "x.clone().div_(0)",
        "t.xlogy(x, 0)",
        "t.xlogy(x, -1)",
        "(-1) ** x",
        "1e300 ** x",
        "0 / (x * 0)",
        "t.lerp(x, x * 2, 0)",
    )
    recorded = "t.autograd.grad(f(y := x.clone().requires_grad_()).sum(), y, create_graph=True)[0].detach()"
    programs = {call: f"def f(x): return {call}\nr = t.func.jvp(f, (x,), (t.ones(3),)), {recorded}" for call in calls}
    check({**programs, "0 ** x": f"def f(x): return 0 ** x\nr = {recorded}"}, "x = t.linspace(0.1, 0.9, 3)")
