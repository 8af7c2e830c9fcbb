"""Where temporaries lie in a program's block of memory."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace

import pytest

from autograd_nb.compiler.lower.memory_plan import ALIGN, plan


def planned(lives):
    """(offsets, bytes) for buffers of (size in units, first step, last step)."""
    buffers = [SimpleNamespace(number=n, kind="temporary", nbytes=size * ALIGN) for n, (size, _, _) in enumerate(lives)]
    steps = []
    for i in range(max(last for _, _, last in lives) + 1):
        uses = [
            (SimpleNamespace(buffer=b), False) for b, (_, first, last) in zip(buffers, lives, strict=True) if first <= i <= last
        ]
        steps.append(SimpleNamespace(uses=lambda uses=uses: uses))
    offsets, total, _ = plan(steps, set())
    return offsets, total // ALIGN


@pytest.mark.parametrize("seed", range(20))
def test_what_lives_together_lies_apart(seed):
    draw = random.Random(seed)
    lives = [(draw.randint(1, 9), first, first + draw.randint(0, 6)) for first in draw.choices(range(30), k=40)]
    offsets, total = planned(lives)
    for (m, (a, begin, end)), (n, (b, first, last)) in itertools.combinations(enumerate(lives), 2):
        if begin <= last and first <= end:
            assert offsets[m] + a * ALIGN <= offsets[n] or offsets[n] + b * ALIGN <= offsets[m]
    assert total == max(offsets[n] // ALIGN + size for n, (size, _, _) in enumerate(lives))


def test_no_room_is_lost_to_the_first_order():
    # the second takes the ends of the first and of the last if it comes after both
    assert planned([(4, 0, 2), (2, 1, 4), (4, 5, 6), (3, 3, 6)])[1] == 7
