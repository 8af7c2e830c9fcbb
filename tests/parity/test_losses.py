"""Losses against PyTorch over their options: values, first and second derivatives, errors."""

import itertools
import math
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402
from autograd_nb.ops.core.registry import functions  # noqa: E402

from .compare import compare  # noqa: E402
from .snippets import check  # noqa: E402

F = functions("nn.functional")
T = torch.nn.functional
RNG = np.random.default_rng(5)
REDUCTIONS = ["none", "mean", "sum"]


def run(name, arrays, *args, constants=(), rtol=1e-9, atol=1e-9, second=True, **kw):
    """Compare ``name(*arrays, *constants)``; constants are arrays without gradient."""
    mine = [ours.from_numpy(np.asarray(c)) for c in constants]
    theirs = [torch.from_numpy(np.asarray(c)) for c in constants]
    mine_kw = {k: ours.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in kw.items()}
    theirs_kw = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in kw.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(
            lambda *t: F[name](*t, *mine, *args, **mine_kw), lambda *t: getattr(T, name)(*t, *theirs, *args, **theirs_kw), arrays,
            second=second, rtol=rtol, atol=atol,
        )  # fmt: skip


X = RNG.normal(size=(6, 5)) * 2
TARGET = RNG.integers(0, 5, size=6)
IMAGE = RNG.normal(size=(2, 5, 3, 4))
IMAGE_TARGET = RNG.integers(0, 5, size=(2, 3, 4))
WEIGHT = RNG.random(5) + 0.2


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize(("reduction", "weighted", "ignore"), list(itertools.product(REDUCTIONS, [False, True], [-100, 2])))
def test_class_losses(name, reduction, weighted, ignore):
    kw = {"reduction": reduction, "ignore_index": ignore, "weight": WEIGHT if weighted else None}
    run(name, [X], constants=[TARGET], **kw)
    run(name, [IMAGE], constants=[IMAGE_TARGET], **kw)
    run(name, [X.astype(np.float32)], constants=[TARGET], **{**kw, "weight": None}, rtol=1e-4, atol=1e-5)
    if name == "cross_entropy":
        run(name, [X], constants=[TARGET], label_smoothing=0.3, **kw)
        run(name, [IMAGE], constants=[IMAGE_TARGET], label_smoothing=0.3, **kw)


@pytest.mark.parametrize(("reduction", "weighted", "smoothing"), list(itertools.product(REDUCTIONS, [False, True], [0.0, 0.2])))
def test_probability_targets(reduction, weighted, smoothing):
    p = RNG.random((6, 5))
    q = RNG.random((2, 5, 3, 4))
    kw = {"reduction": reduction, "label_smoothing": smoothing, "weight": WEIGHT if weighted else None}
    run("cross_entropy", [X, p], **kw)
    run("cross_entropy", [IMAGE, q], **kw)


def test_class_losses_unbatched_and_odd():
    for name in ("cross_entropy", "nll_loss"):
        for reduction in REDUCTIONS:
            run(name, [X[0]], constants=[np.array(3)], reduction=reduction)
            run(name, [np.zeros((0, 5))], constants=[np.zeros(0, np.int64)], reduction=reduction, second=False)
        run(name, [X], constants=[np.full(6, -100)], second=False)
        run(name, [X], constants=[TARGET.astype(np.uint8)])
        run(name, [X.astype(np.float16)], constants=[TARGET], second=False, rtol=5e-3, atol=5e-3)
    big = RNG.normal(size=(3, 2000)) * 30
    run("cross_entropy", [big], constants=[np.array([0, 7, 1999])])


