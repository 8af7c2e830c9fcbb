"""In-place forms that are made from other ops: of comparisons, logic, products and scans, and of what only moves a view."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ...codegen.formula.namespace import m
from ...dtypes import as_dtype
from ...graph.modes import state, unrecorded
from ...graph.node import expect
from ...overriding import overridable, whole
from ...shapes import is_expanded
from ...tensor import Tensor, look_as, make
from .calls import inplace_call
from .history import check_inplace
from .inplace import assign_inplace, before, in_place, inplace_version
from .numbers import plain_number
from .pointwise import pointwise
from .recording import fit_output, not_for_bool, tensor_type
from .registry import OPS, public
from .scalars_first import legacy_options, scalars_first
from .structured import tensor_argument


def _comparison(name: str, compare: Callable[[Any, Any], Any]) -> None:
    """Register ``<name>_``, which writes 0 and 1 of the tensor's dtype; where recorded with a history and gradients of zeros."""

    def formula(a, b):
        return m.where(compare(a, b), 1, 0)

    recorded = pointwise(lambda: 0, lambda: 0, name=name, public=False, inplace=False, node=f"{name.capitalize()}Backward1")(formula)
    written = inplace_call(OPS[name].call.op)  # type: ignore[attr-defined]

    def call(input, other):
        if state.grad and any(isinstance(t, Tensor) and t.requires_grad for t in (input, other)):
            return in_place(name + "_", recorded, input, other)
        return written(input, other)

    call.__name__ = call.__qualname__ = name + "_"
    call.__doc__ = f"Compute `{name}` in place and return the tensor."
    public(kind="inplace", namespaces=())(call)


for _name, _aliases in {
    "eq": (), "ne": ("not_equal_",), "lt": ("less_",), "le": ("less_equal_",), "gt": ("greater_",), "ge": ("greater_equal_",),
}.items():  # fmt: skip
    _comparison(_name, getattr(operator, _name))
    for _alias in _aliases:
        OPS[_alias] = OPS[_name + "_"]
        setattr(Tensor, _alias, OPS[_alias].call)


def _logic(name: str) -> Callable[..., Tensor]:
    """Return ``<name>_``, which autograd does not see, as in PyTorch: a history stays that of what was there before, and leaves are written."""
    written = inplace_call(OPS[name].call.op)  # type: ignore[attr-defined]

    def call(input, other):
        with unrecorded():
            return written(input, other)

    def call_of_one(input):
        with unrecorded():
            return written(input)

    chosen = call if name != "logical_not" else call_of_one
    chosen.__name__ = chosen.__qualname__ = name + "_"
    chosen.__doc__ = f"Compute `{name}` in place and return the tensor."
    return public(kind="inplace", namespaces=())(whole(chosen))


for _name in ("logical_and", "logical_or", "logical_xor", "logical_not"):
    _logic(_name)

for _name in ("bitwise_not", "float_power", "renorm"):
    if _name + "_" not in OPS:
        inplace_version(_name)


def _product(name: str) -> None:
    function = OPS[name].call

    def call(input, *args, **kw):
        if len(args) > 2:
            return scalars_first(name + "_", (input, *args), kw)
        return in_place(name + "_", function, input, *args, **kw)

    call.__name__ = call.__qualname__ = name + "_"
    call.__doc__ = f"Compute `{name}` in place and return the tensor."
    public(kind="inplace", namespaces=())(call)


for _name in ("addmm", "baddbmm"):
    _product(_name)


def _scan(name: str) -> None:
    function = OPS[name].call

    def call(input, dim, *, dtype=None):
        x = tensor_argument(input, name + "_")
        kind = x.dtype if dtype is None else as_dtype(dtype)
        if kind is not x.dtype:
            raise RuntimeError(f"Bad in-place call: input tensor dtype {x.dtype.name} and output tensor dtype {kind.name} should match")
        not_for_bool(name, kind, x)
        return in_place(name + "_", lambda t, d: function(t, d, dtype=kind), x, dim)

    call.__name__ = call.__qualname__ = name + "_"
    call.__doc__ = f"Compute `{name}` in place and return the tensor."
    public(kind="inplace", namespaces=())(call)


for _name in ("cumsum", "cumprod"):
    _scan(_name)


