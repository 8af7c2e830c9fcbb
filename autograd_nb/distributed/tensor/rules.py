"""What becomes of calls with tensors in parts: each gives the value that one process would compute, whatever the ranks have of it.

Element by element, and along dims that are not shared out, a rank computes of its own part. Sums over parts are left as summands (`Partial`), and
so are products whose inner dim is shared out. Views of a part are views. All else collects the operands, computes of whole tensors on all
ranks alike, and gives whole ones (`Replicate`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...autograd.torch_function import DisableTorchFunctionSubclass
from ...autograd.torch_function import state as torch_functions
from ...graph.modes import no_grad, state
from ...ops.core.registry import OPS
from ...ops.random.generator import default_generator
from ...ops.shape.shape import alias_view
from ...shapes import Size, layout_of
from ...tensor import Tensor, make
from ..collectives import broadcast
from ..group import get_rank, get_world_size
from . import products
from .layout import Sharding, moved, of_gradients, shared
from .mesh import Partial, Replicate, Shard
from .names import ALONG, LOCAL, NEW, REFUSED, SHAPED, VIEWS, elementwise

Function = Callable[..., Any]


def layout(t: Any) -> Sharding | None:
    """Return the layout of a tensor in parts, None for others."""
    return t.__dict__.get("_sharding") if isinstance(t, Tensor) else None


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _tensors(v)


def _map(change: Callable[[Tensor], Any], value: Any) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        made = [_map(change, v) for v in value]
        return type(value)(made) if type(value) in (list, tuple, Size) else type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, dict):
        return {k: _map(change, v) for k, v in value.items()}
    return value


class Call:
    """One call: the function, its name and arguments, and the tensors among these."""

    def __init__(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.func, self.args, self.kwargs = func, args, kwargs
        self.name = func.__name__
        self.tensors = list(_tensors((args, kwargs)))
        self.first: Sharding = next(s for s in map(layout, self.tensors) if s is not None)

    def check(self) -> None:
        """Raise RuntimeError for plain tensors beside those in parts, but for numbers, and for tensors of several meshes."""
        for t in self.tensors:
            own = layout(t)
            if own is None and t._layout.size != 1:
                raise RuntimeError(
                    f"{self.name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed operators! "
                    "(distribute_tensor(), DTensor.from_local(); or .to_local() and .full_tensor() of the DTensor)"
                )
            if own is not None and own.group is not self.first.group and own.mesh != self.first.mesh:
                raise RuntimeError(f"{self.name}: DTensors of several meshes, {self.first.mesh} and {own.mesh}: redistribute() to one")

    def whole(self, t: Tensor) -> tuple[int, ...]:
        """Return the shape that a tensor has in all ranks together."""
        own = layout(t)
        return own.whole if own is not None else tuple(t._layout.shape)

    def run(self, change: Callable[[Tensor], Any] | None = None) -> Any:
        """Call the function of this rank's parts, or of what ``change`` makes of them."""
        args, kwargs = (self.args, self.kwargs) if change is None else (_map(change, self.args), _map(change, self.kwargs))
        with DisableTorchFunctionSubclass():
            return self.func(*args, **kwargs)

    def marked(self, result: Any, of: Callable[[Tensor], Sharding]) -> Any:
        """Return the result with its tensors known as parts of what ``of`` tells."""
        return _map(lambda t: t if layout(t) is not None else of(t).mark(t), result)


# --------------------------------------------------------------------------------------------------------- whole tensors


def _alike(call: Call, compute: Callable[[], Any]) -> Any:
    """Compute what all ranks compute alike: where it draws random numbers, those that the first rank draws."""
    group, given = call.first.group, call.kwargs.get("generator")
    source = default_generator if given is None else given
    own = source._place
    result = compute()
    after = source._place
    if after == own:
        return result
    source._place = own
    first = source.get_state()
    broadcast(first, group=group, group_src=0)
    source.set_state(first)
    if source._place == own:
        source._place = after
        return result
    result = compute()
    if get_rank(group):
        source._place = own
    return result


def replicated(t: Tensor) -> Tensor:
    """Return the whole of a tensor in parts; others as they are."""
    own = layout(t)
    return t if own is None else moved(own, Replicate(), t) if own.placement != Replicate() else t


