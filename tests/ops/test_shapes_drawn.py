"""Shapes, dims and views drawn by hypothesis, against NumPy."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import autograd_nb as torch

settings.register_profile("ours", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("ours")

shapes = st.lists(st.integers(0, 4), max_size=5).map(tuple)
full_shapes = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple)


def array(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@st.composite
def broadcastable(draw):
    """A shape and a few shapes that broadcast to it."""
    full = draw(st.lists(st.integers(1, 4), max_size=4).map(tuple))
    parts = []
    for _ in range(2):
        part = [n if draw(st.booleans()) else 1 for n in full]
        parts.append(tuple(part[draw(st.integers(0, len(part))) :]))
    return parts


@st.composite
def viewed(draw):
    """An array and the same elements as a tensor that is a view: permuted, sliced, expanded."""
    a = array(draw(full_shapes), 1)
    t = torch.from_numpy(a.copy())
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["permute", "slice", "step", "unsqueeze", "expand", "select"]))
        d = draw(st.integers(0, a.ndim - 1)) if a.ndim else 0
        if kind == "permute":
            order = draw(st.permutations(range(a.ndim)))
            a, t = a.transpose(order), t.permute(*order)
        elif kind == "slice" and a.ndim:
            start = draw(st.integers(0, a.shape[d] - 1))
            index = (slice(None),) * d + (slice(start, None),)
            a, t = a[index], t[index]
        elif kind == "step" and a.ndim:
            index = (slice(None),) * d + (slice(None, None, draw(st.integers(1, 3))),)
            a, t = a[index], t[index]
        elif kind == "unsqueeze":
            a, t = np.expand_dims(a, d), t.unsqueeze(d)
        elif kind == "expand":
            n = draw(st.integers(1, 3))
            a, t = np.broadcast_to(a, (n, *a.shape)), t.expand(n, *t.shape)
        elif kind == "select" and a.ndim > 1:
            i = draw(st.integers(0, a.shape[d] - 1))
            a, t = np.take(a, i, axis=d), t.select(d, i)
        assume(a.size < 500)
    return a, t


@given(broadcastable())
def test_broadcasting_values_and_gradients(parts):
    a, b = (array(s, k) for k, s in enumerate(parts))
    x, y = (torch.from_numpy(np.asarray(v)).requires_grad_() for v in (a, b))
    out = x * y + x
    expected = a * b + a
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-12)
    w = array(expected.shape, 3)
    out.backward(torch.from_numpy(np.asarray(w)))

    def summed(full: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        lead = full.ndim - len(shape)
        axes = tuple(range(lead)) + tuple(lead + d for d, n in enumerate(shape) if n == 1)
        return full.sum(axes, keepdims=True).reshape(shape)

    np.testing.assert_allclose(x.grad.numpy(), summed(w * (b + 1), a.shape), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(y.grad.numpy(), summed(w * a, b.shape), rtol=1e-10, atol=1e-12)


@given(viewed(), st.data())
def test_reductions_of_views(pair, data):
    a, t = pair
    np.testing.assert_array_equal(t.numpy(), a)
    dims = data.draw(st.lists(st.integers(-a.ndim, a.ndim - 1), unique_by=lambda d: d % max(a.ndim, 1), max_size=a.ndim) if a.ndim else st.just([]))
    keep = data.draw(st.booleans())
    axes = tuple(dims) or None
    np.testing.assert_allclose(t.sum(dims, keepdim=keep).numpy(), a.sum(axes, keepdims=keep), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(t.mean(dims, keepdim=keep).numpy(), a.mean(axes, keepdims=keep), rtol=1e-12, atol=1e-12)


@given(viewed())
def test_pointwise_on_views_and_back(pair):
    a, t = pair
    x = t.detach().requires_grad_()
    y = (x * 3 + x.exp()).tanh()
    np.testing.assert_allclose(y.detach().numpy(), np.tanh(a * 3 + np.exp(a)), rtol=1e-11, atol=1e-13)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), (1 - np.tanh(a * 3 + np.exp(a)) ** 2) * (3 + np.exp(a)), rtol=1e-8, atol=1e-10)


@given(viewed(), st.data())
def test_reshape_of_views(pair, data):
    a, t = pair
    factors = []
    left = a.size
    while left > 1 and len(factors) < 4:
        f = data.draw(st.sampled_from([k for k in range(1, left + 1) if left % k == 0]))
        factors.append(f)
        left //= f
    factors.append(left)
    order = data.draw(st.permutations(factors))
    np.testing.assert_array_equal(t.reshape(*order).numpy(), a.reshape(order))
    assert math.prod(order) == a.size


@given(shapes, st.data())
def test_empty_and_odd_shapes(shape, data):
    a = array(shape)
    t = torch.from_numpy(a)
    assert tuple(t.shape) == shape
    np.testing.assert_array_equal((t + 1).numpy(), a + 1)
    np.testing.assert_allclose(t.sum().numpy(), a.sum(), atol=1e-12)
    if shape:
        d = data.draw(st.integers(0, len(shape) - 1))
        np.testing.assert_allclose(t.sum(d).numpy(), a.sum(d), atol=1e-12)
        np.testing.assert_array_equal(torch.cat([t, t], d).numpy(), np.concatenate([a, a], d))


@given(viewed(), viewed())
def test_in_place_writes_change_only_what_the_view_sees(pair, other):
    a, t = pair
    b = a.copy()
    if 0 in t.stride():  # expanded: refused
        return
    t.mul_(2)
    np.testing.assert_allclose(t.numpy(), b * 2)
    t.copy_(torch.zeros(()))
    assert not t.numpy().any()
