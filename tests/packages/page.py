"""Writes docs/packages.md from the outcomes of the exam."""

import ast
import importlib.metadata
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "packages.md"
HEAD = """# Packages that were written for PyTorch

Programs of these packages, as they are published, run with this library as their `torch`, in an environment without PyTorch. Each use trains, fits
or computes something, and its numbers are compared with those that PyTorch 2.13 gave. `make test-packages` runs them; the uses are in
`tests/packages/uses/`. This page is written by `make test-packages ARGS=--page`.

| package | version | what is run | outcome |
|---|---|---|---|
"""


def distributions(name: str) -> list[str]:
    """Return the packages that a use imports and that requirements.txt names."""
    tree = ast.parse((HERE / "uses" / f"{name}.py").read_text())
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0}
    known = importlib.metadata.packages_distributions()
    found = {known[top][0] for top in {module.partition(".")[0] for module in modules} if top in known}
    return sorted(found - {"torch", "numpy", "autograd_nb"})


def write(outcomes: dict[str, str]) -> None:
    """Write the page: a line for each use, with the versions that are installed."""
    lines = []
    for name, outcome in outcomes.items():
        packages = distributions(name)
        what = ast.get_docstring(ast.parse((HERE / "uses" / f"{name}.py").read_text())) or ""
        versions = ", ".join(importlib.metadata.version(package) for package in packages)
        shown = re.sub(r"/\S*/", "", outcome).replace("|", "\\|")[:160]
        lines.append(f"| {', '.join(packages)} | {versions} | {what.splitlines()[0].rstrip('.')} | {shown} |")
    good = sum(outcome == "the same" for outcome in outcomes.values())
    PAGE.write_text(HEAD + "\n".join(lines) + f"\n\n{good} of {len(outcomes)} uses give PyTorch's numbers.\n")
