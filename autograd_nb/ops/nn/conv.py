"""Convolutions in one, two and three dims, and their transposes: three ops that are one another's derivatives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ...shapes import as_int, as_ints
from ...tensor import Tensor
from ..core.jumps import alongside, beside
from ..core.numbers import int_argument
from ..core.recording import guarded, not_for_barebone, scalar_type
from ..core.registry import OPS, public
from ..core.structured import optional_tensor, structured, tensor_argument
from ..creation.cast import cast, images, in_float32
from ..elementwise.complex import complex as complex_
from ..reduce.sums import sum as sum_
from ..shape.parts import _slice
from . import conv_ways


def _spatial(x_shape: Sequence[int], w_shape: Sequence[int], how: tuple[Any, ...]) -> list[int]:
    stride, padding, dilation, _ = how
    return [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(x_shape[2:], w_shape[2:], stride, padding, dilation, strict=True)
    ]


# Each is linear in both operands, so that its derivatives are the other two.
@structured(
    x=lambda g, x, w, x_shape, how: beside(_conv_by_input(g, w, tuple(x_shape), how), x),
    w=lambda g, x, w, w_shape, how: beside(_conv_by_weight(g, x, tuple(w_shape), how), w),
    bias=lambda g, x, w: beside(sum_(g, (0, *range(2, g.ndim))), x, w),
    node="ConvolutionBackward0",
    linear="no",
    dtypes="half float complex integer", samples="F.conv2d(x(1, 2, 4, 5), x(3, 2, 3, 2), x(3), padding=1)",
)
@images(4, 5, weight=True, wide=True)
def _conv(x, w, bias, how, spatial):
    """Return the convolution with outputs of the sizes ``spatial``; as a gradient of a transposed convolution they may be fewer than would fit."""
    return conv_ways.forward(x, w, bias, how, spatial)


@_conv.batched
def _conv_of_batch(op, args, batch):
    x, w, bias, how, spatial = args
    (xv, in_x), (wv, in_w) = batch.of(x), batch.of(w)
    bv, in_b = (None, False) if bias is None else batch.of(bias)
    if in_x and not in_w and not in_b:  # the batch is more images
        y = op(xv.reshape(batch.size * xv.shape[1], *xv.shape[2:]), wv, bv, how, spatial)
        return y.reshape(batch.size, xv.shape[1], *y.shape[1:])
    y = _as_groups(x, w, how, batch, lambda a, b, h: op(a, b, None, h, spatial))
    return y if bias is None else y + batch.whole(bias).reshape(batch.size, 1, -1, *[1] * (y.ndim - 3))


def _as_groups(x: Any, w: Any, how: tuple[Any, ...], batch: Any, call: Callable[..., Any]) -> Tensor:
    """Return a convolution of each sample's x with its own w, the samples being groups of channels: x (B·N·C → N·BC), w (B·O·I → BO·I)."""
    b = batch.whole(w)
    y = call(_side_by_side(batch.whole(x)), b.reshape(batch.size * b.shape[1], *b.shape[2:]), _more_groups(how, batch.size))
    return y.reshape(y.shape[0], batch.size, y.shape[1] // batch.size, *y.shape[2:]).transpose(0, 1)


def _side_by_side(x: Tensor) -> Tensor:
    """Return images of samples [B, N, C, …] as images with the channels of all samples [N, B·C, …]."""
    return x.transpose(0, 1).reshape(x.shape[1], x.shape[0] * x.shape[2], *x.shape[3:])


def _more_groups(how: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    return (*how[:-1], how[-1] * size)


@structured(
    y=lambda g, y, w, y_shape, how: beside(_conv(g, w, None, how, tuple(y_shape[2:])), y),
    w=lambda g, y, w, w_shape, how: beside(_conv_by_weight(y, g, tuple(w_shape), how), w),
    node="ConvolutionBackward0",
    linear="each",
)
@images(4, 5, weight=True, wide=True)
def _conv_by_input(y, w, x_shape, how):
    return conv_ways.by_input(y, w, tuple(x_shape), how)


@_conv_by_input.batched
def _conv_by_input_of_batch(op, args, batch):
    y, w, x_shape, how = args
    (yv, in_y), (wv, in_w) = batch.of(y), batch.of(w)
    n, c, *spatial = x_shape
    if in_y and not in_w:
        x = op(yv.reshape(batch.size * n, *yv.shape[2:]), wv, (batch.size * n, *x_shape[1:]), how)
        return x.reshape(batch.size, n, *x.shape[1:])
    return _as_groups(y, w, how, batch, lambda a, b, h: op(a, b, (n, batch.size * c, *spatial), h))


@structured(
    y=lambda g, x, y_shape, how: _conv(x, g, None, how, tuple(y_shape[2:])),
    x=lambda g, y, x_shape, how: _conv_by_input(y, g, tuple(x_shape), how),
    node="ConvolutionBackward0",
    linear="each",
)
def _conv_by_weight(y, x, w_shape, how):
    if y.dtype.is_half:
        return in_float32(_conv_by_weight.forward, y, x, w_shape, how)
    return conv_ways.by_weight(y, x, tuple(w_shape), how)


@_conv_by_weight.batched
def _conv_by_weight_of_batch(op, args, batch):
    y, x, w_shape, how = args
    y, x = (_side_by_side(batch.whole(t)) for t in (y, x))
    w = op(y, x, (batch.size * w_shape[0], *w_shape[1:]), _more_groups(how, batch.size))
    return w.reshape(batch.size, *w_shape)


# -------------------------------------------------------------------------------------------------- arguments


def tuple_of(value: Any, n: int, name: str, op: str) -> tuple[int, ...]:
    """Return an int for all dims, or one int for each."""
    if isinstance(value, (tuple, list)):
        out = as_ints(value, name, op)
        if len(out) == 1:
            out *= n
        if len(out) != n:
            raise RuntimeError(
                f"{op}(): expected {name} to be a single integer value or a list of {n} values, but got {name}={list(out)}"
            )
        return out
    return (as_int(value, name),) * n


def _prepare(
    op: str, n: int, input: Any, weight: Any, bias: Any, stride: Any, dilation: Any, groups: Any, transposed: bool, free: bool = False
) -> tuple[Any, ...]:
    """Return (x, w, stride, dilation, groups, whether there is a batch), checked. ``free``: the bias may have another dtype."""
    x, w = tensor_argument(input, op), tensor_argument(weight, op, "weight")
    other = w if x.dtype is not w.dtype else bias if bias is not None and bias.dtype is not x.dtype else None
    if free and other is bias and other is not None and x.dtype.category == 2 and (bias.dtype.category < 3 or not transposed):
        other = None
    if w.ndim != n + 2:
        raise RuntimeError(f"{op}(): expected weight to be {n + 2}-D, but got {w.ndim}-D weight of size {list(w.shape)}")
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {op}, but got input of size: {list(x.shape)}"
        )
    if other is not None:
        text = f"Input type ({x.dtype}) and {'weight' if other is w else 'bias'} type ({other.dtype}) should be the same"
        text = f"expected scalar type {scalar_type(x.dtype)} but found {scalar_type(other.dtype)}: {text}"
        if x.dtype.category < 2:  # which PyTorch sees first, or not
            raise NotImplementedError(f"\"{op}\" not implemented for '{scalar_type(x.dtype)}'; {text}")
        raise RuntimeError(f"{text} ({op}())")
    if x.dtype.category != 2:
        raise NotImplementedError(f"{op}(): not implemented for {x.dtype}; use floating point tensors")
    s, d = tuple_of(stride, n, "stride", op), tuple_of(dilation, n, "dilation", op)
    g = as_int(groups, "groups")
    if g < 1:
        raise RuntimeError(f"non-positive groups is not supported (groups={groups})")
    if any(v < 1 for v in s):
        raise RuntimeError(f"non-positive stride is not supported (stride={stride})")
    if any(v < 1 for v in d):
        raise RuntimeError(f"dilation should be greater than zero (dilation={dilation})")
    batched = x.ndim == n + 2
    if not batched:
        x = x.unsqueeze(0)
    if not transposed:
        if w.shape[0] % g or w.shape[0] < g:
            raise RuntimeError(
                f"Given groups={g}, expected weight to be at least {g} at dimension 0 and divisible by it, but got weight of size "
                f"{list(w.shape)} instead"
            )
        if x.shape[1] != w.shape[1] * g:
            raise RuntimeError(
                f"Given groups={g}, weight of size {list(w.shape)}, expected input{list(x.shape)} to have {w.shape[1] * g} channels, "
                f"but got {x.shape[1]} channels instead"
            )
    elif x.shape[1] != w.shape[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(w.shape)}, expected input{list(x.shape)} to have {w.shape[0]} channels, but "
            f"got {x.shape[1]} channels instead"
        )
    elif x.shape[1] % g:
        raise RuntimeError(f"{op}(): the input's {x.shape[1]} channels must be divisible by groups={g}")
    outputs = w.shape[1] * g if transposed else w.shape[0]
    if bias is not None and (tensor_argument(bias, op, "bias").ndim != 1 or bias.shape[0] != outputs):
        raise RuntimeError(
            f"Given weight of size {list(w.shape)}, expected bias to be 1-dimensional with {outputs} elements, but got bias of size "
            f"{list(bias.shape)} instead"
        )
    return x, w, s, d, g, batched


