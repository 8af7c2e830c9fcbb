"""Memory for arrays: big blocks that were freed are used again, as malloc gives such blocks back to the system."""

from __future__ import annotations

from ctypes import addressof, c_char
from functools import cache
from typing import Any

import numpy as np

from .. import locks
from ..codegen.processor import LINE

BIG = 1 << 17  #: bytes from which memory is pooled: from there malloc may give its pages back, and each costs a fault again
LARGE = 1 << 20  #: bytes from which blocks are counted, under a lock, which takes a third of the time of getting a smaller one
_POOL_LIMIT, _SMALL_LIMIT = 1 << 30, 1 << 24  #: bytes kept at most: of large blocks, and of each size of smaller ones
_pool: dict[int, list[_Block]] = {}
_pooled = 0
LEASES = 1 << 12  #: numbers of bytes for which the class of blocks is known
_leases: dict[int, tuple[Any, list[_Block], int]] = {}
pooled: set[type] = set()  #: the classes of what owns a block, of which one array is made
_lock = locks.lock()  # a signal handler may want memory in the midst of what it guards


class _Block:
    """Memory for arrays, and its address, which to ask NumPy for takes a microsecond."""

    __slots__ = ("address", "memory")

    def __init__(self, memory: np.ndarray):
        self.memory, self.address = memory, memory.ctypes.data


@cache
def _lease(n: int) -> tuple[Any, list[_Block]]:
    """Return the class of what owns a big block of ``n`` bytes while arrays look at it, and where it returns it when the last of them dies.

    NumPy takes memory from an object of `ctypes` in a fifth of the time that it takes to ask one for its interface.
    """
    import ctypes

    blocks = _pool.setdefault(n, [])
    most = _SMALL_LIMIT // n

    class Small(ctypes.c_char * n):  # type: ignore[misc]
        __slots__ = ("block",)

        def __del__(self) -> None:  # (appending and popping need no lock)
            if len(blocks) < most:
                blocks.append(self.block)

    class Large(ctypes.c_char * n):  # type: ignore[misc]
        __slots__ = ("block",)

        def __del__(self) -> None:
            global _pooled
            if _lock is not None and _lock.acquire(False):  # never wait inside a finalizer
                try:
                    if _pooled + n <= _POOL_LIMIT:
                        blocks.append(self.block)
                        _pooled += n
                finally:
                    _lock.release()

    found = Small if n < LARGE else Large
    pooled.add(found)
    return found, blocks


PAGE = 1 << 21  #: bytes of a huge page
LARGEST = (1 << 63) - 2 * PAGE  #: bytes that an array can have


def _fresh(n: int) -> np.ndarray:
    """Return a new block of ``n`` bytes that begins with a line of the cache; a large one with a huge page, which NumPy asks for."""
    step = PAGE if n >= 2 * PAGE else LINE
    room = np.empty(n + step, np.uint8)
    begin = -room.ctypes.data % step
    return room[begin : begin + n]


def _rounded(n: int) -> int:
    """Return the size of a block in steps of an eighth of a power of two, so that slightly different shapes share blocks."""
    step = 1 << max(n.bit_length() - 4, 12)
    return (n + step - 1) // step * step


def empty(size: int, d: np.dtype) -> np.ndarray:
    """Return a flat array of ``size`` elements with undefined contents, 64-byte aligned when big."""
    if size * d.itemsize < BIG:
        return np.empty(size, d)
    return _empty_big(size, d)


def promised(size: int, d: np.dtype) -> np.ndarray:
    """Return a flat array of zeros of which the operating system has only promised the memory: it takes none until somebody writes."""
    try:
        return np.zeros(size, d)
    except (MemoryError, ValueError):
        raise RuntimeError(f"Storage size calculation overflowed with {size} elements of {d.name}: no memory is as large") from None


def _empty_big(size: int, d: np.dtype) -> np.ndarray:
    wanted = size * d.itemsize
    try:
        lease_of, blocks, n = _leases[wanted]
    except KeyError:
        n = _rounded(wanted)
        if n > LARGEST:
            raise RuntimeError(f"Storage size calculation overflowed with {size} elements of {d.name}: no memory is as large") from None
        if len(_leases) >= LEASES:
            _leases.clear()
        lease_of, blocks = _lease(n)
        _leases[wanted] = lease_of, blocks, n
    try:
        block = blocks.pop() if n < LARGE else _pop_large(blocks, n)
    except IndexError:
        block = _new_block(n, size, d)
    lease = lease_of.from_address(block.address)
    lease.block = block
    return np.ndarray(size, d, lease)


def _pop_large(blocks: list[_Block], n: int) -> _Block:
    global _pooled
    with _lock:
        block = blocks.pop()
        _pooled -= n
    return block


def _new_block(n: int, size: int, d: np.dtype) -> _Block:
    try:
        return _Block(_fresh(n))
    except MemoryError:
        release_memory()
    try:
        return _Block(_fresh(n))
    except MemoryError:
        raise RuntimeError(
            f"not enough memory for {size} elements of {d.name} ({size * d.itemsize} bytes); use smaller tensors or batches"
        ) from None


def release_memory() -> int:
    """Give the pooled blocks of memory back to the system and return the number of bytes.

    >>> x = torch.ones(1 << 20)
    >>> del x
    >>> torch.release_memory() >= 0
    True
    """
    global _pooled
    with _lock:
        n = sum(size * len(blocks) for size, blocks in [*_pool.items()])
        _pooled = 0
        for blocks in [*_pool.values()]:
            blocks.clear()
    return n


def address(array: np.ndarray) -> int:
    """Return the address of an array's first byte."""
    try:
        return addressof(c_char.from_buffer(array))  # type: ignore[arg-type]  # the buffer protocol's: NumPy's own two ways take five times as long
    except (TypeError, ValueError):  # it may not be written, has gaps, or no elements
        return int(array.__array_interface__["data"][0])


def root(array: np.ndarray) -> np.ndarray:
    """Return the array that owns the memory that ``array`` looks at."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def distance(whole: np.ndarray, part: np.ndarray, size: int) -> int | None:
    """Return how many bytes lie between the beginnings of two arrays, of the second of which ``size`` elements count; None in other memory."""
    if part is whole:
        return 0
    between = address(part) - address(whole)
    inside = between >= 0 and between + size * part.itemsize <= whole.nbytes
    return between if inside or _owner(part) is _owner(whole) else None


def alone(array: np.ndarray) -> bool:
    """Return whether an array has memory of its own, or a block of the pool, in which nothing else lies but its own views."""
    return array.base is None or array.base.__class__ in pooled


def _owner(array: Any) -> Any:
    """Return what the memory of an array belongs to."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array
