"""What each rank is about to do, compared before anything is sent.

A call's key is all that must be the same on all ranks: its name, dtype, number of elements, root, reduction. A key that a group has not seen
yet is compared once; TORCH_DISTRIBUTED_DEBUG=DETAIL compares every call. The comparison goes by a communicator of its own, so that a
rank that compares never meets one that already sends: both wait, and the watch tells what each of them does.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from .failures import DifferentCallsError, listed
from .group import ProcessGroup
from .work import Task

DIGEST, TEXT = 16, 176  #: bytes


def agree(group: ProcessGroup, task: Task, key: tuple[Any, ...], always: bool = False) -> None:
    """Compare a call's key across the group where that is due. DifferentCallsError on all ranks where they differ."""
    known = (task.name, *key)
    if group.agreed(known) and not (always and group.size() > 1):
        return
    digest = hashlib.blake2b(repr((task.seq, *known)).encode(), digest_size=DIGEST).digest()
    own = np.frombuffer(digest + str(task).encode("utf-8", "replace")[:TEXT].ljust(TEXT), np.uint8)
    every = np.empty((group.size(), DIGEST + TEXT), np.uint8)
    group.agreement.Allgather(own, every)
    if (every[:, :DIGEST] != every[0, :DIGEST]).any():
        raise DifferentCallsError(_difference(group, every))
    group.known.add(known)


def _difference(group: ProcessGroup, every: np.ndarray) -> str:
    found: dict[bytes, tuple[str, list[int]]] = {}
    for rank, record in zip(group.ranks, every, strict=True):
        text = record[DIGEST:].tobytes().rstrip().decode("utf-8", "replace")
        found.setdefault(record[:DIGEST].tobytes(), (text, []))[1].append(rank)
    calls = "; ".join(f"{listed(ranks)}: {text}" for text, ranks in found.values())
    return f"Detected mismatch between collectives on ranks. {calls}. Nothing was sent: all ranks of a group make the same calls in the same order"


def agree_on_parts(group: ProcessGroup, task: str, given: list[int], taken: list[int]) -> None:
    """Compare how many elements each rank gives to each, and takes. DifferentCallsError on all ranks where that differs."""
    if group.size() == 1:
        wrong = [(0, 0)] if given != taken else []
        parts = [(given, taken)]
    else:
        parts = group.agreement.allgather((given, taken))
        wrong = [(i, j) for i in range(group.size()) for j in range(group.size()) if parts[i][0][j] != parts[j][1][i]]
    if wrong:
        i, j = wrong[0]
        raise DifferentCallsError(
            f"Detected mismatch between collectives on ranks. {task}: rank {group.ranks[i]} gives {parts[i][0][j]} elements to rank "
            f"{group.ranks[j]}, which takes {parts[j][1][i]} from it. Nothing was sent"
        )
