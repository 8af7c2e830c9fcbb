"""Optimizers, parameters and checkpoints that ranks share, checked on every rank of one MPI job."""

from __future__ import annotations

import numpy as np
import pytest

import autograd_nb as torch
import autograd_nb.distributed as dist
import autograd_nb.nn.functional as F
from autograd_nb import nn
from autograd_nb.distributed.optim import ZeroRedundancyOptimizer
from autograd_nb.nn.parallel import DistributedDataParallel as DDP

from .training import close, data, joint, me, network, same_everywhere


def trained(model, optimizer, batches, steps=4):
    for step in range(steps):
        optimizer.zero_grad()
        x, y = batches(step)
        F.mse_loss(model(x), y).backward()
        optimizer.step()


def check_an_optimizer_whose_state_is_shared():
    rank, size = me()
    for kind, options in [(torch.optim.Adam, {"lr": 0.05}), (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9})]:
        for views in (False, True):
            one, model = network(), DDP(network())
            wanted = kind(one.parameters(), **options)
            optimizer = ZeroRedundancyOptimizer(model.parameters(), kind, parameters_as_bucket_view=views, **options)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
            other = torch.optim.lr_scheduler.StepLR(wanted, 2)
            for step in range(4):
                trained(model, optimizer, lambda _, step=step: data(rank, step), 1)
                trained(one, wanted, lambda _, step=step: joint(step), 1)
                scheduler.step()
                other.step()
            for found, p in zip(model.parameters(), one.parameters(), strict=True):
                close(found, p)
                same_everywhere(found)
            every = [None] * size
            dist.all_gather_object(every, sum(p.numel() for p in optimizer.optim.state))
            assert sum(every) == sum(p.numel() for p in one.parameters())
            assert max(every) <= 80  # of 147: the largest weight is 64


class Mixed(nn.Module):
    """The network with its middle layer in another dtype."""

    def __init__(self, dtype):
        super().__init__()
        self.layers, self.dtype = network(), dtype
        self.layers[2].to(dtype)

    def forward(self, x):
        first, middle, last = self.layers[:2], self.layers[2], self.layers[3:]
        return last(middle(first(x).to(self.dtype)).double())


def check_gradients_are_reduced_for_those_who_step_them():
    """Of all dtypes at once, in buckets of some parameters each; a rank may have a part in none of them."""
    rank, _ = me()
    for cap, dtype, error in ((25, torch.float64, 2e-6), (0.0002, torch.float64, 2e-6), (0.0002, torch.float16, 2e-2)):
        one, plain = Mixed(dtype), Mixed(dtype)
        model = DDP(plain, bucket_cap_mb=cap)
        wanted = torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
        model.register_comm_hook(optimizer, ZeroRedundancyOptimizer.reduce_scatter)
        for step in range(3):
            trained(one, wanted, lambda _, step=step: joint(step), 1)
            trained(model, optimizer, lambda _, step=step: data(rank, step), 1)
            for p, q in zip(plain.parameters(), one.parameters(), strict=True):
                if optimizer._owner[p] == rank:
                    np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=error, atol=0.1 * error)
                same_everywhere(p)
                np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=error, atol=0.1 * error)


def check_a_shared_state_is_saved_and_loaded():
    rank, size = me()
    model = DDP(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.05)
    trained(model, optimizer, lambda step: data(rank, step))
    with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
        optimizer.state_dict()
    optimizer.consolidate_state_dict(to=size - 1)
    held = [optimizer.state_dict() if rank == size - 1 else None]
    dist.broadcast_object_list(held, size - 1)
    one = network()
    plain = torch.optim.Adam(one.parameters(), lr=0.05)
    trained(one, plain, joint)
    wanted = plain.state_dict()
    assert held[0]["state"].keys() == wanted["state"].keys()
    close(held[0]["state"][2]["exp_avg"], wanted["state"][2]["exp_avg"])
    again = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.3)
    again.load_state_dict(held[0])
    assert again.param_groups[0]["lr"] == 0.05
    trained(model, again, lambda step: data(rank, step + 4), 2)
    trained(one, plain, lambda step: joint(step + 4), 2)
    for found, p in zip(model.parameters(), one.parameters(), strict=True):
        close(found, p)


def check_groups_of_parameters_are_shared():
    rank, _ = me()
    one, model = network(), DDP(network())
    inner = model.module
    optimizer = ZeroRedundancyOptimizer([{"params": inner[0].parameters(), "lr": 0.2}, {"params": inner[2].parameters()}], torch.optim.SGD, lr=0.1)
    trained(model, optimizer, lambda step: data(rank, step), 1)
    optimizer.add_param_group({"params": inner[4].parameters(), "lr": 0.3})
    trained(model, optimizer, lambda step: data(rank, step), 1)
    plain = torch.optim.SGD([{"params": one[0].parameters(), "lr": 0.2}, {"params": one[2].parameters()}], lr=0.1)
    trained(one, plain, joint, 1)
    plain.add_param_group({"params": one[4].parameters(), "lr": 0.3})
    trained(one, plain, joint, 1)
    for found, p in zip(inner.parameters(), one.parameters(), strict=True):
        close(found, p)
    with pytest.raises(NotImplementedError, match="overlap_with_ddp"):
        ZeroRedundancyOptimizer(inner.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.1)


def check_join_of_a_module_and_its_optimizer():
    rank, size = me()
    model = DDP(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    one = network()
    plain = torch.optim.SGD(one.parameters(), lr=0.1)
    from autograd_nb.distributed.algorithms.join import Join

    with Join([model, optimizer]):
        trained(model, optimizer, lambda step: data(rank, step), rank + 2)
    for step in range(size + 1):
        plain.zero_grad()
        for r in [r for r in range(size) if step < r + 2]:
            x, y = data(r, step)
            (F.mse_loss(one(x), y) / size).backward()
        plain.step()
    same_everywhere(next(model.parameters()))
    np.testing.assert_allclose(model.module[4].bias.detach().numpy(), one[4].bias.detach().numpy(), rtol=2e-6, atol=1e-12)
