"""Complex numbers: their parts, conjugates, signs and angles, and the views between complex and real memory.

Gradients are in PyTorch's convention, the conjugate Wirtinger derivative ∂L/∂x̄ (twice it, to be exact): the direction in
which a real loss grows, so that ``x -= lr · grad`` descends. For a holomorphic op it is g · conj(dy/dx), which the pointwise
and structured machinery see to (`pointwise_backward.Spec.factors`); what is not holomorphic gives its gradient itself, and is here.

What users get of ``conj`` is a view (see `core.marked`); the library itself computes conjugates, by ``m.conj``.

Source: https://docs.pytorch.org/docs/stable/complex_numbers.html
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ... import dtypes, strides
from ...codegen.formula.namespace import m
from ...shapes import Layout, layout_of
from ...tensor import Tensor, _storage, above, make
from ..core.calls import unary_call
from ..core.inplace import counted
from ..core.marked import MARKED, can_be_marked, look_again, looked_at, marked, shows
from ..core.pointwise import Pointwise, pointwise
from ..core.recording import not_for_limited, pushed, scalar_type, store
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..core.views import memoized_view
from ..creation.cast import cast
from .unary import _sign

# --------------------------------------------------------------------------------------------------- conjugates


@pointwise(lambda g: m.conj(g), name="conj", public=False, holomorphic=False)
def _conj(x):
    return m.conj(x)


@pointwise(lambda g: m.conj(g), name="conj_physical", public=False, holomorphic=False)
def _conj_physical(x):
    return m.conj(x)


class _Resolved(Pointwise):
    """The elements that a view shows, in memory that is laid as a copy's."""

    def result_layout(self, shape: Sequence[int], avals: Sequence[Any], d: dtypes.dtype) -> Layout:
        return strides.like(avals[0], d)


above.resolve = {
    "conj": unary_call(_Resolved(lambda x: m.conj(x), [lambda g: m.conj(g)], "conj_physical", holomorphic=False)),
    "neg": unary_call(_Resolved(lambda x: -x, [lambda: -1], "neg")),
}


@public()
def conj(input):
    """Return the complex conjugate, a view; a real tensor is its own. The gradient is conj(g); conj([1 + 2j]) = [1.-2.j]."""
    x = input if input.__class__ is Tensor else tensor_argument(input, "conj")
    if not x._layout.dtype.is_complex:
        return x
    if x.__class__ in MARKED and x.mark == "conj":
        return look_again(looked_at(x))
    if hasattr(x.__class__, "viewed"):
        return x.viewed(conj)
    return marked(look_again(x), "conj") if x.__class__ is Tensor or can_be_marked(x) or x.__class__ in MARKED else _conj(x)


@public()
def conj_physical(input, *, out=None):
    """Return the complex conjugate in memory of its own; a real tensor is its own; dx = conj(g); conj_physical([1 + 2j]) = [1.-2.j]."""
    x = tensor_argument(input, "conj_physical")
    if x.__class__ in MARKED and x.mark == "conj":
        y = OPS["clone"].call(conj(x))
    else:
        y = _conj_physical(x) if x.dtype.is_complex else x
    return y if out is None else store(out, y, "conj_physical", (), (input,))


@public(kind="inplace")
def conj_physical_(input):
    """Compute `conj_physical` in place and return the tensor."""
    x = tensor_argument(input, "conj_physical_")
    return _conj_physical.inplace(x) if x.dtype.is_complex else counted(x)


@public()
def resolve_conj(input):
    """Return the tensor itself, or a copy of a view that shows conjugates; resolve_conj([1 + 2j]) = [1.+2.j]."""
    x = tensor_argument(input, "resolve_conj")
    return OPS["clone"].call(x) if shows(x, "conj") else x


@public()
def resolve_neg(input):
    """Return the tensor itself, or a copy of a view that shows negatives; resolve_neg([1., 2.]) = [1., 2.]."""
    x = tensor_argument(input, "resolve_neg")
    return OPS["clone"].call(x) if shows(x, "neg") else x


