"""Views that show the conjugates, or the negatives, of what lies in memory: ``x.conj()``, ``x.mH``, ``x.conj().imag``.

A `Marked` tensor has no memory of its own. It holds ``of``, an ordinary view of the memory that it looks at, and what it shows of that, its
``mark``. Its layout is an object of its own, not an interned one, so that no plan is ever found by it: the fast paths of ops miss, and come
to the few `overridable` functions behind which arrays are worked on. There operands that are marked are computed (see
`autograd.marked_operands`); what is written into one is written, marked again, into what it looks at. The functions are exchanged when the first
marked tensor is made: a program that has none pays nothing.

What reads ``_data`` itself, such as printing, gets a copy that is computed anew each time.
"""

from __future__ import annotations

from copy import deepcopy
from functools import reduce
from typing import Any
from weakref import WeakKeyDictionary, ref

from ...graph.modes import state, unrecorded
from ...graph.node import Node, Nowhere
from ...graph.ownership import settled
from ...overriding import Overrides
from ...shapes import Layout, layout_of
from ...tensor import Tensor, _new, above, edge, fill_node, look_as, make, move_retained
from .history import LeafBackward0, attach, rewrite_history, share_view

MARKS = Overrides()  #: what takes the place of overridable functions from the first marked tensor on
MARKS.passes_by = True  # replays and the like go on: none of them is ever found by a layout that is not interned


class MarkedLayout(Layout):
    """A layout that is equal to no other: of a tensor that is not to be read as it lies."""

    __slots__ = ()


def _apart(layout: Layout) -> MarkedLayout:
    own = object.__new__(MarkedLayout)  # of the parts that another has worked out
    own.contiguous, own.dtype, own.extent, own.ndim = layout.contiguous, layout.dtype, layout.extent, layout.ndim
    own.shape, own.size, own.sizes, own.strides, own.usual = layout.shape, layout.size, layout.sizes, layout.strides, layout.usual
    own._dense = None
    return own


def _computed(mark: str, t: Tensor) -> Tensor:
    """Return a copy that a mark stands for, laid as any copy is."""
    return above.resolve[mark](t)


class ConjBackward0(Node):
    """The conjugates of a view's elements."""

    __slots__ = ()

    def run(self, g: Any) -> tuple[Any, ...]:
        return settled(g, _computed("conj", g))

    run_graph = run


class NegViewBackward0(Node):
    """The negatives of a view's elements."""

    __slots__ = ()

    def run(self, g: Any) -> tuple[Any, ...]:
        return settled(g, -g)

    run_graph = run


def _node_of(mark: str, end: Any) -> Node:
    return fill_node(ConjBackward0() if mark == "conj" else NegViewBackward0(), (end,))


