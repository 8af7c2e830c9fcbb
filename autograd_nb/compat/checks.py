"""PyTorch's tests of conditions within programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.core.foreign import is_foreign
from ..tensor import Tensor


def _assert(condition: Any, message: str = "") -> None:
    """Raise AssertionError with the message unless the condition holds; a stand-in for a value (see `fx`) is asked what that means."""
    if is_foreign(condition):
        type(condition).__torch_function__(_assert, (type(condition),), (condition, message))
        return
    assert condition, message


def _assert_async(condition: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise RuntimeError unless a tensor of one element is true: at once, as there is no other device."""
    if not bool(condition):
        raise RuntimeError(assert_msg)


def _checked(error: type[Exception], name: str) -> Callable[..., None]:
    def check(cond: Any, message: Callable[[], Any] | None = None) -> None:
        if not isinstance(cond, bool):
            raise TypeError(f"cond must be a bool, but got {type(cond)}")
        if not cond:
            raise error("Expected cond to be True, but got False. (Could this error message be improved?)" if message is None else str(message()))

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raise {error.__name__} with ``message()`` unless ``cond`` is True."
    return check


_check: Callable[..., None] = _checked(RuntimeError, "_check")
_check_index: Callable[..., None] = _checked(IndexError, "_check_index")
_check_value: Callable[..., None] = _checked(ValueError, "_check_value")
_check_type: Callable[..., None] = _checked(TypeError, "_check_type")
_check_not_implemented: Callable[..., None] = _checked(NotImplementedError, "_check_not_implemented")


def _check_is_size(i: Any, message: Callable[[], Any] | None = None, *, max: Any = None) -> None:
    """Raise RuntimeError for negative sizes."""
    _check(bool(i >= 0), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError unless all elements are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype.name != "bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check(bool(cond.all()), message)
