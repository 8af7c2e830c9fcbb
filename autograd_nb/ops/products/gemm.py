"""Products of two tensors as one batched product of matrices: its kernels, plans and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...codegen import threads
from ...shapes import Layout, layout_of
from ...tensor import Tensor, make
from ..core.call_path import known, planned, recorded_lines, result_lines
from ..core.recording import scalar_type
from ..core.registry import parameters_of
from ..core.structured import Structured, structured
from ..creation.cast import cast, clone
from ..reduce.sums import sum as sum_

_MATMUL = launch.Kernel("products.matmul", "matmul")
_TILED = launch.Kernel("products.tiled", "matmul")
_LARGE_TILED = launch.Kernel("products.tiled", "matmul_large")
_FEW_TILED = launch.Kernel("products.tiled", "matmul_few")
_VECTOR = launch.Kernel("products.tiled", "vector")
_TILES = (_TILED, _LARGE_TILED, _FEW_TILED)  #: whose elements are the same in whatever block they are computed
LAID_OUT = 1 << 25  #: products of two elements from which on rows of the first matrix are laid side by side; in smaller ones that gains nothing
FEW, TERMS = 24, 32  #: rows up to which columns of b that lie as they are multiplied are not turned, where there are so many terms for each row


def _readable(layout: Layout) -> bool:
    """Return whether BLAS can read the last two dims as they are: one stride of 1, the other no overlap."""
    (m, n), (s0, s1) = layout.sizes[-2:], layout.strides[-2:]
    return ((s1 == 1 or n == 1) and (s0 >= n or m == 1)) or ((s0 == 1 or m == 1) and (s1 >= m or n == 1))


def _matrix(x: Tensor) -> Tensor:
    """Return ``x`` if BLAS can read it, else a dense copy."""
    return x if _readable(x._layout) else clone(x)


def _strides(layout: Layout) -> tuple[int, int]:
    """Return row and column strides, with those of dims of size 1 made to fit."""
    (m, n), (s0, s1) = layout.sizes[-2:], layout.strides[-2:]
    if n == 1 and (s0 != 1 or m == 1):
        s1 = 1
    if m == 1 and s1 == 1:
        s0 = max(s0, n)
    elif m == 1:
        s0 = 1
    return s0, s1


def _kernel(d: dtypes.dtype, m: int, n: int, k: int, a_col: int, b_row: int) -> launch.Kernel:
    """Return the kernel that multiplies m × k and k × n elements; all take the same arguments. ``a_col``, ``b_row``: from a term to the next one."""
    if k == 0 or d.category < 2:
        return _MATMUL
    if m == 1 or n == 1:
        return _VECTOR
    if d.category != 2:
        return _MATMUL
    if a_col == b_row == 1 and m <= FEW and TERMS * m <= k:
        return _FEW_TILED
    return _LARGE_TILED if m * n * k >= LAID_OUT and n > 32 else _TILED


def _work(m: int, n: int, k: int) -> int:
    """Return what a product of floats costs, see `threads.WORTH`."""
    return m * n * k // 4 + threads.COPIED * (m * n + m * k + k * n)


def _tile_pieces(m: int, n: int, k: int) -> list[tuple[int, int, int, int]]:
    """Return (first row, end, first column, end) of what threads compute of a product of `_TILES`; one where it is too little to share."""
    if threads.alone(_work(m, n, k)):
        return [(0, m, 0, n)]
    count = threads.settings.threads
    if m >= n:
        return [(r, e, 0, n) for r, e in threads.cut(m, count, 16)]
    return [(0, m, s, e) for s, e in threads.cut(n, count, 32)]


def _vector_pieces(m: int, n: int, k: int, a_col: int) -> list[tuple[int, int, int, int]]:
    """Return the same of a matrix times a column, or a row times a matrix: rows of whole groups of those that are read together, or as many
    numbers as loops over the result take at once."""
    size, step = (m, 16) if n == 1 and a_col == 1 else (max(m, n), threads.ALIGN)
    if threads.alone(_work(m, n, k)) or size % step == 1:  # (one number alone would be computed in another way)
        return []
    pieces = threads.cut(size, threads.settings.threads, step)
    return [(i, j, 0, 1) if n == 1 else (0, 1, i, j) for i, j in pieces]


def _summed(d: dtypes.dtype, m: int, n: int, k: int) -> bool:
    """Return whether a product is the sum of products of parts, see `_of_sums`."""
    return max(m, n) < BLOCK and k >= 2 * LONG and d.category >= 2 and m * n * k >= LARGE


def product(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    """Return a (B × m × k) times b (B × k × n), batches of stride 0 allowed; added to ``out`` when given (dense, no history)."""
    d = a.dtype
    if d.is_half:
        y = cast(product(cast(a, dtypes.float32), cast(b, dtypes.float32)), d)
        return y
    a, b = _matrix(a), _matrix(b)
    batch, m, k = a.shape
    n = b.shape[2]
    accumulate = out is not None
    if out is None:
        layout = layout_of((batch, m, n), None, d)
        out = make(launch.empty(layout.size, d.carrier), layout, [0, 0])
    sa, sb = a._layout.strides[0], b._layout.strides[0]
    a0, a1 = _strides(a._layout)
    b0, b1 = _strides(b._layout)
    kernel = _kernel(d, m, n, k, a1, b0)
    left, right, result = a._data, b._data, out._data
    rows, columns = _blocks(m, n)
    args = (batch, m, n, k, sa, a0, a1, sb, b0, b1, m * n, n, rows, columns, accumulate, left, right, result)
    vector = batch == 1 and kernel is _VECTOR and bool(_vector_pieces(m, n, k, a1))
    if batch * m * n * k < LARGE and not vector and (kernel not in _TILES or threads.alone(batch * _work(m, n, k))):
        kernel(d, *args)
        return out
    if batch == 1 and _summed(d, m, n, k) and not accumulate:
        return _of_sums(kernel, a, b, m, n, k)

    def part(args: tuple[Any, ...], i: int, batch: int, r: int, m: int, s: int, n: int) -> tuple[Any, ...]:
        left, right, result = args[-3:]
        moved = (left[i * sa + r * a0 :], right[i * sb + s * b1 :], result[i * args[10] + r * args[11] + s :])
        return (batch, m, n, *args[3:-3], *moved)

    def parts(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        work = batch * _work(m, n, k)
        even = batch % threads.settings.threads == 0
        if vector:
            places = _vector_pieces(m, n, k, a1)
        elif batch >= 8 or (even if kernel in _TILES else rows == m and columns == n):
            return [part(args, i, end - i, 0, m, 0, n) for i, end in threads.pieces(batch, work)]
        elif kernel in _TILES:
            places = _tile_pieces(m, n, batch * k)
        else:
            places = [(r, min(r + rows, m), s, min(s + columns, n)) for r in range(0, m, rows) for s in range(0, n, columns)]
        return [part(args, i, 1, r, e - r, s, f - s) for i in range(batch) for r, e, s, f in places]

    kernel.split(d, args, parts)
    return out


class ProductPlan:
    """The way in which two matrices are multiplied, in one launch or one that threads share; for `known` calls the entry points of that kernel,
    and of the one that writes a row into each of the product's before.

    ``pieces``: (numbers of its launch, the first elements of a, b and the product) of what each thread does.
    """

    __slots__ = ("biased", "carrier", "entry", "fill", "kernel", "layout", "numbers", "op", "pieces", "rows", "size")
    numbers: tuple[int, ...]
    kernel: launch.Kernel
    layout: Layout
    carrier: np.dtype[Any]
    rows: int
    size: int

    def __init__(self, la: Layout, lb: Layout):
        """Plan for layouts that fit and that BLAS could read, turned where the product turns them."""
        self.op: Any = None  # that is recorded, of a `known` call
        self.biased: Any = None  # of one that adds a row
        (m, k), n, d = la.sizes, lb.sizes[1], la.dtype
        a0, a1 = _strides(la)
        b0, b1 = _strides(lb)
        self.numbers = (1, m, n, k, 0, a0, a1, 0, b0, b1, m * n, n, *_blocks(m, n))
        self.kernel, self.layout, self.carrier = _kernel(d, m, n, k, a1, b0), layout_of((m, n), None, d), d.carrier
        self.rows, self.size = m, m * n
        self.pieces: list[tuple[tuple[int, ...], int, int, int]] = []
        places = _tile_pieces(m, n, k) if self.kernel in _TILES else _vector_pieces(m, n, k, a1) if self.kernel is _VECTOR else []
        if len(places) > 1:
            self.pieces = [((1, e - r, f - s, *self.numbers[3:]), r * a0, s * b1, r * n + s) for r, e, s, f in places]
        self.entry: Any = None
        self.fill: Any = None

    def __call__(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the product, added to ``out`` when given."""
        t = make(launch.empty(self.size, self.carrier), self.layout, [0, 0]) if out is None else out
        args = (*self.numbers, out is not None, a._data, b._data, t._data)
        if self.pieces:
            self.kernel.split(self.layout.dtype, args, self.parts)
        else:
            self.kernel(self.layout.dtype, *args)
        return t

    def parts(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return the arguments of the launches of the pieces."""
        add, a, b, out = args[-4:]
        return [(*numbers, add, a[i:], b[j:], out[p:]) for numbers, i, j, p in self.pieces]

    def shared(self, *args: Any) -> None:
        """Run the launches of the pieces."""
        threads.run(self.kernel.entry(self.layout.dtype), self.parts(args))  # type: ignore[arg-type]


def _turned(layout: Layout) -> Layout:
    return layout_of(layout.sizes[::-1], layout.strides[::-1], layout.dtype)


_TURNS = {"nn": (False, False), "nt": (False, True), "tn": (True, False)}


@planned
def _plan(la: Layout, lb: Layout, kind: str) -> ProductPlan | None:
    """Return the plan for A·B ("nn"), A·Bᵀ ("nt") or Aᵀ·B ("tn"); None where that needs a copy, a cast or blocks."""
    first, second = _TURNS[kind]
    return _new_plan(_turned(la) if first else la, _turned(lb) if second else lb)


def _new_plan(first: Layout, second: Layout) -> ProductPlan | None:
    (m, k), n = first.sizes, second.sizes[1]
    if first.dtype.is_half or not multiplies(first.dtype) or not _readable(first) or not _readable(second):
        return None
    if m * n * k >= LARGE and (_kernel(first.dtype, m, n, k, 0, 0) not in _TILES or _summed(first.dtype, m, n, k)):
        return None
    return ProductPlan(first, second)


def _multiplied(a: Tensor, b: Tensor, kind: str) -> Tensor:
    plan = _plan(a._layout, b._layout, kind)
    if plan is not None:
        return plan(a, b)
    a, b = (t.t() if turn else t for t, turn in zip((a, b), _TURNS[kind], strict=True))
    y = product(_batch_of_one(a), _batch_of_one(b))
    return make(y._data, layout_of(y.shape[1:], None, y.dtype), [0, 0])


def multiplies(d: dtypes.dtype) -> bool:
    """Return whether there are products of matrices of this dtype."""
    return d.category > 0 and not d.is_limited


def widened(x: Tensor) -> Tensor:
    """Return a tensor of a dtype without products in one that has them."""
    return cast(x, dtypes.complex64 if x.dtype.is_complex else dtypes.int64)


def multiplied(op: Structured, *operands: Tensor, lying: bool = True) -> Tensor:
    """Return what an op makes of matrices and vectors. NotImplementedError for dtypes without products, unless there is nothing to multiply: PyTorch
    then does not look at the dtype. ``lying``: whether a matrix's gradient lies as it does."""
    d = operands[0].dtype
    if multiplies(d):
        return (as_lying(op, *[x._layout for x in operands]) if lying else op)(*operands)  # type: ignore[no-any-return]
    if all(x._layout.size for x in operands):
        raise NotImplementedError(f"{op.name}(): not implemented for '{scalar_type(d)}'; cast to another dtype first")
    return cast(op(*map(widened, operands)), d)


def plan_known(checked: bool, la: Layout, lb: Layout, kind: str) -> ProductPlan | None:
    """Return the plan of a `known` call; ``checked``: the operands are two that fit, if they are matrices."""
    if la.ndim != 2 or lb.ndim != 2:
        return None
    if not checked:
        first, second = _TURNS[kind]
        if la.dtype is not lb.dtype or la.sizes[0 if first else 1] != lb.sizes[1 if second else 0]:
            return None
    return _with_entry(_plan(la, lb, kind))


def _plan_vectors(la: Layout, lb: Layout) -> ProductPlan | None:
    """Return the plan of a matrix or vector times a vector, which is the product of a row or rows and a column."""
    n, d = lb.sizes[0], lb.dtype
    if la.dtype is not d or la.sizes[-1] != n:
        return None
    rows = la if la.ndim == 2 else layout_of((1, n), (n * la.strides[0], la.strides[0]), d)
    plan = _with_entry(_new_plan(rows, layout_of((n, 1), (lb.strides[0], 1), d)))
    if plan is not None:
        plan.layout = layout_of(la.shape[:-1], None, d)
    return plan


def _with_entry(plan: ProductPlan | None) -> ProductPlan | None:
    """Return the plan with its kernel's entry point; None where there is none yet, or the product is too large."""
    if plan is None or plan.size * plan.carrier.itemsize >= launch.BIG:
        return None
    if plan.entry is None:
        entry = plan.kernel.entry(plan.layout.dtype)
        plan.entry = plan.shared if entry is not None and plan.pieces else entry
    return None if plan.entry is None else plan


def known_product(
    kind: str, ops: dict[tuple[int, int], Structured], public: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a function that ends in one of the products ``ops``, found by how many dims the operands have: 2, or (for "nn") 2 and 1 or 1
    and 1. Its calls are `known`; ``public``: see there."""

    def plan(checked: bool, first: Any, second: Any) -> ProductPlan | None:
        la, lb = first._layout, second._layout
        op = ops.get((la.ndim, lb.ndim))
        if op is None:
            return None
        found = plan_known(checked, la, lb, kind) if lb.ndim == 2 else _plan_vectors(la, lb)
        if found is not None:
            found.op = as_lying(op, la, lb)
        return found

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        a, b, *_ = parameters_of(function)
        run = result_lines(f"plan.entry(*plan.numbers, False, {a}._data, {b}._data, data)", recorded_lines([a, b], f"{a}, {b}", "plan.op"))
        return known(f"{a}._layout, {b}._layout", plan, run, takes=(a, b), public=public, reads=True)(function)

    return decorate


LARGE = 1 << 22  #: multiplications from which a product is shared by threads in blocks that depend on its sizes
BLOCK = 256  #: rows or columns that one more block of a product may have
LONG = 1024  #: terms from which part of a sum of products pays for memory of its own


def _of_sums(kernel: launch.Kernel, a: Tensor, b: Tensor, m: int, n: int, k: int) -> Tensor:
    """Return the product of two long and narrow matrices (gradients of weights are such): the sum of products of their parts."""
    parts = list(threads.cut(k, min(8, k // LONG)))
    d, size = a.dtype, m * n
    a0, a1 = _strides(a._layout)
    b0, b1 = _strides(b._layout)
    found = launch.empty(len(parts) * size, d.carrier)
    kernel.each(d, [
        (1, m, n, j - i, 0, a0, a1, 0, b0, b1, 0, n, m, n, False,
         a._data[i * a1 :], b._data[i * b0 :], found[p * size : (p + 1) * size])
        for p, (i, j) in enumerate(parts)
    ])  # fmt: skip
    return sum_(make(found, layout_of((len(parts), 1, m, n), None, d), [0, 0]), 0)


def _blocks(m: int, n: int) -> tuple[int, int]:
    """Return the rows and columns of the blocks in which a product is computed.

    They depend on the sizes only and not on the threads: to BLAS a block is a product of its own, whose rounding may differ. (`_TILES` need none.)
    """
    if max(m, n) <= BLOCK:
        return m, n
    count = 2
    while max(m, n) > BLOCK * count and count < 64:
        count *= 2
    step = -(-max(m, n) // count // 32) * 32
    return (step, n) if m >= n else (m, step)


@structured(
    a=lambda g, b: _bmm(g, b.mT), b=lambda g, a: _bmm(a.mT, g), node="BmmBackward0", linear="each",
    dtypes="half float complex integer", samples="torch.bmm(x(2, 3, 4), x(2, 4, 5))",
)
def _bmm(a, b):
    return product(a, b)


@_bmm.batched
def _bmm_of_batch(op, args, batch):
    a, b = (batch.whole(x) for x in args)
    n = a.shape[1]
    y = op(a.reshape(batch.size * n, *a.shape[2:]), b.reshape(batch.size * n, *b.shape[2:]))
    return y.reshape(batch.size, n, *y.shape[1:])


# the three products of matrices are each other's derivatives, so that none needs a transposed view
@structured(
    a=lambda g, b: _times_turned(g, b), b=lambda g, a: _turned_times(a, g), node="MmBackward0", linear="each",
    dtypes="half float complex integer", samples="torch.mm(x(3, 4), x(4, 5))",
)
def _mm(a, b):
    return _multiplied(a, b, "nn")


@_mm.batched
def _mm_of_batch(op, args, batch):
    (a, in_a), (b, in_b) = (batch.of(x) for x in args)
    if not in_b:  # the batch is more rows
        rows = batch.size * a.shape[1]
        return op(a.reshape(rows, a.shape[2]), b).reshape(batch.size, a.shape[1], b.shape[1])
    return _bmm(a if in_a else batch.whole(a), b)


# where an operand lies by columns, as a turned weight does, so does its gradient
@structured(a=lambda g, b: _times_turned(b, g).t(), b=lambda g, a: _turned_times(a, g), node="MmBackward0", linear="each")
def _columns_times_rows(a, b):
    return _multiplied(a, b, "nn")


@structured(a=lambda g, b: _times_turned(g, b), b=lambda g, a: _turned_times(g, a).t(), node="MmBackward0", linear="each")
def _rows_times_columns(a, b):
    return _multiplied(a, b, "nn")


@structured(a=lambda g, b: _times_turned(b, g).t(), b=lambda g, a: _turned_times(g, a).t(), node="MmBackward0", linear="each")
def _columns_times_columns(a, b):
    return _multiplied(a, b, "nn")


_BY_COLUMNS = {(True, False): _columns_times_rows, (False, True): _rows_times_columns, (True, True): _columns_times_columns}
for _op in _BY_COLUMNS.values():
    _op.batched(_mm_of_batch)


def as_lying(op: Structured, *layouts: Layout) -> Structured:
    """Return the op of a product of matrices of these layouts."""
    ways = lying.get(op)
    if ways is None:
        return op
    first, second = layouts[:2]
    return ways.get((_by_columns(first), _by_columns(second if ways is _BY_COLUMNS else _turned(second))), op)


def _by_columns(lies: Layout) -> bool:
    return lies.strides[0] == 1 and lies.strides[1] == lies.sizes[0]


@structured(a=lambda g, b: _times(g, b), b=lambda g, a: _turned_times(g, a), node="MmBackward0", linear="each")
def _mm_nt(a, b):
    return _multiplied(a, b, "nt")


# the same of a first operand that lies by columns, and of a second that does not lie by rows: when turned, it is none by columns
@structured(
    a=lambda g, b: _turned_times(b, g.t()).t(), b=lambda g, a: _turned_times(g, a), node="MmBackward0", linear="each",
    dtypes="half float complex integer", samples="F.linear(x(4, 3).t(), x(5, 4))",
)
def _columns_times_turned(a, b):
    return _multiplied(a, b, "nt")


@structured(
    a=lambda g, b: _times(g, b), b=lambda g, a: _turned_times(a, g).t(), node="MmBackward0", linear="each",
    dtypes="half float complex integer", samples="F.linear(x(3, 4), x(4, 5).t())",
)
def _rows_times_gaps(a, b):
    return _multiplied(a, b, "nt")


@structured(
    a=lambda g, b: _turned_times(b, g.t()).t(), b=lambda g, a: _turned_times(a, g).t(), node="MmBackward0", linear="each",
    dtypes="half float complex integer", samples="F.linear(x(4, 3).t(), x(4, 5).t())",
)
def _columns_times_gaps(a, b):
    return _multiplied(a, b, "nt")


def _mm_nt_of_batch(op, args, batch):
    a, b = args
    return _mm_of_batch(_mm, (a, b.t()), batch)


#: for each op of a product, the ones for operands by columns or not, the first and the second; of "nt" the second turned
lying: dict[Structured, dict[tuple[bool, bool], Structured]] = {
    _mm: _BY_COLUMNS,
    _mm_nt: {(True, True): _columns_times_turned, (False, False): _rows_times_gaps, (True, False): _columns_times_gaps},
}
for _op in (_mm_nt, *lying[_mm_nt].values()):
    _op.node.shown_edges = ((0, False), (1, True))
    _op.batched(_mm_nt_of_batch)


@structured(a=lambda g, b: _times_turned(b, g), b=lambda g, a: _times(a, g), node="MmBackward0", linear="each")
def _mm_tn(a, b):
    return _multiplied(a, b, "tn")


@_mm_tn.batched
def _mm_tn_of_batch(op, args, batch):
    a, b = args
    return _mm_of_batch(_mm, (a.t(), b), batch)


@known_product("nn", {(2, 2): _mm})
def _times(input, other):
    """Return A·B of two matrices that fit."""
    return _mm(input, other)


@known_product("nt", {(2, 2): _mm_nt})
def _times_turned(input, other):
    """Return A·Bᵀ."""
    return _mm_nt(input, other)


@known_product("tn", {(2, 2): _mm_tn})
def _turned_times(input, other):
    """Return Aᵀ·B."""
    return _mm_tn(input, other)


def _batch_of_one(x: Tensor) -> Tensor:
    layout = x._layout
    return make(x._data, layout_of((1, *layout.shape), (0, *layout.strides), layout.dtype), x._version_)
