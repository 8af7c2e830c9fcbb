"""Optimizers that see a parameter as a matrix: Adafactor and Muon."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ..dtypes import finfo, float32
from ..graph.modes import no_grad
from ..launch import Kernel
from ..ops.core.registry import OPS
from ..ops.creation.create import new_full
from ..overriding import whole
from ..tensor import Tensor
from .fused import Stepping, Update, check_fit, is_plain, spread, through_copies, update
from .optimizer import ParamsT, check_one_element, counter, number, zeros_of

__all__ = ["Adafactor", "Muon"]

_adafactor = Kernel("optim", "adafactor", outputs=4)
_adafactor_vector = Kernel("optim", "adafactor_vector", outputs=3)
_average = Update("muon_average", weight_decay=lambda group: 0.0)  # the decay is applied apart
_round = Kernel("optim", "round_to_bfloat16", outputs=1)


def _check(condition: Any, text: str) -> None:
    if not condition:
        raise ValueError(text)


class Adafactor(Stepping):
    """Adaptive steps whose second moments are kept by rows and columns only, in the units of the parameter.

    lr bounds the relative step; beta2_decay: 1 - t^beta2_decay averages; eps: the least second moment's root (None: the dtype's eps)
    and the least scale of a parameter; d: updates' root mean square is clipped here; weight_decay is decoupled.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Adafactor.html

    >>> w = torch.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.optim.Adafactor([w], lr=0.1).step()
    >>> w.data
    tensor([0.9000])
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0, weight_decay: float = 0.0, *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, locals())

    def _check(self, options: dict[str, Any]) -> None:
        lr, eps = options["lr"], options["eps"]
        check_one_element(lr)
        _check(number(lr) >= 0.0, f"Learning rate should be >= 0 but is: {lr}")
        _check(options["beta2_decay"] <= 0.0, f"beta2_decay should be <= 0 but is: {options['beta2_decay']}")
        _check(eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}")
        _check(eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}")
        _check(options["d"] >= 1.0, f"Clipping threshold d should be >= 1 but is: {options['d']}")
        _check(options["weight_decay"] >= 0.0, f"weight_decay should be >= 0 but is: {options['weight_decay']}")

    def _begin(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = counter()
        if p.ndim > 1:
            state["row_var"] = new_full((*p.shape[:-1], 1), 0.0, p.dtype)
            state["col_var"] = new_full((*p.shape[:-2], 1, p.shape[-1]), 0.0, p.dtype)
        else:
            whole = "_sharding" in p.__dict__  # (of a parameter in parts all ranks step the whole)
            state["variance"] = new_full(p.shape, 0.0, p.dtype) if whole else zeros_of(p, like=p._grad)

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        eps1, eps2 = group["eps"]
        options = [number(group[name]) for name in ("lr", "weight_decay", "beta2_decay", "d")]
        sign = -1.0 if group["maximize"] else 1.0
        for p in params:
            if p.dtype.is_complex:
                raise RuntimeError("Adafactor does not support complex parameters")
            state = self.state[p]
            with no_grad():
                if not state:
                    self._begin(p, state, group)
                own = p.__dict__.get("_sharding")  # of a parameter in parts all ranks step the whole
                stepped, gradient = (p, p._grad) if own is None else (own.collected(p), own.collected(p._grad))
                spare = zeros_of(stepped)
            numbers = (*options, finfo(p.dtype).eps if eps1 is None else float(eps1), float(eps2), sign)
            shapes = {"variance": tuple(p.shape)} if p.ndim < 2 else {"row_var": (*p.shape[:-1], 1), "col_var": (*p.shape[:-2], 1, p.shape[-1])}
            states = [state[name] if name in state else state["step"] for name in shapes]
            check_fit(gradient._layout, stepped._layout, [(t._layout, shape) for t, shape in zip(states, shapes.values(), strict=True)])
            row = [gradient, stepped, spare, *states, state["step"]]
            work = partial(_run, _adafactor, (*numbers, p.shape[-2], p.shape[-1])) if p.ndim > 1 else partial(_run, _adafactor_vector, numbers)
            work(row) if is_plain([t._layout for t in row], in_order=True) else through_copies(row, work)
            if own is not None:
                with no_grad():
                    p.copy_(own.mark(own.part(stepped)))


@whole
def _run(kernel: Kernel, numbers: tuple[Any, ...], row: list[Tensor]) -> None:
    gradient, p, *states = row
    arrays = [t._data[: t._layout.size] for t in (p, *states)]
    kernel(tuple([t.dtype for t in row[1:]]), *numbers, spread(gradient, p), *arrays)
    p._version_[0] += 1


class Muon(Stepping):
    """Steps along the averaged gradient made orthogonal, for matrices (the weights of hidden layers).

    ns_coefficients, ns_steps and eps: of the Newton-Schulz iteration, which runs on numbers rounded to bfloat16. adjust_lr_fn:
    "original" (None) scales the rate of a matrix with A rows and B columns by √max(1, A/B), "match_rms_adamw" by 0.2 √max(A, B).
    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Muon.html

    >>> w = torch.ones(1, 1, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.optim.Muon([w], lr=0.1, weight_decay=0.).step()
    >>> bool(w < 1)
    True
    """

    def __init__(
        self, params: ParamsT, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, locals())
        for group in self.param_groups:
            for p in group["params"]:
                _check(p.ndim == 2, f"Muon only supports 2D parameters whereas we found a parameter with size: {p.shape}")

    def _check(self, options: dict[str, Any]) -> None:
        lr, momentum, decay, adjust = (options[name] for name in ("lr", "momentum", "weight_decay", "adjust_lr_fn"))
        check_one_element(lr)
        _check(number(lr) >= 0.0, f"Learning rate should be >= 0 but is: {lr}")
        _check(momentum >= 0.0, f"momentum should be >= 0 but is: {momentum}")
        _check(decay >= 0.0, f"weight decay should be >= 0 but is: {decay}")
        _check(
            adjust in (None, "original", "match_rms_adamw"),
            f"Adjust learning rate function {adjust} is not supported: give 'original' or 'match_rms_adamw'",
        )

    @no_grad()
    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        lr = number(group["lr"])
        _check(group["ns_steps"] < 100, "Number of steps must be less than 100 for computational efficiency")
        _check(len(group["ns_coefficients"]) == 3, "Coefficients must be a tuple of exactly 3 values")
        numbers = _average.reader(self.options)(group)
        for p in params:
            if p.dtype.is_complex:
                raise RuntimeError("Muon does not support complex parameters")
            state = self.state[p]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = zeros_of(p, like=p._grad)
            direction = zeros_of(p)
            update(_average, numbers, [[p._grad], [direction], [state["momentum_buffer"]]])
            rows, columns = p.shape
            if group["adjust_lr_fn"] == "match_rms_adamw":
                rate = lr * 0.2 * math.sqrt(max(rows, columns))
            else:
                rate = lr * math.sqrt(max(1.0, rows / columns))
            own = p.__dict__.get("_sharding")  # of a parameter in parts each rank steps its own
            whole = direction if own is None else own.collected(direction)
            step = _orthogonal(whole, group["ns_coefficients"], group["ns_steps"], number(group["eps"])).to(p.dtype)
            p.mul_(1 - lr * number(group["weight_decay"]))
            p.add_(step if own is None else own.mark(own.part(step)), alpha=-rate)


def _rounded(x: Tensor) -> Tensor:
    """Return ``x``, which is float32 and dense, rounded in place."""
    _round(float32, x._data[: x._layout.size])
    return x


def _orthogonal(direction: Tensor, coefficients: tuple[Any, ...], steps: int, eps: float) -> Tensor:
    """Return about UVᵀ of the singular value decomposition, by a quintic iteration.

    Products are of float32 and what they give is rounded to bfloat16, as where PyTorch runs it.
    """
    a, b, c = coefficients
    addmm, matmul = OPS["addmm"].call, OPS["matmul"].call
    tall = direction.shape[0] > direction.shape[1]
    x = _rounded(OPS["clone"].call((direction.T if tall else direction).to(float32)).contiguous())
    size = _rounded(OPS["linalg.vector_norm"].call(x).reshape(1))
    x = _rounded(OPS["div"].call(x, OPS["clamp"].call(size, min=eps)))
    for _ in range(steps):
        gram = _rounded(matmul(x, x.T))
        x = _rounded(addmm(x, _rounded(addmm(gram, gram, gram, beta=b, alpha=c)), x, beta=a))
    return x.T if tall else x
