"""From indices to a batch, in the loader's process or a worker's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import numpy as np

from ...dtypes import int64
from ...ops.indexing.picking import pick
from ...tensor import Tensor, wrap
from .collate import collate_tensor_fn, default_collate, default_collate_fn_map
from .dataset import Subset, TensorDataset, items_of


class Map:
    """Batches of a dataset with items by number."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Callable[..., Any], drop_last: bool):
        self._dataset, self._batched, self._collate = dataset, batched, collate_fn

    def fetch(self, index: Any) -> Any:
        if not self._batched:
            return self._collate(self._dataset[index])
        if self._collate is default_collate:
            out = _gathered(self._dataset, index)
            if out is not None:
                return out
        return self._collate(items_of(self._dataset, index))


class Stream:
    """Batches of a stream; StopIteration after the last."""

    def __init__(self, dataset: Iterable[Any], batched: bool, collate_fn: Callable[..., Any], drop_last: bool):
        self._items, self._batched, self._collate, self._drop_last = iter(dataset), batched, collate_fn, drop_last
        self._ended = False

    def fetch(self, index: Any) -> Any:
        if not self._batched:
            return self._collate(next(self._items))
        items = [] if self._ended else list(islice(self._items, len(index)))
        self._ended = len(items) < len(index)
        if not items or (self._drop_last and self._ended):
            raise StopIteration
        return self._collate(items)


def _gathered(dataset: Any, indices: Any) -> list[Tensor] | None:
    """Return the batch of a dataset in memory, gathered by one kernel a tensor; None where items have to be read one by one."""
    while type(dataset) is Subset:
        indices = [dataset.indices[i] for i in indices]
        dataset = dataset.dataset
    kinds = set(map(type, indices)) if type(indices) is list else set()
    if kinds != {int} and kinds and all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds):
        indices, kinds = list(map(int, indices)), {int}
    if (
        not isinstance(dataset, TensorDataset)
        or type(dataset).__getitem__ is not TensorDataset.__getitem__
        or hasattr(dataset, "__getitems__")
        or default_collate_fn_map.get(Tensor) is not collate_tensor_fn
        or any(type(t) is not Tensor for t in dataset.tensors)
        or kinds != {int}
        or min(indices) < 0
        or max(indices) >= len(dataset)  # counted from the end, or out of range: the items' own rules and errors
    ):
        return None
    where = wrap(np.array(indices, np.int64), int64)
    gather = pick if any(t._rg for t in dataset.tensors) else pick.forward  # without a history there is nothing to record
    return [gather(t, where, (0,), 0) for t in dataset.tensors]
