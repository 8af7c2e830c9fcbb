"""What public functions do with sparse tensors: one handler a function, by its name. What is not here is refused with the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..graph.modes import no_grad, state
from ..ops.core.recording import can_cast, scalar_type
from ..ops.core.registry import OPS
from ..shapes import wrap_dims
from ..tensor import Tensor
from .create import made_of, sparse_mask, to_sparse, zeros
from .tensor import HANDLERS, SparseTensor, become, grouped, index_of, keys_of, places, refused, segment_sum, sparse_dims
from .values import (
    add_sparse,
    as_coo,
    as_csr,
    bare,
    coalesced,
    copied,
    like,
    parts,
    read_at,
    to_dense,
    values_of,
    with_values,
)  # fmt: skip


def handles(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate what stands for public functions of these names where an argument is sparse."""

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            HANDLERS[name] = function
        return function

    return keep


def is_sparse(x: Any) -> bool:
    return x.__class__ is SparseTensor


def _need_coo(s: Any, name: str) -> None:
    if not is_sparse(s) or s._kind != "coo":
        kind = "Strided" if not is_sparse(s) else "SparseCsr"
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {kind}")


# ------------------------------------------------------------------------------------------------------- what it is


@handles("coalesce")
def coalesce(s: Any) -> Any:
    _need_coo(s, "coalesce")
    return coalesced(s)


@handles("is_coalesced")
def is_coalesced(s: Any) -> bool:
    _need_coo(s, "is_coalesced")
    return bool(s._coalesced)


@handles("indices")
def indices(s: Any) -> Tensor:
    _need_coo(s, "indices")
    if not s._coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return s._index[0].detach()  # type: ignore[no-any-return]


@handles("values")
def values(s: Any) -> Tensor:
    if not is_sparse(s):
        raise RuntimeError("values expected sparse tensor layout but got Strided")
    if s._kind == "coo" and not s._coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return values_of(s)


@handles("_indices")
def _indices(s: Any) -> Tensor:
    _need_coo(s, "_indices")
    return s._index[0].detach()  # type: ignore[no-any-return]


@handles("_values")
def _values(s: Any) -> Tensor:
    _need_coo(s, "_values")
    return s._val.detach()  # type: ignore[no-any-return]


@handles("_nnz")
def _nnz(s: Any) -> int:
    return int(s._val.shape[0])


@handles("crow_indices")
def crow_indices(s: Any) -> Tensor:
    if s._kind != "csr":
        raise RuntimeError("crow_indices expected sparse row compressed tensor layout but got Sparse")
    return s._index[0].detach()  # type: ignore[no-any-return]


@handles("col_indices")
def col_indices(s: Any) -> Tensor:
    if s._kind != "csr":
        raise RuntimeError("col_indices expected sparse row compressed tensor layout but got Sparse")
    return s._index[1].detach()  # type: ignore[no-any-return]


HANDLERS["sparse_dim"] = sparse_dims
HANDLERS["dense_dim"] = lambda s: s.ndim - sparse_dims(s)
HANDLERS["to_dense"] = lambda s, dtype=None, *, masked_grad=None: to_dense(s) if dtype is None else to_dense(s).to(dtype)
HANDLERS["to_sparse"] = to_sparse
HANDLERS["to_sparse_coo"] = as_coo
HANDLERS["to_sparse_csr"] = lambda s, dense_dim=None: as_csr(s)
HANDLERS["sparse_mask"] = sparse_mask
HANDLERS["detach"] = lambda s: bare(s)
HANDLERS["clone"] = lambda s, memory_format=None: copied(s)
HANDLERS["numpy"] = lambda s, force=False: _no_numpy()


def _no_numpy() -> Any:
    raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")


@handles("detach_")
def detach_(s: SparseTensor) -> SparseTensor:
    s._edge, s._rg = None, False
    return s


@handles("to")
def to(s: SparseTensor, *args: Any, **kwargs: Any) -> Any:
    found = values_of(parts(s)).to(*args, **kwargs)
    return s if found.dtype is s.dtype and not kwargs.get("copy") else like(parts(s), found)


def _cast(name: str) -> Callable[..., Any]:
    return lambda s, *args, **kwargs: to(s, getattr(dtypes, name))


for _name, _to in {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "int": "int32", "long": "int64", "short": "int16",
    "chalf": "complex32", "cfloat": "complex64", "cdouble": "complex128",
}.items():  # fmt: skip
    HANDLERS[_name] = _cast(_to)
