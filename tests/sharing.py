"""Who holds which memory after backward passes: what the tests of ownership share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import autograd_nb as torch

from .recurring import at_once, verified


def span(t: torch.Tensor) -> tuple[int, int]:
    """The addresses of a tensor's memory, from the first byte to behind the last."""
    begin = t._data.__array_interface__["data"][0]
    return begin, begin + t._layout.extent * t._data.itemsize


def shared(held: dict[str, torch.Tensor]) -> list[str]:
    """The pairs of names whose tensors share memory; so do the elements of an expanded one, which only a hook may get."""
    spans = sorted((*span(t), name) for name, t in held.items() if t._layout.size)
    found, end, last = [], 0, ""
    for a, b, name in spans:
        if a < end:
            found.append(f"{last} and {name}")
        if b > end:
            end, last = b, name
    for name, t in held.items():
        if "hook" not in name and any(s == 0 and n > 1 for s, n in zip(t.stride(), t.shape, strict=True)):
            found.append(f"{name} is expanded")
    return found


def change(held: dict[str, torch.Tensor]) -> None:
    """Change each in place, and see that no other one changes."""
    now = {name: t.detach().numpy() for name, t in held.items()}
    for k, (name, values) in enumerate(now.items()):
        before = {n: v.copy() for n, v in now.items() if n != name}
        values[...] = k + 0.5
        for n, v in before.items():
            np.testing.assert_array_equal(now[n], v, err_msg=f"{n} changed with {name}")


def outputs_of(result: Any) -> list[torch.Tensor]:
    """The tensors of a result that have a gradient."""
    flat = result if isinstance(result, (tuple, list)) else (result,)
    return [y for y in flat if isinstance(y, torch.Tensor) and y.requires_grad]


