"""The ops that are offered under ``signal.windows``. Written by `make stubs` from the table of ops: change the op, not this file."""

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

def bartlett(
    M: Tensor, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None,
    requires_grad: _bool = False
) -> Tensor:
    """Return a triangle from 0 up to 1 and down."""

def blackman(
    M: Tensor, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None,
    requires_grad: _bool = False
) -> Tensor:
    """Return 0.42 − 0.5·cos(2πi/n) + 0.08·cos(4πi/n)."""

def cosine(
    M: Tensor, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None,
    requires_grad: _bool = False
) -> Tensor:
    """Return sin(π(i + ½)/n), half a wave."""

def exponential(
    M: Tensor, *, center: _bool | None = None, tau: _float = 1.0, sym: _bool = True, dtype: _dtype | None = None, layout:
    _layout | None = None, device: Device = None, requires_grad: _bool = False
) -> Tensor:
    """Return e^(−|i − center|/tau)."""

def gaussian(
    M: Tensor, *, std: _float = 1.0, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = None, device:
    Device = None, requires_grad: _bool = False
) -> Tensor:
    """Return e^(−½((i − n/2)/std)²)."""

def general_cosine(
    M: Tensor, *, a: Sequence[_float] = (), sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = None,
    device: Device = None, requires_grad: _bool = False
) -> Tensor:
    """Return Σₖ (−1)ᵏ aₖ cos(2πk·i/n), ``a`` a list."""

def general_hamming(
    M: Tensor, *, alpha: _float = 0.54, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = None, device:
    Device = None, requires_grad: _bool = False
) -> Tensor:
    """Return alpha − (1 − alpha)·cos(2πi/n)."""

def hamming(
    M: Tensor, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None,
    requires_grad: _bool = False
) -> Tensor:
    """Return 0.54 − 0.46·cos(2πi/n)."""

def hann(
    M: Tensor, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None,
    requires_grad: _bool = False
) -> Tensor:
    """Return sin²(πi/n)."""

def kaiser(
    M: Tensor, *, beta: _float = 12.0, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = None, device:
    Device = None, requires_grad: _bool = False
) -> Tensor:
    """Return I₀(beta·√(1 − x²))/I₀(beta) for x from −1 to 1."""

def nuttall(
    M: Tensor, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None,
    requires_grad: _bool = False
) -> Tensor:
    """Return Nuttall's cosine sum of four terms, with sidelobes below −93 dB."""
