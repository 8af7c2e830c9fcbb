"""Public functions whose calls recur: what one launches and records is noted, and calls like it do just that.

An op that users call brings its arguments in order, checks them, asks which kernel fits, and records what it did: for small tensors all
that takes longer than the kernels. So calls with operands of one layout are counted, and once there were a few, one runs under an
observer and becomes a `Repeat`: the text of a function that

- compares the call's arguments with those that were noted: layouts, which of them require grad, numbers, and what else there may be;
- launches the same kernels, with the checks of values that stand between them;
- counts the changes of the operands that it has written into, which nothing else of the call reads, and of which no history is kept;
- writes the same nodes, with edges to this call's operands, and makes the results.

What is no plain computation is left alone: what gives an operand a history or another layout, values that
Python looks at, warnings, nodes of users' Functions, large arrays, and all while a transform, a profiler or an observer is active.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import numpy as np

from ... import launch, locks
from ...graph import noted, recurring
from ...graph.modes import state
from ...graph.node import (
    FINISHING,
    NODES,
    ONE_NODE,
    OUTPUTS,
    Node,
    Output,
    edge_lines,
    finishing,
    sequence,
    several_edges_lines,
    single_edge_lines,
    tensor_lines,
)
from ...graph.noted import ELEMENTS, Checks, Notes, Text, Unfit, observed
from ...graph.versions import SEVERAL_LISTS, same_storage
from ...overriding import Overrides
from ...overriding import whole as whole_step
from ...shapes import Layout
from ...tensor import Tensor, blank, refresh
from .foreign import asked, foreign_among
from .known_calls import LAYOUTS, Known
from .straight import copies_all, straight

_by_age = attrgetter("seq")
_warning = locks.lock()  # held while somebody listens for warnings


# ---------------------------------------------------------------------------------------------------------- arguments


class _Call(Checks):
    """The text that compares a call's arguments with these. ``operands``: the tensors among them, by name."""

    def __init__(self, args: tuple[Any, ...], options: dict[str, Any]):
        super().__init__()
        self.names |= {"_state": state, "_refresh": refresh, "_are_ints": frozenset((int,)).issuperset}
        self.operands: dict[str, Tensor] = {}
        self.states: list[Any] = []
        self.counts: dict[int, int] = {}  # a list of versions -> how often what it is of had been changed
        self.differs("_state.grad", "is not", state.grad)
        self.lines.append(f"if len(options) != {len(options)}: return None")
        for name, a in zip(self.unpack("args", len(args)), args, strict=True):
            self._argument(name, a)
        for key, a in options.items():
            name = f"q{len(self.lines)}"
            self.lines.append(f"{name} = options[{key!r}]")
            self._argument(name, a)

    def _argument(self, name: str, a: Any) -> None:
        kind = a.__class__
        if isinstance(a, Tensor):
            self._operand(name, a)
        elif (kind is tuple or kind is list) and any(isinstance(t, Tensor) for t in a):
            self.differs(f"{name}.__class__", "is not", kind)
            for part, t in zip(self.unpack(name, len(a)), a, strict=True):
                self._argument(part, t)
        else:
            self.same(name, a)
            if kind is tuple and set(map(type, a)) == {int}:  # True is equal to 1
                self.lines.append(f"if not _are_ints(map(type, {name})): return None")

    def _operand(self, name: str, t: Tensor) -> None:
        if t.__class__ is not Tensor and t.__class__ is not noted.parameter:  # (the memory of a batch is not to be looked at)
            raise Unfit("a tensor of another class")
        for other, known in self.operands.items():
            if known is t:
                self.lines.append(f"if {name} is not {other}: return None")
                return
            if t._rg and known._rg and t._edge is not None and t._edge is known._edge:
                raise Unfit("two tensors with one history")
            if known._version_ is t._version_:  # parts of one tensor
                self.lines.append(f"if {name}._version_ is not {other}._version_: return None")
        self.operands[name] = t
        self.counts[id(t._version_)] = t._version_[0]
        self.differs(f"{name}.__class__", "is not", t.__class__)
        self.differs(f"{name}._layout", "is not", t._layout)
        self.lines.append(f"if {name}._version_[0] < 0: return None")
        if state.grad:
            if t._view is not None:
                _refreshed(t)
            self.lines.append(f"if {name}._view is not None: _refresh({name})")
            self.differs(f"{name}._rg", "is not", t._rg)
        self.array(f"{name}._data", t._data)
        self.states.append(_state_of(t))

    def changed(self) -> dict[str, int]:
        """Return the operands that the call has written into -> how often each counts as changed; Unfit where it has done more to one.

        The text goes on then to refuse what would be recorded, or memory that another operand has too, which the function may refuse, or copy.
        """
        if [_state_of(t) for t in self.operands.values()] != self.states:
            raise Unfit("an operand that is another one now")
        found = {name: t._version_[0] - self.counts[id(t._version_)] for name, t in self.operands.items()}
        found = {name: times for name, times in found.items() if times}
        if found:
            self.names |= {"_several_lists": SEVERAL_LISTS, "_same_storage": same_storage}
        for name in found:
            self._alone(name)
        return found

    def _alone(self, name: str) -> None:
        """Return None where an operand that is written shares memory, or takes part in a graph."""
        t, others = self.operands[name], {other: o for other, o in self.operands.items() if other != name}
        for other, o in others.items():
            if same_storage(t._version_, o._version_):
                raise Unfit("memory of several operands that is written")
            one, two = f"{name}._version_", f"{other}._version_"
            self.lines.append(f"if {one} is {two} or (_several_lists and _same_storage({one}, {two})): return None")
        if not state.grad:
            return
        if t._rg or (t._view is not None and t._view._rg):
            raise Unfit("an operand with a history that is written")
        if any(o._rg for o in others.values()):  # some views may not be written by what requires grad
            if t._view is not None:
                raise Unfit("a view that is written beside what requires grad")
            self.differs(f"{name}._view", "is not", None)
        else:
            self.lines.append(f"if {name}._view is not None and {name}._view._rg: return None")


