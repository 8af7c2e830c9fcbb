"""A compiled run lets other Python threads go on."""

from __future__ import annotations

import sys
import threading

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
        sys.setswitchinterval(0.2)  # long against the run: without being let go, the other thread gets no turn during it
        counter.start()
        ready.wait()
        before = count[0]
        compiled(x)
        counted = count[0] - before
        done.set()
    finally:
        done.set()
        sys.setswitchinterval(interval)
        torch.set_num_threads(threads)
        counter.join()
    assert counted > 1000
