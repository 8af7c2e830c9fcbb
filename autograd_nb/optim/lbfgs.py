"""L-BFGS, with a line search for the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import shorten
from ..graph.modes import enable_grad, no_grad
from ..ops.core.registry import OPS
from ..tensor import Tensor
from .optimizer import Optimizer, ParamsT, R, check_factor, check_lr, number


class _Point(NamedTuple):
    """A point where a line search has been: the step, the loss, the gradient, and its slope along the direction."""

    t: float
    loss: float
    gradient: Tensor
    slope: float


def _cubic_minimum(a: _Point, b: _Point, low: float, high: float) -> float:
    """Return where the cubic through two points with their slopes is least, within bounds; their middle where it has no minimum."""
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t:
        return (low + high) / 2
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    bottom = b.slope - a.slope + 2 * d2
    if bottom == 0:
        return (low + high) / 2
    return min(max(b.t - (b.t - a.t) * (b.slope + d2 - d1) / bottom, low), high)


def _searched(
    at: Callable[[float], _Point], start: _Point, t: float, longest: float, tries: int, c1: float = 1e-4, c2: float = 0.9, tolerance: float = 1e-9
) -> tuple[_Point, int]:
    """Return a point whose loss fell by c1 and whose slope by c2 of what the start promised, and how often ``at`` was called.

    First steps grow until they bracket such a point, then the bracket shrinks (Nocedal and Wright, 2006, section 3.5).
    """

    def too_high(point: _Point) -> bool:
        return point.loss > start.loss + c1 * point.t * start.slope

    def flat(point: _Point) -> bool:
        return abs(point.slope) <= -c2 * start.slope

    before, now = start, at(t)
    tried = 0
    bracket = None
    while tried < tries:
        if too_high(now) or (tried > 1 and now.loss >= before.loss):
            bracket = [before, now]
            break
        if flat(now):
            return now, tried + 1
        if now.slope >= 0:
            bracket = [before, now]
            break
        t = _cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), 10 * now.t)
        before, now = now, at(t)
        tried += 1
    if bracket is None:
        bracket = [start, now]
    stuck = False
    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    while tried < tries:
        least, most = sorted((bracket[0].t, bracket[1].t))
        if (most - least) * longest < tolerance:
            break
        t = _cubic_minimum(bracket[0], bracket[1], least, most)
        margin = 0.1 * (most - least)
        if min(most - t, t - least) < margin:  # near an end, twice in a row or outside: move inwards
            if stuck or t >= most or t <= least:
                t = most - margin if abs(t - most) < abs(t - least) else least + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        now = at(t)
        tried += 1
        if too_high(now) or now.loss >= bracket[low].loss:
            bracket[1 - low] = now
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
        elif flat(now):
            bracket[low] = now
            break
        else:
            if now.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
                bracket[1 - low] = bracket[low]
            bracket[low] = now
    return bracket[low], tried + 1


def _cubic_interpolate(x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple[Any, Any] | None = None) -> float:
    """Return `_cubic_minimum` by PyTorch's name and arguments, as packages take it."""
    a, b = (_Point(float(x), float(f), g, float(g)) for x, f, g in ((x1, f1, g1), (x2, f2, g2)))
    low, high = sorted((a.t, b.t)) if bounds is None else bounds
    return _cubic_minimum(a, b, float(low), float(high))


