"""Datasets, samplers, collating, and the loader with and without workers."""

from __future__ import annotations

import collections
import os
import pickle
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    pool,
    random_split,
)
from autograd_nb.utils.data import fetch as fetching

from . import data_sets
from .data_sets import About, Fails, Random, Squares, Stream

# ---------------------------------------------------------------------------------------------------- datasets


def test_datasets():
    t = TensorDataset(torch.arange(4), torch.ones(4, 2))
    assert len(t) == 4
    assert t[1][0].item() == 1
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(torch.ones(3), torch.ones(4))
    c = t + Squares(3)
    assert isinstance(c, ConcatDataset)
    assert (len(c), c[5][1], c[-1][1]) == (7, 1, 2)
    with pytest.raises(ValueError, match="absolute value of index"):
        c[-8]
    with pytest.raises(AssertionError, match="should not be an empty iterable"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        ConcatDataset([Stream()])
    chain = Stream(2) + Stream(3)
    assert isinstance(chain, ChainDataset)
    assert list(chain) == [0, 1, 0, 1, 2]
    with pytest.raises(AssertionError, match="ChainDataset only supports"):
        list(ChainDataset([Squares()]))
    s = StackDataset(range(3), a := [5, 6, 7])
    assert s[1] == (1, 6)
    assert s.__getitems__([2, 0]) == [(2, 7), (0, 5)]
    assert StackDataset(x=range(3), y=a).__getitems__([1]) == [{"x": 1, "y": 6}]
    for args, kwargs, text in (((), {}, "At least one"), ((a,), {"b": a}, "both types"), ((a, range(2)), {}, "Size mismatch")):
        with pytest.raises(ValueError, match=text):
            StackDataset(*args, **kwargs)
    sub = Subset(a, [2, 0])
    assert (len(sub), sub[0], sub.__getitems__([1, 0])) == (2, 7, [5, 7])

    class Mine(Subset):
        def __getitem__(self, i):
            return -self.dataset[self.indices[i]]

    with pytest.raises(NotImplementedError, match="overrides __getitem__ but not __getitems__"):
        Mine(a, [0])
    with pytest.raises(NotImplementedError):
        Dataset()[0]


def test_random_split():
    parts = random_split(range(10), [3, 7], generator=torch.Generator().manual_seed(1))
    order = torch.randperm(10, generator=torch.Generator().manual_seed(1)).tolist()
    assert [list(p) for p in parts] == [order[:3], order[3:]]
    assert [len(p) for p in random_split(range(10), [0.35, 0.35, 0.3])] == [4, 3, 3]
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        random_split(range(10), [3, 3])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between"):
        random_split(range(10), [-0.5, 1.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(range(1), [0.9, 0.1])


# ---------------------------------------------------------------------------------------------------- samplers


def test_samplers():
    g = torch.Generator().manual_seed(3)
    assert list(SequentialSampler(range(3))) == [0, 1, 2]
    assert sorted(RandomSampler(range(5), generator=g)) == list(range(5))
    more = list(RandomSampler(range(5), num_samples=12, generator=g))
    assert sorted(more[:5]) == sorted(more[5:10]) == list(range(5))
    assert len(set(more[10:])) == 2
    drawn = list(RandomSampler(range(5), replacement=True, num_samples=70))
    assert len(drawn) == 70
    assert set(drawn) == set(range(5))
    assert sorted(SubsetRandomSampler([7, 9, 3])) == [3, 7, 9]
    weighted = WeightedRandomSampler([0.0, 1.0, 3.0], 200)
    assert collections.Counter(weighted).most_common(1)[0][0] == 2
    assert sorted(WeightedRandomSampler([1.0, 1.0, 1.0], 3, replacement=False)) == [0, 1, 2]
    assert list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert (len(BatchSampler(range(5), 2, False)), len(BatchSampler(range(5), 2, True))) == (3, 2)
    shares = [list(DistributedSampler(range(7), 3, rank, shuffle=False)) for rank in range(3)]
    assert shares == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    assert [len(DistributedSampler(range(7), 3, rank, drop_last=True)) for rank in range(3)] == [2, 2, 2]


#: what a sampler without numbers says: there is no group, or no MPI to make one with
NO_GROUP = (ValueError, "has not been initialized") if torch.distributed.is_available() else (RuntimeError, "Requires distributed package")


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: RandomSampler(range(3), replacement=1), TypeError, "replacement should be a boolean value, but got replacement=1"),
        (lambda: RandomSampler(range(3), num_samples=0), ValueError, "num_samples should be a positive integer value, but got num_samples=0"),
        (lambda: RandomSampler([]), ValueError, "num_samples=0"),
        (lambda: WeightedRandomSampler([1.0], 0), ValueError, "num_samples should be a positive"),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, "weights should be a 1d sequence but given weights have shape"),
        (lambda: WeightedRandomSampler([1.0], 1, 3), ValueError, "replacement should be a boolean"),
        (lambda: BatchSampler(range(3), True, False), ValueError, "batch_size should be a positive integer value, but got batch_size=True"),
        (lambda: BatchSampler(range(3), 2, 1), ValueError, "drop_last should be a boolean value, but got drop_last=1"),
        (lambda: DistributedSampler(range(3)), *NO_GROUP),
        (lambda: DistributedSampler(range(3), 2, 2), ValueError, "Invalid rank 2"),
        (lambda: DataLoader([1], num_workers=-1), ValueError, "num_workers option should be non-negative"),
        (lambda: DataLoader([1], timeout=-1), ValueError, "timeout option should be non-negative"),
        (lambda: DataLoader([1], prefetch_factor=2), ValueError, "prefetch_factor option could only be specified in multiprocessing"),
        (lambda: DataLoader([1], num_workers=1, prefetch_factor=-1), ValueError, "prefetch_factor option should be non-negative"),
        (lambda: DataLoader([1], persistent_workers=True), ValueError, "persistent_workers option needs num_workers > 0"),
        (lambda: DataLoader([1], shuffle=True, sampler=[0]), ValueError, "sampler option is mutually exclusive with shuffle"),
        (lambda: DataLoader([1], batch_size=2, batch_sampler=[[0]]), ValueError, "batch_sampler option is mutually exclusive"),
        (lambda: DataLoader([1], batch_size=None, drop_last=True), ValueError, "batch_size=None option disables auto-batching"),
        (lambda: DataLoader([1], batch_size=0), ValueError, "batch_size should be a positive integer value"),
        (lambda: DataLoader(Stream(), shuffle=True), ValueError, "expected unspecified shuffle option, but got shuffle=True"),
        (lambda: DataLoader(Stream(), sampler=[0]), ValueError, "expected unspecified sampler option"),
        (lambda: DataLoader(Stream(), batch_sampler=[0]), ValueError, "expected unspecified batch_sampler option"),
        (lambda: DataLoader([1], multiprocessing_context="spawn"), ValueError, "can only be used with multi-process loading"),
        (lambda: DataLoader([1], num_workers=1, multiprocessing_context="x"), ValueError, "should specify a valid start method"),
        (lambda: DataLoader([1], num_workers=1, multiprocessing_context=3), TypeError, "should be a valid context object"),
        (lambda: setattr(DataLoader([1]), "batch_size", 3), ValueError, "batch_size attribute should not be set after DataLoader"),
    ],
)
def test_errors(make, kind, text):
    with pytest.raises(kind, match=text):
        make()


