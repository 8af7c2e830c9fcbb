"""The cases of a folder as pytest-benchmark tests: ``pytest bench --benchmark-only -k "softmax and quick"``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bench.case import COMPILED, OURS, PEERS, compare, missing, observe, peers_of, ready
from bench.cases import CASES

OFFERED = [OURS, COMPILED, *(p for p in PEERS if p != "torch.compile")]


def suite(name: str) -> Callable:
    """A test of every case of the suite with every peer that knows it; `quick` is part of the id of quick ones."""
    pairs = [
        pytest.param(case, peer, id=f"{case.name} | {'quick' if case.quick else 'long'} | {peer}")
        for case in CASES if case.suite == name for peer in peers_of(case, OFFERED)
    ]  # fmt: skip

    @pytest.mark.filterwarnings("default")  # other libraries' are none of ours
    @pytest.mark.benchmark(max_time=0.2, min_rounds=3)
    @pytest.mark.parametrize("case, peer", pairs)
    def test_case(benchmark: Any, case: Any, peer: str) -> None:
        if peer in PEERS and (reason := missing(peer)):
            pytest.skip(reason)
        if PEERS.get(peer) == "torch":
            pytest.importorskip("torch").set_num_threads(1)
        program = ready(case, peer)
        seen = observe(case, program)
        if peer != OURS:
            compare(case, observe(case, ready(case, OURS)), seen, f"{OURS} and {peer}")
        benchmark.group = case.name
        benchmark(program.step)

    return test_case
