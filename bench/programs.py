"""Where the time of compiled training steps goes: ``python -m bench.programs WORD…`` times each record of the cases' programs."""

from __future__ import annotations

import argparse

from bench.cases import CASES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="+", help="cases whose name contains one of them")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--kernels", action="store_true", help="only the sums by kernel")
    given = parser.parse_args()
    import autograd_nb as ag
    from autograd_nb.compiler.run.profile import profile

    ag.set_num_threads(1)
    for case in CASES:
        if not case.compiled or not any(w.lower() in case.name.lower() for w in given.words):
            continue
        step = ag.compile(case.build(ag).step)
        for _ in range(4):
            step()
        if not step.programs:
            print(f"{case.name}: not captured")
            continue
        program = step.programs[0].program
        found = profile(step, step.programs[0], given.calls)
        print(f"-- {case.name}: memory {program.arena_bytes:,} of {program.unshared_bytes:,} bytes")
        print("\n".join(str(found).splitlines()[len(found.times) + 1 :]) if given.kernels else found)


if __name__ == "__main__":
    main()
