"""Modules that learn the number of their inputs from the first batch.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.modules.lazy.LazyModuleMixin.html
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from ... import dtypes
from ...graph.modes import no_grad
from ...ops.core.numbers import scalar_tensor
from ...tensor import Tensor
from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear
from .module import Module
from .normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d


class LazyModuleMixin:
    """The base of modules with uninitialised parameters: before the first forward call ``initialize_parameters`` gets its arguments.

    Then the module becomes one of the class ``cls_to_become``, if that is set. Until then its parameters have no shape; give
    them to an optimizer, or count them, after a call with a dummy batch.
    """

    cls_to_become: type | None = None
    _parameters: dict[Any, Any]
    _buffers: dict[Any, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)  # type: ignore[attr-defined]
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)  # type: ignore[attr-defined]

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *_: Any) -> None:
        """Take the shapes of a state_dict that is loaded before the first call."""
        for name, p in chain(self._parameters.items(), self._buffers.items()):
            given = state_dict.get(prefix + name)
            if is_lazy(p) and given is not None and not is_lazy(given):
                p.materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give all parameters their shapes and first values; every lazy module defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Return whether a parameter or buffer has no shape yet."""
        return any(is_lazy(p) for p in chain(self._parameters.values(), self._buffers.values()))

    def _infer_parameters(self, module: Any, args: tuple[Any, ...], kwargs: dict[Any, Any] | None = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


class _Lazy(LazyModuleMixin):
    """The base of the layers below: their parameters, and when they are drawn."""

    def _declare(self, names: tuple[str, ...], device: Any, dtype: Any) -> None:
        for name in names:
            setattr(self, name, UninitializedParameter(device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Draw all parameters anew, once they have shapes."""
        if not self.has_uninitialized_params() and self._inputs():
            super().reset_parameters()  # type: ignore[misc]

    def _inputs(self) -> int:
        raise NotImplementedError


class LazyLinear(_Lazy, Linear):
    """A `Linear` whose ``in_features`` is the last size of its first input."""

    in_features: Any

    cls_to_become: type | None = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self._declare(("weight", "bias") if bias else ("weight",), device, dtype)
        self.out_features = out_features

    def _inputs(self) -> int:
        return self.in_features

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Take the number of inputs from a batch."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:  # the parameters came with a state_dict
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to in_features from self.weight: "
                    f"{self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]


class _LazyConv(_Lazy):
    dims: int
    groups: int
    transposed: bool
    kernel_size: tuple[int, ...]

    def _inputs(self) -> int:
        return self.in_channels

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take the number of channels from a batch."""
        if not self.has_uninitialized_params():
            return
        if input.ndim not in (self.dims + 1, self.dims + 2):
            raise RuntimeError(
                f"Expected {self.dims + 1}D (unbatched) or {self.dims + 2}D (batched) input to {type(self).__name__}, but got input of "
                f"size: {input.shape}"
            )
        self.in_channels = input.shape[1 if input.ndim == self.dims + 2 else 0]
        if self.in_channels % self.groups:
            raise ValueError(f"in_channels must be divisible by groups (in_channels={self.in_channels}, groups={self.groups})")
        ins, outs = self.in_channels, self.out_channels
        filters = (ins, outs // self.groups) if self.transposed else (outs, ins // self.groups)
        self.weight.materialize((*filters, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((outs,))
        self.reset_parameters()


class _LazyConvForward(_LazyConv):
    def __init__(
        self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._declare(("weight", "bias") if bias else ("weight",), device, dtype)
        self.out_channels = out_channels


class _LazyConvTransposed(_LazyConv):
    def __init__(
        self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
        bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._declare(("weight", "bias") if bias else ("weight",), device, dtype)
        self.out_channels = out_channels


class _LazyNorm(_Lazy):
    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self._declare(("weight", "bias") if bias else ("weight",), device, dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(dtype=dtype)
            self.running_var = UninitializedBuffer(dtype=dtype)
            self.num_batches_tracked = scalar_tensor(0, dtypes.int64)

    def _inputs(self) -> int:
        return self.num_features

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Take the number of channels from a batch."""
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for p in chain(self._parameters.values(), self._buffers.values()):
                if is_lazy(p):
                    p.materialize((self.num_features,))
            self.reset_parameters()


def _lazy(kind: type[Module], base: type) -> type:
    """Return the lazy form of a module class."""
    doc = f"A `{kind.__name__}` that takes its number of input channels from the first batch."
    members = {"cls_to_become": kind, "__doc__": doc, "__module__": __name__}
    return type(f"Lazy{kind.__name__}", (base, kind), members)


if TYPE_CHECKING:
    from .declared import (
        LazyBatchNorm1d,
        LazyBatchNorm2d,
        LazyBatchNorm3d,
        LazyConv1d,
        LazyConv2d,
        LazyConv3d,
        LazyConvTranspose1d,
        LazyConvTranspose2d,
        LazyConvTranspose3d,
        LazyInstanceNorm1d,
        LazyInstanceNorm2d,
        LazyInstanceNorm3d,
    )
else:
    LazyConv1d, LazyConv2d, LazyConv3d = (_lazy(kind, _LazyConvForward) for kind in (Conv1d, Conv2d, Conv3d))
    LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
        _lazy(kind, _LazyConvTransposed) for kind in (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
    )
    LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (_lazy(kind, _LazyNorm) for kind in (BatchNorm1d, BatchNorm2d, BatchNorm3d))
    LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
        _lazy(kind, _LazyNorm) for kind in (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
    )
