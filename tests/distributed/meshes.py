"""Tensors in parts among ranks in a grid: what `parts` checks along one dim of a mesh, along two, on four ranks.

``python -m tests.distributed.meshes`` on four ranks walks all ops; the tests take every so many.
"""

from __future__ import annotations

import copy
import itertools
import sys
import warnings

import numpy as np
import pytest

import autograd_nb as torch
import autograd_nb.distributed as dist
import autograd_nb.distributed.checkpoint as dcp
import autograd_nb.nn.functional as F
from autograd_nb import nn
from autograd_nb.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from autograd_nb.distributed.fsdp import FullyShardedDataParallel as FSDP
from autograd_nb.distributed.fsdp import ShardingStrategy, fully_shard
from autograd_nb.distributed.tensor import (
    DeviceMesh,
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
    rand,
)
from autograd_nb.distributed.tensor.mesh import _StridedShard
from autograd_nb.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

from . import parts
from .checkpoints import folder, gone
from .training import me

#: of how many cases of the walk the tests take one
EVERY = 160


def grid():
    return init_device_mesh("cpu", (2, me()[1] // 2), mesh_dim_names=("dp", "tp"))


def placements(arrays):
    """Operands along their first and last dims, both along one dim, one of them whole, and summands."""
    first, last = ([Shard(d % a.ndim) if a.ndim else Replicate() for a in arrays] for d in (0, -1))
    whole = [Replicate()] * len(arrays)
    yield list(zip(first, last, strict=True))
    yield list(zip(first, first, strict=True))
    yield list(zip(last, whole, strict=True))
    yield [(a, Replicate()) if k else (Replicate(), b) for k, (a, b) in enumerate(zip(first, last, strict=True))]
    if arrays and arrays[0].dtype.kind == "f":
        yield [(Partial(), first[0]), *zip(whole[1:], last[1:], strict=True)]
        yield [(last[0], Partial()), *zip(first[1:], whole[1:], strict=True)]


def placed(mesh, array, chosen, grad):
    t = torch.from_numpy(array.copy())
    if not any(isinstance(p, Partial) for p in chosen):
        return distribute_tensor(t, mesh, chosen).requires_grad_(grad)
    at = mesh.get_coordinate()
    part = distribute_tensor(t, mesh, [Replicate() if isinstance(p, Partial) else p for p in chosen]).to_local()
    alone = all(at[k] == 0 for k, p in enumerate(chosen) if isinstance(p, Partial))  # a sum that rounding does not change
    return DTensor.from_local(part if alone else torch.zeros_like(part), mesh, chosen, shape=t.shape).requires_grad_(grad)


def walked(every, first=0):
    """What differs in every so many cases, on this rank."""
    mesh = grid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = []
        for n, case in enumerate(parts.cases()):
            if n % every == first:
                found += parts.difference(*case, placements, lambda array, chosen, grad: placed(mesh, array, chosen, grad))
        return found


def check_every_op_gives_the_value_of_the_whole():
    found = walked(EVERY, 7)
    assert not found, "\n".join(found)


def check_every_move_from_one_layout_to_another():
    """All pairs of placements of sizes that ranks do not share evenly, some of others, with gradients."""
    mesh, kinds = grid(), [Shard(0), Shard(1), Replicate(), Partial()]
    for shape, every in (((5, 3), 1), ((4, 8), 7), ((1, 2), 13)):
        whole = torch.arange(float(np.prod(shape))).reshape(shape) + 1
        for before, after in list(itertools.product(itertools.product(kinds, kinds), repeat=2))[::every]:
            x = placed(mesh, whole.numpy(), before, True)
            assert torch.equal(x.full_tensor(), whole), before
            y = x.redistribute(placements=after)
            assert y.placements == after
            assert torch.equal(y.full_tensor(), whole), (before, after)
            (y * y).sum().backward()
            assert torch.equal(x.grad.full_tensor(), 2 * whole), (before, after)
            assert x.grad.placements == tuple(Replicate() if isinstance(p, Partial) else p for p in before)


def check_meshes_of_some_dims():
    rank, size = me()
    mesh = grid()
    rows = np.arange(size).reshape(2, size // 2)
    at = divmod(rank, size // 2)
    assert (mesh.get_local_rank("dp"), mesh.get_local_rank("tp"), mesh.get_coordinate()) == (*at, list(at))
    assert mesh["tp"].mesh.tolist() == rows[at[0]].tolist()
    assert mesh["dp"].mesh.tolist() == rows[:, at[1]].tolist()
    assert mesh["tp"] is mesh["tp"]
    assert mesh["dp", "tp"] is mesh
    assert list(mesh["dp"].get_group().ranks) == rows[:, at[1]].tolist()
    cube = init_device_mesh("cpu", (2, 1, size // 2), mesh_dim_names=("replicate", "shard", "tp"))
    assert cube["replicate", "shard"]["replicate"] is cube["replicate"]
    assert cube["shard", "tp"].shape == (1, size // 2)
    flat = cube["replicate", "tp"]._flatten("all")
    assert flat.mesh.tolist() == list(range(size))
    assert cube["all"] is flat
    t = torch.ones(1)
    dist.all_reduce(t, group=flat.get_group())
    assert t.item() == size
    with pytest.raises(ValueError, match="are not of one mesh"):
        mesh["dp"].beside(init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))["tp"])
    with pytest.raises(RuntimeError, match="several meshes"):
        _ = distribute_tensor(torch.ones(4), mesh, [Shard(0), Replicate()]) + distribute_tensor(torch.ones(4), mesh["dp"], [Shard(0)])
    with pytest.raises(ValueError, match="must have the same length"):
        distribute_tensor(torch.ones(4), mesh, [Shard(0)])


def check_placements_of_results():
    """What stays in parts along both dims, so that ranks do a part of the work each."""
    mesh = grid()
    x, w, v = (distribute_tensor(torch.rand(8, 8), mesh, p) for p in ((Shard(0), Replicate()), (Replicate(), Shard(1)), (Replicate(), Shard(0))))
    both = distribute_tensor(torch.rand(8, 8), mesh, (Shard(0), Shard(1)))
    for wanted, found in (
        ((Shard(0), Shard(1)), x @ w), ((Shard(0), Partial()), both @ v), ((Shard(0), Shard(1)), both * 2 + both), ((Partial(), Partial()), both.sum()),
        ((Partial(), Shard(0)), both.sum(0)), ((Shard(1), Shard(0)), both.t()), ((Shard(0), Shard(1)), F.linear(x, w.t())),
        ((Shard(0), Replicate()), x.softmax(1)),
    ):  # fmt: skip
        assert found.placements == wanted, (wanted, found.placements)


PLAN = {"table": RowwiseParallel(input_layouts=Replicate()), "[qkv]": ColwiseParallel(use_local_output=False), "o": RowwiseParallel(), "up": ColwiseParallel(),
        "down": RowwiseParallel(), "out": ColwiseParallel(output_layouts=Replicate())}  # fmt: skip
SEQUENCE = {"table": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "norm": SequenceParallel(), "last": SequenceParallel(),
            "[qkv]": ColwiseParallel(input_layouts=Shard(1), use_local_output=False), "o": RowwiseParallel(output_layouts=Shard(1)),
            "up": ColwiseParallel(input_layouts=Shard(1)), "down": RowwiseParallel(output_layouts=Shard(1)),
            "out": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())}  # fmt: skip


def _trained(model, optimizer, batches):
    for x in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(x).flatten(0, 1), x.roll(1, 1).flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()


def _beside_one_process(shared, place, parts):
    """Train a model in parts and one that is not with the same batches, of which the model in parts gets that of its ``place``."""
    torch.manual_seed(3)
    alone = parts_net()
    model = shared(copy.deepcopy(alone))
    batches = [(torch.arange(24 * parts).reshape(2 * parts, 12) * (5 + k)) % 13 for k in range(3)]
    _trained(alone, torch.optim.AdamW(alone.parameters(), lr=0.01), batches)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    _trained(model, optimizer, [x[2 * place : 2 * place + 2] for x in batches])
    for (name, p), q in zip(model.named_parameters(), alone.named_parameters(), strict=True):
        found = p.full_tensor() if isinstance(p, DTensor) else p
        np.testing.assert_allclose(found.detach().numpy(), q[1].detach().numpy(), rtol=1e-8, atol=1e-12, err_msg=name)
    for name, value in get_model_state_dict(model).items():
        np.testing.assert_allclose(value.numpy(), alone.state_dict()[name].numpy(), rtol=1e-8, atol=1e-12, err_msg=name)
    return model, optimizer, alone


def parts_net():
    return parts.Net().double()


def check_layers_in_parts_are_shared_out_too():
    """Tensor parallel along one dim of a mesh, `fully_shard` along the other; the state is saved, and loaded into another such model."""
    mesh = grid()
    for plan in (PLAN, SEQUENCE):

        def shared(model, plan=plan):
            parallelize_module(model, mesh["tp"], plan)
            fully_shard(model.up, mesh=mesh["dp"])
            return fully_shard(model, mesh=mesh["dp"])

        model, optimizer, _ = _beside_one_process(shared, mesh.get_local_rank("dp"), 2)
        assert model.q.weight.placements == (_StridedShard(0, split_factor=mesh.size(1)), Shard(0))
        assert model.o.weight.placements == (Shard(0), Shard(1))
        assert model.q.weight.shape == (8, 8)
        assert model.q.weight.to_local().numel() == 64 // me()[1]
        path = folder()
        dcp.save({"model": model.state_dict(), "optimizer": get_optimizer_state_dict(model, optimizer)}, checkpoint_id=path / "a")
        again = shared(parts_net())
        other = torch.optim.AdamW(again.parameters(), lr=0.01)
        state = {"model": again.state_dict(), "optimizer": get_optimizer_state_dict(again, other)}
        dcp.load(state, checkpoint_id=path / "a")
        again.load_state_dict(state["model"])
        set_optimizer_state_dict(again, other, state["optimizer"])
        for p, q in zip(again.parameters(), model.parameters(), strict=True):
            assert torch.equal(p.full_tensor(), q.full_tensor())
            assert torch.equal(other.state[p]["exp_avg"].full_tensor(), optimizer.state[q]["exp_avg"].full_tensor())
        gone(path)


def check_rows_that_are_kept_by_several_ranks():
    """A mesh of two dims: ranks along the first keep the same rows, and all have other data."""
    mesh = init_device_mesh("cpu", (2, me()[1] // 2), mesh_dim_names=("replicate", "shard"))

    def shared(model):
        fully_shard(model.up, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    model, _, _ = _beside_one_process(shared, me()[0], me()[1])
    assert model.up.weight.placements == (Replicate(), Shard(0))
    wrapped, _, _ = _beside_one_process(lambda m: FSDP(m, device_mesh=mesh, sharding_strategy=ShardingStrategy.HYBRID_SHARD), me()[0], me()[1])
    assert wrapped.module.up.weight.placements == (Replicate(), Shard(0))
    with pytest.raises(ValueError, match="1D or 2D DeviceMesh"):
        fully_shard(nn.Linear(2, 2), mesh=init_device_mesh("cpu", (1, 1, me()[1])))


def check_layers_in_parts_get_memory_later():
    """A model of the device "meta" is split by both, then has memory, then numbers: `to_empty` refused layers in parts."""
    mesh = init_device_mesh("cpu", (2, me()[1] // 2), mesh_dim_names=("dp", "tp"))

    def shared(model):
        with torch.device("meta"):
            empty = parts_net()
        made = fully_shard(parallelize_module(empty, mesh["tp"], PLAN), mesh=mesh["dp"]).to_empty(device="cpu")
        set_model_state_dict(made, model.state_dict(), options=StateDictOptions(full_state_dict=True))
        return made

    model, _, _ = _beside_one_process(shared, mesh.get_local_rank("dp"), 2)
    assert model.o.weight.placements == (Shard(0), Shard(1))


def check_two_groups_are_a_mesh():
    """Hybrid sharding as older programs ask for it: the group that splits rows, and the one whose ranks keep the same."""
    half = me()[1] // 2
    across = [dist.new_group(list(range(k, me()[1], half))) for k in range(half)]
    along = [dist.new_group(list(range(k * half, k * half + half))) for k in range(2)]
    two = (along[me()[0] // half], across[me()[0] % half])
    for strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2):
        wrapped, _, _ = _beside_one_process(
            lambda m, strategy=strategy: FSDP(m, process_group=two, sharding_strategy=strategy, sync_module_states=True), me()[0], me()[1]
        )
        assert wrapped.module.up.weight.placements == (Replicate(), Shard(0))
    torch.manual_seed(me()[0])
    started = FSDP(nn.Linear(4, 4), process_group=two, sharding_strategy=ShardingStrategy.HYBRID_SHARD, sync_module_states=True).state_dict()["weight"]
    torch.manual_seed(0)
    assert torch.equal(started, nn.Linear(4, 4).weight)
    for groups, strategy, why in (
        (two, ShardingStrategy.FULL_SHARD, "is for hybrid strategies"), ((two[0], 3), ShardingStrategy.HYBRID_SHARD, "Tuple"),
        (two[::-1] if half > 2 else (two[0], two[0]), ShardingStrategy.HYBRID_SHARD, "no row and column"),
    ):  # fmt: skip
        if why != "no row and column" or half > 1:
            with pytest.raises(ValueError, match=why):
                FSDP(nn.Linear(2, 2), process_group=groups, sharding_strategy=strategy)
    with pytest.raises(ValueError, match="only one of them"):
        FSDP(nn.Linear(2, 2), process_group=two, device_mesh=init_device_mesh("cpu", (2, half)))
    grid = DeviceMesh.from_group([two[1], two[0]], "cpu", [[k * half + i for i in range(half)] for k in range(2)], mesh_dim_names=("a", "b"))
    assert grid["b"].get_group() is two[0] and grid.size() == me()[1]
    with pytest.raises(ValueError, match="Must pass mesh if"):
        DeviceMesh.from_group([two[0], two[1]])


def check_three_dims_at_once():
    """Rows kept by several ranks, of layers in parts."""
    for shape in ((2, 1, me()[1] // 2), (1, 2, me()[1] // 2)):
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "shard", "tp"))

        def shared(model, mesh=mesh):
            return fully_shard(parallelize_module(model, mesh["tp"], PLAN), mesh=mesh["replicate", "shard"])

        _beside_one_process(shared, me()[0] // (me()[1] // 2), 2)


def check_layers_of_other_meshes_are_refused():
    net = parallelize_module(nn.Linear(4, 4), grid()["tp"], ColwiseParallel())
    with pytest.raises(NotImplementedError, match="give fully_shard the other dims of one mesh"):
        fully_shard(net)
    with pytest.raises(ValueError, match="are not of one mesh"):
        fully_shard(net, mesh=grid()["dp"])


def check_random_numbers_are_those_of_the_first_rank():
    mesh = grid()
    torch.manual_seed(me()[0])
    x = distribute_tensor(torch.zeros(4, 4), mesh, (Shard(0), Shard(1)))
    for make in (lambda: x.clone().normal_(), lambda: F.dropout(x + 1), lambda: torch.rand_like(x), lambda: rand(4, 4, device_mesh=mesh)):
        every = [torch.zeros(4, 4) for _ in range(me()[1])]
        dist.all_gather(every, make().full_tensor())
        assert all(torch.equal(t, every[0]) for t in every)


if __name__ == "__main__":
    dist.init_process_group()
    every, first = (int(v) for v in (sys.argv[1:] + ["1", "0"][len(sys.argv) - 1 :]))
    lines = walked(every, first)
    print("\n".join(f"rank {me()[0]}: {line}" for line in [*lines, f"{len(lines)} differ"] if "as an earlier call failed" not in line), flush=True)
    sys.exit(bool(lines))
