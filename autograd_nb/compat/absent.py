"""Modules made of the table: they are imported as any other, and hold functions and classes that give its answers."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from contextlib import ContextDecorator, nullcontext
from types import ModuleType
from typing import Any

from ..ops.core.foreign import asking_first
from .beside import BESIDE
from .more import MODULES, TOP
from .table import Absent, Answer, At, NoClass, Refuses, Returns, Says, Sets, Value

PACKAGE = __name__.split(".")[0]


def _function(name: str, module: str, call: Callable[..., Any], doc: str) -> Callable[..., Any]:
    call.__name__ = call.__qualname__ = name
    call.__module__, call.__doc__ = module, doc
    return call


def _says(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


def _refuses(refusal: Refuses) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        first = f" ({args[0]!r})" if args else ""
        raise refusal.error(refusal.message.replace("{first}", first))

    return refuse


def _returns(*args: Any, **kwargs: Any) -> Any:
    given = [value for value in (*args, *kwargs.values()) if not isinstance(value, bool)]
    return given[0] if given else lambda function: function


_standing: dict[tuple[str, str], Any] = {}  # what has been made, by module and name

#: there is no answer
NOT_THERE: object = object()


class _Nothing(ContextDecorator, nullcontext):
    """A context, or a decorator, in which nothing changes."""


def _sets(*args: Any, **kwargs: Any) -> Any:
    return _Nothing()


def made(name: str, answer: Answer, module: str) -> Any:
    """Return what stands for an answer under ``name`` in ``module``: a function, a class, or the value itself."""
    match answer:
        case At(where):
            place, _, own = where.partition(":")
            found = importlib.import_module(f"{PACKAGE}.{place}")
            return getattr(found, own) if own else found
        case Value(value):
            return value
        case Says(value, doc):
            text = "The function does nothing: there is nothing here to do it to." if value is None else f"The answer is {value!r}."
            return _function(name, module, asking_first(_says(value)) if name == "is_distributed" else _says(value), doc or text)
        case Refuses(error, _):
            return _function(name, module, asking_first(_refuses(answer)), f"The function raises {error.__name__}: it is not here.")
        case NoClass(refusal, values):
            text = "Not available here: no object is an instance of it, and none can be made."

            def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
                _refuses(refusal)()

            # (a subclass that is used as a context may not have asked for the other)
            asked = dict.fromkeys(("__init__", "__enter__", "__exit__"), refuse)
            return type(name, (), {**{v: v for v in values.split()}, **asked, "__module__": module, "__doc__": text})
        case Returns(doc):
            return _function(name, module, lambda *args, **kwargs: _returns(*args, **kwargs), doc)
        case Sets():
            return _function(name, module, lambda *args, **kwargs: _sets(), "Nothing is set; also a context in which nothing changes.")
    raise TypeError(f"no answer: {answer!r}")


class NoSuchName(AttributeError):
    """The package has no such name. The guess is made when the text is read: many programs only ask whether there is a name."""

    def __str__(self) -> str:
        from difflib import get_close_matches

        text = super().__str__()
        near = get_close_matches(self.name or "", dir(self.obj), 1, 0.7)
        return f"{text}. Did you mean: '{near[0]}'?" if near else text


def top(name: str) -> Any:
    """Return what stands for a name of the package itself, if the table has one. AttributeError else."""
    if name not in TOP:
        raise NoSuchName(f"module {PACKAGE!r} has no attribute {name!r}", name=name, obj=sys.modules[PACKAGE])
    return made(name, TOP[name], PACKAGE)


def besides(places: tuple[str, ...], name: str, module: str) -> Any:
    """Return what stands for a name in a module of this library, which is at PyTorch's ``places``; `NOT_THERE` if the table has none."""
    answers = (names[name] for place in places if name in (names := BESIDE.get(place, {})))
    answer = next(answers, None)
    return _documented(places, name, module) if answer is None else _kept(name, answer, module)


def _kept(name: str, answer: Answer, module: str) -> Any:
    """Return what stands for an answer, the same each time."""
    if (module, name) not in _standing:
        _standing.setdefault((module, name), made(name, answer, module))
    return _standing[module, name]


def _documented(places: tuple[str, ...], name: str, module: str) -> Any:
    """Return what stands for a name that only the last of the tables has, which is read when it is wanted first."""
    from .documented import answers

    return next((_kept(name, found[name], module) for place in places if name in (found := answers(place))), NOT_THERE)


def _absent(name: str) -> Absent | None:
    """Return the module of this name below the package, None where no table has it."""
    if name in MODULES:
        return MODULES[name]
    from . import documented

    return documented.absent(name) if name in documented.MODULES else None


class AbsentModule(ModuleType):
    """A module of the table; its submodules are imported when an attribute asks for them."""

    _absent: Absent

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and importlib.util.find_spec(f"{self.__name__}.{name}") is not None:
            return importlib.import_module(f"{self.__name__}.{name}")
        place = self.__name__.partition(".")[2]
        if not name.startswith("__") and (found := _documented((place,), name, self.__name__)) is not NOT_THERE:
            return found
        if self._absent.also_of_package and not name.startswith("_"):
            return getattr(sys.modules[PACKAGE], name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._absent.submodules})


class AbsentFinder:
    """The import system's way to the modules of the table."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of the table, None for all others: the import system asks for it."""
        package, _, name = fullname.partition(".")
        if package != PACKAGE or _absent(name) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the empty module."""
        absent = _absent(spec.name.partition(".")[2])
        assert absent is not None
        module = AbsentModule(spec.name, absent.doc)
        module._absent = absent
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Put the answers into the module."""
        assert isinstance(module, AbsentModule)
        absent = module._absent
        for name, answer in absent.names.items():
            setattr(module, name, made(name, answer, module.__name__))
        module.__all__ = [name for name in (*absent.names, *absent.submodules) if not name.startswith("_")]  # type: ignore[attr-defined]


finder: AbsentFinder = AbsentFinder()
