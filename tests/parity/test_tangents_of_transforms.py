"""Transforms that go backwards give the tangents that PyTorch's give, of tensors that have some, and lose none without a word."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import autograd_nb as ag

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # which PyTorch gives itself

X, V, W = np.array([1.0, 2.0, 0.5]), np.array([1.0, 0.0, -2.0]), np.array([[0.5, 1.0, 2.0], [1.0, -1.0, 0.3]])


def _cut(lib, t):
    with lib.no_grad():
        c = t.sum()
    return lib.func.grad(lambda u: (u**3).sum())(t) * c


FORMS = {
    "grad": lambda lib, x, w: lib.func.grad(lambda t: (t**3).sum())(x),
    "of a constant": lambda lib, x, w: lib.func.grad(lambda t: (t * 2).sum())(x),
    "grad by the second": lambda lib, x, w: lib.func.grad(lambda t, u: (t * t @ (u.exp())).sum(), argnums=1)(w, x),
    "another argument moves": lambda lib, x, w: lib.func.grad(lambda t, u: (t.sin() * u).sum())(w, x),
    "by name": lambda lib, x, w: lib.func.grad(lambda t, scale: (t.sin() * scale).sum())(w, scale=x),
    "grad of grad": lambda lib, x, w: lib.func.grad(lambda t: lib.func.grad(lambda u: (u**4).sum())(t).sum())(x),
    "grad_and_value": lambda lib, x, w: lib.func.grad_and_value(lambda t: (t**3).sum())(x),
    "aux": lambda lib, x, w: lib.func.grad(lambda t: ((t**3).sum(), t.exp()), has_aux=True)(x),
    "a tree": lambda lib, x, w: lib.func.grad(lambda p: (p["a"] ** 2 @ p["b"].t()).sum())({"a": x, "b": w})["b"],
    "vjp": lambda lib, x, w: lib.func.vjp(lambda t: w @ t.tanh(), x)[1](lib.ones(2, dtype=lib.float64))[0],
    "value of vjp": lambda lib, x, w: lib.func.vjp(lambda t: w @ t.tanh(), x)[0],
    "jacrev": lambda lib, x, w: lib.func.jacrev(lambda t: w @ t.tanh())(x),
    "hessian": lambda lib, x, w: lib.func.hessian(lambda t: (t**3).sum())(x),
    "vmap of grad": lambda lib, x, w: lib.func.vmap(lib.func.grad(lambda t: t**3))(x),
    "vmap of vmap of grad": lambda lib, x, w: lib.func.vmap(lib.func.vmap(lib.func.grad(lambda t: t.sin())))(x * w),
    "vmap of a constant": lambda lib, x, w: lib.func.vmap(lib.func.grad(lambda t: t * 2))(x),
    "vmap of vjp": lambda lib, x, w: lib.func.vmap(lambda t: lib.func.vjp(lambda u: u * u.sin(), t)[1](t.detach())[0])(x * w),
    "vmap of jacrev": lambda lib, x, w: lib.func.vmap(lib.func.jacrev(lambda t: t * t.flip(0)))(x * w),
    "a part under no_grad": lambda lib, x, w: _cut(lib, x),
    "jacfwd": lambda lib, x, w: lib.func.jacfwd(lambda t: w @ t.tanh())(x),
    "jvp": lambda lib, x, w: lib.func.jvp(lambda t: w @ t.tanh(), (x,), (lib.ones(3, dtype=lib.float64),))[1],
}


#: what PyTorch refuses inside of a level: forward mode in forward mode
NESTED = {"hessian", "jacfwd", "jvp"}


def parts(lib, out):
    fw = lib.autograd.forward_ad
    return [fw.unpack_dual(t) for t in (out if isinstance(out, tuple) else (out,))]


@pytest.mark.parametrize("name", sorted(FORMS.keys() - NESTED))
def test_explicit_tangents(name):
    found = []
    for lib in (torch, ag):
        fw = lib.autograd.forward_ad
        w = lib.tensor(W)
        with fw.dual_level():
            out = FORMS[name](lib, fw.make_dual(lib.tensor(X), lib.tensor(V)), w)
            found.append([(p.detach().numpy(), None if t is None else t.detach().numpy()) for p, t in parts(lib, out)])
    for (p, t), (q, u) in zip(*found, strict=True):
        np.testing.assert_allclose(q, p, rtol=1e-10)
        np.testing.assert_allclose(np.zeros_like(p) if u is None else u, np.zeros_like(p) if t is None else t, rtol=1e-10)


@pytest.mark.parametrize("name", FORMS)
def test_inside_of_jvp(name):
    found = []
    for lib in (torch, ag):
        w = lib.tensor(W)
        out, moved = lib.func.jvp(lambda t, lib=lib, w=w: FORMS[name](lib, t, w), (lib.tensor(X),), (lib.tensor(V),))
        found.append([t.detach().numpy() for t in (*(out if isinstance(out, tuple) else (out,)), *(moved if isinstance(moved, tuple) else (moved,)))])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-10)


def test_what_is_captured_is_refused():
    fw = ag.autograd.forward_ad
    with fw.dual_level():
        d = fw.make_dual(ag.tensor(X), ag.tensor(V))
        with pytest.raises(NotImplementedError, match="not among its arguments"):
            ag.func.grad(lambda t: (t * d).sum())(ag.tensor(X))
        assert ag.func.grad(lambda t: (t * 2).sum())(ag.tensor(X)).tolist() == [2.0, 2.0, 2.0]