def _whole(call: Call) -> Any:
    """Compute of whole tensors, on all ranks alike."""
    given = {id(t): replicated(t) for t in call.tensors}
    result = _alike(call, lambda: call.run(lambda t: given[id(t)]))
    found = call.marked(result, lambda t: call.first.like(tuple(t._layout.shape), Replicate()))
    return _written_back(call, found) if call.name in VIEWS and call.first.placement != Replicate() else found


def _written_back(call: Call, found: Any) -> Any:
    """Let what is written into copies that stand for views be brought back."""
    for place, t in enumerate(_tensors(found)):
        t.__dict__["_copied"] = call, place
    return found


def _bring_back(t: Tensor) -> None:
    """Write what has changed in the copy that stands for a view where the view looks."""
    call, place = t.__dict__["_copied"]
    base = call.args[0]
    if state.grad and (t.requires_grad or base.requires_grad):
        raise RuntimeError(f"{call.name}() of a DTensor that is {call.first.placement} is a copy, whose changes have no gradient: change the DTensor itself")
    with no_grad():
        whole = call.first.collected(base)
        with DisableTorchFunctionSubclass():
            seen = call.func(whole, *call.args[1:], **call.kwargs)
            target = list(_tensors(seen))[place]
            target.copy_(t)  # type: ignore[attr-defined]
            Tensor.copy_(base, call.first.part(whole))  # type: ignore[attr-defined]
    if "_copied" in base.__dict__:
        _bring_back(base)


# ------------------------------------------------------------------------------------------------------ element by element


def _broadcast(call: Call) -> tuple[int, ...] | None:
    try:
        return tuple(np.broadcast_shapes(*[call.whole(t) for t in call.tensors]))
    except ValueError:
        return None


def _shared_dim(call: Call, shape: tuple[int, ...]) -> int | None:
    """Return the dim, counted from the end, along which the largest operand in parts is shared out; None where all are whole."""
    found = [(t._layout.size, own.dim - len(own.shape)) for t in call.tensors if (own := layout(t)) is not None and isinstance(own.placement, Shard)
             and not own.scalar and own.shape[own.dim] == shape[own.dim - len(own.shape)]]  # fmt: skip
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _fitted(call: Call, t: Tensor, n: int, r: int | None) -> Tensor:
    """Return an operand's part that goes with results shared out along dim ``r``, of ``n`` elements."""
    own, whole = layout(t), call.whole(t)
    if own is None:
        return t if r is None else shared(call.first.like(whole, Replicate()), t)
    if r is None or len(whole) < -r or whole[r] != n:
        found = replicated(t)
        return found if r is None else shared(own.like(whole, Replicate()), found)
    return moved(own, Shard(len(whole) + r), t)


def _elementwise(call: Call) -> Any:
    shape = _broadcast(call)
    if shape is None or (call.name == "where" and len(call.tensors) < 2 and len(call.args) + len(call.kwargs) < 3):
        return _whole(call)
    of = [own for own in map(layout, call.tensors) if own is not None]
    if len(call.tensors) == 1 and not call.first.scalar and isinstance(call.first.placement, Partial) and call.name in ("clone", "detach", "contiguous"):
        return call.marked(call.run(), lambda t: call.first)
    if all(own.scalar and own.same(of[0]) for own in of) and len(of) == len(call.tensors) and isinstance(of[0].placement, Shard):
        return call.marked(call.run(), lambda t: of[0])
    r = _shared_dim(call, shape)
    given = {id(t): _fitted(call, t, shape[r] if r is not None else 0, r) for t in call.tensors}
    out = call.first.like(shape, Replicate() if r is None else Shard(len(shape) + r))
    result = call.run(lambda t: given[id(t)])
    for t in _tensors(result):
        if tuple(t._layout.shape) != out.sizes():
            raise NotImplementedError(f"{call.name}: a DTensor of shape {out.whole} with parts {tuple(t._layout.shape)}; compute of .full_tensor()")
    return call.marked(result, lambda t: out)


# -------------------------------------------------------------------------------------------------------------- in place


