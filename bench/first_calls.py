"""What the first calls of compiled training steps cost: ``python -m bench.first_calls``, in processes of their own.

Cold: nothing has been compiled, the kernel cache is empty. Warm: another process has run the same step. A first call runs the
function eagerly (with kernels of its own), makes the program, and compiles its fused kernels. ``--kernels 10`` shows which took longest.
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
import json, sys
from time import perf_counter
begin = perf_counter()
import autograd_nb as ag
imported = perf_counter()
from autograd_nb.codegen.build import compilation
import autograd_nb.compiler.session as session
made, loaded, programs = [], [], []
def timed(function, into, label):
    def call(*args):
        start = perf_counter()
        found = function(*args)
        if found is not None:
            into.append((perf_counter() - start, label(*args)))
        return found
    return call
compilation._compile = timed(compilation._compile, made, lambda f, types, *_: f"{f.__module__.rpartition('.')[2]}.{f.__name__}({', '.join(types)})")
compilation._load = timed(compilation._load, loaded, lambda key: "")
session.Session.variant = timed(session.Session.variant, programs, lambda *_: "")
ag.set_num_threads(1)
from bench.cases import CASES
step = ag.compile(next(c for c in CASES if WHICH in c.name).build(ag).step)
start = perf_counter()
calls = []
for _ in range(4):
    before = perf_counter()
    step()
    calls.append(perf_counter() - before)
print(json.dumps({"import": imported - begin, "calls": calls, "made": made, "loaded": [t for t, _ in loaded],
                  "programs": [t for t, _ in programs], "captured": len(step.programs)}))
"""


def child(case: str, cache: str) -> dict:
    """The times of a process that calls the case's step."""
    return json.loads(run(CHILD.replace("WHICH", repr(case)), AUTOGRAD_NB_CACHE_DIR=cache).splitlines()[-1])  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="cases whose name contains one of them; all by default")
    parser.add_argument("--kernels", type=int, default=0, help="show this many of those that took longest to compile")
    given = parser.parse_args()
    print(
        f"{'case':24}{'cache':7}{'import':>8}{'4 calls':>9}{'bound':>7}{'programs':>10}{'compiled':>16}{'loaded':>16}   seconds of each call"
    )
    for case, bound in CASES:
        if given.words and not any(w.lower() in case.lower() for w in given.words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            for kind, limit in (("cold", bound), ("warm", WARM)):
                found = child(case, os.path.join(folder, "cache"))
                total = sum(found["calls"])
                made, loaded = [t for t, _ in found["made"]], found["loaded"]
                print(
                    f"{case:24}{kind:7}{found['import']:8.2f}{total:9.2f}{limit:6.0f}{'!' if total > limit else ' '}"
                    f"{sum(found['programs']):10.2f}{len(made):6d} {sum(made):7.2f} s{len(loaded):6d} {sum(loaded):7.3f} s"
                    f"   {' '.join(f'{t:.3f}' for t in found['calls'])}"
                )
                for t, name in sorted(found["made"], reverse=True)[: given.kernels]:
                    print(f"{t:10.2f} s  {name}")


if __name__ == "__main__":
    main()
