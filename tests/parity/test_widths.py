"""What may not depend on how many there are: floats beyond the range of integers, parts of a tensor."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ours  # noqa: E402

BEYOND = (-3.4e38, 3.4e38, 1e10, -1e10, 3e9, -3e9, float("inf"), float("-inf"), float("nan"), 40000.0, -40000.0, 300.0, -300.0, 2.5)


@pytest.mark.parametrize("source", ("float16", "bfloat16", "float32", "float64"))
@pytest.mark.parametrize("target", ("uint8", "int8", "int16", "int32", "int64"))
def test_floats_beyond_integers_are_the_same_at_every_place(source, target):
    """A vectorised loop has bodies of several widths: a value must be the same integer in each of them, PyTorch's."""
    for value in BEYOND:
        theirs = torch.tensor(value, dtype=torch.float64).to(getattr(torch, source)).to(getattr(torch, target)).item()
        one = ours.tensor(value, dtype=ours.float64).to(getattr(ours, source))
        for n in (1, 3, 4, 7, 8, 15, 16, 28, 31, 64, 67):
            assert one.repeat(n).to(getattr(ours, target)).tolist() == [theirs] * n, (value, n)


@pytest.mark.parametrize("n", (3, 63, 64, 65, 300))
def test_parts_of_a_tensor(n):
    """However many parts there are, each is the same view, with the same slopes, and refuses to be written in the same way."""

    def run(t):
        x = t.arange(n * 2.0).reshape(n, 2).requires_grad_()
        rows = (x * 2).unbind(0)
        sum((k % 3) * row for k, row in enumerate(rows)).sum().backward()
        z = t.arange(float(n)).requires_grad_()
        numbers = list(z)
        (numbers[0] * 2 + numbers[-1] ** 2).backward()
        (x * 1).split(1)[2].sum().backward()
        columns = (x * 1).T.unbind(1)
        (columns[1] * columns[2]).sum().backward()
        with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
            (x * 1).chunk(n)[0].add_(1)
        views = [(tuple(r.shape), r.stride(), r.storage_offset(), r._is_view()) for r in (*rows, *columns)]
        return x.grad.tolist(), z.grad.tolist(), rows[1].grad_fn.name(), views

    assert run(ours) == run(torch)
