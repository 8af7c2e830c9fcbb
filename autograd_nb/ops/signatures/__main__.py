"""``python -m autograd_nb.ops.signatures``: writes the stubs anew from the table of ops (``make stubs``)."""

from __future__ import annotations

import sys

from .stubs import outdated, write

if __name__ == "__main__":
    if "--check" in sys.argv:
        stale: list[str] = outdated()
        sys.exit(f"make stubs: the table of ops has changed since {', '.join(stale)} were written" if stale else 0)
    write()
