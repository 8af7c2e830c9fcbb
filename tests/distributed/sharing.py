"""`fully_shard`, and hooks that compress gradients, checked on every rank beside one process with the joint batch."""

from __future__ import annotations

import copy
import io
from functools import partial

import numpy as np
import pytest

import autograd_nb as torch
import autograd_nb.distributed as dist
import autograd_nb.nn.functional as F
from autograd_nb import nn
from autograd_nb.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    apply_activation_checkpointing,
    checkpoint_wrapper,
)
from autograd_nb.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks
from autograd_nb.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
from autograd_nb.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from autograd_nb.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from autograd_nb.distributed.fsdp import FullyShardedDataParallel as FSDP
from autograd_nb.distributed.fsdp.wrap import ModuleWrapPolicy
from autograd_nb.distributed.tensor import DTensor, Partial, Replicate, Shard, Sharding, distribute_tensor, init_device_mesh
from autograd_nb.nn.parallel import DistributedDataParallel as DDP
from autograd_nb.utils.checkpoint import checkpoint

BATCH = 4


def me():
    return dist.get_rank(), dist.get_world_size()


class Block(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.linear, self.scale = nn.Linear(before, after), nn.Parameter(torch.ones(()))
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return torch.tanh(self.linear(x)) * self.scale


class Net(nn.Module):
    def __init__(self, checkpointed=False):
        super().__init__()
        self.blocks, self.head = nn.ModuleList([Block(5, 8), Block(8, 7)]), nn.Linear(7, 2)
        self.checkpointed = checkpointed

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.head(x)


def network(**options):
    torch.manual_seed(0)
    return Net(**options).double()


def used(model):
    for block in model.blocks:
        block.unused.requires_grad_(False)
    return model


def shared(model, **options):
    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def batches(steps=4):
    made = np.random.default_rng(0)
    n = BATCH * me()[1]
    return [(torch.from_numpy(made.standard_normal((n, 5))), torch.from_numpy(made.standard_normal((n, 2)))) for _ in range(steps)]


def steps(model, optimizer, parts, max_norm=0.3):
    norms = []
    mine = slice(me()[0] * BATCH, (me()[0] + 1) * BATCH) if parts else slice(None)
    for x, y in batches():
        optimizer.zero_grad()
        F.mse_loss(model(x[mine]), y[mine]).backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), max_norm).item())
        optimizer.step()
    return norms


def close(found, wanted, rtol=1e-9):
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=rtol, atol=1e-12)


def check_shared_training_is_that_of_one_process():
    for make in (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, lr=0.05)):
        for options in ({}, {"reshard_after_forward": True}, {"reshard_after_forward": False}):
            alone, model = network(), shared(network(), **options)
            wanted = steps(alone, make(alone.parameters()), False)
            np.testing.assert_allclose(steps(model, make(model.parameters()), True), wanted, rtol=1e-9)
            for p, q in zip(alone.parameters(), model.parameters(), strict=True):
                close(q.full_tensor(), p)


