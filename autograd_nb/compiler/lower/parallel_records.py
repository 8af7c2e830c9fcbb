"""Big steps of a program as several records, which threads take in turn: the pieces that the same launches have outside of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import Step, Use, address, grouped, root


def shared(step: Step) -> list[list[Any]] | None:
    """Return the arguments of the records that do a step's work, in place of each array (its operand's number, byte offset, elements).

    None where one record does it all. An array that is no part of an operand (a table of sizes) stands for itself.
    """
    parts = getattr(step.call, "parts", None)
    if parts is None:
        return None
    operands = [_stand_in(o) if isinstance(o, Use) else o for o in step.operands]
    roots = {id(root(a)): i for i, a in enumerate(operands) if isinstance(a, np.ndarray)}
    pieces = parts(tuple(grouped(operands, step.call.origin[-1])))
    if len(pieces) < 2:
        return None
    return [[_placed(value, roots, operands) for value in piece] for piece in pieces]


def _placed(value: Any, roots: dict[int, int], operands: list[Any]) -> Any:
    """Return an argument of a piece by the operand whose memory it is part of, and where in it."""
    if isinstance(value, list):
        return [_placed(v, roots, operands) for v in value]
    if not isinstance(value, np.ndarray):
        return value
    i = roots.get(id(root(value)))
    return value if i is None else (i, address(value) - address(operands[i]), value.size)


def _stand_in(use: Use) -> np.ndarray:
    """Return an array of the size of a use. Only of constants may the elements be read: others have one and no more."""
    if use.buffer.kind == "constant":
        memory = root(use.buffer.array).reshape(-1).view(np.uint8)
        return memory[use.offset : use.offset + use.size * use.dtype.itemsize].copy().view(use.dtype)
    return np.lib.stride_tricks.as_strided(np.empty(1, use.dtype), (use.size,), (use.dtype.itemsize,))