@public(kind="inplace", namespaces=())
def addmv_(input, mat, vec, *legacy, beta=1, alpha=1):
    """Do what `addmv` does, in place. Of an expanded tensor each element is the last one's successor, row by row, as in PyTorch."""
    if legacy:
        return scalars_first("addmv_", (input, mat, vec, *legacy), legacy_options(beta=beta, alpha=alpha))
    x, function = tensor_argument(input, "addmv_"), OPS["addmv"].call
    rows = tensor_argument(mat, "addmv_", "mat")
    if not is_expanded(x._layout) or x.ndim != 1 or rows.ndim != 2 or rows.shape[0] != x.shape[0]:
        return in_place("addmv_", function, x, rows, vec, beta=beta, alpha=alpha)
    check_inplace(x)
    y = before(x)[:1]
    for row in rows.split(1):
        y = function(y, row, vec, beta=beta, alpha=alpha)
    assign_inplace(x[:1], y)
    return x


@public(kind="inplace", namespaces=())
def addr_(input, vec1, vec2, *legacy, beta=1, alpha=1):
    """Do what `addr` does, in place."""
    if legacy:
        return scalars_first("addr_", (input, vec1, vec2, *legacy), legacy_options(beta=beta, alpha=alpha))
    x, column, function = tensor_argument(input, "addr_"), tensor_argument(vec1, "addr_", "vec1"), OPS["addr"].call
    if column.ndim != 1:
        return in_place("addr_", function, x, column, vec2, beta=beta, alpha=alpha)
    # a column, as which PyTorch asks whether it is the very memory that is written
    return in_place("addr_", lambda x, c, v, **kw: function(x, c.squeeze(1), v, **kw), x, column.reshape(-1, 1), vec2, beta=beta, alpha=alpha)


@public(kind="inplace", namespaces=())
def addbmm_(input, batch1, batch2, *legacy, beta=1, alpha=1):
    """Do what `addbmm` does, in place. A tensor that has to be broadcast gets the shape of the result, as in PyTorch."""
    if legacy:
        return scalars_first("addbmm_", (input, batch1, batch2, *legacy), legacy_options(beta=beta, alpha=alpha))
    x, options = tensor_argument(input, "addbmm_"), {"beta": beta, "alpha": alpha}
    if x.ndim < 2 or 1 in x.shape:
        shape = [*tensor_argument(batch1, "addbmm_", "batch1").shape[1:2], *tensor_argument(batch2, "addbmm_", "batch2").shape[2:3]]
        if list(x.shape) != shape:
            return _fitted_sum(x, batch1, batch2, options)
    return in_place("addbmm_", OPS["addbmm"].call, x, batch1, batch2, **options)


@overridable
def _fitted_sum(x, batch1, batch2, options):
    check_inplace(x, batch1, batch2)
    y = OPS["addbmm"].call(before(x), batch1, batch2, **options)
    fit_output(x, y.shape)
    return assign_inplace(x, y)


@_fitted_sum.decomposed  # type: ignore[attr-defined]
def _sum_that_fits(x, batch1, batch2, options):
    return in_place("addbmm_", OPS["addbmm"].call, x, batch1, batch2, **options)


def _in_place_view(name: str) -> None:
    """Register ``<name>_``: the tensor itself becomes the view that ``name`` gives of it."""
    function: Callable[..., Tensor] = OPS[name].call

    def call(input, *args, **kw):
        x = tensor_argument(input, name + "_")
        check_inplace(x)
        return seen_otherwise(x, lambda before: function(before, *args, **kw))

    call.__name__ = call.__qualname__ = name + "_"
    call.__doc__ = f"Return the tensor itself after `{name}`: it is read through other sizes and strides, its memory stays."
    public(kind="inplace", namespaces=())(call)


@overridable
@whole
def seen_otherwise(x: Tensor, view: Callable[[Tensor], Tensor]) -> Tensor:
    """Let ``x`` itself become the ``view`` of what it was."""
    # a stand-in keeps the old geometry, so that what is recorded hangs on it and not on the tensor itself
    known = state.grad and x._view is not None and x._seen == x._version_[0]
    before = make(x._data, x._layout, x._version_)
    before._edge, before._rg = x._edge, x._rg
    look_as(x, before)
    y = view(before)
    x._data, x._layout = y._data, y._layout
    if state.grad:  # what is not recorded neither detaches nor freezes
        retains = x.retains_grad
        x._edge, x._rg = y._edge, y._rg
        if retains and x._edge is not None:  # what is retained stays the gradient of what the tensor was
            getattr(x._edge, "node", x._edge).__dict__["retains"] = True
    elif before._rg and before._edge is not None and y._layout.shape != before._layout.shape:
        expect(before._edge, before._layout.shape, before.dtype)  # what comes back must fit what was computed
    x._version_[0] += 1
    if known:  # its history has just been told, hooks and all: the base has no other
        x._seen = x._version_[0]
    return x


