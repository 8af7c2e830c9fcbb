"""Ready-made parametrisations: orthogonal matrices, spectral norm 1, length and direction.

Source: https://docs.pytorch.org/docs/stable/nn.html#module-torch.nn.utils.parametrizations
"""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...graph.modes import no_grad
from ...ops.core.registry import OPS
from ...ops.creation.create import new_empty
from ...ops.creation.ranges import eye
from ...tensor import Tensor
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from .parametrize import register_parametrization
from .weight_norm import norm_of_slices, weight_of

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_MAPS = ("matrix_exp", "cayley", "householder")


def weight_of_module(module: Module, name: str) -> Tensor:
    """Return the parameter or buffer ``name``. ValueError where there is none."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def output_dim(module: Module) -> int:
    """Return the dim of a layer's weight that is its outputs'."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


# ------------------------------------------------------------------------------------------------------- weight norm


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_of(weight_g, weight_v, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_of_slices(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """w = g · v/‖v‖, the norm of each slice along ``dim`` (None: of all); g is original0 and v original1.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.weight_norm.html

    >>> list(torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3)).state_dict())
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: Any, prefix: str, *_: Any) -> None:  # as the older function of this name kept them
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# ----------------------------------------------------------------------------------------------------- spectral norm


class _SpectralNorm(Module):
    """w / σ with σ the greatest singular value of w as a matrix, by steps of the power method while training."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim, self.eps = dim % weight.ndim, eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            with no_grad():
                for name, n in (("_u", matrix.shape[0]), ("_v", matrix.shape[1])):
                    start = new_empty((n,), weight.dtype).normal_(0, 1)
                    self.register_buffer(name, F.normalize(start, dim=0, eps=eps))
                self._power_method(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.ndim) if d != self.dim))
        return weight.flatten(1)

    @no_grad()
    def _power_method(self, matrix: Tensor, steps: int) -> None:
        for _ in range(steps):
            self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # copies, as the next call changes the buffers, which the graph reads
        return weight / self._u.clone().vdot(matrix.mv(self._v.clone()))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """w = original / σ, with σ its greatest singular value, estimated by the power method (Miyato et al., 2018).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.spectral_norm.html

    >>> w = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(2, 3)).weight
    >>> bool(torch.linalg.matrix_norm(w, 2) < 1.1)
    True
    """
    weight = weight_of_module(module, name)
    dim = output_dim(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


# ------------------------------------------------------------------------------------------------ orthogonal matrices


def _orthogonalised(a: Tensor) -> Tensor:
    q, r = OPS["linalg.qr"].call(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.shape[-2:]
    near = 10.0 * n * dtypes.finfo(q.dtype).eps
    return bool(((q.mH @ q - eye(k, dtype=q.dtype)).abs() <= near).all())


class _Orthogonal(Module):
    """Q with orthonormal columns (or rows, if wide), through one of three maps, times a fixed ``base`` (the trivialisation)."""

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        transposed = x.shape[-2] < x.shape[-1]
        if transposed:
            x = x.mT
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            a = x.tril(-1)
            tau = 2.0 / (1.0 + (a * a).sum(dim=-2))
            q = OPS["linalg.householder_product"].call(a, tau)
            q = q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)  # the signs of the columns
        else:
            x = x.tril()
            if n != k:
                zeros = x.new_zeros(n, n - k).expand(*x.shape[:-2], n, n - k)
                x = OPS["cat"].call([x, zeros], -1)
            skew = x - x.mH
            if self.orthogonal_map == "matrix_exp":
                q = OPS["linalg.matrix_exp"].call(skew)
            else:
                one = eye(n, dtype=x.dtype)
                q = OPS["linalg.solve"].call(one - 0.5 * skew, one + 0.5 * skew)
            q = q[..., :k]
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if transposed else q

    @no_grad()
    def right_inverse(self, q: Tensor) -> Tensor:
        if q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {q.shape}.")
        given = q
        transposed = q.shape[-2] < q.shape[-1]
        if transposed:
            q = q.mT
        n, k = q.shape[-2:]
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            a, tau = OPS["geqrf"].call(q)
            diagonal = a.diagonal(dim1=-2, dim2=-1)
            diagonal.sign_()
            diagonal[tau == 0.0] *= -1
            return a.mT if transposed else a
        if n != k:  # complete the columns to a basis
            more = OPS["randn"].call(*q.shape[:-2], n, n - k, dtype=q.dtype)
            base = _orthogonalised(OPS["cat"].call([q, more], -1))
        else:
            base = q.clone() if _is_orthogonal(q) else _orthogonalised(q)
        self.base = base
        minus_one = given.new_zeros(given.shape)
        minus_one.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return minus_one


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Let a matrix be orthogonal, or semi-orthogonal if it is not square.

    orthogonal_map: "matrix_exp" or "cayley" of a skew-symmetric matrix, or a product of "householder" reflections.
    Errors: ValueError below two dims and for other maps.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.orthogonal.html

    >>> q = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(2, 2)).weight
    >>> bool(torch.dist(q @ q.T, torch.eye(2)) < 1e-5)
    True
    """
    weight = weight_of_module(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    way = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, way, unsafe=True)
