"""Datasets and functions of the loader's tests, in a module that worker processes can import."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time

import numpy as np

import autograd_nb as torch
from autograd_nb.utils.data import Dataset, IterableDataset, get_worker_info


class Squares(Dataset):
    """(x, i) with x = i² in ``width`` places."""

    def __init__(self, n=10, width=3):
        self.n, self.width = n, width

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.full((self.width,), float(i * i)), i


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class Fails(Squares):
    """Item i fails in the way that ``kinds[i]`` says."""

    def __init__(self, *kinds):
        super().__init__(len(kinds))
        self.kinds = kinds

    def __getitem__(self, i):
        kind = self.kinds[i]
        if kind == "value":
            raise ValueError("unlucky item")
        if kind == "key":
            return {}["missing"]
        if kind == "odd":
            raise Odd(1, 2)
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "exit":
            os._exit(3)
        if kind == "sleep":
            time.sleep(30)
        if kind == "unpicklable":
            return lambda: 0
        if kind == "stop":
            raise StopIteration
        if kind == "history":
            return torch.ones(1, requires_grad=True) * 2
        return i


class Stream(IterableDataset):
    def __init__(self, n=11):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id, self.n, info.num_workers) if info else range(self.n))


class Random(Squares):
    """Draws of Python, NumPy and this library."""

    def __getitem__(self, i):
        return random.random(), float(np.random.rand()), torch.rand(1).item()  # noqa: NPY002


class About(Squares):
    def __getitem__(self, i):
        info = get_worker_info()
        return (info.id, info.num_workers, info.seed, info.dataset is self, os.getpid()) if info else None


def move_start(number):
    """A worker_init_fn that changes the worker's own dataset."""
    get_worker_info().dataset.n = number + 3


def failing_init(number):
    raise RuntimeError(f"init of {number}")


def as_list(batch):
    return list(batch)


class OtherLoader:
    """What fastai gives to an iterator of a DataLoader in a loader's place: its own batches, and what PyTorch's iterators read of a loader."""

    _IterableDataset_len_called = generator = worker_init_fn = None
    _auto_collation = drop_last = pin_memory = persistent_workers = False
    in_order, prefetch_factor, timeout, pin_memory_device = True, 2, 0, ""
    _index_sampler = range(3)
    dataset_kind = _dataset_kind = torch.utils.data.dataloader._DatasetKind.Iterable
    multiprocessing_context = multiprocessing

    def __init__(self, num_workers):
        self.dataset, self.num_workers = self, num_workers

    def __iter__(self):
        return iter([torch.tensor([n]) for n in range(3)])

    def collate_fn(self, batch):
        return batch

    def _get_shared_seed(self):
        return None
