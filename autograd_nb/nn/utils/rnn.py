"""Batches of sequences of different lengths: padded, and packed without the padding.

Source: https://docs.pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_padded_sequence
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ...ops.core.recording import fresh
from ...ops.core.registry import OPS
from ...ops.creation.create import new_empty, new_full
from ...ops.creation.device import contiguous_format
from ...tensor import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence",
    "unpack_sequence", "unpad_sequence",
]  # fmt: skip


class PackedSequence_(NamedTuple):
    """The fields of a `PackedSequence`."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences of different lengths, step after step: the rows of all first steps, then those of all second steps, …

    ``batch_sizes[t]`` sequences, the longest first, have a step t; ``sorted_indices`` tells in which order they were given.
    Made by `pack_padded_sequence` and `pack_sequence`; recurrent layers take it and return one.

    >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).batch_sizes
    tensor([2, 1])
    """

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:  # PackedSequence((data, batch_sizes), …)
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return it with ``data`` of another dtype."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the object itself."""
        return self.to(*args, **kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Raise RuntimeError, as there is only the CPU."""
        return type(self)(self.data.cuda(*args, **kwargs), *self[1:])

    def pin_memory(self) -> PackedSequence:
        """Return it with ``data`` as `Tensor.pin_memory` gives it."""
        return type(self)(self.data.pin_memory(), *self[1:])

    def double(self) -> PackedSequence:
        """Return the sequence as float64."""
        return self.to(dtypes.float64)

    def float(self) -> PackedSequence:
        """Return the sequence as float32."""
        return self.to(dtypes.float32)

    def half(self) -> PackedSequence:
        """Return the sequence as float16."""
        return self.to(dtypes.float16)

    def long(self) -> PackedSequence:
        """Return the sequence as int64."""
        return self.to(dtypes.int64)

    def int(self) -> PackedSequence:
        """Return the sequence as int32."""
        return self.to(dtypes.int32)

    def short(self) -> PackedSequence:
        """Return the sequence as int16."""
        return self.to(dtypes.int16)

    def char(self) -> PackedSequence:
        """Return the sequence as int8."""
        return self.to(dtypes.int8)

    def byte(self) -> PackedSequence:
        """Return the sequence as uint8."""
        return self.to(dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        """Return False: tensors live on the CPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Return whether ``data`` is pinned."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the permutation that undoes ``permutation``; None for None."""
    if permutation is None:
        return None
    n = permutation.numel()
    return new_empty((n,), permutation.dtype).scatter_(0, permutation, OPS["arange"].call(n, dtype=permutation.dtype))


def _lengths(lengths: Any) -> np.ndarray:
    if isinstance(lengths, Tensor):
        if lengths.ndim != 1 or lengths.dtype.category > 1:
            raise RuntimeError(
                f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D cpu {lengths.dtype} tensor"
            )
        lengths = lengths.tolist()
    return np.array([int(n) for n in lengths], np.int64)


def _rows(sizes: np.ndarray, batch: int) -> Tensor:
    """Return where the rows of a packed sequence stand in a padded batch of (steps · batch) rows."""
    return OPS["from_numpy"].call(np.concatenate([t * batch + np.arange(n) for t, n in enumerate(sizes)]).astype(np.int64))


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Pack a padded batch (steps, batch, …), or (batch, steps, …) if ``batch_first``, whose sequences have these lengths.

    enforce_sorted: they must come with the longest first; else they are sorted here, and recurrent layers undo that.
    Errors: RuntimeError for lengths that are not sorted, not positive, too great, or not as many as sequences.

    >>> torch.nn.utils.rnn.pack_padded_sequence(torch.tensor([[1, 3], [2, 0]]), [2, 1]).data
    tensor([1, 3, 2])
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"pack_padded_sequence(): argument 'input' must be Tensor, not {type(input).__name__}")
    if input.ndim < 2:
        raise RuntimeError(f"pack_padded_sequence(): expected an input of at least 2 dims, but got {list(input.shape)}")
    counts = _lengths(lengths)
    order = None
    if not enforce_sorted:
        places = np.argsort(-counts, kind="stable")
        order = OPS["from_numpy"].call(places.astype(np.int64))
        counts = counts[places]
        if len(places) == input.shape[0 if batch_first else 1]:
            input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    steps, batch = input.shape[:2]
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if len(counts) != batch:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={batch})")
    if counts.min() <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if (counts[1:] > counts[:-1]).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` to "
            "pack_padded_sequence and/or pack_sequence to sidestep this requirement."
        )
    if counts[0] > steps:
        raise RuntimeError(
            f"pack_padded_sequence(): a length of {counts[0]} in 'lengths' is more than the {steps} steps of the input"
        )
    sizes = np.array([(counts > t).sum() for t in range(counts[0])], np.int64)
    data = input.reshape(steps * batch, *input.shape[2:]).index_select(0, _rows(sizes, batch))
    return PackedSequence(data, OPS["from_numpy"].call(sizes), order)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return (padded batch, lengths) of a packed one: the inverse of `pack_padded_sequence`, in the order in which it was given.

    total_length: pad up to so many steps. ValueError if that is less than the longest sequence.

    >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
    >>> torch.nn.utils.rnn.pad_packed_sequence(packed)
    (tensor([[1, 3],
            [2, 0]]), tensor([2, 1]))
    """
    sizes = np.array(sequence.batch_sizes.tolist(), np.int64)
    steps = len(sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    data, batch = sequence.data, int(sizes[0])
    rows = (_rows(sizes, batch),)
    padded = new_full((steps * batch, *data.shape[1:]), padding_value, data.dtype).index_put(rows, data)  # (index_copy would keep them)
    padded = fresh(padded.view(steps, batch, *data.shape[1:]))
    lengths = OPS["from_numpy"].call(np.array([(sizes > b).sum() for b in range(batch)], np.int64))
    if batch_first:
        padded = padded.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    return padded, lengths


def pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Tensor:
    """Stack tensors (length, …) of different lengths into one (longest, batch, …), or (batch, longest, …) if ``batch_first``.

    The result has the dtype of the first, and the other sizes of it, to which those of the rest are expanded.

    Errors: RuntimeError for none, for sizes that cannot be expanded, and for an unknown side.

    >>> torch.nn.utils.rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    tensors = list(sequences)
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not tensors:
        raise RuntimeError("received an empty list of sequences")
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(
                f"pad_sequence(): expected Tensor as element {i} of argument 'sequences', but got {type(t).__name__}"
            )
        if not t.ndim:  # (PyTorch's two kinds)
            raise (IndexError if i else RuntimeError)(f"pad_sequence(): sequences have a length, but element {i} has no dims. Give it one: t.unsqueeze(0)")
    first = tensors[0]
    longest = max(t.shape[0] for t in tensors)
    out = []
    for t in tensors:
        if t.shape[1:] != first.shape[1:]:
            try:
                t = t.expand(t.shape[0], *first.shape[1:])
            except RuntimeError:
                raise RuntimeError(
                    f"pad_sequence(): The size of tensor a {list(first.shape)} must match the size of tensor b {list(t.shape)} in all "
                    "dims but the first"
                ) from None
        if t.dtype is not first.dtype:
            t = t.to(first.dtype)
        if t.shape[0] < longest:
            fill = new_full((longest - t.shape[0], *t.shape[1:]), padding_value, t.dtype)
            t = OPS["cat"].call([t, fill] if padding_side == "right" else [fill, t])
        out.append(t)
    return OPS["stack"].call(out, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences of a padded batch, each cut to its length: the inverse of `pad_sequence`.

    As in PyTorch, ``padded_sequences`` itself is transposed in place, and stays so, unless it is ``batch_first``.

    >>> torch.nn.utils.rnn.unpad_sequence(torch.tensor([[1., 2.], [3., 0.]]), torch.tensor([2, 1]))
    [tensor([1., 3.]), tensor([2.])]
    """
    if not batch_first:
        padded_sequences.transpose_(0, 1)
    return [s[: int(n)].clone(memory_format=contiguous_format) for s, n in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack tensors (length, …) of different lengths; see `pack_padded_sequence`."""
    return pack_padded_sequence(pad_sequence(sequences), [v.shape[0] for v in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences of a packed batch: the inverse of `pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
