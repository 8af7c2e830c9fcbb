"""A training loop under Accelerator, with accumulation and a scheduler."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

from ..helpers import data, fill, integers, numbers


def run():
    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = fill(torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.GELU(), torch.nn.Linear(12, 3)), scale=0.4)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.02)
    loader = DataLoader(TensorDataset(data(32, 6), integers(3, 32)), batch_size=8)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
    net, optimizer, loader, schedule = accelerator.prepare(net, optimizer, loader, schedule)
    losses = []
    for _ in range(2):
        for x, y in loader:
            with accelerator.accumulate(net):
                loss = torch.nn.functional.cross_entropy(net(x), y)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                losses.append(loss.item())
    gathered = accelerator.gather_for_metrics(net(data(5, 6, seed=4)))
    return {"losses": losses, "rate": schedule.get_last_lr(), "gathered": numbers(gathered), "processes": [accelerator.num_processes]}
