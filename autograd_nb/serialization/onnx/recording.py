"""What a module does, as the public functions that it calls: their names, arguments and results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from ...autograd.torch_function import TorchFunctionMode, attributes_of_tensors, called, functions
from ...graph.modes import no_grad
from ...nn.modules.rnn import RNNBase
from ...ops.core.registry import USERS, own_names
from ...tensor import Tensor


@dataclass
class Call:
    """A call of a public function: its arguments by name, those that fill ``*…`` as a tuple, and its results."""

    name: str
    arguments: dict[str, Any]
    result: Any
    module: Any = None  # for modules that are taken as a whole
    scope: str = ""  # the path of the module that calls it

    def results(self) -> list[Tensor]:
        """Return the tensors that it returned."""
        return tensors(self.result)


@dataclass
class Record:
    """One run: its calls in order, what it was given and what it returned."""

    calls: list[Call] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)


def tensors(value: Any) -> list[Tensor]:
    """Return the tensors in nested lists, tuples and dicts."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []


class _Recorder(TorchFunctionMode):
    """Notes each public function that is called, not what it calls itself."""

    def __init__(self, calls: list[Call], formulas: bool):
        super().__init__()
        self.calls, self.formulas = calls, formulas
        self.scopes = [""]  # of the modules that run, the innermost last

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.formulas and func in USERS and hasattr(func, "op"):  # of a formula of the user's: what it consists of
            with self:
                return func.op.formula(*args, **kwargs)
        result = func(*args, **kwargs)
        if tensors(result):
            try:
                bound = inspect.signature(inspect.unwrap(func)).bind(*args, **own_names(func, kwargs))
                bound.apply_defaults()
                arguments = dict(bound.arguments)
            except (TypeError, ValueError):
                arguments = {str(i): a for i, a in enumerate(args)} | kwargs
            name = getattr(func, "__name__", str(func))
            if name == "__get__":  # of an attribute, such as x.mT
                name = next(n for n, own in attributes_of_tensors().items() if own is func.__self__)
            self.calls.append(Call(name.strip("_") if name.startswith("__") else name, arguments, result, scope=self.scopes[-1]))
        return result


def _run(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return model(*args, **kwargs)


@contextmanager
def in_eval_mode(model: Any) -> Iterator[None]:
    """Return a context in which the module and all in it are in eval mode."""
    modules = [m for m in model.modules() if m.training] if hasattr(model, "modules") else []
    for m in modules:
        m.training = False
    try:
        yield
    finally:
        for m in modules:
            m.training = True


def record(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], formulas: bool = False) -> Record:
    """Return what a run of ``model`` on these arguments does; ``formulas``: and what ops from formulas of the user's do."""
    found = Record(inputs=tensors([list(args), kwargs]))
    recorder = _Recorder(found.calls, formulas)

    def whole(module: Any, given: tuple[Any, ...], result: Any) -> None:
        arguments = {"input": given[0], "state": given[1] if len(given) > 1 else None}
        found.calls.append(Call("recurrent", arguments, result, module, recorder.scopes[-1]))

    def left(*_: Any) -> None:
        recorder.scopes.pop()

    handles = []
    for path, m in getattr(model, "named_modules", list)():
        handles.append(m.register_forward_pre_hook(lambda m, given, path=path: recorder.scopes.append(path)))
        if isinstance(m, RNNBase):
            handles.append(m.register_forward_hook(whole))
        handles.append(m.register_forward_hook(left, always_call=True))
    try:
        with no_grad(), recorder:
            # a public function is one of the calls
            run = called if isinstance(model, FunctionType) and (model in USERS or model in functions()) else _run
            result = run(model, args, kwargs)
    finally:
        for handle in handles:
            handle.remove()
    found.outputs = tensors(result)
    return found
