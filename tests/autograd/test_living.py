"""`graph.collector.living`: all tensors are found, whoever looks for them at the same time."""

from __future__ import annotations

import gc
import sys
import threading

import pytest

import autograd_nb as torch
from autograd_nb.graph.collector import living


def test_what_is_set_aside_is_found_while_another_thread_looks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread has looked at what is in sight; the program sets objects aside, and a second thread is about to look through all of them."""
    x = torch.ones(3)
    gc.freeze()
    living(torch.Tensor)  # x stands among what was set aside
    objects, unfreeze = gc.get_objects, gc.unfreeze
    begun, done = threading.Event(), threading.Event()
    other = threading.Thread(target=living, args=(torch.Tensor,))

    def bring_back() -> None:
        begun.set()
        done.wait(10)
        unfreeze()

    def look() -> list:
        found = objects()
        monkeypatch.setattr(gc, "get_objects", objects)
        gc.freeze()
        monkeypatch.setattr(gc, "unfreeze", bring_back)
        other.start()
        begun.wait(10)
        return found

    monkeypatch.setattr(gc, "get_objects", look)
    try:
        found = living(torch.Tensor)
    finally:
        done.set()
        other.join()
        monkeypatch.undo()
        gc.unfreeze()
    assert any(t is x for t in found)


def test_other_threads_fill_tuples_meanwhile() -> None:
    """CPython resizes a tuple that is being made only while nobody else holds it."""
    failed: list[BaseException] = []
    done = threading.Event()

    def fill() -> None:
        try:
            while not done.is_set():
                assert len(tuple(i for i in range(300))) == 300
        except BaseException as error:
            failed.append(error)

    others = [threading.Thread(target=fill) for _ in range(2)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in others:
            thread.start()
        for _ in range(100):
            living(torch.Tensor)
    finally:
        done.set()
        sys.setswitchinterval(before)
        for thread in others:
            thread.join()
    assert not failed