def _in_place(call: Call) -> Any:
    target: Any = call.args[0] if call.args else call.kwargs.get("input", call.kwargs.get("self"))
    own = layout(target)
    if call.name in REFUSED or own is None or isinstance(own.placement, Partial):
        what = "a plain tensor" if own is None else f"a DTensor that is {own.placement}"
        raise NotImplementedError(f"{call.name}: not in place on {what}; use .to_local() for this rank's part, or redistribute() and the function without '_'")
    rest = [t for t in call.tensors if t is not target]
    if call.name.rstrip("_") in elementwise() or (call.name[:3] == "__i" and call.name in elementwise()):
        r = own.dim - len(own.shape) if isinstance(own.placement, Shard) and not own.scalar else None
        if call.name == "copy_" and rest and layout(rest[0]) is None and tuple(rest[0]._layout.shape) == own.sizes() != own.whole:
            call.run()  # this rank's rows, as files of them hold them
            return target
        call.check()
        if _broadcast(call) not in (own.whole, None) and call.name != "zero_":
            return call.run()  # which refuses it
        if not (own.scalar and isinstance(own.placement, Shard) and rest):
            given = {id(t): _fitted(call, t, own.shape[r] if r is not None else 0, r) for t in rest}
            call.run(lambda t: given.get(id(t), t))
            return _changed(target)
    call.check()
    given, before = {id(t): replicated(t) for t in rest}, replicated(target)

    def changed() -> Tensor:
        given[id(target)] = whole = OPS["clone"].call(before)
        call.run(lambda t: given[id(t)])
        return whole  # type: ignore[no-any-return]

    whole = _alike(call, changed)
    with DisableTorchFunctionSubclass():
        Tensor.copy_(target, moved(own.like(own.whole, Replicate()), own.placement, whole) if not own.scalar else own.part(whole))  # type: ignore[attr-defined]
    return None if call.name == "__setitem__" else _changed(target)


def _changed(target: Tensor) -> Tensor:
    if "_copied" in target.__dict__:
        _bring_back(target)
    return target


# ----------------------------------------------------------------------------------------------------------------- views


