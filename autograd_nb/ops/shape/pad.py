"""Padding: constants around a tensor, or its own edges repeated, reflected or wrapped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...codegen import threads
from ...errors import shorten
from ...launch import Kernel, empty
from ...shapes import Layout, as_ints, layout_of
from ...tensor import Tensor, make
from ..core.call_path import planned
from ..core.jumps import jumping
from ..core.numbers import float_argument, number_argument, text_argument
from ..core.recording import need_numbers, not_for_limited
from ..core.registry import public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense, images, in_format_of
from ..creation.create import new_full
from .parts import slice_dim


@structured(
    x=lambda g, x_shape, places: _unpad(g, tuple(x_shape), places), node="ConstantPadNdBackward0",
    linear="no", batch="shift",
    samples="F.pad(x(3, 4), (1, 2, 0, 1))",
)
@images(4, 5)
def _pad(x, places, shape, value):
    y = new_full(shape, value, x._layout.dtype)
    steps = y._layout.strides
    begin = sum([start * step for start, step in zip(places, steps, strict=True)])
    make(y._data[begin:], layout_of(x._layout.shape, steps, x._layout.dtype), [0, 0]).copy_(x)
    return y


@structured(x=lambda g, x_shape, places: _pad(g, places, tuple(x_shape), 0), linear="no", batch="shift")
@images(4, 5)
def _unpad(x, shape, places):
    return _inside(x, shape, places).clone()


def _inside(y: Tensor, shape: Any, places: tuple[int, ...]) -> Tensor:
    for d, (size, start, n) in enumerate(zip(y._layout.shape, places, shape, strict=True)):
        if size != n:
            y = slice_dim(y, d, start, start + n, 1)
    return y


_PAD = Kernel("indexing.edges", "pad_edges")
_FOLD = Kernel("indexing.edges", "fold_edges")
_MODES = ("reflect", "replicate", "circular")


def _padded(shape: Sequence[int], pads: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    return (*shape[: len(shape) - len(pads)], *[n + sum(pair) for n, pair in zip(shape[-len(pads) :], reversed(pads), strict=True)])


@planned
def _launches(layout: Layout, pads: tuple[tuple[int, int], ...]) -> tuple[Layout, list[tuple[int, ...]]]:
    """Return the layout that is padded to, and the numbers of the kernels that pad the last dims, the last two of them at once."""
    shape = layout.shape
    w, (left, right) = shape[-1], pads[0]
    h, (top, bottom) = (shape[-2], pads[1]) if len(pads) > 1 else (1, (0, 0))
    found: list[tuple[int, ...]] = [(layout.size // max(h * w, 1), h, w, top, h + top + bottom, left, w + left + right)]
    if len(pads) > 2:
        n, (front, back) = shape[-3], pads[2]
        plane = found[0][4] * found[0][6]
        found.append((layout.size // max(n * h * w, 1), n, plane, front, n + front + back, 0, plane))
    return layout_of(_padded(shape, pads), None, layout.dtype), found


@structured(x=lambda g, pads, mode: _pad_edges(g, pads, mode), linear="jointly", batch="shift")
def _fold_edges(x, pads, mode):
    """Add each element of a padded tensor to that from which it came."""
    if x._layout.dtype.is_half:
        return cast(_fold_edges(cast(x, dtypes.float32), pads, mode), x._layout.dtype)
    layout = layout_of(_padded(x._layout.shape, [(-before, -after) for before, after in pads]), None, x._layout.dtype)
    data, carrier = dense(x), layout.dtype.carrier
    for planes, h, w, top, rows, left, columns in reversed(_launches(layout, pads)[1]):
        out = empty(planes * h * w, carrier)
        if out.size:
            given = (0, 0, 0, 0, 0, 0, 0, rows * columns, h * w)
            _FOLD.rows(carrier, given, threads.COPIED * data.size, planes, h, w, top, rows, left, columns, mode, data, out)
        data = out
    return make(data, layout, [0, 0])


def _pad_by(mode: str, n: int, node: str) -> Any:
    @structured(
        x=lambda g, pads, mode: _fold_edges(g, pads, mode), node=node, linear="jointly", batch="shift",
        dtypes="half float complex integer" + " bool" * (mode == "circular"), samples=f"F.pad(x(2, 2{', 3' * n}), {(1, 2) * n}, '{mode}')",
    )
    def pad_edges(x, pads, mode):
        layout, launches = _launches(x._layout, pads)
        data, carrier = dense(x), layout.dtype.carrier
        for planes, h, w, top, rows, left, columns in launches:
            out = empty(planes * rows * columns, carrier)
            if out.size:
                given = (0, 0, 0, 0, 0, 0, 0, h * w, rows * columns)
                _PAD.rows(carrier, given, threads.COPIED * out.size, planes, h, w, top, rows, left, columns, mode, data, out)
            data = out
        return make(data, layout, [0, 0])

    return pad_edges


#: (mode, how many dims) -> the op
_EDGES = {
    (mode, n): _pad_by(mode, n, f"{node}Pad{n}DBackward0") for mode, node in (("reflect", "Reflection"), ("replicate", "Replication")) for n in (1, 2, 3)
}
_AROUND = _pad_by("circular", 2, "")


def _op_of(mode: str, n: int) -> Any:
    return _EDGES.get((mode, n), _AROUND)


def _pad_edges(x: Tensor, pads: tuple[tuple[int, int], ...], mode: int) -> Tensor:
    return _op_of(_MODES[mode], len(pads))(x, pads, mode)  # type: ignore[no-any-return]


def _lengths(x: Tensor, pad: Any) -> list[int]:
    """Return what an op is told to put before and behind the last dims."""
    if not isinstance(pad, (tuple, list, Tensor)) or (isinstance(pad, Tensor) and not pad.ndim):
        raise TypeError(f"pad(): argument 'pad' must be tuple of ints, not {type(pad).__name__} (pad={shorten(pad)})")
    pads = list(as_ints(pad.tolist() if isinstance(pad, Tensor) else pad, "pad", "pad"))
    if len(pads) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2 (pad={pads})")
    if len(pads) > 2 * x.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension. Got padding length "
            f"{len(pads)} and input of dimension {x.ndim}"
        )
    return pads


@public(method=False, namespaces=("nn.functional",), name="nn.functional.pad")
def pad(input, pad: Sequence[int], mode="constant", value=None):
    """Pad the last dims: ``pad`` lists (before, after) from the last dim forward; negative numbers cut off.

    mode: "constant" (with ``value``, default 0), "reflect", "replicate", "circular". The gradient is that of what was copied.

    Errors: RuntimeError or NotImplementedError naming what does not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pad.html

    >>> torch.nn.functional.pad(torch.tensor([1.0, 2.0]), (1, 2))
    tensor([0., 1., 2., 0., 0.])
    """
    x = tensor_argument(input, "pad")
    pads = _lengths(x, pad)
    if text_argument(mode, "pad", "mode") == "constant":
        if type(value) is not int or abs(value) > 1 << 53:  # what a float does not hold
            value = 0 if value is None else float_argument(value, "pad", "value")
        return _constant(x, pads, value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument (value={value})')
    n = len(pads) // 2
    if mode != "circular":
        kernel = f"{'reflection' if mode == 'reflect' else 'replication'}_pad{n}d"
        need_numbers(kernel, (x,))
        not_for_limited(kernel, x.dtype)
    if not n or x.ndim not in (n + 1, n + 2):
        raise NotImplementedError(
            f"Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now (pad={pads}, input of size {list(x.shape)})"
        )
    if mode != "circular" and 0 in x.shape[x.ndim - n - 1 :]:
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but "
            f"got: {list(x.shape)}"
        )
    return _repeated(x, pads, mode)


def _repeated(x: Tensor, pads: list[int], mode: str) -> Tensor:
    """Return ``x`` padded with its own elements, dim by dim."""
    pairs = []
    sizes = [x.shape[x.ndim - 1 - k] + sum(pads[2 * k : 2 * k + 2]) for k in range(len(pads) // 2)]
    small = min(sizes) < 0 or (mode != "circular" and max(sizes) < 1)
    for k in range(len(pads) // 2):
        d = x.ndim - 1 - k
        before, after, size = pads[2 * k], pads[2 * k + 1], x.shape[d]
        if small or (size == 0 and mode != "circular"):
            raise RuntimeError(f"input (size {size} in dim {d}) is too small for padding ({before}, {after})")
        if mode == "reflect" and max(before, after) >= size:
            raise RuntimeError(
                f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding ({before}, {after}) "
                f"at dimension {d} of input {list(x.shape)}"
            )
        if mode == "circular" and max(before, after) > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if mode == "circular" and (before < 0 or after < 0):  # what is cut off does not come round
            start = min(max(-before, 0), size)
            x = slice_dim(x, d, start, max(size - max(-after, 0), start), 1)
            before, after = (max(before, 0), max(after, 0)) if sizes[k] else (0, -x.shape[d])
            if sizes[k] and not x.shape[d]:
                raise RuntimeError(f"Padding value causes wrapping around more than once. (nothing is left of dimension {d} with size {size})")
        pairs.append((before, after))
    if mode == "circular" and x.dtype.is_limited:  # PyTorch copies parts, of whatever dtype
        bits = dtypes.BY_NAME[f"int{8 * x.dtype.itemsize}"]
        return _pad_edges(x.view(bits), tuple(pairs), _MODES.index(mode)).view(x.dtype)
    y = _pad_edges(x, tuple(pairs), _MODES.index(mode))
    return y if mode == "circular" else jumping(in_format_of(y, x), x)


@public(method=False)
def constant_pad_nd(input, pad: Sequence[int], value=0):
    """Return `nn.functional.pad` with a constant; constant_pad_nd([1, 2], (1, 0), 9) = [9, 1, 2]."""
    x = tensor_argument(input, "constant_pad_nd")
    return _constant(x, _lengths(x, pad), number_argument(value, "constant_pad_nd", "value"))


def _constant(x: Tensor, pads: list[int], value: Any) -> Tensor:
    old = tuple(x._layout.shape)
    places, shape = [0] * len(old), list(old)
    for k in range(len(pads) // 2):
        d = len(old) - 1 - k
        before, after = pads[2 * k], pads[2 * k + 1]
        shape[d] += before + after
        if old[d] + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError(f"narrow(): length must be non-negative. (negative padding {before} and {after} of dimension {d} with size {old[d]})")
        if before < 0 or after < 0:  # what is cut off first
            x = slice_dim(x, d, max(-before, 0), old[d] - max(-after, 0), 1)
        places[d] = max(before, 0)
    if tuple(shape) == x._layout.shape:
        return x.clone()
    return _pad(x, tuple(places), tuple(shape), value)
