"""How values of several ranks become one.

Source: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.ReduceOp
"""

from __future__ import annotations

import enum

from ..errors import warn_user


class RedOpType(enum.IntEnum):
    """The reductions, numbered as in PyTorch."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


class ReduceOp:
    """The reductions by name: ``ReduceOp.SUM``, AVG, PRODUCT, MIN, MAX, and of integers BAND, BOR, BXOR.

    >>> t = torch.tensor([1 + rank])
    >>> dist.all_reduce(t, dist.ReduceOp.PRODUCT)
    >>> t
    tensor([2])
    """

    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR


def __getattr__(name: str) -> RedOpType:
    """Return a reduction by its old name, ``distributed.reduce_op.SUM``: PyTorch's object of this name is this module."""
    if name not in RedOpType.__members__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_user("`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead", FutureWarning)
    return RedOpType[name]


BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def supports_complex(reduceOp: RedOpType) -> bool:
    """Return whether the reduction is defined on complex numbers: sums and means are.

    >>> dist.supports_complex(dist.ReduceOp.SUM), dist.supports_complex(dist.ReduceOp.MAX)
    (True, False)
    """
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG)