def _probe(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return a tensor of this shape whose numbers are never looked at, so that it has no memory yet."""
    return make(np.empty(max(math.prod(shape), 1), like.dtype.carrier), layout_of(shape, None, like.dtype), [0, 0])


def _view(call: Call) -> Any:
    """Look at this rank's part where the dim that is shared out stays one dim; else at a copy of the whole."""
    own, part = call.first, call.args[0] if call.args else None
    if layout(part) is None or (len(call.tensors) > 1 and call.name not in SHAPED):
        return _whole(call)
    if not isinstance(own.placement, Shard):
        others = {id(t): _probe(call.whole(t), t) for t in call.tensors[1:]}
        found = call.marked(call.run(lambda t: others.get(id(t), t)), lambda t: own.like(tuple(t._layout.shape), own.placement))
        return _written_back(call, found) if "_copied" in part.__dict__ else found
    if own.scalar or own.shape[own.dim] < 2 or not math.prod(own.shape):
        return _whole(call)
    probes = {id(t): _probe(call.whole(t), t) for t in call.tensors}
    seen = call.run(lambda t: probes[id(t)])
    step, layouts = math.prod(own.shape[own.dim + 1 :]), []
    for t in _tensors(seen):
        sizes, strides = tuple(t._layout.shape), tuple(t._layout.strides)
        kept = [k for k in range(len(sizes)) if sizes[k] == own.shape[own.dim] and strides[k] == step]
        if not kept or not np.may_share_memory(t._data, probes[id(part)]._data):
            return _whole(call)
        layouts.append(own.like(sizes, Shard(kept[0])))
    found = _looked(call, layouts)
    if found is None:
        return _whole(call)
    rest = iter(layouts)
    return call.marked(found, lambda t: next(rest))


def _pairs(call: Call) -> Any:
    """Look at complex numbers as pairs, or the other way round."""
    own = call.first
    if own.scalar or (call.name == "view_as_complex" and own.placement == Shard(len(own.shape) - 1)):
        return _written_back(call, _whole(call))
    sizes = (*own.whole, 2) if call.name == "view_as_real" else own.whole[:-1]
    return call.marked(call.run(), lambda t: own.like(sizes, own.placement))


def _looked(call: Call, layouts: list[Sharding]) -> Any:
    try:
        if call.name in SHAPED:
            kind = "expand" if call.name in ("expand", "expand_as", "broadcast_to") else "view" if call.name == "view" else "reshape"
            with DisableTorchFunctionSubclass():
                return getattr(Tensor, kind)(call.args[0], layouts[0].sizes())
        found = call.run()
    except (RuntimeError, IndexError, ValueError):
        return None
    same = [tuple(t._layout.shape) for t in _tensors(found)] == [s.sizes() for s in layouts]
    return found if same else None


# ------------------------------------------------------------------------------------------------------------ reductions


def _dims(call: Call, own: Sharding) -> tuple[int, ...] | None:
    """Return the dims along which a call works, none where it is all of them."""
    at = ALONG[call.name]
    given = call.kwargs.get("dim", call.kwargs.get("axis", call.args[at] if len(call.args) > at else None))
    if given is None or isinstance(given, (bool, str)):
        return {"argsort": (-1,), "sort": (-1,), "topk": (-1,), "kthvalue": (-1,), "diff": (-1,), "glu": (-1,), "normalize": (1,)}.get(call.name)
    if isinstance(given, int):
        given = (given,)
    if not isinstance(given, (tuple, list)) or not all(isinstance(d, int) for d in given) or not given:
        return None
    return tuple(given)


def _along(call: Call) -> Any:
    own = call.first
    if len(call.tensors) > 1 or "out" in call.kwargs or own.scalar or not isinstance(own.placement, Shard):
        return _whole(call)
    dims = _dims(call, own)
    ndim = len(own.shape)
    if dims is not None and any(not -ndim <= d < ndim for d in dims):
        return _whole(call)  # which refuses them
    over = set(range(ndim)) if dims is None else {d % ndim for d in dims}
    if own.dim not in over:
        result = call.run()
        gone = sum(d < own.dim for d in over)

        def of(t: Tensor) -> Sharding:
            sizes, at = list(t._layout.shape), own.dim if len(t._layout.shape) == ndim else own.dim - gone
            sizes[at] = own.shape[own.dim]
            return own.like(tuple(sizes), Shard(at))

        return call.marked(result, of)
    part = call.tensors[0]
    if call.name == "sum" or (call.name == "mean" and part.dtype.is_floating_point and not part.dtype.is_half and "dtype" not in call.kwargs):
        total = call.run() if call.name == "sum" else Call(OPS["sum"].call, call.args, call.kwargs).run()
        if call.name == "mean":
            total = total / math.prod(own.shape[d] for d in over)
        return call.marked(total, lambda t: own.like(tuple(t._layout.shape), Partial()))
    if call.name in ("norm", "vector_norm") and dims is None and not (state.grad and part.requires_grad) and _plain_power(call):
        norms = own.like((get_world_size(own.group),), Shard(0)).collected(call.run().reshape(1))
        return call.marked(call.run(lambda t: norms), lambda t: own.like(tuple(t._layout.shape), Replicate()))
    if call.name in _OF_PARTS and dims is None and len(call.args) == 1 and not call.kwargs and not (state.grad and part.requires_grad):
        if own.rows * (get_world_size(own.group) - 1) < own.shape[own.dim]:  # each rank has some
            found = call.run()
            each = own.like((get_world_size(own.group),), Shard(0)).collected(found.reshape(1))
            return call.marked(call.run(lambda t: each), lambda t: own.like((), Replicate()))
    return _whole(call)


#: what may be taken of the ranks' results as of the elements
_OF_PARTS = frozenset(["all", "any", "amax", "amin", "max", "min", "prod"])


def _plain_power(call: Call) -> bool:
    """Return whether the norm of the parts' norms is the norm of all."""
    p = call.kwargs.get("p", call.kwargs.get("ord", call.args[1] if len(call.args) > 1 else 2))
    return isinstance(p, (int, float)) and 0 < p < math.inf and set(call.kwargs) <= {"p", "ord"} and len(call.args) < 3


# ------------------------------------------------------------------------------------------------------------------ calls


def _size(call: Call) -> Any:
    sizes = Size(call.first.whole)
    dim = call.args[1] if len(call.args) > 1 else call.kwargs.get("dim")
    return sizes if dim is None else sizes[dim]


def _stride(call: Call) -> Any:
    found = strides(call.args[0])
    dim = call.args[1] if len(call.args) > 1 else call.kwargs.get("dim")
    return found if dim is None else found[dim]


def strides(t: Tensor) -> tuple[int, ...]:
    """Return the strides that the whole tensor would have."""
    own = layout(t)
    assert own is not None
    found = tuple(t._layout.strides)
    if not isinstance(own.placement, Shard) or own.scalar or not t._layout.size:
        return found
    return tuple(s // own.sizes()[own.dim] * own.shape[own.dim] if s > found[own.dim] else s for s in found)


def of_roots(roots: tuple[Any, ...], gradients: tuple[Any, ...]) -> list[Any]:
    """Return the gradients from which a backward pass begins as this rank's parts of them. RuntimeError for those that are no DTensors of their shape."""
    found: list[Any] = []
    for root, g in zip(roots, gradients, strict=True):
        own, given = layout(root), layout(g)
        if own is not None and g is None and math.prod(own.whole) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if own is None or g is None:
            found.append(g)
            continue
        if given is None and (g._layout.size != 1 or own.whole not in ((), (1,))):
            raise RuntimeError("the gradient of a DTensor must be a DTensor too, not a plain tensor: distribute_tensor() or DTensor.from_local() make one")
        found.append(g if given is None else moved(given, of_gradients(own.placement), g))
    return found


def of_inputs(inputs: Any, found: list[Any]) -> None:
    """Let gradients of tensors in parts be known as such."""
    for t, g in zip(inputs, found, strict=True):
        own = layout(t)
        if own is not None and g is not None:
            own.like(own.whole, of_gradients(own.placement)).mark(g)


def alike(function: Function, *args: Any, **kwargs: Any) -> Any:
    """Call a function that asks no class: of whole tensors, on all ranks alike, where arguments are in parts."""
    if all(layout(t) is None for t in _tensors((args, kwargs))):
        return function(*args, **kwargs)
    call = Call(function, args, kwargs)
    call.check()
    return _whole(call)


def _hooked(call: Call) -> Any:
    """Register a hook that sees a gradient in parts, and may return one."""
    (t, hook), own = call.args, call.first
    kind = own.like(own.whole, of_gradients(own.placement))

    def called(g: Tensor) -> Any:
        before, torch_functions.disabled = torch_functions.disabled, 0  # the hook is the program's
        try:
            found = hook(kind.mark(alias_view(g)))
        finally:
            torch_functions.disabled = before
        return None if found is None else alias_view(found)

    with DisableTorchFunctionSubclass():
        return call.func(t, called)


def _numbers(call: Call) -> int:
    return math.prod(call.first.whole)


SPECIAL: dict[str, Callable[[Call], Any]] = {
    "size": _size, "stride": _stride, "numel": _numbers, "nelement": _numbers, **dict.fromkeys(("dim", "ndimension"), lambda call: len(call.first.whole)),
    "backward": lambda call: call.func(*call.args, **call.kwargs), "register_hook": _hooked,
    "__len__": lambda call: len(call.args[0]._layout.shape) and call.first.whole[0], "register_post_accumulate_grad_hook": lambda call: call.run(),
    "view_as_real": _pairs, "view_as_complex": _pairs, "is_same_size": lambda call: call.whole(call.args[0]) == call.whole(call.args[1]),
}  # fmt: skip


def apply(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a call gives whose arguments, some of them, are tensors in parts."""
    call = Call(func, args, kwargs)
    name = call.name
    if name in SPECIAL:
        return SPECIAL[name](call)
    if name in LOCAL:
        return call.run()
    if kwargs.get("out") is not None:
        raise NotImplementedError(f"{name}(out=…): not with a DTensor; assign the result, or compute of .to_local() or .full_tensor()")
    if name.startswith("as_strided") and name[-1] != "_":
        raise NotImplementedError(f"{name}: a DTensor's memory is that of one rank's part; use .to_local() for that, or .full_tensor()")
    if name in REFUSED or name == "__setitem__" or (name[-1] == "_" and name[-2] != "_") or (name[:3] == "__i" and name in elementwise() and
                                                                                        name != "__invert__"):  # fmt: skip
        return _in_place(call)
    call.check()
    if name in NEW:
        return call.marked(call.run(), lambda t: call.first.like(tuple(t._layout.shape), Replicate()))
    if all(own is None or own.placement == Replicate() for own in map(layout, call.tensors)) and name not in VIEWS:
        return _whole(call)
    if name in elementwise():
        return _elementwise(call)
    if name in VIEWS:
        return _view(call)
    if name in products.RULES:
        found = products.RULES[name](call)
        if found is not None:
            return found
    if name in ALONG:
        return _along(call)
    return _whole(call)

