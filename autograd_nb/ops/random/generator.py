"""The generator of random numbers: a seed and the number of calls it has served."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...errors import shorten
from ...graph import noted
from ...overriding import overridable
from ...shapes import as_int
from ...tensor import Tensor, wrap
from ..core.recording import tensor_type
from ..core.registry import public
from ..creation.cast import as_device, dense
from ..creation.device import CPU

_MASK = (1 << 64) - 1


class Generator:
    """A source of random numbers with a seed of its own.

    Example:
        >>> g = torch.Generator().manual_seed(1)
        >>> a = torch.rand(3, generator=g)
        >>> torch.equal(a, torch.rand(3, generator=g.manual_seed(1)))
        True

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Generator.html
    """

    __slots__ = ("__weakref__", "_stream")

    _stream: tuple[int, count]  #: seed and counter in one, so that threads never see one without the other

    def __init__(self, device: Any = "cpu"):
        as_device(device)
        self._place = 67280421310721, 0  # the seed that PyTorch gives new generators

    @property
    def _place(self) -> tuple[int, int]:
        """Return the seed, and how many calls were served."""
        seed, calls = self._stream
        return seed & _MASK, int(repr(calls)[len("count(") : -1]) & _MASK  # a counter tells where it is in no other way

    @_place.setter
    def _place(self, place: tuple[int, int]) -> None:
        seed, call = place
        self._stream = _signed(seed), count(call)

    @property
    def device(self) -> Any:
        """Return where it draws: the CPU."""
        return CPU

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of ``seed`` (an int of 64 bits, negative ones counted from 2^64); the generator."""
        seed = _check_seed(seed)
        launch.escapes("manual_seed(), which a captured run does not repeat")
        self._place = seed, 0
        return self

    def seed(self) -> int:
        """Start a stream that nobody can foretell; its seed."""
        seed = int.from_bytes(os.urandom(8), "little") >> 11  # exact also as a float
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """Return the seed of the current stream."""
        launch.escapes("initial_seed()")
        return self._place[0]

    def get_state(self) -> Tensor:
        """Seed and place in the stream, as a uint8 tensor of 16 elements."""
        launch.escapes("get_rng_state()")
        return wrap(np.frombuffer(b"".join(n.to_bytes(8, "little") for n in self._place), np.uint8).copy())

    def set_state(self, new_state: Tensor) -> Generator:
        """Go to a place that `get_state` gave. TypeError for other dtypes, RuntimeError for other sizes."""
        if not isinstance(new_state, Tensor) or new_state.dtype is not dtypes.uint8:
            what = tensor_type(new_state.dtype) if isinstance(new_state, Tensor) else type(new_state).__name__
            raise TypeError(f"RNG state must be a torch.ByteTensor, not {what}")
        if new_state._layout.size != 16:
            raise RuntimeError(f"RNG state is wrong size: expected 16 bytes from get_state(), got {new_state._layout.size}")
        launch.escapes("set_rng_state()")
        data = dense(new_state).tobytes()
        self._place = int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")
        return self

    def clone_state(self) -> Generator:
        """Return another generator at the same place of the same stream."""
        return Generator().set_state(self.get_state())

    graphsafe_get_state = clone_state

    @overridable
    def _next(self) -> tuple[int, int]:
        """Return the key of one call, as two int64."""
        seed, calls = self._stream
        call = next(calls)  # which is one step of the interpreter: no lock is needed
        return seed, call if call < 1 << 63 else _signed(call)

    def __reduce__(self) -> Any:
        return _restore, self._place

    def __deepcopy__(self, memo: dict[Any, Any]) -> Generator:
        return _restore(*self._place)


def _signed(n: int) -> int:
    """Return the int64 of the same 64 bits."""
    return ((n + (1 << 63)) & _MASK) - (1 << 63)


def _restore(seed: int, call: int) -> Generator:
    g = Generator()
    g._place = seed, call
    return g


def _check_seed(seed: Any) -> int:
    if isinstance(seed, (int, np.integer)) and 1 << 63 <= seed <= _MASK:  # as `initial_seed` gives them
        return int(seed)
    return as_int(int(seed) if isinstance(seed, float) and seed.is_integer() else seed, "seed") & _MASK


default_generator: Generator = Generator()
default_generator.seed()


@public(method=False)
def manual_seed(seed) -> Generator:
    """Seed the default generator, from which all random functions draw that are given no other; the generator.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.manual_seed.html

    >>> _ = torch.manual_seed(0)
    >>> torch.initial_seed()
    0
    """
    try:
        number = int(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(f"manual_seed(): seed={seed!r} is no integer") from None
    return default_generator.manual_seed(number)


@public(method=False, namespaces=("torch",))
def seed() -> int:
    """Seed the default generator with a number that nobody can foretell; that number.

    >>> torch.seed() == torch.initial_seed()
    True
    """
    return default_generator.seed()


@public(method=False)
def initial_seed() -> int:
    """Return the seed of the default generator.

    >>> _ = torch.manual_seed(7)
    >>> torch.initial_seed()
    7
    """
    return default_generator.initial_seed()


@public(method=False)
def get_rng_state():
    """Return the state of the default generator, as a uint8 tensor.

    >>> state = torch.get_rng_state()
    >>> x = torch.rand(2)
    >>> torch.set_rng_state(state)
    >>> bool((torch.rand(2) == x).all())
    True
    """
    return default_generator.get_state()


@public(method=False, differentiable=False)
def set_rng_state(new_state) -> None:
    """Set the state of the default generator to one that `get_rng_state` gave."""
    default_generator.set_state(new_state)


def drawn(source: Generator) -> tuple[int, int]:
    """Return (seed, call) of the next draws from a generator; a capture puts numbers here that are read anew."""
    key = source._next()
    if launch._observing and source is default_generator:
        told = getattr(launch.observer(), "drawn", None)
        if told is not None:
            return told(key)  # type: ignore[no-any-return]
    return key


def stream(generator: Any) -> tuple[int, int]:
    """Return (seed, call) for one op's draws, from ``generator`` or the default one."""
    if generator is None:
        return drawn(default_generator)
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a Generator, not {type(generator).__name__} (generator={shorten(generator)})")
    return drawn(generator)


noted.place, noted.draw = lambda: default_generator._place, lambda: default_generator._next()  # (which vmap overrides)
