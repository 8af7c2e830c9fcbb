"""Objects that are no tensors and stand for some: classes with a ``__torch_function__``, which redefines the functions that are called with them.

Functions come to ask for them where an argument is no tensor, so that calls with tensors pay nothing; `autograd.torch_function` has the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...tensor import Tensor


class Asked:
    """Functions that layers above hand in: the call of an argument's ``__torch_function__``, and sparse tensors, which begin with the first of them."""

    redefined: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
    sparse = False  #: whether a program has ever made a sparse tensor
    begin_sparse: Callable[[], None]
    meta: Callable[[], Any]  #: the module of tensors without numbers
    meta_used = False  #: whether a program has ever named the device "meta"
    embedding: Callable[..., Any]  #: rows of a table whose gradient is sparse


asked = Asked()


def is_foreign(value: Any) -> bool:
    """Return whether an object is no tensor and has a ``__torch_function__``."""
    return hasattr(type(value), "__torch_function__") and not isinstance(value, Tensor)


def foreign_among(values: Iterable[Any]) -> bool:
    """Return whether there is such an object among arguments, or in lists and tuples of them."""
    return any(any(map(is_foreign, v)) if v.__class__ in (list, tuple) else is_foreign(v) for v in values)
