"""Tensor: a flat array read through a layout, with a place in the graph.

``_data`` is a flat C array of the storage that *begins at the tensor's first element*, so a kernel never needs an offset;
``_layout`` says how to walk it. ``_version_`` is the list [times changed in place, times its history was rewritten], shared
by every tensor of the storage but for what `.data` gives (`graph.versions`). ``_edge`` is where its gradient flows (None for leaves).
``_view`` is the base that a view looks at, or None; then ``_seen`` says as of which change of the memory its history is, and
``_view_kind`` how it was made ("", "multi:<Name>", or one of `UNTRACKED`): slots, as an object costs half a view. `autograd_nb.ops` adds methods.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from . import launch
from .dtypes import dtype, from_numpy_dtype
from .errors import AMBIGUOUS, OVERRIDDEN, SEVERAL, UNTRACKED, AutogradError, warn_user
from .graph import detached, ownership, versions
from .graph.hooks import NodeHooks, RemovableHandle, check_callable
from .graph.modes import state
from .graph.node import ENDS, Node, Nowhere, Output, Within, accumulator, expect, finish, set_edges
from .graph.slots import copy_attributes
from .graph.transformed import refuse_transformed
from .graph.versions import COUNTED
from .shapes import Layout, Size, layout_of

if TYPE_CHECKING:  # what the ops attach
    from .ops.signatures.tensor import TensorMethods as _TensorMethods
else:
    _TensorMethods = object


class Above:
    """The functions that tensors need of layers above theirs, which hand them in here when they are imported."""

    legacy_tensor: Callable[..., Any]
    reduce_tensor: Callable[[Any], Any]
    embed_view: Callable[..., Tensor]
    write_view: Callable[..., Tensor]
    read_view: Callable[..., Tensor]
    without_view: Callable[..., Tensor]
    base_of: Callable[[Tensor], Tensor | None]
    plain: Callable[[Tensor], Tensor]
    resolve: dict[str, Callable[[Tensor], Tensor]]  #: by mark
    subclassed: Callable[[type], None]
    lone_views = False  #: whether a compiled function has ever returned a view that is `ALONE`


above = Above()


class TensorMeta(type):
    """`Tensor` can be called as PyTorch's legacy constructor; the ops make tensors through ``_make``."""

    if not TYPE_CHECKING:  # checkers take the result for Any then, Parameters' as well, and look at no `__new__`

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return above.legacy_tensor(*args, **kwargs) if cls is Tensor else super().__call__(*args, **kwargs)


