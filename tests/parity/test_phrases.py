"""The words of errors and warnings by which PyTorch's programs and searches go: each has PyTorch's key phrase."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402

SAID = {
    "t.movedim(t.ones(2, 3, 4), (0, 0), (1, 2))": "repeated dim in `source` ([0, 0])",
    "t.movedim(t.ones(2, 3, 4), (0, 1), (-1, 2))": "repeated dim in `destination` ([-1, 2])",
    "t.complex(t.ones(2), t.ones(2).double())": "Expected object of scalar type Float but got scalar type Double for second argument",
    "t.complex(t.ones(2), t.ones(2), out=t.ones(2))": "Expected object of scalar type ComplexFloat but got scalar type Float for argument 'out'",
    "t.heaviside(t.ones(2, dtype=t.complex64), t.ones(2))": "heaviside is not yet implemented for complex tensors.",
    "t.ones(2).heaviside(t.ones(2, dtype=t.complex64))": "heaviside is not yet implemented for complex tensors.",
    "t.ones(2, dtype=t.complex64).heaviside_(t.ones(2, dtype=t.complex64))": "heaviside is not yet implemented for complex tensors.",
    "t.heaviside(t.ones(2), t.ones(2), out=t.ones(2, dtype=t.complex64))": "heaviside is not yet implemented for complex tensors.",
    "t.dot(t.ones(1), t.ones(3).double())": "dot : expected both vectors to have same dtype",
    "t.dot(t.ones(1, 1), t.ones(3).double())": "1D tensors expected",
    "t.dot(t.ones(1), t.ones(3))": "inconsistent tensor size",
    "t.vdot(t.ones(1), t.ones(3).double())": "dot : expected both vectors to have same dtype",
    "t.vdot(t.ones(1, 1), t.ones(3).double())": "1D tensors expected",
    "t.vdot(t.ones(1), t.ones(3))": "inconsistent tensor size",
    "t.ones(2, dtype=t.complex64).signbit()": "signbit is not implemented for complex tensors.",
    "t.ones(2, dtype=t.int32).add_(t.ones(2))": "result type Float can't be cast to the desired output type Int",
    "t.ones(2, dtype=t.int64).mul_(1j)": "result type ComplexFloat can't be cast to the desired output type Long",
    "t.ones(2).half().random_(-2 ** 13, 2 ** 13)": "from is out of bounds [-(2^11), 2^11]. Due to precision limitations",
    "t.ones(2).random_(0, 2 ** 24 + 2)": "to - 1 is out of bounds [-(2^24), 2^24]. Due to precision limitations",
    "t.randint(0, 2 ** 25, (2,), dtype=t.float32)": "to - 1 is out of bounds [-(2^24), 2^24]. Due to precision limitations",
    "t.ones(2).random_(0, 2 ** 24 + 1)": "",
    "t.ones(2, dtype=t.int64).random_(-2 ** 60, 2 ** 60)": "",
}


@pytest.mark.parity
@pytest.mark.parametrize("code", SAID)
def test_the_key_phrase_is_there(code):
    def said(lib):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                eval(code, {"t": lib})
            except Exception as error:
                return type(error), str(error)
        return None, " ".join(str(w.message) for w in seen)

    (theirs, text), (mine, own) = said(torch), said(ours)
    assert mine is theirs
    for found in (text, own):
        assert SAID[code] in found if SAID[code] else not found