def _is_free(x: Tensor, n: int, groups: Any) -> bool:
    """Return whether a bias may have another dtype where padding is a word, as in PyTorch, which asks by the kernel that it takes."""
    return x.dtype is dtypes.float64 or (x.dtype is dtypes.float32 and groups == 1 and (x.ndim != n + 2 or x.shape[0] < 2))


def _of_nothing(call: Any, op: str, n: int, tensors: tuple[Any, ...], rest: tuple[Any, ...]) -> Tensor | None:
    """Return the result for no elements of a dtype without convolutions, at which PyTorch does not look then; None for anything else."""
    x, w, bias = tensors
    if not all(isinstance(t, Tensor) and t.dtype.category < 2 for t in (x, w)) or x.dtype is not w.dtype or x._layout.size:
        return None
    if bias is not None and (x.dtype.is_barebone or tensor_argument(bias, op, "bias").dtype is not x.dtype):
        raise NotImplementedError(f"\"add_stub\" not implemented for '{scalar_type(x.dtype)}' ({op}() with a bias)")
    return cast(call(op, n, *[None if t is None else cast(t, dtypes.float32) for t in tensors], *rest), x.dtype)


def _integers(call: Any, op: str, n: int, tensors: tuple[Any, ...], rest: tuple[Any, ...]) -> Tensor | None:
    """Return a convolution of integers, which BLAS does not have: of their digits, in float64 and exact, then summed; None for other dtypes."""
    if not all(t is None or (isinstance(t, Tensor) and t.dtype.category == 1) for t in tensors):
        return None
    (x, w, bias), d = tensors, tensors[0].dtype
    for t, name in ((w, "weight"), (bias, "bias")):
        if t is not None and t.dtype is not d:
            text = f"expected scalar type {scalar_type(d)}: Input type ({d}) and {name} type ({t.dtype}) should be the same"
            raise (RuntimeError if d is dtypes.int64 else NotImplementedError)(f"\"{op}\" not implemented for '{scalar_type(t.dtype)}'; {text}")
    not_for_barebone(f"slow_{op.replace('1', '2')}_cpu", d)
    terms, width = max(w._layout.size, 1).bit_length(), 8 * d.np.itemsize
    digits = min((52 - terms) // 2, width)  # bits of a digit: a sum of so many products is below 2**53
    count = -(-width // digits)
    parts = [[cast(part, dtypes.float64) for part in _digits(t, digits, count)] for t in (x, w)]
    y: Any = None
    for i, j in itertools.product(range(count), repeat=2):
        if i + j < count:  # what stands further to the left is none of the type's bits
            z = cast(call(op, n, parts[0][i], parts[1][j], None if bias is None else cast(bias, dtypes.float64) * 0, *rest), dtypes.int64)
            z = z << digits * (i + j) if i + j else z
            y = z if y is None else y + z
    kernel = "" if d is dtypes.int64 else f"slow_{op.replace('1', '2')}_out_cpu" if call is transposed else "slow_conv_dilated<>"
    if kernel and (call is transposed or any(v != 1 for v in tuple_of(rest[2], n, "dilation", op))):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type(d)}' ({op}() of {d}: cast to int64 or a floating dtype)")
    if bias is not None:
        y = y + cast(bias, dtypes.int64).reshape(-1, *(1,) * n)
    return cast(y, d)


def _digits(t: Tensor, bits: int, count: int) -> list[Tensor]:
    """Return ``count`` tensors of int64 of which ``t`` is the sum, the k-th times 2**(bits·k); the last has the sign."""
    t = cast(t, dtypes.int64)
    if count == 1:
        return [t]
    return [*((t >> bits * k) & ((1 << bits) - 1) for k in range(count - 1)), t >> bits * (count - 1)]


def _of_parts(call: Any, op: str, n: int, tensors: tuple[Any, ...], rest: tuple[Any, ...]) -> Tensor | None:
    """Return the result for complex tensors, from three convolutions of their parts (as Gauss multiplied); None for real ones."""
    x, w, bias = tensors
    if not all(isinstance(t, Tensor) and t.dtype.is_complex for t in (x, w)) or x.dtype is not w.dtype:
        return None
    if bias is not None and tensor_argument(bias, op, "bias").dtype is not x.dtype:
        raise RuntimeError(f"Input type ({x.dtype}) and bias type ({bias.dtype}) should be the same ({op}(): cast one with .to())")
    a, b, c, d = x.real, x.imag, w.real, w.imag
    ac, bd, whole = (call(op, n, p, q, None, *rest) for p, q in ((a, c), (b, d), (a + b, c + d)))
    y = complex_(ac - bd, whole - ac - bd)
    return y if bias is None else guarded(y + bias.reshape(-1, *(1,) * n), x, w)


def _check_empty(x: Tensor, w: Tensor, transposed: bool) -> None:
    """Refuse what PyTorch refuses of tensors without elements: only the batch or the channels may be empty."""
    if transposed and not w.shape[0]:
        raise RuntimeError(f"expected weight to be at least 1 at dimension 0, but got weight of size {list(w.shape)} instead")
    if not x._layout.size:
        if x.shape[0] and x.shape[1]:
            raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x.shape)}")
    elif not w._layout.size:
        raise RuntimeError(f"could not make a convolution with a weight that has no elements, of size {list(w.shape)}")