def check_each_rank_has_its_rows():
    rank, size = me()
    model = shared(network())
    optimizer = torch.optim.Adam(model.parameters())
    steps(model, optimizer, True)
    assert isinstance(model, FSDPModule)
    assert isinstance(model, Net)
    rows = -(-8 // size)
    wanted = max(0, min(8, (rank + 1) * rows) - rank * rows)
    weight = model.blocks[0].linear.weight
    assert weight.to_local().shape == (wanted, 5)
    assert weight.shape == weight.grad.shape == (8, 5)
    assert optimizer.state[weight]["exp_avg"].shape == weight.shape
    assert model.blocks[0].unused.grad is None
    assert {k: tuple(v.shape) for k, v in model.state_dict().items()}["blocks.0.linear.weight"] == (8, 5)
    assert all(u.stamp is None for u in model._units(True))  # the others' rows are let go of


def check_clipping_counts_all_rows_and_other_parameters_once():
    alone, model = network(), shared(network())
    for p in (1.0, 2.0, 3.0, float("inf")):
        found, wanted = ([*net.parameters(), torch.ones(3, dtype=torch.float64, requires_grad=True)] for net in (model, alone))
        compiled = torch.compile(lambda p=p, found=found: nn.utils.clip_grad_norm_(found, 0.3, p), fullgraph=True)
        for clip in (lambda p=p, found=found: nn.utils.clip_grad_norm_(found, 0.3, p), compiled, compiled):
            for net, own in ((model, found), (alone, wanted)):
                net.zero_grad()
                x, y = batches()[0]
                F.mse_loss(net(x), y).backward()
                own[-1].grad = torch.arange(3.0).double() * 0.1
            before = int(dist.group.WORLD.words[0])
            close(clip(), nn.utils.clip_grad_norm_(wanted, 0.3, p))
            assert int(dist.group.WORLD.words[0]) == before + (clip is compiled)
            close(found[-1].grad, wanted[-1].grad)
            close(found[-3].grad.to_local(), wanted[-3].grad[_rows(wanted[-3])])
    with pytest.raises(NotImplementedError, match="norm_type=0"):
        nn.utils.clip_grad_norm_(model.parameters(), 0.3, 0)
    model.head.weight.grad[0, 0] = float("nan")  # of all ranks' tensor, which the first has
    with pytest.raises(RuntimeError, match="is non-finite"):
        nn.utils.clip_grad_norm_(model.parameters(), 0.3, error_if_nonfinite=True)


def _rows(p):
    """This rank's rows of a parameter."""
    rank, size = me()
    each = -(-p.shape[0] // size)
    return slice(rank * each, (rank + 1) * each)


def check_states_are_whole_and_load_again():
    model = shared(used(network()))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    steps(model, optimizer, True)
    kept, moments = get_state_dict(model, optimizer)
    assert kept["blocks.0.linear.weight"].shape == (8, 5)
    assert moments["state"]["blocks.0.linear.weight"]["exp_avg"].shape == (8, 5)
    again = shared(used(network()))
    other = torch.optim.Adam(again.parameters(), lr=0.05)
    set_state_dict(again, other, model_state_dict=kept, optim_state_dict=moments)
    plain = network()
    plain.load_state_dict(kept)
    steps(model, optimizer, True)
    steps(again, other, True)
    for p, q in zip(model.parameters(), again.parameters(), strict=True):
        close(p, q)


def check_gradients_accumulate_before_they_are_reduced():
    rank, _ = me()
    alone, model = network(), shared(network())
    (x, y), (u, v) = batches(2)
    mine = slice(rank * BATCH, (rank + 1) * BATCH)
    for a, b in ((x, y), (u, v)):
        F.mse_loss(alone(a), b).backward()
    model.set_requires_gradient_sync(False)
    F.mse_loss(model(x[mine]), y[mine]).backward()
    assert all(p.grad is None for p in model.parameters())
    model.set_requires_gradient_sync(True)
    F.mse_loss(model(u[mine]), v[mine]).backward()
    for p, q in zip(alone.parameters(), model.parameters(), strict=True):
        if p.grad is not None:
            close(q.__dict__["_sharding"].collected(q.grad), p.grad)


class Skipping(Block):
    """A block that rank 0 calls without any of its parameters, and rank 1 without its scale."""

    def forward(self, x, rank):
        return x * 2 if rank == 0 else torch.tanh(self.linear(x)) if rank == 1 else super().forward(x)


class Branching(Net):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(5, 5), Skipping(5, 5), Block(5, 7)])
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x, rank):
        x = self.blocks[2](self.blocks[1](self.blocks[0](x), rank))
        return self.head(x) * self.scale if rank == 1 else self.head(x)


def check_ranks_use_other_parameters():
    """Those that a rank has not used count as zeros there, in all passes and orders, and the ones that no rank uses have no gradient."""
    rank, size = me()
    torch.manual_seed(0)
    alone = Branching().double()
    torch.manual_seed(0)
    model = shared(Branching().double())
    for k, (x, y) in enumerate(batches()):
        parts = [slice(r * BATCH, (r + 1) * BATCH) for r in range(size)]
        for r, part in enumerate(parts):
            (F.mse_loss(alone(x[part], (r + k) % size), y[part]) / size).backward()
        F.mse_loss(model(x[parts[rank]], (rank + k) % size), y[parts[rank]]).backward()
        for p, q in zip(alone.parameters(), model.parameters(), strict=True):
            assert (p.grad is None) == (q.grad is None)
            if p.grad is not None:
                close(q.__dict__["_sharding"].collected(q.grad), p.grad)