def seeds(ys: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """A gradient for each output, the same at each call."""
    rng = np.random.default_rng(7)
    return [torch.from_numpy(np.array(rng.uniform(0.5, 1.5, tuple(y.shape)))).to(y.dtype) for y in ys]


def grads_of(leaves: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"leaf {i}.grad": x.grad for i, x in enumerate(leaves) if x.grad is not None}


def expected(function: Callable, make: Callable[[], list[torch.Tensor]]) -> list[np.ndarray | None]:
    """The gradients of a plain pass."""
    leaves = make()
    ys = outputs_of(function(*leaves))
    torch.autograd.backward(ys, seeds(ys))
    return [None if x.grad is None else x.grad.numpy().copy() for x in leaves]


def agree(leaves: Sequence[torch.Tensor], wanted: Sequence[Any], times: int, what: str) -> None:
    for i, (x, w) in enumerate(zip(leaves, wanted, strict=True)):
        assert (x.grad is None) is (w is None), f"{what}: gradient of leaf {i}"
        if w is not None:
            np.testing.assert_allclose(x.grad.numpy(), times * w, rtol=1e-5, atol=1e-7, err_msg=f"{what}: leaf {i}", equal_nan=True)


def without_sharing(function: Callable, make: Callable[[], list[torch.Tensor]], where: str = "") -> None:
    """After passes of every kind nobody shares memory, and nothing that somebody holds or changes changes what comes later.

    ``make()`` gives new leaves of the same values.
    """
    wanted = expected(function, make)
    for kind in (_plain, _accumulated, _replayed, _returned_again, _watched, _through_nodes, _asked_for, _recorded):
        leaves = make()
        ys = outputs_of(function(*leaves))
        if not ys:
            return
        vs = seeds(ys)
        kind(leaves, ys, vs, wanted, f"{where} {kind.__name__.strip('_')}".strip())


def _checked(leaves: Sequence[Any], ys: Sequence[Any], vs: Sequence[Any], held: dict, what: str) -> None:
    """``held`` share nothing; nor with what a pass was given."""
    held.update({f"gradient={i}": v for i, v in enumerate(vs)})
    found = shared(held)
    assert not found, f"{what}: {found}"
    for kind, tensors in (("leaf", leaves), ("output", ys)):
        for t in tensors:
            a, b = span(t)
            for name, other in held.items():
                c, d = span(other)
                assert not t._layout.size or not other._layout.size or b <= c or d <= a, f"{what}: {name} in the memory of a {kind}"


def _plain(leaves: list, ys: list, vs: list, wanted: list, what: str) -> None:
    torch.autograd.backward(ys, vs)
    held = grads_of(leaves)
    _checked(leaves, ys, vs, held, what)
    agree(leaves, wanted, 1, what)
    change(held)


def _accumulated(leaves: list, ys: list, vs: list, wanted: list, what: str) -> None:
    for times in (1, 2, 3):
        torch.autograd.backward(ys, vs, retain_graph=times < 3)
        _checked(leaves, ys, vs, grads_of(leaves), f"{what} {times}")
        agree(leaves, wanted, times, f"{what} {times}")
    change(grads_of(leaves) | {f"gradient={i}": v for i, v in enumerate(vs)})


def _replayed(leaves: list, ys: list, vs: list, wanted: list, what: str) -> None:
    """Passes that recur, with gradients that are made and with those that are added to: what is replayed is nobody else's either."""
    if len(ys) > 1:
        return
    with verified():  # against the pass that each stands for
        for _ in range(2):
            torch.autograd.backward(ys, vs, retain_graph=True)
    with at_once():
        for times in (1, 1, 2, 3):
            for x in leaves if times == 1 else ():
                x.grad = None
            torch.autograd.backward(ys, vs, retain_graph=True)
            _checked(leaves, ys, vs, grads_of(leaves), f"{what} {times}")
            agree(leaves, wanted, times, f"{what} {times}")
            if times == 1:
                held = grads_of(leaves)
    change(held | {f"now {name}": g for name, g in grads_of(leaves).items() if g is not held[name]})


def _returned_again(leaves: list, ys: list, vs: list, wanted: list, what: str) -> None:
    """Passes that return the same gradients again: what a replay returns is nobody else's either."""
    reached = [(i, x) for i, (x, w) in enumerate(zip(leaves, wanted, strict=True)) if w is not None]
    if len(ys) > 1 or not reached:
        return
    targets = [x for _, x in reached]
    with verified():
        torch.autograd.grad(ys, targets, vs, retain_graph=True)
    held: dict[str, torch.Tensor] = {}
    with at_once():
        for times in range(3):
            found = torch.autograd.grad(ys, targets, vs, retain_graph=True)
            for (i, _), g in zip(reached, found, strict=True):
                np.testing.assert_allclose(g.numpy(), wanted[i], rtol=1e-5, atol=1e-7, err_msg=f"{what}: leaf {i}", equal_nan=True)
                held[f"gradient {times} of leaf {i}"] = g
            _checked(leaves, ys, vs, dict(held), f"{what} {times}")
    assert not grads_of(leaves)
    change(held)


def _watched(leaves: list, ys: list, vs: list, wanted: list, what: str) -> None:
    """Hooks on leaves and outputs, retained gradients; what they have kept is changed between two passes."""
    kept: dict[str, torch.Tensor] = {}

    def keep(name: str) -> Callable:
        return lambda g: kept.__setitem__(name, g)

    for i, x in enumerate(leaves):
        if x.requires_grad:
            x.register_hook(keep(f"hook of leaf {i}"))
    for i, y in enumerate(ys):
        if y.grad_fn is not None:
            y.register_hook(keep(f"hook of output {i}"))
            y.retain_grad()
    for times in (1, 2):
        kept.clear()
        torch.autograd.backward(ys, vs, retain_graph=times == 1)
        held = kept | {f"output {i}.grad": y.grad for i, y in enumerate(ys) if y.grad_fn is not None and y.grad is not None}
        _checked(leaves, ys, vs, held | grads_of(leaves), f"{what} {times}")
        agree(leaves, wanted, times, f"{what} {times}")
        change(held)
        agree(leaves, wanted, times, f"{what} {times}, changed")


def _through_nodes(leaves: list, ys: list, vs: list, wanted: list, what: str) -> None:
    """Hooks on the outputs' nodes, and on the leaves' accumulators after they ran."""
    kept: dict[str, torch.Tensor] = {}

    def keep(name: str) -> Callable:
        return lambda *gs: kept.update({f"hook {name} {k}": g for k, g in enumerate(gs[0]) if g is not None})

    def kept_outputs(grad_inputs: Any, grad_outputs: Any) -> None:
        kept.update({f"{len(kept)} of a node's hook": g for g in (*grad_inputs, *grad_outputs) if g is not None})

    accumulators = [x._accumulator for x in leaves if x.requires_grad]
    for node in {y.grad_fn: None for y in ys if y.grad_fn is not None}:
        node.register_hook(kept_outputs)
    for i, node in enumerate(accumulators):
        node.register_prehook(keep(f"before leaf {i}"))
    torch.autograd.backward(ys, vs)
    _checked(leaves, ys, vs, kept | grads_of(leaves), what)
    agree(leaves, wanted, 1, what)


def _asked_for(leaves: list, ys: list, vs: list, wanted: list, what: str) -> None:
    """Results of `autograd.grad`, by leaves and by the outputs themselves; one that is asked for twice is one tensor. They can be written to."""
    wants = [x for x in leaves if x.requires_grad]
    inputs = [*wants, *ys, wants[0]]
    first = torch.autograd.grad(ys, inputs, vs, retain_graph=True, allow_unused=True)
    second = torch.autograd.grad(ys, inputs, vs, allow_unused=True)
    assert first[0] is first[-1] and second[0] is second[-1]
    inner = [i for i, t in enumerate(inputs) if not any(t is u for u in inputs[:i])]  # (a leaf may be an output too)
    held = {f"grad {i} of pass {k}": g for k, found in enumerate((first, second)) for i in inner if (g := found[i]) is not None}
    _checked(leaves, ys, vs, held, what)
    wanted = [w for x, w in zip(leaves, wanted, strict=True) if x.requires_grad]
    for g, w in zip(second[: len(wants)], wanted, strict=True):
        assert (g is None) is (w is None)
        if g is not None:
            np.testing.assert_allclose(g.numpy(), w, rtol=1e-5, atol=1e-7, err_msg=what, equal_nan=True)
            g.add_(1)


def _recorded(leaves: list, ys: list, vs: list, wanted: list, what: str) -> None:
    """`.grad` of a recorded pass is memory of its own too."""
    try:
        torch.autograd.backward(ys, vs, create_graph=True)
    except (RuntimeError, NotImplementedError):  # no second derivative
        return
    held = {name: g.detach() for name, g in grads_of(leaves).items()}
    _checked(leaves, ys, vs, held, what)
    agree([x.detach().requires_grad_() if x.grad is None else _with_grad(x) for x in leaves], wanted, 1, what)


def _with_grad(x: torch.Tensor) -> torch.Tensor:
    y = x.detach().requires_grad_(x.requires_grad)
    y.grad = None if x.grad is None else x.grad.detach()
    return y
