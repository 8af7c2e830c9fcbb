"""What every distribution needs: the functions of tensors, broadcasting of parameters, properties computed once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from .. import dtypes
from ..graph.modes import recorded
from ..ops.core.registry import functions
from ..tensor import Tensor

#: the package itself: a program that replaces ``torch.rand``, say, is served by what draws here as it is by PyTorch
T: Any = sys.modules[__package__.partition(".")[0]]
F = SimpleNamespace(**functions("nn.functional"))


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Return numbers and tensors as tensors of one shape, numbers in the dtype of the first tensor. ValueError for anything else."""
    if not all(isinstance(v, (Tensor, int, float)) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__.")
    d = next((v.dtype for v in values if isinstance(v, Tensor)), dtypes.get_default_dtype())
    tensors = [v if isinstance(v, Tensor) else T.tensor(v, dtype=d) for v in values]
    return tuple(T.broadcast_tensors(*tensors))


def part(path: str, doc: str) -> Any:
    """Return a property that a distribution within this one has: ``base_dist.loc``, say."""
    return property(attrgetter(path), doc=doc)


class lazy_property:
    """A property that is computed at first use and then kept."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with recorded():  # whoever asks first, the gradients are everybody's
            value = self.function(instance)
        instance.__dict__[self.function.__name__] = value
        return value


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return ln p, or ln(p/(1 − p)); p is kept away from 0 and 1 by the dtype's precision."""
    p = clamp_probs(probs)
    return p.log() - (-p).log1p() if is_binary else p.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return σ(logits), or their softmax along the last dim."""
    return T.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Return p kept within [eps, 1 − eps]."""
    eps = dtypes.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def sum_rightmost(x: Any, dims: int) -> Any:
    """Return the sum over the last ``dims`` dims."""
    if dims == 0 or not isinstance(x, Tensor):
        return x
    return x.reshape(*x.shape[: x.ndim - dims], -1).sum(-1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements on and below the diagonal ``diag`` of square matrices, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    places = T.arange(n)
    return mat[..., places < places.view(-1, 1) + (diag + 1)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return lower triangular matrices from their elements: the inverse of `tril_matrix_to_vec`."""
    shift = 1 + 2 * diag
    n = (-shift + (shift**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if not round(n - 1e-9) - 1e-6 <= n <= round(n) + 1e-6:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a square matrix.")
    size = round(n)
    places = T.arange(size)
    out = T.zeros((*vec.shape[:-1], size, size), dtype=vec.dtype)
    out[..., places < places.view(-1, 1) + (diag + 1)] = vec
    return out


def _standard_normal(shape: Any, dtype: Any, device: Any = None) -> Tensor:
    """Return standard normal numbers, as packages take them from PyTorch."""
    return T.empty(tuple(shape), dtype=dtype).normal_()


_sum_rightmost = sum_rightmost
