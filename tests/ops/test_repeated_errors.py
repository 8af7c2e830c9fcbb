"""What a call is refused with does not depend on how often its like went through: replays leave it to the function to say what is wrong."""

from __future__ import annotations

import pytest

import autograd_nb as torch
from autograd_nb.graph import recurring

F = torch.nn.functional
tensor = torch.tensor

#: name: (function, an argument that it takes, one that it refuses)
CASES = {
    "index_select": (lambda i: torch.ones(3, 4).index_select(1, i), tensor([1]), tensor([9])),
    "index_add": (lambda i: torch.zeros(3, 4).index_add(1, i, torch.ones(3, 1)), tensor([1]), tensor([9])),
    "index_add_": (lambda i: torch.zeros(3, 4).index_add_(1, i, torch.ones(3, 1)), tensor([1]), tensor([9])),
    "index_copy": (lambda i: torch.zeros(3, 4).index_copy(1, i, torch.ones(3, 1)), tensor([1]), tensor([9])),
    "index_fill": (lambda i: torch.zeros(3, 4).index_fill(1, i, 2.0), tensor([1]), tensor([9])),
    "index_reduce": (lambda i: torch.zeros(3, 4).index_reduce(1, i, torch.ones(3, 1), "amax"), tensor([1]), tensor([9])),
    "index_put": (lambda i: torch.zeros(4).index_put((i,), torch.ones(1)), tensor([1]), tensor([9])),
    "gather": (lambda i: torch.ones(3, 4).gather(1, i), tensor([[1]]), tensor([[9]])),
    "scatter": (lambda i: torch.ones(3, 4).scatter(1, i, 2.0), tensor([[1]]), tensor([[9]])),
    "scatter_add": (lambda i: torch.ones(3, 4).scatter_add(1, i, torch.ones(1, 1)), tensor([[1]]), tensor([[9]])),
    "take": (lambda i: torch.ones(3, 4).take(i), tensor([1]), tensor([99])),
    "put": (lambda i: torch.ones(3, 4).put(i, torch.ones(1)), tensor([1]), tensor([99])),
    "x[i]": (lambda i: torch.ones(3, 4)[i], tensor([1]), tensor([9])),
    "x[:, i]": (lambda i: torch.ones(3, 4)[:, i], tensor([1]), tensor([9])),
    "x[i] =": (lambda i: torch.zeros(4).__setitem__(i, 1.0), tensor([1]), tensor([9])),
    "embedding": (lambda i: F.embedding(i, torch.ones(3, 4)), tensor([1]), tensor([9])),
    "embedding_bag": (lambda i: F.embedding_bag(i, torch.ones(3, 4)), tensor([[1]]), tensor([[9]])),
    "nll_loss": (lambda i: F.nll_loss(torch.zeros(2, 3), i), tensor([1, 2]), tensor([1, 9])),
    "cross_entropy": (lambda i: F.cross_entropy(torch.zeros(2, 3), i), tensor([1, 2]), tensor([1, 9])),
    "multi_margin_loss": (lambda i: F.multi_margin_loss(torch.zeros(2, 3), i), tensor([1, 2]), tensor([1, 9])),
    "binary_cross_entropy": (lambda x: F.binary_cross_entropy(x, torch.ones(2)), tensor([0.5, 0.5]), tensor([0.5, -1.0])),
    "one_hot": (lambda i: F.one_hot(i, 3), tensor([1, 2]), tensor([1, 9])),
    "bincount": (torch.bincount, tensor([1, 2]), tensor([1, -9])),
    "repeat_interleave": (lambda i: torch.repeat_interleave(torch.ones(2), i), tensor([1, 2]), tensor([1, -9])),
    "cholesky": (torch.linalg.cholesky, torch.eye(3), -torch.eye(3)),
    "inv": (torch.linalg.inv, torch.eye(3), torch.zeros(3, 3)),
    "solve": (lambda a: torch.linalg.solve(a, torch.ones(3)), torch.eye(3), torch.zeros(3, 3)),
    "multinomial": (lambda w: torch.multinomial(w, 1), tensor([0.5, 0.5]), tensor([0.5, -1.0])),
    "bernoulli": (torch.bernoulli, tensor([0.5, 0.5]), tensor([0.5, -1.0])),
    "poisson": (torch.poisson, tensor([0.5, 0.5]), tensor([0.5, -1.0])),
    "normal": (lambda s: torch.normal(torch.zeros(2), s), tensor([0.5, 0.5]), tensor([0.5, -1.0])),
}


def refusal(function, argument):
    with pytest.raises((IndexError, RuntimeError, ValueError)) as error:
        function(argument)
    return error.type, str(error.value)


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_is_the_same_after_many_calls(name):
    function, good, bad = CASES[name]
    first = refusal(function, bad)
    for _ in range(4 * recurring.FIRST + 8):
        expected = function(good)
    assert refusal(function, bad) == first
    assert refusal(function, bad) == first
    if expected is not None and name not in ("multinomial", "bernoulli", "poisson", "normal"):
        found = function(good)
        assert [t.tolist() for t in (found if isinstance(found, tuple) else (found,))] == [
            t.tolist() for t in (expected if isinstance(expected, tuple) else (expected,))
        ]