def check_checkpointed_parts_are_shared_too():
    alone, model = network(), shared(network(checkpointed=True))
    wanted = steps(alone, torch.optim.SGD(alone.parameters(), lr=0.1), False)
    np.testing.assert_allclose(steps(model, torch.optim.SGD(model.parameters(), lr=0.1), True), wanted, rtol=1e-9)


def check_modules_with_wrapped_activations_are_shared_too():
    """Wrappers within what is shared out, around it, and under `FullyShardedDataParallel`; with the names and states of models without them."""
    alone = network()
    wanted = steps(alone, torch.optim.SGD(alone.parameters(), lr=0.1), False)
    for impl in CheckpointImpl:
        wrapper, first = partial(checkpoint_wrapper, checkpoint_impl=impl), int(impl is CheckpointImpl.REENTRANT)  # which needs inputs with gradients
        within, around, older = network(), network(), network()
        apply_activation_checkpointing(within, wrapper, lambda m, chosen=list(within.blocks)[first:]: m in chosen)
        shared(within)
        for k in range(2):
            fully_shard(around.blocks[k])
            around.blocks[k] = wrapper(around.blocks[k]) if k >= first else around.blocks[k]
        fully_shard(around)
        older = FSDP(older, auto_wrap_policy=ModuleWrapPolicy({Block}))
        apply_activation_checkpointing(older, wrapper, lambda m, chosen=list(older.module.blocks)[first:]: m in chosen)
        for model in (within, around, older):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            found = steps(model, optimizer, True)
            np.testing.assert_allclose(found, wanted, rtol=1e-9)
            state = get_model_state_dict(model)
            assert list(state) == list(alone.state_dict())
            for name, value in state.items():
                close(value, alone.state_dict()[name])
            set_model_state_dict(model, {name: value * 0 for name, value in state.items()})
            assert not any(value.any() for value in get_model_state_dict(model).values())


def check_other_precision_while_it_computes():
    model, alone = network(), network()
    for block in model.blocks:
        fully_shard(block, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    fully_shard(model, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, output_dtype=torch.float64))
    seen = []
    model.blocks[0].linear.register_forward_hook(lambda m, args, out: seen.append((m.weight.dtype, args[0].dtype)))
    wanted = steps(alone, torch.optim.SGD(alone.parameters(), lr=0.1), False)
    np.testing.assert_allclose(steps(model, torch.optim.SGD(model.parameters(), lr=0.1), True), wanted, rtol=0.1)
    assert seen[0] == (torch.bfloat16, torch.bfloat16)
    assert all(p.dtype is torch.float64 and (p.grad is None or p.grad.dtype is torch.float64) for p in model.parameters())


def check_what_cannot_be_shared_is_refused():
    model = shared(network())
    with pytest.raises(ValueError, match="already been applied"):
        fully_shard(model)
    with pytest.raises(ValueError, match="do not implement forward"):
        fully_shard(nn.ModuleList([nn.Linear(2, 2)]))


