"""Training that is checked on every rank of one MPI job; the expected values are those of one process with the joint batch."""

from __future__ import annotations

import warnings
from datetime import timedelta

import numpy as np
import pytest

import autograd_nb as torch
import autograd_nb.distributed as dist
import autograd_nb.nn.functional as F
from autograd_nb import nn
from autograd_nb.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks
from autograd_nb.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from autograd_nb.distributed.algorithms.join import Join
from autograd_nb.nn.parallel import DistributedDataParallel as DDP
from autograd_nb.nn.parallel import buckets
from autograd_nb.utils.checkpoint import checkpoint
from autograd_nb.utils.data import DistributedSampler

BATCH = 6


def me():
    return dist.get_rank(), dist.get_world_size()


def network(seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)).to(dtype)


def data(rank, seed=0):
    made = np.random.default_rng(100 * seed + rank)
    return torch.from_numpy(made.standard_normal((BATCH, 5))), torch.from_numpy(made.standard_normal((BATCH, 3)))


def joint(seed=0):
    parts = [data(r, seed) for r in range(me()[1])]
    return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])


def close(found, wanted):
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=2e-6, atol=1e-12)


def same_everywhere(tensor):
    every = [torch.zeros_like(tensor) for _ in range(me()[1])]
    dist.all_gather(every, tensor.detach())
    assert all(t.numpy().tobytes() == every[0].numpy().tobytes() for t in every)


def train(model, batches, steps=4):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        x, y = batches(step)
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    return model


def check_training_is_that_of_one_process_with_the_joint_batch():
    rank, _ = me()
    wanted = train(network(), joint)
    for options in ({}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}, {"static_graph": True}, {"bucket_cap_mb": 0.0002}):
        model = train(DDP(network(seed=rank if rank == 0 else 9), **options), lambda step: data(rank, step))
        for found, p in zip(model.parameters(), wanted.parameters(), strict=True):
            close(found, p)
            same_everywhere(found)
            same_everywhere(found.grad)


def check_training_in_float32_keeps_replicas_the_same():
    rank, _ = me()
    model = train(DDP(network(dtype=torch.float32)), lambda step: tuple(t.float() for t in data(rank, step)))
    for p in model.parameters():
        same_everywhere(p)


def check_buckets_follow_the_order_of_gradients():
    rank, _ = me()

    class Crossed(nn.Module):
        """Its first parameters are used last."""

        def __init__(self):
            super().__init__()
            self.last, self.first = nn.Linear(8, 3), nn.Linear(5, 8)

        def forward(self, x):
            return self.last(self.first(x))

    model = DDP(Crossed().double(), bucket_cap_mb=0.0001)
    before = [b.members for b in model.reducer.buckets]
    assert before[0][0] == 3  # from the last parameter to the first
    train(model, lambda step: data(rank, step), 2)
    after = [i for b in model.reducer.buckets for i in b.members]
    assert set(after[:2]) == {0, 1}  # what `last` has arrives first
    assert set(after[2:]) == {2, 3}


def check_buckets_have_their_sizes():
    params = [torch.zeros(n, dtype=d, requires_grad=True) for n, d in [(200_000, torch.float32)] * 4 + [(10, torch.float64)]]
    assert buckets.assign(params, [4, 3, 2, 1, 0], 25 << 20) == [[4], [3, 2], [1, 0]]


def check_parameters_and_buffers_of_the_first_rank():
    rank, _ = me()
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    with torch.no_grad():
        for t in [*model.parameters(), *model.buffers()]:
            t.fill_(rank + 1)
    model = DDP(model)
    assert all((t == 1).all().item() for t in [*model.parameters(), *model.buffers()])
    assert list(model.state_dict())[0] == "module.0.weight"
    model(torch.randn(4, 2) * (rank + 1))
    model(torch.randn(4, 2) * (rank + 1))  # begins with those of the first rank
    model.eval()
    model(torch.randn(4, 2))
    same_everywhere(model.module[1].running_mean)


def check_static_graphs():
    """Parameters that are never used, and one that two checkpointed parts use; the first pass and later ones."""
    rank, _ = me()

    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.twice, self.once, self.never = (nn.Linear(5, 5) for _ in range(3))

        def forward(self, x):
            for _ in range(2):
                x = checkpoint(lambda x: self.twice(x).tanh(), x, use_reentrant=True)
            return self.once(x)

    torch.manual_seed(2)
    plain, one = Parts().double(), Parts().double()
    one.load_state_dict(plain.state_dict())
    model = DDP(plain, static_graph=True, bucket_cap_mb=0.0001)
    for step in range(3):
        model.zero_grad()
        one.zero_grad()
        x, whole = data(rank, step)[0].requires_grad_(), joint(step)[0].requires_grad_()
        model(x).sin().mean().backward()
        one(whole).sin().mean().backward()
        for p, q in zip(plain.parameters(), one.parameters(), strict=True):
            assert (p.grad is None) == (q.grad is None)
            if p.grad is not None:
                close(p.grad, q.grad)


