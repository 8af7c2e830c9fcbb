"""A part of a model whose parameters are collected from all ranks together, and whose gradients are scattered together.

Between the two passes, and between steps, a rank has its own rows of each parameter. The memory of the whole parameters keeps its address, so that
what the graph has saved finds the values again when they are collected a second time; meanwhile the system has its pages.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import distributed as dist
from ...autograd.torch_function import DisableTorchFunctionSubclass
from ...codegen.processor import LINE
from ...distributed.tensor import DeviceMesh, Placement, Replicate, Shard, Sharding, local_of
from ...dtypes import dtype, float32
from ...graph.engine import queue_callback
from ...graph.modes import no_grad, state
from ...ops.core.foreign import asked
from ...ops.core.registry import OPS
from ...shapes import layout_of
from ...tensor import Tensor, make, ndarray, wrap
from ..parameter import Parameter


class _Member:
    """One parameter of a unit: the rows that the rank keeps, and the whole one that modules see in their passes.

    ``local``: how its ranks split what each of them had. ``layers``: the layout of that, where it is in parts among other ranks already; ``sharding``: the
    layout of a rank's rows among all of them.
    """

    def __init__(self, p: Tensor, places: list[tuple[Any, str]], group: Any, mesh: DeviceMesh | None, d: dtype):
        self.p, self.places, self.dtype = p, places, d
        self.layers: Sharding | None = p.__dict__.get("_sharding")
        self.shape = p.shape if self.layers is None else p._layout.shape
        self.local = Sharding(group, self.shape, mesh=mesh if mesh is None or mesh.ndim == 1 else None)
        self.sharding = self.local if mesh is None else _among(mesh, self.local, self.layers)
        self.sharding.unit = True
        rows = self.local.part(p.detach() if self.layers is None else local_of(p))
        if p.is_meta:
            self.p = Parameter(asked.meta().on_meta(rows), p.requires_grad)
            self.show(False)
        else:
            with DisableTorchFunctionSubclass():
                p.data = OPS["clone"].call(rows)
        self.sharding.mark(self.p)
        self.size = self.local.rows * self.local.inner  # elements that a rank sends
        self.full: Any = None

    def renew(self) -> None:
        """Take over another parameter that the module has been given meanwhile, by ``load_state_dict(assign=True)``. RuntimeError for one of other rows."""
        module, name = self.places[0]
        found = module._parameters.get(name)
        if found is self.p or found is self.full or found is None:
            return
        if found._layout.shape != self.p._layout.shape or found.dtype is not self.p.dtype:
            raise RuntimeError(
                f"the parameter {name!r} is now {found.dtype.name}{list(found._layout.shape)}, but this rank's rows are {self.p.dtype.name}"
                f"{list(self.p._layout.shape)}"
            )
        self.p = self.sharding.mark(found)

    def show(self, whole: bool) -> None:
        """Let the modules have the whole parameter, or the rank's rows again."""
        for module, name in self.places:
            module._parameters[name] = self.full if whole else self.p


