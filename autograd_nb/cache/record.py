"""Run a program and write down which kernels it used: ``python -m autograd_nb.cache.record FILE [-m module | script] [argument …]``.

The file is JSON: what made the kernels (`machine_code.made_by`), the content of each by its key in the cache, and
what kernels were asked for by (`codegen.build.requests`). Without a program it says nothing of contents.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path


def main(file: str, *program: str) -> None:
    """Run the program as ``__main__``; the file is written however it ends."""
    from ..codegen.build import compilation, machine_code
    from ..codegen.build.requests import texts

    try:
        if program[:1] == ("-m",):
            sys.argv = list(program[1:])
            sys.path.insert(0, "")
            runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        elif program:
            sys.argv = list(program)
            sys.path.insert(0, str(Path(program[0]).resolve().parent))
            runpy.run_path(program[0], run_name="__main__")
    finally:
        if compilation.apart(machine_code.machine) is not None:
            said = {"made_by": machine_code.made_by(), "made": machine_code.made_here(), "used": machine_code.used()}
            said |= {"texts": texts(), "requests": machine_code.requests.everything()}
            Path(file).write_text(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
