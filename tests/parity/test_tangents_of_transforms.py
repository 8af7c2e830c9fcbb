"""Transforms that go backwards give the tangents that PyTorch's give, of tensors that have some, and lose none without a word."""

from __future__ import annotations

import itertools

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


#: what a transform is of: a function of ``t``, which is differentiated, and of ``d``, either of which may have a tangent
FUNCTIONS = {
    "linear": lambda lib, t, d: (t * d).sum(),
    "a product": lambda lib, t, d: (t * t * d.exp()).sum(),
    "of itself": lambda lib, t, d: (d * d * t.sin()).cumsum(-1).sum(),
    "reductions": lambda lib, t, d: (t * d).std() + lib.logsumexp(t + d, -1),
    "in place": lambda lib, t, d: t.clone().mul_(d).add_(t).sin_().sum(),
    "written into": lambda lib, t, d: lib.cat([t, d]).index_add(0, lib.tensor([1, 0, 2]), t * d).prod(),
    "a part under no_grad": lambda lib, t, d: _constant(lib, t * d) * (t * d.exp()).sum(),
    "only the other": lambda lib, t, d: (d * 3).sum(),
    "a gradient within": lambda lib, t, d: lib.autograd.grad((t**3 * d).sum(), t, create_graph=True)[0].sum(),
}


def _constant(lib, t):
    with lib.no_grad():
        return t.sum()


CAPTURING = {
    "grad": lambda lib, f, x, d: lib.func.grad(lambda t: f(lib, t, d))(x),
    "grad_and_value": lambda lib, f, x, d: lib.func.grad_and_value(lambda t: f(lib, t, d))(x),
    "aux": lambda lib, f, x, d: lib.func.grad(lambda t: (f(lib, t, d), t * d), has_aux=True)(x),
    "grad of grad": lambda lib, f, x, d: lib.func.grad(lambda u: lib.func.grad(lambda t: f(lib, t, d))(u).sin().sum())(x),
    "vjp": lambda lib, f, x, d: lib.func.vjp(lambda t: f(lib, t, d) * t, x)[1](lib.ones(3, dtype=lib.float64))[0],
    "vjp of a seed that moves": lambda lib, f, x, d: lib.func.vjp(lambda t: f(lib, t, d) * t, x)[1](d)[0],
    "value of vjp": lambda lib, f, x, d: lib.func.vjp(lambda t: f(lib, t, d), x)[0],
    "jacrev": lambda lib, f, x, d: lib.func.jacrev(lambda t: f(lib, t, d) * t.sin())(x),
    "vmap of grad": lambda lib, f, x, d: lib.func.vmap(lambda s: lib.func.grad(lambda t: f(lib, t * s, d))(x))(lib.tensor(V)),
    "vmap of both": lambda lib, f, x, d: lib.func.vmap(lambda u, e: lib.func.grad(lambda t: f(lib, t, e))(u))(lib.stack([x, x * 2]), lib.stack([d, d.exp()])),
    "vmap": lambda lib, f, x, d: lib.func.vmap(lambda t: f(lib, t, d))(lib.stack([x, x * 2])),
    "grad of vmap": lambda lib, f, x, d: lib.func.grad(lambda u: lib.func.vmap(lambda t: f(lib, t, d))(u).sum())(lib.stack([x, x * 2])),
    "jacrev of grad": lambda lib, f, x, d: lib.func.jacrev(lib.func.grad(lambda t: f(lib, t, d)))(x),
}


@pytest.mark.parametrize("moves", ["captured", "argument", "both"])
@pytest.mark.parametrize(  # (PyTorch has no autograd.grad inside of vmap)
    ("name", "transform"), [(f, t) for f in FUNCTIONS for t in CAPTURING if f != "a gradient within" or "vmap" not in t]
)
def test_what_is_captured(name, transform, moves):
    found = []
    for lib in (torch, ag):
        fw = lib.autograd.forward_ad
        with fw.dual_level():
            x, d = lib.tensor(X), lib.tensor(V + 2)
            x = x if moves == "captured" else fw.make_dual(x, lib.tensor(V))
            d = d if moves == "argument" else fw.make_dual(d, lib.tensor(W[1]))
            out = CAPTURING[transform](lib, FUNCTIONS[name], x, d)
            found.append([(p.detach().numpy(), np.zeros(p.shape) if t is None else t.detach().numpy()) for p, t in parts(lib, out)])
    for (p, t), (q, u) in zip(*found, strict=True):
        np.testing.assert_allclose(q, p, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(u, t, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("transform", ["jvp", "jacfwd", "linearize"])
def test_what_a_transform_that_goes_forward_captures_is_refused(transform):
    for lib in (torch, ag):
        fw = lib.autograd.forward_ad
        with fw.dual_level():
            x, d = lib.tensor(X), fw.make_dual(lib.tensor(X), lib.tensor(V))
            f = {
                "jvp": lambda f, lib=lib, x=x: lib.func.jvp(f, (x,), (x,)),
                "jacfwd": lambda f, lib=lib, x=x: lib.func.jacfwd(f)(x),
                "linearize": lambda f, lib=lib, x=x: lib.func.linearize(f, x),
            }
            with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
                f[transform](lambda t, d=d: (t * d).sum())


@pytest.mark.parametrize("kinds", list(itertools.permutations(["float16", "float32", "float64"], 2)), ids="-".join)
def test_casts_take_tangents_along(kinds):
    """A tangent has the dtype of what it is a tangent of, after a cast to a narrower one too."""
    for lib in (torch, ag):
        first, second = (getattr(lib, kind) for kind in kinds)
        with lib.autograd.forward_ad.dual_level():
            d = lib.autograd.forward_ad.make_dual(lib.ones(2, 2, dtype=first), lib.ones(2, 2, dtype=first))
            for f in (lambda d, s=second: d.to(s), lambda d, s=second, f=first: d.to(s).to(f), lambda d, s=second: d.sum(dtype=s).to(lib.float32)):
                primal, tangent = lib.autograd.forward_ad.unpack_dual(f(d))
                assert primal.dtype is tangent.dtype
