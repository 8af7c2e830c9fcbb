"""Module: the base of all layers and models.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
"""

from __future__ import annotations

import builtins
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar

from ... import dtypes, launch
from ...errors import COMPLEX_MODULE, check_keywords, refuse_keywords, warn_user
from ...graph.modes import no_grad
from ...ops.core.foreign import asked
from ...ops.creation.cast import as_device, is_meta, refuse_flag
from ...ops.creation.create import new_empty
from ...tensor import Tensor
from ..foreseen import note_module
from ..parameter import Buffer, Parameter, converted, is_persistent, register_by, typename
from .faults import tell_path
from .hooks import (
    BackwardHook,
    Global,
    Handle,
    Holder,
    add_hook,
    bind_old_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .state import StateDict, _IncompatibleKeys  # noqa: F401  (programs take it from here)
from .tree import Tree

__all__ = [
    "Module", "register_module_backward_hook", "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip

if TYPE_CHECKING:
    Given = ParamSpec("Given")
    Result = TypeVar("Result", covariant=True)
    #: hooks (module, args) and (module, args, output), with keywords before the output where these are asked for
    _Before = Callable[[Any, tuple[Any, ...]], Any] | Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    _After = Callable[[Any, tuple[Any, ...], Any], Any] | Callable[[Any, tuple[Any, ...], dict[str, Any], Any], Any]

    class _Forward(Protocol[Given, Result]):
        """An object with a ``forward``, whose parameters and result a call of a module has too."""

        @property
        def forward(self) -> Callable[Given, Result]: ...


#: attributes that every module has, as they are when it is made
_FRESH: tuple[tuple[str, Callable[[], Any]], ...] = (
    ("_parameters", dict),
    ("_buffers", dict),
    ("_non_persistent_buffers_set", set),
    ("_backward_pre_hooks", OrderedDict),
    ("_backward_hooks", OrderedDict),
    ("_is_full_backward_hook", lambda: None),
    ("_forward_hooks", OrderedDict),
    ("_forward_hooks_with_kwargs", OrderedDict),
    ("_forward_hooks_always_called", OrderedDict),
    ("_forward_pre_hooks", OrderedDict),
    ("_forward_pre_hooks_with_kwargs", OrderedDict),
    ("_state_dict_hooks", OrderedDict),
    ("_state_dict_pre_hooks", OrderedDict),
    ("_load_state_dict_pre_hooks", OrderedDict),
    ("_load_state_dict_post_hooks", OrderedDict),
    ("_modules", dict),
)


class Module(Tree, StateDict):
    """Base class of neural networks: subclass it, assign parameters and other modules as attributes, define ``forward``.

    Example:
        >>> class Model(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = torch.nn.Linear(2, 1)
        ...     def forward(self, x):
        ...         return self.layer(x)
        >>> [name for name, _ in Model().named_parameters()]
        ['layer.weight', 'layer.bias']
    """

    training: bool
    call_super_init = False
    dump_patches = False

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            check_keywords(cls, kwargs)
        return object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        d = self.__dict__
        d["training"] = True
        for name, make in _FRESH:
            d[name] = make()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    if TYPE_CHECKING:  # (a subclass names its own parameters)
        forward: Callable[..., Any]

        def __call__(self: _Forward[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result: ...

    else:

        def forward(self, *input: Any) -> Any:
            """Return what the module computes; every subclass defines it."""
            remedy = " (it only holds modules: call each of them, or use Sequential)" if type(self).__name__ in ("ModuleList", "ModuleDict") else ""
            raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function{remedy}')

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            if not (
                self._forward_hooks
                or self._forward_pre_hooks
                or self._backward_hooks
                or self._backward_pre_hooks
                or Global.forward
                or Global.forward_pre
                or Global.backward
                or Global.backward_pre
            ):
                try:
                    return self.forward(*args, **kwargs)
                except (RuntimeError, ValueError, TypeError, IndexError) as error:
                    tell_path(error, self, args)
                    raise
            try:
                return self._call_with_hooks(args, kwargs)
            except (RuntimeError, ValueError, TypeError, IndexError) as error:
                tell_path(error, self, args)
                raise

    # --------------------------------------------------------------------------------------------- registration
    def _check_name(self, kind: str, name: Any, where: dict[Any, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in where and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Keep a tensor that is not learned; ``persistent`` ones are in the state_dict.

        Errors: KeyError for names that are taken, empty or contain a dot; TypeError unless it is a Tensor or None.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor) and not hasattr(tensor, "__torch_function__"):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)")
        for hook in Global.buffer.values():
            out = hook(self, name, tensor)
            tensor = tensor if out is None else out
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Keep a parameter under ``name``.

        Errors: KeyError for names that are taken, empty or contain a dot; TypeError unless it is a Parameter or None.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                    f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
                )
            for hook in Global.parameter.values():
                out = hook(self, name, param)
                param = param if out is None else out
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Keep a module under ``name``; errors as for `register_parameter`."""
        if module is not None and not isinstance(module, Module):
            remedy = " (give its modules one by one: *layers)" if isinstance(module, (list, tuple)) else ""
            raise TypeError(f"{typename(module)} is not a Module subclass{remedy}")
        self._check_name("module", name, self._modules)
        self._modules[name] = _seen_by_hooks(self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a module, as `add_module` does, whose other name this is."""
        self.add_module(name, module)

    # ----------------------------------------------------------------------------------------------- attributes
    def __getattr__(self, name: str) -> Any:
        d = self.__dict__
        found = d.get("_parameters")
        if found and name in found:
            return found[name]
        found = d.get("_modules")
        if found and name in found:
            return found[name]
        found = d.get("_buffers")
        if found and name in found:
            return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)  # (Python adds a guess)

    def __setattr__(self, name: str, value: Any) -> None:
        d = self.__dict__
        params = d.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, d, self._buffers, self._modules)
            self.register_parameter(name, value)
            return
        if params is None:
            if isinstance(value, Module):
                raise AttributeError("cannot assign module before Module.__init__() call")
            if isinstance(value, Buffer):
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            object.__setattr__(self, name, value)
        elif name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._forget(name, d, params, self._buffers)
            d["_modules"][name] = _seen_by_hooks(self, name, value)
        elif name in d["_modules"]:
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)")
            d["_modules"][name] = _seen_by_hooks(self, name, value)
        elif isinstance(value, Buffer) or name in d["_buffers"]:
            persistent = is_persistent(value, name, self._non_persistent_buffers_set)
            if getattr(self.register_buffer, "__func__", None) is Module.register_buffer:
                self.register_buffer(name, value, persistent)
            else:
                register_by(self.register_buffer, name, value, persistent)
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, *where: dict[Any, Any]) -> None:
        for d in where:
            d.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for d in (self._parameters, self._buffers, self._modules):
            if name in d:
                del d[name]
                if d is self._buffers:
                    self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(n for n in names if not n[0].isdigit())

    def __getstate__(self) -> dict[Any, Any]:
        state = self.__dict__.copy()
        if state.pop("_compiled", False):
            del state["forward"]  # machine code is not copied
        return state

    def __setstate__(self, state: dict[Any, Any]) -> None:
        self.__dict__.update(state)
        for name, make in _FRESH:  # modules pickled by other versions may lack some
            if name not in self.__dict__:
                self.__dict__[name] = make()

    # -------------------------------------------------------------------------------------------------- calling
    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return self(*args, **kwargs)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
        called: set[int] = set()
        result = None
        try:
            full, old = self._backward_hook_lists()
            pre = [*Global.backward_pre.values(), *self._backward_pre_hooks.values()]
            for key, hook in (*Global.forward_pre.items(), *self._forward_pre_hooks.items()):
                if key in self._forward_pre_hooks_with_kwargs:
                    out = hook(self, args, kwargs)
                    if out is not None:
                        if not (isinstance(out, tuple) and len(out) == 2):
                            raise RuntimeError(
                                f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {out}."
                            )
                        args, kwargs = out
                else:
                    out = hook(self, args)
                    if out is not None:
                        args = out if isinstance(out, tuple) else (out,)
            watch = None
            if full or pre:
                watch = BackwardHook(self, full, pre)
                args = watch.setup_input_hook(args)
            result = self.forward(*args, **kwargs)
            for key, hook in (*Global.forward.items(), *self._forward_hooks.items()):
                called.add(key)
                out = self._run_forward_hook(key, hook, args, kwargs, result)
                result = result if out is None else out
            if watch is not None:
                if isinstance(result, (Tensor, tuple)):
                    result = watch.setup_output_hook(result)
                else:
                    warn_user(
                        "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                        f"{type(result)}",
                    )
            if old:
                bind_old_hooks(self, old, args, result)
            return result
        except Exception:
            self._run_always_called(called, args, kwargs, result)
            raise

    def _run_forward_hook(self, key: int, hook: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any], result: Any) -> Any:
        if key in self._forward_hooks_with_kwargs or key in Global.forward_with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _run_always_called(self, called: set[int], args: tuple[Any, ...], kwargs: dict[Any, Any], result: Any) -> None:
        """Run, after an error in forward, the hooks that were promised to run."""
        for hooks, always, kind in (
            (Global.forward, Global.forward_always, "global module"),
            (self._forward_hooks, self._forward_hooks_always_called, "module"),
        ):
            for key, hook in hooks.items():
                if key in always and key not in called:
                    try:
                        out = self._run_forward_hook(key, hook, args, kwargs, result)
                        result = result if out is None else out
                    except Exception as error:
                        warn_user(
                            f"{kind} forward hook with ``always_call=True`` raised an exception that was silenced as another "
                            f"error was raised in forward: {error}",
                        )

    def _backward_hook_lists(self) -> tuple[list[Any], list[Any]]:
        """Return (full backward hooks, old ones)."""
        full: list[Any] = []
        old: list[Any] = []
        if Global.backward:
            (full if Global.full else old).extend(Global.backward.values())
        if self._backward_hooks:
            (full if self._is_full_backward_hook else old).extend(self._backward_hooks.values())
        return full, old

    # ---------------------------------------------------------------------------------------------------- hooks
    def register_forward_pre_hook(self, hook: _Before, *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """Call ``hook(module, args)`` (``with_kwargs``: ``hook(module, args, kwargs)``) before forward; it may return others."""
        return add_hook(self._forward_pre_hooks, hook, [(self._forward_pre_hooks_with_kwargs, with_kwargs)], prepend)

    def register_forward_hook(
        self, hook: _After, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Call ``hook(module, args, output)`` after forward; it may return another output.

        with_kwargs: ``hook(module, args, kwargs, output)``. always_call: also when forward raised.
        """
        notes = [(self._forward_hooks_with_kwargs, with_kwargs), (self._forward_hooks_always_called, always_call)]
        return add_hook(self._forward_hooks, hook, notes, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[[Any, Any], Any], prepend: bool = False) -> Handle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known; it may return others."""
        return add_hook(self._backward_pre_hooks, hook, (), prepend)

    def register_full_backward_hook(self, hook: Callable[[Any, Any, Any], Any], prepend: bool = False) -> Handle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are known; it may return others.

        Inputs and outputs must not be changed in place then. RuntimeError beside `register_backward_hook`.
        """
        return self._backward_hook(hook, True, prepend)

    def register_backward_hook(self, hook: Callable[[Any, Any, Any], Any]) -> Handle:
        """Register by the old form of `register_full_backward_hook`, which sees the last op of the module only."""
        return self._backward_hook(hook, False)

    def _backward_hook(self, hook: Callable[[Any, Any, Any], Any], full: bool, prepend: bool = False) -> Handle:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
            )
        handle = add_hook(self._backward_hooks, hook, (), prepend)
        self._is_full_backward_hook = full
        return handle

    # -------------------------------------------------------------------------------------------------- changes
    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of every parameter, gradient and buffer by ``fn`` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, p in self._parameters.items():
            if p is None:
                continue
            grad = p._grad
            with no_grad():
                new = converted(p, fn(p))
                if new is not p:
                    self._parameters[name] = new
                if grad is not None:
                    new.grad = converted(grad, fn(grad))
        for name, b in self._buffers.items():
            if b is not None:
                self._buffers[name] = fn(b)
        return self

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call ``fn`` on every module below and on this one; this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert the floating parameters and buffers to a dtype, in place: ``to(dtype)``, ``to(device)``, ``to(tensor)``.

        ``memory_format`` is that of parameters and buffers of 4 and 5 dims.
        Errors: TypeError for dtypes that are neither floating nor complex, of which it warns, RuntimeError for devices other than the CPU.
        """
        if kwargs.pop("copy", False) or sum(isinstance(a, bool) for a in args) > 1:
            raise RuntimeError(".to does not accept copy argument (copy.deepcopy the module)")
        refuse_keywords("to", kwargs, ("device", "dtype", "non_blocking", "memory_format"))
        dtype, device, memory_format = kwargs.get("dtype"), kwargs.get("device"), kwargs.get("memory_format")
        refuse_flag(args)
        for a in args:
            if isinstance(a, (dtypes.dtype, builtins.type)):
                dtype = dtypes.as_dtype(a)
            elif isinstance(a, Tensor):
                dtype = a.dtype
            elif isinstance(a, bool):
                continue  # non_blocking
            elif isinstance(a, (str, int)) or hasattr(a, "type") or a is None:
                device = a
            else:
                raise TypeError(f"to() received an invalid argument {a!r}: expected a dtype, a device or a Tensor")
        if device is not None and is_meta(device):
            self._apply(asked.meta().on_meta)
        elif device is not None and asked.meta_used:
            self._apply(lambda t: t.to(device))
        if memory_format is not None:
            self._apply(lambda t: t.to(memory_format=memory_format) if t.ndim in (4, 5) else t)
        if dtype is None:
            return self
        if not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
        if dtype.is_complex:
            warn_user(COMPLEX_MODULE)
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() or t.is_complex() else t)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to a dtype, an old type such as ``torch.DoubleTensor``, or what has such a name."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Convert floating parameters and buffers to float32."""
        return self.to(dtypes.float32)

    def double(self) -> Self:
        """Convert floating parameters and buffers to float64."""
        return self.to(dtypes.float64)

    def half(self) -> Self:
        """Convert floating parameters and buffers to float16."""
        return self.to(dtypes.float16)

    def bfloat16(self) -> Self:
        """Convert floating parameters and buffers to bfloat16."""
        return self.to(dtypes.bfloat16)

    def cpu(self) -> Self:
        """Return the module: everything is on the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Raise RuntimeError: this library computes on the CPU."""
        as_device("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)
        return self

    def to_empty(self, *, device: Any = None, recurse: bool = True) -> Self:
        """Give parameters and buffers fresh memory with undefined contents; the module."""
        away = device is not None and is_meta(device)

        def fresh(t: Any) -> Tensor:
            made, parts = new_empty(t._layout.shape, t.dtype), t.__dict__.get("_sharding")
            return made if parts is None or t.is_meta else parts.mark(made)
        return self._apply(lambda t: asked.meta().on_meta(t) if away else fresh(t), recurse)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Let calls of the module go through `compile` with these options."""
        from ...compiler import compile as compiled

        self.__dict__.update(forward=compiled(self.forward, *args, **kwargs), _compiled=True)

    def share_memory(self) -> Self:
        """Return the module; its memory is not moved. RuntimeError where parameters have no memory yet."""
        return self._apply(lambda t: t.share_memory_())

    def train(self, mode: bool = True) -> Self:
        """Set training mode here and below (it changes dropout and batch norm, not recording); the module."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Leave training mode and return the module."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set ``requires_grad`` of every parameter; the module."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of every parameter, or (``set_to_none=False``) fill them with 0."""
        for p in self.parameters():
            g = p._grad
            if set_to_none:
                launch.cleared(p)
                p._grad = None
                continue
            if g is None:
                continue
            if g.grad_fn is not None:
                g.detach_()
            else:
                g.requires_grad_(False)
            g.zero_()

    # ----------------------------------------------------------------------------------------------------- text
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what stands between the parentheses of the module's repr."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + _addindent(repr(module), 2) for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        lines += children
        return f"{self._get_name()}(" + ("\n  " + "\n  ".join(lines) + "\n" if lines else "") + ")"


def _addindent(text: str, spaces: int) -> str:
    """Return the text with all lines but the first moved right. PyTorch's name, which programs import for a ``__repr__`` of their own."""
    return text.replace("\n", "\n" + " " * spaces)


def _seen_by_hooks(parent: Module, name: str, module: Any) -> Any:
    for hook in Global.module.values():
        out = hook(parent, name, module)
        module = module if out is None else out
    note_module(module)
    return module


sys.modules[__name__].__class__ = Holder
