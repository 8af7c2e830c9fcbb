"""Errors inside of modules: they say where in the model they arose, by the names of its modules, and what the module there takes.

Nothing is done for it before there is an error: each module that one passes on its way out adds its name for the one before.
"""

from __future__ import annotations

from typing import Any

from ...errors import with_guess
from ...ops.core.guesses import guess_keyword
from ...tensor import Tensor

#: the beginning of the note, by which it is found again
_NOTE = "In the module "


def takes(module: Any) -> str:
    """Return the shape that a module's input must have, as far as its options say, such as "[N, 3, H, W]"; else ""."""
    d = module.__dict__
    if "in_channels" in d and "kernel_size" in d:
        sides = ("L",) if len(d["kernel_size"]) == 1 else ("D", "H", "W")[-len(d["kernel_size"]) :]
        return f"[N, {d['in_channels']}, {', '.join(sides)}]"
    if "in1_features" in d:
        return f"[*, {d['in1_features']}] and [*, {d['in2_features']}]"
    if "in_features" in d:
        return f"[*, {d['in_features']}]"
    if "normalized_shape" in d:
        return f"[*, {', '.join(map(str, d['normalized_shape']))}]"
    if "num_groups" in d and "num_channels" in d:
        return f"[N, {d['num_channels']}, *]"
    if "num_features" in d:
        return f"[N, {d['num_features']}, *]"
    if "input_size" in d and "hidden_size" in d:
        step = ("N", "L") if d.get("batch_first") else ("L", "N")
        return f"[{', '.join(step)}, {d['input_size']}]" if "num_layers" in d else f"[N, {d['input_size']}]"
    if "embed_dim" in d and "num_heads" in d:
        return f"[{'N, L' if d.get('batch_first') else 'L, N'}, {d['embed_dim']}]"
    return ""


def _fault(error: Exception, module: Any, args: tuple[Any, ...]) -> tuple[str, bool]:
    """Return what a module was given beside what it takes, and whether that says more than the error: shapes, or dtypes where they differ."""
    tensors = [a for a in args if isinstance(a, Tensor)]
    kind = type(module).__name__
    option = next((name for name, value in module.__dict__.items() if isinstance(value, Tensor)), "")
    if option and "Boolean value of Tensor" in str(error):
        return f"{kind} has a Tensor for its option {option}: a module is made first and called then, {kind}()(x)", True
    what = repr(module) if not module._modules else kind
    own = next((p.dtype for p in module._parameters.values() if p is not None), None)
    other = next((a.dtype for a in tensors if a.dtype is not own), None)
    if "dtype" in str(error) and own is not None and other is not None:
        return f"{what} has parameters of {own}, and was given {other}: use x.to({own}), or module.to({other})", True
    given = " and ".join(str(list(a.shape)) for a in tensors)
    expected = takes(module)
    last = next((a for a in tensors if a.ndim and a.shape[-1] == module.__dict__.get("in_channels")), None)
    if "channels" in str(error) and last is not None and last.ndim > 2 and last.shape[1 - len(expected.split(","))] != last.shape[-1]:
        batch = 0 if last.ndim < len(expected.split(",")) else 1
        given += f" (channels come first: x.permute({', '.join(map(str, (*range(batch), last.ndim - 1, *range(batch, last.ndim - 1))))}))"
    text = what + (f" takes {expected}" if expected else "") + (f"{', and' if expected else ''} was given {given}" if given else "")
    return text, bool(expected and given)


def tell_path(error: Exception, module: Any, args: tuple[Any, ...]) -> None:
    """Add to an error that leaves a module's call where in the model it arose: "In the module trunk.conv2 of Net: Conv2d(…) takes …"."""
    if isinstance(error, TypeError) and "keyword" in str(error):
        if str(error).startswith(f"{getattr(type(module).forward, '__qualname__', '')}()"):
            with_guess(error, type(module).forward)
        else:
            guess_keyword(error, error.__traceback__)
    known = error.__dict__.get("_modules")
    if known is None:
        text, telling = _fault(error, module, args)
        error.__dict__["_modules"] = (module, "", text)
        if telling:
            error.add_note(f"{text}.")
        return
    inner, path, text = known
    name = next((n for n, m in module.named_modules() if m is inner), None)
    if name is None:
        return
    path = f"{name}.{path}" if path and name else name or path
    error.__dict__["_modules"] = (module, path, text)
    notes = [n for n in getattr(error, "__notes__", ()) if not n.startswith(_NOTE) and n != f"{text}."]
    if path:
        error.__notes__ = [*notes, f"{_NOTE}{path} of {type(module).__name__}: {text}."]  # type: ignore[attr-defined]
