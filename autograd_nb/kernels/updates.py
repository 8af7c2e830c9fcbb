"""Kernels that update lists of arrays elementwise: the loops around the formula of one element.

An update is two functions. ``shared(T, …numbers, …counters)`` computes what all elements of an array share: it gives these numbers
as a tuple, and the new values of the counters as another. ``element(shared, g, p, …states)`` gives the new p and states of one
element. Counters are arrays of one element, as an optimizer's state has them; where they are as those of the array before, what is
shared is not computed again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..codegen.arrays import count, nth
from ..codegen.jit import helper


def update(shared: Callable, element: Callable, counters: int = 0) -> Any:
    """The kernel ``(…numbers, counts, g, p, …states, …counters)``, of lists but for the numbers and ``counts``: whether to count.

    The last ``counters`` parameters of ``shared`` are counters.
    """
    given = list(inspect.signature(shared).parameters)[1:]
    split = len(given) - counters
    numbers, counted = given[:split], given[split:]
    vectors = list(inspect.signature(element).parameters)[1:]
    name = element.__name__.strip("_")
    arrays = [*vectors, *counted]
    anew = f"common, now = shared({', '.join(['p_k.dtype.type', *numbers, *(f'{c}_k' for c in counted)])})"
    seen = [f"{c}_old = {c}_k[0]" for c in counted]
    lines = [f"def {name}({', '.join([*numbers, 'counts', *arrays])}):"]
    lines += [f"  {a}_k = nth({a}, 0)" for a in arrays]
    lines += [f"  {line}" for line in (anew, *seen)]
    lines += ["  for k in range(count(p)):", *(f"    {a}_k = nth({a}, k)" for a in arrays)]
    if counted:
        lines += [
            f"    if {' or '.join(f'{c}_k[0] != {c}_old' for c in counted)}:",
            *(f"      {line}" for line in (anew, *seen)),
        ]
    lines += ["    for i in range(p_k.size):"]
    lines += [
        f"      {', '.join(f'{v}_k[i]' for v in vectors[1:])} = element(common, {', '.join(f'{v}_k[i]' for v in vectors)})"
    ]
    if counted:
        lines += ["    if counts:", *(f"      {c}_k[0] = now[{j}]" for j, c in enumerate(counted))]
    space: dict[str, Any] = {
        "__name__": inspect.getmodule(element).__name__,  # type: ignore[union-attr]
        "count": count, "nth": nth, "shared": helper(shared), "element": helper(element),
    }  # fmt: skip
    exec("\n".join(lines), space)
    return space[name]