# --------------------------------------------------------------------------------------------------- collating

Point = collections.namedtuple("Point", ["x", "y"])


def test_collate():
    assert default_collate([1, 2]).dtype is torch.int64
    assert default_collate([1.0, 2.0]).dtype is torch.float64
    assert default_collate([True, False]).dtype is torch.bool
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([np.float32(1), np.float32(2)]).dtype is torch.float32
    assert default_collate([np.ones(2), np.ones(2)]).shape == (2, 2)
    assert default_collate([torch.ones(2), torch.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    p = default_collate([Point(1, [2]), Point(3, [4])])
    assert isinstance(p, Point)
    assert p.y[0].tolist() == [2, 4]
    o = default_collate([collections.OrderedDict(a=1), collections.OrderedDict(a=2)])
    assert isinstance(o, collections.OrderedDict)
    assert type(default_collate([(1, 2), (3, 4)])) is list
    with pytest.raises(TypeError, match=r"default_collate: batch must contain tensors.*found <class 'object'>"):
        default_collate([object()])
    with pytest.raises(TypeError, match="found <U1"):
        default_collate([np.array(["a"])])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        default_collate([torch.ones(2), torch.ones(3)])
    c = default_convert({"a": np.ones(2), "b": "text", "c": (1, np.float64(2)), "d": np.array(["s"])})
    assert c["a"].tolist() == [1, 1]
    assert (c["b"], c["c"][0], c["c"][1].item(), type(c["d"])) == ("text", 1, 2, np.ndarray)


# ------------------------------------------------------------------------------------------------ no workers


def test_loader():
    loader = DataLoader(Squares(), batch_size=4)
    for _ in range(2):
        assert [b[1].tolist() for b in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(loader) == 3
    assert len(DataLoader(Squares(), batch_size=4, drop_last=True)) == 2
    assert [b[1] for b in DataLoader(Squares(3), batch_size=None)] == [0, 1, 2]
    assert [b[1].tolist() for b in DataLoader(Squares(), batch_sampler=[[0, 9], [3]])] == [[0, 9], [3]]
    assert [b[1].item() for b in DataLoader(Squares(), sampler=[2, 1])] == [2, 1]
    assert [len(b) for b in DataLoader(Squares(), 6, collate_fn=data_sets.as_list)] == [6, 4]
    assert get_worker_info() is None
    torch.manual_seed(0)
    a = [b[1].tolist() for b in DataLoader(Squares(), 3, shuffle=True)]
    torch.manual_seed(0)
    assert a == [b[1].tolist() for b in DataLoader(Squares(), 3, shuffle=True)]
    g = torch.Generator().manual_seed(0)
    first, second = ([b[1].item() for b in DataLoader(Squares(), shuffle=True, generator=g)] for _ in range(2))
    assert first != second
    assert sorted(first) == sorted(second)


def test_seeds_are_drawn_from_the_default_generator():
    """One draw for an iterator and one for its order, so what comes after is the same with and without a loop's body."""
    torch.manual_seed(0)
    list(DataLoader(range(3), shuffle=True))
    after = torch.rand(1)
    torch.manual_seed(0)
    for _ in range(2):
        torch.empty((), dtype=torch.int64).random_()
    assert torch.equal(after, torch.rand(1))


def test_streams():
    loader = DataLoader(Stream(5), batch_size=2)
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in DataLoader(Stream(5), batch_size=2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    with pytest.raises(TypeError):
        len(loader)

    class Liar(IterableDataset):
        def __len__(self):
            return 1

        def __iter__(self):
            return iter(range(4))

    loader = DataLoader(Liar(), batch_size=2)
    assert len(loader) == 1
    with pytest.warns(UserWarning, match="was reported to be 1"):
        list(loader)


def test_tensors_in_memory_are_gathered(monkeypatch):
    x, y = torch.arange(20.0).reshape(10, 2), torch.arange(10)
    data = TensorDataset(x, y)
    monkeypatch.setattr(fetching, "items_of", None)
    for dataset in (data, Subset(data, np.arange(10)), Subset(Subset(data, range(10)), list(range(10)))):
        for a, b in DataLoader(dataset, batch_size=3, shuffle=True):
            assert torch.equal(a[:, 0], b * 2.0)
    w = x.clone().requires_grad_()
    (a,) = next(iter(DataLoader(TensorDataset(w), batch_size=3)))
    a.sum().backward()
    assert w.grad.sum().item() == 6
    monkeypatch.undo()
    assert next(iter(DataLoader(data, batch_sampler=[[-1, 0]])))[1].tolist() == [9, 0]
    with pytest.raises(IndexError):
        next(iter(DataLoader(data, batch_sampler=[[10]])))

    class Doubled(TensorDataset):
        def __getitem__(self, i):
            return self.tensors[0][i] * 2

    assert next(iter(DataLoader(Doubled(y), batch_size=2))).tolist() == [0, 2]


# ---------------------------------------------------------------------------------------------------- workers


def test_workers_keep_the_order():
    def numbers(options, **more):
        torch.manual_seed(1)
        return list(DataLoader(Squares(width=30000), 3, **options, **more))

    for options in ({"shuffle": True}, {"drop_last": True}):
        batches = numbers(options, num_workers=2, prefetch_factor=1)
        assert [b[1].tolist() for b in batches] == [b[1].tolist() for b in numbers(options)]
        for x, i in batches:  # through shared memory, and writable
            assert torch.equal(x[:, -1], (i * i).float())
            x.zero_()


def test_persistent_workers_and_their_seeds():
    loader = DataLoader(About(4), batch_size=None, num_workers=2, persistent_workers=True, multiprocessing_context="spawn")
    first, second = list(loader), list(loader)
    assert [a[4] for a in first] == [a[4] for a in second]
    assert [a[:2] for a in first] == [[0, 2], [1, 2], [0, 2], [1, 2]]
    assert first[1][2] == first[0][2] + 1
    assert all(a[3] for a in first)
    iterator = iter(loader)
    next(iterator)
    assert [a[0] for a in loader] == [0, 1, 0, 1]  # what was left of the other pass is gone


def test_random_numbers_of_workers():
    def draws(local):
        torch.manual_seed(5)
        collate = (lambda b: b) if local else data_sets.as_list
        loader = DataLoader(Random(4), 2, num_workers=2, collate_fn=collate)
        if not local:
            return list(loader), torch.rand(1).item()
        with pytest.warns(UserWarning, match=r"its 2 worker\(s\) cannot be processes.*lambda"):
            return list(loader), torch.rand(1).item()

    a = draws(False)
    assert len({x for batch in a[0] for item in batch for x in item}) == 12
    assert draws(True) == a


def test_streams_and_workers():
    batches = [b.tolist() for b in DataLoader(Stream(), 2, num_workers=2)]
    assert batches == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]
    sizes = [b[1].tolist() for b in DataLoader(Squares(4), 2, num_workers=1, in_order=False)]
    assert sizes == [[0, 1], [2, 3]]
    loader = DataLoader(Stream(8), None, num_workers=2, worker_init_fn=data_sets.move_start, in_order=False)
    assert sorted(loader) == [0, 1, 2, 3]  # range(0, 3, 2) and range(1, 4, 2)


FAILURES = {
    "value": (ValueError, r"^Caught ValueError in DataLoader worker process 0\.\nOriginal Traceback[\s\S]*in __getitem__[\s\S]*unlucky item"),
    "key": (KeyError, r"Caught KeyError in DataLoader worker process 0\.\nOriginal Traceback"),
    "odd": (RuntimeError, r"Caught Odd in DataLoader worker process 0"),
    "stop": (StopIteration, "Caught StopIteration"),
    "history": (RuntimeError, "Cowardly refusing to serialize non-leaf tensor"),
    "unpicklable": ((AttributeError, RuntimeError, pickle.PicklingError), r"in DataLoader worker process 0\.\n[\s\S]*(pickle|get) local object"),
    "exit": (RuntimeError, r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly with exit code 3"),
}


def test_failures_reach_the_user():
    kinds = ["good", *FAILURES]
    iterator = iter(DataLoader(Fails(*kinds), batch_size=None, num_workers=1, prefetch_factor=1))
    for i, kind in enumerate(kinds):
        if kind == "good":
            assert next(iterator) == i
        else:
            error, text = FAILURES[kind]
            with pytest.raises(error, match=text):
                next(iterator)
    assert list(iterator) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("kill", r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly.*SIGKILL"),
        ("sleep", r"DataLoader timed out after 4 seconds"),
    ],
)
def test_no_hang(kind, text, monkeypatch):
    monkeypatch.setattr(pool, "PATIENCE", 0.5)
    start = time.monotonic()
    iterator = iter(DataLoader(Fails("good", "good", kind), None, num_workers=2, timeout=4 if kind == "sleep" else 0))
    assert [next(iterator), next(iterator)] == [0, 1]
    with pytest.raises(RuntimeError, match=text):
        next(iterator)
    assert time.monotonic() - start < 25


@pytest.mark.parametrize("place", ["ask", "half asked", "answer", "restart", "killed"])
def test_persistent_workers_after_a_pass_that_was_broken_off(place, monkeypatch):
    """The next pass has all batches, of workers that are started anew; it had none."""
    loader = DataLoader(Squares(), num_workers=2, persistent_workers=True)
    whole = [i.tolist() for _, i in loader]
    iterator = iter(loader)
    next(iterator)
    with monkeypatch.context() as patch:

        def broken(connection, request):
            if place == "half asked":
                os.write(connection.fileno(), b"\0\0")
            raise KeyboardInterrupt

        if place == "killed":
            for each in iterator._workers:
                each.process.kill()
        elif place == "answer":
            patch.setattr(pool.transport, "receive", lambda connection: broken(connection, None))
        else:
            patch.setattr(pool.transport, "send", broken)
        with pytest.raises(RuntimeError if place == "killed" else KeyboardInterrupt):
            list(loader if place == "restart" else iterator)
    for _ in range(2):
        assert [i.tolist() for _, i in loader] == whole


def test_failing_init():
    with pytest.raises(RuntimeError, match=r"Caught RuntimeError in DataLoader worker process 0\.\n[\s\S]*init of 0"):
        next(iter(DataLoader(Squares(), num_workers=1, worker_init_fn=data_sets.failing_init)))


def test_deleting_an_iterator_ends_its_workers():
    iterator = iter(DataLoader(Squares(100), num_workers=2))
    next(iterator)
    pids = [w.process.pid for w in iterator._workers]
    del iterator
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def run(tmp_path, text, *args):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text))
    return subprocess.run([sys.executable, *args, str(script)], capture_output=True, text=True, timeout=60)


SCRIPT = """
    import autograd_nb as torch
    from autograd_nb.utils.data import Dataset, DataLoader

    print("begins")

    class Mine(Dataset):
        def __len__(self):
            return 4
        def __getitem__(self, i):
            return i

    def main():
        global kept
        print([b.tolist() for b in DataLoader(Mine(), 2, num_workers=1)])
        kept = iter(DataLoader(Mine(), num_workers=1))  # open when the program ends
        next(kept)

"""


def test_scripts(tmp_path):
    done = run(tmp_path, SCRIPT + "    if __name__ == '__main__':\n        main()\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("[[0, 1], [2, 3]]") == 1
    assert done.stderr == ""
    done = run(tmp_path, SCRIPT + "    main()\n")  # without the guard nothing is run twice
    assert done.returncode == 0, done.stderr
    assert done.stdout == "begins\n[[0, 1], [2, 3]]\n"
    assert "would run again in every worker" in done.stderr


@pytest.mark.parametrize("workers", [0, 1])
def test_iterators_take_what_is_like_a_loader(workers):
    """As fastai makes one: its context is the module multiprocessing, which forks."""
    from autograd_nb.utils.data.dataloader import _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

    made = (_MultiProcessingDataLoaderIter if workers else _SingleProcessDataLoaderIter)(data_sets.OtherLoader(workers))
    assert [batch.tolist() for batch in made] == [[0], [1], [2]]
