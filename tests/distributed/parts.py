"""Tensors in parts: every op gives the value that one process computes, or says what to call instead; never that of one rank's part.

``python -m tests.distributed.parts`` on several ranks walks all ops; the tests take every so many.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import sys
import warnings
from functools import partial

import numpy as np
import pytest

import autograd_nb as torch
import autograd_nb.distributed as dist
import autograd_nb.distributed.checkpoint as dcp
import autograd_nb.nn.functional as F
from autograd_nb import nn
from autograd_nb.distributed.fsdp import FullStateDictConfig, StateDictType, fully_shard
from autograd_nb.distributed.fsdp import FullyShardedDataParallel as FSDP
from autograd_nb.distributed.fsdp.wrap import (
    ModuleWrapPolicy,
    enable_wrap,
    lambda_auto_wrap_policy,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
    wrap,
)
from autograd_nb.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh
from autograd_nb.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from autograd_nb.ops.core.registry import OPS

from ..ops import walk
from ..ops.samples import SAMPLES, tensors
from .checkpoints import folder, gone
from .training import me

#: of how many cases of the walk the tests take one
EVERY = 48


def cases():
    """Every op of the table, and each sample that a structured op was declared with: (name, function, arrays)."""
    yield from walk.cases()
    for text, (_, sample) in SAMPLES.items():
        yield text, sample, sample.operands()
    for name in (n for n in walk.POINTWISE if f"{n}_" in OPS):
        method = OPS[f"{name}_"].call
        count = min(len(OPS[name].rule.params), 3)
        yield f"{name}_", lambda x, *rest, method=method: method(x.clone(), *rest), [walk.sample(name, i, (3, 4), walk.dtype_of(name)) for i in range(count)]
    for text in IN_PLACE:
        yield text, changed(text), [walk.sample("add", i, (3, 4), "float32") for i in range(2)]


#: what changes ``y``, a copy of ``a``, in place, with ``b`` of the same shape
IN_PLACE = (
    "y[1] = b[0]", "y[:, 2] = 0.5", "y[1:, ::2] = b[1:, ::2]", "y[y > 0] = 1.0", "y += b", "y *= 2", "y.mul_(b).add_(a)", "y.zero_()", "y.fill_(3)",
    "y.copy_(b)", "y.copy_(b[0])", "y.uniform_()", "y.normal_(1, 2)", "y.bernoulli_(0.5)", "y.clamp_(-0.5, 0.5)", "y.masked_fill_(b > 0, -1)",
    "y.addmm_(a, b.t() @ b)", "y.cumsum_(0)", "y.tril_()", "y.lerp_(b, 0.3)", "y.exponential_()", "y.fill_diagonal_(7)", "y.addcmul_(a, b, value=2)",
)  # fmt: skip


def changed(text):
    code = compile(text, text, "exec")

    def run(a, b):
        names = {"a": a, "b": b, "y": a.clone()}
        exec(code, names)
        return names["y"]

    return run


def whole(result):
    return [t.full_tensor() if isinstance(t, DTensor) else t for t in tensors(result)]


def run(function, operands):
    """The results, and the gradients of the sum of their products with fixed numbers; None where there are none."""
    torch.manual_seed(0)
    found = function(*operands)
    outs = [t for t in tensors(found) if t.requires_grad]
    if outs:
        loss = sum((t * t.cos()).abs().sum() if not t.dtype.is_complex else t.abs().sum() for t in outs)
        loss.backward()
    grads = [t.grad for t in operands]
    return whole(found), [None if g is None else whole(g)[0] for g in grads]


def placements(arrays):
    """Each operand along its first dim, along its last, the first one alone, the others alone, along several dims, and summands."""
    yield [Shard(0) if a.ndim else Replicate() for a in arrays]
    yield [Shard(a.ndim - 1) if a.ndim else Replicate() for a in arrays]
    yield [Shard(0) if k == 0 and a.ndim else Replicate() for k, a in enumerate(arrays)]
    yield [Shard(a.ndim - 1) if k and a.ndim else Replicate() for k, a in enumerate(arrays)]
    yield [Shard((k + 1) % a.ndim) if a.ndim else Replicate() for k, a in enumerate(arrays)]
    if arrays and arrays[0].dtype.kind == "f":
        yield [Partial()] + [Replicate()] * (len(arrays) - 1)


def placed(array, placement, grad):
    t = torch.from_numpy(array.copy())
    if isinstance(placement, Partial):
        rank, _ = me()
        part = t if rank == 0 else torch.zeros_like(t)  # a sum that rounding does not change
        return DTensor.from_local(part, placements=[Partial()]).requires_grad_(grad)
    return distribute_tensor(t, placements=[placement]).requires_grad_(grad)


def difference(name, function, arrays, placements=placements, placed=placed):
    """Yield what differs from one process's results, for each way to place the operands; refusals that name the remedy do not."""
    alone = [torch.from_numpy(a.copy()).requires_grad_(a.dtype.kind in "fc") for a in arrays]
    try:
        wanted, slopes = run(function, alone)
    except Exception:
        return
    for chosen in placements(arrays) if arrays else ():
        try:
            found, grads = run(function, [placed(a, p, a.dtype.kind in "fc") for a, p in zip(arrays, chosen, strict=True)])
        except Exception as error:
            if not any(word in str(error) for word in ("DTensor", "to_local", "full_tensor")):
                yield f"{name} {chosen}: {type(error).__name__}: {str(error)[:200]}"
            continue
        try:
            assert len(found) == len(wanted)
            for f, w in zip(found, wanted, strict=True):
                assert f.dtype is w.dtype
                np.testing.assert_allclose(f.detach().numpy(), w.detach().numpy(), rtol=3e-4, atol=1e-5)
            for f, w in zip(grads, slopes, strict=True):
                assert (f is None) == (w is None) or not (f if w is None else w).any(), "a gradient is missing"
                if f is not None and w is not None:
                    np.testing.assert_allclose(f.numpy(), w.numpy(), rtol=3e-4, atol=1e-5)
        except Exception as error:
            yield f"{name} {chosen}: {' '.join(str(error).split())[:300]}"