def _refreshed(view: Tensor) -> None:
    """Bring a view's history up to date; Unfit where that is refused, which the function says, after what it refuses before."""
    try:
        refresh(view)
    except RuntimeError as error:
        raise Unfit("a view without a clear history") from error


class _Calls(Notes):
    """The observer of a call, which repeats the checks of values. ``copies``: which launches are plain copies."""

    copies: set[int]

    def __init__(self, arrays: Sequence[np.ndarray]):
        super().__init__(arrays)
        self.copies = set()

    def __call__(self, call: Any, args: tuple[Any, ...]) -> None:
        super().__call__(call, args)
        if copies_all(call, args):
            self.copies.add(len(self.lines) - 1)

    def holds(self, array: np.ndarray, within: tuple[int, int, int, int]) -> bool | None:
        """Return whether an element is within bounds, which repetitions ask again; None where it is not, or something was drawn before."""
        _, element, least, most = within
        if self.draws or not least <= array.item(element) <= most:
            return None
        self._ask(noted.Asked(None, (within,)), (array,))
        return True

    def drawn(self, key: tuple[int, int]) -> tuple[int, int]:
        """Return the key of a draw as numbers of its own, which are told from all others by what they are."""
        seed, call = noted.Seed(key[0]), noted.Turn(key[1])
        self.draws.append((seed, call))
        return seed, call

    def check(self, function: Callable[..., None], arrays: tuple[Any, ...], passes: Any = ()) -> None:
        function(*arrays)
        self._ask(noted.Asked(None if passes and self._changed_nothing() else function, passes), arrays)

    def _changed_nothing(self) -> bool:
        """Return whether so far nothing was drawn or written but memory of the call's own: then another call, which may say more, can begin anew."""
        flat = [p for _, args in self.lines for a in args for p in (a if isinstance(a, list) else [a])]
        return not self.draws and not any(isinstance(p, noted.Place) and p.slot and p.writes for p in flat)

    def _ask(self, asked: noted.Asked, arrays: tuple[Any, ...]) -> None:
        if not self.why:
            try:
                self.lines.append((asked, [self._argument(a, False) for a in arrays]))
            except Unfit as error:
                self.why = str(error)


