"""Files of named tensors in the safetensors format.

Source: https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import dtypes
from ..codegen.build.files import reading, replacing
from ..shapes import layout_of, numel
from ..tensor import Tensor, make
from .unpickling import storage_array

_SAFE_NAMES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8",
    "U16": "uint16", "U32": "uint32", "U64": "uint64", "BOOL": "bool", "C64": "complex64",
}  # fmt: skip
_SAFE_CODES = {name: code for code, name in _SAFE_NAMES.items()}


def save_safetensors(tensors: Mapping[str, Tensor], filename: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors as a safetensors file, whole or not at all. TypeError for what are not Tensors.

    >>> import os, tempfile
    >>> name = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> torch.serialization.save_safetensors({"w": torch.ones(2)}, name)
    >>> torch.serialization.load_safetensors(name)
    {'w': tensor([1., 1.])}
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    arrays, place = [], 0
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise TypeError(f"save_safetensors(): {name!r} must be a Tensor, not {type(t).__name__}")
        code = _SAFE_CODES.get(t.dtype.name)
        if code is None:
            raise TypeError(f"save_safetensors(): {name!r} has dtype {t.dtype}, which safetensors files do not have")
        x = t.detach().contiguous()
        array = x._data[: x._layout.size]
        header[name] = {"dtype": code, "shape": list(t.shape), "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
        arrays.append(array)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with replacing(filename) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays:
            file.write(memoryview(array.view(np.uint8)))  # type: ignore[arg-type]


def load_safetensors(filename: Any, device: Any = "cpu") -> dict[str, Tensor]:
    """Read a safetensors file of `save_safetensors` or another program. RuntimeError that names it if truncated or damaged, or of other dtypes."""
    name = os.fspath(filename)
    with reading(name) as file:
        data = file.read()
    try:
        (n,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + n])
        if len(data) < 8 + n or not isinstance(header, dict):
            raise ValueError("header")
        header.pop("__metadata__", None)
        out = {}
        for key, about in header.items():
            if about["dtype"] not in _SAFE_NAMES and isinstance(about["dtype"], str):
                raise RuntimeError(f"{name!r}: {key!r} has dtype {about['dtype']:.20}, which this library lacks: convert it first")
            d = dtypes.BY_NAME[_SAFE_NAMES[about["dtype"]]]
            (a, b), shape = about["data_offsets"], about["shape"]
            if not all(type(v) is int and 0 <= v < 1 << 63 for v in (a, b, *shape)):
                raise ValueError(f"offsets or shape of {key!r}")
            if not a <= b <= len(data) - 8 - n or b - a != numel(shape) * d.itemsize:
                raise ValueError(f"offsets of {key!r}")
            out[key] = make(storage_array(bytearray(data[8 + n + a : 8 + n + b]), d), layout_of(tuple(shape), None, d), [0, 0])
    except (struct.error, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RuntimeError(
            f"{name!r} is truncated, damaged, or not a safetensors file ({type(error).__name__}: {error})"
        ) from None
    return out
