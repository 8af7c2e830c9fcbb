"""Datasets, collating and loaders beside PyTorch's: what batches hold, their types, lengths, and errors."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from .compare import torch

import autograd_nb as ours  # isort: skip

Point = collections.namedtuple("Point", ["x", "y"])


def plain(value):
    """Types, dtypes and values, comparable between the libraries."""
    if isinstance(value, (torch.Tensor, ours.Tensor)):
        return ("tensor", str(value.dtype).replace("torch.", ""), tuple(value.shape), value.detach().tolist())
    if isinstance(value, np.ndarray):
        return ("array", str(value.dtype), value.tolist())
    if isinstance(value, dict):
        return (type(value).__name__, [(k, plain(v)) for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [plain(v) for v in value])
    return (type(value).__name__, value)


def agree(call):
    """Both libraries give the same, or raise the same type of error with most of its words."""
    results = []
    for t in (ours, torch):
        try:
            results.append(plain(call(t)))
        except Exception as error:
            results.append(error)
    mine, theirs = results
    if isinstance(theirs, Exception):
        assert isinstance(mine, type(theirs)), (mine, theirs)
        words = set(str(theirs).split()[:16])
        assert len(words & set(str(mine).split())) >= 0.6 * len(words), (str(mine), str(theirs))
    else:
        assert mine == theirs


BATCHES = [
    lambda t: [1, 2],
    lambda t: [1.5, 2],
    lambda t: [True, False],
    lambda t: ["a", "bc"],
    lambda t: [b"a", b"bc"],
    lambda t: [t.ones(2), t.zeros(2)],
    lambda t: [t.ones(2), t.zeros(3)],
    lambda t: [np.ones(2, "f4"), np.zeros(2, "f4")],
    lambda t: [np.float32(1), np.float32(2)],
    lambda t: [np.int16(1), np.int16(2)],
    lambda t: [np.bool_(True)],
    lambda t: [np.array(["a"])],
    lambda t: [(1, t.ones(1)), (2, t.zeros(1))],
    lambda t: [[1, "a"], [2, "b"]],
    lambda t: [{"a": 1, "b": [t.ones(1)]}, {"a": 2, "b": [t.ones(1)]}],
    lambda t: [Point(1, 2.0), Point(3, 4.0)],
    lambda t: [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
    lambda t: [collections.defaultdict(int, a=1)],
    lambda t: [[1], [1, 2]],
    lambda t: [{"a": 1}, {"b": 1}],
    lambda t: [object()],
    lambda t: [None],
    lambda t: [range(2), range(2)],
    lambda t: [],
    lambda t: [t.nn.Parameter(t.ones(1)), t.nn.Parameter(t.ones(1))],
    lambda t: [1 + 2j],
]


@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_collate_and_convert(number):
    agree(lambda t: t.utils.data.default_collate(BATCHES[number](t)))
    if number not in (20,):
        agree(lambda t: t.utils.data.default_convert(BATCHES[number](t)))


def squares(t):
    class Squares(t.utils.data.Dataset):
        def __len__(self):
            return 11

        def __getitem__(self, i):
            return {"x": t.full((2,), float(i * i)), "i": i, "name": str(i)}

    return Squares()


def stream(t):
    class Stream(t.utils.data.IterableDataset):
        def __iter__(self):
            return iter([(i, t.tensor(float(i))) for i in range(7)])

    return Stream()


def tensors(t):
    return t.utils.data.TensorDataset(t.arange(22.0).reshape(11, 2), t.arange(11))


LOADERS = [
    lambda t: t.utils.data.DataLoader(squares(t)),
    lambda t: t.utils.data.DataLoader(squares(t), batch_size=4),
    lambda t: t.utils.data.DataLoader(squares(t), batch_size=4, drop_last=True),
    lambda t: t.utils.data.DataLoader(squares(t), batch_size=None),
    lambda t: t.utils.data.DataLoader(squares(t), batch_size=3, sampler=[5, 1, 2, 2]),
    lambda t: t.utils.data.DataLoader(squares(t), batch_sampler=[[5, 1], [2]]),
    lambda t: t.utils.data.DataLoader(squares(t), batch_size=3, collate_fn=lambda items: [item["i"] for item in items]),
    lambda t: t.utils.data.DataLoader(tensors(t), batch_size=4),
    lambda t: t.utils.data.DataLoader(tensors(t), batch_size=None),
    lambda t: t.utils.data.DataLoader(tensors(t), batch_size=None, sampler=t.utils.data.BatchSampler(range(5), 2, False)),
    lambda t: t.utils.data.DataLoader(tensors(t), batch_size=2, sampler=[-1, 3]),
    lambda t: t.utils.data.DataLoader(tensors(t), batch_size=2, sampler=[11]),
    lambda t: t.utils.data.DataLoader(tensors(t), batch_size=2, sampler=[t.tensor(1), np.int64(4)]),
    lambda t: t.utils.data.DataLoader(t.utils.data.Subset(tensors(t), [3, 1, 4]), batch_size=2),
    lambda t: t.utils.data.DataLoader(t.utils.data.ConcatDataset([tensors(t), tensors(t)]), batch_size=9),
    lambda t: t.utils.data.DataLoader(t.utils.data.StackDataset(tensors(t), range(11)), batch_size=9),
    lambda t: t.utils.data.DataLoader(
        t.utils.data.StackDataset(a=tensors(t), b=t.utils.data.Subset(range(20), range(11))), batch_size=9
    ),
    lambda t: t.utils.data.DataLoader(t.arange(5), batch_size=2),
    lambda t: t.utils.data.DataLoader([1, 2, 3], batch_size=2),
    lambda t: t.utils.data.DataLoader("text", batch_size=2),
    lambda t: t.utils.data.DataLoader(np.arange(6.0).reshape(3, 2), batch_size=2),
    lambda t: t.utils.data.DataLoader([], batch_size=2),
    lambda t: t.utils.data.DataLoader([], batch_size=2, shuffle=True),
    lambda t: t.utils.data.DataLoader(stream(t), batch_size=3),
    lambda t: t.utils.data.DataLoader(stream(t), batch_size=3, drop_last=True),
    lambda t: t.utils.data.DataLoader(stream(t), batch_size=None),
    lambda t: t.utils.data.DataLoader(t.utils.data.ChainDataset([stream(t), stream(t)]), batch_size=5),
    lambda t: t.utils.data.DataLoader(3),
    lambda t: t.utils.data.DataLoader(stream(t), shuffle=True),
    lambda t: t.utils.data.DataLoader(tensors(t), batch_size=1.5),
    lambda t: t.utils.data.DataLoader(tensors(t), timeout=1),
    lambda t: t.utils.data.DataLoader(tensors(t), num_workers=-1),
    lambda t: t.utils.data.DataLoader(tensors(t), shuffle=True, sampler=[1]),
]


@pytest.mark.parametrize("number", range(len(LOADERS)))
def test_loader(number):
    agree(lambda t: [list(LOADERS[number](t)) for _ in range(2)])
    agree(lambda t: len(LOADERS[number](t)))


OTHERS = [
    lambda t: t.utils.data.TensorDataset(t.ones(2), t.ones(3)),
    lambda t: tensors(t)[2],
    lambda t: tensors(t)[-1],
    lambda t: tensors(t)[1:3],
    lambda t: tensors(t)[[0, 2]],
    lambda t: [len(p) for p in t.utils.data.random_split(range(11), [0.5, 0.3, 0.2])],
    lambda t: [len(p) for p in t.utils.data.random_split(range(11), [5, 6])],
    lambda t: t.utils.data.random_split(range(11), [5, 5]),
    lambda t: t.utils.data.random_split(range(11), [1.5, -0.5]),
    lambda t: t.utils.data.ConcatDataset([]),
    lambda t: t.utils.data.ConcatDataset([stream(t)]),
    lambda t: (squares(t) + squares(t))[-12]["i"],
    lambda t: (squares(t) + squares(t))[-30],
    lambda t: len(stream(t) + stream(t)),
    lambda t: t.utils.data.StackDataset(),
    lambda t: t.utils.data.StackDataset([1], [1, 2]),
    lambda t: t.utils.data.StackDataset([1], a=[1]),
    lambda t: t.utils.data.Dataset()[0],
    lambda t: t.utils.data.RandomSampler(range(3), 1),
    lambda t: t.utils.data.RandomSampler(range(3), num_samples=-1),
    lambda t: t.utils.data.WeightedRandomSampler([1.0], 2.0),
    lambda t: t.utils.data.WeightedRandomSampler([[1.0]], 2),
    lambda t: sorted(t.utils.data.WeightedRandomSampler([1.0, 1.0, 0.0], 2, False)),
    lambda t: len(t.utils.data.BatchSampler(range(7), 3, True)),
    lambda t: t.utils.data.BatchSampler(range(7), 0, True),
    lambda t: t.utils.data.BatchSampler(range(7), 1, None),
    lambda t: list(t.utils.data.DistributedSampler(range(7), 3, 1, shuffle=False)),
    lambda t: list(t.utils.data.DistributedSampler(range(7), 3, 1, shuffle=False, drop_last=True)),
    lambda t: t.utils.data.DistributedSampler(range(7), 3, 3),
    lambda t: sorted(i for r in (0, 1) for i in t.utils.data.DistributedSampler(range(8), 2, r)),
]


@pytest.mark.parametrize("number", range(len(OTHERS)))
def test_datasets_and_samplers(number):
    agree(lambda t: OTHERS[number](t))


def test_names():
    missing = [n for n in torch.utils.data.__all__ if not hasattr(ours.utils.data, n)]
    pipes = {"DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "_DatasetKind", "argument_validation", "functional_datapipe",
             "guaranteed_datapipes_determinism", "non_deterministic", "runtime_validation", "runtime_validation_disabled"}  # fmt: skip
    assert set(missing) <= pipes
