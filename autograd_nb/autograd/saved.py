"""Hooks on what the graph saves for backward: `saved_tensors_hooks`, and what is built on it.

A node's saved arrays may be any sequence: with hooks it is one that unpacks them when the rule asks for them. Ops record quickly
where they find a plan; while hooks are active their tables of plans are empty, so that all come the long way, whose recording is
overridden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from .. import launch
from ..graph.modes import PerThread
from ..graph.nested import users
from ..graph.node import Node
from ..ops.core import pointwise
from ..ops.core.memo import Memo
from ..ops.core.pointwise import Pointwise
from ..ops.core.pointwise_backward import raw_saved
from ..ops.core.structured import Structured
from ..overriding import Overrides, whole
from ..shapes import Layout, is_expanded
from ..tensor import Tensor, make
from . import function

__all__ = [
    "Packed",
    "SavedTensor",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "save_on_cpu",
    "replace_saved",
    "saved_tensors_hooks",
]


class _State(PerThread):
    def __init__(self) -> None:
        self.stack: list[tuple[Callable[..., Any], Callable[..., Any]]] = []
        self.waiting: list[Node] | None = None  # nodes of an in-place op that has not written yet
        self.disabled: str | None = None
        self.mutable = False  # inside of allow_mutation_on_saved_tensors


_state = _State()


def _plans(*memos: Memo) -> list[dict[Any, Any]]:
    return [memo.plans for memo in memos]


class _Hooked(Overrides):
    """Overrides of the recording of nodes; while active, ops do not find their plans by the fast path."""

    memos: list[tuple[Pointwise, Memo, Memo]]

    def opened(self) -> None:
        self.memos = [(op, op.memo, op.inplace_memo) for op in pointwise.EVERY]
        for op, *_ in self.memos:
            op.memo, op.inplace_memo = Memo(), Memo()
        launch.move([pair for op, *memos in self.memos for pair in zip(_plans(*memos), _plans(op.memo, op.inplace_memo), strict=True)])

    def closed(self) -> None:
        launch.move([pair for op, *memos in self.memos for pair in zip(_plans(op.memo, op.inplace_memo), _plans(*memos), strict=True)])
        for op, memo, inplace in self.memos:
            op.memo, op.inplace_memo = memo, inplace


_OVERRIDES = _Hooked()


def _restore(stack: list[Any]) -> None:
    """Bring the stack of hooks, and with it the count of those that are active, back to what it was."""
    for _ in range(len(stack), len(_state.stack)):
        _OVERRIDES.leave()
    for _ in range(len(_state.stack), len(stack)):
        _OVERRIDES.enter()
    _state.stack = stack


@contextmanager
def unhooked() -> Iterator[None]:
    """Save without hooks within the context: what a compiled call runs a second time is not what the user's hooks are meant for."""
    before = _state.stack
    _restore([])
    try:
        yield
    finally:
        _restore(before)


class Packed(Sequence[Any]):
    """Saved items that are unpacked whenever they are read."""

    items: list[Any]
    unpack: Callable[..., Any]

    __slots__ = ("items", "unpack")

    def __init__(self, items: list[Any], unpack: Callable[..., Any]):
        self.items, self.unpack = items, unpack

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self._item(i) for i in self.items[k]]
        return self._item(self.items[k])

    def __iter__(self) -> Iterator[Any]:
        return iter([self._item(i) for i in self.items])

    @users
    def _item(self, item: Any) -> Any:
        if not isinstance(item, _Item):
            return item
        before = _state.stack
        try:
            t = (item.unpack or self.unpack)(item.packed)
        finally:
            _restore(before)  # a hook that enters or leaves contexts does so for itself
        if not isinstance(t, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(t).__name__}"
            )
        if t.shape != item.layout.shape or t.dtype is not item.layout.dtype:
            raise RuntimeError(
                f"unpack_hook returned a tensor of shape {list(t.shape)} and dtype {t.dtype} for one that was packed with shape "
                f"{list(item.layout.shape)} and dtype {item.layout.dtype}"
            )
        found = _as_laid_out(t.detach(), item.layout)
        return item.restored(found._data, found._version_)


class _Item:
    """A packed array: what the hook made of it, its layout, how it stood in the node's list, and the hook of its own that unpacks it, if any."""

    __slots__ = ("layout", "packed", "restored", "unpack")

    def __init__(self, packed: Any, layout: Layout, restored: Callable[..., Any], unpack: Callable[..., Any] | None = None):
        self.packed, self.layout, self.restored, self.unpack = packed, layout, restored, unpack


