"""Every op and layer does without a compiler (``NUMBA_DISABLE_JIT=1``, for debuggers) what it does with one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numba import config

from .walk import cases, results

pytestmark = pytest.mark.slow


def test_all_ops_and_layers(tmp_path):
    path = tmp_path / "found.pickle"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "NUMBA_BOUNDSCHECK": "0"}
    run = subprocess.run([sys.executable, "-m", "tests.ops.walk", str(path)], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = pickle.loads(path.read_bytes())
    wrong = []
    for name, function, arrays in cases():
        wanted = results(function, arrays)
        if isinstance(found[name], str):
            wrong.append(f"{name}: {found[name]}")
            continue
        assert len(found[name]) == len(wanted)
        for mine, theirs in zip(found[name], wanted, strict=True):
            if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
                wrong.append(f"{name}: {mine.dtype} {mine.shape} instead of {theirs.dtype} {theirs.shape}")
            elif mine.dtype.kind not in "fc" and not np.array_equal(mine, theirs):
                wrong.append(f"{name}: {mine} instead of {theirs}")
            elif mine.dtype.kind in "fc":
                finite = np.abs(theirs[np.isfinite(theirs)])
                bound = (1e-5 if theirs.itemsize == 4 else 1e-9) * max(1.0, finite.max(initial=0))
                if not np.allclose(mine, theirs, rtol=bound, atol=bound, equal_nan=True):
                    wrong.append(f"{name}: {mine} instead of {theirs}")
    assert not wrong, "\n".join(wrong)
    assert config.DISABLE_JIT or len(found) > 150