def _strong_wolfe(
    obj_func: Callable[..., Any], x: Any, t: Any, d: Tensor, f: Any, g: Tensor, gtd: Any, c1: float = 1e-4, c2: float = 0.9,
    tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[float, Tensor, float, int]:  # fmt: skip
    """Return `_searched` by PyTorch's name and arguments, as packages take it: loss and gradient found, the step, and how often ``obj_func`` was called."""

    def at(t: float) -> _Point:
        loss, gradient = obj_func(x, t, d)
        return _Point(t, float(loss), OPS["clone"].call(gradient), _dot(gradient, d))

    found, calls = _searched(at, _Point(0.0, float(f), g, float(gtd)), float(t), _largest(d), max_ls, c1, c2, tolerance_change)
    return found.loss, found.gradient, found.t, calls


def _largest(x: Tensor) -> float:
    return OPS["abs"].call(x).max().item()


def _dot(a: Tensor, b: Tensor) -> float:
    return OPS["dot"].call(a, b).item()


def _real(t: Tensor) -> Tensor:
    return OPS["view_as_real"].call(t) if t.dtype.is_complex else t


def _whole(t: Any) -> Any:
    """Return a tensor outside the graph, of one in parts the whole."""
    return t.__dict__["_sharding"].collected(t) if "_sharding" in t.__dict__ else t.detach()


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last ``history_size`` changes of parameters and gradient; one parameter group.

    ``step(closure)`` does up to ``max_iter`` iterations, calling the closure up to ``max_eval`` times (max_iter · 5/4), and ends
    early where no element of the gradient exceeds tolerance_grad, or parameters or loss change by less than tolerance_change.
    line_search_fn: None for steps of ``lr``, or "strong_wolfe".
    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.LBFGS.html

    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.LBFGS([w])
    >>> def closure(): optimizer.zero_grad(); loss = (w * w).sum(); loss.backward(); return loss
    ...
    >>> _ = optimizer.step(closure)
    >>> bool(w.abs() < 0.1)
    True
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_factor("lr", lr)
        for tolerance in (tolerance_grad, tolerance_change):
            number(tolerance)
        if not isinstance(history_size, int):
            raise TypeError(f"history_size must be an integer, not {type(history_size).__name__} (history_size={shorten(history_size)})")
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_eval, "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn,
        })  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _gradient(self) -> Tensor:
        """Return all gradients in one vector."""
        parts = [_whole(OPS["zeros_like"].call(p) if p._grad is None else p.grad) for p in self._params]
        return OPS["cat"].call([_real(g).reshape(-1) for g in parts], 0)

    def _move(self, t: float, direction: Tensor) -> None:
        """params += t · direction"""
        place = 0
        for p in self._params:
            p = _real(p)
            n = p.numel()
            step, own = direction[place : place + n].view(p.shape), p.__dict__.get("_sharding")
            p.add_(step if own is None else own.mark(own.part(step)), alpha=t)
            place += n

    @no_grad()
    def step(self, closure: Callable[[], R]) -> R:  # type: ignore[override]
        """Run iterations; ``closure`` computes loss and gradients anew. Returns the loss before."""
        compute = enable_grad()(closure)
        group = self.param_groups[0]
        lr, search = number(group["lr"]), group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError(f"only 'strong_wolfe' is supported, not line_search_fn={search!r}")
        most, tolerance = group["max_eval"], group["tolerance_change"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = compute()
        loss, evaluations = number(first_loss), 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if _largest(gradient) <= group["tolerance_grad"]:
            return first_loss

        iteration = 0
        while iteration < group["max_iter"]:
            iteration += 1
            state["n_iter"] += 1
            d = state["d"] = self._direction(state, gradient, group["history_size"])
            state["prev_flat_grad"] = gradient
            state["prev_loss"] = before = loss
            t = lr
            if state["n_iter"] == 1:
                total = OPS["abs"].call(gradient).sum().item()
                t = lr / max(total, 1.0) if total == total else lr
            state["t"] = t
            slope = _dot(gradient, d)
            if slope > -tolerance:
                break
            calls = 0
            if search is not None:
                point, calls = self._search(compute, _Point(0.0, loss, gradient, slope), t, d, most - evaluations)
                t, loss, gradient = point.t, point.loss, point.gradient
                state["t"] = t
                self._move(t, d)
            else:
                self._move(t, d)
                if iteration != group["max_iter"]:  # the next step begins with an evaluation
                    loss, calls = number(compute()), 1
                    gradient = self._gradient()
            evaluations += calls
            state["func_evals"] += calls
            if (
                iteration == group["max_iter"]
                or evaluations >= most
                or _largest(gradient) <= group["tolerance_grad"]
                or _largest(d) * abs(t) <= tolerance
                or abs(loss - before) < tolerance
            ):
                break
        return first_loss

    def _search(self, compute: Callable[[], Any], start: _Point, t: float, d: Tensor, tries: int) -> tuple[_Point, int]:
        kept = [OPS["clone"].call(p) for p in self._params]

        def at(t: float) -> _Point:
            self._move(t, d)
            loss = number(compute())
            gradient = self._gradient()
            for p, old in zip(self._params, kept, strict=True):
                p.copy_(old)
            return _Point(t, loss, gradient, _dot(gradient, d))

        return _searched(at, start, t, _largest(d), tries)

    @staticmethod
    def _direction(state: dict[str, Any], gradient: Tensor, history: int) -> Tensor:
        """Return −H · gradient, H being the inverse Hessian that the remembered changes approximate."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return OPS["neg"].call(gradient)
        ys, ss, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y = OPS["sub"].call(gradient, state["prev_flat_grad"])
        s = OPS["mul"].call(state["d"], number(state["t"]))
        curvature = _dot(y, s)
        if curvature > 1e-10:
            if len(ys) == history:
                del ys[0], ss[0], ro[0]
            ys.append(y)
            ss.append(s)
            ro.append(1.0 / curvature)
            state["H_diag"] = curvature / _dot(y, y)
        q = OPS["neg"].call(gradient)
        weights = [0.0] * len(ys)
        for i in range(len(ys) - 1, -1, -1):
            weights[i] = _dot(ss[i], q) * number(ro[i])
            q.add_(ys[i], alpha=-weights[i])
        q.mul_(number(state["H_diag"]))
        for i in range(len(ys)):
            q.add_(ss[i], alpha=weights[i] - _dot(ys[i], q) * number(ro[i]))
        state["al"] = [*weights, *[None] * (history - len(weights))]
        return q
