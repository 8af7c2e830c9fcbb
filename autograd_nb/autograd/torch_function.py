"""``__torch_function__``: classes and modes that take over calls of public functions, methods, operators and attributes of tensors.

As transforms do (see `overriding`), it stands in the place of what it may take over only while something may: while there is a class that has
the method (a subclass of Tensor of which there was an object, or another that was met), or a mode is open. Each public function then runs
`_dispatch` and not its own code. It stays the same object, as programs keep tables of functions. Otherwise plain tensors pay nothing for all this.

In PyTorch what is written in C++ calls its like past ``__torch_function__``, and what is written in Python does not. Here so do all
layers but those of `_PYTHON`. Source: https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-python-api
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from .. import locks
from ..graph import casting
from ..graph.modes import PerThread
from ..graph.transformed import BETWEEN
from ..ops.core.registry import OPS, USERS
from ..overriding import overridable
from ..tensor import Tensor
from .api import backward, grad
from .subclasses import Redefining, _disabled_torch_function_impl, as_subclass, of_class

#: layers of this package whose calls are taken over too: PyTorch's are written in Python
_PYTHON = ("nn", "optim", "distributions", "utils", "compat", "masked.py", "__init__.py")

#: functions that no class takes over: what asks nothing of tensors, and what makes plain ones of anything
IGNORED = {
    "is_tensor", "manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "typename", "set_printoptions", "set_default_tensor_type",
    "is_storage", "get_default_device", "get_device_module", "broadcast_shapes", "can_cast", "result_type", "as_subclass", "tensor", "as_tensor",
    "asarray", "from_numpy", "from_dlpack", "scalar_tensor", "__hash__", "__iter__", "__torch_function__", "__pointwise__", "__array_function__",
    "__array_ufunc__", "__dir__",
}  # fmt: skip

#: operators -> the methods as which PyTorch hands them on
HANDED_ON = {
    "__abs__": "abs", "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_", "__mul__": "mul",
    "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_", "__ifloordiv__": "floor_divide_", "__mod__": "remainder",
    "__imod__": "remainder_", "__neg__": "neg", "__pos__": "positive", "__matmul__": "matmul", "__ge__": "ge", "__gt__": "gt", "__le__": "le",
    "__lt__": "lt", "__ne__": "ne", "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor",
}  # fmt: skip


class _State(PerThread):
    disabled = 0  # 1: subclasses do not take over, 2: nor do modes
    running: tuple[Any, ...] = ()  # the function of `_asked_again`, and the modes around it
    modes: tuple[Any, ...] = ()  # the innermost last


state: Any = _State()
_FOLDER = Path(__file__).parents[1]


@cache
def _computes(file: str) -> bool:
    """Return whether a file is one of those whose calls are not taken over."""
    path = Path(file)
    return _FOLDER in path.parents and path.relative_to(_FOLDER).parts[0] not in _PYTHON and file != __file__


# ------------------------------------------------------------------------------------------------- who takes over


_plain: set[type] = {Tensor, int, float, bool, str, type(None)}  #: classes that are known to take over nothing


def redefines(cls: type) -> bool:
    """Return whether a class takes over calls: it has a ``__torch_function__``, and is not this library's."""
    if cls in _plain:
        return False
    method = getattr(cls, "__torch_function__", None)
    if method is None or method is _disabled_torch_function_impl or (issubclass(cls, Tensor) and not hasattr(cls, "of_program")):
        _plain.add(cls)
        return False
    return True


def class_of(value: Any) -> type:
    """Return a value's class, for a view of conjugates that of what it looks at."""
    cls = type(value)
    return getattr(cls, "_shown_class", cls)


def _add(found: list[Any], value: Any) -> None:
    cls = class_of(value)
    if not redefines(cls):
        return
    method = cls.__torch_function__
    if getattr(method, "__module__", "") == "torch._tensor" or getattr(method, "__name__", "") == "_disabled_torch_function_impl":
        # PyTorch's own methods would call the function again, which would ask again
        raise TypeError(f"a tensor of PyTorch's class {cls.__name__} is no operand here: make one of its numbers, tensor(t.detach().numpy())")
    if not any(class_of(other) is cls for other in found):
        found.insert(next((i for i, other in enumerate(found) if issubclass(cls, class_of(other))), len(found)), value)


def overloaded(values: Iterable[Any]) -> list[Any]:
    """Return one argument of each class that takes over, those of subclasses first; those in lists and tuples count."""
    found: list[Any] = []
    for value in values:
        kind = value.__class__
        if kind is list or kind is tuple:
            for v in value:
                if v.__class__ not in _plain:
                    _add(found, v)
        elif kind not in _plain:
            _add(found, value)
    return found


