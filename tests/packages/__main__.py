"""The exam: ``python -m tests.packages [NAME …]`` runs the uses and compares; ``--record`` writes PyTorch's numbers, ``--page`` the page in docs."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NUMBERS = HERE / "expected.json"
NAMES = sorted(path.stem for path in (HERE / "uses").glob("[a-z]*.py"))
Numbers = dict[str, list[float]]


def run(name: str, pytorch: bool) -> tuple[Numbers | None, str]:
    """Return the numbers of a use, run in a process of its own, and the error's last line where there are none."""
    command = [sys.executable, "-m", "tests.packages.runner", name, *(["--pytorch"] if pytorch else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=400)
    except subprocess.TimeoutExpired:
        return None, "did not end within 400 s"
    found = re.search(r"^NUMBERS (.*)$", done.stdout, re.M)
    lines = done.stderr.strip().splitlines() or ["no output"]
    return (json.loads(found[1]), "") if found else (None, next((x for x in reversed(lines) if re.match(r"\S*(Error|Exception|Exit)\b", x)), lines[-1]))


def differences(ours: Numbers, theirs: Numbers) -> list[str]:
    """Return where two results differ: by more than 1e-3 of the number and of 1e-5, or in their sizes."""
    if ours.keys() != theirs.keys():
        return [f"results {sorted(ours.keys() ^ theirs.keys())}"]
    found = []
    for key, values in theirs.items():
        if len(values) != len(ours[key]):
            found.append(f"{key}: {len(ours[key])} numbers, PyTorch {len(values)}")
            continue
        for k, (a, b) in enumerate(zip(ours[key], values, strict=True)):
            if not (math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-5) or (math.isnan(a) and math.isnan(b))):
                found.append(f"{key}[{k}]: {a:.6g}, PyTorch {b:.6g}")
                break
    return found


def examine(name: str, expected: dict[str, Numbers]) -> str:
    """Return the outcome of one use: "the same", or what is different."""
    result, error = run(name, pytorch=False)
    if result is None:
        return f"stops: {error[:300]}"
    return "; ".join(differences(result, expected[name])) or "the same"


def record(names: list[str]) -> int:
    """Write PyTorch's numbers of the uses; return how many stopped."""
    expected: dict[str, Any] = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    expected = {name: value for name, value in expected.items() if name in NAMES}
    stopped = 0
    for name in names:
        result, error = run(name, pytorch=True)
        if result is None:
            stopped += 1
        else:
            expected[name] = {key: [float(f"{v:.7g}") for v in values] for key, values in result.items()}
        print(f"{name:28} {error[:300] or 'recorded'}", flush=True)
        _store(expected)
    return stopped


def _store(expected: dict[str, Any]) -> None:
    """Write all numbers, a line for each use."""
    lines = [f' "{name}": {json.dumps(expected[name])}' for name in sorted(expected)]
    NUMBERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.packages", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="uses to run (all)")
    parser.add_argument("--record", action="store_true", help="write PyTorch's numbers, in an environment that has it")
    parser.add_argument("--page", action="store_true", help="write docs/packages.md")
    parser.add_argument("--jobs", type=int, default=2, help="how many run at a time (2)")
    options = parser.parse_args()
    names = options.names or NAMES
    if options.record:
        return bool(record(names))
    expected, began = json.loads(NUMBERS.read_text()), time.perf_counter()
    outcomes = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        for name, outcome in zip(names, pool.map(lambda name: examine(name, expected), names), strict=True):
            outcomes[name] = outcome
            print(f"{name:28} {outcome}", flush=True)
    good = sum(outcome == "the same" for outcome in outcomes.values())
    print(f"{good} of {len(names)} uses give PyTorch's numbers ({time.perf_counter() - began:.0f} s)")
    if options.page:
        from .page import write

        write(outcomes)
    return good != len(names)


if __name__ == "__main__":
    sys.exit(main())
