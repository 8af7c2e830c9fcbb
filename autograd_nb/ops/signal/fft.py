"""Discrete Fourier transforms: three linear ops, complex to complex, real to half complex and back, and their many names.

Each op's gradient is another of the three with the opposite sign in the exponent, so that the family is closed under
differentiation. Lengths ``n`` and ``s`` cut the input or pad it with zeros first.

Source: https://docs.pytorch.org/docs/stable/fft.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import config, dtypes, launch, strides
from ...dtypes import dtype
from ...launch import Kernel
from ...shapes import as_int, layout_of, wrap_dim
from ...tensor import Tensor, make
from ..core.numbers import several_argument, text_argument
from ..core.recording import guarded, made_in, scalar_type, store
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense, placed
from ..creation.create import new_full
from ..creation.ranges import arange, stored_in_order, warn_of_count
from ..elementwise.complex import real
from ..shape.pad import constant_pad_nd
from ..shape.turning import roll

_C2C, _R2C, _C2R = Kernel("fft", "c2c"), Kernel("fft", "r2c"), Kernel("fft", "c2r")
MANY = 1 << 16  #: elements from which several threads are worth being woken


def _workers(x: Tensor) -> int:
    return config.get_num_threads() if x._layout.size >= MANY else 1


def _order(steps: Sequence[int], dims: tuple[int, ...]) -> list[int]:
    """Return the dims as they lie in a result, outermost first: the transformed ones innermost, the others as in the operand.

    So PyTorch lays them, whose library transforms rows. ``steps``: the operand's strides.
    """
    return [*_sorted(steps, [d for d in range(len(steps)) if d not in dims]), *dims]


def _sorted(steps: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(dims, key=lambda d: -steps[d]))


def _in_rows(x: Tensor, dims: tuple[int, ...]) -> bool:
    """Return whether the dims to transform are the last ones of an operand in C order."""
    return x._layout.contiguous and dims == tuple(range(x.ndim - len(dims), x.ndim))


def _transform(
    kernel: Kernel, x: Tensor, shape: Sequence[int], d: dtype, order: list[int] | None, dims: tuple[int, ...], *options: Any
) -> Tensor:  # fmt: skip
    """Run a kernel on the operand read in this order of dims (None: in C order), in which the result of ``shape`` lies in memory."""
    if order is None:
        out, sizes = layout_of(shape, None, d), (tuple(shape),)
    else:
        out, sizes = strides.ordered(shape, order, d), (tuple([shape[i] for i in order]),)
        dims = tuple([order.index(i) for i in dims])
        x = make(x._data, strides.permuted(x._layout, order), x._version_)
    data = launch.empty(out.size, d.carrier)
    if out.size:
        kernel(x.dtype, *(sizes if kernel is _C2C else (tuple(x.shape), *sizes)), dims, *options, _workers(x), dense(x), data)
    return make(data, out, [0, 0])


# ------------------------------------------------------------------------------------------- the three transforms


def _c2c_rule(g: Tensor, x_real: bool, dims: tuple[Any, ...], scale: int, forward: bool) -> Tensor:
    y = _c2c(g, False, dims, scale, not forward)
    return real(y) if x_real else y


@structured(
    x=_c2c_rule, node="FftC2CBackward0", linear="no", batch="shift",
    dtypes="float complex integer bool", samples="torch.fft.fft(x(3, 4))",
)
def _c2c(x, x_real, dims, scale, forward):
    steps = x._layout.strides
    order = None if _in_rows(x, dims) else _order(steps, _sorted(steps, dims))
    return _transform(_C2C, x, x.shape, x.dtype.to_complex(), order, dims, forward, scale)


def _r2c_rule(g: Tensor, x: Tensor, x_shape: tuple[Any, ...], dims: tuple[Any, ...], scale: int, forward: bool) -> Tensor:
    return real(_c2c(_resized(g, dims[-1], x_shape[dims[-1]]), False, dims, scale, not forward))


@structured(
    x=_r2c_rule, node="FftR2CBackward0", linear="no", batch="shift",
    dtypes="float integer bool", samples="torch.fft.rfft(x(3, 4))",
)
def _r2c(x, dims, scale, forward):
    half = [n // 2 + 1 if d == dims[-1] else n for d, n in enumerate(x.shape)]
    d, steps = x.dtype.to_complex(), x._layout.strides
    order = None
    if _in_rows(x, dims) and (forward or len(dims) == 1):
        pass
    elif forward:
        order = _order(steps, (*_sorted(steps, dims[:-1]), dims[-1]))
    else:  # the last dim first, then the others
        steps = strides.ordered(half, _order(steps, dims[-1:]), d).strides
        order = _order(steps, _sorted(steps, dims[:-1] or dims))
    return _transform(_R2C, x, half, d, order, dims, forward, scale)


def _c2r_rule(g: Tensor, dims: tuple[Any, ...], scale: int, forward: bool, last: int) -> Tensor:
    y = _r2c(g, dims, scale, not forward)
    # a frequency and its mirror image, which was not given, both come from the one that was
    d, half = dims[-1], y.shape[dims[-1]]
    weights = new_full((half,), 2, g.dtype)
    weights.narrow(0, 0, 1).fill_(1)
    if last % 2 == 0:
        weights.narrow(0, half - 1, 1).fill_(1)
    return y * weights.detach().reshape([half if i == d else 1 for i in range(y.ndim)])


@structured(
    x=_c2r_rule, node="FftC2RBackward0", linear="no", batch="shift",
    dtypes="float complex integer bool", samples="torch.fft.irfft(x(3, 4))",
)
def _c2r(x, dims, scale, forward, last):
    shape = [last if d == dims[-1] else n for d, n in enumerate(x.shape)]
    steps = x._layout.strides
    if _in_rows(x, dims):
        return _transform(_C2R, x, shape, x.dtype.to_real(), None, dims, forward, scale)
    if len(dims) > 1:  # the last dim after the others
        steps = strides.ordered(x.shape, _order(steps, _sorted(steps, dims[:-1])), x.dtype).strides
    elif forward:  # PyTorch conjugates it first
        steps = strides.like(x._layout).strides
    return _transform(_C2R, x, shape, x.dtype.to_real(), _order(steps, dims[-1:]), dims, forward, scale)


# ------------------------------------------------------------------------------------------------ arguments


def _scale(norm: Any, forward: bool) -> int:
    """Return how a transform is scaled: 0 not at all, 1 by 1/√n, 2 by 1/n."""
    text_argument(norm, "fft", "norm")
    if norm == "ortho":
        return 1
    if norm is None or norm == "backward":
        return 0 if forward else 2
    if norm == "forward":
        return 2 if forward else 0
    raise RuntimeError(f'Invalid normalization mode: "{norm}" (norm must be "backward", "ortho" or "forward")')


def _floating(value: Any, name: str, complex_input: bool = False) -> Tensor:
    """Return the input as float or complex numbers."""
    x = tensor_argument(value, name)
    if x.dtype.is_half:
        raise RuntimeError(f"Unsupported dtype {scalar_type(x.dtype)}: cast to float32 first")
    if x.dtype.category < 2:
        x = cast(x, dtypes.get_default_dtype())
    return cast(x, x.dtype.to_complex()) if complex_input else x


def _only_real(x: Tensor, name: str) -> Tensor:
    if x.dtype.is_complex:
        kind = "real" if name in ("rfft", "ihfft") else "real-valued"
        raise RuntimeError(f"{name} expects a {kind} input tensor, but got {scalar_type(x.dtype)}")
    return x


def _resized(x: Tensor, d: int, n: int) -> Tensor:
    """Return x cut to n elements along d, or padded with zeros behind."""
    return _all_resized(x, (d,), (n,))


def _points(n: int) -> int:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _one_dim(x: Tensor, n: Any, dim: Any, name: str = "", last: bool = False) -> tuple[tuple[int, ...], list[int]]:
    """Return what `_many_dims` does, for one dim: its length is the input's only where none is given."""
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(dim, x.ndim)
    if n is None:
        n = 2 * (x.shape[d] - 1) if last else x.shape[d]
    return (d,), [_points(as_int(n, "n"))]