def check_an_old_graph_is_not_used_after_a_step():
    model = shared(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (x, y), *_ = batches(1)
    old = F.mse_loss(model(x), y)
    F.mse_loss(model(x), y).backward()
    optimizer.step()
    model(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        old.backward()


# ---- hooks


def trained(hook=None, state=None, rounds=30, seed=0):
    torch.manual_seed(seed)
    model = DDP(nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 20)))
    if hook is not None:
        model.register_comm_hook(state, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    made = np.random.default_rng(me()[0])
    x = torch.from_numpy(made.standard_normal((16, 20)).astype(np.float32))
    for _ in range(rounds):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
    dist.all_reduce(loss := loss.detach().clone(), dist.ReduceOp.AVG)
    every = [torch.zeros(30, 20) for _ in range(me()[1])]
    dist.all_gather(every, model.module[0].weight.detach())
    assert all(torch.equal(w, every[0]) for w in every)  # replicas keep the same bits
    return loss.item()


def check_bfloat16_travels():
    rank, size = me()
    x = torch.tensor([1.0, 2.5, -3.25]).bfloat16() * (rank + 1)
    dist.all_reduce(x)
    assert x.float().tolist() == [v * size * (size + 1) / 2 for v in (1.0, 2.5, -3.25)]
    every = [torch.zeros(2).bfloat16() for _ in range(size)]
    dist.all_gather(every, torch.full((2,), float(rank)).bfloat16())
    assert [t.float().tolist() for t in every] == [[float(r)] * 2 for r in range(size)]
    y = (torch.arange(6.0).bfloat16() + rank).reshape(2, 3).t()
    dist.broadcast(y, 0)
    assert y.float().tolist() == torch.arange(6.0).reshape(2, 3).t().tolist()


def check_compressed_gradients_train():
    plain = trained()
    np.testing.assert_allclose(trained(hooks.bf16_compress_hook), plain, rtol=1e-2)
    np.testing.assert_allclose(trained(hooks.bf16_compress_wrapper(hooks.allreduce_hook)), plain, rtol=1e-2)


def check_power_sgd_trains():
    plain = trained(rounds=60)
    state = power.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=3)
    np.testing.assert_allclose(trained(power.powerSGD_hook, state, 60), plain, rtol=5e-2)
    rate, before, after = state.compression_stats()
    assert rate > 4
    assert before == 57 * (20 * 30 * 2 + 50)
    assert after < before / 4
    state = power.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=3)
    np.testing.assert_allclose(trained(power.batched_powerSGD_hook, state, 60), plain, rtol=0.2)


def check_power_sgd_of_full_rank_loses_nothing():
    options = {"matrix_approximation_rank": 20, "start_powerSGD_iter": 2, "min_compression_rate": 0}
    np.testing.assert_allclose(trained(power.powerSGD_hook, power.PowerSGDState(None, **options)), trained(), rtol=1e-4)
    with pytest.raises(ValueError, match="start_powerSGD_iter"):
        power.PowerSGDState(None, start_powerSGD_iter=1)


