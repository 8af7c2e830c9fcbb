"""The ops that are offered under ``fft``. Written by `make stubs` from the table of ops: change the op, not this file."""

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, Literal, Self, overload

from autograd_nb.dtypes import dtype as _dtype
from autograd_nb.ops.creation.device import device as _device
from autograd_nb.ops.creation.device import layout as _layout
from autograd_nb.ops.creation.device import memory_format as _memory_format
from autograd_nb.ops.creation.storages import TypedStorage, UntypedStorage
from autograd_nb.ops.random.generator import Generator
from autograd_nb.ops.signatures import return_types as _return_types
from autograd_nb.shapes import Size
from autograd_nb.tensor import Tensor
from autograd_nb.types import Device, Number, _Array, _bool, _complex, _float, _Holds, _int, _size, _str

def fft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """yₖ = Σⱼ xⱼ·e^(−2πi·jk/n) along ``dim``."""

def fft2(
    input: Tensor, s: _int | _size | None = None, dim: _int | Sequence[_int] = (-2, -1), norm: _str | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return `fft` over two dims, the last by default."""

def fftfreq(
    n: _int, d: _float = 1.0, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device:
    Device = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return the frequencies of `fft`'s output, for samples ``d`` apart."""

def fftn(
    input: Tensor, s: _int | _size | None = None, dim: _int | Sequence[_int] | None = None, norm: _str | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return `fft` over several dims (default all, or the last of ``s``)."""

def fftshift(input: Tensor, dim: _int | Sequence[_int] | None = None) -> Tensor:
    """Return the frequencies in order, 0 in the middle, along ``dim`` (default all dims)."""

def hfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the `fft` of a signal that is its own mirrored conjugate, given by half: real."""

def hfft2(
    input: Tensor, s: _int | _size | None = None, dim: _int | Sequence[_int] = (-2, -1), norm: _str | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return `hfft` (half of the signal along the last dim) over two dims, the last by default."""

def hfftn(
    input: Tensor, s: _int | _size | None = None, dim: _int | Sequence[_int] | None = None, norm: _str | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return `hfft` (half of the signal along the last dim) over several dims (default all, or the last of ``s``)."""

def ifft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of `fft`: yⱼ = Σₖ xₖ·e^(2πi·jk/n)/n along ``dim``."""

def ifft2(
    input: Tensor, s: _int | _size | None = None, dim: _int | Sequence[_int] = (-2, -1), norm: _str | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return `ifft` over two dims, the last by default."""

def ifftn(
    input: Tensor, s: _int | _size | None = None, dim: _int | Sequence[_int] | None = None, norm: _str | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return `ifft` over several dims (default all, or the last of ``s``)."""

def ifftshift(input: Tensor, dim: _int | Sequence[_int] | None = None) -> Tensor:
    """Undo `fftshift`, with the same dims."""

def ihfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of `hfft`: half of the transform of a real input."""

def ihfft2(
    input: Tensor, s: _int | _size | None = None, dim: _int | Sequence[_int] = (-2, -1), norm: _str | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return `ihfft` (half of the signal along the last dim) over two dims, the last by default."""

def ihfftn(
    input: Tensor, s: _int | _size | None = None, dim: _int | Sequence[_int] | None = None, norm: _str | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return `ihfft` (half of the signal along the last dim) over several dims (default all, or the last of ``s``)."""

def irfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of `rfft`; n is 2·(size − 1) where not given."""

def irfft2(
    input: Tensor, s: _int | _size | None = None, dim: _int | Sequence[_int] = (-2, -1), norm: _str | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return `irfft` (half of the frequencies of the last dim) over two dims, the last by default."""

def irfftn(
    input: Tensor, s: _int | _size | None = None, dim: _int | Sequence[_int] | None = None, norm: _str | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return `irfft` (half of the frequencies of the last dim) over several dims (default all, or the last of ``s``)."""

def rfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the `fft` of a real input, its n//2 + 1 frequencies that are not mirror images."""

def rfft2(
    input: Tensor, s: _int | _size | None = None, dim: _int | Sequence[_int] = (-2, -1), norm: _str | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return `rfft` (half of the frequencies of the last dim) over two dims, the last by default."""

def rfftfreq(
    n: _int, d: _float = 1.0, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device:
    Device = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return the frequencies of `rfft`'s output, for samples ``d`` apart."""

def rfftn(
    input: Tensor, s: _int | _size | None = None, dim: _int | Sequence[_int] | None = None, norm: _str | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return `rfft` (half of the frequencies of the last dim) over several dims (default all, or the last of ``s``)."""
