"""What the first call of each op costs where nothing has been compiled: ``python -m bench.cold ops``.

Every op of PyTorch's database (its first float32 sample) is called twice in a process with an empty kernel cache; the difference
is compiling. Kernels that an earlier op has compiled are there already, as they are in a program. Given are seconds by the clock, and of
this process's processor time, which is what to read on a machine that does other things meanwhile.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
import warnings
from typing import Any

from bench.measure import ROOT


def main() -> None:
    folder = tempfile.TemporaryDirectory()
    os.environ["AUTOGRAD_NB_CACHE_DIR"] = folder.name
    sys.path.insert(0, str(ROOT))
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    import autograd_nb as ag
    from tests.parity.opdb import find, ours, outside, samples_of, title

    (ag.ones(2) + 1).sum()  # what the first kernel of all costs is not the op's
    times: list[tuple[float, float, str]] = []
    for op in op_db:
        if outside(title(op)):
            continue
        function = find(op)
        samples = samples_of(op, torch.float32, False) if function is not None and torch.float32 in op.supported_dtypes("cpu") else []
        if not samples:
            continue

        def call(sample: Any = samples[0], function: Any = function) -> tuple[float, float]:
            args, kwargs = ours(((sample.input, *sample.args), sample.kwargs))
            start, spent = time.perf_counter(), time.process_time()
            function(*args, **kwargs)
            return time.perf_counter() - start, time.process_time() - spent

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                first, second = call(), call()
            except Exception as error:
                print(f"{title(op)}: {type(error).__name__}: {str(error)[:80]}", file=sys.stderr)
                continue
        times.append((first[0] - second[0], first[1] - second[1], title(op)))
    times.sort(reverse=True)
    for at, kind in enumerate(("by the clock", "of processor time")):
        seconds = [row[at] for row in times]
        many, too_many = (sum(t > bound for t in seconds) for bound in (0.4, 1.0))
        compiled = [t for t in seconds if t > 0.02]
        print(
            f"{kind}: {len(times)} ops; median {statistics.median(seconds):.3f} s, above 0.4 s: {many}, above 1 s: {too_many}; "
            f"{len(compiled)} that compiled something: median {statistics.median(compiled):.3f} s"
        )
    print("the longest: seconds by the clock, of processor time, the op")
    for clock, processor, name in times[:15]:
        print(f"{clock:7.2f} {processor:7.2f}  {name}")