def _name(function: Any) -> str:
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__name__", "") if not isinstance(owner, property) else f"{getattr(owner.fget, '__name__', '')}.{function.__name__}"
    return f"{getattr(function, '__module__', None) or 'Tensor'}.{name}"


def ask(function: Any, found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what the innermost mode, or else the first argument that does not decline, makes of a call. TypeError if all do."""
    types = tuple([class_of(value) for value in found])
    if len(args) == 2 and isinstance(args[1], (list, tuple)) and getattr(function, "__name__", "") == "einsum":
        args = (args[0], *args[1])  # PyTorch takes operands out of their list before it asks
    if state.modes and state.disabled < 2:
        modes, mode = state.modes, state.modes[-1]
        state.modes = modes[:-1]
        try:
            result = mode.__torch_function__(function, types, args, kwargs)
        finally:
            state.modes = modes
        if result is not NotImplemented:
            return result
    for value in found:
        result = getattr(value, "_shown_class", value).__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"no implementation found for '{_name(function)}' on types that implement __torch_function__: {[t.__name__ for t in types]} (all of "
        "them returned NotImplemented)"
    )


def called(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a call of ``function`` by the user, which arguments may take over."""
    found = [] if state.disabled else overloaded((*args, *kwargs.values()))
    for value in found:
        if not isinstance(value, Tensor):
            met(type(value))
    if found or (state.modes and state.disabled < 2):
        return ask(function, found, args, kwargs)
    return function(*args, **kwargs)


def _dispatch(original: Callable[..., Any], public: Any, ignored: bool, rule: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run in the place of a public function, whose own code is ``original``'s; ``rule``: what autocast does with it."""
    if not _computes(sys._getframe(2).f_code.co_filename):
        if state.disabled < 2:
            found = [] if ignored or state.disabled else overloaded((*args, *kwargs.values()) if kwargs else args)
            if found or state.modes:
                return ask(public, found, args, kwargs)
        if rule is not None:
            return _cast(original, rule, args, kwargs)
        if INTERCEPTION.stays:
            INTERCEPTION.pass_by()
    return original(*args, **kwargs)


def _cast(original: Callable[..., Any], rule: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run in the place of a function that autocast concerns."""
    if casting.state.to is not None:
        return INTERCEPTION.cast(rule, original, args, kwargs)
    INTERCEPTION.pass_by()
    return original(*args, **kwargs)


@contextmanager
def _switched(to: int) -> Iterator[None]:
    before = state.disabled
    state.disabled = max(before, to)
    try:
        yield
    finally:
        state.disabled = before


def undisturbed(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)``, which nothing takes over."""
    with _switched(2):
        return function(*args)


def default(cls: type, func: Any, types: Iterable[type], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of ``func`` on tensors, with those that it makes as objects of ``cls``: `Tensor.__torch_function__`."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    if state.disabled:
        result = _asked_again(func, args, kwargs)
    else:
        with _switched(1):
            result = func(*args, **kwargs)
    return result if cls is Tensor or func in nowrap_functions() else _of_class(result, cls, args)


def _asked_again(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``func(*args, **kwargs)`` where classes are switched off already. TypeError if it comes back here: it is not this library's."""
    before, running = state.running, (func, state.modes)
    if before == running:
        raise TypeError(f"'{_name(func)}' is a function of another library, which cannot compute with tensors of this one: hand it t.numpy()")
    state.running = running
    try:
        return func(*args, **kwargs)
    finally:
        state.running = before


def _of_class(result: Any, cls: type, args: tuple[Any, ...]) -> Any:
    if isinstance(result, Tensor):
        if isinstance(result, cls):
            return result
        if any(result is a for a in args):  # it goes on being what it is
            return undisturbed(as_subclass, result, cls)
        return of_class(cls, result)
    if isinstance(result, (tuple, list)):
        made = [_of_class(r, cls, args) for r in result]
        return type(result)._make(made) if hasattr(result, "_make") else type(result)(made)  # type: ignore[attr-defined]
    return result


@cache
def nowrap_functions() -> set[Any]:
    """Return the attributes whose values stay what they are: ``grad`` and ``_base``."""
    return {vars(Tensor)[name].__get__ for name in ("grad", "_base")}


# ---------------------------------------------------------------------------------------------- in their places


@cache
def functions() -> dict[Any, Any]:
    """Return the functions in whose place `_dispatch` may stand -> as what they are handed to ``__torch_function__``."""
    return look_for_functions()


@overridable
def look_for_functions() -> dict[Any, Any]:
    """Return `functions`, looked for anew."""
    found: dict[Any, Any] = {info.call: info.call for info in OPS.values() if isinstance(info.call, FunctionType)}
    found.update({backward: backward, grad: grad})
    for name, value in vars(Tensor).items():
        if isinstance(value, FunctionType) and (name[0] != "_" or name.endswith("__")) and value not in found:
            found[value] = vars(Tensor).get(HANDED_ON.get(name, ""), value)
            value.__name__ = name  # programs tell functions by it
    return found


@cache
def attributes_of_tensors() -> dict[str, property]:
    """Return the attributes of tensors that subclasses and modes are asked for."""
    return {name: value for name, value in vars(Tensor).items() if isinstance(value, property) and (name[0] != "_" or name == "_base")}


@cache
def _place_holder(free: tuple[str, ...]) -> CodeType:
    """Return the code that stands in the place of a function with these free variables."""
    text = f"def make({', '.join(free)}):\n def call(*args, _redefining, **kwargs):\n  return _redefining(args, kwargs)\n  {', '.join(free) or 0}\n return call"
    space: dict[str, Any] = {}
    exec(compile(text, __file__, "exec"), space)
    return space["make"](*free).__code__  # type: ignore[no-any-return]


BETWEEN.add(__file__)
LINGER = 200  #: calls outside of autocast's regions, after which its places are given back


class Interception:
    """Puts `_dispatch` into the place of all public functions while anybody needs it, or of those alone that autocast concerns."""

    def __init__(self) -> None:
        self.count = self._watching = self._casting = 0
        self._lingers, self._passed = False, 0  # whether casts have ended and may begin again, and calls since
        self._living, self.stays, self._unused = 0, False, 0  # objects counted by `live`, whether it stays for them, and calls since there is none
        self._rules: Mapping[Any, Any] = {}
        self.cast: Callable[..., Any] = _dispatch  # what does as a rule says
        self._lock = locks.lock()
        self._originals: dict[Any, tuple[Any, ...]] = {}

    def enter(self, attributes: bool = False) -> None:
        """Stand there for one more; ``attributes``: in those of all tensors as well, which modes are asked for."""
        with self._lock:
            self.count += 1
            self._watching += attributes
            if attributes and self._watching == 1:
                for name, own in attributes_of_tensors().items():
                    setattr(Tensor, name, _attribute(own))
            if self.count == 1:
                for function, public in [*functions().items(), *((f, f) for f in USERS)]:
                    if function not in self._originals:
                        self._take(function, public)

    def live(self, t: Any) -> None:
        """Stand there for the life of an object that comes and goes, and for `LINGER` calls after the last of its kind."""
        with self._lock:
            self._living += 1
            if not self.stays:
                self.stays = True
                self.enter()
        weakref.finalize(t, self._died).atexit = False

    def _died(self) -> None:
        with self._lock:
            self._living -= 1
            self._unused = 0

    def leave(self, attributes: bool = False) -> None:
        """Stand there for one less, and give the places back after the last."""
        with self._lock:
            self.count -= 1
            self._watching -= attributes
            if attributes and not self._watching:
                for name, own in attributes_of_tensors().items():
                    setattr(Tensor, name, own)
            if not self.count:
                self._give_back([f for f in self._originals if not (self._casting and f in self._rules)])
                self._lingers = False
                _plain.clear()
                _plain.update((Tensor, int, float, bool, str, type(None)))

    def begin_casts(self, rules: Mapping[Any, Any], cast: Callable[..., Any]) -> None:
        """Stand in the place of the functions that autocast has ``rules`` for, for one more thread; ``cast``: what does as a rule says."""
        with self._lock:
            self._casting += 1
            if self._rules is not rules:
                self._rules, self.cast = rules, cast
                own = [f for f in self._originals if f in rules]  # which stand there without a rule
                self._give_back(own)
                for function in own:
                    self._take(function, functions().get(function, function))
            if self._casting == 1 and not self._lingers:
                for function in rules:
                    if function not in self._originals:
                        self._take(function, functions().get(function, function))
            self._lingers, self._passed = False, 0

    def end_casts(self) -> None:
        """Stand there for one thread less. After the last the places are not given back at once: to take them costs as much as many calls."""
        with self._lock:
            self._casting -= 1
            self._lingers = not self._casting and not self.count

    def pass_by(self) -> None:
        """Take note of a call that nobody is asked for outside of all regions of autocast, and give the places back after many of them."""
        if self.stays and not self._living:
            self._unused += 1
            with self._lock:
                if self._unused > LINGER and self.stays and not self._living:
                    self.stays = False
                    self.leave()
        self._passed += 1
        if self._passed > LINGER and self._lingers:
            with self._lock:
                if self._lingers and not self._casting and not self.count:
                    self._give_back(list(self._originals))
                self._lingers = False

    def _give_back(self, taken: list[Any]) -> None:
        for function in taken:
            code, defaults, keywords, signed = self._originals.pop(function)
            function.__code__, function.__defaults__, function.__kwdefaults__ = code, defaults, keywords
            if not signed:
                function.__dict__.pop("__wrapped__", None)

    def add(self, function: Any) -> None:
        """Enter a function of the user's, which classes and modes are asked for like the library's; also those that are there already."""
        with self._lock:
            USERS.add(function)
            if self.count and function not in self._originals:
                self._take(function, function)

    def _take(self, function: Any, public: Any) -> None:
        write = function.__globals__.get("_write")
        if write is not None and function.__code__.co_name == "_first_call":
            write()  # (see `call_path.generated_later`)
        own = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        own.__kwdefaults__, own.__qualname__ = function.__kwdefaults__, function.__qualname__  # (Python's messages have this name)
        signed, rule = "__wrapped__" in function.__dict__, self._rules.get(function)
        self._originals[function] = function.__code__, function.__defaults__, function.__kwdefaults__, signed
        if not signed:
            function.__wrapped__ = own  # what `inspect.signature` reads
        ignored = function.__name__ in IGNORED
        free = tuple(function.__code__.co_freevars)
        dispatch = partial(_cast, own, rule) if rule is not None and function not in functions() else partial(_dispatch, own, public, ignored, rule)
        function.__kwdefaults__ = {"_redefining": dispatch}
        function.__defaults__ = None
        function.__code__ = _place_holder(free)


INTERCEPTION = Interception()
_known: weakref.WeakSet[type] = weakref.WeakSet()


def met(cls: type) -> None:
    """Take over for a class as long as it lives."""
    if cls not in _known:
        _known.add(cls)
        INTERCEPTION.enter()
        weakref.finalize(cls, INTERCEPTION.leave).atexit = False


def _attribute(own: property) -> property:
    def asked(accessor: Any, direct: Any) -> Any:
        def access(self: Any, *value: Any) -> Any:
            found = [self] if not state.disabled and redefines(type(self)) else []
            if not (found or (state.modes and state.disabled < 2)) or _computes(sys._getframe(1).f_code.co_filename):
                return direct(self, *value)
            return ask(accessor, found, (self, *value), {})  # (of several modes, the innermost is asked)

        return access

    setter, deleter = own.fset and asked(own.__set__, own.fset), own.fdel and asked(own.__delete__, own.fdel)
    return property(asked(own.__get__, own.fget), setter, deleter, own.__doc__)


def made(cls: type) -> None:
    """Take note of an object of a subclass of Tensor that a program has defined."""
    if cls in _known:
        return
    if "shape" not in vars(Redefining):
        for name, own in attributes_of_tensors().items():
            setattr(Redefining, name, _attribute(own))
    if redefines(cls) and not hasattr(cls, "counted"):
        met(cls)


# --------------------------------------------------------------------------------------------------------- switches


class DisableTorchFunctionSubclass:
    """A context in which classes do not take over calls; modes do.

    >>> with torch._C.DisableTorchFunctionSubclass():
    ...     y = torch.ones(2) + 1
    """

    _level = 1

    def __enter__(self) -> None:
        self._before = state.disabled
        state.disabled = max(self._before, self._level)

    def __exit__(self, *error: Any) -> None:
        state.disabled = self._before


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A context in which nothing takes over calls: neither classes nor modes.

    >>> with torch._C.DisableTorchFunction():
    ...     y = torch.ones(2) + 1
    """

    _level = 2


class TorchFunctionMode:
    """A context whose ``__torch_function__(func, types, args, kwargs)`` takes over every call of a public function.

    Within that method the mode is not active: ``func(*args, **kwargs)`` does what would have been done without it.
    Source: https://docs.pytorch.org/docs/stable/torch.overrides.html#torch.overrides.TorchFunctionMode

    >>> class Count(torch.overrides.TorchFunctionMode):
    ...     n = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.n += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Count() as count:
    ...     y = torch.ones(2) + 1
    >>> count.n
    2
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Raise NotImplementedError: a mode says what becomes of calls."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        INTERCEPTION.enter(attributes=True)
        state.modes = (*state.modes, self)
        return self

    def __exit__(self, *error: Any) -> None:
        state.modes = state.modes[:-1]
        INTERCEPTION.leave(attributes=True)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a mode of this class."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the result of the call."""
        return func(*args, **(kwargs or {}))
