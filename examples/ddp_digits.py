"""Data-parallel training, as PyTorch's users write it: two questions about handwritten digits, on as many processes as are started.

    python -m autograd_nb run -n 1 examples/ddp_digits.py
    python -m autograd_nb run -n 2 examples/ddp_digits.py
    python -m autograd_nb run -n 4 examples/ddp_digits.py

The batches are the same whatever the number of processes, each of which takes its share, so all of these print the same losses. Nothing in
this file names the library: with PyTorch it runs under torchrun. It needs the extras `mpi` and `examples`.
"""

import argparse
import json

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class TwoBranches(nn.Module):
    """Images (N, 1, 8, 8) -> two logits, each (N, 1): is it odd, and is it 5 or more?"""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.odd, self.big = nn.Linear(128, 1), nn.Linear(128, 1)

    def forward(self, x):
        x = self.trunk(x)
        return self.odd(x), self.big(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64, help="of all processes together")
    parser.add_argument("--out", help="a file for the losses, as JSON")
    options = parser.parse_args()

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    digits = load_digits()
    images = torch.tensor(digits.images / 16).unsqueeze(1)
    labels = torch.tensor(digits.target)
    targets = torch.stack([labels % 2, (labels >= 5).long()], 1).double()

    torch.manual_seed(0)
    model = DDP(TwoBranches().double())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses = []
    for epoch in range(options.epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        total = torch.zeros((), dtype=torch.float64)
        for batch in order[: len(order) // options.batch * options.batch].split(options.batch):
            own = batch[rank::size]  # equal shares, so that the mean over processes is that over the batch
            optimizer.zero_grad()
            odd, big = model(images[own])
            loss = F.binary_cross_entropy_with_logits(torch.cat([odd, big], 1), targets[own])
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total, op=dist.ReduceOp.SUM)
        losses.append(total.item() / size / (len(order) // options.batch))
        if rank == 0:
            print(f"epoch {epoch}: loss {losses[-1]:.6f}", flush=True)
    if options.out and rank == 0:
        with open(options.out, "w") as file:
            json.dump(losses, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
