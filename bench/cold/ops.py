"""What the first call of each op costs where nothing has been compiled: ``python -m bench.cold ops``.

Every op of PyTorch's database (its first float32 sample) is called twice in a process with an empty kernel cache; the difference
is compiling. Kernels that an earlier op has compiled are there already, as they are in a program.
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
    times: list[tuple[float, str]] = []
    for op in op_db:
        if outside(title(op)):
            continue
        function = find(op)
        samples = samples_of(op, torch.float32, False) if function is not None and torch.float32 in op.supported_dtypes("cpu") else []
        if not samples:
            continue

        def call(sample: Any = samples[0], function: Any = function) -> float:
            args, kwargs = ours(((sample.input, *sample.args), sample.kwargs))
            start = time.perf_counter()
            function(*args, **kwargs)
            return time.perf_counter() - start

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                first, second = call(), call()
            except Exception as error:
                print(f"{title(op)}: {type(error).__name__}: {str(error)[:80]}", file=sys.stderr)
                continue
        times.append((first - second, title(op)))
    times.sort(reverse=True)
    seconds = [t for t, _ in times]
    many, too_many = sum(t > 0.4 for t in seconds), sum(t > 1.5 for t in seconds)
    print(f"{len(times)} ops; median {statistics.median(seconds):.3f} s, above 0.4 s: {many}, above 1.5 s: {too_many}")
    compiled = [t for t in seconds if t > 0.02]
    print(f"{len(compiled)} that compiled something: median {statistics.median(compiled):.3f} s")
    for t, name in times[:15]:
        print(f"{t:7.2f} s  {name}")

