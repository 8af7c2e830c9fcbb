"""Hooks on tensors and nodes, and the handles that remove them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from . import ownership
from .modes import state
from .nested import users
from .ownership import handed

_ids = itertools.count()


class RemovableHandle:
    """Removes a hook: ``handle.remove()``, or at the end of a ``with`` block."""

    id: int

    __slots__ = ("__weakref__", "_hooks", "id")

    def __init__(self, hooks: dict[Any, Any]):
        self._hooks: dict[Any, Any] | None = hooks
        self.id = next(_ids)

    def remove(self) -> None:
        """Remove the hook; doing it again does nothing."""
        if self._hooks is not None:
            self._hooks.pop(self.id, None)
            self._hooks = None

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


def check_callable(hook: Any) -> Callable[..., Any]:
    if not callable(hook):
        raise TypeError(f"hook must be callable, not {type(hook).__name__} (hook={hook!r})")
    return hook


class NodeHooks:
    """The hooks of one node, or of one leaf: on the gradient of each output, before and after the node, retained grads."""

    __slots__ = ("accumulated", "expected", "post", "pre", "retained", "tensor")
    fitting = False  #: whether any node has `expected` shapes, so that passes look for them

    def __init__(self) -> None:
        self.tensor: dict[int, dict[int, Callable[..., Any]]] = {}
        self.pre: dict[int, Callable[..., Any]] = {}
        self.post: dict[int, Callable[..., Any]] = {}
        self.accumulated: dict[int, Callable[..., Any]] = {}
        self.retained: dict[int, Any] = {}  # output index -> weak reference to the tensor whose .grad is kept
        #: output index -> its shape and dtype, where a tensor has others by now: see `tensor.data`
        self.expected: dict[int, tuple[tuple[int, ...], Any]] = {}

    def add(self, kind: str, hook: Any) -> RemovableHandle:
        return self.insert(getattr(self, kind), hook)

    def add_tensor(self, index: int, hook: Any) -> RemovableHandle:
        return self.insert(self.tensor.setdefault(index, {}), hook)

    @staticmethod
    def insert(hooks: dict[Any, Any], hook: Any) -> RemovableHandle:
        check_callable(hook)
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    @users
    def grad_outputs(self, grads: list[Any], recorded: bool, shown: int | None = None) -> list[Any]:
        """Apply `tensor_hooks`, then the node's prehooks, to the first ``shown``. ``recorded``: in a pass with a history."""
        grads = self.tensor_hooks(grads, recorded)
        if self.pre:
            seen = [handed(g, recorded) for g in grads[:shown]]
            for hook in list(self.pre.values()):
                seen = _replaced_all(hook, hook(tuple(seen)), seen)
            grads = [*seen, *grads[len(seen) :]]
        return grads

    @users
    def beside(self, grads: list[Any], recorded: bool) -> list[Any]:
        """Apply `tensor_hooks` to gradients of outputs whose node does not run."""
        return self.tensor_hooks(grads, recorded)

    def tensor_hooks(self, grads: list[Any], recorded: bool) -> list[Any]:
        """Check shapes that are in doubt, apply the hooks of the node's outputs, then write the retained gradients."""
        for index, (shape, dtype) in self.expected.items():
            if grads[index] is not None:
                grads[index] = fitted(grads[index], shape).to(dtype)
        for index, hooks in self.tensor.items():
            if hooks:  # also where no gradient has come
                grads[index] = handed(grads[index], recorded)
                for hook in list(hooks.values()):
                    grads[index] = replaced(hook, hook(grads[index]), grads[index])
        for index, reference in self.retained.items():
            tensor = reference()
            if tensor is not None and grads[index] is not None and not state.batched:
                g = grads[index]
                # several passes accumulate, as for leaves
                tensor._grad = ownership.retained(g) if tensor._grad is None else tensor._grad + g
        return grads

    @users
    def grad_inputs(self, gradients: tuple[Any, ...], grads: list[Any]) -> tuple[Any, ...]:
        for hook in list(self.post.values()):
            gradients = tuple(_replaced_all(hook, hook(tuple(gradients), tuple(grads)), list(gradients)))
        return gradients

    @users
    def finished(self, leaf: Any, g: Any) -> None:
        """Call the leaf's hooks for finished gradients."""
        for hook in list(self.accumulated.values()):
            if hook(leaf) is not None:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        for hook in list(self.post.values()):
            hook((), (g,))


def fitted(g: Any, shape: tuple[int, ...]) -> Any:
    """Return the gradient of a result of that shape; RuntimeError where it has one that a broadcast of the result cannot have."""
    if len(g.shape) < len(shape) or any(n not in (1, m) for n, m in zip(shape[::-1], g.shape[::-1], strict=False)):
        raise RuntimeError(
            f"a function of a tensor whose .data was exchanged returned an invalid gradient - got {list(g.shape)} but expected shape "
            f"compatible with {list(shape)}: give .data the shape that the tensor had when it was computed"
        )
    return g.sum_to_size(shape)


def _replaced_all(hook: Callable[..., Any], result: Any, grads: list[Any]) -> list[Any]:
    if result is None:
        return grads
    if result.__class__ is not tuple:
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}' (hook '{_name(hook)}')")
    if len(result) != len(grads):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(result)}, but expected {len(grads)})"
        )
    return [replaced(hook, n, g) if n is not None else None for n, g in zip(result, grads, strict=True)]


def replaced(hook: Callable[..., Any], result: Any, grad: Any) -> Any:
    """Return the gradient after a hook: what it returned, checked, or ``grad`` when it returned None."""
    if result is None:
        return grad
    if not hasattr(result, "_layout"):
        raise TypeError(f"expected Variable, but hook '{_name(hook)}' returned '{type(result).__name__}'")
    if grad is None:
        raise RuntimeError(f"can't replace a None gradient with a non-None value (hook '{_name(hook)}')")
    if result.shape != grad.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value (from {list(grad.shape)} to {list(result.shape)})")
    if result.dtype is not grad.dtype:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the type of value (from {grad.dtype} to {result.dtype})")
    return result


def _name(hook: Any) -> str:
    hook = getattr(hook, "__wrapped__", hook)
    return getattr(hook, "__name__", type(hook).__name__)
