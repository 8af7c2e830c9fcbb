"""Transforms in inference mode: what they return are ordinary tensors without a history, as in PyTorch, which may be used in recorded computations."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch's, about torch.jit

#: functions of one tensor; w requires grad
FUNCTIONS = {
    "square": lambda lib, w: lambda q: q * q,
    "itself": lambda lib, w: lambda q: q,
    "of what is outside": lambda lib, w: lambda q: q * w,
    "sum": lambda lib, w: lambda q: q.sum(),
    "sum of squares": lambda lib, w: lambda q: (q * q * w).sum(),
    "constant": lambda lib, w: lambda q: lib.ones(2) * w,
}
ONE = ("sum", "sum of squares")  #: those that return one number
TRANSFORMS = {
    "grad": lambda f, F, x, t: F.grad(f)(x),
    "grad_and_value": lambda f, F, x, t: F.grad_and_value(f)(x),
    "aux": lambda f, F, x, t: F.grad(lambda q: (f(q), q * 2), has_aux=True)(x),
    "vjp": lambda f, F, x, t: F.vjp(f, x)[0],
    "pullback": lambda f, F, x, t: F.vjp(f, x)[1](f(t).detach()),
    "jvp": lambda f, F, x, t: F.jvp(f, (x,), (t,)),
    "jacrev": lambda f, F, x, t: F.jacrev(f)(x),
    "jacfwd": lambda f, F, x, t: F.jacfwd(f)(x),
    "hessian": lambda f, F, x, t: F.hessian(f)(x),
    "mapped gradients": lambda f, F, x, t: F.vmap(F.grad(lambda q: f(q).sum()))(x.expand(3, 2)),
}


def told(lib, transform, function, inside):
    """(values, inference tensor or not, requires grad) of what comes out, and of what is recorded of it afterwards; ``inside``: operands made there."""
    w = lib.tensor([0.5, 2.0], requires_grad=True)
    x, t = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    with lib.inference_mode():
        if inside:
            x, t = x * 1, t * 1
        found = TRANSFORMS[transform](FUNCTIONS[function](lib, w), lib.func, x, t)
    flat = [o for e in (found if isinstance(found, tuple) else (found,)) for o in (e if isinstance(e, tuple) else (e,))]
    seen = [(o.tolist(), o.is_inference(), o.requires_grad) for o in flat]
    return seen, [None if o.is_inference() else (o * w).requires_grad for o in flat]


@pytest.mark.parity
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_results(transform, function, inside):
    if transform in ("grad", "grad_and_value", "aux") and function not in ONE:
        return
    (mine, after), (theirs, there) = (told(lib, transform, function, inside) for lib in (ag, torch))
    for (a, inference, moving), (b, elsewhere, moved), used, known in zip(mine, theirs, after, there, strict=True):
        assert a == b and moving is moved
        # what PyTorch hands on as it got it may be an inference tensor there
        assert (inference is elsewhere and used is known) or (elsewhere and not inference)


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode", "enable_grad"])
@pytest.mark.parametrize("function", ["constant", "outside"])
@pytest.mark.parametrize("transform", ["grad", "jacrev", "jacfwd", "pulled", "pushed"])
def test_mapped_functions_that_do_not_depend_on_their_operand(transform, function, mode):
    """What they return may require grad by what is outside, also where nothing is recorded."""

    def found(lib):
        F, w = lib.func, lib.tensor([0.5, 2.0], requires_grad=True)
        f = (lambda q: w.sum()) if function == "outside" else lambda q: lib.ones(2).sum()
        way = {
            "grad": F.grad(f), "jacrev": F.jacrev(f), "jacfwd": F.jacfwd(f), "pulled": lambda q: F.vjp(f, q)[1](lib.tensor(1.0))[0],
            "pushed": lambda q: F.jvp(f, (q,), (q,))[1],
        }[transform]  # fmt: skip
        with getattr(lib, mode)():
            result = F.vmap(way)(lib.ones(3, 2))
        return result.tolist(), result.requires_grad

    assert found(ag) == found(torch)


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
@pytest.mark.parametrize("dtype", ["int64", "bool"])
@pytest.mark.parametrize("name", ["grad", "grad_and_value", "vjp", "jacrev", "hessian", "jacfwd"])
def test_what_has_no_gradient_is_refused(name, dtype, inside):
    said = []
    for t in (ag, torch):
        with t.inference_mode(inside):
            x = t.ones(3, dtype=getattr(t, dtype))
            f = (lambda z: (z * 2).sum()) if name in ("grad", "grad_and_value", "hessian") else (lambda z: z * 2)
            with pytest.raises((RuntimeError, ValueError)) as refused:
                t.func.vjp(f, x) if name == "vjp" else getattr(t.func, name)(f)(x)
        said.append((refused.type, str(refused.value)[:40]))
    assert said[0] == said[1]
