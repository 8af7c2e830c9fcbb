"""``python -m tests.distributed.on_ranks NAME FILE``: run every check of a module on each rank, which writes to FILE.rank what came of each.

A check that takes something is given `pytest.MonkeyPatch`.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from datetime import timedelta
from inspect import signature
from pathlib import Path

import pytest

import autograd_nb.distributed as dist


def main(name, file):
    module = importlib.import_module(f"tests.distributed.{name}")
    outcomes = {}
    dist.init_process_group("gloo", timeout=timedelta(seconds=200))
    for check in [n for n in dir(module) if n.startswith("check_")]:
        try:
            run = getattr(module, check)
            with pytest.MonkeyPatch.context() as patch:
                run(patch) if signature(run).parameters else run()
            outcomes[check] = ""
        except Exception:
            outcomes[check] = traceback.format_exc()
    Path(f"{file}.{dist.get_rank()}").write_text(json.dumps(outcomes))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
