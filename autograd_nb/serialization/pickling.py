"""How pickle takes tensors: within this process, to others, and into files of any program's own."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..dtypes import dtype
from ..errors import AutogradError
from ..graph.slots import own_slots
from ..ops.core.recording import made_here
from ..ops.core.registry import OPS
from ..shapes import layout_of
from ..tensor import Tensor, _storage, adopt, make

_PACKAGE = __name__.partition(".")[0]


def reduce_tensor(t: Tensor) -> tuple[Any, ...]:
    """Return what pickle needs to make ``t`` again. A non-leaf becomes a leaf.

    As in PyTorch each tensor has memory of its own then, if it does not go to another process; `torch.save` keeps what is shared.

    >>> import pickle
    >>> pickle.loads(pickle.dumps(torch.ones(2)))
    tensor([1., 1.])
    """
    array, offset = _storage(t)
    if _for_another_process():
        refuse_non_leaf(t)
    else:
        array = array[:]  # pickle knows arrays by what they are
    layout = t._layout
    args = (type(t), array, offset, tuple(layout.shape), layout.strides, layout.dtype, t.requires_grad)
    state = state_of(t)
    return (_rebuild, args, state) if state else (_rebuild, args)


def state_of(t: Tensor) -> Any:
    """Return what an object keeps beside numbers: as its class says, else its attributes, in a pair with those that stand in slots."""
    get = getattr(type(t), "__getstate__", None)
    if get is not None and get is not getattr(object, "__getstate__", None):
        return get(t)
    slots = {n: getattr(t, n) for n in own_slots(type(t)) if hasattr(t, n)}
    return (dict(t.__dict__), slots) if slots else dict(t.__dict__)


def refuse_non_leaf(t: Tensor) -> None:
    """Raise RuntimeError for a tensor with a history, which another process cannot have."""
    if not t.is_leaf:
        raise AutogradError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
            "boundaries. If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it "
            "on the queue)."
        )


def compact(t: Tensor) -> Tensor:
    """Return ``t``, or a copy of it if it is a view of a larger storage, which pickle would take along."""
    if _storage(t)[0].size <= t._layout.size:
        return t
    return OPS["clone"].call(t.detach()).requires_grad_(t.requires_grad)


def _for_another_process() -> bool:
    """Return whether multiprocessing's pickler is at work (its ``dumps`` is then the Python frame above ours)."""
    module = sys.modules.get("multiprocessing.reduction")
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame = frame.f_back
    return module is not None and frame.f_code.co_filename == module.__file__


def _rebuild(cls: type, array: np.ndarray, offset: int, shape: tuple[Any, ...], strides: tuple[Any, ...], d: dtype, requires_grad: bool) -> Tensor:
    t = adopt(cls, made_here(make(array[offset:], layout_of(shape, strides, d), [0, 0])))
    t._rg = requires_grad
    return t
