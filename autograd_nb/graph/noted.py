"""Launches that are noted once and repeated: what they may depend on is compared, as text, and their arguments are told by their places.

What `recurring` does for backward passes and `ops.core.known_calls` for the forward functions of ops is made of this.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import dtypes, launch
from ..codegen import threads
from ..config import settings
from ..shapes import Dims, Layout
from . import ownership
from .collector import living
from .node import written

ELEMENTS: int = 1 << 20  #: of an array at most: kernels of larger ones take longer than Python does
NUMBERS: int = 256  #: of an array that is compared element by element
BYTES: int = 1 << 21  #: memory in between that is kept for one
NOTED: int = 1 << 24  #: memory of a pass's own up to which notes are taken of it: they keep what the pass would have given back


class Unfit(Exception):
    """Why launches cannot be repeated."""


def place() -> tuple[int, int]:
    """Return the place of the random numbers that are drawn, a seed and a number; set by the ops."""
    raise RuntimeError("the ops have not been imported")


def draw() -> tuple[int, int]:
    """Return the seed and the number of the next draw; set by the ops."""
    raise RuntimeError("the ops have not been imported")


parameter: Any = None  #: the class of parameters, set by it


def make(*_: Any) -> Any:
    """Make a tensor of (data, layout, version); set by the ops."""
    raise RuntimeError("the ops have not been imported")


# ----------------------------------------------------------------------------------------------------------- checks


class Turn(int):
    """The number of a draw, by which it can be made again: it is another one each time, which is no difference between passes."""

    __slots__ = ()


class Seed(int):
    """The seed of a draw in a call that is noted."""

    __slots__ = ()


DRAWN: tuple[type, type] = (Seed, Turn)


class Checks:
    """The text that compares what launches may depend on with what it was, and returns None where something differs.

    ``arrays``: those that it finds, called by ``slots``.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"ndarray": np.ndarray, "told": told, "S": settings, "D": dtypes._default, "T": ownership.tensor, "Turn": Turn}
        self.arrays: list[np.ndarray] = []
        self.slots: dict[int, str] = {}  # id of an array -> its name
        self.turns: dict[int, str] = {}  # id of the number of a draw, or of its seed -> its name
        self._parts = 0
        self.differs("S.threads", "!=", settings.threads)
        self.differs("S.matmul_precision", "!=", settings.matmul_precision)
        self.differs("D[0]", "is not", dtypes.get_default_dtype())

    def name(self, value: Any) -> str:
        """Return a name by which the text finds a value."""
        found = f"c{len(self.names)}"
        self.names[found] = value
        return found

    def differs(self, text: str, how: str, value: Any) -> None:
        """Return None where the value of ``text`` ``how`` ("is not", "!=") this one."""
        self.lines.append(f"if {text} {how} {self.name(value)}: return None")

    def same(self, text: str, value: Any) -> None:
        """Return None where the value of ``text``, a number, a shape or the like, differs from this one. Unfit where that is not known."""
        kind = value.__class__
        if value is None or kind is bool or kind is Layout or kind is dtypes.DType:
            self.differs(text, "is not", value)
        elif kind is Turn:
            turn = self.turns.setdefault(id(value), f"w{len(self.turns)}")
            self.lines += [f"{turn} = {text}", f"if {turn}.__class__ is not Turn: return None"]
        elif kind in _SIMPLE or (kind is float and value and value == value) or (isinstance(value, tuple) and _INTEGERS.issuperset(map(type, value))):
            self.differs(f"{text}.__class__", "is not", kind)
            self.differs(text, "!=", value)
        else:
            self.differs(f"told({text})", "!=", told(value))

    def array(self, text: str, value: Any) -> None:
        """Return None where ``text`` is an array of another size than this, or another one than where this was met before."""
        if value.__class__ is not np.ndarray:
            raise Unfit("memory of another kind")
        slot = self.slots.get(id(value))
        if slot is not None:
            self.lines.append(f"if {text} is not {slot}: return None")
            return
        slot = self.slots[id(value)] = f"s{len(self.arrays)}"
        self.arrays.append(value)
        self.lines += [f"{slot} = {text}", f"if {slot}.__class__ is not ndarray or {slot}.size != {value.size}: return None"]

    def unpack(self, text: str, count: int) -> list[str]:
        """Return names for the ``count`` parts of a tuple or list."""
        self._parts += count
        found = [f"p{i}" for i in range(self._parts - count, self._parts)]
        if found:
            self.lines.append(f"{', '.join(found)}, = {text}")
        return found