def walked(every, first=0):
    """What differs in every so many cases, on this rank."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [line for n, case in enumerate(cases()) if n % every == first for line in difference(*case)]


def check_every_op_gives_the_value_of_the_whole():
    found = walked(EVERY, me()[1])
    assert not found, "\n".join(found)


def check_operands_that_are_split_along_other_dims():
    """Of sizes with which each rank has another part that is the largest."""
    for shape in ((3, 4), (4, 3), (1, 5), (7, 2)):
        a, b = torch.rand(shape), torch.rand(shape)
        dist.broadcast(a, 0)
        dist.broadcast(b, 0)
        for first, second in itertools.product((Shard(0), Shard(1), Replicate()), repeat=2):
            x, y = distribute_tensor(a, placements=[first]), distribute_tensor(b, placements=[second])
            assert torch.equal((x * y).full_tensor(), a * b)


def check_changes_of_a_view_are_those_of_the_whole():
    whole = torch.arange(12.0).reshape(6, 2)
    for change in (lambda t: t[3].fill_(-1), lambda t: t.view(12)[5:8].mul_(2), lambda t: t.t()[1].zero_(), lambda t: t[1:5][2:].add_(10)):
        parts, plain = distribute_tensor(whole, placements=[Shard(0)]), whole.clone()
        change(parts)
        change(plain)
        assert torch.equal(parts.full_tensor(), plain)
    parts.requires_grad_()
    with pytest.raises(RuntimeError, match="is a copy, whose changes have no gradient"):
        parts.clone()[3].fill_(1)


def check_gradients_are_in_parts_too():
    whole = torch.arange(10.0).reshape(5, 2)
    seen = []
    for placement in (Shard(0), Shard(1), Replicate()):
        x = distribute_tensor(whole, placements=[placement]).requires_grad_()
        x.register_hook(lambda g: seen.append(g.norm().item()))
        (x * x).sum().backward()
        assert torch.equal(x.grad.full_tensor(), 2 * whole)
        assert x.grad.placements == (placement,)
        (g,) = torch.autograd.grad((x * x).sum(), x)
        assert torch.equal(g.full_tensor(), 2 * whole)
        y = x * 3
        y.backward(distribute_tensor(whole, placements=[Replicate()]))
        assert torch.equal(x.grad.full_tensor(), 5 * whole)
        with pytest.raises(RuntimeError, match="only for scalar outputs"):
            (x * 3).backward()
        with pytest.raises(RuntimeError, match="must be a DTensor too"):
            (x * 3).backward(whole)
        (x.full_tensor() * torch.arange(10.0).reshape(5, 2)).sum().backward()
        assert torch.equal(x.grad.full_tensor(), 6 * whole)
        x.to_local().sum().backward()
        assert torch.equal(x.grad.full_tensor(), 6 * whole + 1)
    np.testing.assert_allclose(seen[0::5], (2 * whole).norm().item(), rtol=1e-6)
    local = torch.ones(2, 3, requires_grad=True)
    (DTensor.from_local(local, placements=[Shard(0)]) ** 2).sum().backward()
    assert local.grad.tolist() == [[2.0] * 3] * 2


def check_plain_tensors_are_refused_beside_parts():
    x = distribute_tensor(torch.ones(4, 2), placements=[Shard(0)])
    plain = torch.ones(4, 2)
    for call in (lambda: x + plain, lambda: plain @ x.t(), lambda: torch.cat([x, plain]), lambda: x.copy_(plain), lambda: F.mse_loss(x, plain)):
        with pytest.raises(RuntimeError, match="got mixed"):
            call()
    with pytest.raises(NotImplementedError, match="assign the result"):
        torch.add(x, x, out=x)
    with pytest.raises(NotImplementedError, match="to_local"):
        DTensor.from_local(plain, placements=[Partial()]).add_(1)
    with pytest.raises(RuntimeError, match="must be a DTensor too"):
        x.grad = plain
    assert (x + torch.tensor(2.0)).full_tensor().tolist() == [[3.0] * 2] * 4


def check_placements_of_results():
    """What stays in parts, so that ranks do a part of the work each."""
    x, w = (distribute_tensor(torch.rand(6, 4), placements=[p]) for p in (Shard(0), Replicate()))
    columns, rows = (distribute_tensor(torch.rand(4, 6), placements=[p]) for p in (Shard(1), Shard(0)))
    for wanted, found in (
        (Shard(0), x * 2 + w), (Shard(0), x @ w.t()), (Shard(1), w @ columns), (Partial(), w @ rows), (Partial(), x.sum()), (Shard(0), x.sum(1)),
        (Partial(), x.mean(0)), (Shard(1), x.t()), (Shard(0), x.view(6, 2, 2)), (Shard(0), x.softmax(-1)), (Replicate(), x.max()),
        (Shard(0), F.linear(x, w)), (Shard(1), F.linear(w, columns.t())), (Partial(), F.linear(w, rows.t())), (Shard(0), x[:, 1]), (Shard(0), x.float()),
    ):  # fmt: skip
        assert found.placements == (wanted,), (wanted, found.placements)


def check_optimizers_step_as_of_one_process():
    """All of them, with parameters that `fully_shard` has shared out."""
    for kind in [c for c in vars(torch.optim).values() if isinstance(c, type) and issubclass(c, torch.optim.Optimizer) and c is not torch.optim.Optimizer]:
        if kind is torch.optim.SparseAdam:
            continue
        torch.manual_seed(1)
        alone = nn.Sequential(nn.Linear(6, 5, bias=kind.__name__ != "Muon"), nn.Tanh(), nn.Linear(5, 3, bias=kind.__name__ != "Muon"))
        alone.double()
        shared = fully_shard(nn.Sequential(*[copy.deepcopy(m) for m in alone]))
        x, y = torch.rand(8, 6).double(), torch.rand(8, 3).double()
        outcome = []
        for model in (alone, shared):
            optimizer = kind(model.parameters(), lr=0.01)

            def closure(model=model, optimizer=optimizer):
                optimizer.zero_grad()
                loss = F.mse_loss(model(x), y)
                loss.backward()
                return loss

            for _ in range(3):
                optimizer.step(closure)
            outcome.append([p.full_tensor() if isinstance(p, DTensor) else p for p in model.parameters()])
        for found, wanted in zip(*outcome, strict=True):
            np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=2e-5, atol=1e-6, err_msg=kind.__name__)


def check_checkpoints_hold_the_whole():
    path = folder()
    whole = torch.rand(5, 3)
    dist.broadcast(whole, 0)
    dcp.save({"w": distribute_tensor(whole, placements=[Shard(0)]), "v": whole}, checkpoint_id=path / "a")
    for placement in (Shard(1), Shard(0), Replicate()):
        state = {"w": distribute_tensor(torch.zeros(5, 3), placements=[placement]), "v": torch.zeros(5, 3)}
        dcp.load(state, checkpoint_id=path / "a")
        assert torch.equal(state["w"].full_tensor(), whole)
        assert torch.equal(state["v"], whole)
    gone(path)


class Net(nn.Module):
    """A block of a transformer, small: tables, norms, attention and a pair of layers."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(13, 8)
        self.norm, self.last = nn.LayerNorm(8), nn.LayerNorm(8)
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8, bias=False) for _ in range(4))
        self.up, self.down, self.out = nn.Linear(8, 12), nn.Linear(12, 8), nn.Linear(8, 13)

    def forward(self, x):
        h = self.table(x)
        n = self.norm(h)
        q, k, v = (f(n).unflatten(-1, (-1, 2)).transpose(1, 2) for f in (self.q, self.k, self.v))
        h = h + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return self.out(self.last(h + self.down(self.up(h).relu())))


