"""`GradScaler`: a loss multiplied before the backward pass, so that small gradients in half precision do not vanish, and steps without them.

Source: https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from ..dtypes import float16, float32, int32
from ..errors import warn_user
from ..graph.modes import no_grad
from ..ops.creation.create import full
from ..tensor import Tensor

_READY, _UNSCALED, _STEPPED = range(3)


class GradScaler:
    """Scales losses for ``device="cpu"``; for "cuda", which is not there, it says so and is disabled: factor 1, every step is made.

    A step is left out where a gradient is infinite or NaN, and the factor is made smaller; after ``growth_interval`` steps without
    such it is made larger.

    Example:
        >>> w = torch.tensor([1.0], requires_grad=True)
        >>> optimizer, scaler = torch.optim.SGD([w], lr=0.5), torch.amp.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale((w * w).sum()).backward()
        >>> _ = scaler.step(optimizer)
        >>> scaler.update()
        >>> w, scaler.get_scale()
        (tensor([0.], requires_grad=True), 8.0)
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ):  # fmt: skip
        self._device = str(device)
        if enabled and self._device.split(":")[0] != "cpu":
            warn_user("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", UserWarning)
            enabled = False
        self._enabled = enabled
        if not enabled:
            return
        if not growth_factor > 1.0:
            raise AssertionError(f"The growth factor must be > 1.0. (growth_factor={growth_factor})")
        if not backoff_factor < 1.0:
            raise AssertionError(f"The backoff factor must be < 1.0. (backoff_factor={backoff_factor})")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._stages: dict[int, int] = {}  # id of an optimizer -> how far it is
        self._found: dict[int, Tensor] = {}  # id of an optimizer -> 1 where one of its gradients is not finite

    def _factor(self) -> Tensor:
        """Return the scale, which is made when it is first needed."""
        if self._scale is None:
            self._scale = full((), self._init_scale, dtype=float32)
            self._growth_tracker = full((), self._init_growth_tracker, dtype=int32)
        return self._scale

    def _begun(self, name: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) earlier "
                "in the iteration."
            )
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """Return a tensor, or each of an iterable, times the scale. ValueError for anything else."""
        if not self._enabled:
            return outputs
        factor = self._factor()
        if isinstance(outputs, Tensor):
            return outputs * factor
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled  # type: ignore[call-arg]
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _looked_at(self, optimizer: Any, inverse: Tensor) -> None:
        """Multiply the gradients by a number; 1 is kept where one is not finite, nothing where there are none."""
        found: Tensor | None = None
        with no_grad():
            for p in (p for group in optimizer.param_groups for p in group["params"]):
                if p.grad is None:
                    continue
                if p.grad.dtype is float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                bad = 1.0 - p.grad.isfinite().all().float()
                found = bad if found is None else found.maximum(bad)
                p.grad.mul_(inverse)
        if found is not None:
            self._found[id(optimizer)] = found

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, once a step (before they are clipped, for instance)."""
        if not self._enabled:
            return
        self._begun("unscale_")
        stage = self._stages.get(id(optimizer), _READY)
        if stage == _UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if stage == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._looked_at(optimizer, self._begun("unscale_").double().reciprocal().float())
        self._stages[id(optimizer)] = _UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call ``optimizer.step()`` with gradients divided by the scale, unless one of them is not finite; return what it returned, or None."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._begun("step")
        stage = self._stages.get(id(optimizer), _READY)
        if stage == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._leave_to(optimizer, stage, args, kwargs)
        if stage == _READY:
            self.unscale_(optimizer)
        if id(optimizer) not in self._found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        self._stages[id(optimizer)] = _STEPPED
        return None if self._found[id(optimizer)].item() else optimizer.step(*args, **kwargs)

    def _leave_to(self, optimizer: Any, stage: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the step of an optimizer that scales and leaves out itself: it is told by attributes, or given the scaler if it takes one."""
        told = "grad_scaler" not in inspect.signature(optimizer.step).parameters
        if told:
            if stage == _READY:
                self._looked_at(optimizer, full((), 1.0))
            given = getattr(optimizer, "grad_scale", None)
            scale = self._factor()
            optimizer.grad_scale = given if stage == _UNSCALED else scale if given is None else scale * given
            optimizer.found_inf = self._found.get(id(optimizer), 0)
        else:
            warn_user(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future GradScaler "
                "registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the optimizer use them directly.",
                FutureWarning,
            )
            kwargs["grad_scaler"] = self
        result = optimizer.step(*args, **kwargs)
        self._stages[id(optimizer)] = _STEPPED
        if told:
            del optimizer.grad_scale, optimizer.found_inf
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Take the next scale: ``new_scale``, or the one that the gradients since the last update ask for."""
        if not self._enabled:
            return
        factor, tracker = self._begun("update"), self._growth_tracker
        assert tracker is not None
        if new_scale is not None:
            if isinstance(new_scale, Tensor) and (new_scale.numel() != 1 or new_scale.requires_grad):
                raise AssertionError("new_scale should be a float or a 1-element tensor with requires_grad=False.")
            factor.copy_(new_scale) if isinstance(new_scale, Tensor) else factor.fill_(new_scale)
        elif not self._found:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(found.item() for found in self._found.values()):
            factor.mul_(self._backoff_factor)
            tracker.fill_(0)
        elif tracker.item() + 1 == self._growth_interval:
            grown = factor * self._growth_factor
            if grown.isfinite():
                factor.copy_(grown)
            tracker.fill_(0)
        else:
            tracker.add_(1)
        self._stages, self._found = {}, {}

    def get_scale(self) -> float:
        """Return the scale; 1.0 where scaling is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()  # type: ignore[return-value]

    def get_growth_factor(self) -> float:
        """Return what the scale is multiplied by after ``growth_interval`` finite steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor of growth."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return what the scale is multiplied by after a step that was left out."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor of a step that was left out."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return how many finite steps there are between growths."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set how many finite steps there are between growths."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Return whether losses are scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the scale and its options; empty where scaling is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._get_growth_tracker(),
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave. RuntimeError for that of a disabled scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]


class cpu_GradScaler(GradScaler):
    """`GradScaler` for "cpu", under an old name that warns of itself."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000,
        enabled: bool = True,
    ):  # fmt: skip
        new = "Please use `torch.amp.GradScaler('cpu', args...)` instead."
        warn_user(f"`torch.cpu.amp.GradScaler(args...)` is deprecated. {new}", FutureWarning)
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


class cuda_GradScaler(GradScaler):
    """`GradScaler` for "cuda", where the device needs no naming: disabled, as there is none."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000,
        enabled: bool = True,
    ):  # fmt: skip
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
