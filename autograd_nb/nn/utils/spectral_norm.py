"""Weights divided by their greatest singular value, kept by a hook: the older form of `parametrizations.spectral_norm`.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.spectral_norm.html
"""

from __future__ import annotations

from typing import Any

from ...graph.modes import no_grad
from ...ops.core.registry import OPS
from ...ops.creation.create import new_empty
from ...tensor import Tensor
from .. import functional as F
from ..modules.module import Module
from ..parameter import Parameter, is_lazy
from .parametrizations import output_dim

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The hook that computes ``name`` from ``name_orig`` and the singular vectors ``name_u`` and ``name_v``."""

    name: str
    n_power_iterations: int
    dim: int
    eps: float

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix whose rows belong to ``dim``."""
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.ndim) if d != self.dim))
        return weight.reshape(weight.shape[0], -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Return the weight, after a step of the power method if wanted."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()  # the next step changes the buffers, which the graph reads
        return weight / u.dot(matrix.mv(v))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Put the hook on a module."""
        for other in module._forward_pre_hooks.values():
            if isinstance(other, SpectralNorm) and other.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward before "
                "applying spectral normalization"
            )
        with no_grad():
            rows, columns = hook.reshape_weight_to_matrix(weight).shape
            u, v = (F.normalize(new_empty((n,), weight.dtype).normal_(0, 1), dim=0, eps=eps) for n in (rows, columns))
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(hook.note_version)
        module._register_load_state_dict_pre_hook(hook.complete)
        return hook

    def note_version(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[Any, Any]) -> None:
        """Say in a state_dict's metadata how the weight is kept, as PyTorch does."""
        local_metadata.setdefault("spectral_norm", {})[self.name + ".version"] = self._version

    def complete(
        self, state_dict: Any, prefix: str, local_metadata: dict[Any, Any], strict: bool, missing_keys: list[str], *_: Any
    ) -> None:
        """Put the right singular vector into a state_dict from before 1.0, which has the weight as it was used in its place.

        As in PyTorch, what such a dict has not counts as missing, once more than for the module itself.
        """
        version = local_metadata.get("spectral_norm", {}).get(self.name + ".version")
        key = prefix + self.name
        if version is not None and version >= 1:
            return
        if version is None and all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v")) and key not in state_dict:
            return  # of a later version, without metadata
        missing = [key + suffix for suffix in ("_orig", "", "_u") if key + suffix not in state_dict]
        missing_keys.extend(missing if strict else ())
        if missing:
            return
        original, used = state_dict[key + "_orig"], state_dict.pop(key)
        with no_grad():
            sigma = (original / used).mean()
            matrix, u = self.reshape_weight_to_matrix(original), state_dict[key + "_u"]
            v = OPS["linalg.pinv"].call(matrix.t().mm(matrix)).mv(matrix.t().mv(u))
            state_dict[key + "_v"] = v * (sigma / u.dot(matrix.mv(v)))

    def remove(self, module: Module) -> None:
        """Make the weight an ordinary parameter."""
        with no_grad():
            weight = self.compute_weight(module, False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its greatest singular value (Miyato et al., 2018); see `parametrizations.spectral_norm`."""
    SpectralNorm.apply(module, name, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo `spectral_norm`. ValueError where it was not done."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for key, hook in module._state_dict_hooks.items():
        owner = getattr(hook, "__self__", None)
        if isinstance(owner, SpectralNorm) and owner.name == name:
            del module._state_dict_hooks[key]
            break
    return module
