"""Optimizers whose state is shared out among ranks: `torch.distributed.optim`.

Source: https://docs.pytorch.org/docs/stable/distributed.optim.html#torch.distributed.optim.ZeroRedundancyOptimizer
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .. import distributed as dist
from ..distributed.buffers import memory, room
from ..distributed.comm_hooks import GradBucket
from ..distributed.futures import Future
from ..distributed.joining import Joinable, JoinHook
from ..distributed.parts import all_gather_parts, reduce_scatter_parts
from ..tensor import Tensor, wrap
from .optimizer import Optimizer

__path__: list[str] = []  # PyTorch has the class in a module below this one: see compat/import_aliases.py
zero_redundancy_optimizer: Any = sys.modules[__name__]


class _Shadow(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer):
        self.optimizer = optimizer

    def main_hook(self) -> None:
        """Step as the others do: this rank's parameters are its own to move."""
        self.optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer of ``optimizer_class`` whose state each rank keeps for its own share of the parameters only.

    Parameters are given to ranks by size, the largest first, each to the rank with the fewest elements. Each rank steps its share, and sends it to
    the others by one all-gather. ``parameters_as_bucket_view``: parameters become views of its memory, which spares copies.
    ``defaults``: what the optimizer's class is given. Gradients must be the mean over all ranks, as `DistributedDataParallel` makes them, by an
    all-reduce or, with the hook `reduce_scatter`, for the ranks alone that step them.

    Errors: ValueError without a process group, NotImplementedError for ``overlap_with_ddp``, RuntimeError for a state that is asked for before
    `consolidate_state_dict`.
    """

    optim: Optimizer
    process_group: Any
    rank: int
    world_size: int

    def __init__(
        self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None, parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False, **defaults: Any,
    ) -> None:  # fmt: skip
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer(overlap_with_ddp=True) is not supported: leave it out, and call step() after backward()"
            )
        Joinable.__init__(self)
        self.process_group = dist.group.WORLD if process_group is None else process_group
        self.rank, self.world_size = dist.get_rank(process_group), dist.get_world_size(process_group)
        self.parameters_as_bucket_view: bool = parameters_as_bucket_view
        self._class, self._options = optimizer_class, defaults
        self._owner: dict[Tensor, int] = {}
        self._sizes = [0] * self.world_size
        self._whole: list[dict[str, Any]] | None = None
        self._begun = False
        super().__init__(params, {})
        self._local()
        self._begun = True

    def _share(self, params: Iterable[Tensor]) -> None:
        """Give parameters to ranks, those with most elements first."""
        for p in sorted(params, key=lambda p: -p.numel()):
            if p not in self._owner:
                rank = self._sizes.index(min(self._sizes))
                self._owner[p] = rank
                self._sizes[rank] += p.numel()

    def _local(self) -> None:
        """Make this rank's optimizer, and the messages by which parameters travel."""
        own = [{**g, "params": [p for p in g["params"] if self._owner[p] == self.rank]} for g in self.param_groups]
        self.optim = self._class(own, **self._options)
        for whole, part in zip(self.param_groups, self.optim.param_groups, strict=True):
            for key, value in part.items():
                if key != "params":
                    whole.setdefault(key, value)
        self.defaults: dict[str, Any] = self.optim.defaults
        self._messages: list[tuple[Tensor, list[int], list[tuple[Tensor, np.ndarray]]]] = []  # (all parameters, elements of each rank, parameters)
        shares: dict[str, list[Tensor]] = {}
        for p in sorted(self._owner, key=self._owner.__getitem__):
            shares.setdefault(p.dtype.name, []).append(p)
        for members in shares.values():
            flat, parts = self._joined(members)
            if self.parameters_as_bucket_view:
                for p, place in parts:
                    p.data = wrap(place, p.dtype)
            self._messages.append((wrap(flat, members[0].dtype), self._elements(members), parts))

    def _joined(self, members: Sequence[Tensor]) -> tuple[np.ndarray, list[tuple[Tensor, np.ndarray]]]:
        """Return the values of tensors one behind another, and the part of each."""
        flat, at = room(sum(p.numel() for p in members), members[0].dtype), 0
        parts: list[tuple[Tensor, np.ndarray]] = []
        for p in members:
            part = flat[at : at + p.numel()].reshape(p.shape)
            at += p.numel()
            np.copyto(part, memory(p))
            parts.append((p, part))
        return flat, parts

    def _elements(self, params: Iterable[Tensor]) -> list[int]:
        """Return how many elements of these parameters each rank steps."""
        found = [0] * self.world_size
        for p in params:
            found[self._owner[p]] += p.numel()
        return found

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, which are shared out as the others were; the state of those is kept."""
        super().add_param_group(param_group)
        self._share(self.param_groups[-1]["params"])
        if self._begun:
            state = self.optim.state
            self._local()
            self.optim.state.update(state)

    def _pass_on(self, sources: list[dict[str, Any]], targets: list[dict[str, Any]]) -> None:
        for source, target in zip(sources, targets, strict=True):
            target.update({k: v for k, v in source.items() if k not in ("params", "param_names")})

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Step this rank's share of the parameters, and give all ranks those of all; the loss that ``closure`` returns."""
        dist_join = dist.joining.Join.notify_join_context(self)
        self._pass_on(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        self._pass_on(self.optim.param_groups, self.param_groups)
        self._send()
        if dist_join is not None:
            dist_join.wait()
        return loss

    def _send(self) -> None:
        works = []
        for whole, sizes, parts in self._messages:
            for p, part in parts:
                if self._owner[p] == self.rank and not np.shares_memory(memory(p), part):
                    np.copyto(part, memory(p))
            works.append(all_gather_parts(whole, sizes, self.process_group))
        for work, (_, _, parts) in zip(works, self._messages, strict=True):
            work.wait()
            for p, part in parts:
                own = memory(p)
                if self._owner[p] != self.rank and not np.shares_memory(own, part):
                    np.copyto(own, part)

    @staticmethod
    def reduce_scatter(optimizer: ZeroRedundancyOptimizer, bucket: GradBucket) -> Future:
        """Reduce each gradient for the rank alone that steps its parameter: a communication hook, which sends half of what an all-reduce does.

        ``model.register_comm_hook(optimizer, ZeroRedundancyOptimizer.reduce_scatter)``. Gradients of other ranks' parameters stay this rank's own.
        """
        pairs = sorted(zip(bucket.parameters(), bucket.gradients(), strict=True), key=lambda pair: optimizer._owner[pair[0]])
        flat, parts = optimizer._joined([gradient for _, gradient in pairs])
        work = reduce_scatter_parts(wrap(flat, bucket.buffer().dtype), optimizer._elements(p for p, _ in pairs), optimizer.process_group)

        def back(done: Future) -> Tensor:
            for (p, gradient), (_, part) in zip(pairs, parts, strict=True):
                if optimizer._owner[p] == optimizer.rank:
                    np.copyto(memory(gradient), part)
            return bucket.buffer()

        return work.get_future().then(back)

    # ---- saving and loading
    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the states of all ranks on rank ``to``, whose `state_dict` then has all of them; all ranks call it."""
        self._pass_on(self.param_groups, self.optim.param_groups)
        numbers = self._numbers()
        own = {numbers[p]: state for p, state in self.optim.state.items()}
        every: list[Any] | None = [None] * self.world_size if dist.get_rank() == to else None
        dist.gather_object(own, every, to, self.process_group)
        self._whole = every

    def _numbers(self) -> dict[Tensor, int]:
        return {p: i for i, p in enumerate(p for g in self.param_groups for p in g["params"])}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all parameters, as `consolidate_state_dict` collected it on this rank. RuntimeError where it did not."""
        if self._whole is None:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to={dist.get_rank()})` on all ranks "
                "beforehand if you meant to save the global state."
            )
        found = super().state_dict()
        found["state"] = {i: state for part in self._whole for i, state in part.items()}
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state of all parameters; this rank keeps its share."""
        super().load_state_dict(state_dict)
        self.optim.state.clear()
        self.optim.state.update({p: s for p, s in self.state.items() if self._owner.get(p) == self.rank})
        self.state.clear()
        self._pass_on(self.param_groups, self.optim.param_groups)

    # ---- uneven inputs
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what steps for this rank where its data have ended."""
        return _Shadow(self)

    @property
    def join_device(self) -> Any:
        """Return the device of the parameters."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """Return the group that the parameters are shared out in."""
        return self.process_group
