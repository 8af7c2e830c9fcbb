"""``python -m tests.distributed.on_ranks NAME FILE``: run every check of a module on each rank, which writes to FILE.rank what came of each."""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from datetime import timedelta
from pathlib import Path

import autograd_nb.distributed as dist


def main(name, file):
    module = importlib.import_module(f"tests.distributed.{name}")
    outcomes = {}
    dist.init_process_group("gloo", timeout=timedelta(seconds=200))
    for check in [n for n in dir(module) if n.startswith("check_")]:
        try:
            getattr(module, check)()
            outcomes[check] = ""
        except Exception:
            outcomes[check] = traceback.format_exc()
    Path(f"{file}.{dist.get_rank()}").write_text(json.dumps(outcomes))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
