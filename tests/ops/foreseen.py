"""How much of backward passes is foreseen, over the samples of all structured ops: ``python -m tests.ops.foreseen`` prints the share.

One process runs the samples and their backward passes, and writes down its notes and the kernels that the passes asked for. Another
rehearses the notes, as a compile worker does. Both run kernels as Python, or not at all, so nothing is compiled.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def named(wanted: Any) -> tuple[Any, ...]:
    """A kernel as another process calls it: by its text, or by its function's name, and by the types of its arguments."""
    first, *rest = wanted
    return (first, rest[1]) if isinstance(first, str) else (first.__module__, first.__name__, rest[0])


def needed() -> tuple[list[bytes], list[tuple[Any, ...]]]:
    """The notes of all samples, and the kernels that only their backward passes asked for."""
    import autograd_nb as torch
    from autograd_nb.codegen.build import compilation, workers
    from autograd_nb.overriding import Overrides

    from .samples import SAMPLES, tensors

    notes: list[bytes] = []
    made = workers._workers
    made.running, made.tell = [object()], notes.append  # type: ignore
    asked: dict[tuple[Any, ...], bool] = {}  # kernel -> whether a forward pass asked for it
    forward, overrides = [True], Overrides()

    @overrides.at(compilation._entry)
    def noting(standing: Any) -> Any:
        def entry(make: Any, wanted: Any, *args: Any) -> Any:
            asked.setdefault(named(wanted), forward[0])
            return standing(make, wanted, *args)

        return entry

    with overrides.active(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op, sample in SAMPLES.values():
            with contextlib.suppress(NotImplementedError, RuntimeError):
                operands = [torch.from_numpy(a.copy()).requires_grad_(a.dtype.kind in "fc") for a in sample.operands("float32")]
                forward[0] = True
                out = [t for t in tensors(sample(*operands)) if t.requires_grad]
                ones = [torch.ones_like(t) for t in out]
                forward[0] = False
                torch.autograd.backward(out, ones)
    made.running = []
    return notes, [kernel for kernel, first in asked.items() if not first]


def rehearsed(notes: list[bytes]) -> tuple[set[tuple[Any, ...]], int]:
    """The kernels that a worker is asked for by notes, and how many of these it could make nothing of."""
    from autograd_nb import launch
    from autograd_nb.utils import compiling

    failed = 0
    setattr(launch, "check", compiling._nothing)
    setattr(launch, "escapes", compiling._escapes)
    with compiling._OVERRIDES.active():
        for note in notes:
            before = len(compiling._queue.seen)
            compiling.rehearse(*marshal.loads(note))
            failed += len(compiling._queue.seen) == before
    return {named(wanted) for wanted in compiling._queue.seen}, failed


def in_another_process(step: str, given: bytes = b"") -> Any:
    """What a step of this module gives, in a process that interprets kernels."""
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}
    found = subprocess.run([sys.executable, "-m", "tests.ops.foreseen", step], input=given, env=env, stdout=subprocess.PIPE, check=True, cwd=ROOT)
    return marshal.loads(found.stdout)


def share() -> tuple[float, list[tuple[Any, ...]]]:
    """The share of the kernels of backward passes that is foreseen, and those that are not."""
    notes, kernels = in_another_process("needed")
    seen, _ = in_another_process("rehearsed", marshal.dumps(notes))
    missed = [k for k in kernels if k not in seen]
    return 1 - len(missed) / len(kernels), missed


def main() -> None:
    step = sys.argv[1] if len(sys.argv) > 1 else ""
    if step == "needed":
        sys.stdout.buffer.write(marshal.dumps(needed()))
    elif step == "rehearsed":
        sys.stdout.buffer.write(marshal.dumps(rehearsed(marshal.loads(sys.stdin.buffer.read()))))
    else:
        found, missed = share()
        for kernel in missed:
            print(*[str(part)[:60].replace("\n", " ") for part in kernel])
        print(f"{found:.0%} of the kernels of backward passes are foreseen; missed: {len(missed)}")


if __name__ == "__main__":
    main()