for _name in ("t", "transpose", "squeeze", "unsqueeze", "swapaxes", "swapdims", "as_strided"):
    _in_place_view(_name)


@public(kind="inplace", namespaces=())
def fill_diagonal_(input, fill_value, wrap=False):
    """Write ``fill_value`` on the main diagonal, in place; with ``wrap`` a tall matrix's diagonal begins again below.

    Derivative: 0 on the diagonal, which is overwritten; elsewhere the gradient as it comes.

    Errors: RuntimeError for fewer than 2 dims, or more than 2 of different sizes.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.fill_diagonal_.html

    >>> torch.tensor([[1, 2], [3, 4]]).fill_diagonal_(0)
    tensor([[0, 2],
            [3, 0]])
    """
    x = tensor_argument(input, "fill_diagonal_")
    if x.ndim < 2:
        raise RuntimeError(f"dimensions must larger than 1 (the tensor has shape {list(x.shape)})")
    if x.ndim > 2 and len(set(x.shape)) != 1:
        raise RuntimeError(f"all dimensions of input must be of equal length (the tensor has shape {list(x.shape)})")
    step = sum(x.stride())
    if x.ndim > 2 or not wrap or x.shape[0] <= x.shape[1]:
        diagonals = [x.as_strided((min(x.shape),), (step,))]
    else:
        rows, columns = x.shape
        diagonals = [x[start : start + columns].diagonal() for start in range(0, rows, columns + 1)]
    for diagonal in diagonals:
        diagonal.fill_(fill_value)
    return x


@public(namespaces=())
def apply_(input, callable):
    """Replace every element by ``callable(element)``, a Python function; slow. Derivative: none. Errors: RuntimeError for tensors that require grad.

    >>> torch.tensor([1, 2]).apply_(lambda x: x + 1)
    tensor([2, 3])
    """
    return _map("apply_", input, (), callable)


@public(namespaces=())
def map_(input, tensor, callable):
    """Replace every element by ``callable(element, other's element)``, a Python function; slow.

    Derivative: none. Errors: RuntimeError for tensors that require grad.

    >>> torch.tensor([1, 2]).map_(torch.tensor([10, 20]), lambda x, y: x + y)
    tensor([11, 22])
    """
    return _map("map_", input, (tensor,), callable)


@public(namespaces=())
def map2_(input, x, y, callable):
    """Replace every element by ``callable(element, x's, y's)``, a Python function; slow.

    Derivative: none. Errors: RuntimeError for tensors that require grad.

    >>> torch.tensor([1]).map2_(torch.tensor([2]), torch.tensor([3]), lambda a, b, c: a + b * c)
    tensor([7])
    """
    return _map("map2_", input, (x, y), callable)


def _map(name: str, input: Any, others: tuple[Any, ...], function: Callable[..., Any]) -> Tensor:
    x = tensor_argument(input, name)
    if x.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    for o in others:
        if o.requires_grad:
            raise RuntimeError(f"Can't call {name}() with a tensor that requires grad. Use its detach() instead.")
        if o.dtype is not x.dtype:
            raise TypeError(f"{name}(): expected torch.{tensor_type(x.dtype)} for the other tensors (got torch.{tensor_type(o.dtype)}; cast it)")
    columns = [x.reshape(-1).tolist(), *[o.expand(x.shape).reshape(-1).tolist() for o in others]]
    values = [function(*v) for v in zip(*columns, strict=True)]
    wrong = next((v for v in values if plain_number(v) is None), None)
    if wrong is not None:
        raise TypeError(f"{name}(): the function has to return numbers, not {type(wrong).__name__}")
    x.copy_(OPS["tensor"].call(values, dtype=x.dtype).reshape(x.shape))
    return x
