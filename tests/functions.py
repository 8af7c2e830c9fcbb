"""Functions of a user that several files of tests take."""

from __future__ import annotations

from typing import Any

from autograd_nb.autograd import Function


class Double(Function):
    """2x."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


class Square(Function):
    """x², which saves its operand."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


def overwritten(x: Any) -> Any:
    """A copy of ``x``, ours or PyTorch's, changed in place as a whole and in parts."""
    y = x.clone()
    y[0] = 1.0
    y += x
    y[1:].mul_(2)
    return y
