"""What packages take from inside PyTorch's modules gives PyTorch's numbers."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import numpy as np
import pytest

import autograd_nb

torch = pytest.importorskip("torch")


def drawn(lib, *shape, seed=0, grad=False):
    return lib.tensor(np.random.default_rng(seed).standard_normal(shape)).requires_grad_(grad)


def groups(lib, a_shape, b_shape, offsets):
    a, b = drawn(lib, *a_shape, grad=True), drawn(lib, *b_shape, seed=1, grad=True)
    out = lib._grouped_mm(a.bfloat16(), b.bfloat16(), offs=None if offsets is None else lib.tensor(offsets, dtype=lib.int32))
    out.float().square().sum().backward()
    return [out.float(), a.grad, b.grad]


def split_by_name(lib):
    x = drawn(lib, 7, 3)
    return [*lib.tensor_split(x, indices=(2, 3)), *x.tensor_split(sections=2, dim=1), *lib.tensor_split(x, tensor_indices_or_sections=lib.tensor([1, 4]))]


def from_bytes(lib):
    return [lib.frombuffer(bytearray(range(1, 13)), dtype=lib.bfloat16, offset=2, count=4).float(), lib.frombuffer(bytearray(8), dtype=lib.float16)]


def expanded(lib):
    """A distribution of a program, with an `expand` as PyTorch's have it."""

    class Doubled(lib.distributions.Normal):
        def __init__(self, loc):
            super().__init__(2 * loc, lib.ones_like(loc), validate_args=False)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Doubled, _instance)
            return super().expand(batch_shape, new)

    return [Doubled(drawn(lib, 3)).expand((2, 3)).log_prob(drawn(lib, 2, 3, seed=1))]


def seen_by_viewers(lib):
    """The saved tensors of nodes, by the names that ``dir`` tells."""
    x, y = drawn(lib, 3, grad=True), drawn(lib, 3, seed=1, grad=True)
    found = []
    for z in (x.exp(), x.sin(), x * y, x.tanh()):
        names = [name for name in dir(z.grad_fn) if name.startswith("_saved_")]
        found += [lib.tensor([len(names)]), *(getattr(z.grad_fn, name) for name in sorted(names))]
    return found


def read_lazily(lib):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bytes"
        path.write_bytes(bytes(range(16)))
        storage = lib.UntypedStorage.from_file(str(path), shared=True, nbytes=16)
        t = lib.tensor([], dtype=lib.int16).set_(storage)
        t[0] = -3
        apart = lib.UntypedStorage.from_file(str(path), shared=False, nbytes=8)
        apart[0] = 9
        return [t, lib.tensor(list(apart)), lib.tensor(list(path.read_bytes()), dtype=lib.int64)]


def asked_of_einsum(lib):
    """What a stand-in for tensors is told of einsum: operands one by one, however they were given."""
    told = []

    class Stand:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            told.append(len(args))
            return 0

    lib.add(Stand(), 1)
    for operands in ((Stand(), Stand()), ([Stand(), Stand()],), ((Stand(),),)):
        lib.einsum("ij,jk->ik" if len(operands) == 2 or len(operands[0]) == 2 else "ij->ji", *operands)
    return [lib.tensor(told)]


def records(lib):
    """An archive that the library wrote, read by both."""
    buffer = io.BytesIO()
    with lib.serialization._open_zipfile_writer(buffer) as archive:
        archive.write_record("a", b"123", 3)
        archive.write_record("c/d", b"98765", 4)
    found = []
    for reader in (lib, torch, autograd_nb):
        buffer.seek(0)
        with reader.serialization._open_zipfile_reader(buffer) as archive:
            found += [int(archive.get_record(name)) for name in ("a", "c/d")] + [archive.has_record(name) for name in ("a", "d", "version")]
            with pytest.raises(RuntimeError, match="failed locating file d"):
                archive.get_record("d")
    return [lib.tensor(found)]


PROGRAMS = {
    "records": records,
    "unique": lambda lib: [v for x in (lib.tensor([2, 1, 2]), lib.tensor([[0.5], [0.1]])) for b in (False, True) for v in
                           (*lib._unique(x, True, b), *lib._unique2(x), *lib._unique2(x, True, b, True))],
    "tensor_split by name": split_by_name, "bytes": from_bytes, "expand": expanded, "saved": seen_by_viewers, "files": read_lazily,
    "einsum": asked_of_einsum,
    "softmax": lambda lib: [lib._softmax_backward_data(drawn(lib, 3, 4), drawn(lib, 3, 4, seed=1).softmax(1), 1, lib.float64)],
    "log_softmax": lambda lib: [lib._log_softmax_backward_data(drawn(lib, 3, 4), drawn(lib, 3, 4, seed=1).log_softmax(0), 0, lib.float64)],
    "rows to pointers": lambda lib: [lib._convert_indices_from_coo_to_csr(lib.tensor([0, 0, 2, 5]), 7),
                                     lib._convert_indices_from_coo_to_csr(lib.tensor([1, 1]), 2, out_int32=True)],
    "pointers to rows": lambda lib: [lib._convert_indices_from_csr_to_coo(lib.tensor([0, 2, 2, 3]), lib.tensor([0, 1, 1])),
                                     lib._convert_indices_from_csr_to_coo(lib.tensor([0, 2, 3]), lib.tensor([0, 1, 1]), transpose=True)],
    "casts": lambda lib: [lib._cast_Long(drawn(lib, 3) * 5), lib._cast_Float(drawn(lib, 3)), lib._cast_Half(drawn(lib, 3))],
    "clipped": lambda lib: [lib.distributions.transforms._clipped_sigmoid(lib.tensor([-1e4, 0.3, 1e4]))],
    "groups of rows": lambda lib: groups(lib, (16, 8), (3, 8, 16), [5, 5, 16]),
    "groups of sums": lambda lib: groups(lib, (8, 16), (16, 8), [5, 16]),
    "groups of columns": lambda lib: groups(lib, (2, 8, 16), (16, 24), [7, 24]),
    "groups of both": lambda lib: groups(lib, (2, 8, 16), (2, 16, 8), None),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same(name):
    for ours, theirs in zip(PROGRAMS[name](autograd_nb), PROGRAMS[name](torch), strict=True):
        assert str(ours.dtype) == str(theirs.dtype)
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-2 if "groups" in name else 1e-12)
