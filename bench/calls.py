"""How many Python functions are called: ``python -m bench.calls``, in processes of their own, with a warm kernel cache.

Counts do not depend on the machine or on what else it does, so small differences show. Counted are functions of this package, in all
threads; those of others (a first call imports SciPy and has Numba load its machine code) stand beside. ``--files 10`` tells in which
files.
"""

from __future__ import annotations

import argparse
import json

from bench.measure import run

SETUP = """
from bench.cases import CASES
run = ag.compile(next(c for c in CASES if "MLP 8-16-2" in c.name).build(ag).step)
"""

#: name -> (what comes before, what is counted, the most calls that are fine)
CASES = {
    "first compiled call of the step of an MLP 8-16-2": (
        SETUP,
        "run()",
        50_000,
    ),
    "tenth compiled call of that step": (
        SETUP + "for _ in range(9):\n    run()\n",
        "run()",
        40,
    ),
    "tanh(x), warm": ("x = ag.randn(3)\nfor _ in range(9):\n    ag.tanh(x)\n", "ag.tanh(x)", 2),
    "x.view(2, 12), warm": ("x = ag.randn(4, 6)\nfor _ in range(9):\n    x.view(2, 12)\n", "x.view(2, 12)", 2),
    "x[1], warm": ("x = ag.randn(4, 6)\nfor _ in range(9):\n    x[1]\n", "x[1]", 2),
    "x[i], warm": ("x, i = ag.randn(4, 6), ag.tensor([1, 3])\nfor _ in range(9):\n    x[i]\n", "x[i]", 5),
    "x[1] = 0.5, warm": ("x = ag.randn(4, 6)\nfor _ in range(9):\n    x[1] = 0.5\n", "x[1] = 0.5", 2),
    "cat((x, x)), warm": ("x = ag.randn(4, 6)\nfor _ in range(9):\n    ag.cat((x, x))\n", "ag.cat((x, x))", 2),
    "zeros(3, 4), warm": ("for _ in range(9):\n    ag.zeros(3, 4)\n", "ag.zeros(3, 4)", 1),
    "zeros_like(x), warm": ("x = ag.randn(4, 6)\nfor _ in range(9):\n    ag.zeros_like(x)\n", "ag.zeros_like(x)", 1),
    "rand(3, 4), warm": ("for _ in range(9):\n    ag.rand(3, 4)\n", "ag.rand(3, 4)", 2),
    "backward of tanh(w).sum(), warm": (
        "w = ag.randn(3, requires_grad=True)\nfor _ in range(9):\n    ag.tanh(w).sum().backward()\nloss = ag.tanh(w).sum()\n",
        "loss.backward()",
        20,
    ),
}

OURS = "/autograd_nb/"  #: in the names of this package's files; generated code has names in angle brackets

CHILD = """
import gc, json, sys, threading
from collections import Counter
import autograd_nb as ag
ag.set_num_threads(1)
BEFORE
files = Counter()
def count(frame, event, argument):
    if event == "call":
        files[frame.f_code.co_filename] += 1
gc.disable()
threading.setprofile(count)  # (kernels are loaded by threads of their own)
sys.setprofile(count)
WHAT
sys.setprofile(None)
threading.setprofile(None)
print(json.dumps(files))
"""


def counted(before: str, what: str) -> dict[str, int]:
    """How many functions of each file are called; in the second process that does so, so that all kernels are on disk."""
    child = CHILD.replace("BEFORE", before).replace("WHAT", what)
    run(child)
    return json.loads(run(child).splitlines()[-1])  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="cases whose name contains one of them; all by default")
    parser.add_argument("--files", type=int, default=0, help="show this many files, those with the most calls first")
    given = parser.parse_args()
    for name, (before, what, most) in CASES.items():
        if given.words and not any(w.lower() in name.lower() for w in given.words):
            continue
        files = counted(before, what)
        mine = {file: n for file, n in files.items() if OURS in file or (file.startswith("<") and not file.startswith("<frozen"))}
        total = sum(mine.values())
        rest = f", {sum(files.values()) - total:,d} of others" if len(mine) < len(files) else ""
        print(f"{name:52}{total:9,d} calls (at most {most:,d}){rest}{' !' if total > most else ''}")
        for file, n in sorted(mine.items(), key=lambda item: -item[1])[: given.files]:
            print(f"{n:12,d}  {'/'.join(file.split('/')[-3:])}")


if __name__ == "__main__":
    main()
