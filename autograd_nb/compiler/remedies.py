"""What to change in a function that `compile` leaves to run eagerly: a remedy for each reason that does not name one itself."""

from __future__ import annotations

import re

#: the beginning of a reason -> what the user can do
_REMEDIES: dict[str, str] = {
    r"it reads values with item": "keep values in tensors (torch.where in place of `if`), or read them outside, from what the function returns",
    r"it reads values with bincount": "count by torch.zeros(n).scatter_add(0, index, ones), whose size n does not depend on values",
    r"it reads values with (unique|nonzero|a boolean tensor)": "use torch.where(), or multiply by the mask, so that shapes do not depend on values",
    r"it reads values with a sparse tensor": "make it dense (to_dense()), or layers without sparse=True",
    r"it reads values with one_hot": "give num_classes",
    r"it reads values with (manual_seed|initial_seed|get_rng|set_rng|share_memory_)": "do that outside of the function",
    r"it reads values with (a tensor made of a NumPy|from_numpy)": "make the tensor outside, and pass it as an argument",
    r"it reads values with (numpy|data_ptr|storage|is_set_to|a tensor over a storage|_version)": "do that outside, with what the function returns",
    r"it reads values with as_strided": "take the part by indexing (narrow, unfold)",
    r"it reads values with an out=": "return the result in place of out=, or give an out of the right size",
    r"it reads values with (a draw|forward mode)": "do that outside of the function",
    r"a kernel of it cannot be compiled": "report it with the function; an op between the parts of the expression, such as clone(), may keep it apart",
    r"it reads values with resize_": "make a new tensor of that size",
    r"it prints": "print outside of the function, from what it returns",
    r"it logs": "log outside of the function, from what it returns",
    r"it starts a thread": "start threads outside of the function",
    r"it waits for input": "ask before the call, and pass the answer as an argument",
    r"it opens a file": "read and write files outside of the function",
    r"it warns": "warn outside of the function, or silence the cause",
    r"it seeds its random numbers": "call manual_seed before the compiled function, not in it",
    r"it goes on after an error": "test for the cause before the op, in place of `try`",
    r"it changes '.*' of an optimizer's parameter group": "change it outside, between calls: compiled functions read it anew",
    r"its result is a new tensor of the class": "return a plain Tensor, and make the subclass outside",
    r"it sets an attribute of": "return the value in place of setting it",
    r"it leaves a hook on a result": "register it on what the call returns",
    r"it registers a hook on an argument": "register the hook before the call",
    r"it differentiates by an argument that has hooks": "register the hooks on what it makes of the argument",
    r"it changes an argument in place that requires grad": "use the op without the underscore and return the result, or call it under no_grad()",
    r"it leaves another grad mode": "use `with torch.no_grad():` or `set_default_dtype` around the call",
    r"a result is a view": "return a copy (clone())",
    r"a result is one of several views": "return a copy (clone())",
    r"a result shares its memory": "return a copy (clone())",
    r"a gradient shares (its|memory)": "return a copy of the gradient (clone())",
    r"it works on the gradient of an argument": "compute the gradient by autograd.grad() and return it",
    r"hooks run in the backward pass of its results": "call backward inside of the function, too",
    r"the backward pass of its results": "call backward (or autograd.grad) inside of the function, which captures both as one",
    r"its result depends on a tensor that requires grad and cannot be found": "pass that tensor as an argument",
    r"its results that require grad depend on one another": "call backward inside of the function, or return a single loss",
    r"every call changes Python's state": "keep what changes in a tensor, or pass it as an argument",
    r"\d+ other programs or kinds of calls": "pass numbers that change as tensors, pad to a few shapes, or call .forget() on the compiled function",
    r"memory without an owner": "copy the array into a tensor (torch.tensor) before the call",
}


def remedy(reason: str) -> str:
    """Return what to change for a reason, as a clause behind it; "" where the reason says it itself, or nothing is known."""
    if "; " in reason:
        return ""
    return next((f"; {text}" for pattern, text in _REMEDIES.items() if re.match(pattern, reason)), "")