def _many_dims(x: Tensor, s: Any, dim: Any, name: str = "", last: bool = False) -> tuple[tuple[int, ...], list[int]]:
    """Return (dims, sizes to transform); ``last``: the last size is that of a real array of which half the transform is given."""
    sizes = None if s is None else [as_int(n, "s") for n in several_argument(s, name or "fft", "s")]
    if dim is not None:
        dims = tuple(wrap_dim(d, x.ndim) for d in several_argument(dim, name or "fft", "dim"))
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"FFT dims must be unique, got dim={tuple(dim)}")
        if sizes is not None and len(sizes) != len(dims):
            raise RuntimeError(f"When given, dim and shape arguments must have the same length (dim={dim}, s={s})")
    elif sizes is not None:
        if len(sizes) > x.ndim:
            raise RuntimeError(f"Got shape with {len(sizes)} values but input tensor only has {x.ndim} dimensions.")
        dims = tuple(range(x.ndim - len(sizes), x.ndim))
    else:
        dims = tuple(range(x.ndim))
    if name and not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    given = sizes or [-1] * len(dims)
    found = [x.shape[d] if n == -1 else n for d, n in zip(dims, given, strict=True)]
    if last and given[-1] == -1:
        found[-1] = 2 * (found[-1] - 1)
    for n in found:
        _points(n)
    return dims, found


