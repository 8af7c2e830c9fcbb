"""`gradient`: derivatives of sampled functions by finite differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...shapes import as_int, wrap_dims
from ...tensor import Tensor
from ..core.numbers import number_argument
from ..core.registry import OPS, public
from ..core.structured import tensor_argument


def _number(value: Any) -> bool:
    return isinstance(value, (int, float, complex))


def _spacings(spacing: Any, x: Tensor, dims: tuple[int, ...], given: bool) -> list[Any]:
    """Return for each dim the distance between samples, or a 1-d tensor of their places."""
    if spacing is None:
        return [1] * len(dims)
    if _number(spacing):
        return [spacing] * len(dims)
    if isinstance(spacing, Tensor):
        spacing = [spacing]  # type: ignore[list-item]
    if not isinstance(spacing, (list, tuple)):
        raise TypeError(
            f"gradient(): argument 'spacing' must be a number, Tensors or a list of them, not {type(spacing).__name__}"
        )
    if len(spacing) != len(dims):
        what = f"specified {len(dims)} dims" if given else f"{x.ndim} dims"
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar or a list of length {len(dims)}, one for each of the {what}, "
            f"but got a list of length {len(spacing)}"
        )
    for s, d in zip(spacing, dims, strict=True):
        if isinstance(s, Tensor):
            if s.ndim != 1:
                raise RuntimeError(
                    f"torch.gradient expected each element of spacing to have one dimension, but got an element with {s.ndim} dimensions!"
                )
            if s.shape[0] != x.shape[d]:
                raise RuntimeError(
                    f"torch.gradient expected each tensor to be the same size as the dimension (spacing has {s.shape[0]} elements, "
                    f"dim {d} of the input {x.shape[d]})"
                )
        elif not _number(s):
            raise TypeError(f"gradient(): argument 'spacing' must be numbers or Tensors, not {type(s).__name__}")
    return list(spacing)


def _even(x: Tensor, d: int, h: Any, order: int) -> Tensor:
    """Return the derivative from samples ``h`` apart: central differences, at the ends one-sided ones."""
    n = x.shape[d]

    def at(i: int) -> Tensor:
        return x.narrow(d, i % n, 1)

    h = float(h) if isinstance(h, int) else h  # which may be beyond 64 bits
    inner = (x.narrow(d, 2, n - 2) - x.narrow(d, 0, n - 2)) / (2 * h)
    if order == 1:
        first, last = (at(1) - at(0)) / h, (at(-1) - at(-2)) / h
    else:
        first = (at(0) * -1.5 + at(1) * 2 - at(2) * 0.5) / h
        last = (at(-1) * 1.5 - at(-2) * 2 + at(-3) * 0.5) / h
    return OPS["cat"].call([first, inner, last], d)


def _uneven(x: Tensor, d: int, places: Tensor, order: int) -> Tensor:
    """Return the derivative from samples at ``places``: that of the parabola through three neighbours, at the ends of it or of a line."""
    n = x.shape[d]
    column = [-1] + [1] * (x.ndim - d - 1)
    steps = (places.narrow(0, 1, n - 1) - places.narrow(0, 0, n - 1)).reshape(column)

    def at(i: int) -> Tensor:
        return x.narrow(d, i % n, 1)

    def step(i: int) -> Tensor:
        return steps.narrow(0, i % (n - 1), 1)

    left, right = steps.narrow(0, 0, n - 2), steps.narrow(0, 1, n - 2)
    whole = left + right
    inner = (
        x.narrow(d, 0, n - 2) * (-right / (left * whole))
        + x.narrow(d, 1, n - 2) * ((right - left) / (left * right))
        + x.narrow(d, 2, n - 2) * (left / (right * whole))
    )
    if order == 1:
        first, last = (at(1) - at(0)) / step(0), (at(-1) - at(-2)) / step(-1)
    else:
        a, b = step(0), step(1)
        first = at(0) * (-(2 * a + b) / (a * (a + b))) + at(1) * ((a + b) / (a * b)) + at(2) * (-a / (b * (a + b)))
        a, b = step(-2), step(-1)
        last = at(-3) * (b / (a * (a + b))) + at(-2) * (-(a + b) / (a * b)) + at(-1) * ((2 * b + a) / (b * (a + b)))
    return OPS["cat"].call([first, inner, last], d)


@public(method=False)
def gradient(input, *, spacing: float | Sequence[float | Tensor] | None = None, dim=None, edge_order=1) -> tuple[Tensor, ...]:
    """Return the derivative of sampled values along each of ``dim`` (default all): a tuple of tensors shaped as the input.

    Inside by central differences of second order, at the ends by one-sided ones of order ``edge_order`` (1 or 2). ``spacing``: the
    distance of samples (one number, or one for each dim), or for each dim a 1-d tensor of their places.

    Example:
        >>> torch.gradient(torch.tensor([1., 4., 9., 16.]))
        (tensor([3., 4., 6., 7.]),)

    Errors: RuntimeError for other orders, dims with fewer than edge_order + 1 samples, spacing that does not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.gradient.html
    """
    x = tensor_argument(input, "gradient")
    if isinstance(spacing, Tensor) and not spacing.ndim:
        spacing = number_argument(spacing, "gradient", "spacing")
    if isinstance(dim, int) and _number(spacing):
        spacing = [spacing]  # type: ignore[list-item]
    dims = wrap_dims(dim, x.ndim)
    if as_int(edge_order, "edge_order") not in (1, 2):
        raise RuntimeError(f"torch.gradient only supports edge_order=1 and edge_order=2 (edge_order={edge_order})")
    spacings = _spacings(spacing, x, dims, dim is not None)
    for d in dims:
        if x.shape[d] < edge_order + 1:
            raise RuntimeError(
                f"torch.gradient expected each dimension size to be at least edge_order+1 (dim {d} has size {x.shape[d]}, "
                f"edge_order={edge_order})"
            )
    return tuple(
        (_uneven if isinstance(s, Tensor) else _even)(x, d, s, edge_order) for d, s in zip(dims, spacings, strict=True)
    )
