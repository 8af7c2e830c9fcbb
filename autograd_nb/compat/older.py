"""What old names do: functions beside methods, ATen's losses with numbers for reductions, files, and what programs ask of `nn._reduction`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .. import dtypes
from ..autograd.function import Function
from ..errors import warn_user
from ..graph.versions import fix
from ..nn import functional as F
from ..ops.core.foreign import asking_first
from ..ops.core.recording import made_here
from ..ops.core.registry import OPS
from ..ops.core.structured import tensor_argument
from ..ops.creation.storages import LEGACY, of_file
from ..ops.nn.cross_entropy import legacy_reduction
from ..shapes import Size
from ..tensor import Tensor, wrap

_REDUCTIONS = ("none", "mean", "sum")

#: the old classes of storages
STORAGE_CLASSES: frozenset[Any] = frozenset(LEGACY.values())


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


def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return √Σ|x|² over ``dim``."""
    return OPS["norm"].call(tensor_argument(input, "frobenius_norm"), "fro", dim, keepdim, out)  # type: ignore[no-any-return]


@asking_first
def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the sum of the singular values of matrices, whose rows and columns are ``dim``.

    >>> torch.nuclear_norm(torch.eye(3))
    tensor(3.)
    """
    return OPS["norm"].call(tensor_argument(input, "nuclear_norm"), "nuc", dim, keepdim, out)  # type: ignore[no-any-return]


def _compute_linear_combination(input: Tensor, coefficients: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return Σⱼ cᵢⱼ · xⱼ for the coefficients c [m, n] and the input x [n, …], of its dtype; added to ``out`` where that is given.

    >>> torch._compute_linear_combination(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([[1., 1.]]))
    tensor([[4., 6.]])
    """
    y = OPS["tensordot"].call(coefficients.to(input.dtype), input, 1)
    return y if out is None else out.add_(y)


def detach_(input: Tensor) -> Tensor:
    """Return the tensor, which has no history from now on.

    >>> x = torch.ones(2, requires_grad=True) * 2
    >>> torch.detach_(x).requires_grad
    False
    """
    return tensor_argument(input, "detach_").detach_()