def check_buckets_are_reduced_while_the_backward_pass_goes_on():
    """Before the first layer's gradients are computed the pass stands still until the last layer's bucket is through, which it then must be."""
    for hook in (None, hooks.allreduce_hook):
        model = DDP(network(), bucket_cap_mb=0.0001)
        if hook is not None:
            model.register_comm_hook(None, hook)
        reduced = []

        def through(_, model=model, reduced=reduced):
            sent = model.reducer.buckets[0]
            assert model.reducer.expecting
            assert model.reducer.next >= 1
            reduced.append(sent.work.wait(timedelta(seconds=100)) if sent.future is None else sent.future.wait() is not None)

        model.module[1].register_forward_pre_hook(lambda _, args, through=through: args[0].register_hook(through) and None)
        for _ in range(2):
            model(data(me()[0])[0]).sum().backward()
        assert reduced == [True, True]


def check_hooks_of_communication():
    rank, size = me()
    wanted = train(network(), joint)
    seen = []

    def logged(state, bucket: dist.GradBucket):
        seen.append((bucket.index(), bucket.is_last(), len(bucket.gradients()), [p.shape for p in bucket.parameters()]))
        assert sum(g.numel() for g in bucket.gradients()) == bucket.buffer().numel()
        return hooks.allreduce_hook(state, bucket)

    def twice(state, bucket):
        """A call in the continuation of another: as low-rank compression does it."""

        def again(future):
            total = future.value()[0]
            work = dist.all_reduce(total, async_op=True)  # every rank has the sum, so this multiplies by their number
            return work.get_future().wait()[0] / size**2

        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(again)

    for state, hook in [(None, hooks.allreduce_hook), (dist.group.WORLD, logged), (None, twice)]:
        model = DDP(network(), bucket_cap_mb=0.0002)
        model.register_comm_hook(state, hook)
        for found, p in zip(train(model, lambda step: data(rank, step)).parameters(), wanted.parameters(), strict=True):
            close(found, p)
            same_everywhere(found)
    assert seen[0][:2] == (0, False)
    assert sum(n for _, _, n, _ in seen) == 4 * len(list(wanted.parameters()))
    assert sum(last for _, last, _, _ in seen) == 4


def check_hooks_that_compress():
    rank, size = me()
    one = network()
    F.mse_loss(one(joint()[0]), joint()[1]).backward()
    for hook in (hooks.fp16_compress_hook, hooks.fp16_compress_wrapper(hooks.allreduce_hook)):
        model = DDP(network())
        model.register_comm_hook(None, hook)
        F.mse_loss(model(data(rank)[0]), data(rank)[1]).backward()
        for p, q in zip(model.parameters(), one.parameters(), strict=True):
            same_everywhere(p.grad)
            assert p.grad.dtype is torch.float64
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=4e-3, atol=1e-4)
            assert (p.grad != q.grad).any().item()
            assert (p.grad.half() * size == p.grad * size).any().item() or hook is not hooks.fp16_compress_hook
    model = DDP(network())
    model.register_comm_hook(None, noop_hook)
    own = network()
    for m in (model, own):
        F.mse_loss(m(data(rank)[0]), data(rank)[1]).backward()
    close(model.module[0].weight.grad, own[0].weight.grad)
    with pytest.raises(RuntimeError, match="can only be called once"):
        model.register_comm_hook(None, noop_hook)
    with pytest.raises(TypeError, match="must be callable"):
        DDP(network()).register_comm_hook(None, 1)

    def other(state, bucket: int): ...

    with pytest.raises(ValueError, match=r"bucket annotation should be dist\.GradBucket"):
        DDP(network()).register_comm_hook(None, other)


def check_an_error_in_a_hook_is_raised_by_backward():
    rank, _ = me()

    def failing(state, bucket):
        return hooks.allreduce_hook(state, bucket).then(lambda f: f.value().nothing)

    model = DDP(network())
    model.register_comm_hook(None, failing)
    with pytest.raises(AttributeError, match="nothing"):
        F.mse_loss(model(data(rank)[0]), data(rank)[1]).backward()


