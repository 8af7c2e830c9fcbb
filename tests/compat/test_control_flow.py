"""``torch.cond`` and its like, against loops."""

import pytest

import autograd_nb as torch
from autograd_nb.compat.control_flow import associative_scan, scan
from autograd_nb.compat.control_flow import map as mapped


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 13])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_prefixes_are_those_of_a_loop(n, dim, reverse):
    torch.manual_seed(n)
    shape = [2, 3, 2]
    shape[dim] = n
    a, b = torch.rand(shape, dtype=torch.float64, requires_grad=True), torch.rand(shape, dtype=torch.float64, requires_grad=True)

    def combine(left, right):  # not commutative: steps of h -> a h + b
        return left[0] * right[0], right[0] * left[1] + right[1]

    found = associative_scan(combine, (a, b), dim, reverse=reverse, combine_mode="generic")
    places = range(n)[::-1] if reverse else range(n)
    one, states = None, {}
    for i in places:
        x = (a.select(dim, i), b.select(dim, i))
        one = x if one is None else combine(one, x)
        states[i] = one
    for k in (0, 1):
        expected = torch.stack([states[i][k] for i in range(n)], dim)
        assert torch.allclose(found[k], expected)
        for x in (a, b):
            grads = [torch.autograd.grad(y.sum(), x, retain_graph=True, allow_unused=True)[0] for y in (found[k], expected)]
            assert (grads[0] is None and grads[1] is None) or torch.allclose(*[torch.zeros_like(x) if g is None else g for g in grads])


def test_what_a_scan_refuses():
    with pytest.raises(ValueError, match="Combine_mode"):
        associative_scan(torch.add, torch.ones(3), 0, combine_mode="other")
    with pytest.raises(ValueError, match="same size"):
        associative_scan(torch.add, (torch.ones(3), torch.ones(2)), 0)


def test_branches_and_loops():
    x = torch.tensor([2.0], requires_grad=True)
    y = torch.cond(x.sum() > 1, lambda t: t * 3, lambda t: t - 1, (x,))
    y.backward()
    assert y.item() == 6 and x.grad.item() == 3 and torch.cond(False, lambda: 1, lambda: 2) == 2
    with pytest.raises(RuntimeError, match="pred"):
        torch.cond(torch.ones(2), lambda: 1, lambda: 2)
    assert torch.while_loop(lambda i: i < 5, lambda i: i + 2, (torch.tensor(0),))[0].item() == 6
    carry, ys = scan(lambda c, t: (c + t["a"], c * t["a"]), torch.zeros(2), {"a": torch.arange(6.0).reshape(3, 2)})
    assert carry.tolist() == [6.0, 9.0] and ys.tolist() == [[0.0, 0.0], [0.0, 3.0], [8.0, 20.0]]
    assert mapped(lambda t, k: {"r": t * k}, torch.ones(3, 2), 4.0)["r"].tolist() == [[4.0, 4.0]] * 3


def test_names_that_packages_take_from_inside():
    from autograd_nb._vmap_internals import _vmap
    from autograd_nb.utils.tensorboard.writer import SummaryWriter

    assert torch.equal(_vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2)), torch.full((3,), 2.0))
    assert SummaryWriter is torch.utils.tensorboard.SummaryWriter and not isinstance(torch.ones(1), torch.masked.MaskedTensor)