_INTEGERS = frozenset((int, type(None)))
_SIMPLE = (int, str)
#: classes of objects that never change, the ops, which are told by what they are
fixed: set[type] = set()
#: what values that rules read may consist of: equal ones of one class make the same launches
_PLAIN = frozenset((int, bool, str, type(None), type(Ellipsis), Layout, dtypes.DType))


def told(value: Any) -> Any:
    """Return what tells a number, a shape and the like from others. Unfit where it is not of such a kind."""
    kind = value.__class__
    if kind in _PLAIN:
        return kind, value
    if kind is float or kind is complex:
        return kind, repr(value)  # (0.0 and -0.0 are equal)
    if isinstance(value, (tuple, list)):
        return kind, [told(v) for v in value]
    if kind in fixed:
        return kind, id(value)
    if kind is slice:
        return kind, [told(v) for v in (value.start, value.stop, value.step)]
    if kind is np.ndarray and value.size <= NUMBERS:  # sizes and the like, which are no tensor's
        return kind, value.dtype.str, value.shape, value.tobytes()
    raise Unfit("a rule that reads an object")


# ---------------------------------------------------------------------------------------------------------- replays


class Replays:
    """Each of these keeps replays of passes or calls of one kind, and says after how many that none stood for another is to be noted.

    What was noted last is on trial until it stands for one: where draws have numbers of their own, nothing ever recurs.
    """

    __slots__ = ("due", "fresh", "missed", "replays")
    due: int
    missed: int

    def __init__(self, due: int):
        self.missed, self.due = 0, due
        self.replays: list[Callable[..., Any]] = []
        self.fresh: Callable[..., Any] | None = None  # the replay on trial

    def dropped(self, longest: int) -> bool:
        """Begin to count anew; drop the replay on trial, if there is one, and let the next wait longer, up to ``longest``. Return whether it was so."""
        self.missed = 0
        if self.fresh is None:
            return False
        self.replays = [other for other in self.replays if other is not self.fresh]  # (another list: other threads may be at this one)
        self.fresh, self.due = None, max(self.due, min(4 * self.due, longest))
        return True


# ------------------------------------------------------------------------------------------------------------ notes


