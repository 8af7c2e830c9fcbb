"""Walks over a module and what is below it, and access by dotted names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ...graph import markup
from ...ops.core.registry import OPS
from ...tensor import Tensor
from ..parameter import Parameter, is_lazy

if TYPE_CHECKING:
    from .module import Module


class Tree:
    """The part of `Module` that finds parameters, buffers and modules."""

    _parameters: dict[Any, Any]
    _buffers: dict[Any, Any]
    _modules: dict[Any, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        """Let functions of this library that stand in a class be called through its objects as they are (``act = torch.tanh``), as PyTorch's do."""
        super().__init_subclass__(**options)
        own = f"{cls.__qualname__}."
        for name, value in vars(cls).copy().items():
            if value.__class__ is FunctionType and not value.__qualname__.startswith(own) and any(value is op.call for op in OPS.values() if op.namespaces):
                setattr(cls, name, staticmethod(value))

    def _named_members(self, members: Callable[..., Any], prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[Any]:
        seen: set[Any] = set()
        for inner, module in self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]:
            for name, value in members(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield inner + ("." if inner else "") + name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Return every parameter once, here and (``recurse``) below."""
        for _, p in self.named_parameters(recurse=recurse):
            yield p

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Return (dotted name, parameter) of every parameter."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Return every buffer once, here and (``recurse``) below."""
        for _, b in self.named_buffers(recurse=recurse):
            yield b

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Return (dotted name, buffer) of every buffer."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Return the modules directly below, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Return (name, module) of the modules directly below, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Return this module and every one below."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Return (dotted name, module) of this module (under ``prefix``) and every one below."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self  # type: ignore[misc]
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    def get_submodule(self, target: str) -> Module:
        """Return the module of a dotted name. AttributeError where there is none."""
        module: Any = self
        for item in target.split(".") if target else ():
            if not hasattr(module, item):
                raise AttributeError(f"{module._get_name()} has no attribute `{item}`")
            module = getattr(module, item)
            if not isinstance(module, Tree):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put ``module`` in the place of a dotted name; ``strict``: only where there is one already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Tree):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Tree):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter of a dotted name. AttributeError where there is none."""
        module, name = self._owner(target)
        found = getattr(module, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer of a dotted name. AttributeError where there is none."""
        module, name = self._owner(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return module._buffers[name]

    def _owner(self, target: str) -> tuple[Module, str]:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name

    def _repr_html_(self) -> str:
        """Return what notebooks show: the modules as a tree that folds, each with its number of parameters."""
        return markup.page(_folded("", self, 0))


def _folded(name: str, module: Any, depth: int) -> str:
    """Return the HTML of a module and of those inside; the first two levels stand open."""
    own = {id(p): p for p in module.parameters()}.values()
    made = [p for p in own if not is_lazy(p)]
    count, fixed, open_ = sum(p.numel() for p in made), sum(p.numel() for p in made if not p.requires_grad), len(own) - len(made)
    children = [(n, m) for n, m in module._modules.items() if m is not None]
    extra = module.extra_repr().replace("\n", ", ") if not children else ""
    head = f"{markup.escape(name)}: " if name else ""
    head += f"<b>{markup.escape(type(module).__name__)}</b>" + (f"({markup.escape(extra)})" if extra else "")
    numbers = f"{count:,} parameters" + (f", {fixed:,} of them fixed" if fixed else "") if count else "" if open_ else "no parameters"
    numbers += (", " if count else "") + f"{open_} without a shape yet" if open_ else ""
    head += f' <span class="dim">{numbers}</span>'
    shapes = ", ".join(f"{n} {list(p.shape)}" for n, p in module._parameters.items() if p is not None and not is_lazy(p))
    within = f'<div class="leaf dim">{markup.escape(shapes)}</div>' if shapes else ""
    within += "".join(_folded(n, m, depth + 1) for n, m in children)
    return markup.fold(head, within, opened=bool(children) and depth < 2) if within else f'<div class="leaf">{head}</div>'
