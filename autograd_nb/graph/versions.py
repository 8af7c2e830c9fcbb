"""Lists that count changes: what their numbers mean, and which are of one storage.

All tensors of a storage share one list, [times changed in place, times the history was rewritten], but for what `.data` gives and what
`set_` puts there: those have one of their own, whose third element is the list of the storage.
"""

from __future__ import annotations

from typing import Any

#: the version count of tensors made in inference mode: negative however often they are changed
INFERENCE = -(1 << 60)
#: that of an inference tensor that was detached outside the mode and not changed since: it may be changed there
COUNTED = -(1 << 59)

#: added to the second element: NumPy or another library reads the memory too, so that the storage cannot grow
FIXED = 1 << 40

#: holds something from the first `.data` or `set_` on: a storage may have several lists since, so that `same_storage` has to be asked
SEVERAL_LISTS: list[bool] = []


def fix(version: list[Any]) -> None:
    """Say that somebody else reads the memory from now on."""
    if len(version) > 2:
        version = version[2]
    if version[1] < FIXED:
        version[1] += FIXED


def check_grows(version: list[Any]) -> None:
    """Refuse a storage more memory that somebody else reads too."""
    if (version[2] if len(version) > 2 else version)[1] >= FIXED:
        raise RuntimeError("Trying to resize storage that is not resizable (NumPy or another library reads it too; resize a clone())")


def beside(version: list[Any], count: int = 0) -> list[Any]:
    """Return another list for the storage that has this one."""
    if not SEVERAL_LISTS:
        SEVERAL_LISTS.append(True)
    return [count, 0, version[2] if len(version) > 2 else version]


def same_storage(version: list[Any], other: list[Any]) -> bool:
    """Return whether these are lists of one storage."""
    if version is other:
        return True
    return bool(SEVERAL_LISTS) and (version[2] if len(version) > 2 else version) is (other[2] if len(other) > 2 else other)
