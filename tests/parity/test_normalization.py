"""Norms against PyTorch: values, statistics, first and second derivatives, errors."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402
from autograd_nb.ops.core.registry import functions  # noqa: E402

from .compare import both, compare  # noqa: E402
from .snippets import check  # noqa: E402

F = functions("nn.functional")
T = torch.nn.functional
RNG = np.random.default_rng(11)
X = RNG.normal(size=(4, 6, 3, 5)) * 2 + 1
W, B = RNG.normal(size=6), RNG.normal(size=6)


def run(name, arrays, call, rtol=1e-8, **kw):
    compare(lambda *t: call(F[name], *t), lambda *t: call(getattr(T, name), *t), arrays, rtol=rtol, atol=1e-9, **kw)


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 5), (4, 6, 3, 5)])
@pytest.mark.parametrize("affine", [0, 1, 2])
def test_batch_norm(shape, affine):
    x = RNG.normal(size=shape)
    arrays = [x, W, B][: 1 + affine]
    run("batch_norm", arrays, lambda f, x, *wb: f(x, None, None, *wb, training=True))
    for training in (True, False):
        mean, var = both(np.linspace(-1, 1, 6)), both(np.linspace(0.5, 2, 6))
        compare(
            lambda x, *wb, m=mean, v=var, t=training: F["batch_norm"](x, m[0], v[0], *wb, training=t, momentum=0.3),
            lambda x, *wb, m=mean, v=var, t=training: T.batch_norm(x, m[1], v[1], *wb, training=t, momentum=0.3),
            arrays, rtol=1e-8,
        )  # fmt: skip
        for a, b in (mean, var):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10)


def test_batch_norm_float32_and_half():
    x = X.astype(np.float32)
    compare(
        lambda x: F["batch_norm"](x, None, None, training=True),
        lambda x: T.batch_norm(x, None, None, training=True),
        [x],
        rtol=1e-4,
        atol=1e-5,
    )
    half = lambda f: lambda x: f(x, None, None, training=True)
    compare(half(F["batch_norm"]), half(T.batch_norm), [X.astype(np.float16)], second=False, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("affine", [0, 1, 2])
def test_layer_norm(k, affine):
    shape = X.shape[4 - k :]
    arrays = [X, RNG.normal(size=shape), RNG.normal(size=shape)][: 1 + affine]
    run("layer_norm", arrays, lambda f, x, *wb: f(x, shape, *wb))
    if affine < 2:
        run("rms_norm", arrays, lambda f, x, *w: f(x, shape, *w))
        run("rms_norm", arrays, lambda f, x, *w: f(x, shape, *w, eps=0.1))


def test_layer_norm_kinds():
    run("layer_norm", [X.transpose(0, 2, 3, 1), W, B], lambda f, x, w, b: f(x.transpose(1, 2), (6,), w, b))
    run("layer_norm", [np.zeros((0, 6)), W, B], lambda f, x, w, b: f(x, (6,), w, b), second=False)
    wide = (RNG.normal(size=(3, 3000)) + 100).astype(np.float32)
    compare(
        lambda x: F["layer_norm"](x, (3000,)), lambda x: T.layer_norm(x, (3000,)), [wide], second=False, rtol=1e-4, atol=1e-4
    )
    compare(
        lambda x: F["layer_norm"](x, (5,)),
        lambda x: T.layer_norm(x, (5,)),
        [X.astype(np.float16)],
        second=False,
        rtol=1e-2,
        atol=1e-2,
    )


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@pytest.mark.parametrize("affine", [0, 1, 2])
def test_group_norm(groups, affine):
    run("group_norm", [X, W, B][: 1 + affine], lambda f, x, *wb: f(x, groups, *wb))
    run("group_norm", [X[:, :, 0, 0].copy(), W, B][: 1 + affine], lambda f, x, *wb: f(x, min(groups, 3), *wb))


def test_instance_norm():
    for x in (X, X[0:2, :, 0].copy()):
        run("instance_norm", [x], lambda f, x: f(x))
        run("instance_norm", [x, W, B], lambda f, x, w, b: f(x, weight=w, bias=b))
    mean, var = both(np.zeros(6)), both(np.ones(6))
    for use in (True, False):
        compare(
            lambda x, u=use: F["instance_norm"](x, mean[0], var[0], use_input_stats=u),
            lambda x, u=use: T.instance_norm(x, mean[1], var[1], use_input_stats=u), [X], rtol=1e-8,
        )  # fmt: skip
        for a, b in (mean, var):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_local_response_norm(size):
    run("local_response_norm", [X], lambda f, x: f(x, size, alpha=0.3))
    run("local_response_norm", [X[:, :, 0].copy()], lambda f, x: f(x, size))


def test_errors():
    with pytest.raises(ValueError, match=r"Expected more than 1 value per channel when training, got input size torch\.Size"):
        F["batch_norm"](ours.zeros(1, 3), None, None, training=True)
    with pytest.raises(RuntimeError, match="Given normalized_shape="):
        F["layer_norm"](ours.zeros(2, 3), (4,))
    with pytest.raises(RuntimeError, match="divisible by num_groups"):
        F["group_norm"](ours.zeros(2, 3, 4), 2)
    with pytest.raises(RuntimeError, match="should contain 3 elements not 2"):
        F["batch_norm"](ours.zeros(2, 3), ours.zeros(2), ours.zeros(2))


@pytest.mark.parity
def test_shapes_and_memory_of_weights():
    shapes = ["2", "1, 2", "2, 1", "2, 1, 1", "1", "()"]
    modes = itertools.product(("weight", "bias"), shapes, (True, False))
    calls = [f"F.batch_norm(x[..., 0].clone(), m, v, {w}=t.ones({s}) * 3, training={training})" for w, s, training in modes]
    calls += [f"F.batch_norm(x, t.zeros({s}), v, training=True)" for s in shapes]
    calls += [f"F.{f}=t.ones({s}) * 3)" for f in ("instance_norm(x, weight", "instance_norm(x, bias", "group_norm(x, 2, weight") for s in shapes]
    calls += [f"F.instance_norm(x, m, v, {w}, {b}), m, v" for w in "mvw" for b in "mvw"]
    check({call: f"r = {call}" for call in calls}, "x = (t.arange(24.) / 7).sin().reshape(3, 2, 4); m = t.ones(2) / 3; v = t.ones(2) * 2; w = t.ones(2) / 2")


@pytest.mark.parity
def test_weights_of_batch_norm_of_other_ranks():
    """Their elements are counted where nothing has gaps; their gradients are refused, and others where what comes in has gaps."""
    operands = {"plain": "t.arange(24.).reshape(2, 3, 4)", "one value": "t.arange(6.).reshape(2, 3, 1)",
                "a transpose": "t.arange(24.).reshape(2, 4, 3).transpose(1, 2)", "of two dims": "t.eye(2, 3)",
                "channels last": "t.arange(24.).reshape(2, 3, 2, 2).contiguous(memory_format=t.channels_last)"}  # fmt: skip
    weights = {"(3, 1)": ("w", "None"), "bias": ("None", "w"), "both": ("w", "w"), "beside one of one dim": ("one", "w"), "(1, 3)": ("w.T", "one"),
               "with gaps": ("t.ones(6)[::2]", "w"), "of two elements": ("w[:2]", "None")}  # fmt: skip
    ways = {"values": "y", "x": "t.autograd.grad(y.sum(), x)", "one": "t.autograd.grad(y.sum(), one, allow_unused=True)",
            "w": "t.autograd.grad(y.sum(), w, allow_unused=True)", "x of squares": "t.autograd.grad((y * y).sum(), x)",
            "x, recorded": "t.autograd.grad((y * y).sum(), x, create_graph=True)[0].detach()", "one of squares": "t.autograd.grad((y * y).sum(), one, "
            "allow_unused=True)", "w of squares": "t.autograd.grad((y * y).sum(), w, allow_unused=True)"}  # fmt: skip
    check({
        f"{a}, {b}, {way}, training {training}": f"x = ({x}).requires_grad_(); w = t.ones(3, 1).requires_grad_(); one = t.ones(3).requires_grad_()\n"
        f"y = F.batch_norm(x, t.zeros(3), t.ones(3), {', '.join(ws)}, {training}); r = {r}"
        for a, x in operands.items() for b, ws in weights.items() for way, r in ways.items() for training in (False, True)
    }, kinds=True)  # fmt: skip


NORMS = ("F.group_norm(v, 1)", "F.group_norm(v, 1, t.ones(v.shape[1]))", "F.instance_norm(v)", "F.batch_norm(v, None, None, training=True)",
         "F.batch_norm(v, t.zeros(v.shape[1]), t.ones(v.shape[1]))", "F.layer_norm(v, v.shape[-1:])", "F.rms_norm(v, v.shape[-1:])",
         "F.local_response_norm(v, 2)", "F.normalize(v)")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("operand", ("x[None]", "x.expand(2, 3, 4)", "x.T[None]", "x[:, ::2][None]", "x.view(1, 3, 2, 2).transpose(2, 3)",
                                     "x.view(1, 2, 2, 3).permute(0, 3, 1, 2)", "x.view(1, 2, 2, 3).permute(0, 3, 1, 2)[..., :1]"))  # fmt: skip
def test_operands_that_change_after_the_norm(operand):
    """Some keep the operand itself, however it lies in memory, and others a copy of what has gaps or is turned."""
    after = "exec('with t.no_grad(): x.mul_(2)'); y.square().sum().backward(); r = x.grad"
    check({norm: f"v = {operand}; y = {norm}; {after}" for norm in NORMS}, "x = t.arange(12.).view(3, 4).sin().requires_grad_()", 1e-3)