@public()
def is_conj(input) -> bool:
    """Return whether it is a view that shows conjugates: see `conj`; is_conj([1 + 2j]) = False."""
    return shows(tensor_argument(input, "is_conj"), "conj")


@public()
def is_neg(input) -> bool:
    """Return whether it is a view that shows negatives, as ``x.conj().imag`` is; is_neg([1.]) = False."""
    return shows(tensor_argument(input, "is_neg"), "neg")


@public()
def adjoint(input):
    """Return the conjugate transpose of the last two dims, a view. RuntimeError for 1-D tensors; adjoint([[1j, 2]]) = [[0.-1.j], [2.-0.j]]."""
    x = tensor_argument(input, "adjoint")
    if x.ndim == 1:
        raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return conj(x.mT)


def _hermitian(x: Tensor) -> Tensor:
    if x.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {x.ndim}-D tensor. For batches use .mH")
    return adjoint(x)


Tensor.mH = property(adjoint, doc="The conjugate transpose of the last two dims.")  # type: ignore[assignment]
Tensor.H = property(_hermitian, doc="The conjugate transpose of a matrix.")  # type: ignore[assignment]


# -------------------------------------------------------------------------------------------- views of the parts


def _in_order(g: Tensor) -> Tensor:
    """Return a gradient in C order; one without elements too, whose strides may be any."""
    return g.contiguous() if g._layout.size else g.reshape(0).reshape(g.shape)


@structured(
    x=lambda g: view_as_complex(_in_order(g)), view=True, linear="jointly", batch="shift",
    dtypes="half float", samples="torch.view_as_real(torch.complex(x(3), x(3)))",
)
def _view_as_real(x):
    layout = x._layout
    part = layout.dtype.to_real()
    parts = layout_of((*layout.shape, 2), (*(2 * s for s in layout.strides), 1), part)
    return make(x._data.view(part.carrier), parts, x._version_)


