"""Every call, and training, on several ranks: one job for each module of checks and number of ranks."""

from __future__ import annotations

import json

import pytest

from . import checkpoints, compiled, dtypes, examples, gradients, layouts, meshes, parts, programs, sharded, sharing, training
from .jobs import job, needs_mpi

MODULES = (compiled, programs, training, sharded, gradients, examples)  # on two ranks and on three
ON_THREE = (dtypes, sharing, parts, checkpoints)  # which on two ranks find what they find on three: those are slow tests


def checks(module, *ranks, marks=()):
    names = [name for name in dir(module) if name.startswith("check_")]
    return [pytest.param(module.__name__.rpartition(".")[2], name, n, marks=marks) for name in names for n in ranks]


CHECKS = [
    *[case for module in MODULES for case in checks(module, 2, 3)],
    *[case for module in ON_THREE for case in checks(module, 3) + checks(module, 2, marks=pytest.mark.slow)],
    *checks(meshes, 4), *checks(layouts, 3),
]  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    found = {}

    def of(module, ranks):
        if (module, ranks) not in found:
            path = tmp_path_factory.mktemp("ranks") / module
            ended = job(ranks, "-m", "tests.distributed.on_ranks", module, str(path))
            assert ended.code == 0, ended.out
            found[module, ranks] = [json.loads(path.with_name(f"{module}.{r}").read_text()) for r in range(ranks)]
        return found[module, ranks]

    return of


@needs_mpi
@pytest.mark.parametrize(("module", "check", "ranks"), CHECKS)
def test_call(outcomes, module, check, ranks):
    failed = {r: of[check] for r, of in enumerate(outcomes(module, ranks)) if of[check]}
    assert not failed, "\n".join(f"rank {r}: {text}" for r, text in failed.items())