def as_strided_(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Return the tensor, which has this size and these strides from now on.

    >>> torch.as_strided_(torch.arange(4), (2,), (2,))
    tensor([0, 2])
    """
    return tensor_argument(input, "as_strided_").as_strided_(size, stride, storage_offset)


def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Compute `addmv` in place and return the tensor."""
    return input.addmv_(mat, vec, beta=beta, alpha=alpha)


def replicate(network: Any, devices: Any, detach: bool = False) -> list[Any]:
    """Return the module once for each device."""
    return [network for _ in devices]


def parallel_apply(modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None) -> list[Any]:
    """Return the result of each module for its inputs."""
    named = kwargs_tup or [{}] * len(modules)
    return [m(*(given if isinstance(given, tuple) else (given,)), **kw) for m, given, kw in zip(modules, inputs, named, strict=True)]


def max_pool1d_with_indices(input: Tensor, *args: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """Return what `nn.functional.max_pool1d` gives with ``return_indices=True``.

    >>> torch.max_pool1d_with_indices(torch.tensor([[1.0, 3.0]]), 2)
    (tensor([[3.]]), tensor([[1]]))
    """
    return F.max_pool1d(input, *args, **options, return_indices=True)  # type: ignore[no-any-return]


@asking_first
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Return `nn.functional.dropout` and which elements were kept.

    >>> torch.native_dropout(torch.ones(2), 0.0, True)
    (tensor([1., 1.]), tensor([True, True]))
    """
    if train is False or tensor_argument(input, "native_dropout").numel() == 0:
        return input.clone(), input.new_ones(input.shape, dtype=dtypes.bool_)
    kept = input.new_ones(input.shape).bernoulli_(1 - p)
    return input * kept * (1 / (1 - p) if p < 1 else 0.0), kept.bool()


def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Shrink the rows of a table that are named to a norm of at most ``max_norm``, in place.

    >>> torch.embedding_renorm_(torch.tensor([[3.0, 4.0]]), torch.tensor([0]), 1.0, 2.0)
    tensor([[0.6000, 0.8000]])
    """
    F.embedding(indices, input, max_norm=max_norm, norm_type=norm_type)
    return input


def from_file(filename: str, shared: bool | None = None, size: int = 0, *, dtype: dtypes.dtype | None = None, **options: Any) -> Tensor:
    """Return a tensor of ``size`` elements that reads a file's bytes; with ``shared`` changes are written into the file, which is made if needed.

    Errors: RuntimeError where there is no such file, or where it is too small.

    >>> import tempfile
    >>> file = tempfile.NamedTemporaryFile()
    >>> torch.arange(3.0).numpy().tofile(file.name)
    >>> torch.from_file(file.name, size=3)
    tensor([0., 1., 2.])
    """
    d = dtype or dtypes.get_default_dtype()
    t = wrap(of_file(filename, shared, size, d), d)
    fix(made_here(t)._version_)
    return t


def _nnpack_spatial_convolution(input: Tensor, weight: Tensor, bias: Tensor | None, padding: Any, stride: Any = 1) -> Tensor:
    """Return `nn.functional.conv2d`, with the order of arguments of one of PyTorch's kernels."""
    return F.conv2d(input, weight, bias, stride, padding)  # type: ignore[no-any-return]


@asking_first
def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: int
) -> Tensor:
    """Return the convolution, or its transposed, over as many dims as the weight has behind its channels, with all options by position.

    Source: https://docs.pytorch.org/docs/stable/nn.functional.html#convolution-functions

    >>> torch.convolution(torch.ones(1, 1, 3), torch.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
    dims = weight.ndim - 2
    if dims not in (1, 2, 3):
        raise RuntimeError(f"convolution(): Expected a weight of 3, 4 or 5 dims, but got one of shape {list(weight.shape)}")
    if transposed:
        return getattr(F, f"conv_transpose{dims}d")(input, weight, bias, stride, padding, output_padding, groups, dilation)  # type: ignore[no-any-return]
    return getattr(F, f"conv{dims}d")(input, weight, bias, stride, padding, dilation, groups)  # type: ignore[no-any-return]


def has_internal_overlap(input: Tensor) -> int:
    """Return whether elements of a tensor share memory: 0 no, 1 yes, 2 where that is not looked into."""
    sizes = [(n, s) for n, s in zip(input.shape, input.stride(), strict=True) if n > 1]
    if any(s == 0 for _, s in sizes):
        return 1
    reach = 0
    for n, s in sorted(sizes, key=lambda pair: pair[1]):
        if s <= reach:
            return 2
        reach += (n - 1) * s
    return 0


def infer_size(a: Any, b: Any) -> Any:
    """Return the shape to which two are broadcast."""
    return Size(np.broadcast_shapes(tuple(a), tuple(b)))


def get_file_path(*path_components: str) -> str:
    """Return the parts of a path as one, below the folder of this package.

    >>> torch.get_file_path("torch", "lib").endswith("lib")
    True
    """
    return os.path.join(Path(__file__).parent.parent.parent, *path_components)


def get_file_path_2(*path_components: str) -> str:
    """Return the parts of a path as one."""
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """Return the path where it can be written to, else a folder made for it."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=Path(path).name)


class _Undefined(Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Any:
        return tuple(x.detach() for x in inputs) if len(inputs) > 1 else inputs[0].detach()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(grads)


class _Raises(Function):
    @staticmethod
    def forward(ctx: Any, text: str, *inputs: Tensor) -> Any:
        ctx.text = text
        return tuple(x.detach() for x in inputs) if len(inputs) > 1 else inputs[0].detach()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ctx.text)


class UndefinedGrad:
    """A function of tensors that returns them, and no gradient for any: functions below see none.

    >>> x = torch.ones(1, requires_grad=True)
    >>> torch._C._functions.UndefinedGrad()(x * 2).backward()
    >>> x.grad is None
    True
    """

    def __call__(self, *inputs: Tensor) -> Any:
        """Return the tensors, as outputs of a step that hands no gradient on."""
        return _Undefined.apply(*inputs)


class DelayedError:
    """A function of ``num_inputs`` tensors that returns them; its backward pass raises RuntimeError with the text ``msg``.

    >>> torch._C._functions.DelayedError("not differentiable", 1)(torch.ones(1)).requires_grad
    False
    """

    def __init__(self, msg: str, num_inputs: int) -> None:
        self._text, self._count = msg, num_inputs

    def __call__(self, *inputs: Tensor) -> Any:
        """Return the tensors, as outputs of a step through which no gradient goes. RuntimeError for another number of them."""
        if len(inputs) != self._count:
            raise RuntimeError(f"DelayedError: expected {self._count} tensors, but got {len(inputs)} (num_inputs={self._count})")
        return _Raises.apply(self._text, *inputs)


def _aminmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return `aminmax` as a tuple, with a warning: the old name."""
    warn_user("_aminmax is deprecated as of PyTorch 1.11 and will be removed in a future release. Use aminmax instead.")
    return tuple(OPS["aminmax"].call(input, dim=dim, keepdim=keepdim))  # type: ignore[return-value]