@structured(
    x=lambda g: view_as_real(_in_order(g)), view=True, linear="jointly", batch="shift",
    dtypes="half float", samples="torch.view_as_complex(x(3, 2)).real",
)
def _view_as_complex(x):
    layout = x._layout
    whole = layout.dtype.to_complex()
    data = x._data[: x._data.size // 2 * 2].view(whole.carrier)
    return make(data, layout_of(layout.shape[:-1], tuple(s // 2 for s in layout.strides[:-1]), whole), x._version_)


@public(method=False)
@memoized_view
def view_as_real(input):
    """Return a complex tensor's memory as real numbers, a last dim of (real, imaginary): […] → […, 2]; a view.

    Errors: RuntimeError for real tensors. Source: https://docs.pytorch.org/docs/stable/generated/torch.view_as_real.html

    >>> torch.view_as_real(torch.tensor([1.0 + 2.0j]))
    tensor([[1., 2.]])
    """
    x = tensor_argument(input, "view_as_real")
    if not x.dtype.is_complex:
        raise RuntimeError(f"view_as_real is only supported for complex tensors (input is {x.dtype})")
    if shows(x, "conj"):
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors. To resolve the conjugate tensor so you can view it as real, use "
            "self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original."
        )
    return (_view_as_real,)


@public(method=False)
@partial(memoized_view, whole=True)
def view_as_complex(input):
    """Return pairs of real numbers as complex ones: […, 2] → […]; a view.

    Derivative: the gradient's memory as real numbers.
    Errors: RuntimeError unless the last dim has size 2 and stride 1, and the other strides are even.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.view_as_complex.html

    >>> torch.view_as_complex(torch.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    x = tensor_argument(input, "view_as_complex")
    layout = x._layout
    if x.dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
        raise RuntimeError(
            f"view_as_complex is only supported for floating point tensors, but got a tensor of scalar type: {x.dtype}"
        )
    if not layout.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if layout.shape[-1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2, got {list(layout.shape)}")
    if layout.strides[-1] != 1:
        raise RuntimeError(
            f"Tensor must have a last dimension with stride 1 (its strides are {layout.strides}; use .contiguous())"
        )
    if any(s % 2 for s in layout.strides[:-1]):
        raise RuntimeError(
            f"Tensor must have a stride divisible by 2 for all but last dimension (its strides are {layout.strides}; use .contiguous())"
        )
    offset = _storage(x)[1]
    if offset % 2:
        raise RuntimeError(f"Tensor must have a storage_offset divisible by 2, not {offset} (use .clone())")
    return (_view_as_complex,)


@public(method=False)
def real(input):
    """Return the real parts, a view; a real tensor is its own. The gradient is g, as a complex number; real([1 + 2j]) = [1.]."""
    x = tensor_argument(input, "real")
    if not x.dtype.is_complex:
        return x
    if x.__class__ in MARKED:
        return real(looked_at(x)) if x.mark == "conj" else marked(real(looked_at(x)), "neg")
    if hasattr(x.__class__, "viewed"):
        return x.viewed(real)
    return _view_as_real(x).select(-1, 0)


@public(method=False)
def imag(input):
    """Return the imaginary parts, a view; the gradient is i·g. RuntimeError for real tensors; imag([1 + 2j]) = [2.]."""
    x = tensor_argument(input, "imag")
    if not x.dtype.is_complex:
        raise NotImplementedError("imag is not implemented for tensors with non-complex dtypes.")
    if x.__class__ in MARKED:
        return marked(imag(looked_at(x)), "neg")
    if hasattr(x.__class__, "viewed"):
        return x.viewed(imag)
    return _view_as_real(x).select(-1, 1)


def _set_part(part: Any) -> Any:
    def assign(x: Tensor, value: Any) -> None:
        target = part(x)
        target.copy_(value) if isinstance(value, Tensor) else target.fill_(value)

    return assign


Tensor.real = property(real, _set_part(real), doc="The real parts, a view; settable.")  # type: ignore[assignment]
Tensor.imag = property(imag, _set_part(imag), doc="The imaginary parts, a view; settable.")  # type: ignore[assignment]


# ------------------------------------------------------------------------------------------------ from two parts


@pointwise(
    lambda g, re: m.real(g), lambda g, im: m.imag(g), result="complex", name="complex", public=False, inplace=False, holomorphic=False
)
def _complex(re, im):
    return m.complex(re, im)


@pointwise(
    lambda g, y: m.real(m.conj(g) * m.sgn(y)),
    lambda g, y: m.imag(g) * m.real(y) - m.real(g) * m.imag(y),
    result="complex", name="polar", public=False, inplace=False, holomorphic=False,
)  # fmt: skip
def _polar(abs, angle):
    return m.complex(abs * m.cos(angle), abs * m.sin(angle))


def _two_parts(name: str, a: Any, b: Any, names: tuple[str, str], out: Any) -> None:
    x, y = tensor_argument(a, name, names[0]), tensor_argument(b, name, names[1])
    for t in (x, y):
        if t.dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
            raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {scalar_type(x.dtype)} and {scalar_type(y.dtype)}")
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {scalar_type(x.dtype)} but got scalar type {scalar_type(y.dtype)} for second argument ({names[1]})"
        )
    if isinstance(out, Tensor) and out.dtype is not x.dtype.to_complex():
        raise RuntimeError(
            f"Expected object of scalar type {scalar_type(x.dtype.to_complex())} but got scalar type {scalar_type(out.dtype)} for argument 'out'"
        )


@public(method=False)
def complex(real, imag, *, out=None):
    """Return the complex tensor real + i·imag; the operands broadcast and have one dtype.

    Derivative: dreal = Re g, dimag = Im g.
    Errors: RuntimeError unless both are floats of one dtype.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.complex.html

    >>> torch.complex(torch.tensor([1.0, 2.0]), torch.tensor([0.0, -1.0]))
    tensor([1.+0.j, 2.-1.j])
    """
    _two_parts("complex", real, imag, ("real", "imag"), out)
    y = _complex(real, imag)
    return y if out is None else store(out, y, "complex", (), (real, imag))


@public(method=False)
def polar(abs, angle, *, out=None):
    """Return the complex tensor abs·e^(i·angle); the operands broadcast and have one dtype.

    Derivative: dabs = Re(g·e^(−i·angle)), dangle = Im(g·conj(y)).
    Errors: RuntimeError unless both are floats of one dtype.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.polar.html

    >>> torch.polar(torch.tensor([2.0]), torch.tensor([0.0]))
    tensor([2.+0.j])
    """
    _two_parts("polar", abs, angle, ("abs", "angle"), out)
    not_for_limited("polar_cpu", abs.dtype.to_complex())
    if pushed.only is None:
        y = _polar(abs, angle)
    else:  # its gradient is PyTorch's, which takes a negative radius for a positive one; that of the parts is right
        y = _complex(abs * OPS["cos"].call(angle), abs * OPS["sin"].call(angle))
    return y if out is None else store(out, y, "polar", (), (abs, angle))


# --------------------------------------------------------------------------------------------- sign and angle


@pointwise(
    lambda g, x, y: m.where(x == 0, m.zero_like(x), (g - m.conj(g) * (y * y)) * 0.5 / m.abs(x)),
    name="sgn", public=False, holomorphic=False,
)  # fmt: skip
def _sgn(x):
    return m.sgn(x)


@pointwise(lambda x, y: 0, name="sgn_real", node="SgnBackward0", public=False)
def _sgn_real(x):
    return _sign(x)


@public()
def sgn(input, *, out=None):
    """Return x/|x|, 0 at 0; the `sign` of real numbers. Its gradient is that of the direction alone: (g − ḡ·y²)/2|x|.

    >>> torch.sgn(torch.tensor([3 + 4j, 0]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    x = tensor_argument(input, "sgn")
    y = (_sgn if x.dtype.is_complex else _sgn_real)(x)
    return y if out is None else store(out, y, "sgn", (), (input,))


@public(kind="inplace", namespaces=())
def sgn_(input):
    """Compute `sgn` in place and return the tensor."""
    x = tensor_argument(input, "sgn_")
    return (_sgn if x.dtype.is_complex else _sgn_real).inplace(x)


@pointwise(
    lambda g, x: m.where(x == 0, m.zero_like(x), m.complex(-g * m.imag(x), g * m.real(x)) / (m.abs(x) * m.abs(x))),
    result="real", name="angle", public=False, inplace=False, c_order=True,
)  # fmt: skip
def _angle(x):
    return m.angle(x)


@pointwise(lambda x: 0, result="float", name="angle_real", node="AngleBackward0", public=False, inplace=False)
def _angle_real(x):
    return m.angle(x)


@public()
def angle(input, *, out=None):
    """Return the angle in radians, within [−π, π]; of real numbers 0 or π. The gradient is i·x·g/|x|², 0 at 0; angle([1j, -1]) = [1.5708, 3.1416]."""
    x = tensor_argument(input, "angle")
    if x.dtype.category < 2:
        x = cast(x, dtypes.get_default_dtype())
    y = _angle(x) if x.dtype.is_complex else _angle_real(x)
    return y if out is None else store(out, y, "angle", (), (input,))


# ---------------------------------------------------------------------------------------------------- products


@structured(
    a=lambda g, b: m.conj(g) * b, b=lambda g, a: g * a, holomorphic=False, linear="each", batch="samples",
    dtypes="half float complex integer", samples="torch.vdot(x(4), x(4))",
)
def _vdot(a, b):
    return OPS["dot"].call(conj_physical(a), b)


@public()
def vdot(input, other, *, out=None):
    """Inner product of two vectors, the first conjugated: y = Σ conj(aᵢ)·bᵢ; vdot([1j, 2], [1j, 3]) = tensor(7.+0.j).

    Derivative: da = conj(g)·b, db = g·a.
    """
    a, b = tensor_argument(input, "vdot"), tensor_argument(other, "vdot", "other")
    y = _vdot(a, b)
    return y if out is None else store(out, y, "vdot")
