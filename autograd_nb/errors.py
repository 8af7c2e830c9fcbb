"""Exceptions of the library, and the texts that more than one place raises.

Types are PyTorch's (a subclass of RuntimeError, TypeError, ValueError, IndexError…) and messages carry PyTorch's key
phrases, so that a search finds help; the rest names the op, the user's line and the remedy.
"""

from __future__ import annotations


class AutogradError(RuntimeError):
    """Something about the graph forbids the operation; every error of the recorder and the engine is one."""


class ConsumedGraphError(AutogradError):
    """A backward pass reached a node that an earlier pass consumed."""


class ModifiedError(AutogradError):
    """An array that the graph needs was changed in place after it was saved."""


class GradcheckError(RuntimeError):
    """An analytic derivative differs from the numeric one."""


class CacheWarning(UserWarning):
    """The kernel cache on disk cannot be used; the program goes on without it."""


class DeviceError(AssertionError, RuntimeError):
    """A device that there is not: PyTorch without CUDA raises AssertionError, and RuntimeError for other kinds."""

    def __init__(self, name: str):
        absent = "Torch not compiled with CUDA enabled: " if name.startswith("cuda") else ""
        super().__init__(
            f"{absent}device {name!r} is not available: this library computes on the CPU only (use device='cpu', or test "
            "cuda.is_available() first)"
        )


def shorten(value: object) -> str:
    """Return ``repr(value)`` cut to 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


class OutOfMemoryError(RuntimeError):
    """Never raised: PyTorch's error for a GPU whose memory is full, which programs catch."""


class LinAlgError(RuntimeError):
    """A matrix that cannot be factored or inverted, or an iteration that did not converge (PyTorch's `linalg.LinAlgError`)."""


#: how a view was made -> the words for it
UNTRACKED = {
    "no_grad": ("no_grad", "with grad mode enabled", "no_grad"),
    "inference": ("inference", "in normal mode", "inference_mode"),
    "function": ("no_grad", "with grad mode enabled", "no_grad"),
}


SEVERAL = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified "
    "inplace. You should replace the inplace operation by an out-of-place one."
)
OVERRIDDEN = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle "
    "view+inplace would override the custom backward associated with the custom Function, leading to incorrect gradients. This "
    "behavior is forbidden. You can fix this by cloning the output of the custom Function."
)
AMBIGUOUS = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and "
    "the inplace either both inside the {block} block (if you don't want the inplace to be tracked) or both outside (if you want the "
    "inplace to be tracked)."
)
