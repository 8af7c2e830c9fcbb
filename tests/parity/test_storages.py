"""Storages made, read, written, cast and given to tensors: what each expression gives, in PyTorch and here."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import autograd_nb

torch = pytest.importorskip("torch")

EXPRESSIONS = """
    s; u; s.type(); u.type(); u[0:2]; u == torch.UntypedStorage([1, 2, 3]); u == u; s == s; s == s.clone(); s[0:2]; s[-1]; s[7]; u[9]; s["a"]; u["a"]
    torch.TypedStorage(3, [1]); torch.TypedStorage("a"); torch.TypedStorage([1.5], dtype=torch.int); torch.TypedStorage(dtype=torch.int).size()
    torch.UntypedStorage(torch.tensor([1.0])); torch.UntypedStorage([300]); torch.UntypedStorage(-1); torch.UntypedStorage(2, 2); u[::2]
    torch.UntypedStorage(device="cpu").size(); s.fill_(3); u.fill_(4); s.fill_(s); s.half(); s.long(); s.bool().tolist(); s.double().dtype
    s.complex_float().tolist(); u.float(); torch.IntStorage([-1, 0]).float(); torch.IntStorage([-1, 0]).byte().tolist(); s.cpu(); u.cpu() is u
    s.copy_(torch.TypedStorage([4, 5, 6])); s.copy_(torch.TypedStorage([4, 5])); s.copy_([1, 2]); u.copy_(torch.UntypedStorage(2))
    s.copy_(torch.TypedStorage([4, 5, 6], dtype=torch.int)); s.is_shared(); s.is_pinned(); s.share_memory_() is s; s.to(device="cpu"); s.resizable()
    u.nbytes(); s.nbytes(); u.element_size(); s.element_size(); s.device; u.device.type; s.dtype; u.dtype; s.is_cuda; len(s); list(u); s.tolist()
    torch.FloatStorage([1, 2]); torch.FloatStorage().dtype; torch.Storage(2).dtype; torch.BoolStorage([1, 0]); torch.HalfStorage([1, 0])
    torch.ComplexFloatStorage([1, 0]); isinstance(torch.arange(3.0).storage(), torch.FloatStorage); isinstance(s, torch.IntStorage)
    issubclass(torch.FloatStorage, torch.TypedStorage); torch.FloatStorage(device="cpu"); torch.FloatStorage(dtype=torch.int)
    torch.FloatStorage(x=3); torch.FloatStorage(0, 0); torch.FloatStorage("a"); torch.FloatStorage(torch.tensor([])); torch.FloatStorage(wrap_storage=s)
    torch.FloatStorage(0, wrap_storage=u); torch.TypedStorage(wrap_storage=u); torch.TypedStorage(wrap_storage=u, dtype=3)
    torch.TypedStorage(1, wrap_storage=u, dtype=torch.int); torch.TypedStorage(wrap_storage=u, dtype=torch.int, device="cpu")
    torch.TypedStorage(wrap_storage=s, dtype=torch.int); torch.TypedStorage(wrap_storage=torch.UntypedStorage(8), dtype=torch.int).size()
    s.__setitem__(0, s); s.__setitem__(slice(0, 2), 7) or s.tolist(); s.__setitem__(0, 2.5) or s[0]; s.__setitem__("a", 1); u.__setitem__(0, 2.5)
    u.__setitem__(slice(0, 2), 9) or u.tolist(); u.__setitem__(0, 5) or u[0]; u.__setitem__(7, 2); torch.storage.TypedStorage is torch.TypedStorage
    torch.tensor(s); torch.tensor(u, dtype=torch.uint8); torch.as_tensor(s); torch.Tensor(s); torch.IntTensor(s); torch.zeros(1).new(s)
    torch.tensor(torch.IntStorage([1, 2]), dtype=torch.float32); torch.tensor(torch.IntStorage([1, 2])); torch.tensor(torch.IntStorage([1, 2]), dtype=torch.int)
    torch.zeros(2).set_(torch.FloatStorage([7, 8, 9])); torch.zeros(2).set_(torch.IntStorage([7, 8, 9])); torch.zeros(2).set_(s, 1, (2,))
    torch.zeros(2).set_(torch.IntStorage([7, 8, 9]).untyped()); torch.is_storage(s); torch.is_storage(u); torch.is_storage(3)
    torch.UntypedStorage.from_buffer(b"abcdefgh", dtype=torch.float32, byte_order="little"); torch.UntypedStorage.from_buffer(b"abcd", "x", dtype=torch.int)
    torch.FloatStorage.from_buffer(b"abcdefgh", byte_order="big"); torch.empty(0).storage().data_ptr(); torch.arange(4.0)[2:].storage().size()
    torch.arange(4.0).untyped_storage(); torch.arange(4.0)._typed_storage(); torch.zeros(2).untyped_storage().clone().nbytes()
    torch.zeros(2).untyped_storage().copy_(torch.ones(2).untyped_storage()); s.pickle_storage_type(); s.untyped()._cdata == s._cdata; s.get_device()
    share(torch); torch.storage._LegacyStorage()
"""
CASES = [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split(";")]


def share(lib: Any) -> Any:
    """Writes through storages, seen by tensors, and copies that go on sharing."""
    from copy import deepcopy

    x = lib.arange(4.0)
    x.storage()[1] = 7
    x.untyped_storage()[12:].fill_(0)
    x[3:].storage()[3] = 5
    y, s = deepcopy([x, x.storage()])
    y[0] = 9
    z = lib.tensor(x.storage())
    x[1] = 8
    return x, y, s, z


def answer(lib: Any, expression: str) -> tuple[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        s, u = lib.TypedStorage([1, 2, 3], dtype=lib.float32), lib.UntypedStorage([1, 2, 3])
        try:
            return "gives", repr(eval(expression, {"torch": lib, "s": s, "u": u, "share": share}))
        except Exception as e:
            return "raises", type(e).__name__


@pytest.mark.parametrize("expression", CASES)
def test_as_in_pytorch(expression: str) -> None:
    assert answer(autograd_nb, expression) == answer(torch, expression)
