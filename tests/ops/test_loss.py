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


@pytest.mark.parametrize(
    "kw", [{}, {"weight": np.array([0.5, 1.0, 2.0])}, {"label_smoothing": 0.2}, {"ignore_index": 1}, {"reduction": "none"}]
)
def test_cross_entropy(kw):
    options = {k: t(v) if isinstance(v, np.ndarray) else v for k, v in kw.items()}
    x = t(A, True)
    target = t(CLASSES)
    logs = special.log_softmax(A, 1)
    eps = kw.get("label_smoothing", 0.0)
    w = kw.get("weight", np.ones(3))
    keep = kw.get("ignore_index", -100) != CLASSES
    rows = -(1 - eps) * w[CLASSES] * logs[np.arange(4), CLASSES] - eps / 3 * (w * logs).sum(1)
    want = rows if "reduction" in kw else (rows * keep).sum() / (w[CLASSES] * keep).sum()
    np.testing.assert_allclose(F.cross_entropy(x, target, **options).detach().numpy(), want, rtol=1e-10)
    assert torch.autograd.gradcheck(lambda x: F.cross_entropy(x, target, **options), (x,))
    assert torch.autograd.gradgradcheck(lambda x: F.cross_entropy(x, target, **options), (x,))


def test_cross_entropy_of_images_and_probabilities():
    x = t(RNG.normal(size=(2, 3, 2, 2)), True)
    target = t(RNG.integers(0, 3, size=(2, 2, 2)))
    assert torch.autograd.gradcheck(lambda x: F.cross_entropy(x, target), (x,))
    want = F.nll_loss(torch.log_softmax(x, 1), target)
    np.testing.assert_allclose(F.cross_entropy(x, target).item(), want.item(), rtol=1e-12)
    q = t(P / P.sum(1, keepdims=True), True)
    assert torch.autograd.gradgradcheck(F.cross_entropy, (t(A, True), q))


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


def test_wrong_shapes_and_options_are_refused():
    x = torch.zeros(2, 5)
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        F.cross_entropy(x, torch.tensor([0, 5]))
    with pytest.raises(ValueError, match=r"Expected input batch_size \(2\) to match target batch_size \(1\)"):
        F.nll_loss(x, torch.tensor([0]))
    with pytest.raises(RuntimeError, match="expected scalar type Long"):
        F.cross_entropy(x, torch.tensor([0.0, 1.0]))
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        F.mse_loss(x, x, reduction="avg")
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(x + 2, x)
    with pytest.warns(UserWarning, match="Using a target size"):
        F.mse_loss(x, torch.zeros(5))


def test_one_kernel_each_way():
    from autograd_nb import launch

    x, y = torch.rand(64, 8, requires_grad=True), torch.rand(64, 8)
    counts = []
    with launch.observe(lambda call, args: (counts.append(call.name), call.entry(*args))):
        loss = F.binary_cross_entropy_with_logits(x, y)
        assert len(counts) == 1
        loss.backward()
    assert sum("backward" in name for name in counts) == 1
