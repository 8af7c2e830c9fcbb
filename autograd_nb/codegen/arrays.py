"""Lists of arrays as arguments of kernels: one launch for any number of small arrays.

From Python an argument is a list of flat arrays of one dtype; a kernel asks for their number and for each by its own. Within, the
list is a table of (address, elements), which the caller makes anew for each launch: the entry point on its stack, the driver of
compiled programs likewise. So no address is kept longer than the arrays that the caller holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config
from numba.core import types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model

from .runtime import _window


class Arrays(types.Type):
    """A list of flat C arrays of ``dtype``."""

    def __init__(self, dtype: Any):
        self.dtype = dtype
        super().__init__(name=f"Arrays({dtype})")


@register_model(Arrays)
class _Model(models.StructModel):
    def __init__(self, manager: Any, kind: Any):
        super().__init__(manager, kind, [("table", types.CPointer(types.int64)), ("count", types.int64)])  # type: ignore[attr-defined]


@intrinsic
def _count(typingctx, arrays):
    def codegen(context, builder, signature, args):
        return builder.extract_value(args[0], 1)

    return types.int64(arrays), codegen


@intrinsic
def _nth(typingctx, arrays, k):
    kind = types.Array(arrays.dtype, 1, "C")

    def codegen(context, builder, signature, args):
        index = context.cast(builder, args[1], k, types.int64)
        one = context.get_constant(types.int64, 1)
        place = builder.gep(builder.extract_value(args[0], 0), [builder.shl(index, one)])
        data = builder.inttoptr(builder.load(place), context.get_data_type(kind.dtype).as_pointer())
        return _window(context, builder, kind, data, builder.load(builder.gep(place, [one])))

    return kind(arrays, k), codegen


def count(arrays: list[np.ndarray]) -> int:
    """Return how many arrays there are."""
    return len(arrays)


def nth(arrays: list[np.ndarray], k: int) -> np.ndarray:
    """Return array ``k``, which is not checked."""
    return arrays[k]


if not config.DISABLE_JIT:
    count, nth = _count, _nth
