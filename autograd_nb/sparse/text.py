"""How sparse tensors are printed: places and values as dense tensors are, then size, number of values and layout."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..display import contents, options
from ..tensor import Tensor, ndarray


def _part(name: str, t: Tensor, indent: int) -> str:
    prefix = f"{name}=tensor("
    text = prefix + contents(ndarray(t.float() if t.dtype is dtypes.bfloat16 else t), indent + len(prefix))
    return text + (f", size={tuple(t.shape)}" if not t.numel() else "") + ")"


def text(s: Any, *, tensor_contents: Any = None) -> str:
    """Return ``tensor(indices=tensor(…), values=tensor(…), size=…, nnz=…, layout=torch.sparse_coo)``."""
    indent = len("tensor(")
    names = ("indices",) if s._kind == "coo" else ("crow_indices", "col_indices")
    shown = [_part(name, t, indent) for name, t in zip((*names, "values"), (*s._index, s._val.detach()), strict=True)]
    body = "tensor(" + (",\n" + " " * indent).join(shown)
    default = dtypes.get_default_dtype()
    suffixes = [f"size={tuple(s.shape)}", f"nnz={s._val.shape[0]}"]
    if s.dtype not in (default, default.to_complex(), dtypes.int64, dtypes.bool_):
        suffixes.append(f"dtype={s.dtype!r}")
    suffixes.append(f"layout={s.layout}")
    if s.grad_fn is not None:
        suffixes.append(f"grad_fn=<{s.grad_fn.name()}>")
    elif s.requires_grad:
        suffixes.append("requires_grad=True")
    force, length = s._kind == "coo", len(body) - body.rfind("\n") + 1
    for suffix in suffixes:
        if force or length + len(suffix) + 2 > options.linewidth:
            body += ",\n" + " " * indent + suffix
            length, force = indent + len(suffix), False
        else:
            body += ", " + suffix
            length += len(suffix) + 2
    return body + ")"
