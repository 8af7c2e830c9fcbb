"""A module that several processes train together, each on its own share of the data.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ... import distributed as dist
from ...distributed.comm_hooks import allreduce_hook, fp16_compress_hook
from ...distributed.joining import Join, Joinable, JoinHook
from ...graph import engine
from ...graph.modes import state
from ...ops.creation.cast import stand_in
from ...tensor import Tensor, edge, wrap
from ..modules.module import Module
from .buckets import MEGABYTE, Reducer


class _Shadow(JoinHook):
    """The part of a rank whose data have ended while others go on."""

    def __init__(self, ddp: DistributedDataParallel, divide_by_initial_world_size: bool):
        self.ddp = ddp
        ddp._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self) -> None:
        """Run the collectives of one iteration of the others."""
        ddp = self.ddp
        if ddp.reducer is None:
            return
        backward, forward = ddp._agree_on_iteration(False, False)
        if forward:
            ddp._send_buffers(True, False)
        if backward:
            ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Give all ranks the parameters and buffers of one of those whose data ended last."""
        ddp = self.ddp
        if ddp.reducer is not None:
            ddp._send([*ddp.module.parameters(), *ddp.module.buffers()], ddp._highest(is_last_joiner))


class DistributedDataParallel(Module, Joinable):
    """``module`` with parameters and buffers of rank 0, whose gradients are the mean over all ranks after each backward pass.

    With batches of one size that is the gradient of the mean loss over the joint batch, and all ranks stay the same, bit by bit.
    ``static_graph``: all passes have the graph of the first, where unused parameters, and those of several checkpointed parts, are found once.
    ``find_unused_parameters``: look from the outputs for parameters that have no part in them. ``gradient_as_bucket_view``: ``.grad`` is a view of
    what is sent, which spares a copy. Gradients are reduced in buckets of ``bucket_cap_mb`` (25), while the backward pass goes on.

    Errors: RuntimeError when no parameter requires grad, and where the ranks' parameters differ in names, shapes or dtypes; ValueError without a
    process group.
    """

    module: Module
    process_group: Any
    device_ids: None
    output_device: None
    dim: int
    broadcast_buffers: bool
    static_graph: bool
    find_unused_parameters: bool
    gradient_as_bucket_view: bool
    require_backward_grad_sync: bool
    require_forward_param_sync: bool
    settled: int

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0, broadcast_buffers: bool = True,
        init_sync: bool = True, process_group: Any = None, bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
        check_reduction: bool = False, gradient_as_bucket_view: bool = False, static_graph: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        Joinable.__init__(self)
        self._divide_by_initial_world_size = True
        self.process_group = dist.group.WORLD if process_group is None else process_group
        size = dist.get_world_size(process_group)  # ValueError without a group
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient."
            )
        if (device_ids or output_device is not None) and not stand_in.gpus:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU "
                f"modules, but got device_ids {device_ids}, output_device {output_device}; leave them out: this library computes on the CPU"
            )
        self.module = module
        self.device_ids = self.output_device = None
        self.dim, self.broadcast_buffers, self.static_graph = dim, broadcast_buffers, static_graph
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.__dict__["reducer"] = None
        self.settled = 0  # how far the order of the buckets is known: what is captured before it is, is captured again
        if size > 1:
            if init_sync:
                self._verify()
                self._send([*module.parameters(), *module.buffers()])
            limit = int((25 if bucket_cap_mb is None else bucket_cap_mb) * MEGABYTE)
            self.__dict__["reducer"] = Reducer(
                [name for name, _ in named], [p for _, p in named], self.process_group, limit, gradient_as_bucket_view,
                find_unused_parameters, static_graph,
            )  # fmt: skip

    def _verify(self) -> None:
        """Raise RuntimeError, on all ranks, where the parameters of one differ from those of the first."""
        own = [(name, p.dtype.name, list(p.shape), p.requires_grad) for name, p in self.module.named_parameters()]
        own += [(name, b.dtype.name, list(b.shape), False) for name, b in self.module.named_buffers()]
        every: list[Any] = [None] * dist.get_world_size(self.process_group)
        dist.all_gather_object(every, own, self.process_group)
        for rank, found in enumerate(every):
            if len(found) != len(every[0]):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank 0 has {len(every[0])} params, while rank {rank} has inconsistent "
                    f"{len(found)} params."
                )
            for first, other in zip(every[0], found, strict=True):
                if first != other:
                    raise RuntimeError(
                        f"DDP expects same model across all ranks: [{rank}]: params {other[0]} in this process with sizes {other[2]} appears not to "
                        f"match sizes of the same param in process 0: {_said(first)} there, {_said(other)} on rank {rank}"
                    )

    def _send(self, tensors: list[Tensor], source: int = 0) -> None:
        """Give all ranks the values of one."""
        for work in [dist.broadcast(t, group_src=source, group=self.process_group, async_op=True) for t in tensors]:
            if work is not None:
                work.wait()

    def _highest(self, candidate: bool) -> int:
        """Return the highest rank in the group of those that are candidates."""
        found = wrap(np.array([dist.get_rank(self.process_group) if candidate else -1], np.int64))
        dist.all_reduce(found, dist.ReduceOp.MAX, self.process_group)
        return int(found.item())

    def _send_buffers(self, joining: bool, active: bool) -> None:
        """Give all ranks the buffers of rank 0, or of one that has data where some have none."""
        buffers = list(self.module.buffers()) if self.broadcast_buffers else []
        if buffers:
            self._send(buffers, self._highest(active) if joining else 0)

    def _agree_on_iteration(self, backward: bool, forward: bool) -> tuple[bool, bool]:
        """Return whether the ranks that have data reduce gradients, and send buffers, in this iteration."""
        flags = wrap(np.array([backward, forward], np.int64))
        dist.all_reduce(flags, dist.ReduceOp.MAX, self.process_group)
        found = flags.tolist()
        return bool(found[0]), bool(found[1])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self.reducer is None:
            return self.module(*inputs, **kwargs)
        synced = state.grad and self.require_backward_grad_sync
        look, joining = self.find_unused_parameters and not self.static_graph, self._join_config.enable
        if joining:
            work = Join.notify_join_context(self)
            self._agree_on_iteration(synced, self.require_forward_param_sync)
            if work is not None:
                work.wait()
                self.reducer.divisor = None if self._divide_by_initial_world_size else int(work.result()[0].item())
        if self.require_forward_param_sync:
            self._send_buffers(joining, True)
        if synced and not look:
            self.reducer.prepare(None, joining)
            self.settled = min(self.settled + 1, 2)
        elif not synced:
            self.reducer.expecting = self.reducer.expecting and not state.grad
        output = self.module(*inputs, **kwargs)
        if synced and look:
            self.reducer.prepare(leaves_of(output))
        if state.grad:
            self.require_forward_param_sync = self.require_backward_grad_sync
        return output

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """Return a context for a loop over data of which ranks have different amounts: those whose data end answer the others until theirs end.

        ``divide_by_initial_world_size``: gradients are sums over the ranks that have data, divided by the number of all ranks; False: by the number
        of those that have data. ``throw_on_early_termination``: RuntimeError on all ranks when the data of the first end.
        """
        options = {"divide_by_initial_world_size": divide_by_initial_world_size}
        return Join([self], enable, throw_on_early_termination, **options)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what answers for this module where a rank's data have ended."""
        return _Shadow(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """Return the device of the parameters."""
        return next(self.module.parameters()).device

    @property
    def join_process_group(self) -> Any:
        """Return the group that gradients are reduced in."""
        return self.process_group

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Reduce each bucket by ``hook(state, bucket)``, which returns the future of the reduced bucket (see `distributed.GradBucket`).

        Errors: TypeError for what cannot be called, ValueError for annotations of other types, RuntimeError the second time.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        try:
            signature = inspect.signature(hook, eval_str=True)
        except (NameError, ValueError):  # annotations that only a checker knows
            signature = inspect.Signature()
        bucket = signature.parameters.get("bucket")
        if bucket is not None and bucket.annotation not in (inspect.Parameter.empty, dist.GradBucket):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        if self.__dict__.get("_comm_hook") is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.__dict__["_comm_hook"] = hook
        if self.reducer is not None:
            self.reducer.hook = (state, hook)

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        hook = {dist.BuiltinCommHookType.ALLREDUCE: allreduce_hook, dist.BuiltinCommHookType.FP16_COMPRESS: fp16_compress_hook}[comm_hook_type]
        self.register_comm_hook(self.process_group, hook)

    def _set_static_graph(self) -> None:
        """Say, before the first pass, that all passes have one graph."""
        self.static_graph = True
        if self.reducer is not None:
            self.reducer.static, self.reducer.find_unused, self.reducer.rebuild = True, False, True

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leave gradients on their ranks for forward passes inside, to be reduced with those of the first one outside."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before


def _said(entry: tuple[Any, ...]) -> str:
    name, dtype, shape, learned = entry
    return f"{name} {dtype}{shape}{'' if learned else ' without gradient'}"


def leaves_of(output: Any) -> set[Any]:
    """Return the leaves that gradients of a module's output reach."""
    edges = [e for t in _tensors(output) if (e := edge(t)) is not None]
    return set(engine.collect(edges, None)[1])


def _tensors(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, dict):
        for value in output.values():
            yield from _tensors(value)
    elif isinstance(output, (list, tuple)):
        for value in output:
            yield from _tensors(value)
    elif hasattr(output, "__dataclass_fields__"):
        for name in output.__dataclass_fields__:
            yield from _tensors(getattr(output, name))
