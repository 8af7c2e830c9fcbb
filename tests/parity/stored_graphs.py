"""Graphs of ops: what `trace` gives, and what `load_graph` makes of its file, come to what the op does, with other memory than the example's.

``python -m tests.parity.stored_graphs [--part K N] [name…]`` walks the ops of PyTorch's database, or one of N parts of them, each with a few
samples and those that have nothing in them, and prints what differs. With NUMBA_DISABLE_JIT=1 it is much quicker.
"""

from __future__ import annotations

import collections
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

import autograd_nb as ag
from autograd_nb.compiler import ir
from autograd_nb.compiler.trace.graph import GraphError

from . import opdb

FULL, EMPTY = 2, 2  #: samples with elements, and without, of an op
MOST = 3_000  #: elements of a sample (kernels run as Python)
UNWRITTEN = ("empty", "new_empty")  # how the names of ops begin that give memory as it is
RANDOM = opdb.RANDOM | {"multi_head_attention_forward"}


def samples(op: Any) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield the arguments of a few calls."""
    left = {True: FULL, False: EMPTY}
    for sample in op.sample_inputs("cpu", torch.float32, requires_grad=False):
        try:
            args, options = opdb.ours([sample.input, *sample.args]), opdb.ours(sample.kwargs)
        except opdb.Unsupported:
            continue
        sizes = [t.numel() for t in opdb.leaves([args, options]) if isinstance(t, ag.Tensor)]
        if sizes and left[0 not in sizes] and max(sizes) <= MOST:
            left[0 not in sizes] -= 1
            yield args, options


def of_tensors(function: Any, args: list[Any], options: dict[str, Any]) -> tuple[Any, list[ag.Tensor]]:
    """Return the call as a function of its tensors alone, and these."""
    tensors: list[ag.Tensor] = []

    def hole(value: Any) -> Any:
        if not isinstance(value, ag.Tensor):
            return value
        tensors.append(value)
        return _Hole(len(tensors) - 1)

    args, options = tree_map(hole, args), tree_map(hole, options)

    def call(*given: ag.Tensor) -> Any:
        def filled(value: Any) -> Any:
            return given[value.number] if isinstance(value, _Hole) else value

        return function(*tree_map(filled, args), **tree_map(filled, options))

    return call, tensors


class _Hole:
    """The place of a tensor among arguments."""

    def __init__(self, number: int):
        self.number = number


def same(found: list[Any], wanted: list[Any]) -> None:
    """Raise AssertionError where results differ."""
    assert len(found) == len(wanted), (len(found), len(wanted))
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.dtype is theirs.dtype and mine.stride() == theirs.stride(), (mine, theirs)
        pair = [np.array(t.resolve_neg().tolist()) for t in (mine, theirs)]
        np.testing.assert_allclose(*pair, rtol=1e-5, atol=1e-5)  # (LAPACK rounds by where matrices lie)


def walk(op: Any, file: Path, counts: collections.Counter[str]) -> None:
    """Compare the graphs of an op's samples with calls of it."""
    function = opdb.find(op)
    for args, options in samples(op):
        call, tensors = of_tensors(function, args, options)
        try:
            wanted = [t for t in opdb.leaves(call(*[t.clone() for t in tensors])) if isinstance(t, ag.Tensor)]
            graph = ag.trace(call, *tensors, names=[f"x{k}" for k in range(len(tensors))])
        except opdb.ERRORS:  # which `opdb` compares; or values are read
            counts["not traced"] += 1
            continue
        fed = {f"x{k}": t.clone() for k, t in enumerate(tensors)}
        same(graph.run(feed=fed), wanted)
        counts["traced"] += 1
        try:
            graph.save(file)
        except GraphError:  # random numbers, and tests of values
            continue
        same(ag.load_graph(file).run(feed=fed), wanted)
        counts["saved"] += 1


def main(words: list[str]) -> int:
    part = 0, 1
    if "--part" in words:
        at = words.index("--part")
        part, words = (int(words[at + 1]), int(words[at + 2])), [*words[:at], *words[at + 3 :]]
    warnings.simplefilter("ignore")
    ir.settings.verifies = True
    counts: collections.Counter[str] = collections.Counter()
    ops = [op for op in op_db if torch.float32 in op.dtypes and not opdb.outside(opdb.title(op)) and opdb.find(op) is not None]
    with tempfile.TemporaryDirectory() as folder:
        for op in ops[part[0] :: part[1]]:
            if (words and op.name not in words) or op.name.startswith(UNWRITTEN) or any(name in op.name for name in RANDOM):
                continue
            try:
                walk(op, Path(folder, "graph"), counts)
            except Exception as error:
                counts["wrong"] += 1
                print(f"{opdb.title(op)}: {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
    print(", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    return int(counts["wrong"] > 0 or not counts["saved"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
