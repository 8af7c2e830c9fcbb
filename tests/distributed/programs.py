"""Calls that are checked on every rank of one MPI job: `python -m tests.distributed.on_ranks programs FILE`.

The expected values come from NumPy: every rank knows what every other one holds.
"""

from __future__ import annotations

import warnings
from datetime import timedelta

import numpy as np
import pytest

import autograd_nb as torch
import autograd_nb.distributed as dist

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]
SHAPE = (3, 4)


def values(rank, dtype, shape=SHAPE):
    """What a rank holds: small whole numbers, of which all sums and products are exact."""
    made = np.random.default_rng(7 + rank).integers(0, 4, shape)
    return (made % 2 if dtype == "bool" else made + 1j * (made % 3) if dtype.startswith("complex") else made).astype(dtype)


def layouts(array):
    """The same values in a dense tensor, a transposed one and one with gaps."""
    dense = torch.from_numpy(array.copy())
    turned = torch.from_numpy(np.ascontiguousarray(array.T)).t()
    wide = torch.from_numpy(np.zeros((*array.shape, 2), array.dtype))
    wide[..., 0] = dense
    return [dense, turned, wide[..., 0]]


def same(tensor, array):
    found = tensor.numpy()
    assert found.dtype == array.dtype, (found.dtype, array.dtype)
    np.testing.assert_array_equal(found, array)


def refused(kind, text, call):
    with pytest.raises(kind) as raised:
        call()
    assert text in str(raised.value), str(raised.value)


def me():
    return dist.get_rank(), dist.get_world_size()


def everyone(dtype):
    return [values(r, dtype) for r in range(dist.get_world_size())]


