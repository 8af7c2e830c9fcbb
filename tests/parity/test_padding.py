"""Padding that cuts off: what is refused, what is left, and its gradient."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")

from .snippets import check  # noqa: E402


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding_that_cuts_off(mode):
    """Negative padding takes no more than there is, and what is left may be nothing; what PyTorch's circular padding repeats of nothing is not looked at."""
    codes = {}
    for size, before, after, dims in itertools.product((0, 1, 2, 3), (-4, -2, -1, 0, 1, 2), (-4, -3, -1, 0, 2, 4), (2, 3, 4)):
        if mode == "circular" and min(before, after) < 0 < max(before, after):
            continue
        if mode == "circular" and min(size + before, size + after) < 0:
            continue
        pads = (before, after, 1, -1) if mode != "constant" and dims == 4 else (before, after)
        codes[f"{size}, {pads}, {dims}"] = (
            f"x = t.arange(1.0, {2 ** (dims - 1) * size + 1}).reshape({(2,) * (dims - 1) + (size,)}).requires_grad_()\n"
            f"y = F.pad(x, {pads}, mode={mode!r}); y.square().sum().backward(); r = y, x.grad"
        )
    check(codes, kinds="subclasses")