def check_layers_in_parts_train_as_of_one_process():
    """Columns and rows, with and without parts of the sequence between them."""
    _, size = me()
    for plan in (
        {"table": RowwiseParallel(input_layouts=Replicate()), "[qkv]": ColwiseParallel(use_local_output=False), "o": RowwiseParallel(), "up": ColwiseParallel(),
         "down": RowwiseParallel(), "out": ColwiseParallel(output_layouts=Replicate())},
        {"table": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "norm": SequenceParallel(), "last": SequenceParallel(),
         "[qkv]": ColwiseParallel(input_layouts=Shard(1), use_local_output=False), "o": RowwiseParallel(output_layouts=Shard(1)),
         "up": ColwiseParallel(input_layouts=Shard(1)), "down": RowwiseParallel(output_layouts=Shard(1)),
         "out": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())},
        {"table": ColwiseParallel(output_layouts=Replicate()), "norm": PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Replicate(),
         use_local_output=True), "last": PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Replicate())},
    ):  # fmt: skip
        torch.manual_seed(3)
        alone = Net().double()
        shared = parallelize_module(copy.deepcopy(alone), init_device_mesh("cpu", (size,)), plan)
        x = torch.arange(24).reshape(2, 12) * 5 % 13
        losses = []
        for model in (alone, shared):
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            for _ in range(3):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x).flatten(0, 1), x.roll(1, 1).flatten())
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                losses.append(loss.item())
        np.testing.assert_allclose(losses[3:], losses[:3], rtol=1e-10)
        for (name, p), q in zip(shared.named_parameters(), alone.parameters(), strict=True):
            np.testing.assert_allclose(whole(p)[0].detach().numpy(), q.detach().numpy(), rtol=1e-8, atol=1e-12, err_msg=name)
        assert isinstance(shared.q.weight, nn.Parameter)
        assert isinstance(shared.q.weight, DTensor) or "norm" in plan
    with pytest.raises(NotImplementedError, match="not LayerNorm"):
        parallelize_module(nn.LayerNorm(2), None, ColwiseParallel())
    with pytest.warns(UserWarning, match="'nothing' could not be resolved"):
        parallelize_module(Net(), None, {"nothing": ColwiseParallel()})
    with pytest.raises(NotImplementedError, match="is a DTensor already"):
        fully_shard(parallelize_module(nn.Linear(2, 2), None, ColwiseParallel()))