class Tensor(_TensorMethods, metaclass=TensorMeta):
    """An n-dimensional array that records what is computed from it.

    Make one with `tensor`, `zeros`, `from_numpy`, …; ``Tensor(2, 3)`` (uninitialised) and ``Tensor([1, 2])`` are PyTorch's legacy constructors.

    Source: https://docs.pytorch.org/docs/stable/tensors.html

    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = (
        "__dict__", "__weakref__", "_data", "_edge", "_grad", "_layout", "_leaf_hook_set", "_rg", "_seen", "_version_", "_view", "_view_kind",
    )  # fmt: skip

    _data: np.ndarray[Any, Any]
    _layout: Layout
    _version_: list[int]
    _rg: bool
    _edge: Any
    _grad: Any
    _view: Tensor | None
    _view_kind: str
    _seen: Any
    _leaf_hook_set: Any

    is_leaf_edge = True  # in the graph a leaf is its own end (see graph.node)
    outputs = 1
    seq = -1
    __array_priority__ = 1000  # NumPy's operators leave the work to ours

    # ------------------------------------------------------------------------------------------- inspection
    @property
    def shape(self) -> Size:
        """Return the sizes of the dims."""
        return self._layout.shape

    @property
    def dtype(self) -> dtype:
        """Return the element type."""
        return self._layout.dtype

    @property
    def ndim(self) -> int:
        """Return the number of dims."""
        return self._layout.ndim

    @property
    def requires_grad(self) -> bool:
        """Return whether gradients flow to this tensor; settable on leaves."""
        if self._view is not None:
            return _view_requires_grad(self)
        return self._rg

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and _stays_inside(self):
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")
        set_requires_grad(self, value, "only Tensors of floating point and complex")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set ``requires_grad`` in place; the tensor."""
        refuse_transformed("requires_grad_()")
        set_requires_grad(self, requires_grad, "only Tensors of floating point")
        return self

    @property
    def is_leaf(self) -> bool:
        """Return True for tensors made by the user and for all that do not require grad."""
        if self._view is not None:
            refresh(self, always=True)
        return self._edge is None or not self._rg or self._edge.__class__ in ENDS

    @property
    def grad_fn(self) -> Node | None:
        """Return the node that made this tensor, None for a leaf."""
        if self._view is not None:
            refresh(self, always=True)
        e = self._edge
        return e.node if e.__class__ is Output else None if e.__class__ in ENDS else e

    @property
    def output_nr(self) -> int:
        """Return which output of ``grad_fn`` this is."""
        return self._edge.index if self._edge.__class__ is Output else 0

    @property
    def grad(self) -> Tensor | None:
        """Return the gradient accumulated by backward passes; None before the first.

        Reading it on a tensor that is neither a leaf nor retains its grad warns and gives None.
        """
        if launch._observing:
            launch.looked()
        if self._grad is None and self._rg and not (self._edge is None or self._edge.__class__ in ENDS) and not self.retains_grad:
            warn_user(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
                "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
                "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
                "you access the leaf Tensor instead.",
                UserWarning,
            )
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            launch.cleared(self)
            self._grad = None
            return
        if not isinstance(value, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value.dtype is not self.dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{value.dtype.name}' to a tensor with grad_dtype "
                f"'{self.dtype.name}'. Please ensure that the gradient and the tensor have the same dtype"
            )
        if value.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size '{list(self.shape)}'. "
                "Please ensure that the gradient and the tensor are the same size"
            )
        launch.cleared(self)
        self._grad = value if value.__class__ is Tensor else above.plain(value)

    @grad.deleter
    def grad(self) -> None:
        launch.cleared(self)
        self._grad = None

    @property
    def data(self) -> Tensor:
        """Return a tensor of the same memory as a leaf outside the graph; changes through it are not seen by the version counter."""
        return make(self._data, self._layout, versions.beside(self._version_) if self._version_[0] >= 0 else _apart(self))

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"data must be a Tensor, not {type(value).__name__}")
        if hasattr(value, "_kind") is not hasattr(self, "_kind"):
            raise RuntimeError("Attempted to call `x.data = y`, but x and y have incompatible tensor type: one is sparse, one dense")
        if value.dtype is not self.dtype and self.requires_grad and value.dtype.category < 2:
            raise RuntimeError(f"data set to a tensor that requires gradients must be floating point or complex dtype, not {value.dtype}")
        if self._rg and (value._layout.shape != self._layout.shape or value.dtype is not self.dtype):
            expect(self._edge, self._layout.shape, self.dtype)
        self._data, self._layout = value._data, value._layout

    @property
    def _version(self) -> int:
        """Return how often the storage was changed in place."""
        launch.escapes("_version")
        count = self._version_[0]
        if count >= 0:
            return count
        if count < COUNTED:
            raise RuntimeError("Inference tensors do not track version counter.")
        return count - COUNTED

    @property
    def _inference(self) -> bool:
        return self._version_[0] < 0

    @property
    def _base(self) -> Tensor | None:
        return None if self.is_inference() or self._edge.__class__ is Within else above.base_of(self)

    def _is_view(self) -> bool:
        return (self._view is not None or is_lone(self)) and not (self.is_inference() or self._edge.__class__ is Within)

    # ------------------------------------------------------------------------------------------------ graph
    @property
    def retains_grad(self) -> bool:
        """Return whether `retain_grad` was called on this non-leaf."""
        if self._edge is None:
            return False
        node, index = (self._edge.node, self._edge.index) if self._edge.__class__ is Output else (self._edge, 0)
        retained = node.hooks is not None and index in node.hooks.retained and node.hooks.retained[index]() is self
        return retained or node.__dict__.get("retains", False)  # a tensor that became a view of itself since

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf in ``.grad`` too. RuntimeError when it does not require grad."""
        refuse_transformed("retain_grad()")
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if _stays_inside(self) and self.grad_fn:
            node, index = (self._edge.node, self._edge.index) if self._edge.__class__ is Output else (self._edge, 0)
            node._hooks().retained[index] = weakref.ref(self)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call ``hook(grad)`` when the gradient of this tensor is known; a returned tensor replaces it.

        Errors: TypeError when ``hook`` is not callable, RuntimeError when the tensor does not require grad.
        >>> x = torch.ones(1, requires_grad=True)
        >>> _ = x.register_hook(print)
        >>> (x * 2).backward()
        tensor([2.])
        """
        edge = self._edge  # as it was before a change of the base: as in PyTorch a second hook joins the first one, on what is gone
        if edge is None or _hooks_on(edge) is None:
            if not self.requires_grad:
                raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
            edge = self.grad_fn and self._edge  # as it is now, or refused
        check_callable(hook)
        if edge is None or edge.__class__ is Nowhere:
            return self._leaf_hooks().add_tensor(0, hook)
        node, index = (edge.node, edge.index) if edge.__class__ is Output else (edge, 0)
        return node._hooks().add_tensor(index, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call ``hook(tensor)`` after its ``.grad`` was accumulated. RuntimeError on non-leaves."""
        check_callable(hook)
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return self._leaf_hooks().add("accumulated", hook)

    def _leaf_hooks(self) -> NodeHooks:
        if self._leaf_hook_set is None:
            self._leaf_hook_set = NodeHooks()
        return self._leaf_hook_set

    def detach(self) -> Tensor:
        """Return a tensor of the same memory and version counter, outside the graph; [1., 2.].detach() = [1., 2.]."""
        version = self._version_
        return make(self._data, self._layout, version if version[0] >= 0 else _apart(self))

    def _beside(self, fresh: Tensor) -> Tensor:
        """Return a new tensor as `zeros_like` makes it beside this one; those of transforms have one of their own kind."""
        return fresh

    def detach_(self) -> Tensor:
        """Leave the graph in place: become a leaf that does not require grad. RuntimeError on views; [1., 2.].detach_() = [1., 2.]."""
        if state.inference or self._version_[0] < 0:
            return self
        if self._edge.__class__ is Within:  # to which it is no view
            self._view = None
        if self._view is not None or (above.lone_views and is_lone(self)):
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        hooks = None if self._edge is None else _hooks_on(detached.note(self._edge, self._version_))
        if hooks:  # which stay with the tensor, that may come to require grad again
            self._leaf_hooks().tensor[0] = hooks
        self._edge, self._rg = None, False
        return self

    @property
    def _accumulator(self) -> Any:
        return accumulator(self)

    # ---------------------------------------------------------------------------------------------- identity
    __hash__ = object.__hash__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return above.reduce_tensor(self)

    def __deepcopy__(self, memo: dict[Any, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
                "If you were attempting to deepcopy a module, use detach().clone() for the tensors it computed."
            )
        if id(self) in memo:
            return memo[id(self)]
        # tensors of one storage stay together, as their memory is copied once
        storage, offset = _storage(self)
        place = ("storage", launch.memory.address(storage), storage.size, storage.dtype)
        copied = memo.get(place)
        if copied is None:
            copied = memo[place] = storage.copy()
            memo.setdefault("_autograd_nb_keep", []).append(storage)
        new = adopt(type(self), make(copied[offset:], self._layout, [versions.INFERENCE if state.inference else 0, 0]))
        new._rg = self._rg
        memo[id(self)] = new
        new._grad = deepcopy(self._grad, memo)
        copy_attributes(self, new, memo)
        return new


#: ``_view_kind`` of what a compiled function returns as a view whose base nobody else has; ``_seen`` tells where that lies, or is it
ALONE = "alone"


def is_lone(t: Tensor) -> bool:
    return t._view is None and getattr(t, "_view_kind", "") is ALONE


_new = object.__new__
ownership.tensor = Tensor

#: a new Tensor with empty slots: past the legacy constructor, and quicker than `object.__new__`
blank: Callable[[], Tensor] = type.__call__.__get__(Tensor)


def _apart(t: Tensor) -> list[int]:
    """Give the versions of what is detached of an inference tensor."""
    return t._version_ if state.inference else [COUNTED, 0]


def make(data: np.ndarray, layout: Layout, version: list[int]) -> Tensor:
    """Return a tensor outside the graph over ``data``."""
    t = blank()
    t._data = data
    t._layout = layout
    t._version_ = version
    t._rg = False
    t._edge = t._grad = t._view = t._leaf_hook_set = None
    return t


def wrap(array: np.ndarray, d: dtype | None = None) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array with non-negative strides."""
    d = d or from_numpy_dtype(array.dtype)
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
        layout = layout_of(array.shape, None, d)
    else:
        strides = tuple(s // array.itemsize for s in array.strides)
        layout = layout_of(array.shape, strides, d)
        flat = np.lib.stride_tricks.as_strided(
            array, shape=(layout.extent,), strides=(array.itemsize,), writeable=array.flags.writeable
        )
    if d.carrier is not d.np:
        flat = flat.view(d.carrier)
    return make(flat, layout, [0, 0])


def ndarray(t: Tensor) -> np.ndarray:
    """Return a NumPy array that shares the tensor's memory, whatever its place in the graph. TypeError for bfloat16 and complex32."""
    if launch._observing:
        launch.escapes("numpy() or the printing of a tensor")
    layout = t._layout
    data = t._data
    if layout.dtype.carrier is not layout.dtype.np:
        if not layout.dtype.in_numpy:
            name, cast = ("ComplexHalf", "cfloat") if layout.dtype.is_complex else ("BFloat16", "float")
            raise TypeError(f"Got unsupported ScalarType {name}: NumPy has no such dtype; cast with x.{cast}()")
        data = data.view(layout.dtype.np)
    if layout.contiguous:
        if layout.ndim == 1:
            return data[: layout.size]  # also where it is all: a caller may change the shape of what he gets
        return (data if data.size == layout.size else data[: layout.size]).reshape(layout.sizes)
    step = layout.dtype.itemsize
    return np.lib.stride_tricks.as_strided(data, layout.shape, tuple(s * step for s in layout.strides))


def adopt(cls: type, t: Tensor) -> Any:
    """Return the tensor as an instance of a subclass (Parameter…), sharing everything."""
    if type(t) is cls:
        return t
    new = _new(cls)
    new._data, new._layout, new._version_, new._rg = t._data, t._layout, t._version_, t._rg
    new._edge, new._grad, new._leaf_hook_set = t._edge, t._grad, None
    look_as(t, new)
    if hasattr(cls, "of_program"):  # (see `autograd.subclasses`)
        above.subclassed(cls)
    return new


def _storage(t: Tensor) -> tuple[np.ndarray, int]:
    """Return (the flat array of the whole storage, the index of the tensor's first element in it)."""
    data = t._data
    base = data
    size = data.itemsize  # (the array below may be of another dtype: bits of half precision, what view(dtype) read)
    while isinstance(base.base, np.ndarray) and base.base.flags.c_contiguous and base.base.itemsize == size:
        base = base.base  # of any shape: tensor() and from_numpy() take over arrays of several dims
    owner = base.base
    if isinstance(owner, np.ndarray) and owner.dtype.kind == "c" and data.dtype.kind == "f" and owner.flags.c_contiguous:
        base = owner.reshape(-1).view(data.dtype)  # parts of complex numbers
    elif isinstance(owner, np.ndarray) and owner.dtype.kind == "f" and data.dtype.kind == "c" and owner.flags.c_contiguous:
        distance = launch.memory.address(data) - launch.memory.address(owner)
        if not owner.nbytes % data.itemsize and not distance % data.itemsize:
            base = owner.reshape(-1).view(data.dtype)  # complex numbers made of their parts
    if base is data or not base.flags.c_contiguous:
        return data, 0
    if base.ndim != 1 or base.dtype != data.dtype:
        base = base.reshape(-1).view(data.dtype)
    offset = (launch.memory.address(data) - launch.memory.address(base)) // data.itemsize
    return base, offset


def _stays_inside(t: Tensor) -> bool:
    """Return whether it is no leaf, by the history that it is known to have: a view's is not looked for, nor refused."""
    return t._rg and t._edge is not None and t._edge.__class__ is not Nowhere


def set_requires_grad(t: Tensor, value: bool, which: str = "Only Tensors of floating point and complex") -> None:
    """Let a leaf require grad, or not. ``which``: how PyTorch's refusal begins, where tensors are made, by a method, and by assignment."""
    if value not in (True, False):
        raise TypeError(f"requires_grad must be a bool, not {type(value).__name__}")
    if t._edge.__class__ is Nowhere:
        if value:  # from now on it is a leaf of its own; what was computed before leads nowhere still
            t._edge = None
        return
    if _stays_inside(t):
        if not value:
            text = "If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            raise RuntimeError(f"you can only change requires_grad flags of leaf variables. {text}")
        return
    if value and not (t.dtype.is_floating_point or t.dtype.is_complex):
        raise RuntimeError(f"{which} dtype can require gradients (this one is {t.dtype}; use .float() first)")
    if value and not state.inference and t._version_[0] < 0:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    t._rg = bool(value)


# ------------------------------------------------------------------------------------------- views and history


def edge(t: Tensor) -> Any:
    """Return where a gradient of ``t`` flows: its node, itself for a leaf, None when it does not require grad."""
    if t._view is not None:
        refresh(t)
    e = t._edge
    return (t if t._rg else None) if e is None else None if e.__class__ is Nowhere else e


class AsStridedBackward0(Node):
    """Reads a base through a view's geometry; made when a view's history must follow its rewritten base."""

    __slots__ = ("base_layout", "offset", "view_layout")

    def run(self, g: Any) -> tuple[Any, ...]:
        return ownership.settled(g, above.embed_view(g, self.base_layout, self.view_layout, self.offset))

    run_graph = run


def fill_node(node: Node, edges: tuple[Any, ...], depth: int = 2) -> Node:
    """Give a new node its edges, age and the user's place; it has saved nothing yet."""
    set_edges(node, edges)
    node.saved = None
    node.versions = ()
    node.stamp = 0
    finish(node, depth)
    return node


def _loosen(view: Tensor) -> None:
    """Let a view that is as its base require grad where the base does, though it has no history of it."""
    base: Any = view._view
    if view._rg:
        if view._edge.__class__ is Nowhere and not base._rg:
            view._rg, view._edge = False, None
    elif base._rg and view.dtype.category >= 2 and view._version_[0] >= 0:  # (inference tensors are of no graph)
        view._rg, view._edge = True, fill_node(Nowhere(), ())


def refresh(view: Tensor, always: bool = False, offset: int | None = None) -> None:
    """Bring a view's history up to date with its base, if the memory was changed since (without recording, too: as in PyTorch).

    ``always``: refuse what has no clear history also where nothing is recorded. ``offset``: of the view in its base, if known.
    """
    now = view._version_[0]
    base: Any = view._view
    if view._seen == now:
        if view._rg is not base._rg or view._edge.__class__ is Nowhere:
            _loosen(view)
        return
    if (now < 0 or not base._rg) and (view._edge is None or view._edge.__class__ is Nowhere):  # not marked as seen: the base may require grad later
        if view._edge is not None:
            _loosen(view)
        return
    if view._view_kind:
        if not (state.grad or always) or (state.constant is not None and state.constant(base)):
            return
        refuse_view(view, "its base or another view of its base has")
    view._seen = now
    source = base._edge if base._edge is not None else base if base._rg else None  # (of a view of another view that was made a leaf)
    node = fill_node(AsStridedBackward0(), (source,))
    node.base_layout, node.view_layout, node.offset = base._layout, view._layout, offset_in(view, base) if offset is None else offset
    old, view._edge, view._rg = view._edge, node, True
    if old is not None:
        move_retained(view, old, node)
        if "retains" in getattr(old, "node", old).__dict__:
            node.__dict__["retains"] = True


def refuse_view(view: Tensor, done: str = "is") -> None:
    """Raise RuntimeError for a view of which nobody can say what its history is, where what ``done`` names is changed in place."""
    kind, node = view._view_kind, view._edge.node if view._edge.__class__ is Output else getattr(view._edge, "behind", view._edge)
    several, (made, now, block) = kind.startswith("multi:"), UNTRACKED.get(kind, ("", "", ""))
    if not several and not made:
        return
    name = (kind[6:] if several else type(node).__name__).removesuffix("0").removesuffix("Backward")
    which, why = f"Output {view.output_nr} of {name} is a view", OVERRIDDEN if kind == "function" else AMBIGUOUS.format(block=block)
    text = f"A view was created in {made} mode and {done} being modified inplace {now}. {why}"
    if several or (kind == "function" and node is not None and node.__class__ is not Nowhere):
        text = f"{which} and {done} being modified inplace. {SEVERAL if several else why}"
    elif node is not None and node.__class__ is not Nowhere and not view._view._rg:  # type: ignore[union-attr]
        text = f"{which} of a view which was created in {made} mode and {done} being modified inplace {now}. {why}"
    raise AutogradError(text.replace("has being", "has been"))


def _hooks_on(e: Any) -> Any:
    """Return the hooks that were put on the tensor whose gradient flows along this edge, None where there never was one."""
    node, index = (e.node, e.index) if e.__class__ is Output else (e, 0)
    return None if node.hooks is None else node.hooks.tensor.get(index)


def move_retained(t: Tensor, old: Any, new: Any) -> None:
    """Let the gradient that ``t`` retains be that of its new contents, after its history was rewritten."""
    node, index = (old.node, old.index) if old.__class__ is Output else (old, 0)
    hooks = node.hooks
    if hooks is None or index not in hooks.retained or hooks.retained[index]() is not t:
        return
    reference = hooks.retained.pop(index)
    if new is not None and not (new.__class__ is not Output and new.is_leaf_edge):
        node, index = (new.node, new.index) if new.__class__ is Output else (new, 0)
        node._hooks().retained[index] = reference


def _view_requires_grad(view: Tensor) -> bool:
    base, kind = view._view, view._view_kind
    assert base is not None
    if kind and view._seen != view._version_[0] >= 0:  # no use of it that would be refused
        return (view._rg and view._edge.__class__ is not Nowhere) or base._rg
    refresh(view)
    return view._rg


def offset_in(view: Tensor, base: Tensor) -> int:
    """Return how many elements lie between the base's first and the view's; where ``.data`` was exchanged, those between their places in memory."""
    width, behind = view._data.itemsize, launch.memory.distance(base._data, view._data, view._layout.extent)
    return behind // width if behind is not None else (_storage(view)[1] * width - _storage(base)[1] * base._data.itemsize) // width


def look_as(t: Tensor, other: Tensor) -> None:
    """Let ``other`` be a view, or none, as ``t`` is."""
    other._view = t._view
    if t._view is not None:
        other._seen, other._view_kind = t._seen, t._view_kind
