"""What a function that is transformed may return: tensors, and tensors beside them."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .pytree import tree_flatten


def apart(result: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    """Return (the result, what is returned beside it). RuntimeError where that is not there, or holds more than tensors."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
    for t in tree_flatten(result[1])[0]:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(t)} ({name}: aux)")
    return result


def tensors_of(result: Any, name: str, forward: bool) -> tuple[list[Tensor], Any]:
    """Return (the tensors of a result, how they lie in it). RuntimeError for others, and where there is none."""
    outputs, spec = tree_flatten(result)
    way = "jvp(f, primals, tangents)" if forward else "vjp(f, *primals)"
    if all(t is None for t in outputs) and name.startswith(("jvp", "vjp", "jac")):
        raise RuntimeError(f"{way}: Expected f to be a function that has non-empty output (got output = {outputs})")
    for t in outputs:
        if not isinstance(t, Tensor):
            if name.startswith("grad"):
                raise RuntimeError(f"{name}: Expected f(*args) to return a Tensor, got {type(result)}")
            raise RuntimeError(f"{way}: expected f(*primals) to return only tensors, got unsupported type {type(t)}")
    return outputs, spec
