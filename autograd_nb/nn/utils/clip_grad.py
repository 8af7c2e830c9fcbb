"""Gradient clipping: one pass over the gradients for their norm, one to scale them where it is too large.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...errors import warn_user
from ...graph.modes import no_grad
from ...launch import Kernel
from ...launch.memory import address
from ...ops.core.foreign import asked
from ...ops.core.numbers import scalar_tensor
from ...ops.core.registry import OPS
from ...ops.creation.cast import dense
from ...ops.linalg.common import scalar_name
from ...overriding import whole
from ...shapes import layout_of
from ...tensor import Tensor, make

_sum_of_powers = Kernel("optim", "sum_of_powers")
_root = Kernel("optim", "root")
_clip_factor = Kernel("optim", "clip_factor")
_scale = Kernel("optim", "scale")
_clamp = Kernel("optim", "clamp")


def _listed(parameters: Any) -> list[Tensor]:
    if isinstance(parameters, Tensor):
        return [parameters]
    found = list(parameters)
    if not found and not isinstance(parameters, (list, tuple)):
        warn_user("`parameters` is an empty generator, no gradient clipping will occur.")
    return found


def _gradients(parameters: Any) -> list[Tensor]:
    launch.looked()
    grads = [p._grad for p in _listed(parameters) if p._grad is not None]
    return [_own_values(g) if g.is_sparse else g for g in grads] if asked.sparse else grads


def _own_values(g: Any) -> Tensor:
    """Return the values of a sparse gradient, with each place once from now on: what changes them changes the gradient."""
    if not g.is_coalesced():
        g.copy_(g.coalesce())
    return g._values()  # type: ignore[no-any-return]


_PLAIN = (dtypes.float32, dtypes.float64)


def _in_one(t: Tensor) -> bool:
    """Return whether kernels can work on its memory, as floats that stand one after the other."""
    return t._layout.contiguous and t._layout.dtype in _PLAIN


def _memory(t: Tensor) -> np.ndarray:
    data, size = t._data, t._layout.size
    return data if data.size == size else data[:size]


def _floats(t: Tensor) -> np.ndarray:
    """Return the elements, or their absolute values where they are complex, in single precision at least."""
    if _in_one(t):
        return _memory(t)
    if not (t.dtype.is_floating_point or t.dtype.is_complex):
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {scalar_name(t)}")
    t = t.detach()
    return dense(t.float() if t.dtype.is_half else t.abs() if t.dtype.is_complex else t)


def _add_powers(tensors: list[Tensor], p: float, first: bool, total: np.ndarray) -> bool:
    """Add the powers of all elements to ``total``, which has no value yet if ``first``; return whether it has none still."""
    for d, alike in groupby([_floats(t) for t in tensors if t._layout.size], attrgetter("dtype")):
        for arrays in _lists(list(alike)):
            _sum_of_powers(d, p, first, arrays, total)
            first = False
    return first


def _shared_out(grads: list[Tensor], parameters: Any = ()) -> tuple[list[Tensor], list[Tensor]]:
    """Return (the gradients that this rank has whole, those of which it has a part among ranks)."""
    layouts = {id(p._grad): p.__dict__["_sharding"] for p in parameters if p._grad is not None and "_sharding" in p.__dict__}
    layouts.update({id(g): g.__dict__["_sharding"] for g in grads if "_sharding" in g.__dict__})
    if not layouts:
        return grads, []
    for g in grads:
        if id(g) in layouts:
            layouts[id(g)].mark(g)
    parts = [g for g in grads if id(g) in layouts and any(level.placement.is_shard() for level in layouts[id(g)].levels)]
    known = {id(g) for g in parts}
    whole = [g for g in grads if id(g) not in known]
    summands = {id(g) for g in grads if id(g) in layouts and any(level.placement.is_partial() for level in layouts[id(g)].levels)}
    return [g.full_tensor() if id(g) in summands else g for g in whole], parts  # type: ignore[attr-defined]


def _of_parts(shared: list[Tensor], p: float) -> np.ndarray:
    """Return the sum of powers of what ranks have parts of, those of each group of ranks by themselves; a float64 array of one."""
    among: dict[Any, list[Tensor]] = {}
    for t in shared:
        among.setdefault(tuple([id(s.group) for s in t.__dict__["_sharding"].levels if s.placement.is_shard()]), []).append(t)
    found = []
    for tensors in among.values():
        found.append(np.empty(1, np.float64))
        if _add_powers(tensors, p, True, found[-1]):
            _root(0, p, True, found[-1])
        tensors[0].__dict__["_sharding"].joint(found[-1], p)
    if len(found) == 1:
        return found[0]
    sums = [make(total, layout_of((), None, dtypes.float64), [0, 0]) for total in found]
    join = OPS["maximum" if math.isinf(p) else "add"].call
    return dense(reduce(join, sums))


def _norm(tensors: list[Tensor], norm_type: float, error_if_nonfinite: bool = False, shared: list[Tensor] | None = None) -> np.ndarray:
    """Return the p-norm of all elements together as a float64 array of one, summed in the order of the tensors.

    ``shared``: those of which this rank has some rows only, which count as a whole.
    """
    p = float(norm_type)
    total = np.empty(1, np.float64)
    first = True
    if shared and p <= 0:
        raise NotImplementedError(f"norm_type={p}: of parameters that are shared out among ranks, only positive ones")
    if p <= 0:  # the norm of the tensors' norms is not that of all elements
        norm = OPS["linalg.vector_norm"].call
        norms = [norm(t.detach(), p).double() for t in tensors if t._layout.size]
        total, tensors = dense(norm(OPS["stack"].call(norms), p)) if norms else total, []
        first = not norms
    if shared:
        total, first = _of_parts(shared, p), False
    first = _add_powers(tensors, p, first, total)
    if p > 0 or first:
        _root(0, p, first, total)

    def finite(total: np.ndarray) -> None:
        if not math.isfinite(total[0]):
            raise RuntimeError(
                f"The total norm of order {p} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this "
                "error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
            )

    if error_if_nonfinite:
        launch.check(finite, total)
    return total


@no_grad()
def get_total_norm(tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Return the norm of all the tensors' elements together, as a 0-d tensor.

    >>> torch.nn.utils.get_total_norm([torch.tensor([3.]), torch.tensor([4.])])
    tensor(5.)
    """
    given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not given:
        return scalar_tensor(0.0)
    own, shared = _shared_out(given)
    return _wrapped(_norm(own, norm_type, error_if_nonfinite, shared), given)


