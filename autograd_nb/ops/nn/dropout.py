"""Dropout. No mask is kept: the derivative draws it again from the counter that the forward pass used.

Source: Srivastava et al., Dropout: a simple way to prevent neural networks from overfitting (JMLR 2014); Klambauer et al.,
Self-normalizing neural networks (2017) for alpha dropout
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import launch
from ...codegen.formula.namespace import m
from ...codegen.templates import draws
from ...errors import warn_user
from ...graph.noted import Turn
from ...shapes import layout_of
from ...tensor import Tensor, make
from ..core.inplace import write_inplace
from ..core.numbers import number_argument
from ..core.recording import scalar_type
from ..core.registry import public
from ..core.structured import structured, tensor_argument
from ..creation.cast import dense, in_order_of
from ..creation.create import new_empty, new_full
from ..random.draws import Law, stream

# the scale multiplies by 0 rather than selects, so that NaN and infinities pass through as they do in PyTorch
_DROP = Law(
    "dropout", draws.bits, lambda w, x, threshold, scale: x * m.where(w >= threshold.cast("uint32"), scale, scale * 0.0)
)
_ALPHA = Law(
    "alpha_dropout", draws.bits,
    lambda w, x, threshold, scale, shift, fallen: m.where(w >= threshold.cast("uint32"), x * scale + shift, fallen),
)  # fmt: skip
_ALPHA_CONSTANT = 1.7580993408473766  # -α' of SELU, where dropped units go


@structured(
    input=lambda g, threshold, scale, seed, call: native_dropout(g, threshold, scale, seed, call), node="NativeDropoutBackward0",
    linear="no", batch="samples",
    dtypes="half float", samples="F.dropout(x(3, 4))",
)
def native_dropout(input, threshold, scale, seed, call):
    """Return x · scale where the word of the element is at least ``threshold``, else x · 0. Linear in x, so its own derivative."""
    layout = layout_of(input._layout.shape, None, input._layout.dtype)
    data = launch.empty(layout.size, layout.dtype.carrier)
    _DROP((seed, call), data, layout.dtype, (dense(input), layout.dtype), threshold, scale)
    return in_order_of(make(data, layout, [0, 0]), input)


def _drop_into(out: Tensor, x: Tensor, threshold: int, scale: float, seed: int, call: int) -> None:
    _DROP((seed, call), out._data[: out._layout.size], x.dtype, (dense(x), x.dtype), threshold, scale)


@structured(
    input=lambda g, threshold, scale, shift, fallen, seed, call: native_dropout(g, threshold, scale, seed, call),
    node="NativeDropoutBackward0",
    linear="no", batch="samples",
    dtypes="half float", samples="F.alpha_dropout(x(3, 4), training=True)",
)
def alpha_dropout_kernel(input, threshold, scale, shift, fallen, seed, call):
    """Return x · scale + shift where the element is kept, else ``fallen``."""
    out = new_empty(input.shape, input.dtype)
    _alpha_into(out, input, threshold, scale, shift, fallen, seed, call)
    return in_order_of(out, input)


def _alpha_into(
    out: Tensor, x: Tensor, threshold: int, scale: float, shift: float, fallen: float, seed: int, call: int
) -> None:
    _ALPHA((seed, call), out._data[: out._layout.size], x.dtype, (dense(x), x.dtype), threshold, scale, shift, fallen)


def _in_memory(write: Any) -> Any:
    """Do ``write`` for a target of any strides, which it reads and overwrites."""

    def into(target: Tensor, *args: Any) -> None:
        if target._layout.contiguous:
            source = make(target._data, target._layout, [0, 0])
            write(target, source, *args)
        else:
            out = new_empty(target.shape, target.dtype)
            write(out, target, *args)
            target.copy_(out)

    return into


class ProbabilityError(ValueError, RuntimeError):
    """A probability beyond [0, 1]: `nn.functional.dropout` raises a ValueError in PyTorch, `torch.dropout`, which it calls, a RuntimeError."""


def _checked(input: Any, p: Any, op: str, train: bool = True) -> tuple[Tensor, float]:
    x = tensor_argument(input, op)
    if isinstance(p, Tensor):
        p = number_argument(p, op, "p")
    if type(p) is not float and not isinstance(p, (int, float, np.number)):
        raise TypeError(f"{op}(): argument 'p' must be float, not {type(p).__name__}")
    if not 0.0 <= p <= 1.0:
        raise ProbabilityError(f"dropout probability has to be between 0 and 1, but got {p}")
    if train and 0.0 < p < 1.0 and x._layout.dtype.category < 2 and x._layout.size:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {scalar_type(x.dtype)}: {op}() needs a floating input"
        )
    if train and 0.0 < p < 1.0 and x._layout.dtype.is_complex and x._layout.size:
        raise NotImplementedError(f"\"bernoulli_scalar_cpu_\" not implemented for '{scalar_type(x.dtype)}' ({op}())")
    return x, float(p)


def _all_fallen(x: Tensor, inplace: bool) -> Tensor:
    zero = new_full((), 0, x.dtype)
    return x.mul_(zero) if inplace else x * zero


def _threshold(p: float) -> int:
    """Return the number below which a 32-bit word falls with probability p."""
    return min(round(p * 2.0**32), 2**32 - 1)


def _scale(p: float) -> float:
    return 1.0 / (1.0 - p) if p < 1.0 else 0.0


def _turn() -> tuple[int, int]:
    """Return (seed, call) of a draw of which passes like this one will have another."""
    seed, call = stream(None)
    return seed, Turn(call) if call.__class__ is int else call


def _apply(input: Any, p: Any, train: bool, inplace: bool, op: str) -> Tensor:
    x, p = _checked(input, p, op, train)
    if not train or p == 0.0 or x._layout.size == 0:
        return x
    if not x._layout.dtype.is_floating_point:
        return _all_fallen(x, inplace)
    args = (_threshold(p), _scale(p), *_turn())
    if inplace:
        return write_inplace(native_dropout, _in_memory(_drop_into), x, *args)
    return native_dropout(x, *args)


def _apply_alpha(input: Any, p: Any, train: bool, inplace: bool, op: str) -> Any:
    x, p = _checked(input, p, op, train)
    if not train or p == 0.0 or x._layout.size == 0:
        return x
    if p == 1.0:
        return _all_fallen(x, inplace)
    a, b, fallen = _alpha_constants(p)
    args = (_threshold(p), a, b, fallen, *_turn())
    if inplace:
        return write_inplace(alpha_dropout_kernel, _in_memory(_alpha_into), x, *args)
    return alpha_dropout_kernel(x, *args)


def _alpha_constants(p: float) -> tuple[float, float, float]:
    """Return (a, b, what dropped units become): kept units become a·x + b, so that mean 0 and variance 1 are kept."""
    a = 1.0 / math.sqrt((_ALPHA_CONSTANT**2 * p + 1.0) * (1.0 - p))
    b = a * _ALPHA_CONSTANT * p
    return a, b, b - a * _ALPHA_CONSTANT


def _apply_feature(input: Any, p: Any, train: bool, inplace: bool, op: str, alpha: bool = False) -> Any:
    """Return dropout of whole channels at a time: one draw serves each element of the first two dims."""
    x, p = _checked(input, p, op, train)
    if not train or p == 0.0 or x._layout.size == 0:
        return x
    if p == 1.0:
        return _all_fallen(x, inplace)
    if x.ndim < 2:
        raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input (input.shape={list(x.shape)})")
    mask = new_empty((*x.shape[:2], *(1,) * (x.ndim - 2)), x.dtype).fill_(1)
    if not alpha:
        mask = native_dropout(mask, _threshold(p), _scale(p), *_turn())
        return x.mul_(mask) if inplace else x * mask
    mask = native_dropout(mask, _threshold(p), 1.0, *_turn())
    a, b, fallen = _alpha_constants(p)
    factor, shift = mask * a, mask * (b - fallen) + fallen
    return x.mul_(factor).add_(shift) if inplace else x * factor + shift


def _family(name: str, apply: Any, doc: str) -> None:
    """Return ``name``, ``name_`` and nothing else in the torch namespace."""

    def call(input, p, train):
        return apply(input, p, train, False, name)

    def call_(input, p, train):
        return apply(input, p, train, True, name)

    for function, n in ((call, name), (call_, name + "_")):
        function.__name__ = function.__qualname__ = n
        function.__doc__ = f"{doc}\n\n    >>> torch.{n}(torch.ones(1, 2), 0.5, train=False)\n    tensor([[1., 1.]])"
        public(method=False, name=n)(function)


_family("dropout", _apply, "Zero elements with probability ``p`` while training, and divide the others by 1 - p.")
_family("alpha_dropout", _apply_alpha, "Do dropout that keeps mean 0 and variance 1 of SELU networks.")
_family("feature_dropout", _apply_feature, "Do dropout of whole channels.")
_family(
    "feature_alpha_dropout",
    lambda input, p, train, inplace, op: _apply_feature(input, p, train, inplace, op, True),
    "Do alpha dropout of whole channels.",
)


def _functional(name: str, apply: Any, doc: str, training_default: bool = True) -> None:
    def call(input, p=0.5, training=training_default, inplace=False):
        return apply(input, p, training, inplace)

    call.__name__ = call.__qualname__ = name
    example = {"dropout2d": "1, 2", "dropout3d": "1, 1, 2"}.get(name, "2")
    call.__doc__ = (
        f"{doc}\n\n    Errors: ValueError unless 0 <= p <= 1.\n\n"
        f"    >>> torch.nn.functional.{name}(torch.ones(1, 1, {example}), training=False).flatten()\n    tensor([1., 1.])"
    )
    public(method=False, namespaces=("nn.functional",), name=f"nn.functional.{name}")(call)


def _warn_of_dims(name: str, n: int) -> None:
    text = f"{name}: Received a {n}-D input to {name}, which is deprecated and will be an error. Use dropout for elements, dropout1d to 3d for channels."
    warn_user(text)


def _dropout2d(input: Any, p: Any, training: bool, inplace: bool) -> Tensor:
    x, p = _checked(input, p, "dropout2d", training)
    if x.ndim == 3:
        text = "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1-D dropout behavior is desired, of (N, C, L)."
        warn_user(f"{text} Use dropout1d for it.")
    elif x.ndim != 4:
        _warn_of_dims("dropout2d", x.ndim)
    return _apply_feature(x, p, training, inplace, "dropout2d")


def _of_dims(name: str, batched: int, strict: bool) -> Any:
    """Return channel dropout of inputs of ``batched`` dims, or one less for a sample alone; others are refused (``strict``) or warned of."""
    dims = batched - 1, batched

    def apply(input: Any, p: Any, training: bool, inplace: bool) -> Tensor:
        x, p = _checked(input, p, name, training)
        if x.ndim not in dims:
            if strict:
                raise RuntimeError(f"{name}: Expected {' or '.join(f'{d}D' for d in dims)} input, but received a {x.ndim}D input.")
            _warn_of_dims(name, x.ndim)
        if x.ndim == batched:
            return _apply_feature(x, p, training, inplace, name)
        if inplace:
            _apply_feature(x.unsqueeze(0), p, training, True, name)
            return x
        return _apply_feature(x.unsqueeze(0), p, training, False, name).squeeze(0)

    return apply


_functional(
    "dropout",
    lambda x, p, training, inplace: _apply(x, p, training, inplace, "dropout"),
    "Zero elements with probability ``p`` while ``training``, and divide the others by 1 - p: y = x · mask / (1 - p).\n\n"
    "dy/dx = mask / (1 - p), drawn again in the backward pass.\n\n"
    "Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html",
)
_functional(
    "alpha_dropout",
    lambda x, p, training, inplace: _apply_alpha(x, p, training, inplace, "alpha_dropout"),
    "Do dropout that keeps mean 0 and variance 1 of SELU networks.",
    False,
)
_functional(
    "feature_alpha_dropout",
    lambda x, p, training, inplace: _apply_feature(x, p, training, inplace, "feature_alpha_dropout", True),
    "Do alpha dropout of whole channels (the first two dims).",
    False,
)
_functional("dropout1d", _of_dims("dropout1d", 3, True), "Do dropout of whole channels of (N, C, L) or (C, L).")
_functional(
    "dropout2d",
    _dropout2d,
    "Do dropout of whole channels of (N, C, H, W).",
)
_functional("dropout3d", _of_dims("dropout3d", 5, False), "Do dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).")
