"""Views and small tensors that are made again by what is remembered of the first: the second is as the first, errors too."""

from __future__ import annotations

import math

import numpy as np
import pytest

import autograd_nb as torch

x = torch.arange(16.0).view(4, 4).clone()

VIEWS = {
    "view": lambda t: t.view(2, 8),
    "view of a tuple": lambda t: t.view((2, -1)),
    "reshape of a transpose": lambda t: t.t().reshape(-1),
    "flatten": lambda t: t.flatten(),
    "permute": lambda t: t.permute(1, 0),
    "view of a list": lambda t: t.view([2, -1]),
    "permute by a list": lambda t: torch.permute(t, dims=[1, 0]),
    "transpose in words": lambda t: t.transpose(dim1=0, dim0=1),
    "select in words": lambda t: torch.select(index=1, input=t, dim=-1),
    "diagonal in words": lambda t: t.diagonal(dim1=1, dim2=0, offset=-1),
    "chunk in words": lambda t: t.chunk(2, dim=1)[1],
    "flatten in words": lambda t: t[None].flatten(start_dim=1),
    "T": lambda t: t.T,
    "mT": lambda t: t.mT,
    "unsqueeze": lambda t: t.unsqueeze(axis=-1),
    "squeeze": lambda t: torch.squeeze(dim=0, input=t[None]),
    "expand": lambda t: t.expand(2, -1, 4),
    "select": lambda t: t.select(1, -1),
    "narrow": lambda t: t.narrow(0, 1, 2),
    "diagonal": lambda t: t.diagonal(1),
    "split": lambda t: t.split([1, 3], 1)[1],
    "tensor_split": lambda t: t.tensor_split(3, 1)[0],
    "tensor_split at": lambda t: t.tensor_split([1, 3], dim=1)[1],
    "tensor_split into one": lambda t: t.tensor_split(1)[0],
    "unfold": lambda t: t.unfold(1, 2, 2),
    "hsplit": lambda t: torch.hsplit(t, 2)[1],
    "meshgrid": lambda t: torch.meshgrid(t[0], t[1], indexing="xy")[1],
    "chunk": lambda t: t.chunk(3)[1],
    "unbind": lambda t: t.unbind(1)[2],
    "iteration": lambda t: list(t)[3],
    "int": lambda t: t[-1],
    "slice": lambda t: t[1:-1:2],
    "tuple": lambda t: t[..., 1:, None],
    "column": lambda t: t[:, 1],
    "element": lambda t: t[1, -2],
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_repeated_view_is_as_the_first(name):
    look = VIEWS[name]
    leaf = torch.arange(16.0).view(4, 4).clone().requires_grad_()
    grads, kinds = [], []
    for _ in range(3):
        y = leaf * 1
        v = look(y)
        first = look(x)
        assert v.tolist() == first.tolist()
        assert v.stride() == first.stride()
        if name != "reshape of a transpose":  # which copies
            assert first._base is x
            assert first.storage_offset() == look(x).storage_offset()
        (v * v.detach().cos()).sum().backward()
        grads.append(leaf.grad.tolist())
        kinds.append(v.grad_fn.name())
        leaf.grad = None
    assert grads[0] == grads[1] == grads[2]
    assert kinds[0] == kinds[1] == kinds[2]


def test_what_is_equal_to_an_argument_need_not_be_one():
    for wrong in ((2.0, 8), (True, 16), ((2.0, 8),)):
        assert x.view(2, 8).shape == x.view((2, 8)).shape == (2, 8)
        assert x.view(1, 16).shape == (1, 16)
        with pytest.raises(TypeError):
            x.view(*wrong)
    assert x[1].shape == (4,)
    assert x[True].shape == (1, 4, 4)
    assert x[1:3].shape == x[1 : torch.tensor(3)].shape == (2, 4)
    assert x[-1:].shape == (1, 4)
    with pytest.raises(IndexError):
        x[1.0]
    with pytest.raises(TypeError):
        x[1.0:3]
    assert torch.zeros(2, 3).shape == (2, 3)
    for args in ((2.0, 3), (True, 3)):
        with pytest.raises(TypeError):
            torch.zeros(*args)


def test_views_share_memory_and_version_with_their_base():
    for _ in range(2):
        base = torch.zeros(4, 4)
        rows = base.chunk(2)
        base[1].view(2, 2)[0].add_(1)
        assert base.sum() == 2
        assert rows[0]._version == base._version == 1


def test_views_made_without_recording():
    leaf = torch.ones(4, requires_grad=True)
    for _ in range(2):
        base = leaf * 1
        with torch.no_grad():
            v = base[:2]
        with pytest.raises(RuntimeError, match="created in no_grad mode"):
            v.add_(1)
        with torch.inference_mode():
            w, new = base[:2], base + 1
            u = torch.ones(4)
        assert new.is_inference()
        assert u.is_inference()
        assert not w.is_inference()
        with pytest.raises(RuntimeError, match="created in inference mode"):
            w.add_(1)


MADE = {
    "zeros": lambda: torch.zeros(2, 3),
    "ones": lambda: torch.ones((2,), dtype=torch.int64),
    "full": lambda: torch.full((2,), 0.5),
    "full of ints": lambda: torch.full((2,), 1),
    "full of floats": lambda: torch.full((2,), 1.0),
    "arange": lambda: torch.arange(3),
    "arange of floats": lambda: torch.arange(3.0),
    "linspace": lambda: torch.linspace(0.5, 1, 3),
    "eye": lambda: torch.eye(2, 3),
    "ones_like": lambda: torch.ones_like(x.t()),
    "new_zeros": lambda: x.new_zeros(3),
}


@pytest.mark.parametrize("name", MADE)
def test_each_small_tensor_has_memory_of_its_own(name):
    first = MADE[name]()
    expected, kind = first.tolist(), first.dtype
    for _ in range(3):
        t = MADE[name]()
        assert t.tolist() == expected
        assert t.dtype is kind
        assert t._version == 0
        t.add_(1)
    assert torch.zeros(2, requires_grad=True).requires_grad
    assert not torch.zeros(2).requires_grad


def test_made_of_what_is_equal_but_not_the_same():
    for _ in range(2):
        assert math.copysign(1, torch.full((2,), -0.0)[0].item()) == -1
        assert math.copysign(1, torch.full((2,), 0.0)[0].item()) == 1
        assert torch.full((2,), True).dtype is torch.bool
        assert torch.full((2,), 1).dtype is torch.int64
        assert torch.arange(2.0).dtype is torch.float32
        assert torch.arange(2).dtype is torch.int64
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.zeros(2, 3).dtype is torch.arange(2.0).dtype is torch.tensor([1.0]).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_captured_program_makes_its_tensors_anew():
    def f(t):
        z = torch.zeros(4)
        z += t
        return z, torch.ones_like(t) * t, torch.tensor([1.0, 2.0, 3.0, 4.0]) + t

    for t in (torch.ones(4), torch.ones(4) * 2):
        f(t)  # so that all of it is known
    step = torch.compile(f, fullgraph=True)
    for k in range(4):
        t = torch.ones(4) * k
        for a, b in zip(step(t), f(t), strict=True):
            assert a.tolist() == b.tolist()


def test_arguments_that_change_are_read_each_time():
    start, value = torch.tensor(1), torch.tensor(2.0)
    for k in range(3):
        assert x.narrow(0, start, 1)[0, 0].item() == 4 * (1 + k)
        assert torch.full((2,), value).tolist() == [2.0 + k] * 2
        start += 1
        value += 1
    assert x[torch.tensor(1) : torch.tensor(2)].shape == (1, 4)


@pytest.mark.parametrize("source", [[[1.0, 2.0], [3.0, 4.0]], np.array([[1.0, 2.0], [3.0, 4.0]])], ids=["list", "array"])
@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor])
def test_the_place_in_the_storage_of_what_was_made_of_rows(make, source):
    row = make(source)[1]
    assert row.storage_offset() == 2
    assert row.as_strided((2,), (1,), 0).tolist() == [1, 2]


