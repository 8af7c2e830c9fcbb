"""Collectives with gradients, and those that return new tensors, checked on every rank of one MPI job.

A loss of all ranks is Σ over ranks and elements of (result · weight); the expected gradients are written down by hand.
"""

from __future__ import annotations

import numpy as np
import pytest

import autograd_nb as torch
import autograd_nb.distributed as dist
import autograd_nb.distributed._functional_collectives as functional
from autograd_nb.distributed.nn import functional as between

from .training import me


def held(rank, *shape):
    return torch.from_numpy(np.random.default_rng(rank + 5).standard_normal(shape))


def leaf(rank, *shape):
    return held(rank, *shape).requires_grad_()


def same(found, wanted):
    assert tuple(found.shape) == tuple(wanted.shape)
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-12, atol=1e-12)


def check_reduce_and_its_gradient():
    rank, size = me()
    for dst in range(size):
        x = leaf(rank, 3)
        y = between.reduce(x, dst)
        same(y, sum(held(r, 3) for r in range(size)) if rank == dst else x)
        (y * (rank + 1)).sum().backward()
        same(x.grad, torch.full((3,), dst + 1.0, dtype=torch.float64))


def check_gather_and_scatter_and_their_gradients():
    rank, size = me()
    x = leaf(rank, 2, 3)
    parts = between.gather(x, dst=size - 1)
    for r, part in enumerate(parts):
        same(part, held(r, 2, 3) if rank == size - 1 else torch.zeros(2, 3, dtype=torch.float64))
    sum((part * (r + 2)).sum() for r, part in enumerate(parts)).backward()
    same(x.grad, torch.full((2, 3), rank + 2.0, dtype=torch.float64))
    given = [leaf(10 * rank + r, 4) for r in range(size)]
    y = between.scatter(given, src=0)
    same(y, held(rank, 4))
    (y * (rank + 3)).sum().backward()
    for r, t in enumerate(given):
        same(t.grad, torch.full((4,), r + 3.0 if rank == 0 else 0.0, dtype=torch.float64))


def check_reduce_scatter_and_all_to_all_and_their_gradients():
    rank, size = me()
    given = [leaf(10 * rank + r, 4) for r in range(size)]
    y = between.reduce_scatter(torch.empty(4, dtype=torch.float64), given)
    same(y, sum(held(10 * r + rank, 4) for r in range(size)))
    (y * (rank + 3)).sum().backward()
    for r, t in enumerate(given):
        same(t.grad, torch.full((4,), r + 3.0, dtype=torch.float64))
    given = [leaf(10 * rank + r, r + 1) for r in range(size)]
    outs = between.all_to_all([torch.empty(rank + 1, dtype=torch.float64) for _ in range(size)], given)
    for r, t in enumerate(outs):
        same(t, held(10 * r + rank, rank + 1))
    sum((t * (10 * rank + r)).sum() for r, t in enumerate(outs)).backward()
    for r, t in enumerate(given):
        same(t.grad, torch.full((r + 1,), 10.0 * r + rank, dtype=torch.float64))


def check_rows_to_all_and_their_gradient():
    rank, size = me()
    for autograd in (False, True):
        x = leaf(rank, size * (size + 1) // 2, 2)  # r + 1 rows for rank r
        sizes, taken = [r + 1 for r in range(size)], [rank + 1] * size
        if autograd:
            y = functional.all_to_all_single_autograd(x, taken, sizes, dist.group.WORLD)
        else:
            y = between.all_to_all_single(torch.empty(sum(taken), 2, dtype=torch.float64), x, taken, sizes)
        begin = rank * (rank + 1) // 2
        same(y, torch.cat([held(r, *x.shape)[begin : begin + rank + 1] for r in range(size)]))
        (y * (rank + 1)).sum().backward()
        same(x.grad, torch.repeat_interleave(torch.tensor(sizes), torch.tensor(sizes)).double()[:, None].expand(-1, 2))
        same(functional.all_to_all_single(x, taken, sizes, dist.group.WORLD), y)


def check_collectives_that_return_new_tensors():
    rank, size = me()
    world = dist.group.WORLD
    x = held(rank, 2 * size, 3)
    every = [held(r, 2 * size, 3) for r in range(size)]
    for group in (world, list(range(size)), world.group_name):
        same(functional.wait_tensor(functional.all_reduce(x, "sum", group)), sum(every))
    same(functional.all_reduce(x, "avg", world), sum(every) / size)
    same(functional.all_reduce(x, "max", world), torch.stack(every).amax(0))
    same(x, every[rank])
    same(functional.broadcast(x, size - 1, world), every[-1])
    for dim in (0, 1):
        same(functional.all_gather_tensor(x, dim, world), torch.cat(every, dim))
    same(functional.reduce_scatter_tensor(x, "sum", 0, world), sum(every)[2 * rank : 2 * rank + 2])
    same(functional.reduce_scatter_tensor(x.t(), "avg", 1, world), (sum(every) / size)[2 * rank : 2 * rank + 2].t())
    turned = [(r + 1) % size for r in range(size)]
    same(functional.permute_tensor(x, turned, world), every[(rank - 1) % size])
    same(functional.all_reduce_coalesced([x, x[0]], "sum", world)[1], sum(every)[0])
    with pytest.raises(ValueError, match="must be a multiple of group_size"):
        functional.reduce_scatter_tensor(torch.ones(2 * size + 1), "sum", 0, world)
    with pytest.raises(ValueError, match="reduceOp='mean': known are sum, avg"):
        functional.all_reduce(x, "mean", world)
    with pytest.raises(ValueError, match="no group has these ranks"):
        functional.all_reduce(x, "sum", [99])


def check_functional_collectives_with_gradients():
    rank, size = me()
    x = leaf(rank, 2, 3)
    y = functional.all_gather_tensor_autograd(x, 1, dist.group.WORLD)
    same(y, torch.cat([held(r, 2, 3) for r in range(size)], 1))
    (y * (rank + 1)).sum().backward()
    same(x.grad, torch.full((2, 3), size * (size + 1) / 2, dtype=torch.float64))
    for op, factor in (("sum", 1.0), ("avg", 1 / size)):
        x = leaf(rank, 2 * size, 3)
        y = functional.reduce_scatter_tensor_autograd(x, op, 0, dist.group.WORLD)
        same(y, functional.reduce_scatter_tensor(x, op, 0, dist.group.WORLD))
        (y * (rank + 1)).sum().backward()
        same(x.grad, torch.arange(1.0, size + 1).double().repeat_interleave(2)[:, None].expand(-1, 3) * factor)
