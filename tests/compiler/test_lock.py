"""A compiled run lets other Python threads go on."""

from __future__ import annotations

import sys
import threading
import time

import autograd_nb as torch


def test_another_thread_counts_during_a_run():
    weight = torch.randn(600, 600)
    compiled = torch.compile(lambda x: ((x @ weight) @ weight).sum(), fullgraph=True)
    x = torch.randn(600, 600)
    for _ in range(2):
        compiled(x)
    count, ready, done = [0], threading.Event(), threading.Event()

    def count_up():
        ready.set()
        while not done.is_set():
            count[0] += 1

    interval, threads = sys.getswitchinterval(), torch.get_num_threads()
    torch.set_num_threads(1)
    compiled(x)
    counter = threading.Thread(target=count_up)
    try:
        sys.setswitchinterval(0.6)  # long against all runs: without being let go, the other thread gets no turn during them
        counter.start()
        ready.wait()
        before, until = count[0], time.perf_counter() + 0.3
        while count[0] == before and time.perf_counter() < until:  # again where no core was free for the other thread
            compiled(x)
        counted = count[0] - before
        done.set()
    finally:
        done.set()
        sys.setswitchinterval(interval)
        torch.set_num_threads(threads)
        counter.join()
    assert counted > 1000