def check_wrapped_models_train_as_of_one_process():
    """`FullyShardedDataParallel` as programs use it: policies, states of three kinds, states of optimizers, accumulation, whole parameters."""
    rank, size = me()
    whole, sharded, local = StateDictType.FULL_STATE_DICT, StateDictType.SHARDED_STATE_DICT, StateDictType.LOCAL_STATE_DICT
    for policy in (
        None, partial(size_based_auto_wrap_policy, min_num_params=30), partial(transformer_auto_wrap_policy, transformer_layer_cls={nn.Linear}),
        ModuleWrapPolicy({nn.Linear}), partial(lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.Linear)),
    ):  # fmt: skip
        torch.manual_seed(rank)
        alone = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Sequential(nn.Linear(5, 5), nn.Tanh()), nn.Linear(5, 3)).double()
        model = FSDP(copy.deepcopy(alone), auto_wrap_policy=policy, sync_module_states=True)
        for p in alone.parameters():
            dist.broadcast(p.detach(), 0)
        for name, value in model.state_dict().items():
            assert type(value) is torch.Tensor
            assert torch.equal(value, alone.state_dict()[name])
        steps = torch.optim.AdamW(model.parameters(), lr=0.01), torch.optim.AdamW(alone.parameters(), lr=0.01)
        torch.manual_seed(5)
        for _ in range(3):
            x, y = torch.rand(4 * size, 6).double(), torch.rand(4 * size, 3).double()
            own = slice(4 * rank, 4 * rank + 4)
            for net, optimizer, mine in ((model, steps[0], own), (alone, steps[1], slice(None))):
                optimizer.zero_grad()
                with net.no_sync() if net is model else contextlib.nullcontext():
                    F.mse_loss(net(x[mine]), y[mine]).backward()
                F.mse_loss(net(2 * x[mine]), y[mine]).backward()
                net.clip_grad_norm_(0.1) if net is model else nn.utils.clip_grad_norm_(net.parameters(), 0.1)
                optimizer.step()
        for name, value in model.state_dict().items():
            np.testing.assert_allclose(value.numpy(), alone.state_dict()[name].numpy(), rtol=1e-9, err_msg=name)
        moments = FSDP.optim_state_dict(model, steps[0])
        np.testing.assert_allclose(moments["state"]["3.weight"]["exp_avg"].numpy(), steps[1].state_dict()["state"][4]["exp_avg"].numpy(), rtol=1e-9)
        again = FSDP(copy.deepcopy(alone), auto_wrap_policy=policy)
        other = torch.optim.AdamW(again.parameters(), lr=0.01)
        other.load_state_dict(FSDP.optim_state_dict_to_load(again, other, moments))
        found = other.state[list(again.parameters())[4]]["exp_avg"]
        assert torch.equal(found.full_tensor(), moments["state"]["3.weight"]["exp_avg"])
        for kind in (whole, sharded, local):
            with FSDP.state_dict_type(model, kind):
                state = model.state_dict()
                with torch.no_grad():
                    for p in again.parameters():
                        p.zero_()
                again.load_state_dict(state)
            assert all(torch.equal(p.full_tensor(), q.full_tensor()) for p, q in zip(again.parameters(), model.parameters(), strict=True))
        with FSDP.state_dict_type(model, whole, FullStateDictConfig(rank0_only=True, offload_to_cpu=True)):
            assert bool(model.state_dict()) is (rank == 0)
        with FSDP.summon_full_params(model):
            assert [tuple(p.shape) for p in model.parameters()] == [tuple(p.shape) for p in alone.parameters()]
            with torch.no_grad():
                model[0].weight.fill_(rank * 0 + 2)
        assert model.state_dict()["0.weight"].tolist() == [[2.0] * 6] * 5
    with enable_wrap(wrapper_cls=FSDP), pytest.raises(ValueError, match="is for hybrid strategies"):
        wrap(nn.Linear(2, 2), process_group=(None, None))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    lines = walked(1 if len(sys.argv) < 2 else int(sys.argv[1]))
    if dist.get_rank() == 0:
        print("\n".join(lines), f"\n{len(lines)} differ")
    dist.destroy_process_group()