def convolution(
    op: str, n: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Tensor:
    tensors, rest = (input, weight, optional_tensor(bias, op, "bias")), (stride, padding, dilation, groups)
    whole = _of_nothing(convolution, op, n, tensors, rest)
    if whole is None:
        whole = _integers(convolution, op, n, tensors, rest)
    if whole is None:
        whole = _of_parts(convolution, op, n, tensors, rest)
    if whole is not None:
        return whole
    free = isinstance(padding, str) and isinstance(input, Tensor) and _is_free(input, n, groups)
    x, w, s, d, g, batched = _prepare(op, n, input, weight, bias, stride, dilation, groups, False, free)
    if isinstance(padding, str):
        bias = None if bias is None else cast(bias, x.dtype)
        if padding == "valid":
            p: tuple[int, ...] = (0,) * n
        elif padding == "same":
            if any(v != 1 for v in s):
                raise RuntimeError("padding='same' is not supported for strided convolutions")
            total = [dv * (k - 1) for dv, k in zip(d, w.shape[2:], strict=True)]
            p = tuple(t // 2 for t in total)
            if any(t % 2 for t in total):  # the odd one goes behind
                extra = [v for t in reversed(total) for v in (0, t % 2)]
                x = OPS["nn.functional.pad"].call(x, extra)
        else:
            raise RuntimeError(f"Invalid padding string: {padding!r}, should be one of 'valid', 'same'")
    else:
        p = tuple_of(padding, n, "padding", op)
    if any(v < 0 for v in p):
        raise RuntimeError(f"negative padding is not supported (padding={padding})")
    how = (s, p, d, g)
    for size, k, pad, dil in zip(x.shape[2:], w.shape[2:], p, d, strict=True):
        if size + 2 * pad < dil * (k - 1) + 1:
            sizes = " x ".join(str(v + 2 * q) for v, q in zip(x.shape[2:], p, strict=True))
            kernel = " x ".join(str(dv * (kv - 1) + 1) for kv, dv in zip(w.shape[2:], d, strict=True))
            raise RuntimeError(
                f"Calculated padded input size per channel: ({sizes}). Kernel size: ({kernel}). Kernel size can't be greater than actual "
                "input size"
            )
    _check_empty(x, w, False)
    y = _conv(x, w, bias, how, tuple(_spatial(x.shape, w.shape, how)))
    if not x.shape[1]:
        y = _slice(y, 1, 0, 0, 1)  # of no channels PyTorch makes no channels, whatever the weight says
    return y if batched else y.squeeze(0)


def transposed(
    op: str, n: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: Any,
    dilation: Any,
) -> Tensor:  # fmt: skip
    tensors, rest = (input, weight, optional_tensor(bias, op, "bias")), (stride, padding, output_padding, groups, dilation)
    whole = _of_nothing(transposed, op, n, tensors, rest)
    if whole is None:
        whole = _integers(transposed, op, n, tensors, rest)
    if whole is None:
        whole = _of_parts(transposed, op, n, tensors, rest)
    if whole is not None:
        return whole
    free = n < 3 and (int_argument(groups, op, "groups") == 1 or getattr(input, "dtype", None) is not dtypes.float32)  # as PyTorch's kernels have it
    x, w, s, d, g, batched = _prepare(op, n, input, weight, bias, stride, dilation, groups, True, free)
    p, extra = tuple_of(padding, n, "padding", op), tuple_of(output_padding, n, "output_padding", op)
    if any(v < 0 for v in p):
        raise RuntimeError(f"negative padding is not supported (padding={padding})")
    for e, sv, dv in zip(extra, s, d, strict=True):
        if e < 0 or e >= max(sv, dv):
            raise RuntimeError(
                f"output padding must be smaller than either stride or dilation, but got output_padding={list(extra)}, "
                f"stride={list(s)}, dilation={list(d)}"
            )
    spatial = [
        (m - 1) * sv - 2 * pv + dv * (k - 1) + e + 1
        for m, k, sv, pv, dv, e in zip(x.shape[2:], w.shape[2:], s, p, d, extra, strict=True)
    ]
    _check_empty(x, w, True)
    if any(m < 1 for m in spatial) and (x._layout.size or any(m < 0 for m in spatial)):
        raise RuntimeError(
            f"Given input size per channel: ({' x '.join(map(str, x.shape[2:]))}). Calculated output size per channel: "
            f"({' x '.join(map(str, spatial))}). Output size is too small"
        )
    y = _conv_by_input(x, w, (x.shape[0], w.shape[1] * g, *spatial), (s, p, d, g))
    if bias is not None:
        y = guarded(y + alongside(cast(bias, y.dtype).reshape(-1, *(1,) * n), x, w), x, w)
    return y if batched else y.squeeze(0)


_DOC = """y[n, o] = b[o] + Σ w[o, c, …]·x[n, c, …] over the {n}-D window, per group.

    input: (N, C, …) or (C, …). weight: (O, C/groups, k…). padding: ints, "valid" or "same" (stride 1). Derivatives: the
    transposed convolution of g with w, and the correlation of g with x; each is an op that can be differentiated again.

    Errors: RuntimeError naming the sizes that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv{n}d.html

    >>> torch.nn.functional.conv{n}d(torch.ones({ones}4), torch.ones({ones}2)).flatten()
    tensor([2., 2., 2.])
    """

_DOC_T = """Return the transpose of conv{n}d: what is its gradient by the input, with a bias.

    input: (N, C, …) or (C, …). weight: (C, O/groups, k…). output_padding adds to one side of the output's sizes.

    Errors: RuntimeError naming the sizes that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv_transpose{n}d.html

    >>> torch.nn.functional.conv_transpose{n}d(torch.ones({ones}3), torch.ones({ones}2)).flatten()
    tensor([1., 2., 2., 1.])
    """


def _declare(n: int) -> None:
    name, tname = f"conv{n}d", f"conv_transpose{n}d"

    def conv(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        return convolution(name, n, input, weight, bias, stride, padding, dilation, groups)

    def conv_transpose(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        return transposed(tname, n, input, weight, bias, stride, padding, output_padding, groups, dilation)

    for function, own, doc in ((conv, name, _DOC), (conv_transpose, tname, _DOC_T)):
        function.__name__ = function.__qualname__ = own
        function.__doc__ = doc.format(n=n, ones="1, " * (n + 1))
        public(method=False, namespaces=("torch",), name=own)(function)
        public(method=False, namespaces=("nn.functional",), name=f"nn.functional.{own}")(function)


for _n in (1, 2, 3):
    _declare(_n)


@public(method=False, namespaces=("torch", "nn.functional"))
def conv_tbc(input, weight, bias, pad: int = 0):
    """Return conv1d of (time, batch, channels) by ``weight`` (width, inputs, outputs) and ``bias`` (outputs): (time, batch, outputs).

    >>> torch.conv_tbc(torch.ones(3, 1, 1), torch.ones(2, 1, 1), torch.zeros(1)).flatten()
    tensor([2., 2.])

    Errors: RuntimeError naming the sizes that do not fit.
    """
    x, w, b = tensor_argument(input, "conv_tbc"), tensor_argument(weight, "conv_tbc", "weight"), tensor_argument(bias, "conv_tbc", "bias")
    if x.ndim != 3 or w.ndim != 3:
        raise RuntimeError(
            f"Input must have 3 dims: time, batch, in_channel, and weight 3 (got {list(x.shape)} and {list(w.shape)})"
        )
    return convolution("conv_tbc", 1, x.permute(1, 2, 0), w.permute(2, 1, 0), b, 1, pad, 1, 1).permute(2, 0, 1)
