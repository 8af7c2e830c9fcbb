"""What gradcheck and forward mode notice: wrong tangents, passes that differ, tangents that do not fit; the same verdicts as PyTorch's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ours  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def forward_ad(t):
    return t.autograd.forward_ad


def leaf(t):
    return t.tensor([0.3, 0.7], dtype=t.float64, requires_grad=True)


def function(t, **methods):
    plain = {
        "forward": lambda ctx, x: x * 2, "backward": lambda ctx, g: g * 2, "jvp": lambda ctx, g: g * 2,
    }  # fmt: skip
    return type("Own", (t.autograd.Function,), {name: staticmethod(f) for name, f in (plain | methods).items()})


def wrong_in_forward_mode(t):
    """Scale the tangent of the second operand where forward mode runs, which the operand has, even if it is the first that moves."""

    def call(x, y):
        if forward_ad(t)._current_level >= 0:
            primal, tangent = forward_ad(t).unpack_dual(y)
            y = forward_ad(t).make_dual(primal, tangent * 1.1)
        return x + y, y

    return call


def differs_each_time(t):
    drawn = []

    def backward(ctx, g):
        drawn.append(1)
        return g * (2 + 1e-6 * len(drawn))

    return function(t, backward=backward).apply


CHECKS = {
    "right": (lambda t, fast: t.autograd.gradcheck(function(t).apply, (leaf(t),), check_forward_ad=True, fast_mode=fast), True),
    "wrong tangents": (
        lambda t, fast: t.autograd.gradcheck(wrong_in_forward_mode(t), (leaf(t), leaf(t)), check_forward_ad=True, fast_mode=fast),
        "Jacobian computed with forward mode mismatch for output 0 with respect to input 1",
    ),
    "not the same twice": (lambda t, fast: t.autograd.gradcheck(differs_each_time(t), (leaf(t),), fast_mode=fast), "Backward is not reentrant"),
    "the same within a tolerance": (lambda t, fast: t.autograd.gradcheck(differs_each_time(t), (leaf(t),), nondet_tol=1e-3, fast_mode=fast), True),
}  # fmt: skip


def verdict(program, lib):
    try:
        return program(lib)
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("fast", (False, True))
@pytest.mark.parametrize("name", CHECKS)
def test_gradcheck(name, fast):
    program, expected = CHECKS[name]
    for lib in (ours, torch):
        found = verdict(lambda t: program(t, fast), lib)
        assert found is True if expected is True else expected in found, (lib, found)


def pushed(t, own):
    with forward_ad(t).dual_level():
        return forward_ad(t).unpack_dual(own.apply(forward_ad(t).make_dual(t.ones(2), t.ones(2)))).tangent.tolist()


def constant(ctx, x):
    y = x * 2
    ctx.mark_non_differentiable(y)
    return y


def nested(t, which):
    with forward_ad(t).dual_level():
        dual = forward_ad(t).make_dual(t.ones(2), t.ones(2))
        forward_ad(t).make_dual(*((dual, t.ones(2)) if which else (t.ones(2), dual)))


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda t: pushed(t, function(t)), [2, 2]),
        (lambda t: pushed(t, function(t, jvp=lambda ctx, g: t.ones(3))), "has a different size than that of the original Tensor"),
        (lambda t: pushed(t, function(t, forward=constant)), "Function's jvp returned a gradient at position 0"),
        (lambda t: nested(t, True), "already has a forward gradient at the same level"),
        (lambda t: nested(t, False), "has a forward gradient at the same level"),
    ],
    ids=["right", "another shape", "not differentiable", "a dual made dual", "a tangent with a tangent"],
)
def test_tangents_that_do_not_fit(program, expected):
    for lib in (ours, torch):
        found = verdict(program, lib)
        assert found == expected if isinstance(expected, list) else expected in found, (lib, found)
