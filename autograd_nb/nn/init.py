"""Fill tensors in place with initial weights; none of it is recorded.

Source: https://docs.pytorch.org/docs/stable/nn.init.html
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import warn_user as _warn_user
from ..graph.modes import no_grad
from ..ops.core.foreign import asking_first
from ..ops.core.registry import OPS, show_examples
from ..ops.creation.create import new_empty, new_full
from ..ops.creation.ranges import eye as _eye
from ..tensor import Tensor

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_", "kaiming_uniform", "kaiming_uniform_",
    "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse", "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_",
    "xavier_uniform", "xavier_uniform_", "zeros_",
]  # fmt: skip

_LINEAR = (
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
)  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which weights before a nonlinearity are scaled. ValueError for unknown ones.

    >>> torch.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in _LINEAR or nonlinearity == "sigmoid":
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


@asking_first
@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with numbers uniform on [a, b); uniform_([0., 0.], 1., 1.) = [1., 1.]."""
    return tensor.uniform_(a, b, generator=generator)


@asking_first
@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill the tensor with normal numbers, in place; normal_([0., 0.]).shape = torch.Size([2])."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill with normal numbers, cut off outside [a, b]; by the inverse of the distribution function; trunc_normal_([0., 0.]).shape = torch.Size([2])."""

    def below(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        _warn_user(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
        )
    low, high = below((a - mean) / std), below((b - mean) / std)
    tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
    tensor.erfinv_()
    tensor.mul_(std * math.sqrt(2.0)).add_(mean)
    return tensor.clamp_(min=a, max=b)


@asking_first
@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill the tensor with ``val``, in place."""
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill the tensor with 1, in place; ones_([0., 0.]) = [1., 1.]."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill the tensor with 0, in place; zeros_([1., 2.]) = [0., 0.]."""
    return constant_(tensor, 0.0)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Write the identity matrix; ValueError unless 2-d; eye_([[0., 0.], [0., 0.]]) = [[1., 0.], [0., 1.]]."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(_eye(*tensor.shape, dtype=tensor.dtype))


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Write the kernel of a convolution that returns its input, as far as there are channels. ValueError unless 3- to 5-d.

    >>> torch.nn.init.dirac_(torch.tensor([[[0., 0., 0.]]]))
    tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.shape[0] // groups
    tensor.zero_()
    middle = tuple(n // 2 for n in tensor.shape[2:])
    for g in range(groups):
        for d in range(min(per_group, tensor.shape[1])):
            tensor[(g * per_group + d, d, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with numbers uniform within ±gain √(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010); xavier_uniform_([[0., 0.]]).shape = torch.Size([1, 2])."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal numbers of std gain √(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010); xavier_normal_([[0., 0.]]).shape = torch.Size([1, 2])."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


@asking_first
def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill with numbers uniform within ±gain √(3 / fan) (He et al., 2015); kaiming_uniform_([[0., 0.]]).shape = torch.Size([1, 2])."""
    if 0 in tensor.shape:
        _warn_user("Initializing zero-element tensors is a no-op")
        return tensor
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / _calculate_correct_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill with normal numbers of std gain / √fan (He et al., 2015); kaiming_normal_([[0., 0.]]).shape = torch.Size([1, 2])."""
    if 0 in tensor.shape:
        _warn_user("Initializing zero-element tensors is a no-op")
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode)), generator)


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Write a (semi-)orthogonal matrix, by QR of a normal one (Saxe et al., 2013). ValueError below 2 dims; orthogonal_([[0.]]).abs() = [[1.]]."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor._layout.size == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor._layout.size // rows
    flat = normal_(new_empty((rows, columns), tensor.dtype), 0, 1, generator)
    if rows < columns:
        flat = flat.t().contiguous()
    q, r = OPS["linalg.qr"].call(flat)
    q = q * r.diagonal().sign()  # makes the distribution uniform
    if rows < columns:
        q = q.t()
    return tensor.copy_(q.reshape(tensor.shape)).mul_(gain)


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill with normal numbers, but for the fraction ``sparsity`` of each column, which is 0 (Martens, 2010). ValueError unless 2-d."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    mask = new_full((rows, columns), 1, tensor.dtype)
    for c in range(columns):
        mask[OPS["randperm"].call(rows, generator=generator)[:zeros], c] = 0
    return tensor.mul_(mask)


def _old_name(new: Any) -> Any:
    name = new.__name__[:-1]

    def call(*args: Any, **kwargs: Any) -> Any:
        _warn_user(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{new.__name__}`.", FutureWarning)
        return new(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The old name of `{new.__name__}`."
    return call


uniform: Any
normal: Any
constant: Any
dirac: Any
eye: Any
uniform, normal, constant, dirac, eye = map(_old_name, (uniform_, normal_, constant_, dirac_, eye_))
xavier_uniform: Any
xavier_normal: Any
kaiming_uniform: Any
kaiming_normal: Any
orthogonal: Any
sparse: Any
xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal, orthogonal, sparse = map(
    _old_name, (xavier_uniform_, xavier_normal_, kaiming_uniform_, kaiming_normal_, orthogonal_, sparse_)
)
show_examples(globals(), "nn.init")


# PyTorch's names of these, which packages take
_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_, _no_grad_fill_, _no_grad_zero_ = uniform_, normal_, trunc_normal_, constant_, zeros_
