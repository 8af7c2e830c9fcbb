"""The hash of a tensor's bits, of every dtype."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from .snippets import check

DTYPES = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex32"


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_hashes():
    codes = {d: f"r = t.hash_tensor(t.tensor([[1, 2, 3], [0, 5, 7]]).to(t.{d}), 1)" for d in DTYPES.split()}
    for value in ("[-1.5, 2, float('nan'), -0.0]", "[-1, 2]", "3.0", "[]"):
        codes[value] = f"r = t.hash_tensor(t.tensor({value}))"
    for call in ("1", "1, keepdim=True", "keepdim=True", "(0, 2)", "-1", "None", "()", "dim=[]", "mode=1", "mode=0", "3", "(0, -3)", "0, mode=0, keepdim=True"):
        codes[call] = f"r = t.hash_tensor(t.arange(24.0).reshape(2, 3, 4), {call}), t.zeros(0)"
        codes[f"of a view, {call}"] = f"r = t.hash_tensor(t.arange(48.0).reshape(4, 3, 4)[::2].transpose(1, 2), {call}), t.zeros(0)"
    codes["nothing along a dim"] = "r = t.hash_tensor(t.zeros(2, 0), 0)"
    codes["nothing at all"] = "r = t.hash_tensor(t.zeros(2, 0), 1)"
    codes["grad"] = "r = t.ones(3, requires_grad=True).hash_tensor()"
    codes["out"] = "r = t.hash_tensor(t.ones(3), out=t.zeros((), dtype=t.uint64))"
    codes["out of another dtype"] = "r = t.hash_tensor(t.ones(3), out=t.zeros((), dtype=t.int64))"
    codes["mapped"] = "r = t.vmap(t.hash_tensor)(t.arange(6.0).reshape(2, 3))"
    codes["mapped along a dim"] = "r = t.vmap(lambda v: t.hash_tensor(v, 0))(t.arange(24.0).reshape(2, 3, 4))"
    check(codes, kinds=True)