PAIR_LOSSES = [
    ("mse_loss", [{}]),
    ("l1_loss", [{}]),
    ("smooth_l1_loss", [{}, {"beta": 0.3}, {"beta": 0.0}]),
    ("huber_loss", [{}, {"delta": 0.4}]),
    ("kl_div", [{"log_target": True}, {"reduction": "batchmean", "log_target": True}]),
    ("poisson_nll_loss", [{}, {"log_input": True, "full": False}]),
]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("name", "options"), PAIR_LOSSES)
def test_pair_losses(name, options, reduction):
    a, b = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
    for kw in options:
        run(name, [a, b], **{"reduction": reduction, **kw})
        run(name, [a, b[0]], **{"reduction": reduction, **kw})
        run(name, [a.astype(np.float32), b.astype(np.float32)], **{"reduction": reduction, **kw}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weighted_pair_losses(reduction):
    a, b, w = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3)), RNG.random((4, 3))
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        run(name, [a, b], weight=w, reduction=reduction, rtol=1e-7)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy(reduction):
    p, t, x = RNG.random((4, 3)), RNG.random((4, 3)), RNG.normal(size=(4, 3)) * 5
    w, pw = RNG.random((4, 3)), RNG.random(3) * 3
    run("binary_cross_entropy", [p], constants=[t], reduction=reduction, rtol=1e-7)
    run("binary_cross_entropy", [p], constants=[t], weight=w, reduction=reduction, rtol=1e-7)
    run("binary_cross_entropy", [p], constants=[t], weight=w[0], reduction=reduction, rtol=1e-7)
    edge = np.array([0.0, 1.0, 0.5])
    run("binary_cross_entropy", [edge], constants=[np.array([0.0, 0.0, 1.0])], reduction=reduction, second=False, rtol=1e-7)
    for kw in ({}, {"weight": w}, {"pos_weight": pw}, {"weight": w, "pos_weight": pw}):
        run("binary_cross_entropy_with_logits", [x, t], reduction=reduction, **kw)
        run("binary_cross_entropy_with_logits", [x * 100, t], reduction=reduction, **kw, second=False)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_other_losses(reduction):
    a, b, c = (RNG.normal(size=(4, 3)) for _ in range(3))
    signs = np.sign(RNG.normal(size=(4, 3)))
    kw = {"reduction": reduction}
    run("kl_div", [np.log(RNG.random((4, 3)))], constants=[RNG.random((4, 3))], **kw)
    run("gaussian_nll_loss", [a, b, RNG.random((4, 3)) + 0.1], **kw)
    run("gaussian_nll_loss", [a, b, RNG.random(4) + 0.1], full=True, **kw)
    run("gaussian_nll_loss", [a, b, np.full((4, 3), 1e-9)], **kw, rtol=1e-7)
    run("gaussian_nll_loss", [a, b], 0.7, **kw)
    run("poisson_nll_loss", [np.abs(a) + 0.1, np.abs(b) * 3], log_input=False, full=True, **kw)
    run("hinge_embedding_loss", [a], constants=[signs], margin=0.8, **kw)
    run("margin_ranking_loss", [a, b], constants=[signs], margin=0.3, **kw)
    run("soft_margin_loss", [a], constants=[signs], **kw)
    run("cosine_embedding_loss", [a, b], constants=[signs[:, 0].copy()], margin=0.1, **kw)
    run("cosine_embedding_loss", [a[0], b[0]], constants=[np.array(1.0)], **kw)
    for p in (1, 2):
        run("multi_margin_loss", [X], constants=[TARGET], p=p, margin=0.7, **kw, second=False)
        run("multi_margin_loss", [X], constants=[TARGET], p=p, weight=WEIGHT, **kw, second=False)
    run("multi_margin_loss", [X[0]], constants=[np.array(2)], **kw, second=False)
    run("multilabel_margin_loss", [X[:2]], constants=[np.array([[3, 0, -1, 1, 2], [1, -1, 0, 0, 0]])], **kw, second=False)
    run("multilabel_soft_margin_loss", [X], constants=[(X > 0).astype(float)], **kw)
    run("multilabel_soft_margin_loss", [X], constants=[(X > 0).astype(float)], weight=WEIGHT, **kw)
    run("triplet_margin_loss", [a, b, c], **kw)
    run("triplet_margin_loss", [a, b, c], margin=2.0, p=3, swap=True, **kw, rtol=1e-7)
    run("triplet_margin_with_distance_loss", [a, b, c], **kw)