class Marked(Tensor):
    """A view ``of`` memory that shows what its ``mark`` says: "conj" or "neg"."""

    __slots__ = ()  # (what it holds stands in its dict: a tensor that had a tangent can become one)
    mark: str
    of: Tensor
    _leaf: bool  # whether it was made a leaf that requires grad itself
    _node: Any  # where its gradient goes
    _source: Any  # where that of what it looks at went when the node was made
    _back: Any  # the node by which the gradients of views of what it looks at come to it, once there are any

    # ---- what ops ask of a tensor
    @property
    def _data(self) -> Any:  # type: ignore[override]
        of = self.of
        flat = make(of._data[: of._layout.extent], layout_of((of._layout.extent,), None, of.dtype), of._version_)
        with unrecorded():
            return _computed(self.mark, flat)._data

    @_data.setter
    def _data(self, memory: Any) -> None:
        self._refuse("to give other memory, as resize_() and set_() do,")

    @property
    def _version_(self) -> list[int]:  # type: ignore[override]
        return self.of._version_

    @_version_.setter
    def _version_(self, value: list[int]) -> None:
        self.of._version_ = value

    @property
    def _view(self) -> None:  # type: ignore[override]
        return None  # (its history is that of what it looks at)

    @property
    def _own(self) -> bool:
        """Return whether it is a leaf that requires grad itself; it is none from a change on of a base that requires grad, as of any view."""
        if self._leaf and (lowest := _lowest(self))._view is not None and lowest._view._rg and lowest._seen != lowest._version_[0] >= 0:
            self._leaf, self._back = False, None
        return self._leaf

    @property
    def _rg(self) -> bool:  # type: ignore[override]
        return self._own or self.of.requires_grad

    @_rg.setter
    def _rg(self, value: bool) -> None:
        had = not self._own and (self.of.__class__ in MARKED or self.of._edge is not None)
        if value and had and (e := self._edge) is not None and e.__class__ is not Nowhere:
            return  # it has a history
        self._leaf, self._back = value, _node_of(self.mark, self) if value else None
        lowest = _lowest(self)
        if had or lowest._view is None:
            lowest._edge, lowest._rg = None, False
        if value and lowest._view is None:  # then it is the base of its views
            _lead(self.of, self._back)
            lowest._edge.__dict__["of_leaf"] = True  # (see `check_inplace`)

    @property
    def _edge(self) -> Any:  # type: ignore[override]
        source = None if self._own else edge(self.of)
        if source is None:
            return None if self._own else self.of._edge  # (that leads nowhere)
        if source is not self._source:
            before, self._node = self._node, _node_of(self.mark, source.edges[0] if source.__class__ is LeafBackward0 else source)
            self._source = source
            if before is not None:
                move_retained(self, before, self._node)
        return self._node

    @_edge.setter
    def _edge(self, value: Any) -> None:
        if value is None:
            self._rg = self._edge.__class__ is Nowhere  # of what led nowhere a leaf is made
        else:
            self._stands_before(value)

    def rewrite(self, new_edge: Any) -> None:
        """Rewrite the history of what it looks at, whose memory was changed (see `rewrite_history`)."""
        _lowest(self)._seen = None  # (it may have been looked at since)
        rewrite_history(self.of, None if new_edge is None else _node_of(self.mark, new_edge))

    def _read_grad(self) -> Tensor | None:
        """Return the gradient; nothing is refused, as none is of other views of which nobody can say what their history is."""
        return self._grad if _unclear(_lowest(self)) else Tensor.grad.fget(self)  # type: ignore[attr-defined,no-any-return]

    grad = property(_read_grad, Tensor.grad.fset, Tensor.grad.fdel)  # type: ignore[assignment,attr-defined]

    def _seems_leaf(self) -> bool:
        """Return whether nobody can say what its history is, and it had none: then it is taken for a leaf, as any such view."""
        return _unclear(lowest := _lowest(self)) and (lowest._edge is None or lowest._edge.__class__ is Nowhere)

    def _known(self) -> Tensor:
        """Return what says whether it is a leaf: where nobody can say what the history of what it looks at is, that one, of which none is looked for."""
        lowest = _lowest(self)
        return lowest if _unclear(lowest) else self

    def _require_grad(self, value: bool) -> None:
        if not self._seems_leaf():
            Tensor.requires_grad.fset(self._known(), value)  # type: ignore[attr-defined]

    requires_grad = property(Tensor.requires_grad.fget, _require_grad)  # type: ignore[assignment,attr-defined]

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        if not self._seems_leaf():
            Tensor.requires_grad_(self._known(), requires_grad)
        return self

    def _stands_before(self, end: Any) -> None:
        """Let gradients of views of this one, which are views of what it looks at, flow through its node from now on."""
        self._node = end
        self._source = self._back = _node_of(self.mark, end)
        self._back.__dict__["behind"] = getattr(end, "node", end)  # as errors name it
        _lead(self.of, self._back)

    def retain_grad(self) -> None:
        if self._seems_leaf():
            return
        super().retain_grad()
        if not self._own:
            self._stands_before(self._edge)

    def register_hook(self, hook: Any) -> Any:
        handle = super().register_hook(hook)
        if not self._own:
            self._stands_before(self._edge)
        return handle

    @property
    def _base(self) -> Tensor | None:
        return self.of._base

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def data(self) -> Tensor:
        """Return a tensor that shows the same memory, as a leaf outside the graph."""
        return self._like(marked(self.of.data, self.mark))

    @data.setter
    def data(self, value: Tensor) -> None:
        self._refuse("x.data = …")

    def _refuse(self, what: str) -> Any:
        raise RuntimeError(
            f"{what} is not supported for a view that shows conjugates or negatives of other memory (is_conj() or is_neg()). Use "
            "x.resolve_conj().resolve_neg(), a tensor of its own."
        )

    def detach(self) -> Tensor:
        """Return a tensor that shows the same memory, outside the graph."""
        return self._like(marked(self.of.detach(), self.mark))

    def _like(self, t: Marked) -> Marked:
        """Return a marked tensor as one of this one's class."""
        return t if self.__class__ is Marked else marked_as(self._shown_class, t)  # type: ignore[attr-defined]

    def detach_(self) -> Tensor:
        if self._is_view():
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        self._rg = False
        return self

    def numpy(self, *, force: bool = False) -> Any:
        """Return a NumPy array of a copy where ``force`` is given. RuntimeError else, as no array shows memory otherwise than it is."""
        if not force:
            bit, call = ("conjugate", "resolve_conj") if self.mark == "conj" else ("negative", "resolve_neg")
            raise RuntimeError(f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.{call}().numpy() instead.")
        return resolved(self.detach()).numpy(force=True)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        a = self.numpy()
        return a if dtype is None else a.astype(dtype)

    # ---- its memory, which is that of what it looks at
    def data_ptr(self) -> int:
        return self.of.data_ptr()

    def storage(self) -> Any:
        return self.of.storage()

    _typed_storage = storage

    def untyped_storage(self) -> Any:
        return self.of.untyped_storage()

    def storage_offset(self) -> int:
        return self.of.storage_offset()

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError(f"Can't export tensors with the {'conjugate' if self.mark == 'conj' else 'negative'} bit set")

    # ---- copies
    def __reduce_ex__(self, protocol: Any) -> Any:
        if not self.is_leaf:
            return above.reduce_tensor(resolved(self))
        return _shown, (self.of.detach(), self.mark, self.requires_grad)

    def __copy__(self) -> Tensor:
        new = self.data
        if new._version_[0] < 0 and not state.inference:
            new._version_ = [0, 0]
        return new.requires_grad_(self.requires_grad)

    def __deepcopy__(self, memo: dict[Any, Any]) -> Tensor:
        if id(self) not in memo:
            if not self.is_leaf:
                return super().__deepcopy__(memo)  # which refuses
            new = resolved(self.detach())
            if new._version_[0] < 0 and not state.inference:
                new._version_ = [0, 0]
            memo[id(self)] = new.requires_grad_(self._own)
            new._grad = deepcopy(self._grad, memo)
        return memo[id(self)]  # type: ignore[no-any-return]


#: `Marked`, and its subclasses for the classes of programs of which there are views
MARKED: Any = {Marked}
_kinds: WeakKeyDictionary[type, Any] = WeakKeyDictionary()


def marked_as(cls: type, t: Any) -> Any:
    """Return a marked tensor as one of a program's subclass of `Tensor`: of a class below both, which is that one to the program."""
    kind = Marked if cls is Tensor else _kinds.get(cls)
    if kind is None:
        names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__slots__": (), "_shown_class": cls}
        kind = _kinds[cls] = type(cls)(cls.__name__, (Marked, cls), names)
        MARKED.add(kind)
    new = _new(kind)
    new.__dict__.update(t.__dict__)
    new._layout, new._grad, new._leaf_hook_set = t._layout, t._grad, t._leaf_hook_set
    if kind is not Marked:
        above.subclassed(cls)
    return new


def marked(of: Tensor, mark: str) -> Any:
    """Return what shows the conjugates or the negatives of a tensor that nobody else has, a view of the memory that is shown."""
    if not MARKS.count:
        MARKS.enter()
    t = _new(Marked)
    t.of, t.mark, t._layout = of, mark, _apart(of._layout)
    t._leaf, t._source, t._node, t._back, t._grad, t._leaf_hook_set = False, None, None, None, None, None
    if (lowest := _lowest(of))._view is None:  # then it is the base of its views, and nobody has what it looks at
        lowest.__dict__["shown_by"] = ref(t), (mark,) if of is lowest else (*lowest.__dict__["shown_by"][1], mark)
    return t


def _base_of(t: Tensor) -> Tensor | None:
    """Return the base of a view: where that is known by what shows its conjugates or negatives, this, made anew if nobody holds it any more."""
    base = t._view
    shown = None if base is None else base.__dict__.get("shown_by")
    if shown is None:
        return base
    by, marks = shown
    return reduce(marked, marks, base) if (t := by()) is None else t


def _shown(of: Tensor, mark: str, requires_grad: bool) -> Tensor:
    """Return what pickle has made again."""
    return marked(of, mark).requires_grad_(requires_grad)


def _unclear(t: Tensor) -> bool:
    """Return whether nobody can say what the history of a view is."""
    return t._view is not None and bool(t._view_kind) and t._seen != t._version_[0] >= 0 and t._view._rg


def _lowest(t: Tensor) -> Tensor:
    """Return the ordinary view below all marks."""
    while t.__class__ in MARKED:
        t = t.of
    return t


def _lead(of: Tensor, end: Any) -> None:
    """Let the gradient of what a marked tensor looks at go to ``end``."""
    if of.__class__ in MARKED:
        of._stands_before(end)
    else:
        of._edge, of._rg = end, True


def looked_at(x: Any) -> Any:
    """Return what ``x`` looks at, to make a view of it: gradients of that come by ``x``, which may be asked for its own."""
    if not state.grad:
        return x.of
    if x._own:
        return x.of if _lowest(x)._view is None else _seen_by(x.of, x._back)
    if (e := x._edge) is not None and e.__class__ is not Nowhere and x._source is not x._back:
        x._stands_before(e)
    return x.of


def _seen_by(of: Tensor, end: Any) -> Tensor:
    """Return another view of the same memory, whose gradient goes to ``end``."""
    if of.__class__ in MARKED:
        return marked(_seen_by(of.of, _node_of(of.mark, end)), of.mark)
    t = share_view(of, make(of._data, of._layout, of._version_))
    t._edge, t._rg = end, True
    return t


def shows(t: Tensor, mark: str) -> bool:
    """Return whether a tensor has this mark, or what it looks at has it, but not both."""
    has = False
    while True:
        if t.__class__ in MARKED:
            has ^= t.mark == mark
            t = t.of
        elif hasattr(t.__class__, "viewed"):
            t = t.held
        else:
            return has


def can_be_marked(x: Tensor) -> bool:
    """Return whether views of a tensor may be marked: it has memory of its own."""
    return type(x)._data is Tensor._data


def returned(x: Any, end: Any, kind: str) -> Tensor:
    """Return a view of the same memory whose gradient goes to ``end``, an output of the user's function, which is not to be passed by."""
    t = marked(_seen_by(x.of, None), x.mark)
    t._edge = end
    lowest = _lowest(t)
    lowest._view_kind, lowest._seen = kind, lowest._version_[0]
    return t


def look_again(x: Tensor) -> Tensor:
    """Return another view of all of the memory that ``x`` looks at, which is in the graph what ``x`` is."""
    if x.__class__ in MARKED:
        return marked(look_again(looked_at(x)), x.mark)
    t = make(x._data, x._layout, x._version_)
    e = edge(x)
    share_view(x, t)
    if state.grad and (e is not None or x._edge.__class__ is Nowhere):
        if e is None:  # from there it has a history, which leads nowhere
            t._edge, t._rg = fill_node(LeafBackward0(), (x._edge,)), True
        else:
            attach(t, e)
    return t


def resolved(x: Tensor) -> Tensor:
    """Return the tensor that a marked one stands for, in memory of its own and with its place in the graph; any other is its own."""
    if x.__class__ not in MARKED:
        return x.viewed(resolved) if hasattr(x.__class__, "viewed") else x
    lowest = _lowest(x)
    if _unclear(lowest):
        with unrecorded():
            out = _computed(x.mark, x.of)
        look_as(lowest, out)  # what differentiates it is refused, as for any such view
        out._version_, out._edge, out._rg = lowest._version_, lowest._edge, lowest._rg
        return out
    e = x if x._own else x._edge
    if e is None or e.__class__ is Nowhere:
        out = _computed(x.mark, x.of)
        if lowest._version_[0] < 0:  # no node may keep an inference tensor
            out._version_ = [lowest._version_[0], 0]
        return out
    with unrecorded():
        out = _computed(x.mark, x.of)
    if e is x:
        attach(out, e)
    else:
        out._edge, out._rg = e, True
    return out


def need_known_history(x: Tensor) -> None:
    """Raise AutogradError where a marked tensor is to be read of which nobody can say what its history is: reading computes, as PyTorch has it."""
    if state.grad and x.__class__ in MARKED:
        edge(_lowest(x))


def computed_operand(x: Any) -> Tensor:
    """Return what an op reads of a tensor. Where a node keeps it, a change of the memory that a marked one shows is refused, as of any view."""
    out = resolved(x)
    if state.grad and x.__class__ in MARKED and not hasattr(out.__class__, "viewed"):
        out._version_ = x._version_
    return out


def copied(x: Tensor) -> Tensor:
    """Return the same as a tensor that a user gets: outside of inference mode it is an ordinary one."""
    need_known_history(x)
    out = resolved(x.detach() if not state.grad and x.__class__ in MARKED and _unclear(_lowest(x)) else x)
    if out._version_[0] < 0 and not state.inference and not hasattr(out.__class__, "viewed"):
        out._version_ = [0, 0]
    return out


above.plain = resolved
above.base_of = _base_of
