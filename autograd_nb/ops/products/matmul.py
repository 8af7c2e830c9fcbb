"""Products of vectors, matrices and batches of them, and linear maps, by the products of `product`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes, launch
from ...errors import shorten
from ...graph.modes import state
from ...graph.node import tensor_lines
from ...shapes import broadcast_shapes, layout_of, numel, wrap_dim, wrap_dims
from ...tensor import Tensor, edge, make
from ..core.call_path import known, unrecorded_lines
from ..core.calls import of_array
from ..core.foreign import is_foreign
from ..core.recording import fresh, need_numbers, no_complex_derivative, refuse_inference, store
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense, in_float32
from ..reduce.sums import sum as sum_
from .gemm import (
    _batch_of_one,
    _bmm,
    _mm,
    _mm_nt,
    _plan,
    _times,
    _turned_times,
    as_lying,
    known_product,
    lying,
    multiplied,
    plan_known,
    product,
)

_FILL_ROWS = launch.Kernel("products.matmul", "fill_rows")


def _same_dtype(a: Tensor, b: Tensor, name: str) -> None:
    if a.dtype is not b.dtype:
        names = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long", "int32": "int"}
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {names.get(a.dtype.name, a.dtype.name)} != "
            f"{names.get(b.dtype.name, b.dtype.name)} ({name}(); cast one with .to())"
        )


@public()
@known_product("nn", {(2, 2): _mm})
def mm(input, mat2, *, out=None):
    """Product of two matrices: y = A·B (n × k by k × m), dA = g·Bᵀ, dB = Aᵀ·g.

    Strided operands are not copied where BLAS can read them. Errors: RuntimeError when shapes or dtypes do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.mm.html

    >>> torch.mm(torch.tensor([[2.0, 1.0], [1.0, 3.0]]), torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor([[ 5.,  5.],
            [ 5., 10.]])
    """
    a, b = tensor_argument(input, "mm"), tensor_argument(mat2, "mm", "mat2")
    if a.ndim != 2:
        raise RuntimeError(f"self must be a matrix (mm() got a {a.ndim}-D input; matmul(), @ and bmm() take batches)")
    if b.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix (mm() got a {b.ndim}-D mat2; matmul(), @ and bmm() take batches)")
    _fit(a, b)
    _same_dtype(a, b, "mm")
    y = multiplied(_mm, a, b)
    return y if out is None else store(out, y, "mm")


OPS["spmm"] = OPS["mm"]  # PyTorch's name for a sparse first operand


def _fit(a: Tensor, b: Tensor) -> None:
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        )


@public()
def bmm(input, mat2, *, out=None):
    """Products of two batches of matrices: y[i] = A[i]·B[i]; bmm([[[1., 2.]]], [[[3.], [4.]]]) = [[[11.]]].

    Derivative: dA[i] = g[i]·B[i]ᵀ, dB[i] = A[i]ᵀ·g[i].
    """
    a, b = tensor_argument(input, "bmm"), tensor_argument(mat2, "bmm", "mat2")
    if a.ndim != 3 or b.ndim != 3:
        raise RuntimeError(f"batch1 and batch2 must be 3D tensors (bmm() got {a.ndim}-D and {b.ndim}-D)")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] but got: "
            f"[{b.shape[0]}, {b.shape[1]}]."
        )
    if a.dtype is not b.dtype and not (a._layout.size and b._layout.size):  # PyTorch asks only where there is something to multiply
        a = cast(a, b.dtype)
    _same_dtype(a, b, "bmm")
    y = multiplied(_bmm, a, b)
    return y if out is None else store(out, y, "bmm")


@structured(
    a=lambda g, b: g.unsqueeze(-1) * b, b=lambda g, a: _mv(a.t(), g), node="MvBackward0", linear="each",
    dtypes="half float complex integer", samples="torch.mv(x(3, 4), x(4))",
)
def _mv(a, b):
    y = product(_batch_of_one(a), _batch_of_one(b.unsqueeze(1)))
    return make(y._data, layout_of((a.shape[0],), None, y.dtype), [0, 0])


@_mv.batched
def _mv_of_batch(op, args, batch):
    (a, in_a), v = batch.of(args[0]), batch.whole(args[1])
    return mm(v, a.t()) if not in_a else _bmm(a, v.unsqueeze(2)).squeeze(2)


@structured(
    a=lambda g, b: g * b, b=lambda g, a: g * a, node="DotBackward0", linear="each",
    dtypes="half float complex integer", samples="torch.dot(x(4), x(4))",
)
def _dot(a, b):
    y = product(_batch_of_one(a.unsqueeze(0)), _batch_of_one(b.unsqueeze(1)))
    return make(y._data, layout_of((), None, y.dtype), [0, 0])


@_dot.batched
def _dot_of_batch(op, args, batch):
    (x, in_x), (y, in_y) = map(batch.of, args)
    if in_x != in_y:
        return _mv(x, y) if in_x else _mv(y, x)
    a, b = (batch.whole(x) for x in args)
    return _bmm(a.unsqueeze(1), b.unsqueeze(2)).reshape(batch.size)


@public()
@known_product("nn", {(2, 1): _mv})
def mv(input, vec, *, out=None):
    """Matrix times vector: y = A·v; mv([[1., 2.], [3., 4.]], [1., 1.]) = [3., 7.]."""
    a, v = tensor_argument(input, "mv"), tensor_argument(vec, "mv", "vec")
    if not a.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions (mv(): input must be a matrix)")
    if a.ndim != 2 or v.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {v.ndim}, {a.ndim}, {v.ndim}")
    if a.shape[1] != v.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({a.shape[0]}), mat ({a.shape[0]}x{a.shape[1]}), vec ({v.shape[0]})")
    _same_dtype(a, v, "mv")
    y = multiplied(_mv, a, v)
    return y if out is None else store(out, y, "mv")


@public()
@known_product("nn", {(1, 1): _dot})
def dot(input, tensor, *, out=None):
    """Inner product of two vectors: y = Σ aᵢbᵢ; dot([1., 2.], [3., 4.]) = tensor(11.).

    Derivative: da = g·b, db = g·a.
    """
    y = _inner(tensor_argument(input, "dot"), tensor_argument(tensor, "dot", "tensor"))
    return y if out is None else store(out, y, "dot")


def _inner(a: Tensor, b: Tensor) -> Tensor:
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {a.dtype} and {b.dtype}")
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a.shape[0]}] and src [{b.shape[0]}] to have the same number of elements, "
            f"but got {a.shape[0]} and {b.shape[0]} elements respectively"
        )
    need_numbers("dot", (a,))
    return _dot(a, b)  # type: ignore[no-any-return]


@public("__matmul__")
@known_product("nn", {(2, 2): _mm, (2, 1): _mv, (1, 1): _dot})
def matmul(input, other, *, out=None):
    """Return the product of vectors, matrices and batches of them; batch dims broadcast.

    1-D·1-D: inner product; 2-D·2-D: matrix product; a 1-D operand of a matrix is a row on the left, a column on the right.
    dA = g·Bᵀ, dB = Aᵀ·g, summed over broadcast dims. Errors: RuntimeError when shapes or dtypes do not fit.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.matmul.html

    >>> torch.matmul(torch.tensor([[2.0, 1.0], [1.0, 3.0]]), torch.tensor([1.0, 2.0]))
    tensor([4., 7.])
    """
    a, b = tensor_argument(input, "matmul"), tensor_argument(other, "matmul", "other")
    y = fresh(_matmul(a, b))
    return y if out is None else store(out, y, "matmul")


def _matmul(a: Tensor, b: Tensor, folded: bool = False) -> Tensor:
    if a.ndim == 2 and b.ndim == 2:
        _fit(a, b)
        _same_dtype(a, b, "matmul")
        return multiplied(_mm, a, b)
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    if a.ndim == 1 and b.ndim == 1:
        return _inner(a, b)
    if a.ndim == 2 and b.ndim == 1:
        return mv(a, b)
    folded = folded or (a.ndim <= 2 < b.ndim and state.grad and a.requires_grad and not b.mT.is_contiguous())
    if a.ndim == 1:
        return _matmul(a.unsqueeze(0), b, folded).squeeze(-2)
    if b.ndim == 1:
        return _matmul(a, b.unsqueeze(1)).squeeze(-1)
    _fit(a, b)
    _same_dtype(a, b, "matmul")
    if folded:
        b = b.clone()  # (PyTorch copies it, to fold its batch into the columns)
    if b.ndim == 2:  # fold the batch into the rows
        return multiplied(_mm, a.reshape(_count(a, list(range(a.ndim - 1))), a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[-1])
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    count = 1
    for n in batch:
        count *= n
    if a.ndim == 2 and a.requires_grad and not a._layout.contiguous:  # its gradient, a sum over the batch, is to lie as it does
        a = a.t().expand(*batch, *a.shape[::-1]).mT
    x = a.expand(*batch, *a.shape[-2:]).reshape(count, *a.shape[-2:])
    z = b.expand(*batch, *b.shape[-2:]).reshape(count, *b.shape[-2:])
    return multiplied(_bmm, x, z).reshape(*batch, a.shape[-2], b.shape[-1])


@known_product("nn", {(2, 2): _mm, (2, 1): _mv, (1, 1): _dot}, public=matmul)
def _operator(input, other):
    """Return `matmul`, also with a NumPy array on its right."""
    taken = of_array(other, input)
    if taken is other and not isinstance(other, Tensor) and (hasattr(other, "__rmatmul__") or not is_foreign(other)):
        return NotImplemented
    return matmul(input if taken is other else cast(input, taken.dtype), taken)


_operator.__doc__, _operator.__name__ = matmul.__doc__, "__matmul__"
_operator.__qualname__ = "Tensor.__matmul__"
Tensor.__matmul__ = _operator  # type: ignore[assignment,method-assign]


def _rmatmul(self: Tensor, other: Any) -> Tensor:
    return matmul(other, self) if isinstance(other, Tensor) else NotImplemented


Tensor.__rmatmul__ = _rmatmul  # type: ignore[assignment]


@public("ger")
def outer(input, vec2, *, out=None):
    """Outer product of two vectors: y[i, j] = aᵢ·bⱼ; outer([1., 2.], [3., 4.]) = [[3., 4.], [6., 8.]]."""
    a, b = tensor_argument(input, "outer"), tensor_argument(vec2, "outer", "vec2")
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D argument self and vec2, but got {a.ndim}-D and {b.ndim}-D")
    y = a.unsqueeze(1) * b
    return y if out is None else store(out, y, "outer", (), (a, b))


@public()
def kron(input, other, *, out=None):
    """Kronecker product: y[i·n + k, …] = a[i, …]·b[k, …], each dim of size (a's · b's); missing dims in front count as 1.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.kron.html

    >>> torch.kron(torch.tensor([1, 10]), torch.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    given = a, b = tensor_argument(input, "kron"), tensor_argument(other, "kron", "other")
    rank = max(a.ndim, b.ndim)
    sizes_a, sizes_b = ((1,) * (rank - t.ndim) + tuple(t.shape) for t in (a, b))
    if state.grad:  # what the derivative keeps is nobody's to change
        if (a._version_[0] < 0 and b.requires_grad) or (b._version_[0] < 0 and a.requires_grad):
            refuse_inference([edge(a), edge(b)])
        a, b = a.clone(), b.clone()
    spread = a.reshape([k for n in sizes_a for k in (n, 1)]) * b.reshape([k for n in sizes_b for k in (1, n)])
    y = fresh(spread.reshape([n * k for n, k in zip(sizes_a, sizes_b, strict=True)]))
    return y if out is None else store(out, y, "kron", (), given if y._layout.size else ())


@public()
def inner(input, other, *, out=None):
    """Inner products over the last dims: y[…, …] = Σ a[…, k]·b[…, k]; inner([[1., 2.]], [3., 4.]) = [11.]."""
    a, b = tensor_argument(input, "inner"), tensor_argument(other, "inner", "other")
    if a.ndim == 0 or b.ndim == 0:
        return a * b if out is None else store(out, a * b, "inner", (), (a, b))
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(a.shape)} and {list(b.shape)}"
        )
    y = tensordot(a, b, ([-1], [-1]))
    return y if out is None else store(out, y, "inner")


