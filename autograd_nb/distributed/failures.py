"""What goes wrong between ranks, and how it is said.

Source: https://docs.pytorch.org/docs/stable/distributed.html#distributed-has-a-custom-exception-type-derived-from-runtimeerror-called-torch-distributed-disterror
"""

from __future__ import annotations


class DistError(RuntimeError):
    """An error of a process group."""


class DistBackendError(DistError):
    """A collective failed, waited too long, or its ranks did not agree."""


class DistNetworkError(DistError):
    """The network failed."""


class DistStoreError(DistError):
    """The store failed; there is none here, so nothing raises it."""


class DifferentCallsError(DistBackendError):
    """The ranks of a group called different collectives; nothing was sent."""


def seconds(value: float) -> str:
    """Return a time as errors say it: "2.1 s"."""
    return f"{value:.1f} s" if value < 600 else f"{value / 60:.0f} min"


def listed(numbers: list[int]) -> str:
    """Return "rank 1" or "ranks 1, 2"."""
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
