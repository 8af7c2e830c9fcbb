"""The test of whether a captured call serves another one, written out for it."""

from __future__ import annotations

from typing import Any

from ... import dtypes, launch
from ...autograd.anomaly import _state as _anomaly
from ...autograd.anomaly import _threads as anomaly_threads
from ...autograd.saved import _state as _saved_hooks
from ...config import unusual
from ...graph import casting, modes
from ...graph.node import written
from ...overriding import Overrides, whole
from .records import seen_as


def surroundings() -> Any:
    """Return what holds in this thread beside arguments and reachable values, as a part of a call's key; None where calls stay eager."""
    if modes.state.inference or _saved_hooks.stack or _anomaly.enabled:
        return None
    return modes.state.grad, dtypes.get_default_dtype(), casting.surroundings()


def around_lines(variant: Any, fail: str) -> tuple[list[str], dict[str, Any]]:
    """Return lines that do ``fail`` unless the `surroundings` are ``variant``'s and nobody observes, and the names that they use."""
    grad, default, cast = variant.key[2]
    # (what a thread has of its own takes longer to read than whether any thread has such)
    others = (
        "default[0] is not kind or unusual and (launch._observing or modes.inference_used and state.inference "
        "or Overrides.standing and saved.stack or watched and anomaly.enabled or casting.used and casting.surroundings() != cast)"
    )
    names = {
        "state": modes.state, "saved": _saved_hooks, "anomaly": _anomaly, "watched": anomaly_threads, "default": dtypes._default,
        "kind": default, "launch": launch, "modes": modes, "unusual": unusual, "Overrides": Overrides, "casting": casting, "cast": cast,
    }  # fmt: skip
    return [f"if state.grad is not {grad} or {others}:", f"    {fail}"], names


def test_lines(variant: Any, fail: str) -> tuple[list[str], dict[str, Any]]:
    """Return lines that do ``fail`` unless the ``args`` fit ``variant``, all but their classes, and the names that they use.

    They are variables of what is written, ``variant`` as well: a function that held it, which holds the function, would be a cycle.
    """
    lines: list[str] = []
    names: dict[str, Any] = {"modes": modes, "unusual": unusual, "seen_as": seen_as}

    def test(condition: str) -> None:
        lines.extend([f"if {condition}:", f"    {fail}"])

    for k, a in enumerate(variant.arguments):
        names[f"layout{k}"] = a.layout
        lines.append(f"a{k} = args[{k}]")
        test(
            f"a{k}._layout is not layout{k} or (a{k}._rg if a{k}._view is None else a{k}.requires_grad) is not {a.requires_grad} "
            f"or (a{k}._grad is not None) is not {a.has_grad}" + f" or (a{k}._edge is None) is not {a.leaf}" * a.requires_grad
        )
    if variant.arguments:
        test("variant._marked(args)" if variant.asked else "unusual and modes.inference_used and variant._marked(args)")
    for i in variant.written:
        names[f"view{i}"] = variant.arguments[i].view
        test(f"seen_as(a{i}) != view{i}")
    if variant.arguments and (variant.exclusive or variant.sharing):
        test("variant._shared(args)" + " or variant._hooked(args)" * variant.derived)
    names |= {"guard": variant.guard, "always": variant.guard.always}
    if variant.guard.always is not None:
        test("always() >= 0")
    lines += ["if not guard.same():", "    variant.state.changed = True", "    if guard.look() >= 0:", f"        {fail}"]
    if variant.initial:
        names["initial"] = variant.initial
        test("not initial.same() and initial.differ()")
    if variant.decided:
        lines += ["for slot, value in variant.decided:", "    if slot.read() != value:", f"        {fail}"]
    return lines, names


def build_test(variant: Any) -> Any:
    """Return the test as ``serves(variant, args)``."""
    lines, names = test_lines(variant, "return False")
    return whole(written("serves", "variant, args", [*lines, "return True"], __file__, **names))
