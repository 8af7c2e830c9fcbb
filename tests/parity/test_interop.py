"""Memory of other libraries beside PyTorch's: what is said where it may only be read."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402

READ_ONLY = {
    "from_numpy": "t.from_numpy(read)", "frombuffer": "t.frombuffer(b'abcd', dtype=t.uint8)", "as_tensor": "t.as_tensor(read)", "asarray": "t.asarray(read)",
    "copied": "t.tensor(read)", "written": "t.from_numpy(read.copy())", "a buffer": "t.frombuffer(bytearray(b'abcd'), dtype=t.uint8)",
}  # fmt: skip


@pytest.mark.parametrize("code", READ_ONLY)
def test_memory_that_may_only_be_read_is_warned_of(code):
    def told(lib):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            lib.set_warn_always(True)
            try:
                eval(READ_ONLY[code], {"t": lib, "read": np.broadcast_to(np.ones(1), (3,))})
            finally:
                lib.set_warn_always(False)
        return [str(w.message).partition(" tensors")[0] for w in seen]

    assert told(ours) == told(torch)
