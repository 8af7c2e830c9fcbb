"""Memory shared with other libraries by DLPack, both ways: NumPy, PyTorch, JAX, and what libraries for devices hand over."""

from __future__ import annotations

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.utils.dlpack import from_dlpack, to_dlpack

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64", "complex128")
BIG = (400, 400)  # memory of this size is aligned as JAX wants it


def tensor(dtype, shape=(3, 4)):
    return torch.arange(int(np.prod(shape))).reshape(shape).to(getattr(torch, dtype))


class NumPy:
    """What the tests need of a library."""

    dtypes = [d for d in DTYPES if d != "bfloat16"]
    views = writes = True

    def make(self, dtype, shape):
        return np.arange(np.prod(shape)).reshape(shape).astype(dtype)

    def place(self, a):
        return a.ctypes.data

    def take(self, x):
        return np.from_dlpack(x)

    def numbers(self, a):
        return a.tolist()


class PyTorch(NumPy):
    """PyTorch's tensors."""

    dtypes = DTYPES

    def __init__(self):
        self.torch = pytest.importorskip("torch", reason="needs PyTorch")

    def make(self, dtype, shape):
        return self.torch.arange(int(np.prod(shape))).reshape(shape).to(getattr(self.torch, dtype))

    def place(self, a):
        return a.data_ptr()

    def take(self, x):
        return self.torch.from_dlpack(x)


class JAX(NumPy):
    """JAX's arrays, which nobody may write to; it copies memory that is not aligned to 64 bytes."""

    dtypes = DTYPES
    views = writes = False

    def __init__(self):
        self.jax = pytest.importorskip("jax", reason="needs JAX")
        self.jax.config.update("jax_enable_x64", True)

    def make(self, dtype, shape):
        return self.jax.numpy.arange(int(np.prod(shape))).reshape(shape).astype(dtype)

    def place(self, a):
        return a.unsafe_buffer_pointer()

    def take(self, x):
        return self.jax.numpy.from_dlpack(x)

    def numbers(self, a):
        return np.asarray(a).tolist()


@pytest.fixture(params=[NumPy, PyTorch, JAX])
def library(request):
    return request.param()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore")
def test_memory_is_shared_both_ways(library, dtype):
    x = tensor(dtype, BIG)
    if dtype not in library.dtypes:
        with pytest.raises(Exception, match=r"[Uu]nsupported"):
            library.take(x)
        return
    theirs = library.take(x)
    assert library.place(theirs) == x.data_ptr()
    assert library.numbers(theirs) == x.tolist()
    y = library.make(dtype, BIG)
    ours = from_dlpack(y)
    assert ours.dtype is getattr(torch, dtype)
    assert ours.data_ptr() == library.place(y)
    assert ours.tolist() == library.numbers(y)
    if library.writes:
        x[1, 1] = 1
        assert library.numbers(theirs)[1][1] == 1
        y[1, 2] = 0
        assert ours[1, 2].item() == 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.filterwarnings("ignore")
def test_views_and_small_tensors(library, dtype):
    if dtype not in library.dtypes:
        pytest.skip("no such dtype")
    x = tensor(dtype)
    strided = (x[:, 1:3], x[::2, ::2]) if library.views else ()  # of which JAX says that it takes none
    for v in (x.T, x[1], x[0, 0], x[:0], *strided):
        theirs = library.take(v)
        assert library.numbers(theirs) == v.tolist()
        back = from_dlpack(theirs)
        assert back.tolist() == v.tolist() and back.dtype is v.dtype
        if library.views and v.numel():
            assert library.place(theirs) == v.data_ptr() == back.data_ptr()
            assert back.stride() == v.stride() or v.numel() == 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_lends_memory_may_go(dtype):
    x = tensor(dtype)
    capsule, numbers = to_dlpack(x), x.tolist()
    del x
    y = from_dlpack(capsule)
    assert y.tolist() == numbers
    with pytest.raises(RuntimeError, match="a capsule can be taken once"):
        from_dlpack(capsule)


def test_bfloat16_is_differentiated_like_others():
    x = from_dlpack(tensor("bfloat16")).requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.dtype is torch.bfloat16 and x.grad.tolist() == [[2.0] * 4] * 3
    with pytest.raises(BufferError, match=r"use tensor\.detach\(\)"):
        x.__dlpack__()


def test_a_copy_is_apart():
    a = np.zeros(3)
    x = from_dlpack(a, copy=True)
    y = torch.from_dlpack(a, device="cpu", copy=False)
    a[0] = 1
    assert x.tolist() == [0, 0, 0] and y.tolist() == [1, 0, 0]
    z = torch.ones(2)
    b = np.from_dlpack(OfCapsule(z.__dlpack__(copy=True, stream=-1, max_version=(1, 0), dl_device=(1, 0))))
    z[0] = 5
    assert b.tolist() == [1, 1]


class OfCapsule:
    """An array of a library: a capsule and the device that it is on; one of before there were versions takes no options."""

    def __init__(self, capsule, device=(1, 0), old=False):
        self.capsule, self.device, self.old = capsule, device, old

    def __dlpack__(self, **options):
        if self.old and options:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        return self.capsule

    def __dlpack_device__(self):
        return self.device


def test_a_library_of_before_there_were_versions():
    assert from_dlpack(OfCapsule(np.ones(2).__dlpack__(), old=True)).tolist() == [1, 1]
    assert from_dlpack(OfCapsule(np.ones(2).__dlpack__(), device=(3, 0))).tolist() == [1, 1]  # CuPy's pinned memory is the CPU's


def test_memory_of_devices_is_refused():
    """As CuPy's arrays have it; and what CuPy asks of a tensor for its own device."""
    with pytest.raises(BufferError, match=r"on cuda, and tensors here are in the CPU's; copy it first, as by x\.cpu\(\) or cupy\.asnumpy\(x\)"):
        from_dlpack(OfCapsule(None, device=(2, 0)))
    with pytest.raises(BufferError, match=r"dl_device=\(2, 0\)"):
        torch.ones(2).__dlpack__(dl_device=(2, 0), stream=1)
    with pytest.raises(RuntimeError, match="computes on the CPU only"):
        from_dlpack(np.ones(2), device="cuda")
    with pytest.raises(TypeError, match="has no __dlpack__"):
        from_dlpack([1, 2])
    assert torch.ones(2).__dlpack_device__() == (1, 0)


def test_what_has_no_memory_hands_none_out():
    """Others ask for the device first, and would read numbers that are not there."""
    x = torch.empty(2, device="meta")
    with pytest.raises(ValueError, match="Unknown device type meta for Dlpack"):
        x.__dlpack_device__()
    with pytest.raises(BufferError, match="Cannot pack tensors on meta"):
        x.__dlpack__()
    with pytest.raises(BufferError, match=r"to_dlpack\(\): tensors of the device meta have a shape and a dtype, and no data"):
        to_dlpack(x)
    with pytest.raises(ValueError, match="Unknown device type meta for Dlpack"):
        from_dlpack(x)