def test_distances():
    a, b = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
    run("cosine_similarity", [a, b])
    run("cosine_similarity", [a, b], dim=0)
    run("cosine_similarity", [a, np.zeros((4, 3))], second=False)
    run("cosine_similarity", [a[:, None], b[None]], dim=-1)
    for p in (1.0, 2.0, 3.0):
        run("pairwise_distance", [a, b], p=p)
        run("normalize", [a], p=p)
    run("pairwise_distance", [a, b], keepdim=True)
    run("normalize", [a], dim=0)


def test_errors():
    f = F["cross_entropy"]
    x = ours.zeros(2, 5)
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        f(x, ours.tensor([0, 5]))
    with pytest.raises(ValueError, match=r"Expected input batch_size \(2\) to match target batch_size \(1\)"):
        f(x, ours.tensor([0]))
    with pytest.raises(RuntimeError, match="expected scalar type Long"):
        f(x, ours.tensor([0.0, 1.0]))
    with pytest.raises(RuntimeError, match="weight tensor should be defined"):
        f(x, ours.tensor([0, 1]), ours.ones(3))
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        f(x, ours.tensor([0, 1]), reduction="avg")
    with pytest.warns(UserWarning, match="Using a target size"):
        F["mse_loss"](x, ours.zeros(5))
    with pytest.warns(UserWarning, match="size_average and reduce"):
        assert F["mse_loss"](x, x, size_average=False).item() == 0
    with pytest.raises(ValueError, match="Target size"):
        F["binary_cross_entropy_with_logits"](x, ours.zeros(5))
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F["binary_cross_entropy"](x + 2, x)


