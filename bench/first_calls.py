"""What the first calls of compiled training steps cost: ``python -m bench.first_calls``, in processes of their own.

Cold: nothing has been compiled, the kernel cache is empty. Warm: another process has run the same step. A first call runs the
function eagerly (with kernels of its own), makes the program, and compiles its fused kernels. ``--kernels 10`` shows which took longest.
Calls are timed by the clock, stages (`bench.cold.stages`) by the processor; whole processes of user programs are in ``python -m bench.cold``.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile

from bench.measure import run

CASES = (("MLP 8-16-2", 3.0), ("two-branch net", 15.0), ("transformer 4×128", 25.0))
WARM = 1.0

CHILD = """
import json
from time import perf_counter
from bench.cold.stages import watch
watching = watch()
begin = perf_counter()
import autograd_nb as ag
imported = perf_counter() - begin
ag.set_num_threads(1)
from bench.cases import CASES
step = ag.compile(next(c for c in CASES if WHICH in c.name).build(ag).step)
calls = []
for _ in range(4):
    before = perf_counter()
    step()
    calls.append(perf_counter() - before)
print(json.dumps({"import": imported, "calls": calls, "captured": len(step.programs), **watching.report()}))
"""


def child(case: str, cache: str) -> dict:
    """The times of a process that calls the case's step."""
    return json.loads(run(CHILD.replace("WHICH", repr(case)), AUTOGRAD_NB_CACHE_DIR=cache).splitlines()[-1])  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="cases whose name contains one of them; all by default")
    parser.add_argument("--kernels", type=int, default=0, help="show this many of those that took longest to compile")
    given = parser.parse_args()
    print(f"{'case':24}{'cache':7}{'import':>8}{'4 calls':>9}{'bound':>7}{'programs':>10}{'compiled':>16}{'loaded':>16}   seconds of each call")
    for case, bound in CASES:
        if given.words and not any(w.lower() in case.lower() for w in given.words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            for kind, limit in (("cold", bound), ("warm", WARM)):
                found = child(case, os.path.join(folder, "cache"))
                total = sum(found["calls"])
                made, spent = found["kernels"], found["stages"]
                print(
                    f"{case:24}{kind:7}{found['import']:8.2f}{total:9.2f}{limit:6.0f}{'!' if total > limit else ' '}"
                    f"{spent.get('program', 0):10.2f}{len(made):6d} {sum(k['seconds'] for k in made):7.2f} s"
                    f"{found['loaded']:6d} {spent.get('loading', 0):7.3f} s   {' '.join(f'{t:.3f}' for t in found['calls'])}"
                )
                for k in made[: given.kernels]:
                    print(f"{k['seconds']:10.2f} s  {k['name']}({', '.join(k['types'])})")


if __name__ == "__main__":
    main()