# ------------------------------------------------------------------------------------------------------------ results


class Repeat(Text):
    """The text that does again what a call did. ``born``: the age of what was recorded before it."""

    operands: dict[str, Tensor]
    born: int
    given: dict[int, str]
    writes: bool
    versions: dict[int, str]
    constants: dict[int, Any]

    def __init__(self, call: _Call, notes: _Calls, born: int):
        changed = call.changed()
        super().__init__(call, notes, {call.slots[id(call.operands[name]._data)] for name in changed})
        self.operands, self.born, self.constants = call.operands, born, notes.constants
        self.names |= {**FINISHING, "_Output": Output, "_new": blank}
        self.after: list[str] = [f"{name}._version_[0] += {times}" for name, times in changed.items()]
        self.given = {id(t): name for name, t in call.operands.items()}
        self.writes = bool(changed)
        self.made: dict[int, str] = {}
        self.versions = {id(t._version_): f"{name}._version_" for name, t in call.operands.items()}
        self.nodes: dict[int, str] = {}

    def constant(self, value: Any) -> str:
        """Return a name for what is the same in all such calls."""
        name = f"z{len(self.names)}"
        self.names[name] = value
        return name

    def array(self, data: Any, kept: bool = True) -> str:
        """Return the text of an array that a node or a result keeps: an operand's, or new memory. ``kept``: or numbers that nobody will change."""
        if data.__class__ is not np.ndarray:
            raise Unfit("memory of another kind")
        place = self.notes.place(data, False)
        if kept and id(place.whole) in self.constants:
            return self.constant(data)
        return self.part(place.slot or self.new(place.whole), place)

    def version(self, counter: list[int]) -> str:
        """Return the text of a counter of changes."""
        name = self.versions.get(id(counter))
        if name is None:
            if counter[0] < 0:
                raise Unfit("an inference tensor")
            name = self.versions[id(counter)] = f"v{len(self.versions)}"
            self.after.append(f"{name} = {list(counter)}")
        return name

    # ---- nodes

    def history(self, results: Sequence[Tensor]) -> None:
        """Write the nodes that the call has recorded, the oldest first."""
        found: dict[int, Node] = {}
        ends: list[Any] = [t._edge for t in self._tensors(results)]
        while ends:
            e = ends.pop()
            node = e.node if e.__class__ is Output else e
            if isinstance(node, Node) and node.seq > self.born and id(node) not in found:
                found[id(node)] = node
                ends += node.edges
        for node in sorted(found.values(), key=_by_age):
            self._node(node)

    @staticmethod
    def _tensors(results: Sequence[Tensor]) -> Iterator[Tensor]:
        for t in results:
            yield t
            if t._view is not None:
                yield t._view

    def _node(self, node: Node) -> None:
        if node.alike is None or node.hooks is not None or set(node.__dict__):
            raise Unfit("a node of users' code")
        if any(cls.__dict__.get("__slots__") for cls in _before(node.__class__, "again")):
            raise Unfit("a node that keeps more than it says")
        n = self.nodes[id(node)] = f"n{len(self.nodes)}"
        self.after.append(f"{n} = {self.constant(node.__class__)}()")
        self._edges(n, node)
        self.after += node.again(self, n)
        counters = node.counters()
        if node.stamp != sum(c[0] for c in counters):
            raise Unfit("what was saved and then changed")
        names = [self.version(c) for c in counters]
        several = "".join(f"{v}, " for v in names)
        self.after.append(f"{n}.versions = " + (names[0] if node.versions.__class__ is list else f"({several})"))
        self.after.append(f"{n}.stamp = {' + '.join(f'{v}[0]' for v in names) or '0'}")
        self.after += finishing(n, "2", len(self.nodes) == 1)

    def _edges(self, n: str, node: Node) -> None:
        """Write the edges of a node: to this call's operands, or to other nodes of it."""
        if hasattr(node, "edge"):
            name = self._operand_behind(node.edge)
            if name:
                self.after += [line.replace("_node", n) for line in single_edge_lines(name)]
            else:
                kind = OUTPUTS if node.edge.__class__ is Output else ONE_NODE
                self.after += [f"{n}.edge = {self._edge(node.edge)}", f"{n}.edge_kind = {kind}"]
            return
        kinds = [OUTPUTS if e.__class__ is Output else NODES for e in node.edges if not self._operand_behind(e)]
        self.after.append(f"_edge_kind = {min(kinds, default=NODES)}")
        into = []
        for k, e in enumerate(node.edges):
            name = self._operand_behind(e)
            into.append(f"{n}_{k}" if name else self._edge(e))
            if name:
                self.after += edge_lines(name, into[-1])
        self.after += [line.replace("_node", n) for line in several_edges_lines(into)]

    def _operand_behind(self, e: Any) -> str:
        """Return the name of the operand to which an edge leads, or ""."""
        if e is None:
            return ""
        for name, t in self.operands.items():
            if t._rg and (t if t._edge is None else t._edge) is e:
                return name
        return ""

    def _edge(self, e: Any) -> str:
        """Return the text of an edge to a node of this call."""
        if e is None:
            return "None"
        name = self.nodes.get(id(e.node if e.__class__ is Output else e))
        if name is None:
            raise Unfit("a history that is no operand's")
        return f"_Output({name}, {e.index})" if e.__class__ is Output else name

    # ---- tensors

    def tensor(self, t: Any) -> str:
        """Return the name of a result."""
        name = self.given.get(id(t)) or self.made.get(id(t), "")
        if name:
            return name
        if t.__class__ is not Tensor or t._grad is not None or t._leaf_hook_set is not None or t.__dict__:
            raise Unfit("a result of another kind")
        base, seen = (None, "") if t._view is None else self._base(t)
        name = self.made[id(t)] = f"o{len(self.made)}"
        array, version = self.array(t._data, False), self.version(t._version_)
        self.after += tensor_lines(self.constant(t._layout), version, name, array)
        if base is not None:
            self.after.append(f"{name}._view, {name}._seen, {name}._view_kind = {base}, {seen}, {self.constant(t._view_kind)}")
        if t._edge is not None:
            self.after.append(f"{name}._edge, {name}._rg = {self._edge(t._edge)}, {t._rg}")
        elif t._rg:
            raise Unfit("a leaf")
        return name

    def _base(self, t: Tensor) -> tuple[str, str]:
        """Return the name of what a result is a view of, and the count of changes that it has seen: a result, or an operand that is itself no view."""
        name = self.given.get(id(t._view))
        if name is None:
            if self.notes.place(t._view._data, False).slot:
                raise Unfit("a view of what an operand is a view of")
            return self.tensor(t._view), str(t._seen)
        if self.writes or t._seen != t._version_[0]:
            raise Unfit("a view of an operand that is written")
        self.checks.lines.append(f"if {name}._view is not None: return None")
        return name, f"{name}._version_[0]"

    def straight(self) -> None:
        """Let what is copied to operands be written there at once, where none of the others lies in their memory, however it came there."""
        written = straight(self.notes, self.notes.copies, self.fresh)  # type: ignore[attr-defined]
        slots = self.checks.slots.values()
        self.names["_alone"] = launch.memory.alone
        for to in written:
            apart = "".join(f" or {other} is {to} or {other}.base is {to}" for other in slots if other != to)
            self.checks.lines.append(f"if not ({to}.base is None or _alone({to})){apart}: return None")


