"""What functions may return inside the transforms of `func`: refused where PyTorch refuses it, by errors with its words."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402

#: the transforms of a function of one tensor, and of one that returns something beside its result
ALONE = {
    "grad": lambda lib, f, x: lib.func.grad(f)(x),
    "vjp": lambda lib, f, x: lib.func.vjp(f, x),
    "jvp": lambda lib, f, x: lib.func.jvp(f, (x,), (x,)),
    "jacrev": lambda lib, f, x: lib.func.jacrev(f)(x),
    "jacfwd": lambda lib, f, x: lib.func.jacfwd(f)(x),
    "hessian": lambda lib, f, x: lib.func.hessian(f)(x),
    "vmap": lambda lib, f, x: lib.func.vmap(f)(x),
}
BESIDE = {
    "grad": lambda lib, f, x: lib.func.grad(f, has_aux=True)(x),
    "grad_and_value": lambda lib, f, x: lib.func.grad_and_value(f, has_aux=True)(x),
    "vjp": lambda lib, f, x: lib.func.vjp(f, x, has_aux=True),
    "jvp": lambda lib, f, x: lib.func.jvp(f, (x,), (x,), has_aux=True),
    "jacrev": lambda lib, f, x: lib.func.jacrev(f, has_aux=True)(x),
    "jacfwd": lambda lib, f, x: lib.func.jacfwd(f, has_aux=True)(x),
}
RETURNED = {
    "nothing": lambda x: None, "none of them": lambda x: (), "an int": lambda x: 1, "a bool": lambda x: True, "a float": lambda x: 2.5, "a text": lambda x: "a",
    "a tensor and an int": lambda x: (x * 2, 1), "a tensor and nothing": lambda x: {"a": x * 2, "b": None}, "a list": lambda x: [x * 2, x.sum()],
    "tensors by names": lambda x: {"a": x.sum(), "b": (x, [x])},
}  # fmt: skip


def told(lib, transform, function):
    """The error of a call, or nothing."""
    try:
        transform(lib, function, lib.arange(3.0))
    except Exception as error:
        return error
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", RETURNED)
@pytest.mark.parametrize("transform", ALONE)
def test_results(transform, what):
    mine, theirs = (told(lib, ALONE[transform], RETURNED[what]) for lib in (ours, torch))
    same(mine, theirs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", RETURNED)
@pytest.mark.parametrize("transform", BESIDE)
def test_what_is_returned_beside_them(transform, what):
    mine, theirs = (told(lib, BESIDE[transform], lambda x: (x.sum(), RETURNED[what](x))) for lib in (ours, torch))
    same(mine, theirs)


def same(mine, theirs):
    """Both have refused it in like words, or neither has."""
    assert (mine is None) == (theirs is None), (mine, theirs)
    if theirs is not None:
        assert isinstance(mine, RuntimeError if isinstance(theirs, RuntimeError) else type(theirs)), (mine, theirs)
        found = re.search("non-empty output|return only tensors, got unsupported type|Expected tensors, got|return a Tensor, got|return Tensors", str(theirs))
        assert found is None or found[0] in str(mine), (mine, theirs)


def test_what_is_pulled_back_under_no_grad_needs_none():
    found = []
    for lib in (ours, torch):
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        out, pull = lib.func.vjp(lambda t: t**3, x)
        with lib.no_grad():
            (quiet,) = pull(lib.ones(2))
        (told,) = pull(lib.ones(2))
        told.sum().backward()
        found.append([out.requires_grad, quiet.requires_grad, told.requires_grad, quiet.tolist(), x.grad.tolist()])
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated")
@pytest.mark.parametrize("transform", BESIDE)
@pytest.mark.parametrize("asked", (False, True))
def test_what_is_returned_beside_them_has_a_history_of_what_is_outside_alone(transform, asked):
    found = []
    for lib in (ours, torch):
        y = lib.ones(3, requires_grad=True)
        shown = []
        for value in (lambda z, y=y: (z * y).sum(), lambda z: z.sum(), lambda z: (z * z).sum()):
            z = (lib.ones(3) * 2).requires_grad_(asked)

            def function(z, value=value, y=y, lib=lib):
                u = z * z
                return value(z), (z.mean(), (u * y).sum(), z, y, z * 0 + 1, y * 2, lib.ones(2), z.detach(), y.detach(), u)

            result = BESIDE[transform](lib, function, z)
            beside = next(t for t in reversed(tuple(result[1]) if transform == "grad_and_value" else result) if isinstance(t, tuple))
            (beside[1] * 2).backward()
            shown.append(([t.requires_grad for t in beside], y.grad.tolist(), None if z.grad is None else z.grad.tolist()))
        found.append(shown)
    assert found[0] == found[1]
