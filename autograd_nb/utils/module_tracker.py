"""Which modules are running, in the forward and in the backward pass.

Source: https://docs.pytorch.org/docs/stable/module_tracker.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from ..autograd.graph import register_multi_grad_hook
from ..graph import engine
from ..nn.modules.module import Module, register_module_forward_hook, register_module_forward_pre_hook
from ..tensor import Tensor
from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A context that knows the names of the modules that are running; a module's own name is that of its class.

    In the backward pass a module runs from when the gradients of all its outputs are there until those of its inputs are.

    >>> from autograd_nb.utils.module_tracker import ModuleTracker
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3))
    >>> with ModuleTracker() as tracker:
    ...     handle = model[0].register_forward_pre_hook(lambda *args: print(sorted(tracker.parents)))
    ...     _ = model(torch.ones(1, 2))
    ['Global', 'Sequential', 'Sequential.0']
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: WeakKeyDictionary[Module, str] = WeakKeyDictionary()
        self._queued = False
        self._hooks: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Return whether a backward pass is running in this thread."""
        return bool(engine.state.passes)

    def _name(self, module: Module) -> str:
        if module not in self._names:
            self._names[module] = type(module).__name__
            below = [(module, self._names[module])]
            for parent, name in below:
                for own, child in parent.named_children():
                    if child not in self._names:
                        self._names[child] = f"{name}.{own}"
                        below.append((child, self._names[child]))
        return self._names[module]

    def _ended(self) -> None:
        self.parents, self._queued = {"Global"}, False

    def _enters(self, name: str) -> Callable[..., None]:
        def enter(*gradients: Any) -> None:
            if not self._queued:
                engine.queue_callback(self._ended)
                self._queued = True
            self.parents.add(name)

        return enter

    def _leaves(self, name: str) -> Callable[..., None]:
        return lambda *gradients: self.parents.discard(name)

    def _watch(self, tensors: Any, hook: Callable[..., None]) -> None:
        found = [t for t in tree_leaves(tensors) if isinstance(t, Tensor) and t.requires_grad]
        if found:
            self._hooks.append(register_multi_grad_hook(found, hook))

    def _before(self, module: Module, args: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._watch(args, self._leaves(name))

    def _after(self, module: Module, args: Any, output: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        self._watch(output, self._enters(name))

    def __enter__(self) -> ModuleTracker:
        self._handles = [register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after)]
        return self

    def __exit__(self, *error: Any) -> None:
        for handle in (*self._handles, *self._hooks):
            handle.remove()
        self._hooks.clear()