def _before(kind: type, name: str) -> list[type]:
    """Return the classes that a class inherits from, but for those from which on there is a method of this name, and for `UnaryNode`'s one edge."""
    found = []
    for cls in kind.__mro__:
        if name in cls.__dict__:
            break
        if cls.__dict__.get("__slots__") != ("edge",):
            found.append(cls)
    return found


def _state_of(t: Tensor) -> tuple[Any, ...]:
    """Return what a function may have changed of an operand besides its values, and the count of their changes."""
    return t._layout, id(t._data), id(t._version_), t._version_[1:], t._rg, id(t._edge), id(t._view), t._view is not None and t._seen


def _repeat(call: _Call, notes: _Calls, born: int, out: Any) -> tuple[Callable[..., Any], int]:
    """Return ``repeat(args, options)``, None where they differ, and how many bytes it holds; ``out``: what the call has returned."""
    if notes.why:
        raise Unfit(notes.why)
    text = Repeat(call, notes, born)
    kind = out.__class__
    several = isinstance(out, (tuple, list))
    results = [t for t in (out if several else [out]) if t is not None]
    if not results or not all(t.__class__ is Tensor or id(t) in text.given for t in results):
        raise Unfit("results of another kind")
    text.history([t for t in results if id(t) not in text.given])
    names = ["None" if t is None else text.tensor(t) for t in (out if several else [out])]
    if not several:
        whole = names[0]
    elif kind is list:
        whole = f"[{', '.join(names)}]"
    else:
        whole = f"({', '.join(names)},)" if kind is tuple else f"{text.constant(tuple.__new__)}({text.constant(kind)}, ({', '.join(names)},))"
    text.straight()
    repeat, held = text.function("repeat", "args, options", [], [*text.after, f"return {whole}"])
    return whole_step(repeat) if text.writes else repeat, held


