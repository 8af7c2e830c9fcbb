"""Calls with tensors in parts: their operands, what ranks compute of their own parts, and how what comes of it lies among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from ...autograd.torch_function import DisableTorchFunctionSubclass
from ...shapes import Size
from ...tensor import Tensor
from .layout import Sharding
from .mesh import Replicate

Function = Callable[..., Any]


def layout(t: Any) -> Sharding | None:
    """Return the layout of a tensor in parts, None for others."""
    return t.__dict__.get("_sharding") if isinstance(t, Tensor) else None


def tensors_of(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested containers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors_of(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from tensors_of(v)


def changed(change: Callable[[Tensor], Any], value: Any) -> Any:
    """Return nested containers with other values in the tensors' places."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        made = [changed(change, v) for v in value]
        return type(value)(made) if type(value) in (list, tuple, Size) else type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, dict):
        return {k: changed(change, v) for k, v in value.items()}
    return value


class Call:
    """One call: the function, its name and arguments, and the tensors among these."""

    func: Function
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    tensors: list[Tensor]
    apply: ClassVar[Any]  #: what becomes of a call with tensors in parts (see `rules`)

    def __init__(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], again: Function | None = None):
        self.func, self.args, self.kwargs, self._again = func, args, kwargs, again or Call.apply
        self.name = func.__name__
        self.tensors = list(tensors_of((args, kwargs)))
        self.first: Sharding = next(s for s in map(layout, self.tensors) if s is not None)

    def check(self) -> None:
        """Raise RuntimeError for plain tensors beside those in parts, but for numbers, and for tensors of several meshes."""
        for t in self.tensors:
            own = layout(t)
            if own is None and t._layout.size != 1:
                raise RuntimeError(
                    f"{self.name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed operators! "
                    "(distribute_tensor(), DTensor.from_local(); or .to_local() and .full_tensor() of the DTensor)"
                )
            if own is not None and (own.group is not self.first.group or own.dims != self.first.dims) and own.mesh != self.first.mesh:
                raise RuntimeError(f"{self.name}: DTensors of several meshes, {self.first.mesh} and {own.mesh}: redistribute() to one")

    def whole(self, t: Tensor) -> tuple[int, ...]:
        """Return the shape that a tensor has in all ranks together."""
        own = layout(t)
        return own.whole if own is not None else tuple(t._layout.shape)

    def part(self, t: Tensor) -> tuple[int, ...]:
        """Return the shape that a tensor has among the ranks that have the same part of it along the first dim of the mesh."""
        own = layout(t)
        return own.whole if own is not None and len(own.dims) < len(self.first.dims) else tuple(t._layout.shape)

    def run(self, change: Callable[[Tensor], Any] | None = None) -> Any:
        """Call the function of this rank's parts, or of what ``change`` makes of them. Along the other dims of a mesh these are tensors in parts."""
        args, kwargs = (self.args, self.kwargs) if change is None else (changed(change, self.args), changed(change, self.kwargs))
        return self.compute(self.func, *args, **kwargs)

    def compute(self, function: Function, *args: Any, **kwargs: Any) -> Any:
        """Call another function of parts."""
        if self.first.below is None:
            with DisableTorchFunctionSubclass():
                return function(*args, **kwargs)
        with _lowered(self.first, (args, kwargs)) as any_parts:
            if any_parts:
                return self._again(function, args, kwargs)
            with DisableTorchFunctionSubclass():
                return function(*args, **kwargs)

    def raw(self, change: Callable[[Tensor], Any] | None = None) -> Any:
        """Call the function of what this rank has."""
        args, kwargs = (self.args, self.kwargs) if change is None else (changed(change, self.args), changed(change, self.kwargs))
        with DisableTorchFunctionSubclass():
            return self.func(*args, **kwargs)

    def marked(self, result: Any, of: Callable[[Tensor], Sharding]) -> Any:
        """Return the result with its tensors known as parts of what ``of`` tells, along the first dim of the mesh."""
        first = self.first

        def mark(t: Tensor) -> Tensor:
            own = layout(t)
            if own is not None and own.dims == first.dims:
                return t
            if first.below is None:
                return t if own is not None else of(t).mark(t)  # type: ignore[no-any-return]
            kind = of(t)
            return kind.over(own if own is not None else first.below.replaced(kind.sizes(), *[Replicate()] * len(first.dims))).mark(t)  # type: ignore[no-any-return]

        return changed(mark, result)


@contextmanager
def _lowered(own: Sharding, values: Any) -> Iterator[bool]:
    """Let what a rank has along the first dim of a mesh be tensors in parts along the others; whether any are."""
    before, found = [], False
    for t in tensors_of(values):
        known = layout(t)
        if known is not None and known.dims == own.dims:
            before.append((t, known))
            t.__dict__["_sharding"] = known = known.below
        found = found or known is not None
    try:
        yield found
    finally:
        for t, known in before:
            t.__dict__["_sharding"] = known
