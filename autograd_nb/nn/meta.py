"""Parameters of the device ``meta`` (see `autograd.meta`)."""

from __future__ import annotations

from typing import Any

from ..autograd.meta import Meta, counted
from ..autograd.subclasses import machinery
from ..tensor import Tensor, adopt, set_requires_grad
from .parameter import Parameter


class MetaParameter(Meta, Parameter):
    """A parameter without numbers. Called with a tensor that has some it makes an ordinary parameter, as programs do which bring them."""

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if not isinstance(data, Meta):
            return Parameter(data, requires_grad)
        t = counted(adopt(cls, machinery().undisturbed(Tensor.detach, data)))
        set_requires_grad(t, requires_grad)
        return t

    def __repr__(self, **options: Any) -> str:
        return "Parameter containing:\n" + Meta.__repr__(self)
