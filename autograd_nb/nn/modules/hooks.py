"""Hooks of modules: those of all modules, the handles, and how gradients at a module's boundary are seen."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import wraps
from types import ModuleType
from typing import Any

from ...errors import warn_user
from ...graph.hooks import RemovableHandle, check_callable
from ...graph.modes import state
from ...ops.core.foreign import asked
from ...ops.core.history import share_view
from ...ops.core.structured import structured
from ...ops.creation.create import new_full
from ...tensor import Tensor, make


class Handle(RemovableHandle):
    """Removes a module's hook, and what is noted about it elsewhere."""

    __slots__ = ("_notes",)

    def __init__(self, hooks: dict[Any, Any], notes: Sequence[dict[Any, Any]] = ()):
        super().__init__(hooks)
        self._notes = tuple(notes)

    def remove(self) -> None:
        """Remove the hook; doing it again does nothing."""
        super().remove()
        for d in self._notes:
            d.pop(self.id, None)


def add_hook(hooks: dict[Any, Any], hook: Any, notes: Sequence[tuple[dict[Any, Any], bool]] = (), first: bool = False) -> Handle:
    """Enter ``hook`` into ``hooks`` (before the others if ``first``), and its id into each dict whose flag is set."""
    check_callable(hook)
    handle = Handle(hooks, [d for d, _ in notes])
    hooks[handle.id] = hook
    for d, flag in notes:
        if flag:
            d[handle.id] = True
    if first:
        hooks.move_to_end(handle.id, last=False)
    return handle


class Global:
    """The hooks of all modules."""

    forward: OrderedDict[Any, Any] = OrderedDict()
    forward_with_kwargs: OrderedDict[Any, Any] = OrderedDict()
    forward_always: OrderedDict[Any, Any] = OrderedDict()
    forward_pre: OrderedDict[Any, Any] = OrderedDict()
    backward: OrderedDict[Any, Any] = OrderedDict()
    backward_pre: OrderedDict[Any, Any] = OrderedDict()
    full: bool | None = None  # whether the backward hooks are full ones
    parameter: OrderedDict[Any, Any] = OrderedDict()
    module: OrderedDict[Any, Any] = OrderedDict()
    buffer: OrderedDict[Any, Any] = OrderedDict()


class Holder(ModuleType):
    """The module in which PyTorch has these hooks, by names (``_global_forward_hooks``) that programs set to other dicts."""


def _shared(part: str) -> property:
    return property(lambda self: getattr(Global, part), lambda self, hooks: setattr(Global, part, hooks))


