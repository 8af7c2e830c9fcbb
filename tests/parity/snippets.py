"""Snippets of code run by both libraries (as ``t``, with ``nn`` and ``F``): what they leave in ``r``, or that they raise, must agree."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

import autograd_nb


def shown(value: Any) -> Any:
    """A result in terms that both libraries share."""
    if isinstance(value, (torch.Tensor, autograd_nb.Tensor)):
        name = str(value.dtype).removeprefix("torch.")
        array = np.array((value.float() if name == "bfloat16" else value).detach().numpy(force=True))
        return {"dtype": name, "shape": tuple(value.shape), "requires_grad": value.requires_grad, "values": array}
    if isinstance(value, (tuple, list)):
        return [shown(v) for v in value]
    if isinstance(value, (torch.dtype, autograd_nb.dtype)):
        return str(value).removeprefix("torch.")
    return value


def outcome(code: str, library: Any, before: str = "") -> tuple[str, Any, Any]:
    """("result", what is in r, None), or ("error", the exception, what is in ``kept``: what a failed call must leave alone)."""
    names: dict[str, Any] = {"t": library, "nn": library.nn, "F": library.nn.functional, "np": np}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(before, names)
        kept = shown(names.get("kept"))
        try:
            exec(code, names)
        except Exception as error:
            assert same(shown(names.get("kept")), kept), f"the failed call changed its operand: {code}"
            return "error", error, None
    return "result", shown(names.get("r")), None


def same(a: Any, b: Any, tolerance: float = 1e-5) -> bool:
    if isinstance(b, dict):
        if not isinstance(a, dict) or any(a[k] != b[k] for k in ("dtype", "shape", "requires_grad")):
            return False
        with np.errstate(all="ignore"):
            return bool(np.allclose(a["values"], b["values"], rtol=tolerance, atol=tolerance, equal_nan=True))
    if isinstance(b, list):
        return isinstance(a, list) and len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and a == b


#: what an exception is, seen from both libraries: the first of these
EXCEPTIONS = (NotImplementedError, IndexError, ValueError, TypeError, OverflowError, AttributeError, RuntimeError, Exception)


def exception(error: Exception) -> type[Exception]:
    """The built-in exception that an exception is."""
    return next(e for e in EXCEPTIONS if isinstance(error, e))


def difference(code: str, before: str = "", tolerance: float = 1e-5, kinds: bool | str = False) -> str:
    """How the libraries differ on a snippet: "" where they agree, which two errors do (``kinds``: if they are of one type; "subclasses":
    if a handler of PyTorch's catches ours too)."""
    (kind, mine, _), (expected, theirs, _) = outcome(code, autograd_nb, before), outcome(code, torch, before)
    if kind == expected == "error":
        agree = isinstance(mine, exception(theirs)) if kinds == "subclasses" else not kinds or exception(mine) is exception(theirs)
    else:
        agree = kind == expected and same(mine, theirs, tolerance)
    if agree:
        return ""
    return f"{code}\n    ours:    {mine!r}\n    PyTorch: {theirs!r}"


def check(codes: dict[str, str], before: str = "", tolerance: float = 1e-5, kinds: bool | str = False) -> None:
    """All snippets must agree; the failure lists those that do not. ``kinds``: as of `difference`."""
    found = [f"{name}: {text}" for name, code in codes.items() if (text := difference(code, before, tolerance, kinds))]
    assert not found, f"{len(found)} of {len(codes)} differ:\n" + "\n".join(found[:20])
