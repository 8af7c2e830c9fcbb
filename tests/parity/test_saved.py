"""Which tensors may be changed in place before the backward pass: as in PyTorch, for every op and module of its databases.

The walk is `tests.parity.saved`; it runs without a compiler, as only what is kept matters here and not how quickly.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402

PARTS = 8


def compared(walk, part, things, *options):
    """How many things a part of a walk over all ops compared, none of which differs from PyTorch's."""
    command = [sys.executable, "-m", f"tests.parity.{walk}", *options, "--part", str(part), str(PARTS)]
    run = subprocess.run(command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, timeout=1500)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    return int(run.stdout.split(f" {things} of ")[0].rsplit(None, 1)[-1])


@pytest.mark.parity
@pytest.mark.parametrize("part", range(PARTS))
def test_in_place_changes_are_refused_where_pytorch_refuses_them(part):
    assert compared("saved", part, "pairs") > 500


@pytest.mark.parity
@pytest.mark.parametrize("part", range(PARTS))
def test_changes_of_what_conjugates_are_shown_of_are_refused_where_pytorch_refuses_them(part):
    assert compared("saved", part, "pairs", "--shown") > 500


def over_changed(x):
    y = x + 1
    z = 2 / y
    y.zero_()
    return z


CHANGED = [
    ("max_pool2d, ReLU in place", lambda t, x: t.nn.ReLU(inplace=True)(t.nn.functional.max_pool2d(x.reshape(1, 1, 4, 4), 2))),
    ("quotient", lambda t, x: (x / (x + 1)).add_(1)),
    ("reciprocal", lambda t, x: (1 / x).add_(1)),
    ("number over tensor, operand changed", lambda t, x: over_changed(x)),
    ("root as a power", lambda t, x: (x**0.5).add_(1)),
    ("inverse as a power", lambda t, x: (x**-1).add_(1)),
    ("normalize", lambda t, x: t.nn.functional.normalize(x).mul_(2)),
    ("max along a dim", lambda t, x: x.max(0).values.masked_fill_(t.tensor([True, False, True, False]), 0.0)),
    ("topk", lambda t, x: x.topk(2).values.mul_(2)),
    ("sort", lambda t, x: x.sort().values.mul_(2)),
    ("cummax", lambda t, x: x.cummax(0).values.mul_(2)),
    ("kthvalue", lambda t, x: x.kthvalue(2).values.mul_(2)),
    ("median", lambda t, x: x.median(0).values.mul_(2)),
    ("slogdet", lambda t, x: t.linalg.slogdet(x + 3 * t.eye(4, dtype=t.float64))[1].mul_(2)),
    ("lp_pool1d", lambda t, x: t.nn.functional.lp_pool1d(x, 2, 2).mul_(2)),
    ("max_pool1d", lambda t, x: t.nn.functional.max_pool1d(x, 2).mul_(2)),
    ("local_response_norm", lambda t, x: t.nn.functional.local_response_norm(x.reshape(1, 4, 4), 2).mul_(2)),
    ("erfinv", lambda t, x: t.erfinv(x / 100).mul_(2)),
    ("mvlgamma_", lambda t, x: (x + 1).mvlgamma_(2)),
]


@pytest.mark.parity
@pytest.mark.parametrize("f", [f for _, f in CHANGED], ids=[name for name, _ in CHANGED])
def test_programs_that_change_results_have_pytorchs_gradients(f):
    values = torch.linspace(1.0, 3.0, 16, dtype=torch.float64).cos().reshape(4, 4) + 2
    theirs, mine = values.clone().requires_grad_(), ag.from_numpy(values.numpy().copy()).requires_grad_()
    f(torch, theirs).sum().backward()
    f(ag, mine).sum().backward()
    torch.testing.assert_close(torch.from_numpy(mine.grad.numpy()), theirs.grad)


def then_changed(op):
    """``op(t, x + 1)``, after which what it was given is set to 0."""

    def f(t, x):
        y = x + 1
        z = op(t, y)
        y.zero_()
        return z.sum()

    return f


REFUSED = [
    then_changed(lambda t, y: t.var_mean(y)[1]),
    then_changed(lambda t, y: t.std_mean(y, 0)[1]),
    then_changed(lambda t, y: t.dist(y, y * 2)),
    then_changed(lambda t, y: t.nn.functional.avg_pool1d(y, 2)),
    then_changed(lambda t, y: t.nn.functional.max_pool1d(y, 2)),
    lambda t, x: x.sgn().mul_(2).sum(),
    lambda t, x: x.cumprod(0).mul_(2).sum(),
    lambda t, x: t.dist(x, x + 1).mul_(2),
]


@pytest.mark.parity
@pytest.mark.parametrize("f", REFUSED)
def test_what_pytorch_refuses_is_refused(f):
    for library in (torch, ag):
        x = library.ones(4, 4, dtype=library.float64, requires_grad=True)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            f(library, x).backward()


