"""`SparseTensor`: places and values in the place of memory.

It is a Tensor with a shape, a dtype and a place in the graph, whose elements lie in dense tensors: coordinates (``_index``, one tensor for COO, two
for CSR) and ``_val``. It has no memory of its own: what reaches for that, which are the dense ops, gets an error with the remedy. Public functions
come to ask it (`SparseTensor.__torch_function__`) while a program has any, and for some calls more; one without sparse tensors pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import launch
from ..autograd import torch_function
from ..graph.modes import state
from ..graph.node import Node
from ..launch import Kernel
from ..ops.core.foreign import asked
from ..ops.core.history import attach
from ..ops.core.recording import check_output, store
from ..ops.core.registry import OPS
from ..ops.creation.cast import dense
from ..ops.creation.create import new_empty
from ..ops.creation.device import sparse_coo, sparse_csr
from ..shapes import layout_of
from ..tensor import Tensor, edge, fill_node

#: what a public function of this name does where an argument is sparse
HANDLERS: dict[str, Callable[..., Any]] = {}
WRITING = {"zeros", "empty"}  #: those that write into ``out`` themselves

_GROUPS, _SEGMENT_SUM = Kernel("sparse", "groups", outputs=3), Kernel("sparse", "segment_sum")
_ROW_STARTS, _ROWS_OF = Kernel("sparse", "row_starts"), Kernel("sparse", "rows_of")


def refused(name: str, why: str = "") -> NotImplementedError:
    """Return the error for what sparse tensors do not have."""
    more = f": {why}" if why else ""
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'SparseCPU' backend: {name}() does not take sparse tensors{more}; "
        "make them dense by .to_dense()"
    )


class SparseTensor(Tensor):
    """A tensor most of whose elements are 0: coordinates and values (COO), or values row by row (CSR).

    Source: https://docs.pytorch.org/docs/stable/sparse.html

    >>> s = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3))
    >>> s.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """

    of_program = True  # it takes over functions, as a program's subclasses do

    _kind: str
    _index: tuple[Tensor, ...]
    _val: Tensor
    _coalesced: bool

    @property
    def _data(self) -> Any:  # type: ignore[override]
        raise refused("the op", "they have no dense memory")

    @_data.setter
    def _data(self, value: Any) -> None:
        raise refused("set_data")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return what the function of this name does with sparse tensors. NotImplementedError where there is none."""
        name = getattr(func, "__name__", str(func))
        handler = HANDLERS.get(name)
        if handler is not None:
            given = dict(kwargs or {})
            out = None if name in WRITING else given.pop("out", None)
            return written(out, handler(*args, **given), name)
        if name in PASSED:
            return torch_function.undisturbed(lambda: func(*args, **(kwargs or {})))
        raise refused(name)

    @property
    def layout(self) -> Any:
        """Return ``sparse_coo`` or ``sparse_csr``."""
        return sparse_coo if self._kind == "coo" else sparse_csr

    @property
    def is_sparse(self) -> bool:
        """Return True for COO."""
        return self._kind == "coo"

    @property
    def is_sparse_csr(self) -> bool:
        """Return True for CSR."""
        return self._kind == "csr"

    @property
    def data(self) -> Tensor:
        """Return a sparse tensor of the same places and values outside the graph."""
        return bare(self)

    @data.setter
    def data(self, value: Tensor) -> None:
        become(self, value)

    @property
    def T(self) -> Any:
        """Return the tensor with its dims in reverse order."""
        return HANDLERS["permute"](self, *range(self.ndim)[::-1])

    @property
    def mT(self) -> Any:
        """Return the tensor with its last two dims exchanged. RuntimeError where there is one alone."""
        if self.ndim == 1:
            raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.")
        return HANDLERS["transpose"](self, -2, -1) if self.ndim else self

    H = T

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        """Return a copy with places and values of its own. RuntimeError for what is no leaf."""
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.")
        if id(self) not in memo:
            new = made(self._kind, self.shape, tuple(i.clone() for i in self._index), self._val.clone(), self._coalesced)
            new._rg = self._rg
            if self._grad is not None:
                new._grad = self._grad.__deepcopy__(memo)
            memo[id(self)] = new
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (rebuild, (self._kind, tuple(self.shape), self._index, self._val, self._coalesced, self._rg))


#: public functions that ask nothing of the elements
PASSED = {
    "requires_grad_", "backward", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "size", "dim", "ndimension", "numel", "nelement",
    "is_floating_point", "is_complex", "is_inference", "element_size", "__len__", "get_device", "is_signed", "__dir__", "__hash__", "is_same_size",
    "is_conj", "is_neg", "is_pinned", "is_distributed",
}  # fmt: skip


def made(kind: str, size: Any, index: tuple[Tensor, ...], values: Tensor, coalesced: bool) -> SparseTensor:
    """Return a sparse tensor of these parts outside the graph."""
    if not asked.sparse:
        asked.begin_sparse()
    launch.escapes("a sparse tensor")
    t: SparseTensor = object.__new__(SparseTensor)
    torch_function.INTERCEPTION.live(t)
    t._layout = layout_of(tuple(size), None, values.dtype)
    t._version_ = [0, 0]
    t._rg = False
    t._edge = t._grad = t._view = t._leaf_hook_set = None
    t._kind, t._index, t._val, t._coalesced = kind, index, values.detach(), coalesced
    return t


