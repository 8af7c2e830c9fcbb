"""Functions that a transform (`grad`, `vjp`, `jvp`, `vmap`) runs: what they compute with belongs to the transform, which alone differentiates it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from sys import _getframe

from ..overriding import whole
from .modes import state
from .node import user_frame

#: files whose functions stand between users and those that they call, while classes redefine these
BETWEEN: set[str] = set()


@contextmanager
@whole
def transformed(levels: int = 1) -> Iterator[None]:
    """Run a user's function for so many ``levels`` of transforms; of none, what it may call is as outside.

    A map of the library's own runs what is called within for -1, as that is none of the user's transforms.
    """
    state.transformed += levels
    try:
        yield
    finally:
        state.transformed -= levels


def refuse_transformed(call: str) -> None:
    """Raise RuntimeError where a user's function that a transform runs makes a call of leaves, or of backward passes into them.

    The library's own calls pass: what is to ask has to be called by the user, and to call this itself.
    """
    if not state.transformed and not (state.batched and call == "backward()"):
        return
    frame = _getframe(2)
    while frame.f_code.co_filename in BETWEEN and frame.f_back is not None:
        frame = frame.f_back
    if user_frame(frame) is frame:
        raise transformed_error(call)


def transformed_error(call: str) -> RuntimeError:
    """Return the error of `refuse_transformed`."""
    if call == "backward()":
        return RuntimeError(
            "backward() called inside a functorch transform. This is not supported: use func.grad or func.vjp there, or call backward() "
            "outside of it."
        )
    return RuntimeError(
        f"You are attempting to call Tensor.{call} (or perhaps using torch.autograd.functional.* APIs) inside of a function being "
        "transformed by a functorch transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, "
        f"jacrev, jacfwd, hessian) or call {call} outside of a function being transformed instead."
    )
