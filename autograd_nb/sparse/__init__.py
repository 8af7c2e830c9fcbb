"""``torch.sparse``: tensors of coordinates and values (COO) or of rows (CSR), as far as dense programs use them.

Products with dense matrices, sums, softmax, arithmetic, sparse gradients of embeddings and SciPy's formats. CSC and blocked formats and batches of sparse
matrices are not here. Source: https://docs.pytorch.org/docs/stable/sparse.html
"""

from __future__ import annotations

import contextlib as _contextlib
from typing import Any as _Any

from ..autograd.legacy import TYPES as _TYPES
from ..autograd.torch_function import HANDED_ON as _HANDED_ON
from ..tensor import Tensor as _Tensor
from . import batches as _batches
from . import text as _text
from .create import (
    from_scipy as from_scipy,
)  # fmt: skip
from .create import (
    made_of as _made_of,
)
from .create import (
    sparse_coo_tensor as sparse_coo_tensor,
)
from .create import (
    sparse_csr_tensor as sparse_csr_tensor,
)
from .create import (
    to_scipy as to_scipy,
)
from .ops import sum_ as _sum
from .products import (
    addmm as addmm,
)  # fmt: skip
from .products import (
    log_softmax as log_softmax,
)
from .products import (
    mm as mm,
)
from .products import (
    sampled_addmm as sampled_addmm,
)
from .products import (
    softmax as softmax,
)
from .products import (
    spdiags as spdiags,
)
from .tensor import HANDLERS as _HANDLERS
from .tensor import SparseTensor as SparseTensor


def sum(input: _Any, dim: _Any = None, dtype: _Any = None) -> _Any:  # noqa: A001
    """Return the sum over all elements (a number), or over ``dim``: sparse while a dim with coordinates is left, else dense.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.sparse.sum.html

    >>> torch.sparse.sum(torch.tensor([[1., 2.], [0., 3.]]).to_sparse(), 0).to_dense()
    tensor([1., 5.])
    """
    if not isinstance(input, SparseTensor):
        raise RuntimeError("sparse.sum(): argument 'input' must be sparse; torch.sum is for dense tensors")
    return _sum(input, dim, dtype)


class check_sparse_tensor_invariants(_contextlib.ContextDecorator):
    """A switch of PyTorch's checks, a context and a decorator; here what a sparse tensor is made of is checked whatever it says.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.sparse.check_sparse_tensor_invariants.html

    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    def _recreate_cm(self) -> check_sparse_tensor_invariants:
        return type(self)(self.state)

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different context manager instance for context nesting.")
        self.saved_state = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *error: object) -> None:
        check_sparse_tensor_invariants._enabled = bool(self.saved_state)
        self.saved_state = None

    @staticmethod
    def is_enabled() -> bool:
        """Return what the switch was set to, at first False."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Set the switch to True."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Set the switch to False."""
        check_sparse_tensor_invariants._enabled = False


def _typed(name: str) -> _Any:
    """Return the old constructor of sparse tensors of one dtype: ``FloatTensor(indices, values, size)``."""
    kind = getattr(_TYPES[name], "dtype", None)

    def construct(*args: _Any, device: _Any = None) -> _Any:
        return _made_of(args, kind, device)

    construct.__name__ = construct.__qualname__ = name
    construct.__doc__ = f"Return `sparse_coo_tensor` of the dtype of {name}."
    return construct


FloatTensor: _Any = _typed("FloatTensor")
DoubleTensor: _Any = _typed("DoubleTensor")
LongTensor: _Any = _typed("LongTensor")
IntTensor: _Any = _typed("IntTensor")

for _name, _handler in _HANDLERS.items():
    if hasattr(_Tensor, _name) or _name in _batches.__all__:
        setattr(SparseTensor, _name, _handler)
SparseTensor.__repr__ = _text.text  # type: ignore[method-assign]
for _operator, _name in _HANDED_ON.items():
    if _name in _HANDLERS and _operator not in _HANDLERS:
        setattr(SparseTensor, _operator, _HANDLERS[_name])
