"""Pruning: ``module.weight`` becomes weight_orig · weight_mask, computed before each forward call.

Source: https://docs.pytorch.org/docs/stable/nn.html#utilities (torch.nn.utils.prune)
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

from ...ops.core.registry import OPS
from ...ops.creation.cast import cast
from ...ops.creation.create import new_full
from ...tensor import Tensor
from ..modules.module import Module


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and amount < 0) or (
        not isinstance(amount, numbers.Integral) and not 0.0 <= float(amount) <= 1.0
    ):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    """Return how many of ``tensor_size`` are pruned: ``amount`` itself, or that fraction."""
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _ones(like: Tensor) -> Tensor:
    return new_full(like.shape, 1, like.dtype)


class BasePruningMethod:
    """A hook that multiplies a parameter by a mask; subclasses say in ``compute_mask`` which."""

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask for importances ``t``, on top of one there is."""
        raise NotImplementedError

    def apply_mask(self, module: Module) -> Tensor:
        """Return the pruned tensor."""
        if not hasattr(self, "_tensor_name"):
            raise AssertionError(f"Module {module} has to be pruned")
        mask, original = getattr(module, self._tensor_name + "_mask"), getattr(module, self._tensor_name + "_orig")
        return cast(mask, original.dtype) * original

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any) -> Any:
        """Prune ``module.<name>``, on top of what was pruned before."""
        old = [
            (k, hook)
            for k, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        whole = getattr(module, name)
        scores = whole if importance_scores is None else importance_scores
        if scores.shape != whole.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        if old:
            key, before = old[0]
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            default = getattr(module, name + "_mask").detach().clone()
            mask = container.compute_mask(scores, default)
            del module._forward_pre_hooks[key]
            method = container
        else:
            mask = method.compute_mask(scores, _ones(whole))
            module.register_parameter(name + "_orig", module._parameters.pop(name))
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Return a pruned form of a tensor."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        return t * self.compute_mask(scores, _ones(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned values the parameter; the hook itself is removed by `remove`."""
        name = self._tensor_name
        original = module._parameters[name + "_orig"]
        original.data = self.apply_mask(module).detach()
        del module._parameters[name + "_orig"], module._buffers[name + "_mask"]
        delattr(module, name)
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods one after the other, each on what the ones before left."""

    def __init__(self, *args: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add another method for the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method = self._pruning_methods[-1]
        mask = cast(default_mask, t.dtype).clone().contiguous()
        if method.PRUNING_TYPE == "unstructured":
            left: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim  # type: ignore[attr-defined]
            alive = mask.sum([d for d in range(t.ndim) if d != dim]) != 0
            left = (slice(None),) * dim + (alive,)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.ndim
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask[left] = cast(method.compute_mask(t[left], default_mask[left]), t.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _Unstructured(BasePruningMethod):
    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_pruning_amount(self.amount, t.numel())
        n = _compute_nparams_toprune(self.amount, t.numel())
        mask = default_mask.clone().contiguous()
        if n:
            lowest = self._scores(t).reshape(-1).topk(n, largest=False).indices
            mask.view(-1)[lowest] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements by chance."""

    def _scores(self, t: Tensor) -> Tensor:
        return OPS["rand"].call(t.shape)


class L1Unstructured(_Unstructured):
    """Prunes the elements of least absolute value."""

    def _scores(self, t: Tensor) -> Tensor:
        return t.detach().abs().contiguous()


class _Structured(BasePruningMethod):
    amount: Any
    dim: int
    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def _scores(self, t: Tensor, dim: int) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.ndim <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{list(t.shape)} with {t.ndim} dims"
            )
        if not -t.ndim <= self.dim < t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        dim = self.dim % t.ndim
        channels = t.shape[dim]
        _validate_pruning_amount(self.amount, channels)
        n = _compute_nparams_toprune(self.amount, channels)
        if not n:
            return default_mask
        keep = self._scores(t, dim).topk(channels - n).indices
        mask = new_full(t.shape, 0, default_mask.dtype)
        mask[(slice(None),) * dim + (keep,)] = 1
        return mask * default_mask


class RandomStructured(_Structured):
    """Prunes channels by chance."""

    def _scores(self, t: Tensor, dim: int) -> Tensor:
        return OPS["rand"].call(t.shape[dim])


class LnStructured(_Structured):
    """Prunes the channels of least n-norm."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor, dim: int) -> Tensor:
        return t.detach().norm(p=self.n, dim=[d for d in range(t.ndim) if d != dim])


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask * cast(self.mask, default_mask.dtype)


# ------------------------------------------------------------------------------------------------------- functions


def identity(module: Module, name: str) -> Module:
    """Make mask and hook without pruning."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Prune ``amount`` elements (a number, or a fraction) by chance."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: Any, importance_scores: Tensor | None = None) -> Module:
    """Prune the ``amount`` elements of least absolute value.

    >>> layer = torch.nn.Linear(4, 1)
    >>> _ = torch.nn.utils.prune.l1_unstructured(layer, "weight", amount=2)
    >>> int((layer.weight == 0).sum())
    2
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Prune ``amount`` channels along ``dim`` by chance."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None) -> Module:
    """Prune the ``amount`` channels along ``dim`` of least n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune by a mask.

    >>> layer = torch.nn.Linear(2, 1)
    >>> _ = torch.nn.utils.prune.custom_from_mask(layer, "weight", torch.tensor([[1.0, 0.0]]))
    >>> (layer.weight == 0).tolist()
    [[False, True]]
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[Any], pruning_method: type[BasePruningMethod], importance_scores: dict[Any, Any] | None = None, **kwargs: Any
) -> None:
    """Prune several (module, name) together, as if they were one parameter."""
    pairs = list(parameters)
    if not isinstance(parameters, Iterable) or not all(len(p) == 2 for p in pairs):
        raise TypeError("global_unstructured(): 'parameters' must be an iterable of (module, name) pairs")
    scores = importance_scores or {}
    values = [getattr(m, n) for m, n in pairs]
    flat = OPS["cat"].call([scores.get((m, n), t).detach().reshape(-1) for (m, n), t in zip(pairs, values, strict=True)])
    masks = [getattr(m, n + "_mask", None) for m, n in pairs]
    default = OPS["cat"].call([(_ones(t) if k is None else k).reshape(-1) for k, t in zip(masks, values, strict=True)])
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(f"Only unstructured PRUNING_TYPEs are supported for global pruning, not {method.PRUNING_TYPE}")
    container = PruningContainer(method)
    mask = container.compute_mask(flat, default)
    start = 0
    for (module, name), t in zip(pairs, values, strict=True):
        custom_from_mask(module, name, mask[start : start + t.numel()].view(t.shape))
        start += t.numel()


def remove(module: Module, name: str) -> Module:
    """Make the pruned values of ``module.<name>`` an ordinary parameter. ValueError unless it is pruned."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Return whether a parameter of a module, or of one below, is pruned."""
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())