def check_join_of_uneven_inputs():
    """Rank r has r + 2 batches: what the ones that go on learn is what one process would from the sum of their gradients."""
    rank, size = me()
    for options, by_all in [({}, True), ({"find_unused_parameters": True}, True), ({"bucket_cap_mb": 0.0002}, False), ({"static_graph": True}, False)]:
        wanted = network()
        optimizer = torch.optim.SGD(wanted.parameters(), lr=0.1)
        for step in range(size + 1):
            going = [r for r in range(size) if step < r + 2]
            optimizer.zero_grad()
            for r in going:
                x, y = data(r, step)
                (F.mse_loss(wanted(x), y) / (size if by_all else len(going))).backward()
            optimizer.step()
        model = DDP(network(), **options)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with model.join(divide_by_initial_world_size=by_all):
            for step in range(rank + 2):
                optimizer.zero_grad()
                x, y = data(rank, step)
                F.mse_loss(model(x), y).backward()
                optimizer.step()
        for found, p in zip(model.parameters(), wanted.parameters(), strict=True):
            close(found, p)  # the ranks that ended early have them too
            same_everywhere(found)


def check_join_with_buffers_and_no_sync():
    rank, size = me()
    model = DDP(nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)).double())
    with model.join():
        for step in range(size - rank):  # rank 0, whose buffers are sent, goes on longest; then the other way round
            with model.no_sync():
                model(data(rank, step)[0]).sum().backward()
            model(data(rank, step)[0]).square().sum().backward()
    with model.join():
        for step in range(rank + 1):
            model(data(rank, step)[0]).square().sum().backward()
    for t in model.state_dict().values():
        same_everywhere(t)
    with model.join(enable=False):
        model(data(rank)[0]).sum().backward()


def check_join_that_raises():
    rank, _ = me()
    model = DDP(network())
    text = "exhausted all inputs" if rank == 0 else "at least one rank that exhausted inputs"
    with pytest.raises(RuntimeError, match=text), model.join(throw_on_early_termination=True):
        for step in range(rank + 1 if rank == 0 else 4):
            model(data(rank, step)[0]).sum().backward()
    with pytest.raises(ValueError, match="at least one joinable"):
        Join([])


def check_no_sync():
    rank, _ = me()
    model, one = DDP(network()), network()
    with model.no_sync():
        F.mse_loss(model(data(rank, 1)[0]), data(rank, 1)[1]).backward()
    local = model.module[0].weight.grad.clone()
    F.mse_loss(network()(data(rank, 1)[0]), data(rank, 1)[1]).backward()
    F.mse_loss(model(data(rank, 2)[0]), data(rank, 2)[1]).backward()
    for seed in (1, 2):
        F.mse_loss(one(joint(seed)[0]), joint(seed)[1]).backward()
    for p, q in zip(model.parameters(), one.parameters(), strict=True):
        close(p.grad, q.grad)
    assert not np.array_equal(local.numpy(), model.module[0].weight.grad.numpy())


class Branches(nn.Module):
    """Two branches, of which a pass takes those that are asked for; a third is never taken."""

    def __init__(self):
        super().__init__()
        self.trunk, self.a, self.b, self.never = (nn.Linear(5, 5) for _ in range(4))

    def forward(self, x, which):
        x = self.trunk(x)
        return sum(getattr(self, name)(x).sum() for name in which) if which else x.detach().sum() * self.never.weight.detach().sum()


def check_unused_parameters_are_found():
    rank, size = me()
    torch.manual_seed(3)
    plain = Branches().double()
    model = DDP(plain, find_unused_parameters=True)
    for which in (["a", "b"][: rank + 1], ["b"], ["a"] if rank else ["b"]):
        model.zero_grad()
        model(data(rank)[0], which).backward()
        every = [None] * size
        dist.all_gather_object(every, which)
        for name in ("trunk", "a", "b", "never"):
            grad = getattr(plain, name).bias.grad
            taken = sum(name in w for w in every)
            if name == "trunk":
                same_everywhere(grad)
            elif taken:
                close(grad, torch.full((5,), BATCH * taken / size, dtype=torch.float64))
            else:
                assert grad is None


def check_unused_parameters_that_are_not_looked_for_are_named():
    rank, _ = me()
    model = DDP(Branches().double())
    model(data(rank)[0], "a").backward()
    with pytest.raises(RuntimeError, match="Expected to have finished reduction in the prior iteration") as raised:
        model(data(rank)[0], "a")
    assert str(raised.value).endswith("Parameters which did not receive grad: b.weight, b.bias, never.weight, never.bias")