@public(method=False)
def tensordot(a, b, dims: int | Sequence[Sequence[int]] = 2, out=None):
    """Contract the last ``dims`` dims of a with the first of b, or the two lists of dims given; tensordot([[1., 2.]], [[3.], [4.]], 1) = [[11.]]."""
    x, z = tensor_argument(a, "tensordot", "a"), tensor_argument(b, "tensordot", "b")
    if isinstance(dims, Tensor):
        dims = (dims[0].tolist(), dims[1].tolist()) if dims.numel() > 1 else int(dims.item())
    elif not isinstance(dims, (int, tuple, list)):
        raise RuntimeError(
            f"tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, but got dims={dims}"
        )
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(x.ndim, z.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        da, db = list(range(x.ndim - dims, x.ndim)), list(range(dims))
    else:
        if len(dims) != 2:
            raise ValueError(f"tensordot(): dims must be two lists of dims, but got {len(dims)} (dims={shorten(dims)})")
        da, db = [*dims[0]], [*dims[1]]
    if len(da) != len(db):
        raise RuntimeError(f"both dimension lists should have same length, got {da} and {db}")
    _same_dtype(x, z, "tensordot")
    for n, (i, j) in enumerate(zip(da, db, strict=True)):
        i, j = da[n], db[n] = _dim_of(x, i), _dim_of(z, j)
        if x.shape[i] == 1 or z.shape[j] == 1:  # a dim of size 1 stretches: the other is summed first
            x = sum_(x, i, keepdim=True, dtype=x.dtype) if x.shape[i] != 1 else x
            z = sum_(z, j, keepdim=True, dtype=z.dtype) if z.shape[j] != 1 else z
        if x.shape[i] != z.shape[j]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {x.shape[i]} in dim {i} and second has size {z.shape[j]} in dim {j}"
            )
    da, db = [*wrap_dims(da, x.ndim)], [*wrap_dims(db, z.ndim)]  # which refuses what is named twice
    fa, fb = [d for d in range(x.ndim) if d not in da], [d for d in range(z.ndim) if d not in db]
    k = 1
    for d in da:
        k *= x.shape[d]
    left, right = x.permute((*fa, *da)), z.permute((*db, *fb))
    if x._layout.size == z._layout.size == k and (k or not (fa or fb)):
        y = _one_product(left, right)
    else:
        y = mm(left.reshape(_count(x, fa), k), right.reshape(k, _count(z, fb)))
    y = y.reshape([*[x.shape[d] for d in fa], *[z.shape[d] for d in fb]])
    return y if out is None else store(out, y, "tensordot")


