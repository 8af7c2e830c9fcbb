"""Every rank gives something to every other: `all_to_all`, whose parts may have different sizes.

Source: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_to_all_single
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from ..tensor import Tensor
from . import checks
from .agreement import agree_on_parts
from .buffers import Buffer, as_bytes, joined, parted
from .collectives import call, said
from .group import ProcessGroup
from .mpi import mpi
from .work import Work


def _splits(given: list[int] | None, tensor: Tensor, group: ProcessGroup) -> list[int]:
    """Return how many elements go to, or come from, each rank. RuntimeError where the sizes do not add up."""
    rows = tensor.shape[0] if tensor.ndim else 1
    if not given:
        if rows % group.size():
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        return [tensor.numel() // group.size()] * group.size()
    if len(given) != group.size():
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(given) != rows:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    row = tensor.numel() // rows if rows else 0
    return [int(n) * row for n in given]


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None, input_split_sizes: list[int] | None = None,
    group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Give the j-th part of ``input``'s rows to rank j, and put what comes from rank i into the i-th part of ``output``.

    >>> out = torch.zeros(2)
    >>> dist.all_to_all_single(out, torch.tensor([0., 1.]) + 10 * rank)
    >>> out.tolist() == [rank, 10 + rank]
    True
    """
    checks.one_tensor(output, "output")
    checks.one_tensor(input, "input")
    checks.same_dtype(output, input)
    if (of := checks.group_of("all_to_all_single", group)) is None:
        return None
    given, taken = _splits(input_split_sizes, input, of), _splits(output_split_sizes, output, of)
    return _exchange(of, "all_to_all_single", said(input), [Buffer(input)], given, [Buffer(output)], taken, [output], async_op)


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False) -> Work | None:
    """Give the j-th tensor to rank j, and put what comes from rank i into the i-th output.

    >>> outs = [torch.zeros(1), torch.zeros(1)]
    >>> dist.all_to_all(outs, [torch.tensor([10. * rank]), torch.tensor([10. * rank + 1])])
    >>> [t.item() for t in outs] == [rank, 10 + rank]
    True
    """
    outs, parts = checks.tensors(output_tensor_list, "output_tensor_list"), checks.tensors(input_tensor_list, "input_tensor_list")
    checks.same_dtype(*outs, *parts)
    if (of := checks.group_of("all_to_all", group)) is None:
        return None
    for what, found in (("input", parts), ("output", outs)):
        if len(found) != of.size():
            raise RuntimeError(f"all_to_all: {what} tensor list size {len(found)} does not match world size {of.size()}")
    given, taken = [t.numel() for t in parts], [t.numel() for t in outs]
    text = f"{parts[0].dtype.name}{given}"
    return _exchange(of, "all_to_all", text, [Buffer(t) for t in parts], given, [Buffer(t) for t in outs], taken, [outs], async_op)


def _exchange(
    of: ProcessGroup, name: str, text: str, parts: list[Buffer], given: list[int], outs: list[Buffer], taken: list[int], outputs: Any,
    async_op: bool,
) -> Work | None:  # fmt: skip
    MPI, dtype = mpi(), outs[0].array.dtype

    def run() -> None:
        # a part's size is two ranks' matter: no rank can know alone that the sizes were compared before
        agree_on_parts(of, f"{name} {text}", given, taken)
        source, room = joined(parts), np.empty(sum(taken), dtype)
        size = dtype.itemsize

        def message(flat: np.ndarray, counts: list[int]) -> list[Any]:
            places = [0, *accumulate(counts)][:-1]
            return [as_bytes(flat), ([n * size for n in counts], [n * size for n in places]), MPI.BYTE]

        of.comm.Alltoallv(message(source, given), message(room, taken))
        parted(room, outs)

    return call(of, name, text, (dtype.name,), run, outputs, async_op, always=True)
