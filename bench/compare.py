"""What a change did to the times: ``make bench-compare BASE=rev``, or ``python -m bench.compare rev [word…]``.

The revision is checked out beside this tree (git worktree); this tree's cases are run against both libraries, in turn, twice,
by the same interpreter. Rows are compared by their ratio to PyTorch where it is installed, and shown where they moved by more
than noise in both turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import report

ROOT = Path(__file__).absolute().parent.parent
PACKAGE = "autograd_nb"


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout.strip()


def run(package: Path, folder: Path, name: str, words: list[str]) -> dict[str, Any]:
    """The quick cases of this tree with the library of ``package``."""
    place = folder / name
    if not place.exists():  # both packages under one path, so that neither tree's own benchmarks or library interfere
        place.mkdir()
        (place / PACKAGE).symlink_to(package, target_is_directory=True)
        (place / "bench").symlink_to(ROOT / "bench", target_is_directory=True)
    target = folder / f"{name}.json"
    code = (
        f"import {PACKAGE}, pathlib, sys; at = pathlib.Path({PACKAGE}.__file__).resolve().parent\n"
        f"assert at == pathlib.Path({str(package.resolve())!r}), at\n"
        "from bench import run; sys.exit(run.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, "--json", str(target), *words]
    done = subprocess.run(command, cwd=place, env={**os.environ, "PYTHONPATH": str(place)}, capture_output=True, text=True, check=False)
    if not target.exists():
        sys.exit(f"the benchmarks failed with the library of {name}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    found = json.loads(target.read_text())
    target.unlink()
    return found


def quieter(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One result of several: of each row the run in which this library was fastest; the spread covers all of them."""
    best = dict(runs[0])
    best["rows"] = []
    for rows in zip(*(r["rows"] for r in runs), strict=True):
        row = dict(min(rows, key=lambda r: r["seconds"].get("ours", float("inf"))))
        for subject, spreads in row["spread"].items():
            for peer in spreads:
                ratios = [r["ratios"][subject][peer] for r in rows if peer in r["ratios"].get(subject, {})]
                between = (max(ratios) - min(ratios)) / 2 / min(ratios)
                spreads[peer] = max(spreads[peer], between / 3)  # `changes` takes three times the spread
        best["rows"].append(row)
    return best


def main(given: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="bench.compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("base", help="a revision to compare with")
    p.add_argument("words", nargs="*", help="only cases whose suite, group or name contains one of these")
    p.add_argument("--turns", type=int, default=2)
    p.add_argument("--full", action="store_true", help="all sizes and long blocks, not only the quick ones")
    p.add_argument("--blocks", type=int)
    a = p.parse_args(given)
    revision = git("rev-parse", "--verify", f"{a.base}^{{commit}}")
    words = [*a.words, "--peers", "compiled,PyTorch", *([] if a.full else ["--quick"]), *(["--blocks", str(a.blocks)] if a.blocks else [])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = folder / "tree"
        git("worktree", "add", "--detach", "--quiet", str(tree), revision)
        try:
            before, after = [], []
            for turn in range(a.turns):
                print(f"turn {turn + 1} of {a.turns}: {a.base} ({revision[:9]}), then this tree", flush=True)
                before.append(run(tree / PACKAGE, folder, "base", words))
                after.append(run(ROOT / PACKAGE, folder, "here", words))
        finally:
            git("worktree", "remove", "--force", str(tree))
    then, now = quieter(before), quieter(after)
    print(report.changes(then, now))
    for title, found in ((a.base, then), ("this tree", now)):
        print(f"\n== {title}", *report.group_lines(found["rows"]), sep="\n")
    known = {p for r in then["rows"] for p in r["problems"]}
    fresh = [p for r in now["rows"] for p in r["problems"] if p not in known]
    if fresh:
        print("\nproblems that the base has not", *(f"  {p}" for p in fresh), sep="\n")
    return 1 if fresh else 0


if __name__ == "__main__":
    sys.exit(main())
