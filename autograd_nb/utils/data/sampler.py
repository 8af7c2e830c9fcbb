"""Samplers: in which order items are read, and how they are put together in batches.

Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.Sampler
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

from ... import dtypes
from ...ops.core.registry import OPS
from ...ops.random.generator import Generator

T = TypeVar("T", covariant=True)


def random_seed(generator: Any = None) -> int:
    """Return a seed drawn from a generator, the default one if None."""
    return OPS["empty"].call((), dtype=dtypes.int64).random_(generator=generator).item()


def _positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class Sampler(Generic[T]):
    """Base of samplers: a subclass defines ``__iter__()``, which gives indices or lists of them, and ``__len__()`` where it can.

    >>> class Backwards(torch.utils.data.Sampler): __iter__ = lambda self: iter((2, 1, 0))
    ...
    >>> list(torch.utils.data.DataLoader("abc", sampler=Backwards(), batch_size=None))
    ['c', 'b', 'a']
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__()")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, … up to the length of ``data_source``."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Numbers of items in random order: permutations, or draws ``replacement``; ``num_samples`` in all, the dataset's length if None.

    Errors: TypeError for a replacement that is no bool, ValueError for num_samples that is no positive int.
    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.RandomSampler

    >>> sorted(torch.utils.data.RandomSampler(range(3)))
    [0, 1, 2]
    """

    def __init__(self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        _positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """Return how many are drawn; the length of the dataset, which may change, if it was not given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, wanted = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            generator = Generator().manual_seed(random_seed())
        if self.replacement:
            randint = OPS["randint"].call
            for start in range(0, wanted, 32):
                yield from randint(0, n, (min(32, wanted - start),), dtype=dtypes.int64, generator=generator).tolist()
            return
        for start in range(0, wanted, n):
            yield from OPS["randperm"].call(n, generator=generator).tolist()[: wanted - start]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given ``indices`` in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in OPS["randperm"].call(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """``num_samples`` indices drawn with probabilities in proportion to ``weights``, with or without ``replacement``.

    Errors: ValueError for num_samples that is no positive int, a replacement that is no bool, and weights that are not 1-D.
    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.WeightedRandomSampler

    >>> list(torch.utils.data.WeightedRandomSampler([0., 1.], 3))
    [1, 1, 1]
    """

    weights: Any

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None) -> None:
        _positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = OPS["as_tensor"].call(weights, dtype=dtypes.float64)
        if self.weights.ndim != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = OPS["multinomial"].call(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` indices of another sampler; the last may be shorter, or is left out (``drop_last``).

    Example:
        >>> from autograd_nb.utils.data import BatchSampler
        >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]

    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.BatchSampler
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        least = self.batch_size if self.drop_last else 1
        while len(batch := list(islice(indices, self.batch_size))) >= least:
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


class DistributedSampler(Sampler[int]):
    """The share of process ``rank`` of ``num_replicas``: every num_replicas-th index of an order that all processes agree on.

    Where a number is not given it is the process group's.
    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler

    >>> list(torch.utils.data.DistributedSampler(range(4), num_replicas=2, rank=1, shuffle=False))
    [1, 3]
    """

    dataset: Any
    num_replicas: int
    rank: int
    shuffle: bool
    seed: int
    drop_last: bool
    epoch: int
    num_samples: int
    total_size: int

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0,
        drop_last: bool = False,
    ) -> None:  # fmt: skip
        if num_replicas is None or rank is None:
            from ... import distributed as dist

            if not dist.is_available():
                raise RuntimeError("Requires distributed package to be available; give num_replicas and rank, or install autograd_nb[mpi]")
            num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
            rank = dist.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        self.num_samples = len(dataset) // num_replicas if drop_last else math.ceil(len(dataset) / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order = list(range(n))
        if self.shuffle:
            order = OPS["randperm"].call(n, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        if order:
            order = (order * math.ceil(self.total_size / n))[: self.total_size]
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Take another order for another epoch."""
        self.epoch = epoch