def _as_laid_out(t: Tensor, layout: Layout) -> Tensor:
    """Return ``t`` in memory as a kernel that was planned for ``layout`` reads it."""
    if t._layout is layout:
        return t
    if layout.contiguous:
        return t.contiguous()
    room = make(pointwise.launch.empty(layout.extent, layout.dtype.carrier), layout, [0, 0])
    if is_expanded(layout):  # what repeats in memory is written once
        once = tuple([slice(0, 1) if not s else slice(None) for s in layout.strides])
        room.detach()[once].copy_(t[once])
    else:
        room.copy_(t)
    return room


def arrays_of(node: Any) -> list[tuple[Any, Layout] | None]:
    """Return (array, layout) of each saved item of a node, None for what is no array."""
    if hasattr(node, "spec"):
        spec = node.spec
        found: list[Any] = [(a, spec.out if w == "out" else spec.avals[w]) for w, a in zip(spec.saved, node.saved, strict=False)]
        return found + [None] * (len(node.saved) - len(found))
    if isinstance(node, function.FunctionNode):
        return [None if s is None else (s[0], s[1]) for s in node.saved]
    return [(s[1], s[2]) for s in node.saved]


def _restorer(node: Any, item: Any) -> Callable[..., Any]:
    if hasattr(node, "spec"):
        return lambda data, version: data
    if isinstance(node, function.FunctionNode):
        _, layout, _, target, leaf = item
        return lambda data, version: (data, layout, version, target if leaf is None else leaf, None)
    p, _, layout, e = item
    return lambda data, version: (p, data, layout, e)


def replace_saved(node: Any, packed: Callable[[Tensor], Any], unpack: Callable[..., Any]) -> None:
    """Let ``packed(tensor)`` stand for each array that a node saved; ``unpack`` gives a tensor for it."""
    if not node.saved or isinstance(node.saved, Packed):
        return
    items: list[Any] = []
    for item, found in zip(node.saved, arrays_of(node), strict=True):
        if found is None:
            items.append(item)
            continue
        data, layout = found
        items.append(_Item(packed(make(data, layout, [0, 0])), layout, _restorer(node, item)))
    # what is done to the tensors from now on does not concern what the hook made of them
    node.versions = tuple([0, 0] for _ in node.counters())
    node.stamp = 0
    node.saved = Packed(items, unpack)


def _recorded(node: Any) -> None:
    if not _state.stack or node is None or not node.saved:
        return
    if _state.waiting is not None:
        _state.waiting.append(node)
        return
    pack, unpack = _state.stack[-1]
    replace_saved(node, _checked(pack), unpack)


def _checked(pack: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    """Return a pack hook that may neither be hooked itself nor change what it is given."""

    def checked(t: Tensor) -> Any:
        stack, _state.stack = _state.stack, []  # what the hook computes is its own affair
        try:
            made = pack(t)
        finally:
            _state.stack = stack
        if t._version_[0]:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by "
                "in-place operations as this can lead to unexpected side-effects: let the hook compute a new tensor."
            )
        return made

    return checked


class SavedTensor:
    """The place of one tensor in a node: ``grad_fn._raw_saved_self`` and the like, or an element of a Function's ``_raw_saved_tensors``.

    >>> x = torch.ones(2, requires_grad=True)
    >>> y = x * x
    >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t * 4, lambda t: t / 2)
    >>> y.sum().backward()
    >>> x.grad
    tensor([3., 3.])
    """

    __slots__ = ("_index", "_node")
    _node: Any
    _index: int

    def __init__(self, *args: Any) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden")

    def register_hooks(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor] | None = None) -> None:
        """Keep ``pack_hook(tensor)`` in its place, from which ``unpack_hook`` makes it again; as `saved_tensors_hooks` for this one.

        Errors: RuntimeError for a second pair of hooks, where nothing is kept, or no longer; TypeError for what cannot be called.
        """
        node, k = self._node, self._index
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise TypeError("register_hooks(): incompatible function arguments: it takes two functions, pack_hook and unpack_hook")
        if node.saved is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed when you call "
                ".backward() or autograd.grad(): say retain_graph=True there."
            )
        packed = isinstance(node.saved, Packed)
        items = list(node.saved.items if packed else node.saved)
        item = items[k]
        if isinstance(item, _Item):
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set.")
        if item is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if isinstance(node, function.FunctionNode):
            data, layout = item[:2]
        else:
            which = node.spec.saved[k]
            data, layout = item, node.spec.out if which == "out" else node.spec.avals[which]
        items[k] = _Item(_checked(pack_hook)(make(data, layout, [0, 0])), layout, _restorer(node, item), unpack_hook)
        node.saved = Packed(items, node.saved.unpack if packed else unpack_hook)


def _raw(node: Any, index: int) -> SavedTensor:
    found: SavedTensor = object.__new__(SavedTensor)
    found._node, found._index = node, index
    return found


raw_saved.append(_raw)


