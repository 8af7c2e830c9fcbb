"""Training with models of every dtype, by every way of sending gradients, checked on every rank beside one process with the joint batch."""

from __future__ import annotations

import warnings

import numpy as np

import autograd_nb as torch
import autograd_nb.distributed as dist
from autograd_nb import nn
from autograd_nb.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks
from autograd_nb.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
from autograd_nb.distributed.checkpoint.state_dict import get_model_state_dict
from autograd_nb.distributed.fsdp import fully_shard
from autograd_nb.distributed.optim import ZeroRedundancyOptimizer
from autograd_nb.nn.parallel import DistributedDataParallel as DDP

REAL = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
DTYPES = [*REAL, torch.complex64, torch.complex128]
TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 8e-2}
STEPS = 4


def model(dtype):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 4)).double().to(dtype)


def loss_of(module, dtype, step, rank):
    x = np.random.default_rng(10 * step + rank).standard_normal((4, 6))
    y = module(torch.from_numpy(x).to(dtype))
    return (y * y.conj()).real.mean() if dtype.is_complex else y.square().float().mean()


def alone(dtype):
    """Parameters that one process has trained with the batches of all ranks."""
    size, whole = dist.get_world_size(), model(dtype)
    moves = torch.optim.SGD(whole.parameters(), lr=0.05)
    for step in range(STEPS):
        moves.zero_grad()
        (sum(loss_of(whole, dtype, step, r) for r in range(size)) / size).backward()
        moves.step()
    return list(whole.parameters())


def trained(module, moves, dtype, compiled=False):
    def step(i):
        moves.zero_grad()
        loss_of(module, dtype, i, dist.get_rank()).backward()
        moves.step()

    run = torch.compile(step) if compiled else step
    for i in range(STEPS):
        run(i)


def compare(found, dtype, tolerance=0.0):
    tolerance = max(tolerance, TOLERANCE.get(dtype, 1e-5))
    for mine, wanted in zip(found, alone(dtype), strict=True):
        a, b = (torch.view_as_real(t.detach()) if dtype.is_complex else t.detach() for t in (mine, wanted))
        np.testing.assert_allclose(a.double().numpy(), b.double().numpy(), rtol=tolerance, atol=tolerance, err_msg=str(dtype))


def with_ddp(dtype, compiled=False, join=False, hook=None, state=None, tolerance=0.0, **options):
    wrapped = DDP(model(dtype), **options)
    if hook is not None:
        wrapped.register_comm_hook(state, hook)
    moves = torch.optim.SGD(wrapped.parameters(), lr=0.05)
    with warnings.catch_warnings(), wrapped.join(enable=join):
        warnings.simplefilter("ignore")
        trained(wrapped, moves, dtype, compiled)
    compare(wrapped.module.parameters(), dtype, tolerance)


def check_options_of_ddp():
    for dtype in DTYPES:
        for options in (
            {}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}, {"static_graph": True}, {"bucket_cap_mb": 1e-5},
            {"compiled": True}, {"compiled": True, "bucket_cap_mb": 1e-5}, {"join": True}, {"join": True, "bucket_cap_mb": 1e-5},
        ):  # fmt: skip
            with_ddp(dtype, **options)


def check_hooks():
    for dtype in DTYPES:
        with_ddp(dtype, hook=hooks.allreduce_hook)
    for dtype in REAL:
        for hook, short in ((hooks.fp16_compress_hook, torch.float16), (hooks.bf16_compress_hook, torch.bfloat16)):
            with_ddp(dtype, hook=hook, tolerance=TOLERANCE[short])
        for around, short in ((hooks.fp16_compress_wrapper, torch.float16), (hooks.bf16_compress_wrapper, torch.bfloat16)):
            with_ddp(dtype, hook=around(hooks.allreduce_hook), tolerance=TOLERANCE[short])


def check_power_sgd_of_full_rank_loses_little():
    for dtype in REAL:
        for hook in (power.powerSGD_hook, power.batched_powerSGD_hook):
            state = power.PowerSGDState(None, matrix_approximation_rank=11, start_powerSGD_iter=2, min_compression_rate=0.01)
            with_ddp(dtype, hook=hook, state=state, tolerance=1e-3)
            assert state.iter > 2


def check_shared_optimizers():
    for dtype in DTYPES:
        for views in (False, True):
            for hook in (None, ZeroRedundancyOptimizer.reduce_scatter):
                wrapped = DDP(model(dtype))
                moves = ZeroRedundancyOptimizer(wrapped.parameters(), torch.optim.SGD, lr=0.05, parameters_as_bucket_view=views)
                if hook is not None:
                    wrapped.register_comm_hook(moves, hook)
                trained(wrapped, moves, dtype)
                compare(wrapped.module.parameters(), dtype)


def check_shared_parameters():
    for dtype in DTYPES:
        module = model(dtype)
        for layer in module:
            fully_shard(layer)
        fully_shard(module)
        trained(module, torch.optim.SGD(module.parameters(), lr=0.05), dtype)
        compare(get_model_state_dict(module).values(), dtype)
