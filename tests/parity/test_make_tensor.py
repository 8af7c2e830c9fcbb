"""`testing.make_tensor`: ranges, dtypes, strides and errors as PyTorch's; the values themselves are random."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import torch.testing  # noqa: E402

from .snippets import difference  # noqa: E402

ARGUMENTS = [
    "(3, 4)", "3, 4", "()", "(2, 3), low=-3, high=300", "(2, 3), low=300, high=400", "(2, 3), low=-1000, high=-900",
    "(2, 3), low=2, high=2", "(2, 3), low=3, high=2", "(2, 3), low=float('nan')", "(2, 3), low=0.5, high=1.5",
    "(3, 4), noncontiguous=True", "(1,), noncontiguous=True", "(2, 3), requires_grad=True", "(2, 0)",
    "(2, 3), exclude_zero=True, low=0, high=2", "(2, 3, 4, 5), memory_format=t.channels_last",
    "(2, 3), noncontiguous=True, memory_format=t.contiguous_format",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64", "complex64"])
def test_make_tensor(dtype):
    offset = "" if dtype == "complex64" else "y.storage_offset(), "  # (here a complex view of real memory has a storage of its own)
    code = "y = {}; r = y.dtype, tuple(y.shape), y.stride(), " + offset + "y.requires_grad"
    found = []
    for arguments in ARGUMENTS:
        text = difference(code.format(f"t.testing.make_tensor({arguments}, dtype=t.{dtype}, device='cpu')"), "import torch.testing", kinds=True)
        found += [text] if text else []
    assert not found, "\n".join(found)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("uint8", -9, 9), ("int8", -9, None), ("int64", 3, 5), ("complex64", None, None), ("float32", -1, 2), ("bool", 1, 2)],
)
def test_values_fill_the_interval(dtype, low, high):
    import autograd_nb as ag

    def ends(library):
        x = library.testing.make_tensor((4000,), dtype=getattr(library, dtype), device="cpu", low=low, high=high)
        x = library.view_as_real(x) if dtype == "complex64" else x
        return [float(v) for v in (x.double().amin(0) if x.ndim > 1 else x.double().min()).reshape(-1)] + [float(x.double().max())]

    assert ends(ag) == pytest.approx(ends(torch), abs=0.2)