def _one_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the inner product of all elements. What does not lie in order is not copied, so that the derivative keeps the operands, as in PyTorch."""
    if a.dtype is not b.dtype:
        _same_dtype(a, b, "tensordot")
    if a._layout.contiguous and b._layout.contiguous:
        return dot(a.reshape(-1), b.reshape(-1))
    return sum_(a.squeeze() * b.squeeze(), dtype=a.dtype)


def _dim_of(x: Tensor, d: int) -> int:
    if not x.ndim:
        raise IndexError(f"Dimension specified as {d} but tensor has no dimensions (tensordot)")
    return wrap_dim(d, x.ndim)


def _count(x: Tensor, dims: list[int]) -> int:
    n = 1
    for d in dims:
        n *= x.shape[d]
    return n


# ---------------------------------------------------------------------------------------------------- linear


@structured(
    x=lambda g, weight: _times(g, weight),
    weight=lambda g, x: _turned_times(g, x),
    bias=lambda g: sum_(g, 0),
    node="AddmmBackward0",
    linear="no",
    dtypes="half float complex integer", samples="F.linear(x(2, 3, 4), x(5, 4), x(5))",
)
def _linear(x, weight, bias):
    plan = _plan(x._layout, weight._layout, "nt")
    d = x.dtype
    if plan is not None and x.shape[1]:
        data = launch.empty(plan.size, plan.carrier)
        _FILL_ROWS(d, plan.rows, dense(bias), data)
        return plan(x, weight, make(data, plan.layout, [0, 0]))
    m, n = x.shape[0], weight.shape[0]
    if d.is_half:
        return in_float32(_linear.forward, x, weight, bias)
    layout = layout_of((1, m, n), None, d)
    y = make(launch.empty(layout.size, d.carrier), layout, [0, 0])
    _FILL_ROWS.rows(d, (0, n), m * n, m, dense(bias), y._data)
    if x.shape[1]:
        product(_batch_of_one(x), _batch_of_one(weight.t()), y)
    return make(y._data, layout_of((m, n), None, d), [0, 0])


def _weight_by_columns(g, x):
    return _turned_times(x, g).t()


def _rows_by_columns(g, weight):
    return _turned_times(weight, g.t()).t()


# of rows that lie by columns, or a weight that does not lie by rows, so does the gradient (see `gemm.lying`)
@structured(
    x=_rows_by_columns, weight=lambda g, x: _turned_times(g, x), bias=lambda g: sum_(g, 0), node="AddmmBackward0", linear="no",
    dtypes="half float complex integer", samples="F.linear(x(4, 3).t(), x(5, 4), x(5))",
)  # fmt: skip
def _linear_of_columns(x, weight, bias):
    return _linear.forward(x, weight, bias)


@structured(
    x=lambda g, weight: _times(g, weight), weight=_weight_by_columns, bias=lambda g: sum_(g, 0), node="AddmmBackward0", linear="no",
    dtypes="half float complex integer", samples="F.linear(x(3, 4), x(4, 5).t(), x(5))",
)  # fmt: skip
def _linear_by_gaps(x, weight, bias):
    return _linear.forward(x, weight, bias)


@structured(
    x=_rows_by_columns, weight=_weight_by_columns, bias=lambda g: sum_(g, 0), node="AddmmBackward0", linear="no",
    dtypes="half float complex integer", samples="F.linear(x(4, 3).t(), x(4, 5).t(), x(5))",
)  # fmt: skip
def _linear_of_columns_by_gaps(x, weight, bias):
    return _linear.forward(x, weight, bias)


def _linear_of_batch(op, args, batch):
    (x, in_x), (w, in_w), (b, in_b) = (batch.of(a) for a in args)
    if in_x and not in_w and not in_b:  # the batch is more rows
        return op(x.reshape(batch.size * x.shape[1], x.shape[2]), w, b).reshape(batch.size, x.shape[1], w.shape[0])
    x, w, b = (batch.whole(a) for a in args)
    return _bmm(x, w.transpose(1, 2)) + b.unsqueeze(1)


lying[_linear] = {(True, True): _linear_of_columns, (False, False): _linear_by_gaps, (True, False): _linear_of_columns_by_gaps}
for _op in (_linear, *lying[_linear].values()):
    _op.node.shown_edges = ((2, False), (0, False), (1, True))
    _op.batched(_linear_of_batch)


def _plan_linear(checked: bool, input: Any, weight: Any, bias: Any) -> Any:
    plan = plan_known(checked, input._layout, weight._layout, "nt")
    if plan is None:
        return None
    if plan.biased is None:
        plan.op, plan.biased = [as_lying(op, input._layout, weight._layout) for op in (_mm_nt, _linear)]
    if bias is None:
        return plan
    x, layout = input._layout, bias._layout
    if not layout.contiguous or layout.ndim != 1 or layout.dtype is not x.dtype or layout.size != weight._layout.sizes[0] or not x.sizes[1]:
        return None
    if plan.fill is None:
        plan.fill = _FILL_ROWS.entry(layout.dtype)
    return None if plan.fill is None else plan


_RUN_LINEAR = [
    "data = _empty(plan.size, plan.carrier)",
    "if bias is None:",
    "    plan.entry(*plan.numbers, False, input._data, weight._data, data)",
    "else:",
    "    plan.fill(plan.rows, bias._data, data)",
    "    plan.entry(*plan.numbers, True, input._data, weight._data, data)",
    *tensor_lines("plan.layout"),
    *unrecorded_lines(),
    "if bias is None:",
    "    plan.op.record((input, weight), t, 2)",
    "else:",
    "    plan.biased.record((input, weight, bias), t, 2)",
    "return t",
]


@public(method=False, namespaces=("nn.functional",), name="nn.functional.linear")
@known(
    "input._layout, weight._layout, bias if bias is None else bias._layout",
    _plan_linear, _RUN_LINEAR,
)
def linear(input, weight, bias=None, *, out=None):
    """y = x·Wᵀ + b over the last dim: (…, in) → (…, out) with W (out × in); dx = g·W, dW = gᵀ·x, db = Σ g.

    Errors: RuntimeError when shapes or dtypes do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.linear.html

    >>> torch.nn.functional.linear(torch.tensor([1.0, 2.0]), torch.tensor([[2.0, 1.0], [1.0, 3.0]]), torch.tensor([10.0, 0.0]))
    tensor([14.,  7.])
    """
    return _long_linear(input, weight, bias, out)


def _long_linear(input: Any, weight: Any, bias: Any, out: Any) -> Tensor:
    if out is not None:
        return store(out, linear(input, weight, bias), "linear")
    x, w = tensor_argument(input, "linear"), tensor_argument(weight, "linear", "weight")
    if bias is not None:
        tensor_argument(bias, "linear", "bias")
    if w.ndim == 1:
        if bias is not None and x.ndim == 2:
            raise RuntimeError(f"mat2 must be a matrix, got 1-D tensor (linear(): a bias needs a weight of 2 dims, not {list(w.shape)})")
        y = matmul(x, w)
        return y if bias is None else y + bias.expand(y.shape)
    if w.ndim != 2 or x.ndim == 0:
        raise RuntimeError(
            f"linear(): expected a matrix as weight and at least 1-D input, got {list(w.shape)} and {list(x.shape)}"
        )
    if x.shape[-1] != w.shape[1]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_rows(x.shape)}x{x.shape[-1]} and {w.shape[1]}x{w.shape[0]})")
    _same_dtype(x, w, "linear")
    flat = x if x.ndim == 2 else x.reshape(_rows(x.shape), x.shape[-1])
    shape, row = (*x.shape[:-1], w.shape[0]), bias is not None and bias.ndim > 0 and _rows(bias.shape) == 1
    if row and bias.shape == (w.shape[0],):
        _same_dtype(x, bias, "linear")
        if x.dtype is dtypes.bool_ and not x.shape[-1] and w.shape[0] and flat.shape[0]:  # PyTorch scales the bias then
            raise RuntimeError("result type Long can't be cast to the desired output type Bool (linear(): of no features)")
        y = multiplied(_linear, flat, w, bias)
    else:
        y = multiplied(_mm_nt, flat, w)
        if bias is not None:
            y = y if row or x.ndim < 3 else y.reshape(shape)
            y = y + bias.expand(y.shape)
    if y.shape != shape:
        y = y.reshape(shape)
    # PyTorch's is a view of the rows only where it adds to a product, and need not copy the operand for it
    return y if row and (x.ndim == 1 or x._layout.contiguous) else fresh(y)


def _rows(shape: Sequence[int]) -> int:
    return numel(shape[:-1])


def _weight_rule(g, x, z):
    pairs = (x.unsqueeze(2) * z.unsqueeze(1)).reshape(x.shape[0], x.shape[1] * z.shape[1])
    return (g.mT @ pairs).reshape(g.shape[1], x.shape[1], z.shape[1])


@structured(
    x=lambda g, z, w: sum_(tensordot(z, w, ([1], [2])) * g.unsqueeze(2), 1), z=lambda g, x, w: sum_(tensordot(x, w, ([1], [1])) * g.unsqueeze(2), 1),
    w=_weight_rule, linear="no", batch="samples", dtypes="half float complex integer", samples="F.bilinear(x(4, 3), x(4, 2), x(5, 3, 2))",
)  # fmt: skip
def _trilinear(x, z, w):
    """y[n, o] = x[n]ᵀ·w[o]·z[n]."""
    return sum_(tensordot(x, w, ([1], [1])) * z.unsqueeze(1), -1, dtype=x.dtype)


@public(method=False, namespaces=("torch", "nn.functional"))
def bilinear(input1, input2, weight, bias=None):
    """y[…, o] = x₁ᵀ·W[o]·x₂ + b[o] over the last dims; bilinear([1., 2.], [3.], [[[1.], [2.]]]) = [15.].

    Derivative: dx₁ = Σₒ gₒ·W[o]·x₂, dx₂ = Σₒ gₒ·W[o]ᵀ·x₁, dW[o] = Σ gₒ·x₁·x₂ᵀ and db = Σ g over the batch.
    """
    x, z, w = (tensor_argument(t, "bilinear", n) for t, n in ((input1, "input1"), (input2, "input2"), (weight, "weight")))
    if bias is not None:
        tensor_argument(bias, "bilinear", "bias")
    if not x.dtype is z.dtype is w.dtype or (bias is not None and bias.dtype is not x.dtype):
        raise RuntimeError(
            f"All tensors must have the same dtype, got input1: {x.dtype.name}, input2: {z.dtype.name}, weight: {w.dtype.name}"
            + (f", bias: {bias.dtype.name}" if bias is not None else "")
        )
    if x.ndim != z.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {x.ndim} and {z.ndim}")
    if x.shape[:-1] != z.shape[:-1]:
        raise RuntimeError(f"bilinear(): input batch dimensions do not match: got {list(x.shape)} and {list(z.shape)}")
    for k, (name, t) in enumerate((("input1", x), ("input2", z)), 1):
        if not t.ndim:
            raise IndexError(f"Dimension specified as -1 but tensor has no dimensions (bilinear(): {name})")
        if w.ndim <= k:
            raise IndexError(f"Dimension out of range: bilinear(): weight must have 3 dims (its shape is {list(w.shape)})")
        if t.shape[-1] != w.shape[k]:
            raise RuntimeError(f"bilinear(): {name} size does not match weight size: got {t.shape[-1]} but expected {w.shape[k]}")
    if w.ndim != 3:
        raise RuntimeError(f"bilinear(): weight must have 3 dims (its shape is {list(w.shape)})")
    if bias is not None and not bias.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions (bilinear(): bias must be a vector)")
    if bias is not None and bias.shape[0] != w.shape[0]:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {w.shape[0]}")
    no_complex_derivative("_trilinear", x, z, w)
    y = multiplied(_trilinear, x.reshape(-1, x.shape[-1]), z.reshape(-1, z.shape[-1]), w).reshape(*x.shape[:-1], w.shape[0])
    return y if bias is None else y + bias
