"""Losses against their definitions in NumPy, their derivatives against differences, and their complaints."""

import numpy as np
import pytest
from scipy import special

import autograd_nb as torch
import autograd_nb.nn.functional as F

pytestmark = pytest.mark.slow  # many kernels

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
P = RNG.random((4, 3)) * 0.8 + 0.1
SIGNS = np.sign(RNG.normal(size=(4, 3)))
CLASSES = np.array([2, 0, 1, 1])


def t(a, grad=False):
    return torch.tensor(np.asarray(a), requires_grad=grad)


D = abs(A - B)
PAIRS = {
    "mse_loss": ((A, B), {}, D**2),
    "l1_loss": ((A, B), {}, D),
    "smooth_l1_loss": ((A, B), {"beta": 0.5}, np.where(D < 0.5, D**2, D - 0.25)),
    "huber_loss": ((A, B), {"delta": 0.5}, np.where(D <= 0.5, D**2 / 2, 0.5 * (D - 0.25))),
    "binary_cross_entropy": ((P, P[::-1].copy()), {}, -(P[::-1] * np.log(P) + (1 - P[::-1]) * np.log1p(-P))),
    "binary_cross_entropy_with_logits": ((A, P), {}, -(P * special.log_expit(A) + (1 - P) * special.log_expit(-A))),
    "kl_div": ((np.log(P), P[::-1].copy()), {}, P[::-1] * (np.log(P[::-1]) - np.log(P))),
    "poisson_nll_loss": ((A, P), {}, np.exp(A) - P * A),
    "soft_margin_loss": ((A, SIGNS), {}, np.log1p(np.exp(-SIGNS * A))),
    "hinge_embedding_loss": ((A, SIGNS), {"margin": 0.8}, np.where(SIGNS == 1, A, np.maximum(0, 0.8 - A))),
    "gaussian_nll_loss": ((A, B, P), {}, 0.5 * (np.log(P) + (A - B) ** 2 / P)),
}


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("name", PAIRS)
def test_losses_of_pairs_against_their_definitions(name):
    arrays, kw, want = PAIRS[name]
    f = getattr(F, name)
    args = [t(a) for a in arrays]
    np.testing.assert_allclose(f(*args, reduction="none", **kw).numpy(), want, rtol=1e-9)
    np.testing.assert_allclose(f(*args, reduction="mean", **kw).item(), want.mean(), rtol=1e-9)
    np.testing.assert_allclose(f(*args, reduction="sum", **kw).item(), want.sum(), rtol=1e-9)
    x = t(arrays[0], True)
    for reduction in ("none", "mean"):
        call = lambda x, r=reduction: f(x, *args[1:], reduction=r, **kw)
        assert torch.autograd.gradcheck(call, (x,))
        assert torch.autograd.gradgradcheck(call, (x,))


IMAGES, PIXELS = RNG.normal(size=(2, 3, 2, 2)), RNG.integers(0, 3, size=(2, 2, 2))
SHARES = P / P.sum(1, keepdims=True)
WEIGHT = np.array([0.5, 1.0, 2.0])
LOGS = special.log_softmax(A, 1)
OWN = -LOGS[np.arange(4), CLASSES]

#: name -> (logits, classes or their probabilities, options, the loss)
CROSS_ENTROPIES = {
    "mean": (A, CLASSES, {}, OWN.mean()),
    "each row": (A, CLASSES, {"reduction": "none"}, OWN),
    "weighted": (A, CLASSES, {"weight": torch.tensor(WEIGHT)}, (WEIGHT[CLASSES] * OWN).sum() / WEIGHT[CLASSES].sum()),
    "smoothed": (A, CLASSES, {"label_smoothing": 0.2}, (0.8 * OWN - 0.2 * LOGS.mean(1)).mean()),
    "a class ignored": (A, CLASSES, {"ignore_index": 1}, OWN[CLASSES != 1].mean()),
    "images": (IMAGES, PIXELS, {}, -np.take_along_axis(special.log_softmax(IMAGES, 1), PIXELS[:, None], 1).mean()),
    "probabilities": (A, SHARES, {}, -(SHARES * LOGS).sum(1).mean()),
}


@pytest.mark.parametrize("name", CROSS_ENTROPIES)
def test_cross_entropies_against_their_definition(name):
    logits, target, options, want = CROSS_ENTROPIES[name]
    args = (t(logits, True), t(target, target.dtype.kind == "f"))
    call = lambda x, y: F.cross_entropy(x, y, **options)
    np.testing.assert_allclose(call(*args).detach().numpy(), want, rtol=1e-10)
    assert torch.autograd.gradcheck(call, args)
    assert torch.autograd.gradgradcheck(call, args)


#: name -> function of two tensors
COMPOSITE = {
    "cosine_similarity": lambda a, b: F.cosine_similarity(a, b),
    "pairwise_distance": lambda a, b: F.pairwise_distance(a, b),
    "normalize": lambda a, b: F.normalize(a) * b,
    "triplet_margin_loss": lambda a, b: F.triplet_margin_loss(a, b, t(P)),
    "margin_ranking_loss": lambda a, b: F.margin_ranking_loss(a, b, t(SIGNS)),
    "cosine_embedding_loss": lambda a, b: F.cosine_embedding_loss(a, b, t(SIGNS[:, 0].copy())),
    "multi_margin_loss": lambda a, b: F.multi_margin_loss(a, t(CLASSES)) * b,
    "multilabel_soft_margin_loss": lambda a, b: F.multilabel_soft_margin_loss(a, torch.sigmoid(b)),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOSITE)
def test_derivatives_of_losses_made_of_others(name):
    f = COMPOSITE[name]
    assert torch.autograd.gradcheck(f, (t(A, True), t(B, True)))
    assert torch.autograd.gradgradcheck(f, (t(A, True), t(B, True)))


REFUSED = {
    "a class that is not there": (lambda x: F.cross_entropy(x, torch.tensor([0, 5])), IndexError, "Target 5 is out of bounds"),
    "fewer classes than rows": (
        lambda x: F.nll_loss(x, torch.tensor([0])), ValueError, r"Expected input batch_size \(2\) to match target batch_size \(1\)",
    ),
    "classes that are floats": (lambda x: F.cross_entropy(x, torch.tensor([0.0, 1.0])), RuntimeError, "expected scalar type Long"),
    "an unknown reduction": (lambda x: F.mse_loss(x, x, reduction="avg"), ValueError, "is not a valid value for reduction"),
    "probabilities above 1": (lambda x: F.binary_cross_entropy(x + 2, x), RuntimeError, "between 0 and 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_shapes_and_options_are_refused(case):
    call, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        call(torch.zeros(2, 5))


def test_a_target_that_is_broadcast_is_warned_of():
    with pytest.warns(UserWarning, match="Using a target size"):
        F.mse_loss(torch.zeros(2, 5), torch.zeros(5))


def test_binary_cross_entropy_is_one_kernel_each_way():
    from autograd_nb import launch

    x, y = torch.rand(64, 8, requires_grad=True), torch.rand(64, 8)
    counts = []
    with launch.observe(lambda call, args: (counts.append(call.name), call.entry(*args))):
        loss = F.binary_cross_entropy_with_logits(x, y)
        assert len(counts) == 1
        loss.backward()
    assert sum("backward" in name for name in counts) == 1
