"""Normalisation over batches, layers, groups and instances.

Source: https://docs.pytorch.org/docs/stable/nn.html#normalization-layers
"""

from __future__ import annotations

import numbers
from typing import Any

from ... import dtypes, launch
from ...autograd.function import Function
from ...errors import warn_user
from ...graph.modes import no_grad
from ...ops.core.numbers import scalar_tensor
from ...ops.core.recording import guarded
from ...ops.core.registry import OPS
from ...ops.creation.create import new_full
from ...tensor import Tensor
from .. import functional as F
from .. import init
from .module import Module
from .options import parameter


class _Scaled(Module):
    """A module with a learned scale, the parameter ``weight``, and a shift, ``bias``, if it has them."""

    def _learn(self, shape: tuple[Any, ...], device: Any, dtype: Any, **wanted: bool) -> None:
        """Make the parameters of these names, None where they are not wanted."""
        for name, learned in wanted.items():
            self.register_parameter(name, parameter(shape, dtype, device) if learned else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale 1, shift 0."""
        for name, fill in (("weight", init.ones_), ("bias", init.zeros_)):
            p = self._parameters.get(name)
            if p is not None:
                fill(p)


class _NormBase(_Scaled):
    """The base of batch and instance norms: learned scale and shift, running statistics."""

    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    _version = 2
    dims: tuple[int, ...] = ()

    def __init__(
        self, num_features: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool, device: Any, dtype: Any,
        bias: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, parameter((num_features,), dtype, device) if wanted else None)
        if track_running_stats:
            d, zeros, ones = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype), OPS["zeros"].call, OPS["ones"].call
            self.register_buffer("running_mean", zeros(num_features, dtype=d, device=device))
            self.register_buffer("running_var", ones(num_features, dtype=d, device=device))
            self.register_buffer("num_batches_tracked", zeros((), dtype=dtypes.int64, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the running statistics: mean 0, variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Scale 1, shift 0, statistics forgotten."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self.dims:
            raise ValueError(f"expected {' or '.join(f'{d}D' for d in self.dims)} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[Any, Any], strict: bool, missing_keys: list[Any],
        unexpected_keys: list[Any], error_msgs: list[Any],
    ) -> None:  # fmt: skip
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # before version 2 the counter was not kept
            state_dict[key] = (
                self.num_batches_tracked if self.num_batches_tracked is not None else scalar_tensor(0, dtypes.int64)
            )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)


class _BatchNorm(_NormBase):
    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None and input.numel():  # the mean of all batches (of which an empty one moves nothing)
                if launch.observer() is not None:
                    return self._moved_by_tensors(input)
                factor = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            use_batch,
            factor,
            self.eps,
        )

    def _moved_by_tensors(self, input: Tensor) -> Tensor:
        """Return the result of a batch of training that a capture sees, where Python must not read how many batches there were."""
        kept: Any = (self.running_mean, self.running_var)
        mean, var = (OPS["zeros_like"].call(t) for t in kept)
        y = F.batch_norm(input, mean, var, self.weight, self.bias, True, 1.0, self.eps)
        with no_grad():
            share = 1.0 / self.num_batches_tracked.to(mean.dtype)  # type: ignore[union-attr]
            for t, new in zip(kept, (mean, var), strict=True):
                t.data.mul_(1 - share).add_(new * share)  # (a batch norm does not count its writes)
        return guarded(y, *kept)


class BatchNorm1d(_BatchNorm):
    """(x - mean) / √(var + eps) · weight + bias of each channel of (N, C) or (N, C, L), over the batch.

    While training the batch's statistics are used and running averages kept, which are used otherwise.

    >>> norm = torch.nn.BatchNorm1d(1)
    >>> norm(torch.tensor([[1.], [3.]])).flatten().detach()
    tensor([-1.0000,  1.0000])
    >>> norm.running_mean
    tensor([0.2000])
    """

    dims: tuple[int, int] = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm of each channel of (N, C, H, W).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html

    >>> torch.nn.BatchNorm2d(1)(torch.tensor([[[[1., 3.]]]])).detach()
    tensor([[[[-1.0000,  1.0000]]]])
    """

    dims: tuple[int] = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch norm of each channel of (N, C, D, H, W).

    >>> torch.nn.BatchNorm3d(1)(torch.tensor([[[[[1., 3.]]]]])).flatten().tolist()
    [-0.9999949932098389, 0.9999949932098389]
    """

    dims: tuple[int] = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch norm over the batches of all ranks of a process group; over this process's where there is none.

    Mean, sum of squares and number of elements of each rank are gathered, and their gradients flow back to all.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html

    >>> layer = torch.nn.SyncBatchNorm(1)
    >>> layer(torch.tensor([[1.], [3.]])).flatten()
    tensor([-1.0000,  1.0000], grad_fn=<ViewBackward0>)
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        process_group: Any = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")

    def forward(self, input: Tensor) -> Tensor:
        from ... import distributed as dist

        together = self.training or (self.running_mean is None and self.running_var is None)
        if not (together and dist.is_initialized() and dist.get_world_size(self.process_group) > 1):
            return super().forward(input)
        self._check_input_dim(input)
        shape = [1, -1] + [1] * (input.ndim - 2)
        x = input.float() if input.dtype.is_half else input
        mean, var, count = self._statistics(x, shape)
        if self.training and self.track_running_stats:
            self._keep(mean.detach(), var.detach() * (count / max(count - 1, 1)))
        scale = (var + self.eps).rsqrt() if self.weight is None else (var + self.eps).rsqrt() * self.weight
        y = (x - mean.reshape(shape)) * scale.reshape(shape)
        return (y if self.bias is None else y + self.bias.reshape(shape)).to(input.dtype)

    def _statistics(self, x: Tensor, shape: list[int]) -> tuple[Tensor, Tensor, float]:
        """Return mean and variance of each channel over all ranks, and the number of elements that they are of."""
        from ...distributed import nn as between

        dims, c = [d for d in range(x.ndim) if d != 1], x.shape[1]
        n = x.numel() // c
        mean = x.sum(dims) / max(n, 1)
        squares = (x - mean.reshape(shape)).square().sum(dims)
        own = OPS["cat"].call([mean, squares, new_full((1,), n, x.dtype)])
        every = OPS["stack"].call(list(between.all_gather(own, self.process_group)))
        counts, means = every[:, -1:].detach(), every[:, :c]
        total = float(counts.sum())
        joint = (means * counts).sum(0) / total
        return joint, (every[:, c : 2 * c] + counts * (means - joint).square()).sum(0) / total, total

    def _keep(self, mean: Tensor, var: Tensor) -> None:
        """Move the running statistics towards those of a batch."""
        self.num_batches_tracked.add_(1)
        factor = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum  # type: ignore[arg-type]
        with no_grad():
            self.running_mean.mul_(1 - factor).add_(mean.to(self.running_mean.dtype), alpha=factor)
            self.running_var.mul_(1 - factor).add_(var.to(self.running_var.dtype), alpha=factor)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return the module with a SyncBatchNorm, of the same parameters and statistics, in the place of each BatchNorm."""
        if isinstance(module, _BatchNorm):
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group)
            for name in ("weight", "bias"):
                made.register_parameter(name, module._parameters.get(name))
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                made.register_buffer(name, module._buffers.get(name))
            made.training = module.training
            return made
        for name, child in module.named_children():
            module.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return module