for _name in ("cpu", "contiguous", "pin_memory", "share_memory_"):
    HANDLERS[_name] = lambda s, *args, **kwargs: s


@handles("type")
def type_(s: SparseTensor, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    if dtype is None:
        return f"torch.sparse.{s._val.type().rpartition('.')[2]}"
    return to(s, dtype) if not isinstance(dtype, str) else like(parts(s), values_of(parts(s)).type(dtype.replace("sparse.", "")))


# ------------------------------------------------------------------------------------------------------- pointwise

#: functions of one number that are 0 at 0
_ODD = (
    "abs absolute neg negative sqrt square sin sinh asin arcsin asinh arcsinh tan tanh atan arctan atanh arctanh expm1 log1p ceil floor round trunc frac "
    "sign sgn relu erf erfinv rad2deg deg2rad positive conj isnan isinf nan_to_num conj_physical"
)


def _pointwise(name: str) -> Callable[..., Any]:
    def apply(s: SparseTensor, *args: Any, **kwargs: Any) -> Any:
        s = coalesced(s)
        return like(s, getattr(Tensor, "conj_physical" if name == "conj" else name)(values_of(s), *args, **kwargs))

    return apply


def _holds(name: str, computed: dtypes.dtype, kept: dtypes.dtype) -> None:
    """Refuse to change a tensor in place to numbers of a dtype that its own cannot hold."""
    if not can_cast(computed, kept):
        kinds = f"Can't convert result type {scalar_type(computed)} to output {scalar_type(kept)} in {name} operation"
        raise RuntimeError(f"{name}_(): {kinds}: result type {scalar_type(computed)} can't be cast to it (cast the tensor, or leave out the underscore)")


def in_place(name: str) -> Callable[..., Any]:
    def change(s: Any, *args: Any, **kwargs: Any) -> Any:
        found = HANDLERS[name](s, *args, **kwargs)
        if not is_sparse(s):
            raise refused(name + "_", "a dense tensor cannot become sparse in place")
        if found.dtype is not s.dtype:
            _holds(name, found.dtype, s.dtype)
            found = like(found, values_of(found).to(s.dtype))
        return _overwritten(s, found)

    return change


def _overwritten(s: Any, found: Any) -> Any:
    """Return a sparse tensor that has become another, with its history where ops are recorded. RuntimeError for leaves that require grad."""
    if state.grad and s.requires_grad and s.is_leaf:
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    become(s, found)
    s._version_[0] += 1
    if state.grad:
        s._edge, s._rg = found._edge, found._rg
    return s


for _name in _ODD.split():
    HANDLERS[_name] = _pointwise(_name)


@handles("pow", "__pow__")
def pow_(s: Any, exponent: Any) -> Any:
    if is_sparse(exponent) or isinstance(exponent, Tensor) or not exponent > 0:
        raise refused("pow", "the exponent must be a number above 0")
    s = coalesced(s)
    return like(s, values_of(s) ** exponent)


def _number(x: Any) -> bool:
    return not isinstance(x, Tensor) or (not is_sparse(x) and not x.ndim)


@handles("mul", "multiply")
def mul(a: Any, b: Any, *, out: Any = None) -> Any:
    if not is_sparse(a):
        a, b = b, a
    if _number(b):
        return like(parts(a), values_of(parts(a)) * b)
    a = coalesced(a)
    if is_sparse(b):
        if a.shape != b.shape:
            raise RuntimeError(f"mul(sparse, sparse): expected equal sizes, but got {list(a.shape)} and {list(b.shape)}")
        if sparse_dims(a) != sparse_dims(b):
            if a._val.shape[0] and b._val.shape[0]:
                raise RuntimeError(f"mul: expects sparse inputs with equal dimensionality, number of sparse dims {sparse_dims(a)} and {sparse_dims(b)}")
            return zeros_like(a, dtype=dtypes.promote_types(a.dtype, b.dtype))
        other = coalesced(as_coo(b))
        first = as_coo(a)
        size = first.shape[: sparse_dims(first)]
        keep = OPS["isin"].call(keys_of(first._index[0], size), keys_of(other._index[0], size)).nonzero().squeeze(1)
        plain = bare(with_values("coo", first.shape, (first._index[0].index_select(1, keep),), first._val.index_select(0, keep)))
        product = like(plain, values_of(first).index_select(0, keep) * read_at(other, plain))
        return product if a._kind == "coo" else as_csr(product)
    if b.ndim > a.ndim:
        raise refused("mul", f"the dense operand has {b.ndim} dims, the sparse one {a.ndim}")
    return like(a, values_of(a) * read_at(b.expand(tuple(a.shape)), bare(a)))


@handles("div", "divide", "true_divide", "__truediv__")
def div(a: Any, b: Any, *, rounding_mode: Any = None, out: Any = None) -> Any:
    if not is_sparse(a) or not _number(b):
        raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor (div(): make the operands dense by .to_dense())")
    a = coalesced(a)
    return like(a, OPS["div"].call(values_of(a), b, rounding_mode=rounding_mode))


@handles("floor_divide", "__floordiv__")
def floor_divide(a: Any, b: Any, *, out: Any = None) -> Any:
    if not is_sparse(a) or not _number(b):
        got = "a sparse divisor" if is_sparse(b) and not b.ndim else f"shape {list(b.shape)} for divisor" if isinstance(b, Tensor) else type(b).__name__
        raise RuntimeError(f"Sparse floor division requires a scalar or zero-dim dense tensor divisor (got {got}): make the operands dense by .to_dense()")
    return div(a, b, rounding_mode="floor")


@handles("add")
def add(a: Any, b: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    if is_sparse(a) and is_sparse(b):
        return add_sparse(a, b, alpha)
    if is_sparse(b) and isinstance(a, Tensor):
        if a.shape != b.shape:
            sizes = f"self has size {list(a.shape)} while other has size {list(b.shape)}"
            raise RuntimeError(f"add: expected 'self' and 'other' to have same size, but {sizes} (a sparse tensor is not broadcast)")
        return OPS["add"].call(a, to_dense(b), alpha=alpha)
    if is_sparse(a) and a._kind == "csr" and isinstance(b, Tensor):
        return to_dense(a) + b * alpha
    raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead. (or make the operand dense by .to_dense())")


@handles("sub", "subtract")
def sub(a: Any, b: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    return add(a, b, alpha=-alpha)


@handles("__radd__")
def radd(a: Any, b: Any) -> Any:
    return add(b, a)


@handles("__rsub__", "rsub")
def rsub(a: Any, b: Any) -> Any:
    return add(b, a, alpha=-1)


@handles("add_", "sub_", "__iadd__", "__isub__")
def add_(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    if is_sparse(a):
        return in_place("add")(a, b, alpha=alpha)
    _holds("add", dtypes.promote_types(a.dtype, b.dtype), a.dtype)
    return a.index_put_(tuple(places(b).unbind(0)), values_of(b).to(a.dtype) * alpha, accumulate=True)


@handles("mul_", "__imul__")
def mul_(a: Any, b: Any) -> Any:
    return in_place("mul")(a, b) if is_sparse(a) else a.mul_(to_dense(b))


HANDLERS["sub_"] = HANDLERS["__isub__"] = lambda a, b, *, alpha=1: add_(a, b, alpha=-alpha)
for _name in ("div", "floor_divide", "neg", "abs", "pow", "sqrt", "sin", "tanh", "relu", "square", "floor", "ceil", "round", "trunc", "sign", "log1p", "expm1"):
    HANDLERS[_name + "_"] = in_place(_name)
HANDLERS["__itruediv__"], HANDLERS["__ifloordiv__"] = HANDLERS["div_"], HANDLERS["floor_divide_"]


@handles("zero_")
def zero_(s: SparseTensor) -> SparseTensor:
    with no_grad():
        become(s, zeros_like(s))
    return s


@handles("copy_")
def copy_(s: Any, source: Any, non_blocking: bool = False) -> Any:
    if is_sparse(s) != is_sparse(source):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Found self type and src type of two layouts; use .to_dense()")
    if s.shape != source.shape:
        raise RuntimeError(f"copy_(): sizes {list(s.shape)} and {list(source.shape)} of sparse tensors differ")
    source = coalesced(source) if state.grad and source.requires_grad else bare(source)  # (the gradient of a place counts once)
    return _overwritten(s, like(source, values_of(source).to(s.dtype).clone()))


@handles("new")
def new(s: Any, *args: Any, dtype: Any = None, device: Any = None) -> Any:
    return made_of(args, dtype or s.dtype, device)


@handles("zeros_like")
def zeros_like(s: SparseTensor, *, layout: Any = None, dtype: Any = None, requires_grad: bool = False, **options: Any) -> Any:
    dims = sparse_dims(s) if s._kind == "coo" else None
    return new_zeros(s, s.shape, layout=layout or s.layout, dtype=dtype, requires_grad=requires_grad, dims=dims)


@handles("new_zeros", "new_empty")
def new_zeros(s: Any, *size: Any, layout: Any = None, dtype: Any = None, requires_grad: bool = False, dims: int | None = None, **options: Any) -> Any:
    """Return a tensor of zeros: sparse by coordinates, or of the ``layout`` that is asked for."""
    shape = tuple(options.pop("size", size[0] if len(size) == 1 and not isinstance(size[0], int) else size))
    kind = str(layout).removeprefix("torch.")
    if kind == "strided":
        return OPS["zeros"].call(shape, dtype=dtype or s.dtype, requires_grad=requires_grad)
    return zeros(shape, dtype or s.dtype, layout or s.layout, requires_grad, dims)


HANDLERS["empty_like"] = zeros_like


@handles("zeros", "empty")
def written_zeros(*size: Any, out: Any, dtype: Any = None, requires_grad: bool = False, **options: Any) -> Any:
    """Return ``out``, which has no values any more, and all dims of a new shape with coordinates."""
    shape = tuple(options.pop("size", size[0] if len(size) == 1 and not isinstance(size[0], int) else size))
    if dtype is not None and dtype is not out.dtype:
        raise RuntimeError(f"dtype {dtype} does not match dtype of out parameter ({out.dtype})")
    return _overwritten(out, zeros(shape, out.dtype, out.layout)).requires_grad_(requires_grad)


@handles("is_nonzero", "__bool__")
def is_nonzero(s: Any) -> bool:
    if s.numel() != 1:
        count = "no values" if not s.numel() else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {count} is ambiguous")
    return bool(s._val.sum().item())


# ------------------------------------------------------------------------------------------------------ reductions


def _dims(dim: Any, ndim: int) -> list[int]:
    return sorted(wrap_dims(dim, ndim))


def sum_(s: Any, dim: Any = None, dtype: Any = None) -> Any:
    """Return the sum over all elements (a number), or over ``dim``: sparse while a sparse dim is left, else dense."""
    if dtype is not None:
        s = to(s, dtype)
    x = parts(as_coo(s))
    v = values_of(x)
    if dim is None:
        return v.sum()
    n, dims = sparse_dims(s), _dims(dim, s.ndim)
    within = [1 + d - n for d in dims if d >= n]
    v = v.sum(within) if within else v
    kept = [d for d in range(n) if d not in dims]
    if not kept:
        return v.sum(0)
    shape = [m for d, m in enumerate(s.shape) if d not in dims]
    if len(kept) == n:
        return with_values("coo", shape, x._index, v, x._coalesced)
    size = [s.shape[d] for d in kept]
    keys, ids = grouped(keys_of(x._index[0].index_select(0, OPS["tensor"].call(kept, dtype=dtypes.int64)), size))
    return with_values("coo", shape, (index_of(keys, size),), segment_sum(v, ids, keys.shape[0]))


@handles("sum")
def sum_public(s: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    y = sum_(s, dim, dtype)
    if keepdim and dim is not None:
        for d in _dims(dim, s.ndim):
            y = HANDLERS["unsqueeze"](y, d) if is_sparse(y) else y.unsqueeze(d)
    return y


@handles("mean")
def mean(s: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    count = s.numel() if dim is None else s.numel() // max(1, sum_public(zeros_like(s), dim).numel())
    return sum_public(s, dim, keepdim, dtype=dtype) / count


@handles("norm")
def norm(s: SparseTensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None, out: Any = None) -> Any:
    if dim is not None and len(_dims(dim, s.ndim)) != s.ndim:
        raise refused("norm", "only over all dims")
    return OPS["norm"].call(values_of(coalesced(s)), 2 if p == "fro" else p)


@handles("any")
def any_(s: SparseTensor) -> Any:
    return coalesced(s)._val.any()


@handles("equal")
def equal(a: Any, b: Any) -> bool:
    if not (is_sparse(a) and is_sparse(b)):
        raise refused("equal", "both operands must be sparse")
    x, y = coalesced(as_coo(a)), coalesced(as_coo(b))
    return bool(x.shape == y.shape and OPS["equal"].call(x._index[0], y._index[0]) and OPS["equal"].call(x._val, y._val))
