"""Gradients on their way between ranks: joined into buckets, which are reduced while the backward pass goes on.

Buckets are launched strictly in their order, the same on all ranks, each when its last gradient has arrived. The first pass takes the
parameters from the last to the first; later ones the order in which rank 0's gradients came. The last gradient waits for all buckets.
Which parameters get gradients, and how often, is looked for in every pass, or (static graphs) learned in the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import distributed as dist
from ...distributed import compiled
from ...distributed.buffers import memory, room
from ...distributed.futures import Future
from ...graph.engine import queue_callback
from ...graph.modes import no_grad
from ...ops.creation.create import new_full
from ...ops.shape.cat import cat
from ...tensor import Tensor, wrap

FIRST, MEGABYTE = 1 << 20, 1 << 20  #: bytes of the first bucket, which is small so that something is sent early


class Bucket:
    """Parameters of one dtype whose gradients travel together, one behind another in ``flat``."""

    members: list[int]
    flat: np.ndarray
    tensor: Tensor
    pending: int

    def __init__(self, params: Sequence[Tensor], members: Sequence[int]):
        self.members = list(members)
        total = sum(params[i].numel() for i in members)
        self.flat = room(total, params[members[0]].dtype)
        self.tensor = wrap(self.flat, params[members[0]].dtype)
        self.parts: list[np.ndarray] = []
        at = 0
        for i in members:
            n = params[i].numel()
            self.parts.append(self.flat[at : at + n].reshape(params[i].shape))
            at += n
        self.pending = len(self.members)
        self.work: dist.Work | None = None
        self.total: Callable[[], Tensor | None] | None = None  # returns the mean over all ranks, in a captured pass
        self.future: Future | None = None

    def gradients(self) -> list[Tensor]:
        """Return the parts as tensors, views of the whole."""
        return [wrap(part, self.tensor.dtype) for part in self.parts]

    def reset(self) -> None:
        """Wait for all gradients anew."""
        self.pending, self.work, self.future, self.total = len(self.members), None, None, None


def assign(params: Sequence[Tensor], order: Sequence[int], limit: int) -> list[list[int]]:
    """Return the parameters of each bucket, by their numbers: of one dtype, in ``order``, up to ``limit`` bytes (the first up to FIRST)."""
    buckets: list[list[int]] = []
    open_: dict[str, tuple[list[int], int, int]] = {}  # dtype -> members, bytes, limit
    for i in order:
        name = params[i].dtype.name
        members, size, most = open_.get(name, ([], 0, min(FIRST, limit)))
        if not members:
            buckets.append(members)
        members.append(i)
        size += params[i].numel() * params[i].dtype.itemsize
        open_[name] = ([], 0, limit) if size >= most else (members, size, most)
    return buckets


class Reducer:
    """Watches the gradients of ``params`` arrive, and makes each the mean over all ranks."""

    names: list[str]
    params: list[Tensor]
    group: Any
    limit: int
    views: bool
    expecting: bool
    next: int
    find_unused: bool
    static: bool
    rebuild: bool

    def __init__(
        self, names: Sequence[str], params: Sequence[Tensor], group: Any, limit: int, views: bool, find_unused: bool, static: bool
    ) -> None:  # fmt: skip
        self.names, self.params, self.group, self.limit, self.views = list(names), list(params), group, limit, views
        self.buckets: list[Bucket] = []
        self.place: dict[int, tuple[Bucket, int]] = {}
        self.expecting = False
        self.arrived: list[int] = []
        self.left: list[int] = []
        self.used: np.ndarray | None = None
        self.next = 0
        self.find_unused, self.static = find_unused and not static, static
        self.learned: list[int] | None = None  # how often each gradient arrives in a pass of a static graph
        self.rebuild = not self.find_unused
        self.hook: tuple[Any, Callable[..., Future]] | None = None
        self.divisor: int | None = None  # what sums are divided by, where that is not the number of ranks
        self._build(list(reversed(range(len(self.params)))))
        for i, p in enumerate(self.params):
            p.register_post_accumulate_grad_hook(lambda _, i=i: self._arrive(i))  # type: ignore[misc]

    def _build(self, order: Sequence[int]) -> None:
        self.buckets = [Bucket(self.params, members) for members in assign(self.params, order, self.limit)]
        self.place = {i: (bucket, k) for bucket in self.buckets for k, i in enumerate(bucket.members)}

    def prepare(self, reachable: set[Any] | None, joining: bool = False) -> None:
        """Begin a pass. ``reachable``: the leaves that its gradients reach, where the others are not to be waited for; None: all.

        ``joining``: ranks may have run out of data, and then have no order of gradients to tell. RuntimeError where gradients of the pass
        before are still missing. Of a captured pass all must be captured: what depends on values lets it run eagerly.
        """
        capturing = compiled.capturing()
        if capturing and (joining or self.find_unused or self.static or self.hook is not None):
            compiled.refuse("DistributedDataParallel with join(), find_unused_parameters, static_graph or a hook looks at each pass by itself")
        elif capturing:
            compiled.at_end(lambda: "it runs the forward pass of DistributedDataParallel without its backward pass" if self.expecting else "")
        if self.expecting and self.arrived:
            self._unfinished()
        if self.rebuild and not joining and len(self.arrived) == len(self.params):
            order = list(self.arrived)
            with compiled.apart():
                dist.broadcast(wrap(numbers := np.array(order, np.int64)), group_src=0, group=self.group)
            self._build(numbers.tolist())
            self.rebuild = False
        self._begin()
        if reachable is not None:
            self.used = np.array([p in reachable for p in self.params], np.int32)
            self._leave_out(np.flatnonzero(self.used == 0).tolist())
        elif self.learned is not None:
            self.left = [max(n, 1) for n in self.learned]
            self._leave_out([i for i, n in enumerate(self.learned) if n == 0])

    def _begin(self) -> None:
        self.arrived, self.next, self.expecting = [], 0, True
        if not self.static:
            self.used = None
        self.left = [1] * len(self.params)
        for bucket in self.buckets:
            bucket.reset()

    def _leave_out(self, numbers: Sequence[int]) -> None:
        for i in numbers:
            self._ready(i)

    def _unfinished(self) -> None:
        missing = [self.names[i] for i in sorted(set(range(len(self.params))) - set(self.arrived))]
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has "
            "parameters that were not used in producing loss. You can enable unused parameter detection by passing the keyword argument "
            "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward` function outputs "
            f"participate in calculating loss. Parameters which did not receive grad: {', '.join(missing)}"
        )

    def _arrive(self, i: int) -> None:
        if self.expecting and self.static and self.learned is None:
            self._learn(i)
        elif self.expecting:
            self._ready(i)

    def _learn(self, i: int) -> None:
        """Count gradients in the first pass of a static graph, and reduce them when it has ended."""
        if not self.arrived:
            self.left = [0] * len(self.params)
            queue_callback(self._learned)
        if i in self.arrived:
            self.arrived.remove(i)
        self.arrived.append(i)
        self.left[i] += 1

    def _learned(self) -> None:
        order, self.learned = self.arrived, self.left
        self.used = np.array([n > 0 for n in self.learned], np.int32)
        dist.all_reduce(wrap(self.used), dist.ReduceOp.MAX, self.group)
        self._begin()
        self._leave_out([*order, *(i for i, n in enumerate(self.learned) if n == 0)])

    def _ready(self, i: int) -> None:
        """Note that a gradient is there, or never will be; launch the buckets whose turn it is."""
        if self.left[i] == 0:
            raise RuntimeError(
                f"Expected to mark a variable ready only once: the parameter {self.names[i]} got its gradient twice in one pass, which happens "
                "where it is used in several checkpointed parts (then static_graph=True helps), or where backward() is called twice after one "
                "forward()"
            )
        self.left[i] -= 1
        if self.left[i]:
            return
        self.arrived.append(i)
        bucket, k = self.place[i]
        if not compiled.capturing():
            self._fill(i, bucket, k)
        bucket.pending -= 1
        while self.next < len(self.buckets) and self.buckets[self.next].pending == 0:
            self._send(self.next)
            self.next += 1
        if self.next == len(self.buckets):
            self._finish()

    def _fill(self, i: int, bucket: Bucket, k: int) -> None:
        """Copy a gradient into its bucket."""
        absent = self.learned[i] == 0 if self.learned is not None else self.used is not None and not self.used[i]
        if self.params[i]._grad is None or absent:
            bucket.parts[k].fill(0)
        else:
            source = memory(self.params[i]._grad)
            if source.ctypes.data != bucket.parts[k].ctypes.data or not source.flags.c_contiguous:
                np.copyto(bucket.parts[k], source)

    def _send(self, index: int) -> None:
        bucket = self.buckets[index]
        if self.hook is None and compiled.capturing():
            bucket.total = self._mean(bucket, index == len(self.buckets) - 1)
            return
        if self.hook is None:
            op = dist.ReduceOp.AVG if self.divisor is None else dist.ReduceOp.SUM
            bucket.work = dist.all_reduce(bucket.tensor, op, self.group, async_op=True)
            return
        params = [self.params[i] for i in bucket.members]
        state, hook = self.hook
        with no_grad():
            bucket.future = hook(state, dist.GradBucket(index, bucket.tensor, bucket.gradients(), params, index == len(self.buckets) - 1))

    def _mean(self, bucket: Bucket, last: bool) -> Callable[[], Tensor | None]:
        """Begin the mean of a bucket's gradients over all ranks, by kernels, which a captured program repeats; what returns it.

        While the ``last`` bucket travels there is nothing else to do. One rank's gradients are the means: then None is returned.
        """
        if dist.get_world_size(self.group) == 1:
            return lambda: None
        with no_grad():
            parts = [new_full(p.shape, 0.0, p.dtype) if p._grad is None else p._grad.detach() for p in (self.params[i] for i in bucket.members)]
            flat = cat([part.reshape(-1) for part in parts])
            whole = flat.float() if flat.dtype.is_half else flat
            if last:
                total = compiled.reduced(self.group, whole, dist.ReduceOp.AVG)
                return lambda: total
            return compiled.reduced_later(self.group, whole, dist.ReduceOp.AVG)

    def _hand_out(self, bucket: Bucket, taken: Callable[[], Tensor | None]) -> None:
        """Give the parameters the gradients of a captured pass."""
        at, bucket.total = 0, None
        with no_grad():
            total = taken()
            if total is not None:
                total = total.to(bucket.tensor.dtype)  # type: ignore[attr-defined]
            for p in (self.params[i] for i in bucket.members):
                if total is None:
                    p.grad = new_full(p.shape, 0.0, p.dtype) if p._grad is None else p._grad
                    continue
                part = total[at : at + p.numel()].view(p.shape)
                at += p.numel()
                if p._grad is None:
                    p.grad = part.clone()  # (two gradients in one memory would keep the step from being compiled)
                else:
                    p._grad.copy_(part)

    def _arrived_at(self, bucket: Bucket) -> None:
        """Wait for a bucket."""
        if bucket.work is not None:
            bucket.work.wait()
            if self.divisor is not None:
                with no_grad():
                    bucket.tensor.div_(self.divisor)
        elif bucket.future is not None:
            value = bucket.future.wait()
            value = value[0] if isinstance(value, (list, tuple)) else value
            if value is not bucket.tensor:
                with no_grad():
                    bucket.tensor.copy_(value.reshape(-1))

    def _finish(self) -> None:
        """Wait for all buckets, and give the parameters their gradients."""
        self.expecting = False
        if self.used is not None and not self.static:  # what no rank used keeps the gradient that it has
            dist.all_reduce(wrap(self.used), dist.ReduceOp.MAX, self.group)
        self._deliver(self.used)

    def _give(self, p: Tensor, part: np.ndarray) -> None:
        if p._grad is None or self.views:
            p.grad = wrap(part if self.views else part.copy(), p.dtype)
        else:
            np.copyto(memory(p._grad), part)

    def shadow(self) -> None:
        """Take part in a pass of ranks that have data, with gradients of 0; the parameters get the gradients that theirs get."""
        used = np.zeros(len(self.params), np.int32) if self.find_unused or self.used is None else self.used
        if self.static and self.learned is None:
            dist.all_reduce(wrap(used), dist.ReduceOp.MAX, self.group)
        for bucket in self.buckets:
            bucket.reset()
            bucket.flat.fill(0)
        for index in range(len(self.buckets)):
            self._send(index)
        if self.find_unused:
            dist.all_reduce(wrap(used), dist.ReduceOp.MAX, self.group)
        self._deliver(used if self.find_unused or self.static else None)

    def _deliver(self, used: np.ndarray | None) -> None:
        """Wait for all buckets, and give the parameters that some rank used their gradients."""
        for bucket in self.buckets:
            if bucket.total is not None:
                self._hand_out(bucket, bucket.total)
                continue
            self._arrived_at(bucket)
            for i, part in zip(bucket.members, bucket.parts, strict=True):
                if used is None or used[i]:
                    self._give(self.params[i], part)
