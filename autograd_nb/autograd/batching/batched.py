"""A batch that looks like one sample: the tensors of `vmap`.

A `Batched` holds a tensor whose dim 0 is the batch. It lies below the graph: the tensor that it holds has the history, so a
backward pass needs to know nothing of batches, and batches of gradients flow through the engine as any gradient does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import _getframe
from typing import Any

from ...graph.modes import PerThread, no_grad
from ...graph.transformed import transformed_error
from ...graph.versions import same_storage
from ...ops.core import mutation
from ...ops.core.marked import MARKED
from ...ops.core.recording import check_result
from ...ops.core.registry import OPS
from ...ops.core.structured import SHIFTED, Structured
from ...ops.creation.create import new_full
from ...shapes import Size, layout_of
from ...strides import packed
from ...tensor import Tensor, _new
from ..interpreters import Wrapped, WrappedLayout, is_internal
from ..pytree import tree_map

__all__ = ["Batch", "Batched", "Level", "Unbatched", "align", "batch", "keep", "levels", "materialize", "value_of"]


class Unbatched(BaseException):
    """Something looked at the memory of a batch, which no rule covers: the samples of ``level`` are to be computed one by one."""

    def __init__(self, level: int):
        self.level = level


class Level:
    """An active vmap: its depth, how many samples, what random functions do, and what was written into the tensors that it maps."""

    number: int
    randomness: str
    size: int
    mapped: list[Tensor]
    written: list[tuple[Any, ...]]

    __slots__ = ("mapped", "number", "randomness", "size", "written")

    def __init__(self, number: int, size: int, randomness: str, mapped: list[Tensor]):
        self.number, self.size, self.randomness, self.mapped, self.written = number, size, randomness, mapped, []

    def keep(self, value: Tensor) -> None:
        """Keep what is to be written over, if it is memory of a tensor that is mapped."""
        while value.__class__ in MARKED:
            value = value.of  # type: ignore[attr-defined]
        if any(same_storage(t._version_, value._version_) for t in self.mapped):
            with no_grad():
                of_own = () if isinstance(value, Wrapped) else [(n, getattr(value, n)) for n in ("_data", "_layout", "_edge", "_rg")]
                self.written.append((value, OPS["clone"].call(value), of_own, value._version_[0]))

    def put_back(self) -> None:
        """Put back what was written over. RuntimeError where a history would have to be put back that others share."""
        for value, old, of_own, version in reversed(self.written):
            if value.requires_grad and (value._view is not None or isinstance(value, Wrapped)):
                raise RuntimeError(
                    "vmap: the function changes a part of a tensor that requires grad in place, and then calls an op that runs sample by "
                    "sample, for which the change would be made twice. Use the out-of-place version of the one or the other."
                )
            for name, was in of_own:
                setattr(value, name, was)
            (value if isinstance(value, Wrapped) else value.detach()).copy_(old)
            value._version_[0] = version


class _Levels(PerThread):
    def __init__(self) -> None:
        self.stack: list[Level] = []


levels: Any = _Levels()


def _refusing(name: str) -> Callable[..., Any]:
    """Return a method that refuses, as a batch has no answer."""

    def refuse(self: Batched, *args: Any, **kw: Any) -> Any:
        return self._refuse(name)

    return refuse


class Batched(Wrapped):
    """``value``'s dim 0 holds the samples of the vmap of this ``level``; in the tensor that was mapped that dim was at ``place``."""

    __slots__ = ("place", "value")
    value: Tensor
    place: int
    batched = True

    # ---- what ops ask of a tensor
    @property
    def _data(self) -> Any:  # type: ignore[override]
        if all(lv.number != self.level for lv in levels.stack):
            raise RuntimeError(
                "A tensor that was made inside vmap was used after it had ended. Return it from the function that is mapped, instead "
                "of keeping it in a variable outside."
            )
        raise Unbatched(self.level)

    @property
    def _version_(self) -> list[int]:  # type: ignore[override]
        return self.value._version_

    @property
    def _rg(self) -> bool:  # type: ignore[override]
        return self.value.requires_grad

    @property
    def requires_grad(self) -> bool:
        """Return whether gradients flow to the samples."""
        return self.value.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def _edge(self) -> Any:  # type: ignore[override]
        return self.value._edge

    @property
    def _view(self) -> None:  # type: ignore[override]
        return None

    @property
    def _grad(self) -> None:  # type: ignore[override]
        return None

    @property
    def _leaf_hook_set(self) -> None:  # type: ignore[override]
        return None

    # ---- the tensor outside the graph
    def detach(self) -> Tensor:
        return batch(self.value.detach(), self.level)

    def detach_(self) -> Tensor:
        raise RuntimeError("Can't detach views in-place. Use detach() instead: inside vmap a tensor looks at a part of a batch.")

    @property  # type: ignore[misc]
    def data(self) -> Tensor:  # type: ignore[override]
        """Return the same memory as a leaf outside the graph."""
        return batch(self.value.data, self.level)

    @property
    def grad_fn(self) -> Any:
        return self.value.grad_fn

    def as_strided(self, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
        v = self.value
        return batch(v.as_strided((v.shape[0], *size), (v.stride(0), *stride), storage_offset), self.level)

    def _beside(self, fresh: Tensor) -> Tensor:
        # for each sample memory of its own, so that samples may be written into it
        whole = OPS["clone"].call(fresh.detach().unsqueeze(0).expand(self.value.shape[0], *fresh.shape))
        return batch(self.value._beside(whole), self.level)

    # ---- what a batch has no answer to
    def _refuse(self, name: str) -> Any:
        if is_internal(_getframe(2)):  # an op asks on its own account
            raise Unbatched(self.level)
        if name == "bool":
            raise RuntimeError(
                "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support "
                "that: inside vmap a tensor stands for a whole batch. Use torch.where() instead of if."
            )
        raise RuntimeError(
            f"vmap: It looks like you're calling {name} on a Tensor. We don't support vmap over calling {name} on a Tensor, please "
            "try to rewrite what you're doing with other operations."
        )

    item = __float__ = __int__ = __complex__ = __index__ = _refusing(".item()")
    __bool__ = _refusing("bool")
    tolist = _refusing(".tolist()")
    numpy = __array__ = _refusing(".numpy()")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        raise transformed_error("requires_grad_()")

    def backward(self, *args: Any, **kw: Any) -> None:
        raise transformed_error("backward()")

    def is_contiguous(self, *args: Any, **kw: Any) -> bool:
        return self._layout.contiguous

    def __repr__(self, **kw: Any) -> str:
        return f"BatchedTensor(lvl={self.level}, bdim=0, value=\n    {self.value!r}\n)"

    __str__: Callable[..., str] = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    # ---- what interpreters answer
    holds = "value"

    def viewed(self, view: Callable[[Any], Any]) -> Any:
        return batch(view(self.value), self.level, self.place)

    def pointwise(self, op: Any, args: Sequence[Any]) -> Any:
        layouts = [a._layout if isinstance(a, Tensor) else a.__class__ for a in args]
        one = self._layout.dtype
        alike = all(k.__class__ is type or k.dtype is one for k in layouts)
        # the order of the result's dims follows from where they stand
        if len(args) == 1 and self.place and not op.c_order and not packed(self.value._layout):
            return batch(op.run([self.value.movedim(0, self.place)]).movedim(self.place, 0), self.level, self.place)
        operands = align(args, self.level)
        kinds = _TENSORS if op.numbers == "none" else _OPERANDS
        if op.quick is not None and operands[0].__class__ is Tensor and kinds.issuperset(map(type, operands)):
            out = op.quick(*operands)
        else:
            out = op.run(operands)
        if not alike:  # a batch of numbers has a dim where a number has none, and so more say in promotion
            d = op.result_dtypes(layouts)[1]
            if out.dtype is not d:
                out = OPS["to"].call(out, d)
        return batch(out, self.level)

    def pointwise_inplace(self, op: Any, args: Sequence[Any]) -> Any:
        target = args[0]
        _check_target(target, self.level, op.name + "_")
        for a in args[1:]:
            if isinstance(a, Tensor) and a.ndim > target.ndim:
                raise RuntimeError(
                    f"{op.name}_(): output with shape {list(target.shape)} doesn't match the broadcast shape of {list(a.shape)}"
                )
        operands = align(args[1:], self.level, target.ndim)
        keep(target)
        op.inplace([target.value, *operands])
        return target

    def structured(self, op: Any, args: tuple[Any, ...]) -> Any:
        return structured(op, args, self.level)

    def reduced(self, op: Any, args: Sequence[Any], dims: Any = None, keepdim: bool = False, mean: bool = False) -> Any:
        rank = max(a.ndim for a in args if isinstance(a, Tensor))
        dims = tuple(range(rank)) if dims is None else dims
        return batch(op(align(args, self.level), tuple(d + 1 for d in dims), keepdim, mean), self.level)

    def reduction(self, op: Any, args: Sequence[Any], dims: Sequence[int], *rest: Any) -> Any:
        found = op(align(args, self.level), tuple(d + 1 for d in dims), *rest)
        return tuple(batch(y, self.level) for y in found) if op.count > 1 else batch(found, self.level)

    def function(self, op: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
        rule = getattr(op, "vmap", None)
        if rule is None:
            raise Unbatched(self.level)
        info = _Info(levels.stack[-1].size, next((lv.randomness for lv in levels.stack if lv.number == self.level), "error"))
        places = tree_map(lambda a: min(a.place, a.ndim) if value_of(a, self.level)[1] else None, args)
        found = rule(info, places, *tree_map(lambda a: a.value.movedim(0, min(a.place, a.ndim)) if value_of(a, self.level)[1] else a, args))
        if not (isinstance(found, tuple) and len(found) == 2):
            raise RuntimeError(f"Expected the vmap staticmethod of {op.__name__} to have two returns: what it computed, and where the batch is in that")
        try:
            return rebatch(*found, self.level)
        except ValueError:
            raise RuntimeError(
                f"{op.__name__}.vmap returned an incompatible (output, out_dims): the dims {found[1]} are not nested as the outputs are"
            ) from None

    def in_place(self, name: str, compute: Callable[..., Any], target: Any, args: tuple[Any, ...], kw: dict[Any, Any]) -> Any:
        _check_target(target, self.level, name)
        result = compute(OPS["clone"].call(target), *args, **kw)
        check_result(name, layout_of(target.shape, None, target.dtype), layout_of(result.shape, None, result.dtype))
        keep(target)
        target.value.copy_(materialize(result, self.level, target.value.shape[0]))
        return target

    def write_inplace(self, op: Any, write: Callable[..., Any], target: Any, args: tuple[Any, ...]) -> Any:
        _check_target(target, self.level, op.name.removesuffix("_op") + "_")
        result = op(OPS["clone"].call(target), *args)
        keep(target)
        target.value.copy_(materialize(result, self.level, target.value.shape[0]))
        return target

    def seen_otherwise(self, view: Callable[[Any], Any]) -> Any:
        keep(self)
        mutation.seen_otherwise(self.value, lambda before: view(batch(before, self.level)).value)
        self._layout = batch(self.value, self.level)._layout
        return self


_TENSORS, _OPERANDS = frozenset((Tensor,)), frozenset((Tensor, int, float))


class _Info:
    """The arguments ``info`` of a user's vmap rule."""

    def __init__(self, batch_size: int, randomness: str):
        self.batch_size, self.randomness = batch_size, randomness


def keep(target: Batched) -> None:
    """Keep what a batch holds and is to be written over, for a run sample by sample that begins anew."""
    for lv in levels.stack:
        if lv.number == target.level:
            lv.keep(target.value)


def _check_target(target: Any, level: int, name: str) -> None:
    if not (isinstance(target, Batched) and target.level == level):
        raise RuntimeError(
            f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
            "elements than `self`: self is not being vmapped over, and what is written into it is. Make self with other's "
            "new_empty()/new_zeros(), or use the out-of-place version of the op."
        )


def batch(value: Tensor, level: int, place: int = 0) -> Batched:
    """Return ``value`` with its dim 0 as the batch of ``level``, which had been dim ``place``."""
    t = _new(Batched)
    layout = value._layout
    t.value, t.level, t.place = value, level, place
    t._layout = WrappedLayout(tuple.__new__(Size, layout.sizes[1:]), layout.strides[1:], layout.dtype)
    return t


def rebatch(found: Any, dims: Any, level: int) -> Any:
    """Return results with the batch at ``dims`` (nested alike; None where there is none). ValueError where they are not nested alike."""
    if isinstance(found, (tuple, list)):
        each = dims if isinstance(dims, (tuple, list)) else [dims] * len(found)
        return type(found)(rebatch(f, d, level) for f, d in zip(found, each, strict=True))
    if isinstance(dims, (tuple, list)):
        raise ValueError(dims)
    if dims is None or not isinstance(found, Tensor):
        return found
    return batch(found.movedim(dims, 0) if dims else found, level)


def value_of(a: Any, level: int) -> tuple[Any, bool]:
    """Return (what an argument holds at a level, whether it is a batch of that level)."""
    if isinstance(a, Batched) and a.level == level:
        return a.value, True
    return a, False


def materialize(a: Any, level: int, size: int) -> Tensor:
    """Return a tensor with the batch of a level in dim 0, stretched there where it is the same for all samples."""
    value, batched = value_of(a, level)
    return value if batched else value.unsqueeze(0).expand(size, *value.shape)


def align(args: Sequence[Any], level: int, rank: int | None = None) -> list[Any]:
    """Return operands that broadcast as the samples do: dims of size 1 between the batch and a sample of fewer dims."""
    if rank is None:
        rank = max([a._layout.ndim for a in args if isinstance(a, Tensor)])
    out = []
    for a in args:
        value, batched = value_of(a, level)
        if batched and a._layout.ndim < rank:
            value = value.reshape(value.shape[0], *(1,) * (rank - a._layout.ndim), *a._layout.sizes)
        out.append(value)
    return out


# ----------------------------------------------------------------------------------------- structured ops


class Batch:
    """A batch of ``size`` samples, as rules ask for it; ``level`` is that of its vmap."""

    level: int
    size: int

    __slots__ = ("level", "size")

    def __init__(self, level: int, size: int):
        self.level, self.size = level, size

    def of(self, x: Any) -> tuple[Any, bool]:
        """Return (what an argument holds, whether its dim 0 is the batch)."""
        return value_of(x, self.level)

    def whole(self, x: Tensor) -> Tensor:
        """Return what a tensor holds, stretched along the batch where it is the same for all samples."""
        return materialize(x, self.level, self.size)


def structured(op: Structured, args: tuple[Any, ...], level: int) -> Any:
    """Return the results of a structured op on batches of ``level``."""
    of = Batch(level, _size(args, level))
    out = None
    if op.batch == "shift":
        out = _shift(op, args, of)
    elif callable(op.batch) and of.size:  # (rules are for samples that there are)
        out = op.batch(op, args, of)
    if out is None:
        out = _one_by_one(op, args, of)
    if isinstance(out, (tuple, list)):
        return type(out)([batch(o, level) if isinstance(o, Tensor) else o for o in out])
    return batch(out, level)


def _size(args: Any, level: int) -> int:
    for a in args:
        if isinstance(a, (tuple, list)):
            n = _size(a, level)
            if n >= 0:
                return n
        elif isinstance(a, Tensor):
            value, batched = value_of(a, level)
            if batched:
                return value.shape[0]
    return -1


def _shift(op: Structured, args: tuple[Any, ...], of: Batch) -> Any:
    if isinstance(args[0], Tensor) and not args[0].ndim:
        named = dict(zip(op.params, args, strict=True))
        if any(name in named for name in ("d", "a", "b")) or any(named.get(name) for name in ("dims", "wdims")):
            return None  # a number has no dims, but answers to dim 0
    shifted: list[Any] = []
    for name, a in zip(op.params, args, strict=True):
        if isinstance(a, Tensor):
            shifted.append(of.whole(a))
        elif isinstance(a, (tuple, list)) and a and isinstance(a[0], Tensor):
            shifted.append(tuple(of.whole(t) for t in a))
        else:
            shift = SHIFTED.get(name)
            shifted.append(a if shift is None else shift(a, of.size))
    return op(*shifted)


def _one_by_one(op: Callable[..., Any], args: tuple[Any, ...], of: Batch) -> Any:
    """Return the stacked results of the op on each sample; where there is none their shapes are those for a sample of zeros."""
    if not of.size:
        one = Batch(of.level, 1)
        results = _one_by_one(op, tuple(_padded(a, of) for a in args), one)
        cut = (lambda t: t.narrow(0, 0, 0) if isinstance(t, Tensor) else t)
        return type(results)([cut(t) for t in results]) if isinstance(results, (tuple, list)) else cut(results)
    found = [op(*[_sample(a, of, i) for a in args]) for i in range(of.size)]
    first = found[0]
    if isinstance(first, (tuple, list)):
        parts = [OPS["stack"].call([f[k] for f in found]) if isinstance(t, Tensor) else t for k, t in enumerate(first)]
        return type(first)(parts) if type(first) in (tuple, list) else tuple(parts)
    return OPS["stack"].call(found)


def with_zeros(t: Tensor, d: int) -> Tensor:
    """Return a tensor with one slice of zeros more behind it along a dim."""
    shape = [1 if k == d % t.ndim else n for k, n in enumerate(t.shape)]
    return OPS["cat"].call([t, new_full(shape, 0, t.dtype)], d)  # type: ignore[no-any-return]


def _padded(a: Any, of: Batch) -> Any:
    if isinstance(a, (tuple, list)) and a and isinstance(a[0], Tensor):
        return type(a)([_padded(t, of) for t in a])
    value, batched = of.of(a)
    return batch(with_zeros(value, 0), of.level) if batched else a


def _sample(a: Any, of: Batch, i: int) -> Any:
    if isinstance(a, (tuple, list)) and a and isinstance(a[0], Tensor):
        return type(a)([_sample(t, of, i) for t in a])
    value, batched = of.of(a)
    return value.select(0, i) if batched else a
