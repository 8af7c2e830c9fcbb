"""A hook of `DistributedDataParallel` that sends gradients as products of two thin matrices: PowerSGD.

A gradient M of n × m is replaced by P·Qᵀ with n × r and m × r, found by one step of the power method from the Q of the pass before:
P = mean of M·Q over the ranks, made orthogonal, Q = mean of Mᵀ·P. What is lost, M − P·Qᵀ, is added to the next gradient (error feedback).
Source: https://arxiv.org/abs/1905.13727 and https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html#powersgd-communication-hook
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import Tensor, ndarray, wrap
from .collectives import all_reduce
from .comm_hooks import GradBucket, Hook, allreduce_hook
from .futures import Future
from .group import default_group
from .reduce_op import ReduceOp


class PowerSGDState:
    """The memory of PowerSGD between passes: how much it compresses, the errors so far, and the last factors.

    ``matrix_approximation_rank``: r. ``start_powerSGD_iter``: gradients of so many passes are sent whole first. ``min_compression_rate``: those
    of which r·(n + m) · this is more than n·m are sent whole always. ``use_error_feedback``: what is lost is added to the next gradient.
    ``warm_start``: begin from the last Q, else from random numbers. ``orthogonalization_epsilon``: added to the norms of columns.

    Errors: ValueError where feedback or warm start are used with ``start_powerSGD_iter`` ≤ 1, as buckets are laid out anew in the second pass.
    """

    process_group: Any
    matrix_approximation_rank: int
    start_powerSGD_iter: int

    def __init__(
        self, process_group: Any, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1000, min_compression_rate: float = 2,
        use_error_feedback: bool = True, warm_start: bool = True, orthogonalization_epsilon: float = 0, random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000, batch_tensors_with_same_shape: bool = False,
    ) -> None:  # fmt: skip
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can only be applied after the "
                "first two iterations in DDP."
            )
        self.process_group, self.matrix_approximation_rank, self.start_powerSGD_iter = process_group, matrix_approximation_rank, start_powerSGD_iter
        self.min_compression_rate: float
        self.use_error_feedback: bool
        self.warm_start: bool
        self.orthogonalization_epsilon: float
        self.rng: np.random.RandomState
        self.iter: int
        self.min_compression_rate, self.use_error_feedback, self.warm_start = min_compression_rate, use_error_feedback, warm_start
        self.orthogonalization_epsilon, self.rng = orthogonalization_epsilon, np.random.RandomState(random_seed)
        self.error_dict: dict[int, np.ndarray] = {}
        self.q_memory_dict: dict[tuple[int, int], np.ndarray] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count the pass when its last bucket comes."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """Return (elements before over those after compression, before, after)."""
        after = self.total_numel_after_compression
        return (self.total_numel_before_compression / after if after else 0.0, self.total_numel_before_compression, after)


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """Return the future of the mean over all ranks, of which large gradients are of rank ``matrix_approximation_rank``."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if bucket.buffer().dtype.is_half:
        return _widened(powerSGD_hook, state, bucket)
    parts = [ndarray(g) for g in bucket.gradients()]
    return _compressed(state, bucket, [_matrix(part) for part in parts])


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """Return the future of the mean over all ranks, where the whole bucket is compressed as one square matrix, padded by zeros."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if bucket.buffer().dtype.is_half:
        return _widened(batched_powerSGD_hook, state, bucket)
    flat = ndarray(bucket.buffer()).reshape(-1)
    side = int(np.ceil(np.sqrt(flat.size)))
    square = np.zeros(side * side, flat.dtype)
    square[: flat.size] = flat
    future = _compressed(state, bucket, [square.reshape(side, side)], always=True)

    def back(done: Future) -> Tensor:
        done.value()
        np.copyto(flat, square[: flat.size])
        return bucket.buffer()

    return future.then(back)


def _widened(hook: Hook, state: PowerSGDState, bucket: GradBucket) -> Future:
    """Run a hook on gradients of float16 or bfloat16 as float32, and round what comes of it."""
    buffer = bucket.buffer()
    wide: Tensor = buffer.float()  # type: ignore[attr-defined]
    gradients, at = [], 0
    for g in bucket.gradients():
        gradients.append(wide[at : at + g.numel()].view(g.shape))  # type: ignore[attr-defined]
        at += g.numel()
    of = GradBucket(bucket.index(), wide, gradients, bucket.parameters(), bucket.is_last())
    return hook(state, of).then(lambda f: buffer.copy_(f.value()))  # type: ignore[attr-defined]


def _matrix(part: np.ndarray) -> np.ndarray:
    return part.reshape(part.shape[0], -1) if part.ndim > 1 else part.reshape(-1, 1)


def _worth(state: PowerSGDState, m: np.ndarray) -> bool:
    rows, columns = m.shape
    return columns > 1 and (rows + columns) * state.matrix_approximation_rank * state.min_compression_rate < rows * columns


def _compressed(state: PowerSGDState, bucket: GradBucket, matrices: list[np.ndarray], always: bool = False) -> Future:
    """Begin to reduce the matrices in place, which are views of the bucket but where it is one square."""
    group, index = state.process_group if state.process_group is not None else default_group(), bucket.index()
    large = [k for k, m in enumerate(matrices) if always or _worth(state, m)]
    rank, feedback = state.matrix_approximation_rank, state.use_error_feedback
    if feedback:
        lost = state.error_dict.setdefault(index, np.zeros(sum(m.size for m in matrices), matrices[0].dtype))
        errors = np.split(lost, np.cumsum([m.size for m in matrices])[:-1])
        for k in large:
            matrices[k] += errors[k].reshape(matrices[k].shape)
    given = {k: matrices[k].copy() for k in large}
    rest = [m for k, m in enumerate(matrices) if k not in large]
    qs = {k: _orthogonal(_first_q(state, (index, k), matrices[k], rank), state.orthogonalization_epsilon) for k in large}
    whole = np.concatenate([m.reshape(-1) for m in rest]) if rest else np.zeros(0, matrices[0].dtype)
    state.total_numel_before_compression += sum(m.size for m in matrices)
    state.total_numel_after_compression += whole.size + sum(rank_of(q) * sum(matrices[k].shape) for k, q in qs.items())
    ps = _joined([given[k] @ qs[k] for k in large], matrices[0].dtype)
    first = all_reduce(wrap(np.concatenate([whole, ps])) if whole.size + ps.size else wrap(np.zeros(1)), ReduceOp.AVG, group, async_op=True)

    def with_p(done: Future) -> Tensor:
        means = ndarray(done.value()[0])
        _parted(means[: whole.size], rest)
        at, found = whole.size, {}
        for k in large:
            n = given[k].shape[0] * rank_of(qs[k])
            found[k] = _orthogonal(means[at : at + n].reshape(given[k].shape[0], -1).copy(), state.orthogonalization_epsilon)
            at += n
        back = wrap(_joined([given[k].T @ found[k] for k in large], matrices[0].dtype))
        if large:
            all_reduce(back, ReduceOp.AVG, group)
        at, values = 0, ndarray(back)
        for k in large:
            n = given[k].shape[1] * rank_of(found[k])
            q = values[at : at + n].reshape(given[k].shape[1], -1)
            at += n
            state.q_memory_dict[index, k] = q.copy()
            np.matmul(found[k], q.T, out=matrices[k])
            if feedback:
                np.subtract(given[k], matrices[k], out=errors[k].reshape(matrices[k].shape))
        return bucket.buffer()

    state.maybe_increase_iter(bucket)
    if first is None:
        raise RuntimeError("powerSGD_hook: this rank does not belong to the group")
    return first.get_future().then(with_p)


def rank_of(factor: np.ndarray) -> int:
    """Return how many columns a factor has."""
    return factor.shape[1]


def _first_q(state: PowerSGDState, place: tuple[int, int], m: np.ndarray, rank: int) -> np.ndarray:
    kept = state.q_memory_dict.get(place) if state.warm_start else None
    return kept if kept is not None else state.rng.standard_normal((m.shape[1], min(rank, *m.shape))).astype(m.dtype)


def _orthogonal(m: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the matrix with orthonormal columns, by Gram and Schmidt in their order."""
    m = m.copy()
    for i in range(m.shape[1]):
        column = m[:, i]
        column /= np.sqrt((column * column).sum()) + (epsilon or np.finfo(m.dtype).tiny)
        m[:, i + 1 :] -= np.outer(column, column @ m[:, i + 1 :])
    return m


def _joined(matrices: list[np.ndarray], d: Any) -> np.ndarray:
    return np.concatenate([m.reshape(-1) for m in matrices]) if matrices else np.zeros(0, d)


def _parted(flat: np.ndarray, matrices: list[np.ndarray]) -> None:
    at = 0
    for m in matrices:
        np.copyto(m, flat[at : at + m.size].reshape(m.shape))
        at += m.size
