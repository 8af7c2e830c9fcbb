"""What old names do: functions beside methods, ATen's losses with numbers for reductions, and what programs ask of `nn._reduction` and autocast."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..nn import functional as F
from ..ops.nn.cross_entropy import legacy_reduction
from ..tensor import Tensor

_REDUCTIONS = ("none", "mean", "sum")


def get_enum(reduction: str) -> int:
    """Return the number of a reduction: 0 for "none", 1 for "mean", 2 for "sum". ValueError else."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction (use one of {', '.join(_REDUCTIONS)})")
    return _REDUCTIONS.index(reduction)


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Return the reduction that the two old flags mean; None stands for True."""
    if not emit_warning:
        averaged, reduced = size_average is None or size_average, reduce is None or reduce
        return "none" if not reduced else "mean" if averaged else "sum"
    given = True if size_average is None and reduce is None else size_average
    return legacy_reduction(given, reduce, "mean")


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Return the number of the reduction that the two old flags mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    """Return `nn.functional.kl_div` for the number of a reduction."""
    return F.kl_div(input, target, reduction=_REDUCTIONS[reduction], log_target=log_target)  # type: ignore[no-any-return]


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    """Return `nn.functional.binary_cross_entropy_with_logits` for the number of a reduction."""
    named: dict[str, Any] = {"reduction": _REDUCTIONS[reduction], "pos_weight": pos_weight}
    return F.binary_cross_entropy_with_logits(input, target, weight, **named)  # type: ignore[no-any-return]


def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Return √Σ|x|² over ``dim``."""
    return input.norm("fro", dim, keepdim)


def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the sum of a matrix' singular values.

    >>> torch.nuclear_norm(torch.eye(3))
    tensor(3.)
    """
    return input.norm("nuc", dim, keepdim)


def detach_(input: Tensor) -> Tensor:
    """Return the tensor, which has no history from now on.

    >>> x = torch.ones(2, requires_grad=True) * 2
    >>> torch.detach_(x).requires_grad
    False
    """
    return input.detach_()


def as_strided_(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Return the tensor, which has this size and these strides from now on.

    >>> torch.as_strided_(torch.arange(4), (2,), (2,))
    tensor([0, 2])
    """
    return input.as_strided_(size, stride, storage_offset)


def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Compute `addmv` in place and return the tensor."""
    return input.addmv_(mat, vec, beta=beta, alpha=alpha)


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """Return the dtype that autocast computes in: bfloat16 on the CPU, float16 elsewhere.

    >>> torch.get_autocast_dtype("cpu")
    torch.bfloat16
    """
    return dtypes.bfloat16 if device_type == "cpu" else dtypes.float16


def get_autocast_cpu_dtype() -> dtypes.dtype:
    """Return the dtype that autocast computes in on the CPU.

    >>> torch.get_autocast_cpu_dtype()
    torch.bfloat16
    """
    return dtypes.bfloat16


def get_autocast_gpu_dtype() -> dtypes.dtype:
    """Return the dtype that autocast computes in on GPUs.

    >>> torch.get_autocast_gpu_dtype()
    torch.float16
    """
    return dtypes.float16


def replicate(network: Any, devices: Any, detach: bool = False) -> list[Any]:
    """Return the module once for each device."""
    return [network for _ in devices]


def parallel_apply(modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None) -> list[Any]:
    """Return the result of each module for its inputs."""
    named = kwargs_tup or [{}] * len(modules)
    return [m(*(given if isinstance(given, tuple) else (given,)), **kw) for m, given, kw in zip(modules, inputs, named, strict=True)]
