"""softmax, layer norm and cross entropy of arguments seen before: the second call finds what the first one worked out."""

import pytest

import autograd_nb as torch

F = torch.nn.functional
W, B, T = torch.linspace(0.5, 2, 4), torch.linspace(-1, 1, 4), torch.tensor([1, 3, 0])
CALLS = {
    "softmax": (lambda x: torch.softmax(x, -1), lambda x: x.exp() / x.exp().sum(1, True)),
    "softmax of columns": (lambda x: torch.softmax(x, dim=0), lambda x: x.exp() / x.exp().sum(0, True)),
    "log_softmax": (lambda x: F.log_softmax(x, 1), lambda x: x - x.exp().sum(1, True).log()),
    "layer_norm": (
        lambda x: F.layer_norm(x, (4,), W, B),
        lambda x: (x - x.mean(1, True)) / (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt() * W + B,
    ),
    "cross_entropy": (lambda x: F.cross_entropy(x, T), lambda x: -(x - x.exp().sum(1, True).log())[torch.arange(3), T].mean()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(name):
    call, plain = CALLS[name]
    weights = torch.arange(12.0).reshape(3, 4)
    for given in (torch.linspace(-1, 2, 12).reshape(3, 4).sin(), torch.linspace(-1, 2, 12).reshape(4, 3).t()):
        for _ in range(2):
            torch.testing.assert_close(call(given), plain(given))
            found = []
            for function in (call, plain):
                x = given.clone().requires_grad_()
                y = function(x)
                (g,) = torch.autograd.grad((y * weights).sum(), x, create_graph=True)
                found.append([y, g, *torch.autograd.grad((g * weights).sum(), x)])
            for a, b in zip(*found, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
            with torch.inference_mode():
                assert call(given).is_inference()
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda v: torch.tensor(v)):
                y = call(x)
            (again,) = torch.autograd.grad((y * weights).sum(), x)
            torch.testing.assert_close(again, found[0][1].detach())


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4)])
@pytest.mark.parametrize("training", [True, False])
def test_small_batches_are_normalised_at_once(shape, training):
    x, w, b = (torch.rand(s, dtype=torch.float64, requires_grad=True) for s in (shape, (3,), (3,)))
    dims = [d for d in range(len(shape)) if d != 1]
    for _ in range(2):
        mean, var = torch.ones(3, dtype=torch.float64), torch.full((3,), 2.0, dtype=torch.float64)
        y = F.batch_norm(x, mean, var, w, b, training, 0.5)
        assert all(e.variable is t for (e, _), t in zip(y.grad_fn.next_functions, (x, w, b), strict=False))
        if training:
            torch.testing.assert_close(mean, 0.5 + x.detach().mean(dims) / 2)
            torch.testing.assert_close(var, 1 + x.detach().var(dims) / 2)
            assert mean._version == var._version == 0  # as in PyTorch, whose kernel writes them unseen
        else:
            mean.add_(1)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
            mean.sub_(1)
        assert torch.autograd.gradcheck(lambda *t: F.batch_norm(t[0], mean.clone(), var.clone(), *t[1:], training), (x, w, b))
        assert torch.autograd.gradgradcheck(
            lambda *t: F.batch_norm(t[0], mean.clone(), var.clone(), *t[1:], training), (x, w, b)
        )


def test_what_is_refused_is_refused_again():
    x = torch.ones(3, 4)
    for _ in range(2):
        F.cross_entropy(x, T), torch.softmax(x, 1), F.layer_norm(x, (4,))
        with pytest.raises(IndexError, match="out of bounds"):
            F.cross_entropy(x, torch.tensor([0, 4, 1]))
        with pytest.raises(IndexError, match=r"[Dd]imension"):
            torch.softmax(x, 2)
        with pytest.raises(RuntimeError, match="normalized_shape"):
            F.layer_norm(x, (3,))
