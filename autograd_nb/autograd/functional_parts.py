"""What packages take from the inside of `autograd.functional`, by PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ops.core.registry import OPS
from ..tensor import Tensor
from .api import grad


def _as_tuple_nocheck(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> Any:
    """Return (whether it was a tuple, the tensors), or the tuple alone where nothing is to be checked; TypeError for what is no tensor."""
    if arg_name is None and fn_name is None:
        return _as_tuple_nocheck(inp)
    several = isinstance(inp, tuple)
    values = inp if several else (inp,)
    for i, value in enumerate(values):
        if not isinstance(value, Tensor):
            what = f"value at index {i}" if several else f"given {arg_name}"
            raise TypeError(f"The {arg_name} given to {fn_name} must be either a Tensor or a tuple of Tensors but the {what} has type {type(value)}.")
    return several, values


def _tuple_postprocess(res: Any, to_unpack: bool | tuple[bool, bool]) -> Any:
    """Return tuples, and tuples of tuples, as what they were before `_as_tuple`."""
    outer, inner = to_unpack if isinstance(to_unpack, tuple) else (to_unpack, True)
    if not inner:
        res = tuple([part[0] for part in res])
    return res if outer else res[0]


def _grad_preprocess(inputs: Sequence[Tensor], create_graph: bool, need_graph: bool) -> tuple[Tensor, ...]:
    """Return other tensors of the same memory: connected to the inputs if ``create_graph``, else leaves that require grad if ``need_graph``."""
    return tuple([OPS["view_as"].call(t, t) if create_graph and t.requires_grad else t.detach().requires_grad_(need_graph) for t in inputs])


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """Return results without their history, unless ``create_graph``."""
    if not isinstance(inputs[0], Tensor):
        return tuple([_grad_postprocess(part, create_graph) for part in inputs])
    return inputs if create_graph else tuple([t.detach() for t in inputs])


def _validate_v(v: Any, other: Any, is_other_tuple: bool) -> None:
    """Refuse vectors of another number or of other sizes than what they multiply. Errors: RuntimeError."""
    if len(other) != len(v):
        kind = f"is a tuple of invalid length: should be {len(other)} but got {len(v)}" if is_other_tuple else "should contain a single Tensor"
        raise RuntimeError(f"v {kind}." if is_other_tuple else f"The given v {kind}.")
    for i, (a, b) in enumerate(zip(v, other, strict=True)):
        if a.shape != b.shape:
            raise RuntimeError(f"{f'Entry {i} in ' if is_other_tuple else ''}v has invalid size: should be {b.shape} but got {a.shape}.")


def _autograd_grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, create_graph: bool = False, retain_graph: bool | None = None, is_grads_batched: bool = False,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Return gradients of the outputs that require grad, None for all inputs if none does."""
    given = grad_outputs or (None,) * len(outputs)
    pairs = [(y, g) for y, g in zip(outputs, given, strict=True) if y is not None and y.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    seeds = [g for _, g in pairs]
    return grad([y for y, _ in pairs], inputs, seeds, retain_graph, create_graph, allow_unused=True, is_grads_batched=is_grads_batched)


def _fill_in_zeros(grads: Any, refs: Any, strict: bool, create_graph: bool, stage: str) -> tuple[Tensor, ...]:
    """Return gradients with zeros for None. Errors: RuntimeError if ``strict``."""
    if stage not in ("back", "back_trick", "double_back", "double_back_trick"):
        raise RuntimeError(f"Invalid stage argument '{stage}' to _fill_in_zeros")
    for i, g in enumerate(grads):
        if strict and g is None:
            raise RuntimeError(f"The output of the user-provided function is independent of input {i}. This is not allowed in strict mode.")
    return tuple([OPS["zeros_like"].call(t) if g is None else g for g, t in zip(grads, refs, strict=True)])


def _construct_standard_basis_for(tensors: Sequence[Tensor], tensor_numels: Sequence[int]) -> tuple[Tensor, ...]:
    """Return the unit vectors of all tensors' elements together, a matrix for each tensor."""
    total, begin, found = sum(tensor_numels), 0, []
    for t, n in zip(tensors, tensor_numels, strict=True):
        part = OPS["new_zeros"].call(t, (total, n))
        part.diagonal(-begin).fill_(1)
        found.append(part)
        begin += n
    return tuple(found)