class _InstanceNorm(_NormBase):
    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False, track_running_stats: bool = False,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def _get_no_batch_dim(self) -> int:
        """Return how many dims an input without a batch has: PyTorch's name."""
        return self.dims[0]

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        channels = input.ndim - self.dims[0]
        if input.shape[channels] != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channels} to match num_features ({self.num_features}), but got: {input.shape[channels]}."
                )
            warn_user(
                f"input's size at dim={channels} does not match num_features. You can silence this warning by not passing in num_features, "
                "which is not used because affine=False",
            )
        batched = input if input.ndim == self.dims[1] else input.unsqueeze(0)
        out = F.instance_norm(
            batched, self.running_mean, self.running_var, self.weight, self.bias, self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0, self.eps,
        )  # fmt: skip
        return out if batched is input else out.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, L) or (C, L); InstanceNorm1d(1)([[1., 3.]]) = [[-1.0000, 1.0000]]."""

    dims: tuple[int, int] = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, H, W) or (C, H, W); InstanceNorm2d(1)([[[1., 3.]]]) = [[[-1.0000, 1.0000]]]."""

    dims: tuple[int, int] = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, D, H, W) or (C, D, H, W); InstanceNorm3d(1)([[[[1., 3.]]]]) = [[[[-1.0000, 1.0000]]]]."""

    dims: tuple[int, int] = (4, 5)


def _shape(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, numbers.Integral) else tuple(value)


class LayerNorm(_Scaled):
    """(x - mean) / √(var + eps) · weight + bias over the last dims, ``normalized_shape``.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.LayerNorm.html

    >>> torch.nn.LayerNorm(2)(torch.tensor([[1., 3.]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    normalized_shape: tuple[Any, ...]
    eps: float
    elementwise_affine: bool

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = _shape(normalized_shape), eps, elementwise_affine
        self._learn(self.normalized_shape, device, dtype, weight=elementwise_affine, bias=elementwise_affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"


class GroupNorm(_Scaled):
    """Normalises groups of channels of (N, C, …), each sample by itself. ValueError unless the groups divide the channels.

    >>> torch.nn.GroupNorm(1, 2)(torch.tensor([[1., 3.]])).tolist()
    [[-0.9999949932098389, 0.9999949932098389]]
    """

    num_groups: int
    num_channels: int
    eps: float
    affine: bool

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._learn((num_channels,), device, dtype, weight=affine, bias=affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class RMSNorm(_Scaled):
    """x / √(mean(x²) + eps) · weight over the last dims, ``normalized_shape``."""

    normalized_shape: tuple[Any, ...]
    eps: float | None
    elementwise_affine: bool

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = _shape(normalized_shape), eps, elementwise_affine
        self._learn(self.normalized_shape, device, dtype, weight=elementwise_affine)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LocalResponseNorm(Module):
    """x / (k + alpha / size · Σ x²)^beta, the sum over ``size`` neighbouring channels."""

    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class _AcrossMaps(Function):
    """PyTorch's arithmetic of `CrossMapLRN2d`: the first channel stays in every window once it is in, for the values but not for the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, size: int, alpha: float, beta: float, k: float) -> Tensor:
        side = int((size - 1) / 2 + 1) - 1
        squares = x * x
        rest = F.pad(squares[:, 1:], (0, 0, 0, 0, side + 1, side)).unfold(1, 2 * side + 1, 1).sum(-1)
        scale = (rest + squares[:, :1]) * (alpha / size) + k
        y = x * scale.pow(-beta)
        ctx.save_for_backward(x, y, scale)
        ctx.options = size, 2 * alpha * beta / size, beta
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, y, scale = ctx.saved_tensors
        size, rate, beta = ctx.options
        before = int(size - (size - 1) / 2)
        ratio = F.pad(g * y / scale, (0, 0, 0, 0, before, size - 1 - before)).unfold(1, size, 1).sum(-1)
        return g * scale.pow(-beta) - rate * x * ratio, None, None, None, None


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of batches of images as Torch 7 had it, whose window is as wide to both sides also where ``size`` is even."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        return _AcrossMaps.apply(input, self.size, self.alpha, self.beta, self.k)
