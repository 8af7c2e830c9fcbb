"""Checkpoints that ranks write together, checked on every rank of one MPI job, and loaded on other numbers of ranks."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest

import autograd_nb as torch
import autograd_nb.distributed as dist
import autograd_nb.distributed.checkpoint as dcp
from autograd_nb.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_state_dict, set_state_dict
from autograd_nb.distributed.optim import ZeroRedundancyOptimizer
from autograd_nb.nn.parallel import DistributedDataParallel as DDP

from .sharded import trained
from .training import close, data, joint, me, network


def folder():
    """A folder that all ranks know; the first one makes it."""
    held = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(held, 0)
    return Path(held[0])


def gone(path):
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(path)


def check_each_rank_writes_its_part():
    rank, size = me()
    path = folder()
    state = {
        "shared": {f"t{i}": torch.arange(100.0) + i for i in range(2 * size)}, "own": {f"r{rank}": torch.full((3, 2), rank, dtype=torch.int64).t()},
        "step": 7, "name": "x", "list": [torch.ones(2), {"deep": torch.zeros(())}], "half": torch.ones(3, dtype=torch.float16),
        "nothing": torch.empty(0, 3), "flags": torch.tensor([True, False]), "numbers": [1, 2],
    }  # fmt: skip
    dcp.save(state, checkpoint_id=path / "a")
    files = sorted((path / "a").glob("*.distcp"))
    assert len(files) == size
    assert max(f.stat().st_size for f in files) < 2 * 400 + 6000  # two of the shared tensors each
    fresh = {
        "shared": {f"t{i}": torch.zeros(100, dtype=torch.float64) for i in range(2 * size)}, "own": {f"r{r}": torch.zeros(2, 3) for r in range(size)},
        "step": 0, "name": "", "list": [torch.zeros(2), {"deep": torch.ones(())}], "half": torch.zeros(3, dtype=torch.float16),
        "nothing": torch.empty(0, 3), "flags": torch.tensor([False, False]), "numbers": [],
    }  # fmt: skip
    before = fresh["shared"]["t1"]
    dcp.load(fresh, checkpoint_id=path / "a")
    assert fresh["shared"]["t1"] is before  # in place
    assert before.dtype is torch.float64
    for i in range(2 * size):
        np.testing.assert_array_equal(fresh["shared"][f"t{i}"].numpy(), np.arange(100.0) + i)
    for r in range(size):
        assert (fresh["own"][f"r{r}"] == r).all().item()
    assert (fresh["step"], fresh["name"], fresh["numbers"]) == (7, "x", [1, 2])
    assert fresh["list"][0].tolist() == [1, 1]
    assert fresh["list"][1]["deep"].item() == 0
    assert fresh["half"].tolist() == [1, 1, 1]
    assert fresh["flags"].tolist() == [True, False]
    if rank == 0:  # one process reads what several wrote
        alone = {"own": {f"r{size - 1}": torch.zeros(2, 3, dtype=torch.int64)}}
        dcp.load(alone, checkpoint_id=path / "a", no_dist=True)
        assert (alone["own"][f"r{size - 1}"] == size - 1).all().item()
    gone(path)


def check_a_checkpoint_is_replaced_in_one_step():
    rank, size = me()
    path = folder()
    for value in (1.0, 2.0):
        dcp.save({"x": torch.full((3,), value)}, checkpoint_id=path)
    assert len(list(path.glob("*.distcp"))) == 1  # of the others nothing is left, and one rank has all
    metadata = (path / ".metadata").read_bytes()

    class Failing(dcp.FileSystemWriter):
        def data(self, name, tensors, others):
            if rank == size - 1:
                raise OSError("the disk is full")
            return super().data(name, tensors, others)

    with pytest.raises(dcp.CheckpointException, match=f"rank {size - 1}: .*the disk is full"):
        dcp.save({"x": torch.full((3,), 3.0), "y": torch.ones(2)}, storage_writer=Failing(path))
    assert (path / ".metadata").read_bytes() == metadata
    found = {"x": torch.zeros(3)}
    dcp.load(found, storage_reader=dcp.FileSystemReader(path))
    assert found["x"].tolist() == [2, 2, 2]
    gone(path)


def check_what_does_not_fit_is_refused_on_all_ranks():
    rank, _ = me()
    path = folder()
    dcp.save({"x": torch.ones(3), "n": 1}, checkpoint_id=path)
    kept = {"x": torch.zeros(3)}
    with pytest.raises(dcp.CheckpointException, match="Missing key in checkpoint state_dict: other"):
        dcp.load({**kept, **({"other": torch.zeros(1)} if rank == 0 else {})}, checkpoint_id=path)
    if rank == 0:
        assert kept["x"].tolist() == [0, 0, 0]  # nothing was changed
    with pytest.raises(dcp.CheckpointException, match=r"Size mismatch between saved \(3,\) and current: \(4,\) for x"):
        dcp.load({"x": torch.zeros(4)}, checkpoint_id=path)
    with pytest.raises(dcp.CheckpointException, match="there is no checkpoint here"):
        dcp.load({"x": torch.zeros(4)}, checkpoint_id=path / "nowhere")
    with pytest.raises(ValueError, match="checkpoint_id is the path of a folder"):
        dcp.save({})
    gone(path)


def check_saving_goes_on_beside_the_program():
    rank, size = me()
    path = folder()
    state = {"x": torch.arange(1000.0), f"r{rank}": torch.full((5,), float(rank))}
    future = dcp.async_save(state, checkpoint_id=path)
    state["x"].zero_()  # a copy is saved
    dist.all_reduce(torch.ones(3))
    future.result()
    dist.barrier()
    found = {"x": torch.ones(1000), **{f"r{r}": torch.zeros(5) for r in range(size)}}
    dcp.load(found, checkpoint_id=path)
    np.testing.assert_array_equal(found["x"].numpy(), np.arange(1000.0))
    assert all((found[f"r{r}"] == r).all().item() for r in range(size))
    assert not list(path.glob("*.part"))
    gone(path)


def check_training_goes_on_from_a_checkpoint():
    """With optimizers that each rank has, and that ranks share; into a model without wrapper and of another number of ranks."""
    rank, _ = me()

    class Whole:
        """A program's own object with a state."""

        def __init__(self, model, optimizer):
            self.model, self.optimizer = model, optimizer

        def state_dict(self):
            model, optimizer = get_state_dict(self.model, self.optimizer)
            return {"model": model, "optimizer": optimizer}

        def load_state_dict(self, state):
            set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])

    def adam(model, shared, lr):
        params = model.parameters()
        return ZeroRedundancyOptimizer(params, torch.optim.Adam, lr=lr) if shared else torch.optim.Adam(params, lr=lr)

    one = network()
    plain = torch.optim.Adam(one.parameters(), lr=0.05)
    trained(one, plain, joint, 5)
    for shared in (False, True):
        path = folder()
        model = DDP(network())
        optimizer = adam(model, shared, 0.05)
        trained(model, optimizer, lambda step: data(rank, step), 3)
        dcp.save({"app": Whole(model, optimizer), "epoch": 3}, checkpoint_id=path)
        again = DDP(network(seed=8))
        resumed = adam(again, shared, 0.9)
        state = {"app": Whole(again, resumed), "epoch": 0}
        dcp.load(state, checkpoint_id=path)
        assert state["epoch"] == 3
        assert resumed.param_groups[0]["lr"] == 0.05
        trained(again, resumed, lambda step: data(rank, step + 3), 2)
        for found, p in zip(again.parameters(), one.parameters(), strict=True):
            close(found, p)
        lone = network(seed=9)
        alone = torch.optim.Adam(lone.parameters(), lr=0.9)
        dcp.load({"app": Whole(lone, alone)}, checkpoint_id=path, no_dist=True)
        trained(lone, alone, lambda step: joint(step + 3), 2)
        for found, p in zip(lone.parameters(), one.parameters(), strict=True):
            close(found, p)
        gone(path)


def check_states_by_name():
    model = DDP(network())
    names = [name for name, _ in network().named_parameters()]
    assert list(get_model_state_dict(model)) == names
    assert list(get_model_state_dict(torch.compile(model))) == names
    model.module[0].weight.requires_grad_(False)
    assert list(get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True))) == names[1:]
    model.module[0].weight.requires_grad_(True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    options = StateDictOptions(flatten_optimizer_state_dict=True)
    _, flat = get_state_dict(model, optimizer, options=options)
    assert flat["param_groups.0.weight.lr"] == 0.5
    assert flat["state.0.weight.momentum_buffer"].shape == (8, 5)
    flat["state.0.weight.momentum_buffer"].fill_(3)
    other = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    own = get_model_state_dict(model)
    set_state_dict(model, other, model_state_dict=own, optim_state_dict=flat, options=options)
    assert (other.state[model.module[0].weight]["momentum_buffer"] == 3).all().item()
    assert other.param_groups[0]["lr"] == 0.5

