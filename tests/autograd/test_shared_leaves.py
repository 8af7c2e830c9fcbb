"""Backward passes of several threads that end at the same leaves: no gradient is lost, however the threads take turns."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

import autograd_nb as torch
from autograd_nb.graph import recurring

THREADS = 8


@pytest.fixture(autouse=True)
def taking_turns() -> Iterator[None]:
    """Threads change after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], None]) -> None:
    """Run ``work(number)`` on all threads at once, and raise what one of them raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(THREADS)

    def run(number: int) -> None:
        try:
            start.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(("size", "passes"), [(3, 200), (1000, 200), (200_000, 30)])
def test_every_gradient_arrives(size: int, passes: int, begun: bool, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``first``: passes before one is noted and replayed."""
    monkeypatch.setattr(recurring, "FIRST", first)
    for _ in range(3):
        w = torch.ones(size, requires_grad=True)
        w.grad = torch.zeros(size) if begun else None

        def work(_: int, w: torch.Tensor = w) -> None:
            for _ in range(passes):
                (w * 2.0).sum().backward()

        together(work)
        assert float(w.grad.min()) == float(w.grad.max()) == 2.0 * THREADS * passes


@pytest.mark.parametrize("kind", ["one program", "a program for each", "programs and passes"])
def test_every_gradient_of_compiled_steps_arrives(kind: str) -> None:
    for _ in range(4):
        w = torch.ones(100_000, requires_grad=True)
        w.grad = torch.zeros(100_000)

        def step(w: torch.Tensor = w) -> None:
            (w * 2.0).sum().backward()

        steps: list[Callable] = [torch.compile(lambda: step()) for _ in range(1 if kind == "one program" else THREADS)]
        for f in steps:
            f()
        w.grad.zero_()
        if kind == "programs and passes":
            steps[::2] = [step] * (THREADS // 2)

        def work(number: int, steps: list[Callable] = steps) -> None:
            for _ in range(100):
                steps[number % len(steps)]()

        together(work)
        assert float(w.grad.min()) == float(w.grad.max()) == 200.0 * THREADS