def rebuild(kind: str, size: Any, index: tuple[Tensor, ...], values: Tensor, coalesced: bool, requires_grad: bool) -> SparseTensor:
    """Return what was pickled."""
    t = made(kind, size, index, values, coalesced)
    t._rg = requires_grad
    return t


def bare(s: SparseTensor) -> SparseTensor:
    """Return the same tensor outside the graph."""
    return made(s._kind, s.shape, s._index, s._val, s._coalesced)


def become(s: Any, other: Any) -> None:
    """Let a tensor have the parts of another in place; it is dense from then on where that is."""
    if isinstance(other, SparseTensor):
        s._kind, s._index, s._val, s._coalesced, s._layout = other._kind, other._index, other._val.detach(), other._coalesced, other._layout
    else:
        s.__dict__.clear()
        s.__class__ = Tensor
        s._data, s._layout, s._version_ = other._data, other._layout, other._version_


def written(out: Any, found: Any, name: str) -> Any:
    """Return ``out`` with a result in it, or the result where there is no ``out``.

    Errors: RuntimeError where a gradient is needed, where only one of them is sparse, and for dtypes that differ.
    """
    if out is None:
        return found
    if not isinstance(out, SparseTensor) and not isinstance(found, SparseTensor):
        return store(out, found, name)
    check_output(out, name, found.requires_grad)
    if not isinstance(out, SparseTensor) or not isinstance(found, SparseTensor):
        raise refused(name, f"out= has the layout {out.layout}, and the result {found.layout}")
    if out.dtype is not found.dtype:
        raise RuntimeError(f"{name}(): expected out= to have the dtype {found.dtype} of the result, but got {out.dtype}: cast the result")
    become(out, found)
    out._version_[0] += 1
    return out


class SparseBackward0(Node):
    """A step between a sparse tensor and its values; its rule is what it has saved."""

    __slots__ = ()

    def run(self, g: Any) -> tuple[Any, ...]:
        return (self.saved(g),)

    run_graph = run


def recorded(t: Tensor, source: Tensor, rule: Callable[[Any], Any]) -> Any:
    """Return ``t`` as computed from ``source``, with the rule that makes a gradient of ``source`` from one of ``t``."""
    if state.grad and source.requires_grad:
        node = fill_node(SparseBackward0(), (edge(source),), 3)
        node.saved = rule
        attach(t, node)
    return t


# --------------------------------------------------------------------------------------------------------- places


def places(s: SparseTensor) -> Tensor:
    """Return the coordinates of the values, [sparse dims, nnz]."""
    if s._kind == "coo":
        return s._index[0]
    starts, columns = s._index
    out = new_empty((columns.shape[0],), columns.dtype)
    _ROWS_OF(out.dtype, dense(starts), out._data)
    return OPS["stack"].call([out, columns])


def keys_of(index: Tensor, size: Any) -> Tensor:
    """Return one number for each place: its index among all elements."""
    key = OPS["zeros"].call(index.shape[1], dtype=index.dtype)
    for d in range(index.shape[0]):
        key = key * size[d] + index[d]
    return key


def index_of(keys: Tensor, size: Any) -> Tensor:
    """Return the coordinates that `keys_of` has made numbers of."""
    found = []
    for n in reversed(tuple(size)):
        found.append(keys % n)
        keys = keys // n
    return OPS["stack"].call(found[::-1]) if found else keys.new_zeros((0, keys.shape[0]))


def grouped(keys: Tensor) -> tuple[Tensor, Tensor]:
    """Return (the distinct keys in order, for each key which of these it is)."""
    n = keys.shape[0]
    ids, firsts, found = new_empty((n,), keys.dtype), new_empty((n,), keys.dtype), new_empty((1,), keys.dtype)
    order = OPS["argsort"].call(keys, stable=True)
    _GROUPS(keys.dtype, dense(keys[order]), dense(order), ids._data, firsts._data, found._data)
    return firsts[: int(found.item())], ids


def segment_sum(values: Tensor, ids: Tensor, count: int) -> Tensor:
    """Return the sums of the rows of ``values`` with the same id, [count, …]; recorded."""
    from_bool = values.dtype.category == 0
    v = values.to(OPS["zeros"].call(0).dtype) if from_bool or values.dtype.is_half else values
    shape = (count, *values.shape[1:])
    out = new_empty(shape, v.dtype)
    width = out.numel() // count if count else 0
    _SEGMENT_SUM(v.dtype, count, width, dense(ids), dense(v.detach()), out._data)
    out = out.to(values.dtype)
    return recorded(out, values, lambda g: OPS["index_select"].call(g, 0, ids))  # type: ignore[no-any-return]


def csr_starts(rows: Tensor, m: int) -> Tensor:
    """Return where the rows begin among sorted row numbers."""
    out = new_empty((m + 1,), rows.dtype)
    _ROW_STARTS(rows.dtype, m, dense(rows), out._data)
    return out


def sparse_dims(s: SparseTensor) -> int:
    """Return how many dims have coordinates."""
    return s._index[0].shape[0] if s._kind == "coo" else 2
