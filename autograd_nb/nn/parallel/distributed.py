"""A module that several processes train together, each on its own share of the data.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ... import distributed as dist
from ...graph import engine
from ...graph.modes import state
from ...tensor import Tensor, edge
from ..modules.module import Module
from .buckets import MEGABYTE, Reducer


class DistributedDataParallel(Module):
    """``module`` with parameters and buffers of rank 0, whose gradients are the mean over all ranks after each backward pass.

    With batches of one size that is the gradient of the mean loss over the joint batch, and all ranks stay the same, bit by bit.
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
    require_forward_param_sync: bool
    require_backward_grad_sync: bool

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0, broadcast_buffers: bool = True,
        init_sync: bool = True, process_group: Any = None, bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
        check_reduction: bool = False, gradient_as_bucket_view: bool = False, static_graph: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.process_group = dist.group.WORLD if process_group is None else process_group
        size = dist.get_world_size(process_group)  # ValueError without a group
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient."
            )
        if device_ids or output_device is not None:
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
        if size > 1:
            if init_sync:
                self._verify()
                self._send([*module.parameters(), *module.buffers()])
            limit = int((25 if bucket_cap_mb is None else bucket_cap_mb) * MEGABYTE)
            self.__dict__["reducer"] = Reducer(
                [name for name, _ in named], [p for _, p in named], self.process_group, limit, gradient_as_bucket_view,
                not (find_unused_parameters or static_graph),
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

    def _send(self, tensors: list[Tensor]) -> None:
        """Give all ranks the values of the first one."""
        for work in [dist.broadcast(t, group_src=0, group=self.process_group, async_op=True) for t in tensors]:
            if work is not None:
                work.wait()

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self.reducer is None:
            return self.module(*inputs, **kwargs)
        if self.require_forward_param_sync and self.broadcast_buffers:
            self._send(list(self.module.buffers()))
        synced = state.grad and self.require_backward_grad_sync
        look = self.find_unused_parameters or self.static_graph
        if synced and not look:
            self.reducer.prepare(None)
        elif not synced:
            self.reducer.expecting = self.reducer.expecting and not state.grad
        output = self.module(*inputs, **kwargs)
        if synced and look:
            self.reducer.prepare(_leaves(output))
        if state.grad:
            self.require_forward_param_sync = self.require_backward_grad_sync
        return output

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


def _leaves(output: Any) -> set[Any]:
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