def test_a_grid_without_indexing_warns():
    x, y = torch.arange(2), torch.arange(3)
    with pytest.warns(UserWarning, match="required to pass the indexing argument"):
        grids = torch.meshgrid(x, y)
    assert [g.tolist() for g in grids] == [g.tolist() for g in torch.meshgrid(x, y, indexing="ij")]
    assert torch.cartesian_prod(x, y).shape == (6, 2)  # silent, as warnings are errors here


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "int8", "int64", "uint8", "bool"])
def test_memory_in_front_of_a_part_is_the_array_s(dtype):
    """Also where the dtype has a carrier: the storage of a tensor from an array begins with the array."""
    whole = np.arange(12).reshape(3, 4).astype(dtype)
    part = torch.from_numpy(whole.copy())[1:]
    assert part.storage_offset() == 4
    np.testing.assert_array_equal(part.as_strided((2, 2), (4, 1), 0).numpy(), whole[:2, :2])


def test_lists_are_read_each_time():
    sizes = [2, 8]
    assert x.view(sizes).shape == (2, 8)
    sizes[:] = [8, 2]
    assert x.view(sizes).shape == (8, 2)
    assert [x.view(n).shape for n in ((16, 1), [1, 16], (16, 1), [1, 16])] == [(16, 1), (1, 16)] * 2
    for _ in range(3):
        with pytest.raises(TypeError):
            x.view([True, 16])


def test_what_stays_as_it_is_is_returned_each_time():
    for t in (x, x[0], x.clone().requires_grad_()):
        assert t.flatten(-1) is t
        assert t.flatten(start_dim=-1) is t
        assert t.flatten(-1) is t


def test_words_are_no_numbers():
    assert x.diagonal(offset=1).shape == x.diagonal(1).shape == (3,)
    assert x.diagonal(dim1=1, dim2=0, offset=1)[0] == 4
    assert x.diagonal(dim2=1, dim1=0, offset=1)[0] == 1
    assert x.select(dim=1, index=0)[1] == 4
    assert x.select(index=1, dim=0)[1] == 5


@pytest.mark.parametrize("look", [torch.view_as_real, torch.real, torch.imag, lambda z: z.t().real[1:]])
def test_repeated_views_of_another_dtype_share_the_memory(look):
    for k in range(4):
        z = torch.complex(torch.ones(3, 4) * k, torch.ones(3, 4))
        v = look(z)
        assert v._is_view() and v._base is z and v.dtype is torch.float32
        assert v._version == z._version
        v.add_(1)
        assert z._version == v._version == 1
        assert z[1, 1].real in (k, k + 1) and z[1, 1].imag in (1, 2)
        assert torch.view_as_real(z).sum() == 12 * (k + 1) + v.numel()
        w = z.clone().requires_grad_()
        (look(w) * 2).sum().backward()
        assert torch.view_as_real(w.grad).sum() == 2 * v.numel()


def test_views_of_another_dtype_of_parts_of_odd_memory():
    for n in (4, 5, 7, 4):
        x = torch.arange(float(n))[:4].view(2, 2)
        z = torch.view_as_complex(x)
        assert z.tolist() == [1j, 2 + 3j] and z._base is x._base
        x[0, 0] = 5
        assert z[0] == 5 + 1j