# ---------------------------------------------------------------------------------------------------------- functions


@contextmanager
def _listening(notes: Notes) -> Iterator[None]:
    """Let what warns be unfit: it is to warn each time."""
    warn = warnings.warn

    def told_of(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **options: Any) -> None:
        notes.unfit()
        warn(message, category, stacklevel + 1, source, **options)

    warnings.warn = told_of  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.warn = warn


HOPELESS = 1 << 3  #: times as many calls as before the first was noted, after which such calls are left alone


class Repeated(Known):
    """One keeps what is known of a public function's calls with a first operand of one layout, by which it stands in ``table``."""

    __slots__ = ("key", "table")
    key: Any
    table: dict[Any, Any]

    def __init__(self, table: dict[Any, Any], key: Any):
        super().__init__()
        self.table, self.key = table, key

    def note(self, forward: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        out = super().note(forward, args, options)
        if not self.replays and self.due > HOPELESS * recurring.FIRST:
            self.table[self.key] = None
        return out

    def noted(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any]:
        call = _Call(args, options)
        if not _warning.acquire(False):
            raise Unfit("another thread listens")
        try:
            notes, born = _Calls(call.arrays), sequence()
            with observed(notes), _listening(notes):
                out = function(*args, **options)
        finally:
            _warning.release()
        return out, lambda: _repeat(call, notes, born, out)


#: the rooms of ops that make tensors of numbers, tell of them, or draw
_ROOMS = tuple([__name__.partition(".")[0] + f".ops.{room}" for room in ("creation", "random")])
#: functions from there that compute with tensors
_COMPUTE = {"bernoulli", "binomial", "normal", "poisson"}
#: functions that compute nothing, and are as quick as what would repeat them: views, and what tells of a tensor
_VIEWS = {
    "adjoint", "as_strided", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to", "conj", "detach", "expand_as", "is_conj", "is_neg", "positive",
    "__pos__", "ravel", "reshape_as", "resolve_conj", "resolve_neg", "type", "view_as", "view_as_complex",
}  # fmt: skip


#: functions that are one formula, and as quick as what would repeat them
_QUICK = {
    "angle", "conj_physical", "div", "divide", "equal", "heaviside", "logit", "nn.functional.gelu", "nn.functional.hardsigmoid",
    "nn.functional.hardswish", "nn.functional.relu", "rsub", "sgn", "special.logit", "true_divide",
    "clamp_", "clamp_max_", "clamp_min_", "conj_physical_", "div_", "igamma_", "igammac_", "logit_", "polygamma_", "pow_", "round_", "sgn_",
}  # fmt: skip

#: functions that make another view of a tensor itself, or other memory its own
_INTO_VIEWS = {"as_strided_", "resize_", "resize_as_", "set_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_"}

_ALONE = _VIEWS | _INTO_VIEWS | _QUICK


def _thin(table: dict[Any, Any]) -> None:
    """Make room in a table: layouts that were seen once go, as in a program whose shapes are ever new; all where that is not enough."""
    for layout in [layout for layout, known in table.items() if not known]:
        del table[layout]
    if 2 * len(table) > LAYOUTS:
        table.clear()


def _seen_once(table: dict[Any, Any], key: Any, layout: Any) -> None:
    """Let calls like this one be noted from the next on, but those of large operands."""
    if layout.__class__ is Layout:
        if len(table) >= LAYOUTS:
            _thin(table)
        table[key] = False if layout.size <= ELEMENTS else None


def repeatable(name: str, function: Callable[..., Any], module: str | None) -> bool:
    """Return whether calls of a public function from a module may be `repeated`: it computes, and has no such way already."""
    if name in _ALONE or "written" in function.__dict__ or module is None:  # (what is only text has none)
        return False
    return name[-1] == "_" or name in _COMPUTE or not module.startswith(_ROOMS)


def repeated(
    function: Callable[..., Any], own_words: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda options: None,
    kinds: Callable[[tuple[Any, ...]], Any] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Decorator of a public function: calls that recur are repeated, and the function itself is not called.

    own_words: from the keywords of a call that was refused to the function's own for them, or None where they are; so other calls do not pay for it.
    kinds: what tells calls apart, by their arguments, besides the first operand's layout, where a program has many kinds of them.
    """
    table: dict[Any, Repeated | bool | None] = {}  # by the first operand's layout, and the text or number before it; False: seen once; None: left alone

    def call(*args: Any, **options: Any) -> Any:
        try:
            a = args[0]
            kind = a.__class__
            if kind is list or kind is tuple:
                key = layout = a[0]._layout
            elif kind is str or kind is int:  # einsum's, polygamma's
                layout = args[1]._layout
                key = a, layout
            else:
                key = layout = a._layout
                if kinds is not None:
                    key = layout, kinds(args)
            known = table[key]
        except KeyError:
            known = None
            _seen_once(table, key, layout)
        except (AttributeError, IndexError, TypeError):
            known = None
        try:
            if not known or launch._observing or Overrides.standing or state.inference:
                if known is False:
                    table[key] = Repeated(table, key)
                return function(*args, **options)
            last = known.last  # type: ignore[union-attr]
            out = last(args, options)
            if out is not None:
                return out
            for replay in known.replays:  # type: ignore[union-attr]
                if replay is not last:
                    out = replay(args, options)
                    if out is not None:
                        known.answered(replay)  # type: ignore[union-attr]
                        return out
            return known.miss(function, args, options)  # type: ignore[union-attr]
        except (TypeError, AttributeError):
            renamed = None
            if not foreign_among((*args, *options.values())):
                renamed = own_words(options)
                if renamed is None:
                    raise
        return asked.redefined(getattr(call, "public", call), args, options) if renamed is None else call(*args, **renamed)

    # (as `functools.wraps`, which at import would run ten functions for each of five hundred)
    call.__module__, call.__name__, call.__qualname__, call.__doc__ = function.__module__, function.__name__, function.__qualname__, function.__doc__
    call.__dict__ = {**function.__dict__, "__wrapped__": function, "written": True}
    recurring.tables.append(table)
    return call
