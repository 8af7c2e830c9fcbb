"""Determinants, from LU."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import return_types
from ...codegen.formula.namespace import m
from ...graph.modes import state
from ...launch import Kernel
from ...tensor import Tensor
from ..core.jumps import by_jumps
from ..core.registry import OPS, public
from ..core.structured import structured
from ..creation.cast import cast
from ..creation.create import new_empty, new_full
from .common import adjoint, batch_of, count, given, identity, several, square
from .lu import _factors, _inv, _solved
from .spectral import thin_svd

_DETERMINANT, _SIGN_AND_LOG = Kernel("linalg.lapack", "determinant"), Kernel("linalg.lapack", "sign_and_log", outputs=2)


def _nearly_singular(lu: Tensor) -> Tensor:
    """Return, per matrix, whether solving with these factors would lose all digits."""
    d = lu.detach().diagonal(0, -2, -1).abs()
    return d.amin(-1) <= d.amax(-1) * (10 * lu.shape[-1] * np.finfo(d.dtype.np).eps)


def _cofactors(a: Tensor) -> Tensor:
    """det(a)·a⁻ᵀ also where a has no inverse: from a = U·S·V, det(U·V)·U·diag(the products of the other singular values)·V."""
    u, s, v = thin_svd(a)
    turn = det(u.detach()) * det(v.detach())
    n = s.shape[-1]
    one = identity(n, s.dtype) != 0
    others = OPS["where"].call(one, 1.0, s.unsqueeze(-2)).prod(-1)
    return (u * (others * turn.unsqueeze(-1)).unsqueeze(-2)) @ v


def _det_rule(g: Any, a: Tensor, out: Any) -> Any:
    g, (d, lu, pivots) = g[0], out
    if g is None:
        return None
    n = a.shape[-1]
    if not a._layout.size:
        return new_full(a.shape, 0, a.dtype)
    if n == 1:
        return g.unsqueeze(-1).unsqueeze(-1)
    one = identity(n, a.dtype)
    singular = _nearly_singular(lu)
    some = bool(singular.any())
    mask = singular.unsqueeze(-1).unsqueeze(-1)
    if state.grad:
        safe = OPS["where"].call(mask, one, a) if some else a
        inverse = _inv(safe)[0].mT
    else:
        inverse = _solved(lu, pivots, one.expand(a.shape), True)
    y = inverse * (g * d).unsqueeze(-1).unsqueeze(-1)
    if some:
        y = OPS["where"].call(mask, _cofactors(a) * g.unsqueeze(-1).unsqueeze(-1), y)
    return y


@structured(
    a=_det_rule, node="LinalgDetBackward0", linear="no", batch="shift",
    dtypes="float complex", samples="torch.linalg.det(x(3, 3))",
)
def _det(a):
    lu, pivots, _ = _factors(a)
    det = new_empty(batch_of(a), a.dtype)
    if det._layout.size:
        _DETERMINANT(a.dtype, count(a), a.shape[-1], lu._data, pivots._data, det._data)
    return [det, lu, pivots]


@public()
@public(method=False, namespaces=("linalg",), name="linalg.det")
def det(input, *, out=None):
    """Return the determinants of square matrices (…, n, n) → (…); dA = g·det(A)·A⁻ᴴ, the matrix of cofactors where A is singular.

    Errors: RuntimeError for matrices that are not square.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.det.html

    >>> torch.linalg.det(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor(5.)
    """
    return given(_det(square(input, "linalg.det"))[0], out, "linalg.det")


def _slogdet_rule(g: Any, a: Tensor, out0: Any, out2: Any, out3: Any) -> Any:
    sign, lu, pivots = out0, out2, out3
    if not a.shape[-1]:
        return by_jumps(new_full(a.shape, 0, a.dtype), a, *g[:2])
    weight = g[1]
    if a.dtype.is_complex:
        weight = new_full(sign.shape, 0, sign.dtype) if weight is None else cast(weight, a.dtype)
        if g[0] is not None:  # the sign turns with the imaginary part of log det
            weight = weight - (m.conj(g[0]) * sign).imag * 1j
    if weight is None:
        return None
    one = identity(a.shape[-1], a.dtype)
    if state.grad:
        inverse = adjoint(_inv(a)[0])
    else:
        inverse = _solved(lu, pivots, one.expand(a.shape), True)
        inverse = m.conj(inverse) if a.dtype.is_complex else inverse
    return inverse * weight.unsqueeze(-1).unsqueeze(-1)


@structured(
    a=_slogdet_rule, node="LinalgSlogdetBackward0", holomorphic=False, linear="no", batch="shift",
    dtypes="float complex", samples="torch.linalg.slogdet(spd(3))",
)
def _slogdet(a):
    lu, pivots, _ = _factors(a)
    sign, log = new_empty(batch_of(a), a.dtype), new_empty(batch_of(a), a.dtype.to_real())
    if sign._layout.size:
        _SIGN_AND_LOG(a.dtype, count(a), a.shape[-1], lu._data, pivots._data, sign._data, log._data)
    return [sign, log, lu, pivots]


@public(method=False, namespaces=("linalg",), name="linalg.slogdet")
def slogdet(A, *, out=None):
    """Return (sign, logabsdet) with det(A) = sign·e^logabsdet; sign 0 and −∞ for a singular matrix. dA = g·A⁻ᴴ.

    Errors: RuntimeError for matrices that are not square.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.slogdet.html

    >>> torch.linalg.slogdet(torch.tensor([[0.0, 1.0], [1.0, 0.0]])).sign
    tensor(-1.)
    """
    return several(return_types.linalg_slogdet, _slogdet(square(A, "linalg.slogdet"))[:2], out, "linalg.slogdet")


@public(name="slogdet")
def torch_slogdet(input, *, out=None):
    """Return `linalg.slogdet`, its older name; slogdet([[2., 0.], [0., 3.]]) = torch.return_types.slogdet( sign=tensor(1.), logabsdet=tensor(1.7918))."""
    return several(return_types.slogdet, _slogdet(square(input, "linalg.slogdet"))[:2], out, "slogdet")


@public()
def logdet(input):
    """Return log det(A) of square matrices (…, n, n); nan for a negative determinant, −∞ for a singular matrix. dA = g·A⁻ᴴ.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.logdet.html

    >>> torch.logdet(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor(1.6094)
    """
    sign, log, *_ = _slogdet(square(input, "logdet"))
    if sign.dtype.is_complex:
        return sign.log() + log
    return OPS["where"].call(sign == -1, float("nan"), log)
