"""Differentially private training with opacus: gradients of single samples, clipped, of layers of several kinds; the accountant's budget."""

import torch
from opacus import GradSampleModule
from opacus.accountants import RDPAccountant
from opacus.optimizers import DPOptimizer

from ..helpers import data, fill, integers, numbers


def run():
    net = fill(torch.nn.Sequential(
        torch.nn.Conv1d(2, 4, 3, padding=1), torch.nn.GroupNorm(2, 4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(24, 3)), scale=0.3)
    private = GradSampleModule(net)
    optimizer = DPOptimizer(torch.optim.SGD(private.parameters(), lr=0.1), noise_multiplier=0.0, max_grad_norm=0.5, expected_batch_size=8)
    x, y, result = data(8, 2, 6), integers(3, 8), {"losses": []}
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(private(x), y)
        loss.backward()
        result["samples"] = numbers(*[p.grad_sample for p in private.parameters()])
        optimizer.step()
        result["losses"].append(loss.item())
    embedding = GradSampleModule(fill(torch.nn.Embedding(7, 3)))
    embedding(integers(7, 4, 2)).square().sum().backward()
    result["embedding"] = numbers(*[p.grad_sample for p in embedding.parameters()])
    accountant = RDPAccountant()
    for _ in range(10):
        accountant.step(noise_multiplier=1.1, sample_rate=0.05)
    return {**result, "budget": [accountant.get_epsilon(delta=1e-5)], "parameters": numbers(*private.parameters())}
