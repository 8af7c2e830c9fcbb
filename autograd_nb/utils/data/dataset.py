"""Datasets: what has items by number, or streams of items; and how they are stacked, chained and split.

Source: https://docs.pytorch.org/docs/stable/data.html
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from ...errors import warn_user
from ...ops.core.registry import OPS
from ...ops.random.generator import default_generator
from ...tensor import Tensor

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Base of datasets: a subclass defines ``__getitem__(index)``, and ``__len__()`` for the samplers.

    ``__getitems__(indices)``, where defined, gives the loader the items of a whole batch at once.
    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.Dataset

    >>> class Squares(torch.utils.data.Dataset): __getitem__ = lambda self, i: i * i
    ...
    >>> Squares()[3]
    9
    """

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """Base of streams: a subclass defines ``__iter__()``.

    With several workers, each iterates a copy of its own: `get_worker_info` tells which part is its share.
    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset

    >>> class Count(torch.utils.data.IterableDataset): __iter__ = lambda self: iter(range(3))
    ...
    >>> list(Count())
    [0, 1, 2]
    """

    def __add__(self, other: Dataset[Any]) -> ChainDataset[Any]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Item i is the tuple of the i-th entries of tensors that agree in their first dim. AssertionError if they do not.

    Example:
        >>> torch.utils.data.TensorDataset(torch.arange(3), torch.ones(3, 2))[1]
        (tensor(1), tensor([1., 1.]))

    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.TensorDataset
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError(f"Size mismatch between tensors: their first dims are {[t.size(0) for t in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Item i is the tuple (of positional datasets) or dict (of named ones) of their i-th items.

    Errors: ValueError for both kinds together, for none, and for different lengths.
    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.StackDataset

    >>> torch.utils.data.StackDataset((1, 2), (3, 4))[0]
    (1, 3)
    """

    datasets: tuple[Any, ...] | dict[Any, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        parts = args or tuple(kwargs.values())
        if any(len(part) != len(parts[0]) for part in parts):
            raise ValueError(f"Size mismatch between datasets: their lengths are {[len(part) for part in parts]}")
        self.datasets = args or kwargs
        self._length = len(parts[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """Return the items of a batch, from parts that read whole batches where they can."""
        named = isinstance(self.datasets, dict)
        columns = []
        for part in self.datasets.values() if isinstance(self.datasets, dict) else self.datasets:
            items = items_of(part, indices)
            if len(items) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
            columns.append(items)
        rows = zip(*columns, strict=True)
        return [dict(zip(self.datasets, row, strict=True)) for row in rows] if named else list(rows)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T]):
    """The items of several datasets, one dataset after the other. AssertionError for none and for streams.

    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.ConcatDataset

    >>> list(torch.utils.data.ConcatDataset([(1, 2), (3,)]))
    [1, 2, 3]
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Return the running sums of lengths."""
        return list(accumulate(len(part) for part in sequence))

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> T:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[T]):
    """The items of several streams, one stream after the other. AssertionError for other datasets.

    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.ChainDataset

    >>> class Count(torch.utils.data.IterableDataset): __iter__ = lambda self: iter(range(2))
    ...
    >>> list(torch.utils.data.ChainDataset([Count(), Count()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield part

    def __iter__(self) -> Iterator[T]:
        for part in self._streams():
            yield from part

    def __len__(self) -> int:
        return sum(len(part) for part in self._streams())


class Subset(Dataset[T]):
    """The items ``indices`` of a dataset.

    A subclass that defines ``__getitem__`` defines ``__getitems__`` also, which is what the loader calls.
    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.Subset

    >>> list(torch.utils.data.Subset("abcd", [1, 3]))
    ['b', 'd']
    """

    def __init__(self, dataset: Dataset[T] | Sequence[T], indices: Sequence[int]) -> None:
        cls = type(self)
        if cls.__getitem__ is not Subset.__getitem__ and cls.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{cls.__name__} overrides __getitem__ but not __getitems__, which DataLoader calls. Define it too, for example: "
                "def __getitems__(self, indices): return [self.__getitem__(idx) for idx in indices]"
            )
        self.dataset: Any = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """Return the items of a batch, from a dataset that reads whole batches where it can."""
        return items_of(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def items_of(dataset: Any, indices: Iterable[Any]) -> list[Any]:
    """Return the items of a batch: at once where the dataset can, else one by one."""
    together = getattr(dataset, "__getitems__", None)
    return together(indices) if callable(together) else [dataset[i] for i in indices]


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Any = default_generator) -> list[Subset[Any]]:
    """Cut a dataset at random into parts of the given lengths, or fractions that sum to 1 (rounded down; what is left over goes
    round, one item a part).

    Errors: ValueError if the lengths do not sum to the dataset's.

    Example:
        >>> a, b = torch.utils.data.random_split(range(10), [0.7, 0.3])
        >>> len(a), len(b)
        (7, 3)

    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.random_split
    """
    n = len(dataset)
    total = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        parts = [math.floor(n * fraction) for fraction in lengths]
        for i in range(n - sum(parts)):
            parts[i % len(parts)] += 1
        for i, length in enumerate(parts):
            if length == 0:
                warn_user(f"Length of split at index {i} is 0. This might result in an empty dataset.")
        lengths, total = parts, n
    if total != n:
        raise ValueError(
            f"Sum of input lengths does not equal the length of the input dataset! ({list(lengths)} sum to {total}, the dataset has {n})"
        )
    indices = OPS["randperm"].call(total, generator=generator).tolist()
    return [Subset(dataset, indices[int(end - length) : int(end)]) for end, length in zip(accumulate(lengths), lengths, strict=True)]