def _wrapped(total: np.ndarray, like: list[Tensor]) -> Tensor:
    d = like[0].dtype
    for t in like[1:]:
        if t.dtype is not d:
            d = dtypes.promote_types(d, t.dtype)
    return make(total, layout_of((), None, dtypes.float64), [0, 0]).to(d.to_real())


def _lists(arrays: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    for k in range(0, len(arrays), launch.MOST):
        yield arrays[k : k + launch.MOST]


@whole
def _in_place(kernel: Kernel, number: Any, tensors: list[Tensor]) -> list[Tensor]:
    """Run ``kernel(number, arrays)`` on what `_in_one` says it can work on; the other tensors. What stands there twice is written by two launches."""
    plain = [t for t in tensors if _in_one(t)]
    memory = [_memory(t) for t in plain]
    several = len({id(t._version_) for t in plain}) < len(plain) and len({(address(a), a.size) for a in memory}) < len(memory)
    for d, alike in groupby(memory, attrgetter("dtype")):
        for arrays in [[a] for a in alike] if several else _lists(list(alike)):
            kernel(d, number, arrays)
    for t in plain:
        t._version_[0] += 1
    return [] if len(plain) == len(tensors) else [t for t in tensors if not _in_one(t)]


def _scale_all(grads: list[Tensor], factor: np.ndarray) -> None:
    for g in _in_place(_scale, factor, grads):
        g.mul_(make(factor, layout_of((), None, dtypes.float64), [0, 0]).to(g.dtype))


@no_grad()
def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None) -> None:
    """Scale the gradients by max_norm / (total_norm + 1e-6) where that is below 1.

    Errors: RuntimeError for a total_norm that is not one number.

    >>> w = torch.ones(2, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.nn.utils.clip_grads_with_norm_([w], 1., torch.tensor(4.))
    >>> w.grad
    tensor([0.2500, 0.2500])
    """
    norm = total_norm if isinstance(total_norm, Tensor) else scalar_tensor(float(total_norm), dtypes.float64)
    if norm.ndim:
        raise RuntimeError(f"scalar tensor expected to be 0 dim but it has {norm.ndim} dimensions and {norm.numel()} elements (total_norm)")
    factor = np.empty(1, np.float64)
    if "_sharding" in norm.__dict__:
        norm = norm.full_tensor()  # type: ignore[attr-defined]
    _clip_factor(0, float(max_norm), dense(norm.detach().to(dtypes.float64)), factor)
    _scale_all(_gradients(parameters), factor)


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Scale the gradients of ``parameters`` so that their norm, taken together, is at most ``max_norm``; the norm before.

    Errors: RuntimeError for a norm that is not finite, if ``error_if_nonfinite``.

    >>> w = torch.ones(2, requires_grad=True)
    >>> (w * 3).sum().backward()
    >>> torch.nn.utils.clip_grad_norm_([w], 1.)
    tensor(4.2426)
    >>> w.grad
    tensor([0.7071, 0.7071])
    """
    parameters = _listed(parameters)
    grads = _gradients(parameters)
    if not grads:
        return scalar_tensor(0.0)
    own, shared = _shared_out(grads, parameters)
    total = _norm(own, norm_type, error_if_nonfinite, shared)
    factor = np.empty(1, np.float64)
    _clip_factor(0, float(max_norm), total, factor)
    _scale_all(grads, factor)
    return _wrapped(total, grads)


def clip_grad_norm(parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Clip as `clip_grad_norm_`, whose old name this is."""
    warn_user("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp the gradients of ``parameters`` to [-clip_value, clip_value]."""
    limit = float(clip_value)
    for g in _in_place(_clamp, limit, _gradients(parameters)):
        g.clamp_(min=-limit, max=limit)
