"""Run the nine programs for a step each, eager and compiled, in this process: what a wheel's pack of kernels is made from.

``python -m autograd_nb cache pack FILE --run "-m bench.cold.once"``
"""

from __future__ import annotations

import autograd_nb
from bench.cold.process import STEPS
from bench.cold.programs import PROGRAMS


def main() -> None:
    for build in PROGRAMS.values():
        build(autograd_nb)[0]().item()
        step = autograd_nb.compile(build(autograd_nb)[0])
        for _ in range(STEPS):
            step().item()


if __name__ == "__main__":
    main()
