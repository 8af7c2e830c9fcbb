"""Fractional max pooling: windows at random places that fit the output's size.

Source: Graham, Fractional max-pooling (2014)
"""

from __future__ import annotations

from typing import Any

from ... import dtypes, launch
from ...launch import Kernel
from ...shapes import numel
from ...tensor import Tensor
from ..core.jumps import by_jumps
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense, in_float32
from ..creation.create import new_empty
from .conv import tuple_of
from .pool import _scatter

_FRACTIONAL = Kernel("nn.pool", "fractional", outputs=2)


@structured(
    every=lambda g, x, x_shape, out1, sizes: {"x": None if g[0] is None else by_jumps(_scatter(g[0], out1, tuple(x_shape), len(sizes)), x)},
    node="FractionalMaxPoolBackward0",
    linear="no", batch="samples",
    dtypes="half float", samples="F.fractional_max_pool2d(x(1, 2, 5, 6), 2, (3, 4))",
)
def _fractional(x, samples, sizes, window):
    n = len(sizes)
    if x.dtype.is_half:
        return in_float32(_fractional.forward, x, samples, sizes, window)
    shape = (*x.shape[: x.ndim - n], *sizes)
    y, index = new_empty(shape, x.dtype), new_empty(shape, dtypes.int64)
    lead = (1,) * (3 - n)
    if y._layout.size:
        geometry = (*lead, *x.shape[x.ndim - n :], *lead, *sizes, *lead, *window)
        _FRACTIONAL(x.dtype, numel(x.shape[: x.ndim - n]), n, geometry, dense(samples), dense(x), y._data, index._data)
    return y, index


def _within_reach(greatest: Any) -> None:
    if not greatest[0] < 1e6:  # windows stay inside for all that int() can hold
        raise RuntimeError("_random_samples must lie in [0, 1]")


def _pooled(n: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any) -> tuple[Tensor, Tensor]:
    op = f"fractional_max_pool{n}d"
    x = tensor_argument(input, op)
    if output_size is None and output_ratio is None:
        raise ValueError(f"{op} requires specifying either an output_size or an output_ratio")
    if x.ndim not in (n + 1, n + 2) or any(m == 0 for m in x.shape[x.ndim - n - 1 :]):
        raise RuntimeError(f"{op}: Expected {n + 1}D or {n + 2}D tensor with non-empty dims but the batch, but got: {list(x.shape)}")
    if x.dtype.category != 2:
        raise NotImplementedError(f'"{op}" not implemented for {x.dtype}; use floating point tensors')
    window = tuple_of(kernel_size, n, "kernel_size", op)
    spatial = x.shape[x.ndim - n :]
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
        if len(ratios) != n:
            raise ValueError(f"{op} requires output_ratio to either be a single float or a tuple of {n} floats (output_ratio={output_ratio})")
        sizes = tuple(int(m * r) for m, r in zip(spatial, ratios, strict=True))
    else:
        sizes = tuple_of(output_size, n, "output_size", op)
    for name, size, window_size, m in zip(("time", "height", "width")[3 - n :], sizes, window, spatial, strict=True):
        if window_size < 1 or size < 0:
            raise RuntimeError(f"{op}: kernel_size and output_size must be greater than zero, but got {list(window)} and {list(sizes)}")
        if size + window_size - 1 > m - (n == 3):  # (as PyTorch, which asks for one more in three dims)
            raise RuntimeError(f"{op}(): pool {name} {window_size} too large relative to input {name} {m} (for an output of {size})")
    batch = 1 if x.ndim == n + 1 else x.shape[0]
    if samples is None:
        samples = OPS["rand"].call(batch, x.shape[-n - 1], n, dtype=x.dtype)
    elif (
        tensor_argument(samples, op, "_random_samples").dtype is not x.dtype
        or tuple(samples.shape[1:]) != (x.shape[-n - 1], n)
        or samples.shape[0] < batch  # more of them do no harm
    ):
        raise RuntimeError(
            f"Expect _random_samples to be {x.dtype} of size {[batch, x.shape[-n - 1], n]}, but got {samples.dtype} of size {list(samples.shape)}"
        )
    elif samples._layout.size:
        launch.check(_within_reach, cast(samples.detach().abs().max(), dtypes.float64)._data)
    return _fractional(x, samples[:batch], sizes, window)


def _declare(n: int) -> None:
    name = f"fractional_max_pool{n}d"

    def pool_with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        return tuple(_pooled(n, input, kernel_size, output_size, output_ratio, _random_samples))

    def pool(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        out = _pooled(n, input, kernel_size, output_size, output_ratio, _random_samples)
        return tuple(out) if return_indices else out[0]

    for function, called, what in ((pool, name, ""), (pool_with_indices, f"{name}_with_indices", ", with the places of the maxima")):
        function.__name__ = function.__qualname__ = called
        function.__doc__ = f"""Return maxima of windows at random places, ``output_size`` of them or ``output_ratio`` of the input's sizes{what}.

    _random_samples: (batch, channels, {n}) numbers in [0, 1] that place them; drawn if None. The gradient goes to the maxima.

    Errors: ValueError or RuntimeError naming what does not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.FractionalMaxPool{n}d.html

    >>> torch.nn.functional.{called}(torch.ones(1, 1, {'4, ' * n}), 2, 2){'[1]' if what else ''}.shape
    torch.Size([1, 1, {', '.join('2' * n)}])
    """
        public(method=False, namespaces=("nn.functional",))(function)


_declare(2)
_declare(3)
