"""Names of other projects that the pages link to.

Sphinx fetches each project's inventory. Where there is no network it takes the small one that is written here instead, so that
a build needs none.
"""

from __future__ import annotations

import zlib
from pathlib import Path

#: project -> (address, {name: (role, page below the address)})
PROJECTS = {
    "numpy": ("https://numpy.org/doc/stable/", {
        "numpy.ndarray": ("py:class", "reference/generated/numpy.ndarray.html#$"),
        "numpy.empty_like": ("py:function", "reference/generated/numpy.empty_like.html#$"),
        "numpy.asarray": ("py:function", "reference/generated/numpy.asarray.html#$"),
    }),
    "scipy": ("https://docs.scipy.org/doc/scipy/", {
        "scipy.optimize.minimize": ("py:function", "reference/generated/scipy.optimize.minimize.html#$"),
        "scipy.LowLevelCallable": ("py:class", "reference/generated/scipy.LowLevelCallable.html#$"),
    }),
    "numba": ("https://numba.readthedocs.io/en/stable/", {
        "numba.jit": ("py:function", "reference/jit-compilation.html#$"),
    }),
}  # fmt: skip


def write(path: Path, project: str, names: dict[str, tuple[str, str]]) -> str:
    """Write an inventory in Sphinx's format (version 2) and return its path."""
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n# The remainder of this file is compressed using zlib.\n"
    lines = "".join(f"{name} {role} 1 {page} -\n" for name, (role, page) in sorted(names.items()))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head.encode() + zlib.compress(lines.encode()))
    return str(path)


def mapping(out: Path) -> dict[str, tuple[str, tuple[str | None, str]]]:
    """Return the value of ``intersphinx_mapping``: each project's own inventory first, then the one that is written under ``out``."""
    return {
        project: (address, (None, write(out / "inventories" / f"{project}.inv", project, names)))
        for project, (address, names) in PROJECTS.items()
    }
