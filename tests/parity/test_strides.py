"""Strides of results and gradients of operands that are not in C order are PyTorch's: see `strides`.

The kernels run as Python in processes of their own: compiling those of every kind of loop would take much longer.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb  # noqa: E402

PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_every_op_of_the_database(part):
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-m", "tests.parity.strides", "--quick", f"--part={part}/{PARTS}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]


def _shape(size: int, drawn: random.Random) -> list[int]:
    """A shape of so many elements, with dims of one element among the others."""
    shape = []
    while size > 1:
        shape.append(drawn.choice([d for d in range(2, size + 1) if size % d == 0]))
        size //= shape[-1]
    for _ in range(drawn.randint(0, 3)):
        shape.insert(drawn.randint(0, len(shape)), 1)
    return shape


def _strides(view):
    """The strides of a view, or the class of the error."""
    try:
        return tuple(view().stride())
    except RuntimeError as error:
        return type(error)


@pytest.mark.parametrize("seed", range(4))
def test_views_of_permuted_narrowed_and_expanded_tensors(seed):
    """Dims of one element have PyTorch's strides too: they decide how what is computed from a view lies."""
    drawn = random.Random(seed)
    for _ in range(500):
        size = drawn.choice([1, 2, 4, 6, 12, 24])
        shape = _shape(size, drawn)
        order = drawn.sample(range(len(shape)), len(shape))
        narrowed, expanded = drawn.choice([*order, None]), drawn.choice([*order, None])
        pair = []
        for lib in (torch, autograd_nb):
            x = lib.arange(float(size)).reshape(shape).permute(order)
            if narrowed is not None:
                x = x.narrow(narrowed, 0, max(1, x.shape[narrowed] // 2))
            if expanded is not None and x.shape[expanded] == 1:
                x = x.expand([3 if d == expanded else n for d, n in enumerate(x.shape)])
            pair.append(x)
        theirs, ours = pair
        new = _shape(theirs.numel(), drawn)
        for name in ("view", "reshape"):
            views = [lambda x=x: getattr(x, name)(new) for x in (ours, theirs)]
            assert _strides(views[0]) == _strides(views[1]), (name, theirs.shape, theirs.stride(), new)


SOLVED = """
linalg.solve_triangular(a, b, upper=True) | linalg.solve_triangular(a, b.mT, upper=True, left=False) | triangular_solve(b, a)[0] | triangular_solve(b, a)[1]
linalg.solve(a, b) | linalg.solve(a, b.mT, left=False) | cholesky_solve(b, a) | linalg.lu_solve(*t.linalg.lu_factor(a), b) | linalg.inv(a) | linalg.pinv(b)
linalg.lstsq(a, b)[0] | linalg.cholesky(a) | linalg.qr(b)[0] | linalg.qr(b)[1] | linalg.svd(b)[0] | linalg.svd(b)[2] | linalg.lu(b)[0] | linalg.lu(b)[1]
linalg.lu(b)[2] | linalg.eigh(a)[1] | cholesky_inverse(a) | linalg.householder_product(b, b[..., 0, :]) | geqrf(b)[0] | linalg.ldl_factor(a)[0]
kron(t.linalg.solve_triangular(a, b, upper=True), b) | kron(b, t.linalg.solve_triangular(a, b, upper=True))
"""


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("call", [call.strip() for line in SOLVED.strip().splitlines() for call in line.split("|")])
def test_factors_and_solutions_stand_by_columns(call):
    """Single columns too, whose strides decide how a Kronecker product of them lies."""
    for n, k, batch, turned, graph in itertools.product((1, 3), (1, 2), ((), (2,)), (False, True), (False, True)):
        found = []
        for lib in (torch, autograd_nb):
            a, b = lib.eye(n, dtype=lib.float64).expand(*batch, n, n).contiguous().requires_grad_(graph), lib.ones(*batch, n, k, dtype=lib.float64)
            b = b.mT.contiguous().mT if turned else b
            found.append(_strides(lambda: eval(f"t.{call}", {"t": lib, "a": a, "b": b})))
        assert found[1] == found[0] or found[0] is RuntimeError, (n, k, batch, turned, graph)  # (kron refuses what it cannot view)


@pytest.mark.parametrize("seed", range(4))
def test_arrays_that_are_expanded_or_have_gaps(seed):
    drawn = random.Random(seed)
    for _ in range(200):
        shape = [drawn.choice([1, 2, 3, 4]) for _ in range(drawn.randint(1, 4))]
        array = np.arange(2.0 ** len(shape) * np.prod(shape)).reshape([2 * n for n in shape])[tuple(slice(None, None, 2) for _ in shape)]
        if drawn.random() < 0.7:
            array = np.expand_dims(array, at := drawn.randint(0, len(shape)))
            array = np.broadcast_to(array, [3 if d == at else n for d, n in enumerate(array.shape)])
        array = array.transpose(drawn.sample(range(array.ndim), array.ndim))
        ours, theirs = (lib.tensor(array) for lib in (autograd_nb, torch))
        wide = [(s, t) for s, t, n in zip(ours.stride(), theirs.stride(), array.shape, strict=True) if n > 1]
        assert ours.tolist() == theirs.tolist() and all(s == t for s, t in wide), (array.shape, array.strides)


def _index(shape, drawn, lib):
    """Slices, numbers, new dims and positions, whose tensors may be turned round in memory."""
    parts = []
    for n in shape:
        kind = drawn.choice(["all", "all", "step", "new", "number", "positions", "positions", "turned"])
        if kind == "new":
            parts.append(None)
        if kind in ("positions", "turned"):
            found = lib.tensor([[drawn.randrange(n) for _ in range(3)] for _ in range(2)])
            parts.append(found.t().contiguous().t() if kind == "turned" else found)
        else:
            parts.append({"step": slice(None, None, 2), "number": n - 1}.get(kind, slice(None)))
    return tuple(parts)


@pytest.mark.parametrize("seed", range(2))
def test_what_positions_pick_from_permuted_tensors(seed):
    """Both the tensor's dims and those of the positions keep their order in memory."""
    drawn = random.Random(seed)
    for _ in range(300):
        shape = [drawn.choice([1, 2, 3, 4]) for _ in range(drawn.randint(1, 4))]
        order, seen = drawn.sample(range(len(shape)), len(shape)), drawn.getstate()
        places = [order.index(d) for d in range(len(shape))]
        picked = []
        for lib in (autograd_nb, torch):
            x = lib.arange(float(np.prod(shape))).reshape([shape[d] for d in order]).permute(places)
            drawn.setstate(seen)
            picked.append(x[_index(shape, drawn, lib)])
        ours, theirs = picked
        assert ours.tolist() == theirs.tolist()
        assert tuple(ours.stride()) == tuple(theirs.stride()), (shape, order, drawn.setstate(seen), _index(shape, drawn, torch))


@pytest.mark.parametrize("call", ("take(x, i)", "nn.functional.embedding(i, x)", "index_select(x, 0, i[0])", "gather(x, 0, i)", "tile(x[0, 0], ())"))
def test_what_else_picks_lies_in_c_order(call):
    strides = []
    for lib in (autograd_nb, torch):
        i, x = lib.tensor([[0, 1, 2], [2, 1, 0]]).t().contiguous().t(), lib.arange(12.0).reshape(4, 3)
        strides.append(eval(f"t.{call}", {"t": lib, "x": x, "i": i}).stride())
    assert tuple(strides[0]) == tuple(strides[1])


@pytest.mark.parametrize("size", [(3, 4), (2, 3, 4), (2, 3, 2, 2), (8, 32, 20, 20)])
@pytest.mark.parametrize("norm", ["batch_norm", "instance_norm"])
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_norms_by_running_statistics_lie_as_the_input_whatever_comes_back(size, norm, compiled):
    def laid(t, lib, how):
        t = t.transpose(0, 1).contiguous().transpose(0, 1) if how == "turned" else t
        return t.contiguous(memory_format=lib.channels_last) if how == "channels last" and t.ndim == 4 else t

    off = {"training": False} if norm == "batch_norm" else {"use_input_stats": False}
    for how, back in itertools.product(("C", "turned", "channels last"), repeat=2):
        found = []
        for lib in (torch, autograd_nb):
            c = size[1]
            x, w = laid(lib.arange(1.0, np.prod(size) + 1).reshape(size).sin(), lib, how).requires_grad_(), lib.ones(c).requires_grad_()
            mean, var, b = lib.zeros(c), lib.ones(c), lib.ones(c)

            def step(x, w=w, mean=mean, var=var, b=b, lib=lib):
                return getattr(lib.nn.functional, norm)(x, mean, var, w, b, **off)

            step = autograd_nb.compile(step) if compiled and lib is autograd_nb else step
            for _ in range(2):
                y = step(x)
                g, gw = lib.autograd.grad(y, [x, w], laid(lib.ones(size), lib, back))
            found.append((y.stride(), g.stride(), y.detach().numpy(), g.numpy(), gw.numpy()))
        (wanted, lies, *arrays), (mine, lying, *others) = found
        assert (wanted, lies) == (mine, lying), (how, back)
        for a, b in zip(arrays, others, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-3)