def _given(y: Tensor, out: Tensor | None, name: str) -> Tensor:
    return y if out is None else store(out, y, name)


# ---------------------------------------------------------------------------- the transforms of one dim or several
# ``dims_of``: `_one_dim` or `_many_dims`, which read the lengths ``n`` and the ``dim`` that a caller gives.


def _all_resized(x: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Return x cut or padded along several dims: cut first, then padded along all of them at once, so that its gradient is cut out at once too."""
    behind = [0] * x.ndim
    for d, n in zip(dims, sizes, strict=True):
        if x.shape[d] > n:
            x = x.narrow(d, 0, n)
        behind[d] = n - x.shape[d]
    return constant_pad_nd(x, [k for n in reversed(behind) for k in (0, n)]) if any(behind) else x


def _whole(name: str, forward: bool, dims_of: Any) -> Any:
    def compute(input: Any, n: Any, dim: Any, norm: Any) -> Tensor:
        x = _floating(input, name)
        dims, sizes = dims_of(x, n, dim)
        if dims_of is _many_dims and not x.dtype.is_complex and not strides.packed(x._layout):
            x = cast(x, x.dtype.to_complex())  # a copy of it orders the dims
        x = _all_resized(x, dims, sizes)
        if not dims:
            return cast(x, x.dtype.to_complex())
        y = _c2c(x, not x.dtype.is_complex, dims, _scale(norm, forward), forward)
        # (of real numbers and one dim it is PyTorch's rfft, which keeps them)
        return y if x.dtype.is_complex or dims_of is _many_dims else guarded(y, x)

    return compute


def _to_half(name: str, forward: bool, dims_of: Any) -> Any:
    def compute(input: Any, n: Any, dim: Any, norm: Any) -> Tensor:
        x = _only_real(_floating(input, name), name)
        dims, sizes = dims_of(x, n, dim, name)
        return _r2c(_all_resized(x, dims, sizes), dims, _scale(norm, forward), forward)

    return compute


def _from_half(name: str, forward: bool, dims_of: Any) -> Any:
    def compute(input: Any, n: Any, dim: Any, norm: Any) -> Tensor:
        x = _floating(input, name, complex_input=True)
        dims, sizes = dims_of(x, n, dim, name, last=True)
        x = _all_resized(x, dims, [*sizes[:-1], sizes[-1] // 2 + 1])
        return _c2r(x, dims, _scale(norm, forward), forward, sizes[-1])

    return compute


# ------------------------------------------------------------------------------------------------- one dim


def _declare_one(name: str, compute: Any, doc: str) -> None:
    def call(input, n=None, dim=-1, norm=None, *, out=None):
        return _given(compute(input, n, dim, norm), out, name)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"{doc}\n\n    n: the length, to which the input is cut or padded with zeros. norm: which direction is divided by n: "
        '"backward" (the default), "forward", or "ortho": both by √n.\n    Derivative: the transposed map of g, '
        "conjugated: a transform in the other direction with the same factor.\n    Errors: RuntimeError for n < 1.\n"
        f"    Source: https://docs.pytorch.org/docs/stable/generated/torch.fft.{name}.html"
    )
    public(method=False, namespaces=("fft",), name=f"fft.{name}")(call)


_declare_one("fft", _whole("fft", True, _one_dim), "yₖ = Σⱼ xⱼ·e^(−2πi·jk/n) along ``dim``; fft([1., 2., 0., 0.]) = [ 3.+0.j, 1.-2.j, -1.+0.j, 1.+2.j].")
_declare_one(
    "ifft", _whole("ifft", False, _one_dim),
    "Return the inverse of `fft`: yⱼ = Σₖ xₖ·e^(2πi·jk/n)/n along ``dim``; ifft([4., 0., 0., 0.]).real = [1., 1., 1., 1.].",
)
_declare_one(
    "rfft", _to_half("rfft", True, _one_dim),
    "Return the `fft` of a real input, its n//2 + 1 frequencies that are not mirror images; rfft([1., 2.]) = [ 3.+0.j, -1.+0.j].",
)
_declare_one(
    "irfft", _from_half("irfft", False, _one_dim),
    "Return the inverse of `rfft`; n is 2·(size − 1) where not given; irfft([4., 0., 0.]) = [1., 1., 1., 1.].",
)
_declare_one(
    "hfft", _from_half("hfft", True, _one_dim),
    "Return the `fft` of a signal that is its own mirrored conjugate, given by half: real; hfft([1., 2.]) = [ 3., -1.].",
)
_declare_one(
    "ihfft", _to_half("ihfft", False, _one_dim),
    "Return the inverse of `hfft`: half of the transform of a real input; ihfft([2., 2.]).real = [2., 0.].",
)


# ------------------------------------------------------------------------------------------------ several dims


def _declare_many(name: str, compute: Any, doc: str, shown: str) -> None:
    def call(input, s=None, dim=None, norm=None, *, out=None):
        return _given(compute(input, s, dim, norm), out, name + "n")

    def call2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
        return _given(compute(input, s, dim, norm), out, name + "2")

    for suffix, function in (("n", call), ("2", call2)):
        function.__name__ = function.__qualname__ = name + suffix
        function.__doc__ = (
            f"Return {doc} over {'several dims (default all, or the last of ``s``)' if suffix == 'n' else 'two dims, the last by default'}; "
            f"{name}{suffix}([[1., 2.], [3., 4.]]){shown}."
            "\n\n    s: the lengths along them, −1 for the input's. norm: as in `fft`."
            "\n    Derivative: the transposed map of g, conjugated: a transform in the other direction with the same factor."
            "\n    Errors: RuntimeError for repeated dims and lengths below 1.\n"
            f"    Source: https://docs.pytorch.org/docs/stable/generated/torch.fft.{name}{suffix}.html"
        )
        public(method=False, namespaces=("fft",), name=f"fft.{name}{suffix}")(function)


_declare_many("fft", _whole("fftn", True, _many_dims), "`fft`", " = [[10.+0.j, -2.+0.j], [-4.+0.j, 0.+0.j]]")
_declare_many("ifft", _whole("ifftn", False, _many_dims), "`ifft`", " = [[ 2.5000+0.j, -0.5000+0.j], [-1.0000+0.j, 0.0000+0.j]]")
_declare_many("rfft", _to_half("rfftn", True, _many_dims), "`rfft` (half of the frequencies of the last dim)", " = [[10.+0.j, -2.+0.j], [-4.+0.j, 0.+0.j]]")
_declare_many(
    "irfft", _from_half("irfftn", False, _many_dims),
    "`irfft` (half of the frequencies of the last dim)", " = [[ 2.5000, -0.5000], [-1.0000, 0.0000]]",
)
_declare_many("hfft", _from_half("hfftn", True, _many_dims), "`hfft` (half of the signal along the last dim)", " = [[10., -2.], [-4., 0.]]")
_declare_many(
    "ihfft", _to_half("ihfftn", False, _many_dims),
    "`ihfft` (half of the signal along the last dim)", ".real = [[ 2.5000, -0.5000], [-1.0000, 0.0000]]",
)


# ------------------------------------------------------------------------------------------------- frequencies


def _frequencies(name: str, of: Any, doc: str, shown: str) -> None:
    def call(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
        target = made_in(out, dtype) or dtypes.get_default_dtype()
        if target.category < 2:
            raise RuntimeError(f"{name} requires a floating point or complex dtype (dtype={target!r})")
        places = cast(of(as_int(n, "n"), target), target)
        y = places * (1.0 / (n * d)) if n else places
        if out is None:
            return y.requires_grad_(requires_grad)
        warn_of_count(out, y._layout.size)
        return stored_in_order(out, y, name, requires_grad)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"{doc}, for samples ``d`` apart; {name}(4) = {shown}.\n\n    Source: https://docs.pytorch.org/docs/stable/generated/torch.fft.{name}.html"
    )
    public(method=False, namespaces=("fft",), name=f"fft.{name}")(placed(call))


_frequencies(
    "fftfreq",
    lambda n, d: OPS["cat"].call([arange(0, (n + 1) // 2), arange(-(n // 2), 0)]),
    "Return the frequencies of `fft`'s output",
    "[ 0.0000, 0.2500, -0.5000, -0.2500]",
)
_frequencies("rfftfreq", lambda n, d: arange(0, n // 2 + 1), "Return the frequencies of `rfft`'s output", "[0.0000, 0.2500, 0.5000]")


def _rolled(name: str, step: Any, doc: str) -> None:
    def call(input, dim=None):
        x = tensor_argument(input, name)
        dims = tuple(range(x.ndim)) if dim is None else several_argument(dim, name, "dim")
        if not dims:
            raise RuntimeError(f"`shifts` required ({name}() of no dims)")
        return roll(x, [step(x.size(d)) for d in dims], tuple(wrap_dim(d, x.ndim) for d in dims))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{doc}\n\n    Source: https://docs.pytorch.org/docs/stable/generated/torch.fft.{name}.html"
    public(method=False, namespaces=("fft",), name=f"fft.{name}")(call)


_rolled(
    "fftshift", lambda n: n // 2,
    "Return the frequencies in order, 0 in the middle, along ``dim`` (default all dims); fftshift([0, 1, -2, -1]) = [-2, -1, 0, 1].",
)
_rolled("ifftshift", lambda n: (n + 1) // 2, "Undo `fftshift`, with the same dims; ifftshift([-2, -1, 0, 1]) = [ 0, 1, -2, -1].")
