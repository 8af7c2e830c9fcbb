"""How items become a batch: `default_collate` stacks them, `default_convert` makes tensors of arrays.

Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.default_collate
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...ops.core.registry import OPS
from ...tensor import Tensor


def _like_mapping(like: Any, values: dict[Any, Any]) -> Any:
    """Return a mapping of the type of ``like`` with these values; a dict where its type cannot be made so."""
    try:
        if isinstance(like, MutableMapping):
            out = copy.copy(like)
            out.update(values)
            return out
        return type(like)(values)
    except TypeError:
        return values


def _like_sequence(like: Any, values: list[Any]) -> Any:
    """Return a sequence of the type of ``like`` with these values; a list where its type cannot be made so."""
    if isinstance(like, tuple):
        return type(like)(*values) if hasattr(like, "_fields") else values  # plain tuples become lists, as they always have
    try:
        if isinstance(like, MutableSequence):
            out = copy.copy(like)
            for i, value in enumerate(values):
                out[i] = value
            return out
        return type(like)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def default_convert(data: Any) -> Any:
    """Return NumPy arrays and scalars as tensors, also within mappings and sequences; everything else as it is.

    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.default_convert

    >>> import numpy as np
    >>> torch.utils.data.default_convert({"a": np.ones(2)})
    {'a': tensor([1., 1.], dtype=torch.float64)}
    """
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        if data.dtype.kind in "SaUO" or isinstance(data, (np.str_, np.bytes_)):
            return data
        return OPS["as_tensor"].call(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(value) for value in data])
    return data


_Map = dict[Any, Callable[..., Any]]


def collate(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """Return a batch of a list of items: what ``collate_fn_map`` says for the type of the first, else part by part for mappings and sequences.

    Errors: TypeError for other types, RuntimeError for sequences of different lengths.
    """
    first = batch[0]
    if collate_fn_map is not None:
        function = collate_fn_map.get(type(first))
        if function is None:
            function = next((f for kind, f in collate_fn_map.items() if isinstance(first, kind)), None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _like_mapping(first, {k: collate([item[k] for item in batch], collate_fn_map=collate_fn_map) for k in first})
    if isinstance(first, Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return _like_sequence(first, [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)])
    raise TypeError(_unknown(type(first)))


def _unknown(kind: Any) -> str:
    return f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}"


def collate_tensor_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Tensor:
    """Return the tensors stacked."""
    try:
        return OPS["stack"].call(list(batch), 0)
    except RuntimeError as error:
        error.add_note("The items of a batch have one shape. Give DataLoader a collate_fn that pads them, by nn.utils.rnn.pad_sequence for example.")
        raise


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """Join arrays, as tensors. TypeError for arrays of strings or objects."""
    if batch[0].dtype.kind in "SaUO":
        raise TypeError(_unknown(batch[0].dtype))
    return collate([OPS["as_tensor"].call(item) for item in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Tensor:
    """Join NumPy's scalars in a 1-D tensor of their dtype."""
    return OPS["as_tensor"].call(np.asarray(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Tensor:
    """Join floats in a 1-D float64 tensor."""
    return OPS["tensor"].call(batch, dtype=dtypes.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Tensor:
    """Join ints (or bools) in a 1-D int64 (or bool) tensor."""
    return OPS["tensor"].call(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """Return strings as they are."""
    return batch


#: type -> how items of it are collated; programs add their own
default_collate_fn_map: _Map = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Return a batch of a list of items: tensors and arrays stacked, numbers in tensors, strings left, mappings and sequences part by part.

    Example:
        >>> from autograd_nb.utils.data import default_collate
        >>> default_collate([(0, {"a": 1.0}), (2, {"a": 3.0})])
        [tensor([0, 2]), {'a': tensor([1., 3.], dtype=torch.float64)}]

    Errors: TypeError for items of other types, RuntimeError for different sizes.
    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.default_collate
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
