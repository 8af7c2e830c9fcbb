"""`compile`: a function that is captured once for each kind of call, and then run as a native program."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from .. import launch, locks
from ..autograd.interpreters import Wrapped
from ..codegen.build import compilation
from ..config import unusual
from ..dtypes import _default as default
from ..errors import warn_user
from ..graph import casting, markup
from ..graph.modes import state
from ..tensor import Tensor
from .capture.recorder import Problem
from .guards.carried_state import Kept
from .guards.places import NotYet, TooMuch, in_library
from .guards.reach import Reach
from .lower.executable import Refused
from .nested import difference, flatten
from .remedies import remedy
from .run.check import CompileError, compared
from .run.fast_path import OTHER
from .run.serving import surroundings
from .run.variant import Variant
from .session import Session, Unstable
from .stance import captures
from .stance import current as stance

MOST_KINDS = 16  #: of calls of one function, or programs; what comes then stays eager
FIRST = "first call of its kind"
ATTEMPTS = 4  #: captures in a row that find Python's state changed
HOPELESS = 64  #: calls in a row that stay eager, after which those without arguments do so whatever the function carries from one to the next


_all: weakref.WeakSet = weakref.WeakSet()
_capturing = locks.lock()
locks.wait_for(_capturing)  # a capture stands in the place of builtins, and of the numbers of optimizers


class Kind:
    """Calls that look alike from outside: same types, flags and Python arguments."""

    __slots__ = ("attempts", "eager", "variants")
    eager: str
    attempts: int

    def __init__(self) -> None:
        self.variants: list[Variant] = []
        self.eager = ""  # why they are not captured
        self.attempts = 0  # captures in a row that found Python's state changed


if TYPE_CHECKING:
    from .run.profile import Profile

P = ParamSpec("P")
R = TypeVar("R")


class Programs(list[Variant]):
    """The programs that a compiled function has captured, printed a sentence a line."""

    def __repr__(self) -> str:
        return "\n".join(f"  {i}. {program!r}" for i, program in enumerate(self, 1)) or "nothing captured yet"

    def _repr_html_(self) -> str:
        """Return what notebooks show: each program folds out to its kernels with the lines that they came from."""
        return markup.page(*[program.folded(i) for i, program in enumerate(self, 1)] or ["<div>nothing captured yet</div>"])


class Compiled(Generic[P, R]):
    """The callable that `compile` returns for a function: it is called like it, and captured once for each kind of call."""

    def __init__(self, function: Callable[P, R], fullgraph: bool, check: bool):
        functools.update_wrapper(self, function, updated=())
        self._function, self._fullgraph, self._check = function, fullgraph, 3 if check else 0
        self._kinds: dict[Any, Kind] = {}
        self._told: set[str] = set()  # warnings that were given
        self._kept: dict[tuple[int, Any], Kept] = {}  # where it leaves tensors
        self._carried: list[Kept] = []  # those of them that it reads
        self._rounds = 0  # how often there were more of these
        self._last: Variant | None = None  # what served the last call, if that was given nothing but tensors, and may serve the next at once
        self._eager: Any = None  # what held around a call without arguments, if such calls stay eager
        self._eagerly = 0  # calls in a row that did
        _all.add(self)

    def __repr__(self) -> str:
        """Return what was captured, and what runs eagerly and why, as sentences."""
        name = getattr(self._function, "__qualname__", None) or type(self._function).__name__
        programs, eager = self.programs, [kind.eager for kind in self._kinds.values() if kind.eager]
        lines = [f"Compiled function {name}: " + (f"{len(programs)} program{'s' * (len(programs) != 1)}." if programs else "nothing captured yet.")]
        lines += repr(programs).splitlines() if programs else []
        lines += [f"  One kind of call runs eagerly: {reason}" for reason in eager]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return what notebooks show: each program folds out to its kernels with the lines that they came from."""
        name = getattr(self._function, "__qualname__", None) or type(self._function).__name__
        parts = [f"<div>Compiled function <b>{markup.escape(name)}</b>{'' if self._kinds else ': nothing captured yet'}</div>"]
        parts += [program.folded(i) for i, program in enumerate(self.programs, 1)]
        parts += [f"<div>One kind of call runs eagerly: {markup.escape(kind.eager)}</div>" for kind in self._kinds.values() if kind.eager]
        return markup.page(*parts)

    def __reduce__(self) -> Any:
        function = self._function
        module = sys.modules.get(getattr(function, "__module__", None) or "")
        if getattr(module, getattr(function, "__qualname__", ""), None) is self:  # a decorated function is found by its name
            return str(function.__qualname__)
        return compile_function, (function, self._fullgraph, self._check > 0)

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        function = self._function
        return (
            self
            if isinstance(function, types.FunctionType)
            else compile_function(deepcopy(function, memo), self._fullgraph, self._check > 0)
        )

    def look_again(self) -> None:
        """Let the next call look at the stance, as calls that are served at once do not."""
        self._last = self._eager = None

    def forget(self) -> None:
        """Let calls be captured anew from now on."""
        self._kinds, self._told, self._kept, self._carried, self._rounds = {}, set(), {}, [], 0
        self.look_again()
        self._eagerly = 0

    @property
    def programs(self) -> list[Variant]:
        """Return the captured calls; each has ``reason`` (why it was captured), ``program`` and ``key``."""
        return Programs(v for kind in self._kinds.values() for v in kind.variants)

    def profile(self, *args: P.args, **kwargs: P.kwargs) -> Profile:
        """Return where the time of such a call goes, kernel by kernel, from 20 of them: they are made, and update what they update.

        `viz.time_map` draws it. Errors: RuntimeError for a call that runs eagerly.

        >>> step = torch.compile(lambda x: (x * 2).exp().sum())
        >>> where = step.profile(torch.ones(1000))
        >>> len(where.times) == len(step.programs[0].program.steps)
        True
        """
        from .run.profile import profile

        for _ in range(3):  # what changes Python's state at first, a gradient that was None, is captured after it
            self(*args, **kwargs)
        self._last = None  # the shortest way passes by what times the steps
        return profile(lambda: self(*args, **kwargs), *self.programs)

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Compiled[P, R]: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Callable[..., R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        last = self._last
        if last is not None and not kwargs:
            try:
                result = last.state.call(last, args)  # type: ignore[misc]
            except Refused:
                return self._function(*args)  # type: ignore[call-arg]
            if result is not OTHER:
                return result
        eager = self._eager
        if eager is not None and not args and not kwargs and state.grad is eager[0] and default[0] is eager[1]:
            if not unusual or casting.surroundings() == eager[2]:
                return self._function()  # type: ignore[call-arg]
        around = None if stance.eager else surroundings()
        watching = launch.observer()
        if around is None or (watching is not None and (self._carried or not hasattr(watching, "program"))):
            return self._function(*args, **kwargs)
        leaves: list[Tensor] = []
        given = tuple([Tensor if a.__class__ is Tensor else None for a in args])
        key: Any
        if kwargs or None in given:
            key = (flatten(args, leaves), flatten(kwargs, leaves) if kwargs else None, around)
        else:
            leaves, key = list(args), (given, None, around)  # type: ignore[arg-type]
        carried: list[tuple[Kept, Any]] = []
        if self._carried:
            carried = [(k, k.get()) for k in self._carried]
            key = (*key, flatten([v for _, v in carried], leaves))
        kind = self._kinds.get(key)
        variant, reason = (None, "") if kind is None else self._find(kind, leaves)
        if variant is None:
            if kind is not None and kind.eager:
                self._eagerly += 1
                same = key[:3] == ((), None, around) and (len(key) == 3 or self._eagerly > HOPELESS)
                self._eager = around if same else None
                return self._function(*args, **kwargs)
            with _capturing:  # one at a time: a capture changes what other threads would see
                kind = self._kinds.get(key)
                variant, reason = (None, self._news(key)) if kind is None else self._find(kind, leaves)
                if variant is None:
                    return self._capture(key, leaves, args, kwargs, carried, reason)
        self._eagerly = 0
        try:
            if self._check:
                self._check -= 1
                return compared(variant, leaves, args, kwargs)
            self._last = variant if len(key) == 3 and key[0] is given and variant.state.call is not None else None
            return variant.serve(leaves) if watching is None else watching.program(self.__name__, variant.serve, leaves)
        except Refused:  # a value was refused before anything had changed: say so as the function itself does
            return self._function(*args, **kwargs)

    def _find(self, kind: Kind, leaves: list[Tensor]) -> tuple[Variant | None, str]:
        """Return the captured call that serves, or why none does."""
        reason = FIRST
        for v in kind.variants:
            reason = v.refuses(leaves)
            if not reason:
                return v, ""
        return None, reason

    def _news(self, key: Any) -> str:
        """Return how a kind of call differs from the last one that was new."""
        last = next(reversed(self._kinds), None)
        if last is None:
            return FIRST
        (args, kwargs, (grad, dtype, cast), *kept), (args_then, kwargs_then, (grad_then, dtype_then, cast_then), *kept_then) = key, last
        if grad is not grad_then:
            return f"grad mode is {'on' if grad else 'off'}"
        if dtype is not dtype_then:
            return f"the default dtype is {dtype} and was {dtype_then}"
        if cast != cast_then:
            return f"autocast is {'off' if cast is None or cast[0] is None else f'on with {cast[0]}'}, or is set otherwise than it was"
        given, given_then = (a if a[:1] == (tuple,) else (tuple, *a) for a in (args, args_then))
        if len(given) != len(given_then):
            return f"{len(given) - 1} positional arguments and not {len(given_then) - 1}"
        named, named_then = (k or () for k in (kwargs, kwargs_then))
        if [k for k, _ in named[1:]] != [k for k, _ in named_then[1:]]:
            return f"keyword arguments {[k for k, _ in named[1:]]} and not {[k for k, _ in named_then[1:]]}"
        changed = difference(given, given_then, "argument ") or difference(named, named_then, "argument ")
        if changed or not kept:
            return changed
        pairs = zip(self._carried, kept[0][1:], kept_then[0][1:], strict=True)
        return next((found for k, a, b in pairs if (found := difference(a, b, k.path))), "")

    # ---- capturing
    def _capture(
        self, key: Any, leaves: list[Tensor], args: tuple, kwargs: dict[Any, Any], carried: list[tuple[Kept, Any]], reason: str
    ) -> Any:
        if stance.new and not captures(self.__name__, reason):
            return self._function(*args, **kwargs)
        kind = self._kinds.get(key)
        if sum(max(1, len(k.variants)) for k in self._kinds.values()) >= MOST_KINDS and (kind is None or kind.variants):
            self._give_up(kind or Kind(), Problem(f"{MOST_KINDS} other programs or kinds of calls came before"))
            return self._function(*args, **kwargs)
        if kind is None:
            kind = self._kinds[key] = Kind()
        try:
            reach = Reach(self._kept)
            reach.function(self._function)
            others: list[Any] = []
            given = (args, kwargs, [v for _, v in carried])
            before = flatten(given, [], others)
            for a in others:
                reach.value("an argument", a)
            for cls in {t.__class__ for t in (*leaves, *(t for _, t in reach.tensors.values()))}:
                if issubclass(cls, Wrapped):  # within vmap, grad or jvp
                    kind.eager = "it is called within a transform"
                    return self._function(*args, **kwargs)
                if not in_library(cls.__module__):
                    raise TooMuch(f"it works on a tensor of the class {cls.__name__}")
            session = Session(self._function, reach, leaves, carried)
        except NotYet:
            return self._function(*args, **kwargs)
        except TooMuch as error:
            if self._fullgraph or not kind.variants:
                self._give_up(kind, Problem(str(error)))
            return self._function(*args, **kwargs)
        result = session.run(args, kwargs)
        try:
            after: list[Tensor] = []
            if before != flatten(given, after) or any(t is not s for t, s in zip(after, leaves, strict=True)):
                raise Problem("it changes a container that it is given; return the values instead")
            variant = session.variant(key, reason, given, result)
        except Unstable as error:
            for k in session.unwritten:
                del self._kept[k.place]
            self._kept.update(reach.left())
            kind.attempts += 1
            if session.read and self._rounds < ATTEMPTS:
                self._carry(session.read)
            elif kind.attempts >= ATTEMPTS:
                self._give_up(kind, Problem(f"every call changes Python's state: {error.what}"))
            return result
        except Problem as problem:
            self._give_up(kind, problem)
            return result
        kind.attempts = self._eagerly = 0
        kind.variants.insert(0, variant)
        return result

    def _carry(self, places: list[Kept]) -> None:
        """Let what is left in these places be arguments from now on, of which no key has told so far."""
        for k in places:
            k.read = True
        self._carried += places
        self._kinds, self._last, self._eager = {}, None, None
        self._rounds += 1

    def _give_up(self, kind: Kind, problem: Problem) -> None:
        name = getattr(self._function, "__name__", "function")
        where = f" at {problem.line}" if problem.line else ""
        change = remedy(problem.reason)
        if self._fullgraph:
            raise CompileError(f"compile({name}, fullgraph=True): {problem.reason}{where}{change}")
        kind.eager = problem.reason + change
        warning = f"compile({name}): this kind of call runs eagerly, as {problem.reason}{where}{change}"
        if warning not in self._told:
            self._told.add(warning)
            warn_user(warning, UserWarning)


def compile_function(function: Any, fullgraph: bool, check: bool) -> Any:
    """Return the compiled form of a function (see `autograd_nb.compile`)."""
    if compilation.disabled():
        return function
    return Compiled(function, fullgraph, check)


__all__ = ["CompileError", "Compiled", "compile_function"]