@_OVERRIDES.at(Pointwise, "record")
def _pointwise(inner: Callable[..., Any]) -> Callable[..., Any]:
    def record(self: Pointwise, plan: Any, args: Sequence[Any], out: Tensor) -> bool:
        done = inner(self, plan, args, out)
        if done:
            _recorded(out._edge)
        return done

    return record


@_OVERRIDES.at(Pointwise, "record_in_place")
def _pointwise_in_place(inner: Callable[..., Any]) -> Callable[..., Any]:
    def record_in_place(self: Pointwise, plan: Any, args: Sequence[Any]) -> Any:
        node = inner(self, plan, args)
        _recorded(node)
        return node

    return record_in_place


@_OVERRIDES.at(Pointwise, "inplace")
def _inplace(inner: Callable[..., Any]) -> Callable[..., Any]:
    def inplace(self: Pointwise, args: Sequence[Any]) -> Tensor:
        before, _state.waiting = _state.waiting, []
        try:
            out = inner(self, args)
            nodes = _state.waiting
        finally:
            _state.waiting = before
        for node in nodes:  # it has written: the output is there to be saved
            _recorded(node)
        return out

    return inplace


@_OVERRIDES.at(Structured, "record")
def _structured(inner: Callable[..., Any]) -> Callable[..., Any]:
    def record(self: Structured, args: tuple[Any, ...], out: Any, depth: int = 1) -> None:
        inner(self, args, out, depth)
        first = next((o for o in (out if isinstance(out, (tuple, list)) else (out,)) if o._edge is not None), None)
        if first is not None:
            _recorded(getattr(first._edge, "node", first._edge))

    return record


@_OVERRIDES.at(function._save)
def _function(inner: Callable[..., Any]) -> Callable[..., Any]:
    def save(node: Any, args: tuple[Any, ...], outs: list[Any], results: list[Any]) -> None:
        inner(node, args, outs, results)
        _recorded(node)

    return save


class saved_tensors_hooks:
    """Context in which what ops save for backward goes through ``pack_hook(tensor)``, and comes back by ``unpack_hook(packed)``.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), torch.from_numpy):
        ...     y = (x * x).sum()
        >>> y.backward()

    Errors: TypeError where unpack_hook returns no tensor, RuntimeError where its shape or dtype is another.
    Source: https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.saved_tensors_hooks
    """

    pack_hook: Callable[..., Any]
    unpack_hook: Callable[..., Tensor]

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    @whole
    def __enter__(self) -> None:
        if _state.disabled is not None:
            raise RuntimeError(_state.disabled)
        _restore([*_state.stack, (self.pack_hook, self.unpack_hook)])

    @whole
    def __exit__(self, *error: Any) -> None:
        if _state.stack:
            _restore(_state.stack[:-1])


class save_on_cpu(saved_tensors_hooks):
    """Context that keeps copies of what ops save; here all is on the CPU, so it only shields it from later changes in place.

    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.autograd.graph.save_on_cpu(): y = x * x
    ...
    >>> y.backward()
    >>> x.grad
    tensor([2.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda t: t.clone(), lambda t: t)


class _Copy:
    """A copy of what an op saved, for as long as its context has not been left or cleared."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Tensor | None):
        self.tensor = tensor


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Context in which tensors that were saved for backward may be changed in place: copies are saved, and dropped when it is left.

    Errors: AssertionError in a backward pass outside of the context in which the graph was recorded, RuntimeError in a context in another.

    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors(): y = x * 2; z = y * y; _ = y.add_(1); z.backward()
    ...
    >>> x.grad
    tensor([8.])
    """

    copies: WeakSet[_Copy]

    def __init__(self) -> None:
        super().__init__(self._packed, self._unpacked)
        self.copies = WeakSet()

    def _packed(self, t: Tensor) -> _Copy:
        copy = _Copy(t.clone())
        self.copies.add(copy)
        return copy

    @staticmethod
    def _unpacked(copy: _Copy) -> Any:
        if copy.tensor is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally recorded: "
                "call backward() before it is left or cleared"
            )
        return copy.tensor

    def __enter__(self) -> Any:
        if _state.mutable:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested: leave the outer one first")
        super().__enter__()
        _state.mutable = True
        return self

    def __exit__(self, *error: Any) -> None:
        _state.mutable = False
        super().__exit__(*error)
        self.clear()

    def clear(self) -> None:
        """Drop the copies; what was recorded up to now cannot be differentiated any more."""
        for copy in self.copies:
            copy.tensor = None
        self.copies = WeakSet()


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Make `saved_tensors_hooks` a RuntimeError within the context, with this message."""
    before, _state.disabled = _state.disabled, error_message
    try:
        if _state.stack:
            raise RuntimeError(error_message)
        yield
    finally:
        _state.disabled = before


def hooks_allowed() -> bool:
    """Return whether `saved_tensors_hooks` may be entered: outside of `disable_saved_tensors_hooks`."""
    return _state.disabled is None