@pytest.mark.parity
@pytest.mark.parametrize("k", (0, 1))
def test_one_result_of_several_may_be_changed_as_in_pytorch(k):
    """What only the other result's gradient reads is the one node's all the same."""
    for name in ("var_mean", "std_mean"):
        for changed in (0, 1):
            refused = []
            for library in (torch, ag):
                results = getattr(library, name)(library.arange(6.0).reshape(2, 3).requires_grad_(), 1)
                results[changed].mul_(2)
                try:
                    results[k].sum().backward()
                    refused.append(False)
                except RuntimeError:
                    refused.append(True)
            assert refused[0] is refused[1], f"{name}: gradient of result {k}, result {changed} changed"


@pytest.mark.parity
@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_values_changed_behind_the_graphs_back_give_pytorchs_gradients(part):
    assert compared("exchanged", part, "changes") > 100


IN_PLACE = {
    "elu": (), "leaky_relu": (0.1,), "celu": (), "selu": (), "rrelu": (), "rrelu training": (0.1, 0.3, True), "hardtanh": (), "relu6": (),
    "relu": (), "threshold": (0.0, 1.0), "silu": (), "mish": (), "hardswish": (), "hardsigmoid": (), "dropout": (),
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("of_view", (False, True))
@pytest.mark.parametrize("name", IN_PLACE)
def test_results_of_activations_in_place_are_kept_as_in_pytorch(name, of_view):
    refused = []
    for library in (torch, ag):
        y = library.linspace(-2.0, 2.0, 6).requires_grad_() * 1
        z = y[1:5] if of_view else y
        getattr(library.nn.functional, name.split()[0])(z, *IN_PLACE[name], inplace=True)
        z.add_(1)
        try:
            y.sum().backward()
            refused.append(False)
        except RuntimeError:
            refused.append(True)
    assert refused[0] is refused[1]


LINEAR_IN_GRADIENTS = {
    "addcmul": lambda t, a, b: t.addcmul(b, a, b, value=0.5),
    "addcdiv": lambda t, a, b: t.addcdiv(b, a, b),
    "div": lambda t, a, b: a / b,
    "lerp": lambda t, a, b: t.lerp(b, a, b),
    "mul": lambda t, a, b: a * b,
    "where": lambda t, a, b: t.where(b > 0, a, b),
}


@pytest.mark.parity
@pytest.mark.parametrize("name", LINEAR_IN_GRADIENTS)
def test_derivatives_keep_what_theirs_read(name):
    """A gradient may be changed where the second derivative does not read it."""
    grads = []
    for library in (torch, ag):
        g, a, b = (library.linspace(k, k + 1.0, 4) for k in range(1, 4))
        g.requires_grad_(), a.requires_grad_()
        first, = library.autograd.grad(LINEAR_IN_GRADIENTS[name](library, a, b), a, g, create_graph=True)
        with library.no_grad():
            g.zero_()
        first.sum().backward(inputs=[g])
        grads.append(torch.from_numpy(g.grad.numpy()))
    torch.testing.assert_close(*reversed(grads))


@pytest.mark.parity
def test_what_a_second_pass_refuses():
    """After an operand or a result was changed between a recorded backward pass and the next; the walk is `tests.parity.second_pass`."""
    command = [sys.executable, "-m", "tests.parity.second_pass"]
    run = subprocess.run(command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert int(run.stdout.split(" calls compared")[0].rsplit(None, 1)[-1]) > 120


@pytest.mark.parity
@pytest.mark.parametrize("scale", [1.0, float("inf")])
def test_a_factor_of_zero_takes_part_in_the_graph(scale):
    """x · 0 has a gradient with a history, and of an infinite one it is nan; a derivative that is 0 everywhere has neither."""
    calls = [lambda t, x: x * 0, lambda t, x: 0 * x, lambda t, x: t.mul(x, 0.0), lambda t, x: x.sign(), lambda t, x: x.div(2, rounding_mode="floor")]
    for call in calls:
        seen = []
        for library in (torch, ag):
            x = library.ones(3, dtype=library.float64).requires_grad_()
            h = (library.ones(3, dtype=library.float64) * scale).requires_grad_()
            (g,) = library.autograd.grad(call(library, x), x, h, create_graph=True)
            (plain,) = library.autograd.grad(call(library, x), x, h)
            seen.append((str(g.tolist()), str(plain.tolist()), g.requires_grad))
        assert seen[0] == seen[1]


def _checkpointed(library, how, reentrant, by_name):
    x = library.linspace(0.1, 1.0, 3).requires_grad_()
    y, w, c = x * 1, library.ones(3).requires_grad_(), library.ones(3) * 2

    def part(q, c):
        if how == "inside":
            c.mul_(2)
        return q.sin() * w * c

    more = {"c": c} if by_name else {}
    z = library.utils.checkpoint.checkpoint(part, y, *([] if by_name else [c]), use_reentrant=reentrant, **more)
    with library.no_grad():
        if how == "view":
            y.view(-1)[0] = 3
        elif how in ("argument", "constant", "closure"):
            {"argument": y, "constant": c, "closure": w}[how].mul_(2)
        elif how == "data":
            y.data.mul_(2)
    try:
        z.sum().backward()
    except RuntimeError as error:
        return "refused" if "modified by an inplace operation" in str(error) else str(error)
    return [round(v, 5) for v in [*x.grad.tolist(), *w.grad.tolist()]]


@pytest.mark.parity
@pytest.mark.parametrize("how", ["not", "argument", "view", "constant", "closure", "data", "inside"])
def test_arguments_of_a_checkpoint_that_were_changed(how):
    """What is passed by position may not be changed before the function is run again; what is passed by name, or found, may."""
    import torch.utils.checkpoint

    for reentrant, by_name in ((False, False), (True, False), (False, True)):
        assert _checkpointed(ag, how, reentrant, by_name) == _checkpointed(torch, how, reentrant, by_name)


@pytest.mark.parity
def test_a_hook_on_a_view_made_without_recording():
    """Its base has got a history since."""
    for library in (torch, ag):
        base, w = library.ones(3, 4), library.ones(3, 4).requires_grad_()
        with library.no_grad():
            view = base.view(-1)
        base.mul_(0.5).add_(w)
        with pytest.raises(RuntimeError, match="A view was created in no_grad mode and its base or another view"):
            view.register_hook(lambda g: g)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["index_copy_", "masked_scatter_"])
def test_an_expanded_tensor_is_refused_before_other_arguments(name):
    for library in (torch, ag):
        x = library.ones(1).expand(3)
        for index, source in (([5], library.ones(1)), ([0], library.ones(2)), ([0], library.ones(1).double())):
            k = library.tensor(index)
            with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
                x.index_copy_(0, k, source) if name == "index_copy_" else x.masked_scatter_(k > 0, source)


@pytest.mark.parity
def test_roll_of_all_elements_is_no_view():
    for library in (torch, ag):
        for x in (library.ones(3, 4), library.ones(3, 4).requires_grad_()):
            assert not x.roll(1)._is_view()
    x = torch.arange(24.0).reshape(2, 3, 4).mT
    y = ag.from_numpy(x.numpy().copy()).mT.contiguous().mT
    assert y.roll(-5).tolist() == x.roll(-5).tolist() and tuple(y.roll(5).stride()) == tuple(x.roll(5).stride())


@pytest.mark.parity
def test_inference_tensors_are_no_views():
    for library in (torch, ag):
        with library.inference_mode():
            x = library.ones(3, 4)
            inside = x.t()
        for y in (inside, x.t()):
            assert not y._is_view() and y._base is None and y.detach_() is y


@pytest.mark.parity
def test_detach_in_place_does_nothing_in_inference():
    def tried(t):
        before = t.grad_fn
        try:
            same = t.detach_() is t
        except RuntimeError as error:
            return str(error).split(".")[0]
        return same, t.grad_fn is before, t.requires_grad, t.is_leaf, t._is_view()

    def seen(library):
        with library.inference_mode():
            leaf, plain = library.ones(3, 4, requires_grad=True), library.ones(3, 4)
            found = [tried(t) for t in (leaf, leaf * 2, plain, plain.t())]
        w = library.ones(3, 4, requires_grad=True)
        with library.inference_mode():
            view = w.t()
        found += [tried(t) for t in (leaf, plain, plain.t(), plain.t().t(), plain.detach(), plain.t().detach(), view, view.t())]
        for mode in (library.inference_mode, library.no_grad):
            inner, result, of_result, view, leaf = w * 1, w * 2, (w * 2).t(), w.t(), library.ones(3, requires_grad=True)
            with mode():
                found += [tried(t) for t in (inner.t(), result, of_result, view, leaf)]
        return found

    assert seen(ag) == seen(torch)


@pytest.mark.parity
@pytest.mark.parametrize("changed", ("start", "end", "weight"))
@pytest.mark.parametrize("wanted", ("start", "end", "weight", "start end", "start weight", "end weight"))
@pytest.mark.parametrize("shape", ((), (3,)))
def test_what_lerp_keeps(shape, wanted, changed):
    refused = []
    for library in (torch, ag):
        operands = {name: library.ones(shape if name == "weight" else (3,), requires_grad=name in wanted.split()) for name in ("start", "end", "weight")}
        read = {name: t * 1 for name, t in operands.items()}
        y = library.lerp(*read.values())
        with library.no_grad():
            read[changed].mul_(2)
        try:
            y.sum().backward()
            refused.append(False)
        except RuntimeError:
            refused.append(True)
    assert refused[0] is refused[1]
