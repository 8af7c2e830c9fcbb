"""What becomes of calls with tensors in parts: each gives the value that one process would compute, whatever the ranks have of it.

Element by element, and along dims that are not shared out, a rank computes of its own part. Sums over parts are left as summands (`Partial`), and
so are products whose inner dim is shared out. Views of a part are views. All else collects the operands, computes of whole tensors on all
ranks alike, and gives whole ones (`Replicate`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
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
from .calls import Call, Function, changed, layout, tensors_of
from .layout import Sharding, in_order_of, moved, relaid, shared
from .mesh import Partial, Replicate, Shard
from .names import ALONG, LOCAL, NEW, REFUSED, SHAPED, VIEWS, elementwise

# --------------------------------------------------------------------------------------------------------- whole tensors


def _alike(call: Call, compute: Callable[[], Any]) -> Any:
    """Compute what all ranks compute alike: where it draws random numbers, those that the first rank draws."""
    group, given = call.first.group, call.kwargs.get("generator")
    source = default_generator if given is None else given
    own = source._place
    if call.first.below is not None:
        known = call.name in elementwise() or call.name in VIEWS or call.name in ALONG or call.name in products.RULES
        return compute() if known else _drawn(call, source, compute)
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


def _drawn(call: Call, source: Any, compute: Callable[[], Any]) -> Any:
    """Compute what may draw random numbers, along all dims of a mesh: those of its first rank, whose place the others do not take."""
    own, first = source._place, source.get_state()
    for level in call.first.levels:
        broadcast(first, group=level.group, group_src=0)
    source.set_state(first)
    try:
        return compute()
    finally:
        if any(get_rank(level.group) for level in call.first.levels):
            source._place = own


def replicated(t: Tensor) -> Tensor:
    """Return the whole of a tensor in parts; others as they are."""
    own = layout(t)
    return t if own is None else moved(own, Replicate(), t) if own.placement != Replicate() else t


def _whole(call: Call) -> Any:
    """Compute of whole tensors, on all ranks alike."""
    given = {id(t): replicated(t) for t in call.tensors}
    result = _alike(call, lambda: call.run(lambda t: given[id(t)]))
    found = call.marked(result, lambda t: call.first.like(call.part(t), Replicate()))
    return _written_back(call, found) if call.name in VIEWS and call.first.placement != Replicate() else found


def _written_back(call: Call, found: Any) -> Any:
    """Let what is written into copies that stand for views be brought back."""
    for place, t in enumerate(tensors_of(found)):
        t.__dict__["_copied"] = call, place
    return found


def _from(own: Sharding, t: Tensor) -> Tensor:
    """Return the whole of a copy that stands for a view, as the ranks along the dims of a layout have it."""
    known = layout(t)
    while known is not None and len(known.dims) > len(own.dims):
        known = known.below
    return t if known is None or known.below is None else known.collected(t)


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
            target = list(tensors_of(seen))[place]
            target.copy_(_from(call.first, t))  # type: ignore[attr-defined]
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
    found = [(math.prod(own.whole), own.dim - len(own.shape)) for t in call.tensors if (own := layout(t)) is not None and isinstance(own.placement, Shard)
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
    for t in tensors_of(result):
        if call.part(t) != out.sizes():
            raise NotImplementedError(f"{call.name}: a DTensor of shape {out.whole} with parts {call.part(t)}; compute of .full_tensor()")
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
        if call.name == "copy_" and rest and layout(rest[0]) is None and tuple(rest[0]._layout.shape) == own.own != own.whole:
            call.raw()  # this rank's rows, as files of them hold them
            return target
        call.check()
        if _broadcast(call) not in (own.whole, None) and call.name != "zero_":
            return call.run()  # which refuses it
        local = not (own.scalar and isinstance(own.placement, Shard) and rest)
        if own.below is not None and not all(known.even for known in map(layout, call.tensors) if known is not None):
            local = _placed_alike(call)
            rest = [] if local else rest
        if local:
            given = {id(t): _fitted(call, t, own.shape[r] if r is not None else 0, r) for t in rest}
            call.run(lambda t: given.get(id(t), t))
            return _changed(target)
    call.check()
    given, before = {id(t): replicated(t) for t in rest}, replicated(target)

    def altered() -> Tensor:
        given[id(target)] = whole = call.compute(OPS["clone"].call, before)
        call.run(lambda t: given[id(t)])
        return whole  # type: ignore[no-any-return]

    whole = _alike(call, altered)
    with DisableTorchFunctionSubclass():
        alone = own.scalar and own.below is None
        Tensor.copy_(target, own.part(whole) if alone else moved(own.like(own.whole, Replicate()), own.placement, whole))  # type: ignore[attr-defined]
    return None if call.name == "__setitem__" else _changed(target)


def _changed(target: Tensor) -> Tensor:
    if "_copied" in target.__dict__:
        _bring_back(target)
    return target


# ------------------------------------------------------------------------------------------------- parts of several sizes


def _placed_alike(call: Call) -> bool:
    """Return whether all operands have one layout, but for numbers."""
    first = call.first
    known = [own for t in call.tensors if (own := layout(t)) is not None]
    if any(t.requires_grad for t in call.tensors if layout(t) is None):
        return False
    if any(own.whole != first.whole or own.placements != first.placements for own in known):
        return False
    return not any(isinstance(level.placement, Partial) for level in first.levels)


def _evened(t: Tensor) -> Tensor:
    """Return a tensor whose parts have several sizes along the first dim of its mesh as one of which each rank there has all."""
    own = layout(t)
    if own is None or own.even:
        return t
    target = own.replaced(own.whole, Replicate(), *[level.placement for level in own.levels[1:]])
    return target.mark(relaid(own, target, t))  # type: ignore[no-any-return]


def _uneven(call: Call) -> Any:
    """Compute where ranks along the first of several dims of a mesh have parts of several sizes: what they do along the others must be one."""
    if call.name in elementwise() and _placed_alike(call) and _broadcast(call) == call.first.whole:
        return changed(lambda t: call.first.mark(t), call.raw())
    if call.name in VIEWS:
        return _whole(call)
    return apply(call.func, *changed(_evened, (call.args, call.kwargs)))


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
        found = call.marked(call.run(lambda t: others.get(id(t), t)), lambda t: own.like(call.part(t), own.placement))
        return _written_back(call, found) if "_copied" in part.__dict__ else found
    if own.scalar or own.shape[own.dim] < 2 or not math.prod(own.shape):
        return _whole(call)
    probes = {id(t): _probe(call.whole(t), t) for t in call.tensors}
    seen = call.raw(lambda t: probes[id(t)])
    step, layouts = math.prod(own.shape[own.dim + 1 :]), []
    for t in tensors_of(seen):
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
    if own.scalar or (own.below is not None and not own.even) or (call.name == "view_as_complex" and own.placement == Shard(len(own.shape) - 1)):
        return _written_back(call, _whole(call))
    sizes = (*own.whole, 2) if call.name == "view_as_real" else own.whole[:-1]
    return call.marked(call.run(), lambda t: own.like(sizes, own.placement))


def _looked(call: Call, layouts: list[Sharding]) -> Any:
    try:
        if call.name in SHAPED:
            kind = "expand" if call.name in ("expand", "expand_as", "broadcast_to") else "view" if call.name == "view" else "reshape"
            return call.compute(getattr(Tensor, kind), call.args[0], layouts[0].sizes())
        found = call.run()
    except (RuntimeError, IndexError, ValueError):
        return None
    same = [call.part(t) for t in tensors_of(found)] == [s.sizes() for s in layouts]
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
            sizes = list(call.part(t))
            at = own.dim if len(sizes) == ndim else own.dim - gone
            sizes[at] = own.shape[own.dim]
            return own.like(tuple(sizes), Shard(at))

        return call.marked(result, of)
    part = call.tensors[0]
    if call.name == "sum" or (call.name == "mean" and part.dtype.is_floating_point and not part.dtype.is_half and "dtype" not in call.kwargs):
        total = call.compute(OPS["sum"].call, *call.args, **call.kwargs)
        if call.name == "mean":
            total = call.compute(OPS["div"].call, total, math.prod(own.shape[d] for d in over))
        return call.marked(total, lambda t: own.like(call.part(t), Partial()))
    if own.below is not None:
        return _whole(call)
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
    if own.below is not None:
        return tuple(layout_of(own.whole, None, t.dtype).strides)
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
        found.append(g if given is None else relaid(given, own.gradients(), g))
    return found


def summed(own: Sharding, placements: Any, part: Tensor) -> Tensor:
    """Return what a rank has, whose gradients are summands along the dims of the mesh for which ``placements`` says so."""
    for level in own.levels if placements is not None else ():
        if isinstance(placements[level.dims[0]], Partial) and not isinstance(level.placement, Shard):
            part = shared(Sharding(level.group, tuple(part._layout.shape), Replicate(), level.mesh, level.dims[:1]), part)
    return part


def of_inputs(inputs: Any, found: list[Any]) -> None:
    """Let gradients of tensors in parts be known as such."""
    for t, g in zip(inputs, found, strict=True):
        own = layout(t)
        if own is not None and g is not None:
            own.gradients().mark(g)


def alike(function: Function, *args: Any, **kwargs: Any) -> Any:
    """Call a function that asks no class: of whole tensors, on all ranks alike, where arguments are in parts."""
    if all(layout(t) is None for t in tensors_of((args, kwargs))):
        return function(*args, **kwargs)
    call = Call(function, args, kwargs, lambda function, args, kwargs: alike(function, *args, **kwargs))
    call.check()
    return _whole(call)


def _hooked(call: Call) -> Any:
    """Register a hook that sees a gradient in parts, and may return one."""
    (t, hook), own = call.args, call.first
    kind = own.gradients()

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


#: views whose shape is another tensor's -> those that are given the shape
_LIKE = {"view_as": "view", "reshape_as": "reshape", "expand_as": "expand"}
SPECIAL: dict[str, Callable[[Call], Any]] = {
    "size": _size, "stride": _stride, "numel": _numbers, "nelement": _numbers, **dict.fromkeys(("dim", "ndimension"), lambda call: len(call.first.whole)),
    **dict.fromkeys(("backward", "grad"), lambda call: call.func(*call.args, **call.kwargs)), "register_hook": _hooked,
    "__len__": lambda call: len(call.args[0]._layout.shape) and call.first.whole[0], "register_post_accumulate_grad_hook": lambda call: call.raw(),
    "view_as_real": _pairs, "view_as_complex": _pairs, "is_same_size": lambda call: call.whole(call.args[0]) == call.whole(call.args[1]),
}  # fmt: skip


def apply(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a call gives whose arguments, some of them, are tensors in parts."""
    call = Call(func, args, kwargs)
    if call.first.below is not None and any(own is not None and own.dims != call.first.dims for own in map(layout, call.tensors)):
        call = Call(func, *changed(partial(in_order_of, call.first), (args, kwargs)))
    name = call.name
    if name in SPECIAL:
        return SPECIAL[name](call)
    if name in LOCAL:
        return call.raw()
    if kwargs.get("out") is not None:
        raise NotImplementedError(f"{name}(out=…): not with a DTensor; assign the result, or compute of .to_local() or .full_tensor()")
    if name.startswith("as_strided") and name[-1] != "_":
        raise NotImplementedError(f"{name}: a DTensor's memory is that of one rank's part; use .to_local() for that, or .full_tensor()")
    if name in REFUSED or name == "__setitem__" or (name[-1] == "_" and name[-2] != "_") or (name[:3] == "__i" and name in elementwise() and
                                                                                        name != "__invert__"):  # fmt: skip
        return _in_place(call)
    call.check()
    if name in NEW:
        return call.marked(call.raw(), lambda t: call.first.like(tuple(t._layout.shape), Replicate()))
    if call.first.below is not None and name in _LIKE:
        name, (args, kwargs) = _LIKE[name], ((call.args[0], call.whole(call.tensors[1])), {})
        call = Call(OPS[name].call, args, kwargs)
    if call.first.below is not None and not all(own.even for own in map(layout, call.tensors) if own is not None):
        return _uneven(call)
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


Call.apply = staticmethod(apply)
