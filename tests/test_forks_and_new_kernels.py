"""Threads that need the same new kernels from an empty cache, and forks while they are compiled."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
THREADS = textwrap.dedent("""
    import os, signal, sys, threading, time, traceback, warnings
    import numpy as np, numpy.testing  # (a fork amid another thread's import leaves that module locked in the child)
    import autograd_nb as torch
    warnings.simplefilter("ignore")
    errors, start = [], threading.Barrier(6)

    def gradient(n):
        x = torch.arange(5.0 + n).requires_grad_()
        y = (torch.tanh(x) * x.exp()).sum() + torch.atan(x).sum()
        a = np.arange(5.0 + n)
        wanted = (1 / np.cosh(a) ** 2 + np.tanh(a)) * np.exp(a) + 1 / (1 + a * a)
        np.testing.assert_allclose(torch.autograd.grad(y, x)[0].numpy(), wanted, rtol=1e-5)

    def work():
        try:
            start.wait()
            for n in range(3):
                gradient(n)
            f = torch.compile(lambda v: (v * 3).tanh().sum() + v.cumsum(0).prod())
            for _ in range(3):
                assert abs(f(torch.ones(3)).item() - 3 * np.tanh(3) - 6) < 1e-4
        except BaseException:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    children = []
    while sys.argv[1] == "fork" and len(children) < 40 and any(t.is_alive() for t in threads):
        child = os.fork()
        if not child:
            signal.alarm(100)
            try:
                gradient(len(children) % 5)
                x = torch.ones(4, requires_grad=True)
                (x * 2).sigmoid().sum().backward()
                np.testing.assert_allclose(x.grad.numpy(), 0.20998717, rtol=1e-5)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        children.append(child)
        time.sleep(0.03)
    errors += [s for s in [os.waitpid(child, 0)[1] for child in children] if s]
    for t in threads:
        t.join(200)
    print(sum(t.is_alive() for t in threads), errors)
""")


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", ["threads", pytest.param("fork", marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"))]
)
def test_threads_need_the_same_new_kernels(tmp_path, way):
    env = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    for _ in range(2):  # compiled, and found on disk
        done = subprocess.run(
            [sys.executable, "-c", THREADS, way], env={**env, "PYTHONPATH": str(ROOT), "AUTOGRAD_NB_CACHE_DIR": str(tmp_path)}, capture_output=True,
            text=True, timeout=400, check=False,
        )  # fmt: skip
        assert done.returncode == 0 and done.stdout.strip().endswith("0 []"), (
            done.returncode,
            done.stdout[-2000:],
            done.stderr[-3000:],
        )
