"""Every collective of every dtype, with tensors that are dense, turned, with gaps, numbers or of no elements, beside what NumPy makes of all ranks' arrays.

``python -m tests.distributed.layouts LARGE`` on two ranks runs each with more than 2³¹ elements of a byte, which takes 16 GB and a minute.
"""

from __future__ import annotations

import gc
import sys

import numpy as np

import autograd_nb as torch
import autograd_nb.distributed as dist

from .training import me

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
SHAPES = [(3, 4), (0, 4), ()]


def values(rank, name, shape):
    """What a rank holds: small whole numbers, of which all sums are exact."""
    made = np.random.default_rng(7 + rank).integers(0, 4, shape)
    return made % 2 == 1 if name == "bool" else made + 1j * (made % 3) if name.startswith("complex") else made


def tensor(array, name):
    return torch.from_numpy(np.asarray(array).copy()).to(getattr(torch, name))


def laid(t, kind):
    """The same values in another layout."""
    if kind == "turned":
        return t.movedim(0, -1).contiguous().movedim(-1, 0) if t.ndim > 1 else t
    if kind == "gaps":
        wide = torch.zeros((*t.shape, 3), dtype=t.dtype)
        wide[..., 1] = t
        return wide[..., 1]
    return t.clone()


def shown(t):
    return t.to(torch.complex128 if t.dtype.is_complex else torch.float64).numpy()


def calls(rank, size, each, new):
    """Yield (name, what a call leaves, what it should) of ``each``, the arrays of all ranks; ``new(k)``: this rank's tensor, or its k-th."""
    truths = each[0].dtype == bool
    total = np.any(each, 0) if truths else np.sum(each, 0)
    parts = [[a + (0 if truths else k) for k in range(size)] for a in each]  # what rank a holds for rank k
    mine = [np.any([p[k] for p in parts], 0) if truths else np.sum([p[k] for p in parts], 0) for k in range(size)]
    last = size - 1

    def after(call, t):
        call(t)
        return t

    def held(call, fill=0):
        outs = [new(None) for _ in range(size)]
        call(outs)
        return outs

    yield "all_reduce", [after(dist.all_reduce, new(rank))], [total]
    yield "reduce", [after(lambda t: dist.reduce(t, last), new(rank))], [total if rank == last else each[rank]]
    yield "broadcast", [after(lambda t: dist.broadcast(t, last), new(rank))], [each[last]]
    yield "all_gather", held(lambda outs: dist.all_gather(outs, new(rank))), each
    yield "gather", held(lambda outs: dist.gather(new(rank), outs if rank == 0 else None, 0)), each if rank == 0 else [a * 0 for a in each]
    given = [new(rank, k) for k in range(size)]
    yield "scatter", [after(lambda t: dist.scatter(t, given if rank == last else None, last), new(None))], [parts[last][rank]]
    yield "reduce_scatter", [after(lambda t: dist.reduce_scatter(t, given), new(None))], [mine[rank]]
    yield "all_to_all", held(lambda outs: dist.all_to_all(outs, given)), [p[rank] for p in parts]
    before, behind = (rank - 1) % size, (rank + 1) % size
    got = new(None)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, new(rank), behind), dist.P2POp(dist.irecv, got, before)])
    _ = [work.wait() for work in works]
    yield "isend and irecv", [got], [each[before]]


def joined(rank, size, each, new, kind, name):
    """Yield the same of calls with one tensor for all ranks, along its first dim."""
    truths = each[0].dtype == bool
    rows = np.concatenate([each[rank] + (0 if truths else k) for k in range(size)])
    whole = [np.concatenate([a + (0 if truths else k) for k in range(size)]) for a in each]
    n = each[0].shape[0]

    def one(array):
        return laid(tensor(array, name), kind)

    out = one(rows * 0)
    dist.all_gather_into_tensor(out, new(rank))
    yield "all_gather_into_tensor", [out], [np.concatenate(each)]
    out = one(each[0] * 0)
    dist.reduce_scatter_tensor(out, one(rows))
    summed = np.any(whole, 0) if truths else np.sum(whole, 0)
    yield "reduce_scatter_tensor", [out], [summed[rank * n : (rank + 1) * n]]
    out = one(rows * 0)
    dist.all_to_all_single(out, one(rows))
    yield "all_to_all_single", [out], [np.concatenate([w[rank * n : (rank + 1) * n] for w in whole])]


def check_every_collective_of_every_dtype_and_layout():
    rank, size = me()
    for name in DTYPES:
        for shape in SHAPES:
            each = [values(r, name, shape) for r in range(size)]
            truths = name == "bool"

            for kind in ("turned", "gaps") if len(shape) > 1 else ("dense", "gaps"):

                def new(r, k=0, kind=kind, each=each, truths=truths, name=name):
                    return laid(tensor(each[0] * 0 if r is None else each[r] + (0 if truths else k), name), kind)

                found = list(calls(rank, size, each, new))
                if shape and shape[0]:
                    found += joined(rank, size, each, new, kind, name)
                for call, outs, wanted in found:
                    for out, want in zip(outs, wanted, strict=True):
                        np.testing.assert_array_equal(shown(out), want, err_msg=f"{call} {name}{list(shape)} {kind}")
                        assert out.dtype is getattr(torch, name)


def large():
    """More than 2³¹ bytes in each call, on two ranks; each checked at a few places."""
    rank, size = me()
    n = (1 << 31) + 6
    places = torch.tensor([0, 5, (1 << 31) - 1, 1 << 31, n - 1])

    def check(name, t, wanted):
        found = t[places].tolist()
        assert found == wanted, (name, found, wanted)
        print(f"rank {rank}: {name} of {t.numel():,} bytes", flush=True)

    def made(r=rank):
        t = torch.full((n,), r + 1, dtype=torch.uint8)
        t[places] = torch.arange(5, dtype=torch.uint8) + 10 * (r + 1)
        return t

    marks = [[10 * (r + 1) + k for k in range(5)] for r in range(size)]
    t = made()
    dist.all_reduce(t)
    check("all_reduce", t, [sum(m[k] for m in marks) for k in range(5)])
    t = made()
    dist.broadcast(t, 1)
    check("broadcast", t, marks[1])
    dist.reduce(t := made(), 0)
    check("reduce", t, [sum(m[k] for m in marks) for k in range(5)] if rank == 0 else marks[rank])
    if rank == 0:
        dist.send(t := made(), 1)
    else:
        dist.recv(t := torch.zeros(n, dtype=torch.uint8), 0)
        check("recv", t, marks[0])
    del t
    gc.collect()
    half = n // size
    every = torch.zeros(n, dtype=torch.uint8)
    dist.all_gather_into_tensor(every, torch.full((half,), rank + 1, dtype=torch.uint8))
    check("all_gather_into_tensor", every, [1, 1, 2, 2, 2])
    del every
    gc.collect()
    t, out = made(), torch.zeros(half, dtype=torch.uint8)
    dist.reduce_scatter_tensor(out, t)
    assert out[-1].item() == (1 + 2 if rank == 0 else sum(m[4] for m in marks)), out[-1]
    out = torch.zeros(n, dtype=torch.uint8)
    dist.all_to_all_single(out, t)
    assert out[0].item() == (marks[0][0] if rank == 0 else 1)
    assert out[-1].item() == (2 if rank == 0 else marks[1][4])
    print(f"rank {rank}: all_to_all_single", flush=True)


if __name__ == "__main__":
    dist.init_process_group()
    large() if sys.argv[1:] == ["LARGE"] else check_every_collective_of_every_dtype_and_layout()
    print("ok", flush=True)