for _name, _part in {
    "forward_hooks": "forward", "forward_hooks_with_kwargs": "forward_with_kwargs", "forward_hooks_always_called": "forward_always",
    "forward_pre_hooks": "forward_pre", "backward_hooks": "backward", "backward_pre_hooks": "backward_pre", "is_full_backward_hook": "full",
    "parameter_registration_hooks": "parameter", "module_registration_hooks": "module", "buffer_registration_hooks": "buffer",
}.items():  # fmt: skip
    setattr(Holder, f"_global_{_name}", _shared(_part))


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(module, name, parameter)`` whenever a parameter is registered; it may return a replacement."""
    return add_hook(Global.parameter, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(module, name, submodule)`` whenever a module is registered; it may return a replacement."""
    return add_hook(Global.module, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(module, name, buffer)`` whenever a buffer is registered; it may return a replacement."""
    return add_hook(Global.buffer, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(module, args)`` before any module's forward; it may return other arguments."""
    return add_hook(Global.forward_pre, hook)


def register_module_forward_hook(hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False) -> Handle:
    """Call ``hook(module, args, output)`` after any module's forward; it may return another output."""
    return add_hook(Global.forward, hook, [(Global.forward_with_kwargs, with_kwargs), (Global.forward_always, always_call)])


def register_module_backward_hook(hook: Callable[..., Any]) -> Handle:
    """Register by the old form of `register_module_full_backward_hook`, which sees the last op of a module only."""
    if Global.full is True:
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of them.")
    Global.full = False
    return add_hook(Global.backward, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(module, grad_output)`` when gradients for any module's output are known; it may return others."""
    return add_hook(Global.backward_pre, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(module, grad_input, grad_output)`` when gradients for any module's inputs are known."""
    if Global.full is False:
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of them.")
    Global.full = True
    return add_hook(Global.backward, hook)


@structured(
    tensors=lambda g, kinds: tuple([new_full(kind[0], 0, kind[1]) if v is None else v for v, kind in zip(g, kinds, strict=True)]),
    node="BackwardHookFunctionBackward", linear="jointly", batch="shift",
    samples="(lambda m: (m.register_full_backward_hook(lambda *_: None), m(x(3, 4)))[1])(torch.nn.Identity())",
)
def boundary(tensors: tuple[Any, ...], kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the same tensors (of shapes and dtypes ``kinds``) behind one node, at which the gradients of all are seen together, zeros where none has come."""
    out = tuple([make(t._data, t._layout, t._version_) for t in tensors])
    for t, o in zip(tensors, out, strict=True):
        share_view(t, o, "multi:BackwardHookFunctionBackward")
    return out


class BackwardHook:
    """One call of a module with full backward hooks: its inputs and outputs pass a `boundary` each.

    The gradients of the outputs are kept when they are known; the user's hooks run when those of the inputs are.
    """

    module: Any
    hooks: list[Callable[..., Any]]
    pre_hooks: list[Callable[..., Any]]
    n_inputs: int
    n_outputs: int

    def __init__(self, module: Any, hooks: list[Callable[..., Any]], pre_hooks: list[Callable[..., Any]]):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.inputs: list[int] | None = None
        self.outputs: list[int] | None = None
        self.n_inputs = self.n_outputs = -1

    @staticmethod
    def _spread(indices: Sequence[int], values: Sequence[Any], size: int) -> tuple[Any, ...]:
        out: list[Any] = [None] * size
        for i, v in zip(indices, values, strict=False):  # (integers that stand last have no gradient to be seen)
            out[i] = v
        return tuple(out)

    @staticmethod
    def _through(args: tuple[Any, ...], hook: Callable[..., Any]) -> tuple[tuple[Any, ...], list[int] | None]:
        """Return (args with the tensors behind a boundary whose node has ``hook``, the tensors' places)."""
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        if not (state.grad and any(args[i].requires_grad for i in places)):
            return args, None
        given = tuple([args[i] for i in places])
        if asked.whole is not None and any("_sharding" in t.__dict__ for t in given):
            raise NotImplementedError("full backward hooks of a module with DTensors: use .to_local() or .full_tensor(), or hooks of the tensors")
        new = boundary(given, tuple([(t.shape, t.dtype) for t in given]))
        node = next(t for t in new if t._edge is not None)._edge.node
        node.of_none = True
        node.register_hook(hook)
        for t, a in zip(new, given, strict=True):
            if not a._rg:
                t._edge, t._rg = None, False
        out = list(args)
        for i, t in zip(places, new, strict=True):
            out[i] = t
        return tuple(out), places

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments behind a boundary."""

        def hook(grad_input: tuple[Any, ...], _: tuple[Any, ...]) -> tuple[Any, ...] | None:
            if self.grad_outputs is None:
                return None  # the gradient came to the inputs without passing the outputs
            assert self.inputs is not None
            found = self._spread(self.inputs, grad_input, self.n_inputs)
            for user in self.hooks:
                found = _replaced(found, user(self.module, found, self.grad_outputs), "hook returned an invalid number of grad_input")
            self.grad_outputs = None
            return tuple(found[i] for i in self.inputs)

        out, self.inputs = self._through(args, hook)
        self.n_inputs = len(args)
        return out

    def setup_output_hook(self, result: Any) -> Any:
        """Return the output behind a boundary."""

        def hook(_: tuple[Any, ...], grad_output: tuple[Any, ...]) -> tuple[Any, ...]:
            assert self.outputs is not None
            grads = self._spread(self.outputs, grad_output, self.n_outputs)
            for user in self.pre_hooks:
                grads = _replaced(grads, user(self.module, grads), "pre hook returned an invalid number of grad_output")
            self.grad_outputs = grads
            if self.inputs is None:
                warn_user(
                    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
                    "require gradients.",
                )
                for user in self.hooks:
                    out = user(self.module, (None,) * self.n_inputs, grads)
                    if out is not None and not (isinstance(out, tuple) and all(g is None for g in out)):
                        raise RuntimeError(
                            "Backward hook for Modules where no input requires gradient should always return None or None for "
                            "all gradients."
                        )
                self.grad_outputs = None
            return tuple(grads[i] for i in self.outputs)

        single = not isinstance(result, tuple)
        out, self.outputs = self._through((result,) if single else result, hook)
        self.n_outputs = len(out)
        if single:
            return out[0]
        return type(result)(*out) if hasattr(result, "_fields") else out


def _replaced(grads: tuple[Any, ...], out: Any, wrong: str) -> tuple[Any, ...]:
    """Return what a hook has put in place of gradients, or these where it returned None."""
    if out is None:
        return grads
    found = (out,) if isinstance(out, Tensor) else tuple(out)
    if len(found) != len(grads):
        raise RuntimeError(f"Backward {wrong}, got {len(found)}, but expected {len(grads)}")
    return found


def bind_old_hooks(module: Any, hooks: list[Callable[..., Any]], inputs: tuple[Any, ...], result: Any) -> None:
    """Put the non-full backward hooks on the node of a module's output, with a warning where they do not see all gradients."""
    first = result
    while not isinstance(first, Tensor):
        first = next(v for v in first.values() if isinstance(v, Tensor)) if isinstance(first, dict) else first[0]
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(_bound(hook, module))
    found = _missed(inputs, result, node)
    if found:
        text = (
            f"Using {'' if found[0].startswith('non-full') else 'a non-full backward hook '}{found[0]} is deprecated and will be removed in "
            f"future versions. This hook will be missing some {found[1]}. Please use register_full_backward_hook to get the documented "
            "behavior."
        )
        warn_user(text, FutureWarning)


def _bound(hook: Callable[..., Any], module: Any) -> Callable[..., Any]:
    @wraps(hook)
    def bound(grad_input: Any, grad_output: Any) -> Any:
        return hook(module, grad_input, grad_output)

    return bound


def _missed(inputs: tuple[Any, ...], result: Any, node: Any) -> tuple[str, str] | None:
    """Return what makes a non-full hook on ``node`` miss gradients, and which; None where it sees all."""
    results = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(r, Tensor) for r in results):
        return "non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors", "of the grad_output"
    if not all(isinstance(x, Tensor) for x in inputs):
        return (
            "non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors", "of the grad_input",
        )
    nodes = {r.grad_fn for r in results if r.grad_fn is not None}
    if not nodes or (len(nodes) == 1 and node not in nodes):
        return "when outputs are nested in python data structure", "grad_output"
    if len(nodes) > 1:
        return "when outputs are generated by different autograd Nodes", "grad_output"
    if {x.grad_fn for x in inputs if x.grad_fn is not None} != {n for n, _ in node.next_functions}:
        return "when the forward contains multiple autograd Nodes", "grad_input"
    return None