@pytest.mark.parity
@pytest.mark.parametrize("loss", ["multilabel_margin_loss", "multi_margin_loss"])
def test_shapes_of_margin_losses(loss):
    shapes = ["()", "(1,)", "(3,)", "(1, 3)", "(2, 3)", "(1, 1)"]
    targets = [*shapes, "(2,)", "(2, 1)"]
    calls = [f"F.{loss}(x, t.zeros({target}, dtype=t.int64), reduction={reduction!r})" for target in targets for reduction in ("none", "mean")]
    check({f"{call}, x {s}": f"x = t.linspace(0.1, 0.7, 6)[:t.zeros({s}).numel()].reshape({s}); r = {call}" for call in calls for s in shapes})


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_kl_div_of_targets_that_are_none(reduction):
    """Where no gradient is asked for, that by a target below 0 is 0."""
    values = [0.5, -0.5, 0.0, 2.0, -1.0]
    found = []
    for library in (torch, ours):
        for end in ("abs", "nan_to_num", "clone"):
            x, t = (library.tensor(v, dtype=library.float64, requires_grad=True) for v in ([0.1, 0.2, -0.3, 0.4, 0.5], values))
            y = library.nn.functional.kl_div(x, t, reduction=reduction)
            found.append([g.numpy() for g in library.autograd.grad(getattr(y, end)().sum(), [x, t])])
    for theirs, mine in zip(found[:3], found[3:], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@pytest.mark.parametrize("name", ("nll_loss", "cross_entropy"))
def test_weights_of_classes(name):
    """Of images PyTorch counts the numbers that are given alone; of samples they stand in one dim."""
    sizes = (((2, 3), (2,)), ((3,), ()), ((2, 3, 2), (2, 2)), ((2, 3, 2, 2), (2, 2, 2)), ((0, 3, 2, 2), (0, 2, 2)))
    check({
        f"{x}, {w}, {reduction}": f"x = t.arange({math.prod(x)}.).reshape({x}).requires_grad_(); w = t.arange(1., {1 + math.prod(w)}).reshape({w})\n"
        f"y = F.{name}(x, t.ones({y}, dtype=t.int64), weight=w, reduction='{reduction}'); y.sum().backward(); r = y, x.grad"
        for x, y in sizes for w in ((3,), (3, 1), (1, 3), (1,), (), (4,), (3, 0)) for reduction in ("none", "mean")
    })  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("smoothing", [-0.5, -1e-46, float("nan"), float("-inf"), -0.0, 1.0])
def test_a_smoothing_that_is_not_above_0_is_none(smoothing):
    rows, shares = [[1.0, 2.0], [0.0, -1.0]], [[0.3, 0.7], [0.5, 0.5]]
    for target in ([0, 1], [1, -100], shares):
        found = []
        for library in (torch, ours):
            x = library.tensor(rows, requires_grad=True)
            for _ in range(30):  # its short way too
                y = library.nn.functional.cross_entropy(x, library.tensor(target), label_smoothing=smoothing)
            y.backward()
            found.append([y.item(), x.grad.tolist()])
        np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-6)
        np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-5, atol=1e-7)
    with pytest.raises(RuntimeError, match=r"label_smoothing must be between 0.0 and 1.0"):
        ours.nn.functional.cross_entropy(ours.tensor(rows), ours.tensor([0, 1]), label_smoothing=1.5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("graph", [False, True])
def test_gradients_of_cross_entropy_have_the_dtype_of_the_logits(dtype, graph):
    kind = getattr(ours, dtype)
    weight = ours.tensor([0.5, 1.0, 2.0, 1.5]).to(kind)
    targets = ours.tensor([0, -100, 3]), ours.ones(3, 4).to(kind) / 4
    for target, w, smoothing, reduction in itertools.product(targets, (None, weight), (0.0, 0.1), REDUCTIONS):
        x = (ours.arange(12.0).reshape(3, 4) / 12).to(kind).requires_grad_()
        loss = ours.nn.functional.cross_entropy(x, target, w, label_smoothing=smoothing, reduction=reduction).sum()
        (g,) = ours.autograd.grad(loss, x, create_graph=graph)
        assert g.dtype is kind and g.requires_grad == graph
        if graph:
            assert ours.autograd.grad(g.square().sum(), x)[0].dtype is kind


LOSSES = (
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss", "kl_div", "l1_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss",
    "soft_margin_loss", "gaussian_nll_loss", "margin_ranking_loss", "hinge_embedding_loss", "multilabel_soft_margin_loss",
)  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_elements_lie_in_memory_as_pytorchs(name):
    orders = {"plain": lambda t: t, "turned": lambda t: t.T.contiguous().T, "expanded": lambda t: t[:1].expand(3, 4), "gaps": lambda t: t.repeat(1, 2)[:, ::2]}
    for a in orders.values():
        for b in orders.values():
            for options in ({}, {"weight": 4}, {"pos_weight": 4}, {"weight": (3, 4)}):
                if options and not name.startswith("binary"):
                    continue
                found = []
                for library in (torch, ours):
                    x, t = (o(library.linspace(0.1, 0.8, 12).reshape(3, 4)) for o in (a, b))
                    made = {k: library.ones(v) for k, v in options.items()}
                    function = getattr(library.nn.functional, name)
                    more = [t] if name in ("gaussian_nll_loss", "margin_ranking_loss") else []
                    try:
                        y = function(x, t, *more, reduction="none", **made)
                    except (RuntimeError, ValueError, TypeError):
                        found.append(None)
                    else:
                        found.append(y.stride())
                assert found[0] == found[1], options


@pytest.mark.parity
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("recorded", [False, True])
def test_targets_that_weigh_nothing(smoothing, reduction, recorded):
    """Their mean is 0/0, whatever smoothing adds to it."""
    for weight, target in itertools.product(([0.0, 0.0, 2.0, 1.0], [0.0] * 4, [1.0] * 4), ([0, 1], [0, -100], [-100, -100], [2, 0])):
        seen = []
        for library in (ours, torch):
            x = library.tensor([[0.5, -1.0, 2.0, 0.0], [0.0, 1.0, -0.5, 0.25]], dtype=library.float64).requires_grad_()
            w = library.tensor(weight, dtype=library.float64)
            y = library.nn.functional.cross_entropy(x, library.tensor(target), w, label_smoothing=smoothing, reduction=reduction)
            (g,) = library.autograd.grad(y.sum(), x, create_graph=recorded)
            seen.append([y.detach().numpy(), g.detach().numpy()])
        for a, b in zip(*seen, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14, err_msg=f"{weight} {target}")


@pytest.mark.parity
@pytest.mark.parametrize("library", (ours, torch))
def test_margin_losses_without_classes_say_so_before_they_look_at_the_target(library):
    for name, shape, of_target in itertools.product(("multi_margin_loss", "multilabel_margin_loss"), ((0,), (3, 0), (2, 3, 0)), ((2,), (3, 0), (0,))):
        with pytest.raises(RuntimeError, match="Expected non-empty vector or matrix with optional 0-dim batch size, but got: "):
            getattr(library.nn.functional, name)(library.zeros(shape), library.zeros(of_target, dtype=library.int64))


@pytest.mark.parity
@pytest.mark.parametrize("name", (
    "soft_margin_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "binary_cross_entropy_with_logits", "poisson_nll_loss",
    "hinge_embedding_loss",
))  # fmt: skip
def test_losses_that_vanish_are_positive_zeros_where_theirs_are(name):
    values = [0.0, -0.0, 1.0, -1.0, 90.0, -90.0, 800.0, -800.0, math.inf, -math.inf]
    pairs = [(x, t) for x in values for t in values]
    found = []
    for library in (torch, ours):
        x, t = (library.tensor(column, dtype=library.float64) for column in zip(*pairs, strict=True))
        found.append(getattr(library.nn.functional, name)(x, t, reduction="none").numpy())
    assert not [p for p, theirs, mine in zip(pairs, *found, strict=True) if theirs == mine == 0 and np.signbit(theirs) != np.signbit(mine)]


@pytest.mark.parity
def test_losses_of_one_sample_are_no_views():
    """Nor are they of another dtype than their operand."""
    for library in (torch, ours):
        f, x, t = library.nn.functional, library.rand(3, requires_grad=True), library.tensor(1)
        losses = (f.nll_loss(x, t, reduction="none"), f.cross_entropy(x, t, reduction="none"), f.nll_loss(x, t, library.rand(3), reduction="none"))
        assert [y._is_view() for y in losses] == [False] * 3
        for kind in (library.float64, library.complex128):
            for reduction in ("mean", "sum", "none"):
                assert f.soft_margin_loss(library.ones(3, dtype=library.complex64), library.ones(3, dtype=kind), reduction=reduction).dtype is library.complex64
        assert not any(t._is_view() for t in library.unique(library.tensor(3.0), return_inverse=True, return_counts=True))


@pytest.mark.parity
def test_operands_of_other_dtypes_are_kept_as_they_are():
    """A pass is refused after a change of an operand that the derivative reads, though it was computed with in another dtype."""
    sides = itertools.product(("mse_loss", "smooth_l1_loss", "l1_loss"), ("float32", "float64"), ("float32", "float64"), ((), (3,)), (0, 1))
    check({
        f"{name} {first} {second} {size} {k}": f"""
a = t.full({size}, .3, dtype=t.{first}).requires_grad_(); s = [a * 1, t.linspace(-.5, .9, 3, dtype=t.{second})]
y = F.{name}(*s); s[{k}].detach().add_(5); r = t.autograd.grad(y, a)"""
        for name, first, second, size, k in sides
    }, kinds="subclasses")  # fmt: skip
