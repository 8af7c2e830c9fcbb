"""Modules that only keep options and call one function with them are declared, not written out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...errors import with_guess
from .. import functional as F
from .module import Module


def declare(
    function: str, signature: Callable[..., Any], shown: Callable[[Any], str] | None = None, *, name: str = "",
    base: type[Module] = Module, doc: str = "",
) -> type:  # fmt: skip
    """Return a module class: its constructor has the parameters of ``signature`` and keeps them as attributes, its forward calls
    ``nn.functional.<function>(input, **attributes)``. ``shown(self)`` is its `extra_repr`.
    """
    parameters = inspect.signature(signature)
    defaults = tuple(parameters.parameters)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            bound = parameters.bind(*args, **kwargs)
        except TypeError as error:
            raise with_guess(TypeError(f"{type(self).__name__}.__init__() {error}"), signature) from None
        bound.apply_defaults()
        base.__init__(self)
        for key in defaults:
            setattr(self, key, bound.arguments[key])

    def forward(self: Any, input: Any) -> Any:
        d = self.__dict__
        return getattr(F, function)(input, **{key: d[key] for key in defaults})

    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    members: dict[str, Any] = {
        "__init__": __init__,
        "forward": forward,
        "__doc__": doc,
        "__module__": frame.f_back.f_globals["__name__"],
        "__constants__": list(defaults),
    }
    __init__.__signature__ = parameters.replace(  # type: ignore[attr-defined]
        parameters=[inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *parameters.parameters.values()]
    )
    if shown is not None:
        members["extra_repr"] = shown
    return type(name, (base,), members)