class Unit:
    """Parameters that are collected and scattered together; the hooks of `fully_shard` tell it what the modules do."""

    def __init__(
        self, places: Sequence[tuple[Tensor, list[tuple[Any, str]]]], group: Any, mesh: DeviceMesh | None, lets_go: bool | None, param_dtype: dtype | None,
        reduce_dtype: dtype | None,
    ):  # fmt: skip
        self.group: Any = group
        self.copies: list[Any] = [] if mesh is None else mesh.get_all_groups()[:-1]  # the groups of ranks that keep the same rows
        self.lets_go: bool | None = lets_go
        self.reduce_dtype: dtype | None = reduce_dtype
        self.sync = self.lets_go_after = self.outermost = True
        self.members: list[_Member] = [
            _Member(p, where, group, mesh, (param_dtype or p.dtype) if p.dtype.is_floating_point else p.dtype) for p, where in places
        ]
        self.stamp: tuple[int, ...] | None = None  # the versions of the rows that were collected; None: nothing is there
        self.collected: tuple[int, ...] = ()
        self.depth: int = 0
        self.parts: list[Unit] = []  # of the modules within
        self.used: set[int] | None = None  # which of them the last outputs depend on, where the outermost module has looked
        self.fresh = False  # whether it has not looked since the last pass here
        self.queued: bool = False  # whether a backward pass goes on
        self.sent: bool = False  # whether this unit's gradients were sent in it
        self.missing: set[int] = set()
        self.works: list[tuple[Any, np.ndarray, list[_Member]]] = []
        ends = np.cumsum([0, *[-(-m.local.shape[0] * m.local.inner * m.dtype.itemsize // LINE) * LINE for m in self.members]])
        self.memory: mmap.mmap = mmap.mmap(-1, max(int(ends[-1]), mmap.PAGESIZE))
        whole = np.frombuffer(self.memory, np.uint8)
        for k, m in enumerate(self.members):
            n = m.local.shape[0] * m.local.inner
            data = whole[ends[k] : ends[k] + n * m.dtype.itemsize].view(m.dtype.carrier)
            m.full = Parameter(make(data, layout_of(m.shape, None, m.dtype), [0, 0]), requires_grad=m.p.requires_grad)
            if m.layers is not None:
                m.layers.mark(m.full)
            if m.p.requires_grad:
                m.full.register_post_accumulate_grad_hook(lambda _, k=k: self._arrive(k))

    # ---- parameters
    def collect(self) -> None:
        """Bring all ranks' rows together, where they are not there as they are now."""
        for m in self.members:
            m.renew()
        now = tuple([x for m in self.members for x in (id(m.p), m.p._version_[0])])
        if self.stamp == now:
            return
        with no_grad():
            sent = [_padded(m) for m in self.members]
        own = np.concatenate(sent) if sent else np.empty(0, np.uint8)
        every = np.empty((dist.get_world_size(self.group), own.size), np.uint8)
        if own.size:
            dist.all_gather_into_tensor(wrap(every), wrap(own), self.group)
        at = 0
        for m, part in zip(self.members, sent, strict=True):
            data = m.full._data.view(np.uint8)
            np.copyto(data, every[:, at : at + part.size].reshape(-1)[: data.size])
            at += part.size
            if self.collected != now:  # what a graph has saved before is not there any more
                m.full._version_[0] += 1
        self.stamp = self.collected = now

    def release(self) -> None:
        """Let go of the other ranks' rows."""
        if self.stamp is not None:
            self.stamp = None
            self.memory.madvise(mmap.MADV_DONTNEED)

    def enter(self) -> None:
        """Begin a forward pass: the modules have whole parameters."""
        self.depth += 1
        self.collect()
        for m in self.members:
            m.show(True)

    def leave(self) -> None:
        """End a forward pass."""
        if not self.depth:
            return
        self.depth -= 1
        if self.depth:
            return
        for m in self.members:
            m.show(self.queued)
        if (self.lets_go if self.lets_go is not None else not self.outermost) or not state.grad:
            self.release()

    def look(self, leaves: set[Any]) -> None:
        """Tell this unit and its parts which leaves the outputs depend on: ranks send their gradients in one order, whichever parameters each uses.

        What runs only in the backward pass, for the second time, is not among them: such a part waits for all of its parameters.
        """
        for unit in (self, *self.parts):
            unit.used = {k for k, m in enumerate(unit.members) if m.full in leaves} if unit.fresh else None
            unit.fresh = False

    # ---- gradients
    def before_backward(self) -> None:
        """Bring the parameters together for a backward pass, at the end of which gradients are there."""
        if self.queued:
            self.collect()
            self._show()
            return
        self._begin()
        self.missing = {k for k, m in enumerate(self.members) if m.p.requires_grad and (self.used is None or k in self.used)}
        self.collect()
        self._show()
        if not self.missing:  # this rank has used none of them: the others wait for its zeros
            self._reduce()

    def _show(self) -> None:
        """Let the modules have whole parameters while a backward pass goes on: a part of the forward pass may be computed again without its hooks."""
        for m in self.members:
            m.show(True)

    def _begin(self) -> None:
        self.queued, self.sent, self.missing = True, False, set()
        queue_callback(self._finish)

    def _arrive(self, k: int) -> None:
        if not self.queued:  # a parameter that was used outside of the module
            self._begin()
        if k in self.missing:
            self.missing.discard(k)
            if not self.missing:
                self._reduce()

    def _reduce(self) -> None:
        """Send all parameters' gradients, zeros for those that have none on this rank, and which ones those are: others may have them."""
        if not self.sync or (self.sent and all(m.full._grad is None for m in self.members)):
            return
        self.sent = True
        kinds: dict[dtype, list[_Member]] = {}
        for m in self.members:
            if m.p.requires_grad:
                kinds.setdefault(self.reduce_dtype or (float32 if m.dtype.is_half else m.dtype), []).append(m)
        ranks = dist.get_world_size(self.group)
        for d, members in kinds.items():
            d = float32 if d.is_half else d
            sent = np.zeros((ranks, sum(m.size + 1 for m in members)), d.np)  # a one behind each that is there
            at = 0
            for m in members:
                if m.full._grad is not None:
                    padded = np.zeros(ranks * m.size, d.np)
                    g = ndarray(local_of(m.full._grad).detach().to(d)).reshape(-1)  # type: ignore[attr-defined]
                    padded[: g.size] = g
                    sent[:, at : at + m.size] = padded.reshape(ranks, m.size)
                    sent[:, at + m.size] = 1
                    m.full.grad = None
                at += m.size + 1
            own = np.empty(at, d.np)
            work = dist.reduce_scatter_tensor(wrap(own), wrap(sent), dist.ReduceOp.AVG, self.group, async_op=True)
            for copies in self.copies:
                work = dist.all_reduce(wrap(own), dist.ReduceOp.AVG, copies, async_op=True)  # behind the one before
            self.works.append((work, own, members))

    def _finish(self) -> None:
        """Wait for the gradients, and give each parameter that of its rows; none to those that no rank has used."""
        self._reduce()
        self.queued, self.missing = False, set()
        for m in self.members if not self.depth else ():
            m.show(False)
        for work, own, members in self.works:
            work.wait()
            at = 0
            for m in members:
                n = m.p._layout.size
                g = wrap(own[at : at + n].copy().reshape(m.p._layout.shape)).to(m.p.dtype)  # type: ignore[attr-defined]
                there = own[at + m.size] > 0
                at += m.size + 1
                if not there:
                    continue
                if m.p._grad is None:
                    m.p.grad = m.sharding.mark(g)
                else:
                    with no_grad():
                        local_of(m.p._grad).add_(g)  # type: ignore[attr-defined]
        self.works = []
        if self.lets_go_after:
            self.release()


def _among(mesh: DeviceMesh, local: Sharding, layers: Sharding | None) -> Sharding:
    """Return the layout of a parameter whose rows are split along the last dim of a mesh, and which ranks along the others keep alike.

    One that is in parts already is so along other dims of a larger mesh: these come first, as the rows are those of such a part.
    """
    placements = [*[Replicate()] * (mesh.ndim - 1), Shard(0)]
    if layers is None:
        return local if mesh.ndim == 1 else Sharding.placed(mesh, local.whole, placements)
    joint, own, others = mesh.beside(layers.mesh)
    chosen: list[Placement] = [Replicate()] * joint.ndim
    for k, placement in (*zip(own, placements, strict=True), *zip(others, layers.placements, strict=True)):
        chosen[k] = placement
    first = others if any(placement.is_shard(0) for placement in layers.placements) else []
    return Sharding.placed(joint, layers.whole, chosen, (*first, *[k for k in range(joint.ndim) if k not in first]))


def _padded(m: _Member) -> np.ndarray:
    """Return the bytes of a rank's rows, as many as those of the rank that has most."""
    part = local_of(m.p).to(m.dtype).contiguous()  # type: ignore[attr-defined]
    found = np.zeros(m.size, m.dtype.carrier)
    found[: part.numel()] = part._data[: part.numel()]
    return found.view(np.uint8)
