"""Collectives on one flat tensor of which each rank has a part, of whatever size: what optimizers with shared states send.

They are ours alone: PyTorch's have parts of one size, and would send the largest size for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from ..tensor import Tensor
from .buffers import as_bytes, average, is_summable, memory, operation, store, summable, typed
from .collectives import call, said
from .group import ProcessGroup
from .mpi import mpi
from .reduce_op import ReduceOp
from .thread import through
from .work import Work


def _begin(sizes: Sequence[int]) -> list[int]:
    return [0, *accumulate(sizes)][:-1]


def all_gather_parts(whole: Tensor, sizes: Sequence[int], group: ProcessGroup) -> Work:
    """Begin to give every rank all parts of ``whole``, of which it has its own. ``sizes``: the elements of each rank's."""
    MPI, flat = mpi(), memory(whole)
    each = flat.itemsize
    places = [n * each for n in sizes], [n * each for n in _begin(sizes)]

    def run() -> None:
        through(group.comm.Iallgatherv(MPI.IN_PLACE, [as_bytes(flat), places, MPI.BYTE]))

    key = whole.dtype.name, tuple(sizes)
    work = call(group, "all_gather_parts", f"{said(whole)} in {list(sizes)}", key, run, [whole], True)
    assert work is not None
    return work


def reduce_scatter_parts(whole: Tensor, sizes: Sequence[int], group: ProcessGroup) -> Work:
    """Begin to give every rank the mean over all ranks of its part of ``whole``, whose other parts stay as they are."""
    MPI, flat, rank = mpi(), memory(whole), group.rank()
    begin = _begin(sizes)[rank]

    def run() -> None:
        given = flat if is_summable(flat) else summable(flat)
        own = np.empty(sizes[rank], given.dtype)
        through(group.comm.Ireduce_scatter(typed(MPI, given), typed(MPI, own), list(sizes), operation(MPI, ReduceOp.SUM, given)))
        average(own, group.size())
        store(flat[begin : begin + own.size], own)

    key = whole.dtype.name, tuple(sizes)
    work = call(group, "reduce_scatter_parts", f"{said(whole)} in {list(sizes)}", key, run, [whole], True)
    assert work is not None
    return work