def reductions(dtype):
    all_ = np.stack(everyone(dtype))
    if dtype == "bool":
        return {"SUM": all_.any(0), "PRODUCT": all_.all(0), "MIN": all_.min(0), "MAX": all_.max(0), "BAND": all_.all(0), "BOR": all_.any(0),
                "BXOR": np.logical_xor.reduce(all_)}  # fmt: skip
    total = all_.sum(0, dtype=dtype)
    found = {"SUM": total, "AVG": (total / len(all_) if all_.dtype.kind in "fc" else total // len(all_)).astype(dtype)}
    if all_.dtype.kind != "c":
        found |= {"PRODUCT": all_.prod(0, dtype=dtype), "MIN": all_.min(0), "MAX": all_.max(0)}
    if all_.dtype.kind in "iu":
        found |= {"BAND": np.bitwise_and.reduce(all_), "BOR": np.bitwise_or.reduce(all_), "BXOR": np.bitwise_xor.reduce(all_)}
    return found


def check_all_reduce_of_every_dtype_and_layout():
    rank, _ = me()
    for dtype in DTYPES:
        for name, wanted in reductions(dtype).items():
            for t in layouts(values(rank, dtype)):
                assert dist.all_reduce(t, getattr(dist.ReduceOp, name)) is None
                if name == "AVG":
                    np.testing.assert_allclose(t.numpy(), wanted, rtol=1e-3 if dtype == "float16" else 1e-6)
                else:
                    same(t, wanted)


def check_gaps_stay_as_they_are():
    rank, size = me()
    wide = torch.full((4, 2), float(rank))
    dist.all_reduce(wide[:, 0])
    same(wide, np.stack([np.full(4, sum(range(size))), np.full(4, rank)], 1).astype("float32"))


def check_reduce():
    rank, size = me()
    for dtype in DTYPES:
        for t in layouts(values(rank, dtype)):
            dist.reduce(t, size - 1)
            same(t, reductions(dtype)["SUM"] if rank == size - 1 else values(rank, dtype))


def check_broadcast():
    rank, size = me()
    for dtype in DTYPES:
        for t in layouts(values(rank, dtype)):
            dist.broadcast(t, size - 1)
            same(t, values(size - 1, dtype))


def check_all_gather():
    rank, size = me()
    for dtype in DTYPES:
        for t in layouts(values(rank, dtype)):
            outs = [layouts(np.zeros(SHAPE, dtype))[r % 3] for r in range(size)]
            dist.all_gather(outs, t)
            for out, wanted in zip(outs, everyone(dtype), strict=True):
                same(out, wanted)
            whole = torch.zeros(size * 3, 4, dtype=t.dtype)
            dist.all_gather_into_tensor(whole, t)
            same(whole, np.concatenate(everyone(dtype)))
            stacked = torch.zeros(4, size, 3, dtype=t.dtype).permute(1, 2, 0)
            dist.all_gather_into_tensor(stacked, t)
            same(stacked, np.stack(everyone(dtype)))


def check_gather_and_scatter():
    rank, size = me()
    for dtype in DTYPES:
        for t in layouts(values(rank, dtype)):
            outs = [torch.zeros(SHAPE, dtype=t.dtype) for _ in range(size)] if rank == 0 else None
            dist.gather(t, outs, dst=0)
            for out, wanted in zip(outs or (), everyone(dtype), strict=False):
                same(out, wanted)
            dist.scatter(t, [torch.from_numpy(v) for v in reversed(everyone(dtype))] if rank == size - 1 else None, src=size - 1)
            same(t, everyone(dtype)[size - 1 - rank])


def check_reduce_scatter():
    rank, size = me()
    for dtype in DTYPES:
        every = [[values(r + 10 * part, dtype) for part in range(size)] for r in range(size)]
        total = np.stack([np.stack(parts) for parts in every])
        wanted = total.any(0) if dtype == "bool" else total.sum(0, dtype=dtype)
        for out in layouts(np.zeros(SHAPE, dtype)):
            dist.reduce_scatter(out, [torch.from_numpy(v) for v in every[rank]])
            same(out, wanted[rank])
            out.zero_()
            dist.reduce_scatter_tensor(out, torch.from_numpy(np.concatenate(every[rank])))
            same(out, wanted[rank])


def check_all_to_all():
    rank, size = me()
    for dtype in DTYPES:
        own = torch.from_numpy(np.concatenate([values(10 * rank + r, dtype) for r in range(size)]))
        out = torch.zeros_like(own)
        dist.all_to_all_single(out, own)
        same(out, np.concatenate([values(10 * r + rank, dtype) for r in range(size)]))
        outs = [torch.zeros(rank + 1, r + 1, dtype=own.dtype) for r in range(size)]
        dist.all_to_all(outs, [torch.from_numpy(values(10 * rank + r, dtype, (r + 1, rank + 1))) for r in range(size)])
        for r, t in enumerate(outs):
            same(t, values(10 * r + rank, dtype, (rank + 1, r + 1)))


def check_all_to_all_with_uneven_parts():
    rank, size = me()
    given = [(rank + r) % 3 for r in range(size)]
    own = torch.arange(sum(given) * 2, dtype=torch.float32).reshape(-1, 2) + 100 * rank
    out = torch.zeros(sum((rank + r) % 3 for r in range(size)), 2)
    dist.all_to_all_single(out, own, given, given)
    parts = []
    for r in range(size):
        before = sum((r + q) % 3 for q in range(rank))
        theirs = np.arange(200, dtype="float32").reshape(-1, 2) + 100 * r
        parts.append(theirs[before : before + (r + rank) % 3])
    same(out, np.concatenate(parts))


def check_parts_that_do_not_fit_are_refused_on_all_ranks():
    rank, size = me()
    out = torch.zeros(size + (rank == 0))
    refused(RuntimeError, "Detected mismatch between collectives on ranks", lambda: dist.all_to_all_single(
        out, torch.zeros(size), [2] + [1] * (size - 1) if rank == 0 else [1] * size, [1] * size))  # fmt: skip
    check_all_to_all()


def check_scalars_and_empty_tensors():
    rank, size = me()
    one = torch.tensor(float(rank))
    dist.all_reduce(one)
    assert one.item() == sum(range(size))
    empty = torch.zeros(0, 3)
    dist.all_reduce(empty)
    dist.broadcast(empty, 0)
    dist.all_gather([torch.zeros(0, 3) for _ in range(size)], empty)


def check_async():
    rank, size = me()
    tensors = [torch.full((1000,), float(rank + i)) for i in range(20)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    futures = [work.get_future().then(lambda f: f.value()[0] / size) for work in works]
    for i, (work, t) in enumerate(zip(works, tensors, strict=True)):
        assert work.wait() is True
        assert work.is_completed()
        assert work.is_success()
        assert work.exception() is None
        assert work.result()[0] is t
        assert t[0].item() == sum(r + i for r in range(size))
        assert futures[i].wait()[0].item() == sum(r + i for r in range(size)) / size
    assert dist.barrier(async_op=True).wait()


def check_messages():
    rank, size = me()
    right, left = (rank + 1) % size, (rank - 1) % size
    for n in (1, 3, 200_000):  # long ones wait for their receiver: every rank sends first
        for t, out in zip(layouts(values(rank, "float64", (n, 2))), layouts(np.zeros((n, 2))), strict=True):
            sent, got = dist.isend(t, right), dist.irecv(out, left)
            assert sent.wait()
            assert got.wait()
            assert got.source_rank() == left
            same(out, values(left, "float64", (n, 2)))
    if rank == 0:
        for _ in range(size - 1):
            t = torch.zeros(1, dtype=torch.int64)
            who = dist.recv(t)
            assert t.item() == who
    else:
        dist.send(torch.tensor([rank]), 0)
    dist.barrier()


def check_messages_by_tag():
    rank, _ = me()
    if rank == 0:
        dist.isend(torch.tensor([1]), 1, tag=1)
        dist.send(torch.tensor([2]), 1, tag=2)
    elif rank == 1:
        t = torch.tensor([0])
        dist.recv(t, 0, tag=2)
        assert t.item() == 2
        dist.recv(t, 0, tag=1)
        assert t.item() == 1
    dist.barrier()


def check_messages_of_another_size_are_refused():
    rank, _ = me()
    for n in (2, 6):
        if rank == 0:
            dist.send(torch.zeros(n), 1)
        elif rank == 1:
            refused(RuntimeError, "recv float32[4] from 0", lambda: dist.recv(torch.zeros(4), 0))
    dist.barrier()


def check_batches_of_messages():
    rank, size = me()
    own, out = torch.full((5,), float(rank)), torch.zeros(5)
    ops = [dist.P2POp(dist.isend, own, (rank + 1) % size), dist.P2POp(dist.irecv, out, (rank - 1) % size)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    same(out, np.full(5, (rank - 1) % size, "float32"))
    refused(ValueError, "Invalid ``op``", lambda: dist.P2POp(dist.send, own, (rank + 1) % size))
    refused(ValueError, "Invalid ``p2p_op_list``", lambda: dist.batch_isend_irecv([1]))


def check_objects():
    rank, size = me()
    every = [None] * size
    dist.all_gather_object(every, {"rank": rank, "pad": "x" * rank})
    assert [e["rank"] for e in every] == list(range(size))
    found = [None] * size if rank == 1 else None
    dist.gather_object((rank, torch.tensor([rank])), found, dst=1)
    if rank == 1:
        assert [(r, t.item()) for r, t in found] == [(r, r) for r in range(size)]
    some = [1, "two", {3}] if rank == 0 else [None] * 3
    dist.broadcast_object_list(some, 0)
    assert some == [1, "two", {3}]
    out = [None]
    dist.scatter_object_list(out, [f"for {r}" for r in range(size)] if rank == 0 else None, 0)
    assert out == [f"for {rank}"]
    if rank == 0:
        dist.send_object_list(["a", 2], 1)
    elif rank == 1:
        got = [None, None]
        assert dist.recv_object_list(got, 0) == 0
        assert got == ["a", 2]
    dist.barrier()


def check_groups_of_equal_parts():
    rank, size = me()
    before = dist.get_pg_count()
    own, every = dist.new_subgroups(1)
    assert dist.get_process_group_ranks(own) == [rank]
    assert len(every) == size
    assert dist.get_pg_count() == before + 1
    joint, _ = dist.new_subgroups()
    t = torch.ones(2)
    dist.all_reduce(t, group=joint)
    assert t.tolist() == [size, size]
    mine, _ = dist.new_subgroups_by_enumeration([[1, 0]])
    assert (mine is None) == (rank > 1)
    for text, call in (
        ("must be divisible", lambda: dist.new_subgroups(size - 1) if size > 2 else dist.new_subgroups(3 * size)),
        ("must be positive", lambda: dist.new_subgroups(0)),
        ("appeared in more than one", lambda: dist.new_subgroups_by_enumeration([[0], [0, 1]])),
        ("cannot be empty", lambda: dist.new_subgroups_by_enumeration([])),
    ):
        with pytest.raises(ValueError, match=text if "divisible" not in text or size > 2 else "must not exceed"):
            call()
    for g in (own, joint, mine):
        if g is not None:
            dist.destroy_process_group(g)


def check_groups():
    rank, size = me()
    pair = dist.new_group([1, 0])
    rest = dist.new_group(list(range(1, size)))
    if rank < 2:
        assert (dist.get_rank(pair), dist.get_world_size(pair), dist.get_process_group_ranks(pair)) == (rank, 2, [0, 1])
        t = torch.tensor([rank + 1])
        dist.all_reduce(t, group=pair)
        assert t.item() == 3
    else:
        assert pair is dist.GroupMember.NON_GROUP_MEMBER
        assert dist.get_rank(pair) == -1
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            assert dist.all_reduce(torch.ones(1), group=pair) is None
        assert "does not belong to the given group" in str(heard[0].message)
    if rank > 0:
        t = torch.tensor([rank])
        dist.broadcast(t, size - 1, group=rest)  # a rank among all
        assert t.item() == size - 1
        dist.broadcast(t, group_src=0, group=rest)
        assert t.item() == size - 1
        assert dist.get_global_rank(rest, 0) == 1
        assert dist.get_group_rank(rest, 1) == 0
        refused(ValueError, "is not part of group", lambda: dist.broadcast(t, 0, group=rest))
        dist.destroy_process_group(rest)
        refused(ValueError, "Invalid process group", lambda: dist.all_reduce(t, group=rest))
    dist.all_reduce(torch.ones(1))
    own = dist.new_group([rank], use_local_synchronization=True)
    t = torch.ones(2)
    dist.all_reduce(t, group=own)
    assert t.sum().item() == 2


def check_bad_arguments_send_nothing():
    rank, size = me()
    t, other = torch.ones(3), (rank + 1) % size
    for kind, text, call in [
        (TypeError, "Expected parameter `tensor` of type torch.Tensor", lambda: dist.all_reduce([t])),
        (TypeError, "incompatible function arguments", lambda: dist.all_reduce(t, "x")),
        (ValueError, "does not support RedOpType.MAX on complex tensors", lambda: dist.all_reduce(t.to(torch.complex64), dist.ReduceOp.MAX)),
        (RuntimeError, "does not support RedOpType.MAX on complex tensors", lambda: dist.reduce(t.to(torch.complex64), 0, dist.ReduceOp.MAX)),
        (RuntimeError, "Cannot use ReduceOp.BAND with non-integral dtype", lambda: dist.all_reduce(t, dist.ReduceOp.BAND)),
        (RuntimeError, "invalid root rank: 9", lambda: dist.broadcast(t, 9)),
        (TypeError, "Expected parameter `tensor_list` of type List[torch.Tensor]", lambda: dist.all_gather(t, t)),
        (RuntimeError, "output list", lambda: dist.all_gather([t], t)),
        (RuntimeError, "invalid tensor size at index 0", lambda: dist.all_gather([torch.ones(2)] * size, t)),
        (ValueError, "Invalid usage of tensors with different dtypes", lambda: dist.all_gather([t.double()] * size, t)),
        (ValueError, "output tensor size must be equal", lambda: dist.all_gather_into_tensor(torch.ones(2), t)),
        (ValueError, "input tensor must be the same size", lambda: dist.reduce_scatter_tensor(t, t)),
        (RuntimeError, "must be world size", lambda: dist.reduce_scatter(t, [t])),
        (ValueError, "must be specified on destination rank", lambda: dist.gather(t, dst=rank)),
        (ValueError, "must NOT be specified on non-destination", lambda: dist.gather(t, [t] * size, dst=other)),
        (ValueError, "must be specified on source rank", lambda: dist.scatter(t, src=rank)),
        (ValueError, "must NOT be specified on non-source", lambda: dist.scatter(t, [t] * size, src=other)),
        (RuntimeError, "Split sizes doesn't match total dim 0 size", lambda: dist.all_to_all_single(t, t, [1] * size, [7] * size)),
        (RuntimeError, "Number of tensor splits not equal to group size", lambda: dist.all_to_all_single(t, t, [3], [3])),
        (RuntimeError, "does not match world size", lambda: dist.all_to_all([t], [t])),
        (ValueError, "destination rank should not be the same", lambda: dist.send(t, rank)),
        (ValueError, "is not part of group", lambda: dist.recv(t, 9)),
        (ValueError, "world size should be less or equal", lambda: dist.new_group(list(range(size + 1)))),
        (ValueError, "out of range", lambda: dist.new_group([99])),
        (ValueError, "duplicate", lambda: dist.new_group([0, 0])),
        (TypeError, "datetime.timedelta", lambda: dist.new_group([0], timeout=3)),
        (ValueError, "twice", lambda: dist.init_process_group()),
        (ValueError, "is not registered", lambda: dist.get_rank(3)),
    ]:
        refused(kind, text, call)
    dist.all_reduce(t)
    assert t[0].item() == size


def check_different_calls_are_refused():
    rank, size = me()
    t = torch.ones(17, dtype=torch.float64)
    text = "Detected mismatch between collectives on ranks"
    refused(dist.DistBackendError, text, lambda: dist.all_reduce(t) if rank else dist.broadcast(t, 0))
    refused(dist.DistBackendError, text, lambda: dist.all_reduce(t[: 5 + rank]))
    refused(dist.DistBackendError, text, lambda: dist.all_reduce(t if rank else t.float()))
    refused(dist.DistBackendError, text, lambda: dist.broadcast(torch.ones(19), 0 if rank == 0 else 1))
    refused(dist.DistBackendError, text, lambda: dist.all_reduce(torch.ones(23), dist.ReduceOp.SUM if rank else dist.ReduceOp.MAX))
    refused(dist.DistBackendError, text, lambda: dist.new_group([0] if rank else [1]))
    same(t, np.ones(17))
    dist.all_reduce(t)
    assert t[0].item() == size


def check_gradients_through_collectives():
    rank, size = me()
    x = torch.full((3,), float(rank + 1), requires_grad=True)
    (dist.nn.all_reduce(x) * (rank + 1)).sum().backward()
    same(x.grad, np.full(3, sum(range(1, size + 1)), "float32"))
    x.grad = None
    parts = dist.nn.all_gather(x)
    sum((r + 1) * (rank + 1) * p for r, p in enumerate(parts)).sum().backward()
    same(x.grad, np.full(3, (rank + 1) * sum(range(1, size + 1)), "float32"))
    x.grad = None
    (dist.nn.broadcast(x, 0) * (rank + 1)).sum().backward()
    same(x.grad, np.full(3, sum(range(1, size + 1)) if rank == 0 else 0, "float32"))


def check_collectives_in_compiled_functions():
    rank, size = me()

    @torch.compile
    def f(x):
        y = x * 2
        dist.all_reduce(y)
        return y + 1

    for i in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it runs eagerly
            found = f(torch.full((8,), float(rank + i)))
        same(found, np.full(8, 2 * sum(r + i for r in range(size)) + 1, "float32"))


def check_barriers():
    dist.barrier()
    dist.monitored_barrier(timeout=timedelta(seconds=20))
    refused(TypeError, "device_ids", lambda: dist.barrier(device_ids=1))
