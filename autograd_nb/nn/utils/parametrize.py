"""Parameters that are computed from others: ``module.weight`` becomes f(module.parametrizations.weight.original).

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.register_parametrization.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from ...graph.modes import PerThread, no_grad
from ...tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip


class _Cache(PerThread):
    """The values computed so far inside `cached`, per thread."""

    depth = 0
    values: dict[tuple[int, str], Tensor] | None = None


_cache = _Cache()


@contextmanager
def cached() -> Iterator[None]:
    """Let a parametrised tensor be computed once, and then given again, while it is open.

    >>> with torch.nn.utils.parametrize.cached(): y = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))(torch.ones(1, 2))
    ...
    >>> y.shape
    torch.Size([1, 3])
    """
    _cache.depth += 1
    if _cache.values is None:
        _cache.values = {}
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.values = None


def _keep(module: Module, name: str, x: Any) -> None:
    if isinstance(x, Parameter):
        module.register_parameter(name, x)
    else:
        module.register_buffer(name, x)


_CHANGES = "Registering a parametrization may not change the {} of the tensor"
_RETURNS = "The tensor returned by parametrization.right_inverse must have the same {} as the tensor that is parametrized"


def _same_kind(before: Tensor, after: Any, what: str, how: str) -> None:
    """Raise ValueError unless ``after`` is a tensor of the dtype and shape of ``before``."""
    if not isinstance(after, Tensor):
        raise ValueError(f"{what} must return a tensor. Got {type(after).__name__}.")
    for attribute in ("dtype", "shape"):
        a, b = getattr(before, attribute), getattr(after, attribute)
        if a != b:
            raise ValueError(
                f"{how.format(attribute)}, unless the `unsafe` flag is enabled.\n"
                f"unparametrized {attribute}: {a}\nparametrized {attribute}: {b}"
            )


class ParametrizationList(ModuleList):
    """The functions that a tensor goes through, and what the first of them takes: ``original``, or original0, original1, …"""

    is_tensor: bool
    ntensors: int

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        like = original.detach()
        new: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:  # it has none after all: what it takes is the tensor as it is
                        pass
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype is not new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            original.data = new.detach()
            _keep(self, "original", original)
        else:
            for i, t in enumerate(new):
                if not isinstance(t, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {i} of the sequence with type {type(t).__name__}."
                    )
                if isinstance(original, Parameter):
                    t = Parameter(t, original.requires_grad)
                _keep(self, f"original{i}", t.requires_grad_(original.requires_grad))
        if not unsafe:
            _same_kind(like, self(), "A parametrization", _CHANGES)

    def _originals(self) -> list[Tensor]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that they give ``value``. RuntimeError where a parametrisation has no right_inverse."""
        new: Any = value
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                new = module.right_inverse(new)
        if self.is_tensor and not isinstance(new, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(new).__name__}")
        values = [new] if self.is_tensor else new
        if not isinstance(values, Sequence):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(values).__name__}.")
        if len(values) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length {len(values)}."
            )
        for i, (own, t) in enumerate(zip(self._originals(), values, strict=True)):
            if not isinstance(t, Tensor):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got element {i} of type {type(t).__name__}."
                )
            if t.dtype is not own.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {t.dtype} while `original` has dtype {own.dtype}"
                )
            own.data = t.detach()

    def forward(self) -> Tensor:
        """Return the parametrised tensor."""
        first, *rest = self
        x = first(*self._originals())
        for module in rest:
            x = module(x)
        return x


def _getstate(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
    )


def _deepcopy(self: Any, memo: dict[Any, Any]) -> Any:
    if id(self) not in memo:
        replica = memo[id(self)] = self.__new__(type(self))
        replica.__dict__ = deepcopy(self.__dict__, memo)
    return memo[id(self)]


def _property(name: str) -> property:
    def get(self: Any) -> Tensor:
        computed = self.parametrizations[name]
        known = _cache.values
        if known is None:
            return computed()
        key = id(self), name
        if key not in known:
            known[key] = computed()
        return known[key]

    def put(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """Let ``module.<tensor_name>`` be ``parametrization(original)``, or of what earlier parametrisations gave.

    A parametrisation with a method ``right_inverse`` says which original gives the tensor's present value, and lets values be
    assigned. unsafe: it may change dtype and shape.

    Example:
        >>> class Symmetric(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> m = torch.nn.utils.parametrize.register_parametrization(torch.nn.Linear(3, 3), "weight", Symmetric())
        >>> bool((m.weight == m.weight.T).all())
        True

    Errors: ValueError for names that are no parameter or buffer, and for results of another dtype or shape.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _same_kind(before, after, "A parametrization", _CHANGES)
            if hasattr(parametrization, "right_inverse"):
                try:
                    back = parametrization.right_inverse(after)
                except NotImplementedError:
                    pass
                else:
                    _same_kind(before, back, "parametrization.right_inverse", _RETURNS)
        several = module.parametrizations[tensor_name]
        several.append(parametrization)
        several.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        several = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            cls = type(module)
            members: dict[str, Any] = {"__getstate__": _getstate, "__module__": cls.__module__}
            if not hasattr(cls, "__deepcopy__"):
                members["__deepcopy__"] = _deepcopy
            module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property(tensor_name))
        module.parametrizations[tensor_name] = several
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has parametrised tensors, or one of this name.

    >>> torch.nn.utils.parametrize.is_parametrized(torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3)), "weight")
    True
    """
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make ``module.<tensor_name>`` an ordinary parameter again, of its present value, or of the original one.

    Errors: ValueError where it has no parametrisation, or the original is several tensors.

    >>> m = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
    >>> list(torch.nn.utils.parametrize.remove_parametrizations(m, "weight").state_dict())
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    several = module.parametrizations[tensor_name]
    if several.is_tensor:
        original = several.original
        if leave_parametrized:
            with no_grad():
                original.data = getattr(module, tensor_name).detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _keep(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class that a module had when nothing of it was parametrised.

    >>> torch.nn.utils.parametrize.type_before_parametrizations(torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: Module, tensor_name: str | None = None) -> Module:
    """Give a module the parametrisations of another (of one tensor, or all), with the originals they work on.

    >>> m = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
    >>> other = torch.nn.utils.parametrize.transfer_parametrizations_and_params(m, torch.nn.Linear(2, 3))
    >>> bool((other.weight == m.weight).all())
    True
    """
    if is_parametrized(from_module):
        for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
            if not hasattr(to_module, name):
                setattr(to_module, name, Parameter(getattr(from_module, name)))
            source = from_module.parametrizations[name]
            for function in source:
                register_parametrization(to_module, name, function)
            target = to_module.parametrizations[name]
            for key in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
                setattr(target, key, getattr(source, key))
    return to_module
