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
def transformed(whole: bool = True) -> Iterator[None]:
    """Run a user's function for a transform; unless it is the ``whole`` of it, what it may call is as outside."""
    state.transformed += whole
    try:
        yield
    finally:
        state.transformed -= whole


def refuse_transformed(call: str) -> None:
    """Raise RuntimeError where a user's function that a transform runs makes a call of leaves, or of backward passes into them.

    The library's own calls pass: what is to ask has to be called by the user, and to call this itself.
    """
    if not state.transformed:
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