def check_parts_are_known_as_such():
    """Parameters, their gradients, and what states of models and optimizers hold: each can be collected, copied and saved."""
    mesh = init_device_mesh("cpu", (me()[1],), mesh_dim_names=("dp",))
    model = shared(network(), mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    wanted = [p.detach() for p in network().parameters()]
    for p, q in zip(model.parameters(), wanted, strict=True):
        assert isinstance(p, DTensor)
        assert isinstance(p, nn.Parameter)
        assert p.placements == (Shard(0),)
        assert p.device_mesh == mesh
        assert torch.equal(p.full_tensor(), q)
        assert not isinstance(p.to_local(), DTensor)
        assert torch.equal(p.to_local(), Sharding(mesh.get_group(), q.shape).part(q))
        assert torch.equal(p.redistribute(placements=[Replicate()]).to_local(), q)
    x, y = batches()[0]
    F.mse_loss(model(x), y).backward()
    optimizer.step()
    for p in model.parameters():
        if p.grad is not None:
            assert p.grad.full_tensor().shape == p.full_tensor().shape
    for name, p in model.named_parameters():
        assert torch.equal(model.state_dict()[name].full_tensor(), p.full_tensor())
    state, p = optimizer.state_dict()["state"][0], next(model.parameters())
    assert isinstance(state["exp_avg"], DTensor)
    np.testing.assert_allclose(state["exp_avg"].full_tensor().numpy(), 0.1 * p.grad.full_tensor().numpy())
    assert not isinstance(state["step"], DTensor)
    for twin in (copy.deepcopy(p), nn.Parameter(p)):
        assert isinstance(twin, DTensor)
        assert isinstance(twin, nn.Parameter)
        assert torch.equal(twin.full_tensor(), p.full_tensor())
    torch.save(model.state_dict(), file := io.BytesIO())
    file.seek(0)
    for name, value in torch.load(file).items():
        assert type(value) is torch.Tensor
        assert torch.equal(value, model.get_parameter(name).to_local())


def check_a_model_without_memory_takes_parts():
    """By load_state_dict(assign=True), or to_empty; modules have whole parameters between unshard() and reshard()."""
    full = network().state_dict()
    with torch.device("meta"):
        model = shared(Net().double())
    for p in model.parameters():
        assert p.is_meta
        assert p.placements == (Shard(0),)
    parts = {name: distribute_tensor(value, p.device_mesh, p.placements) for (name, value), p in zip(full.items(), model.parameters(), strict=True)}
    model.load_state_dict({name: nn.Parameter(part) for name, part in parts.items()}, assign=True)
    alone = network()
    np.testing.assert_allclose(
        steps(model, torch.optim.Adam(model.parameters()), True), steps(alone, torch.optim.Adam(alone.parameters()), False), rtol=1e-9
    )
    for p, q in zip(alone.parameters(), model.parameters(), strict=True):
        close(q.full_tensor(), p)
    model.unshard()
    assert [p.shape for p in model.parameters(recurse=False)] == [p.shape for p in alone.parameters(recurse=False)]
    assert [p.shape for p in model.head.parameters()] == [p.shape for p in alone.head.parameters()]
    model.reshard()
    assert all(isinstance(p, DTensor) for p in model.parameters())
    with torch.device("meta"):
        loaded = shared(Net().double())
    set_model_state_dict(loaded, full if me()[0] == 0 else {}, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
    for p, q in zip(loaded.parameters(), full.values(), strict=True):
        assert isinstance(p, DTensor)
        assert torch.equal(p.full_tensor(), q)
    with torch.device("meta"):
        empty = shared(Net().double())
    empty.to_empty(device="cpu")
    for p, q in zip(empty.parameters(), model.parameters(), strict=True):
        assert isinstance(p, DTensor)
        with torch.no_grad():
            p.copy_(q)
    x, _ = batches()[0]
    assert torch.equal(empty(x), model(x))
    empty.head.weight = nn.Parameter(torch.zeros(50, 50))
    with pytest.raises(RuntimeError, match="the parameter 'weight' is now float32"):
        empty(x)


def check_tensors_in_parts():
    rank, size = me()
    for shape, dim in (((7, 3), 0), ((2, 7), 1), ((3, 7, 2), -2), ((1,), 0)):
        whole = torch.arange(int(np.prod(shape))).reshape(shape)
        part = distribute_tensor(whole + rank, placements=[Shard(dim)])  # the first rank's
        chunks = whole.chunk(size, dim)
        assert torch.equal(part.to_local(), chunks[rank] if rank < len(chunks) else whole.narrow(dim, 0, 0))
        assert torch.equal(part.full_tensor(), whole)
        assert torch.equal(part.redistribute(placements=[Replicate()]).to_local(), whole)
        assert torch.equal(distribute_tensor(whole + rank, placements=[Replicate()], src_data_rank=None).to_local(), whole + rank)
    made = DTensor.from_local(torch.full((2, 2), float(rank)), placements=[Shard(1)])
    assert made.full_tensor().tolist() == [[float(r) for r in range(size) for _ in range(2)]] * 2
    with pytest.raises(NotImplementedError, match=r"Shard\(dim\) and Replicate\(\) are here"):
        distribute_tensor(made, placements=[Partial()])


def check_meshes():
    rank, size = me()
    mesh = init_device_mesh("cpu", (1, size), mesh_dim_names=("dp", "tp"))
    assert (mesh.shape, mesh.ndim, mesh.size(), mesh.size(1), mesh.get_coordinate()) == ((1, size), 2, size, size, [0, rank])
    assert (mesh["tp"].get_local_rank(), mesh.get_local_rank("dp"), mesh["dp"].size()) == (rank, 0, 1)
    assert mesh.get_group("dp").ranks == (rank,)
    assert mesh["tp"].get_group() is dist.group.WORLD
    assert mesh["tp", "dp"].mesh.tolist() == [[r] for r in range(size)]
    assert mesh == init_device_mesh("cpu", (1, size), mesh_dim_names=("dp", "tp")) != mesh["tp"]
    t = torch.ones(1)
    dist.all_reduce(t, group=mesh.get_group("tp"))
    assert t.item() == size
    assert fully_shard(nn.Linear(2, 2), mesh=mesh).weight.placements == (Replicate(), Shard(0))
    with pytest.raises(RuntimeError, match=f"of {2 * size} ranks, but there are {size}"):
        init_device_mesh("cpu", (2, size))
    with pytest.raises(KeyError, match="Invalid mesh_dim_name 'pp'"):
        mesh["pp"]