def check_models_that_differ_are_refused_on_all_ranks():
    rank, _ = me()
    for make, text in [
        (lambda: nn.Linear(2, 3 + (rank == 1)), "appears not to match sizes of the same param in process 0"),
        (lambda: nn.Linear(2, 3).to(torch.float64 if rank == 1 else torch.float32), "weight float32[3, 2] there, weight float64[3, 2] on rank 1"),
        (lambda: nn.Linear(2, 3, bias=rank != 1), "Rank 0 has 2 params, while rank 1 has inconsistent 1 params"),
        (lambda: nn.ModuleDict({"a" if rank != 1 else "c": nn.Linear(2, 2)}), "a.weight float32[2, 2] there, c.weight"),
    ]:
        with pytest.raises(RuntimeError, match="DDP expects same model across all ranks") as raised:
            DDP(make())
        assert text in str(raised.value)
    with pytest.raises(RuntimeError, match="is not needed when a module doesn't have any parameters"):
        DDP(nn.ReLU())
    with pytest.raises(ValueError, match="device_ids"):
        DDP(nn.Linear(2, 2), device_ids=[0])


def check_gradients_at_rest():
    """Passes without gradients, and gradients of a group of one."""
    rank, _ = me()
    model = DDP(network())
    with torch.no_grad():
        model(data(rank)[0])
    train(model, lambda step: data(rank, step), 1)
    alone = dist.new_group([rank], use_local_synchronization=True)
    own = train(DDP(network(), process_group=alone), lambda step: data(rank, step), 2)
    wanted = train(network(), lambda step: data(rank, step), 2)
    for found, p in zip(own.parameters(), wanted.parameters(), strict=True):
        close(found, p)


def check_a_sampler_takes_the_groups_numbers():
    rank, size = me()
    own = list(DistributedSampler(range(10), shuffle=False))
    assert own == [i % 10 for i in range(rank, -(-10 // size) * size, size)]
    every = [None] * size
    dist.all_gather_object(every, list(DistributedSampler(range(4 * size))))
    assert sorted(i for part in every for i in part) == list(range(4 * size))


def check_batch_norm_over_all_ranks():
    rank, size = me()
    for momentum in (0.1, None):
        torch.manual_seed(1)
        one = nn.Sequential(nn.Conv1d(2, 4, 1), nn.BatchNorm1d(4, momentum=momentum)).double()
        with torch.no_grad():
            one[1].weight.copy_(torch.arange(1.0, 5.0))
        torch.manual_seed(1)
        parted = nn.Sequential(nn.Conv1d(2, 4, 1), nn.BatchNorm1d(4, momentum=momentum)).double()
        parted.load_state_dict(one.state_dict())
        parted = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(parted))
        assert isinstance(parted.module[1], nn.SyncBatchNorm)
        shares = [torch.from_numpy(np.random.default_rng(r).standard_normal((r + 1, 2, 3))) for r in range(size)]  # of different sizes
        for _ in range(2):
            x = shares[rank].clone().requires_grad_()
            whole = torch.cat(shares).requires_grad_()
            found, wanted = parted(x), one(whole)
            begin = sum(r + 1 for r in range(rank))
            close(found, wanted[begin : begin + rank + 1])
            parted.zero_grad()
            one.zero_grad()
            (found.sin().sum() * size).backward()  # the mean over ranks is then the sum
            wanted.sin().sum().backward()
            np.testing.assert_allclose(x.grad.numpy() / size, whole.grad[begin : begin + rank + 1].numpy(), rtol=1e-6, atol=1e-9)
            for p, q in zip(parted.parameters(), one.parameters(), strict=True):
                np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-6, atol=1e-9)
        close(parted.module[1].running_mean, one[1].running_mean)
        close(parted.module[1].running_var, one[1].running_var)
        assert parted.module[1].num_batches_tracked.item() == 2
        parted.eval()
        one.eval()
        close(parted(shares[rank]), one(shares[rank]))


def check_training_with_compiled_parts():
    """A compiled module inside, the wrapped module compiled, and a compiled step around it (which runs eagerly)."""
    rank, _ = me()
    wanted = train(network(), joint)

    def stepped(model):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

        @torch.compile
        def step(x, y):
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()

        for i in range(4):
            step(*data(rank, i))
        return model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it runs eagerly
        for model in (
            train(DDP(torch.compile(network())), lambda i: data(rank, i)),
            train(torch.compile(DDP(network())), lambda i: data(rank, i)),
            stepped(DDP(network())),
        ):
            for found, p in zip(model.parameters(), wanted.parameters(), strict=True):
                close(found, p)
                same_everywhere(found)