class Notes:
    """The observer of a pass: its launches, with each array told as a slot (one that the pass found) or memory of the pass's own."""

    def __init__(self, arrays: Sequence[np.ndarray]):
        self.slots: dict[int, str] = {id(a): f"s{i}" for i, a in enumerate(arrays)}
        self.shared: dict[int, list[np.ndarray]] = {}  # the memory of slots -> which of them
        for a in arrays:
            self.shared.setdefault(id(launch.memory.root(a)), []).append(a)
        self._foreign: set[int] | None = None
        self._arrays = arrays  # which keeps them, and so their ids
        self.own: dict[int, np.ndarray] = {}  # memory of the pass's own, by id,
        self.bytes: int = 0  # and how much that is
        self.lines: list[tuple[Any, list[Any]]] = []  # (entry point, arguments)
        self.written: set[int] = set()
        self.constants: dict[int, np.ndarray] = {}  # memory of numbers that Python has written, the same each time
        self.draws: list[tuple[Seed, Turn]] = []  # those that a repetition makes too
        self.why: str = ""

    def __call__(self, call: Any, args: tuple[Any, ...]) -> None:
        call.entry(*args)
        if self.why:
            return
        try:
            first = len(args) - call.outputs
            self.lines.append((_shared(call, args), [self._argument(a, i >= first or i == call.over) for i, a in enumerate(args)]))
        except Unfit as error:
            self.why = str(error)
            self.lines, self.own = [], {}

    def _argument(self, a: Any, writes: bool) -> Any:
        if isinstance(a, list):
            return [self._argument(x, writes) for x in a]
        return self.place(a, writes) if isinstance(a, np.ndarray) else a

    def place(self, a: np.ndarray, writes: bool) -> Place:
        if a.size > ELEMENTS:
            raise Unfit("large arrays")
        slot = self.slots.get(id(a))
        if slot is not None:
            return Place(slot, a, a, 0, writes)
        whole = launch.memory.root(a)
        if id(whole) in self.constants:
            if writes:
                raise Unfit("numbers of Python's that are written over")
            self.own[id(whole)] = whole
        among = self.shared.get(id(whole))
        if among is not None:
            if len(among) > 1:
                raise Unfit("arrays that lie in the same memory")
            (found,) = among
            begin, rest = divmod(launch.memory.address(a) - launch.memory.address(found), a.itemsize)
            if rest or begin < 0 or found.nbytes % a.itemsize or (begin + a.size) * a.itemsize > found.nbytes:
                raise Unfit("memory beside an operand's")
            return Place(self.slots[id(found)], found, a, begin, writes)
        if id(whole) not in self.own:
            if not writes and a.size and not Dims.holds(whole) and id(whole) in self._of_tensors():
                raise Unfit("a tensor that is no part of the graph")
            self.own[id(whole)] = whole
            self.bytes += whole.nbytes
            if self.bytes > NOTED:
                raise Unfit("much memory in between")
        if writes:
            self.written.add(id(whole))
        return Place("", whole, a, (launch.memory.address(a) - launch.memory.address(whole)) // a.itemsize, writes)

    def _of_tensors(self) -> set[int]:
        """Return the memory of all tensors, which is asked for what is read but was never written."""
        if self._foreign is None:
            among = [t for t in living(ownership.tensor) if t.__class__ is ownership.tensor]
            found = [getattr(t, "_data", None) for t in among]  # None: another thread is just making it
            self._foreign = {id(launch.memory.root(a)) for a in found if a is not None}
        return self._foreign

    def unfit(self, *_: Any) -> Any:
        self.why = self.why or "values that Python looks at"

    def constant(self, array: np.ndarray) -> None:
        whole = launch.memory.root(array)
        if id(whole) in self.shared or id(whole) in self.written:
            self.unfit()
        self.constants[id(whole)] = whole

    escapes: Callable[..., Any] = unfit
    draw: Callable[..., Any] = unfit
    problem: Callable[..., Any] = unfit

    def check(self, function: Callable[..., None], arrays: tuple[Any, ...], passes: Any = ()) -> None:
        self.unfit()
        function(*arrays)


@contextmanager
def observed(notes: Notes) -> Iterator[None]:
    """Let notes be taken of this thread's launches within the context; where random numbers were drawn that they do not know of they are of no use."""
    seed, served = place()
    with launch.observe(notes):
        yield
    if place() != (seed, served + len(notes.draws)):
        notes.why = "random numbers"


def _shared(call: Any, args: tuple[Any, ...]) -> Callable[..., None]:
    """Return what repeats a launch: its entry point, or what lets threads share it where they do."""
    if call.parts is None or len(call.parts(args)) < 2:
        return call.entry  # type: ignore[no-any-return]
    split = getattr(call.parts, "__self__", None)
    if isinstance(split, threads.Split):
        return split

    def share(*args: Any) -> None:
        if settings.threads == 1:
            call.entry(*args)
        else:
            threads.run(call.entry, call.parts(args))

    return share


class Asked:
    """A question about what kernels wrote, in the place of a launch: where an element is out of bounds, ``function`` is called, which may raise.

    ``passes``: (array, element, least, most); without a function the call is another one than this.
    """

    __slots__ = ("function", "passes")

    def __init__(self, function: Callable[..., None] | None, passes: Sequence[tuple[int, int, int, int]]):
        self.function, self.passes = function, passes

    def __call__(self, *arrays: Any) -> None:
        assert self.function is not None
        self.function(*arrays)

    def text(self, name: str, arrays: list[str]) -> str:
        """Return the line that asks; ``name``: what it is called by."""
        within = " and ".join([f"{least} <= {arrays[k]}.item({element}) <= {most}" for k, element, least, most in self.passes])
        then = "return None" if self.function is None else f"{name}({', '.join(arrays)})"
        return f"if not ({within}): {then}" if within else then


class Place:
    """An array argument: elements of ``whole``, which is one of the pass's arrays, named ``slot``, or memory of its own ("")."""

    __slots__ = ("array", "begin", "slot", "whole", "writes")
    array: Any
    begin: int
    slot: str
    whole: Any
    writes: bool

    def __init__(self, slot: str, whole: np.ndarray, array: np.ndarray, begin: int, writes: bool):
        self.slot, self.whole, self.array, self.begin, self.writes = slot, whole, array, begin, writes


# ------------------------------------------------------------------------------------------------------------ texts


class Text:
    """The text that repeats launches: what they write that is kept afterwards (``fresh``) is new each time, other memory its own."""

    checks: Checks
    notes: Notes
    writable: set[str]
    names: dict[str, Any]

    def __init__(self, checks: Checks, notes: Notes, writable: set[str] = frozenset()):  # type: ignore[assignment]
        if notes.why:
            raise Unfit(notes.why)
        self.checks, self.notes, self.writable = checks, notes, writable
        self.names = {**checks.names, "_make": make, "_empty": np.empty, "_pooled": launch.empty, "_busy": threading.Lock(), "Unfit": Unfit}
        self.fresh: dict[int, str] = {}  # memory that is kept -> its name
        self.begin: list[str] = []
        for k, (seed, turn) in enumerate(notes.draws):
            checks.turns[id(seed)], checks.turns[id(turn)] = f"y{k}", f"w{k}"
            self.begin += [f"y{k}, w{k} = _draw()", f"w{k} = Turn(w{k})"]
        if notes.draws:
            self.names["_draw"] = draw

    def turn(self, number: Any) -> str:
        """Return the name of the number of a draw, or of its seed."""
        if id(number) not in self.checks.turns:
            raise Unfit("a draw that is no part of the graph")
        return self.checks.turns[id(number)]

    def part(self, of: str, place: Place) -> str:
        """Return the text of an array that is a part of the one called ``of``, or reads it as another dtype."""
        if place.array is place.whole:
            return of
        if place.array.dtype != place.whole.dtype:
            kind = f"h{len(self.names)}"
            self.names[kind] = place.array.dtype
            of = f"{of}.view({kind})"
        return f"{of}[{place.begin}:{place.begin + place.array.size}]"

    def keep(self, t: Any, number: int) -> str:
        """Return the text that makes what ``t``, a result of the launches, is. Unfit where its memory is not theirs, or another's too."""
        data = t._data
        own = id(data) in self.notes.written if data.size else not self.notes.place(data, False).slot
        if not own or id(data) in self.fresh or t._view is not None or t._rg:
            raise Unfit("a result in memory of others")
        self.names[f"l{number}"] = t._layout
        return f"_make({self.new(data)}, l{number}, [0, 0])"

    def new(self, whole: np.ndarray) -> str:
        """Return the name of memory that is new each time, in the place of what the launches have written."""
        name = self.fresh.get(id(whole))
        if name is None:
            if (whole.size and id(whole) not in self.notes.written) or whole.ndim != 1:
                raise Unfit("memory that no launch has written")
            name = self.fresh[id(whole)] = f"r{len(self.fresh)}"
            self.names[f"d_{name}"] = whole.dtype
            self.begin.append(f"{name} = {'_empty' if whole.nbytes < launch.BIG else '_pooled'}({whole.size}, d_{name})")
        return name

    def function(self, name: str, parameters: str, ends: Sequence[str], after: Sequence[str]) -> tuple[Callable[..., Any], int]:
        """Return the function, and how many bytes of memory it holds: its launches, then ``ends``, and ``after`` them what is no part of that."""
        lines = []
        for n, (entry, args) in enumerate(self.notes.lines):
            self.names[f"k{n}"] = entry
            texts = []
            for i, a in enumerate(args):
                if isinstance(a, list):
                    texts.append(f"[{', '.join(self._argument(x, f'k{n}_{i}_{j}') for j, x in enumerate(a))}]")
                else:
                    texts.append(self._argument(a, f"k{n}_{i}"))
            lines.append(entry.text(f"k{n}", texts) if entry.__class__ is Asked else f"k{n}({', '.join(texts)})")
        held = sum(w.nbytes for i, w in self.notes.own.items() if i not in self.fresh)
        if held > BYTES:
            raise Unfit("much memory in between")
        work = [*self.begin, *lines, *ends]
        if any(i in self.notes.written for i in self.notes.own if i not in self.fresh):  # memory in between, which serves one at a time
            busy = ["if not _busy.acquire(False):", "    return None", "try:"]
            work = [*busy, *["    " + line for line in [*work, "pass"]], "finally:", "    _busy.release()"]
        text = [
            "try:",
            *["    " + line for line in self.checks.lines],
            "except (AttributeError, LookupError, RuntimeError, TypeError, ValueError, Unfit):",
            "    return None",
            *work,
            *after,
        ]
        return written(name, parameters, text, __file__, **self.names), held

    def _argument(self, a: Any, name: str) -> str:
        """Return how an argument of a launch is written; what does not change is kept by ``name``."""
        if isinstance(a, DRAWN):
            return self.turn(a)
        if not isinstance(a, Place):
            if isinstance(a, tuple) and any(isinstance(v, DRAWN) for v in a):
                raise Unfit("draws in a tuple")
            self.names[name] = a
            return name
        of = a.slot
        if of and a.writes and of not in self.writable:
            raise Unfit("memory of the graph's that is written")
        if not of:
            of = self.fresh.get(id(a.whole), "")
            if not of:
                self.names[name] = a.array
                return name
        return self.part(of, a)
