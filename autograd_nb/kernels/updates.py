"""Kernels that update lists of arrays elementwise: the loops around the formula of one element.

An update is two functions. ``shared(T, …numbers, …counters)`` computes what all elements of an array share: it gives these numbers
as a tuple, and the new values of the counters as another. ``element(shared, d, x, …states)`` gives the new parameter and states of
one element, whose parameter is x and whose gradient d: the descent's direction, with the weight decay. Counters are arrays of one
element, as an optimizer's state has them; where they are as those of the array before, what is shared is not computed again.

Parameters have the names that the optimizer's options and states have, by which it hands them in (`optim.fused.Update`). Every update
has the numbers ``lr``, ``weight_decay`` and ``maximize``, whether ``shared`` names them or not. Where one is called
``decoupled_weight_decay``, it says whether the parameter itself decays and not its gradient.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from typing import Any

from ..codegen.arrays import count, nth
from ..codegen.jit import helper

_EVERY = ("lr", "weight_decay", "maximize")


def update(shared: Callable, element: Callable, counters: int = 0) -> Any:
    """Return the kernel ``(…numbers, counts, g, p, …states, …counters)``, of lists but for the numbers and ``counts``: whether to count.

    The last ``counters`` parameters of ``shared`` are counters. The names of all are attributes of what is returned.
    """
    name = element.__name__.strip("_")
    given = list(inspect.signature(shared).parameters)[1:]
    split = len(given) - counters
    asked, counted = given[:split], given[split:]
    numbers = [*_EVERY, *[n for n in asked if n not in _EVERY]]
    states = list(inspect.signature(element).parameters)[3:]
    arrays = ["g", "p", *states, *counted]
    anew = f"_common, _now = shared({', '.join(['_T', *asked, *(f'{c}_k' for c in counted)])})"
    seen = [f"{c}_old = {c}_k[0]" for c in counted]
    lines = [
        f"def {name}({', '.join([*numbers, 'counts', *arrays])}):",
        *(f"  {c}_k = nth({c}, 0)" for c in counted),
        "  _T = nth(p, 0).dtype.type",
        "  _sign, _decay = _T(-1.0) if maximize else _T(1.0), _T(weight_decay)",
        "  _decays, _shrink = weight_decay != 0.0, _T(1.0 - lr * weight_decay)",
        *(f"  {line}" for line in (anew, *seen)),
        "  for k in range(count(p)):",
        *(f"    {a}_k = nth({a}, k)" for a in arrays),
    ]
    if counted:
        lines += [
            f"    if {' or '.join(f'{c}_k[0] != {c}_old' for c in counted)}:",
            *(f"      {line}" for line in (anew, *seen)),
        ]
    lines += ["    for i in range(p_k.size):", "      _d, _x = _sign * g_k[i], p_k[i]", "      if _decays:"]
    if "decoupled_weight_decay" in numbers:
        lines += ["        if decoupled_weight_decay:", "          _x = _x * _shrink", "        else:", "          _d = _d + _decay * _x"]
    else:
        lines += ["        _d = _d + _decay * _x"]
    written = ", ".join(f"{s}_k[i]" for s in ["p", *states])
    lines += [f"      {written} = element({', '.join(['_common', '_d', '_x', *(f'{s}_k[i]' for s in states)])})"]
    if counted:
        lines += ["    if counts:", *(f"      {c}_k[0] = _now[{j}]" for j, c in enumerate(counted))]
    space: dict[str, Any] = {
        "__name__": inspect.getmodule(element).__name__,  # type: ignore[union-attr]
        "count": count, "nth": nth, "shared": helper(shared), "element": helper(element),
    }  # fmt: skip
    text, filename = "\n".join(lines), f"<autograd_nb:{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), space)
    kernel = space[name]
    kernel.numbers, kernel.states, kernel.counters = tuple(numbers), tuple(states), tuple(counted)
    kernel.shared, kernel.element = shared, element
    return kernel
