"""Differences of views that show conjugates or negatives (see `case`)."""

from __future__ import annotations

import re
from typing import Any

from ..program import UNREADABLE
from .case import Case, Explained
from .graph import descended, made_by

#: what makes results that are no views, and show conjugates in PyTorch
_COMPUTED = re.compile(r"(?:(?:\b(?:(?:v|vec|tensor)?dot|inner|matmul|einsum)|lu_solve|fft\w*|func\.(?:vjp|grad|jac\w+)|autograd\.grad)\(|\.grad\b| @ )")
#: what is refused of such views
_REFUSED = re.compile(r"(view_as_real doesn't work on unresolved conjugated|view is not supported for conjugate view) tensors")
#: views that have no rule for such operands in PyTorch, which copies where no history is asked for
_COPIED = re.compile(r"cartesian_prod\(|dropout\d?d?\(|type_as\(|atleast_\dd\(|meshgrid\(|broadcast_tensors\(")


def _marks(seen: Any) -> tuple:
    """Whether a tensor shows conjugates, and whether negatives, and the same of its gradient."""
    return tuple(getattr(seen, "marks", ())[:2]), tuple(getattr(getattr(seen, "grad", None), "marks", ())[:2])


def _apart(c: Case) -> set[str]:
    """The names of what shows conjugates or negatives in one library alone, or has a gradient that does, and of what was made of that."""
    found = [n.partition("[")[0] for n, seen in c.known.items() if _marks(seen) != _marks(c.here.get(n))]
    return {*found, *descended(found, c.before)}


def _of_apart(c: Case) -> bool:
    """Whether such a tensor takes part, or is what differs."""
    return not _apart(c).isdisjoint({c.name.partition("[")[0], *re.findall(r"v\d+", c.statement)})


def _is_apart(c: Case) -> bool:
    """Whether what differs is such a tensor, or was made of one."""
    shown = c.marks[0][:2] != c.marks[1][:2] and _COMPUTED.search(c.statement) is not None
    return shown or c.name.partition("[")[0] in _apart(c)


def _handed_on(c: Case) -> bool:
    """Whether what differs was returned by `autograd.grad`, which was given such a view."""
    made = re.search(rf"\b{c.name.partition('[')[0]},?[^=\n]* = torch\.autograd\.grad\(.*", c.text)
    return made is not None and (re.search("conj|_neg_view|mH", made[0]) is not None
                                 or any(any(_marks(c.known.get(n))[0]) for n in re.findall(r"v\d+", made[0])))  # fmt: skip


def _given_computed(c: Case) -> bool:
    """Whether a tensor is given the conjugates of what shows conjugates in PyTorch alone, within a function: they are no such view there."""
    given = re.findall(r"\b\w+\.grad = (v\d+)", c.text)
    return c.kind == "grad value" and "\ndef step(" in c.text and not made_by(_COMPUTED, c.text).isdisjoint(given)


def _given_to_data(c: Case) -> bool:
    """Whether a tensor takes part that was given the data of such a view, or is asked for what it shows: a copy there, the tensor itself here."""
    found = re.findall(r"\b\w+\.data = (\w+)|vector_to_parameters\((\w+), ", c.text)
    resolved = c.kind in ("requires_grad", "leaf", "history") and re.search(r"\.resolve_(conj|neg)\(", c.statement)
    return ("value" in c.kind or c.kind == "marks" or resolved) and any(
        c.known.get(a or b) is UNREADABLE or any(_marks(c.known.get(a or b))[0]) for a, b in found
    )


def _of_memory_of_a_leaf(c: Case) -> bool:
    """Whether a gradient is such a view there, into which a pass has accumulated since: that counts as a change of what it shows."""
    shown = any(any(getattr(getattr(seen, "grad", None), "marks", ())[:2]) for seen in c.known.values())
    return shown and re.search(r"\.backward\((?s:.*)\.backward\(", c.before) is not None


def _shown(c: Case) -> bool:
    """Whether such a view takes part."""
    named = (c.known.get(n) for n in re.findall(r"v\d+", c.statement))
    return re.search("conj|_neg_view|mH", c.statement) is not None or any(any(getattr(seen, "marks", ())[:2]) for seen in named)


def _compared(c: Case) -> bool:
    """Whether an operator compares what is no such view with one that is."""
    found = re.search(r"^v\d+ = (v\d+) (?:[=!]=|[<>]=?) (v\d+)$", c.statement)
    return found is not None and any(getattr(c.known.get(found[2]), "marks", ())[:2])


def _broken(c: Case) -> bool:
    """Whether what differs, or what takes part, could not be asked for anything before, and could be after that."""
    without = c.kind == "not refused" and re.search("does not require grad and does not have a grad_fn|on a tensor that doesn't require gradient", c.theirs)
    return ((without or c.kind in ("requires_grad", "leaf", "history")) and re.search("conj|_neg_view|mH", c.before) is not None
            and any(c.known.get(n) is UNREADABLE for n in (c.name, *re.findall(r"v\d+", c.statement))))  # fmt: skip


CONJUGATES = (
    Explained(
        "views of conjugates that are refused",
        "To give them other memory, by x.data = …, out= of another shape or an optimizer, is refused with what to do instead, before anything that "
        "comes after it is; what x.data is given of theirs is a copy.",
        lambda c: (c.kind in ("raised", "error type") and re.search("shows? conjugates or negatives", c.mine)) or _given_to_data(c)
        # conjugates of negatives of conjugates, which only the private _neg_view makes, are not put into another order
        or (c.kind == "raised" and "view is not supported for conjugate view tensors when converting to a different dtype" in c.mine
            and "view_as_real(" in c.statement and re.search(r"\.conj\(\)\._neg_view\(\)", c.before) is not None),
    ),
    Explained(
        "parameters that are views of conjugates",
        "A Parameter of such a view is a copy here, which every optimizer takes; PyTorch's shows what the view does, and its Adam refuses that.",
        lambda c: c.kind == "marks" and "nn.Parameter" in c.statement and _shown(c),
    ),
    Explained(
        "gradients that are views of conjugates",
        "A gradient has memory of its own here. In PyTorch it may show the conjugates of what a pass or x.grad was given, and changes with that.",
        lambda c: ("value" in c.kind and _of_apart(c)) or (c.kind == "not refused" and "modified by an inplace" in c.theirs and _of_memory_of_a_leaf(c))
        or _given_computed(c)
        or (c.kind in ("value", "requires_grad", "history", "leaf") and (_is_apart(c) or _handed_on(c)))
        or (c.kind == "raised" and "does not require grad" in c.mine and _of_apart(c))
        or (c.kind == "not refused" and "returned an invalid gradient" in c.theirs and _of_apart(c))  # (which was squeezed in place)
        or (c.kind == "not refused" and "Can't detach views in-place" in c.theirs and ".grad.detach_()" in c.statement and _of_apart(c))
        or (c.kind == "grad strides" and re.search(r"\.grad = |backward\(", c.statement) and _shown(c)),
    ),
    Explained(
        "parts of gradients that are views of conjugates",
        "PyTorch's Adam and its like do not take a gradient of complex numbers that is such a view.",
        lambda c: c.kind == "not refused" and "view_as_real doesn't work on unresolved conjugated tensors" in c.theirs and "step()" in c.statement,
    ),
    Explained(
        "copies of what shows conjugates",
        "What an op has read of such a view is a copy, which nodes keep (docs/design.md): a write by way of .data does not come to it.",
        lambda c: "value" in c.kind and re.search(r"\.data[.\[]|\.copy\(v\d+", c.before) is not None
        and re.search("conj|_neg_view|mH|\\.H", c.before) is not None
        and re.search(r"grad|backward", c.statement + c.kind) is not None,
    ),
    Explained(
        "lists with views of conjugates",
        "PyTorch does not change tensors of a list in place where one of them is such a view, of conjugates or negatives.",
        lambda c: c.kind == "not refused" and re.search("fallback doesn.t currently support mutable TensorLists with (conjugate|negation) inputs", c.theirs),
    ),
    Explained(
        "derivatives of parts that are set",
        "PyTorch does not differentiate slice_scatter and its like of complex numbers.",
        lambda c: c.kind == "not refused" and "does not support automatic differentiation for outputs with complex dtype" in c.theirs,
    ),
    Explained(
        "conjugates that are not computed yet",
        "Which results other than views show conjugates is PyTorch's own business: those of products of vectors, of its FFTs, gradients.",
        lambda c: (c.kind == "marks" and (_COMPUTED.search(c.statement) or _of_apart(c)))
        or (c.kind in ("raised", "not refused") and _REFUSED.search(c.mine + c.theirs) and (_COMPUTED.search(c.statement) or _of_apart(c)))
        or (c.kind in ("raised", "not refused") and "Can't detach views in-place" in c.mine + c.theirs and _of_apart(c))
        # (where the operand of a change in place is computed first, it shares no memory with what is changed)
        or (c.kind == "raised" and re.search("refers? to a single memory location", c.mine) and _of_apart(c))
        or (c.kind == "strides" and re.search(r"\.resolve_(neg|conj)\(|deepcopy\(", c.statement) and _of_apart(c))  # (where they are computed)
        or (c.kind == "grad none" and re.search(rf"\b{c.name} = v\d+\.resolve_(neg|conj)\(\)$", c.before, re.M) and _of_apart(c))
        or (c.kind == "raised" and "Can't call numpy() on Tensor that has conjugate bit set" in c.mine and _of_apart(c))
        or (c.kind == "value" and (of := re.search(r"(v\d+)\.conj\(\)\._base is", c.statement)) is not None  # (of nothing, which has no marks)
            and re.search(rf"\b{of[1]} = .*{_COMPUTED.pattern}", c.before) is not None),
    ),
    Explained(
        "views that are copied where nothing is recorded",
        "In inference mode, and of inference tensors, PyTorch computes the conjugates that the operand of some views shows, and returns a copy that does not "
        "follow its memory; its documentation says that they return the operand or a view of it.",
        lambda c: (_COPIED.search(c.statement) and _shown(c) and "inference_mode" in c.text
                   and c.kind in ("requires_grad", "leaf", "history", "marks", "value"))
        or (c.kind == "raised" and "Inplace update to inference tensor" in c.mine
            and not made_by(_COPIED, c.before).isdisjoint(re.findall(r"v\d+", c.statement))),
    ),
    Explained(
        "views of conjugates of what requires no grad any more",
        "An internal assertion fails in PyTorch where such a view is asked for anything after its base was changed; then it says that it requires none.",
        _broken,
    ),
    Explained(
        "negatives that are not looked at",
        "PyTorch's copy_ from float32 to float16 or back leaves out what a view of negatives shows; its to() does not.",
        lambda c: "value" in c.kind and ".copy_(" in c.statement and (
            {"float16", "float32"} <= {getattr(c.known.get(n), "dtype", "") for n in re.findall(r"v\d+", c.statement)}
        ) and ("_neg_view" in c.statement or any(_marks(c.known.get(n))[0][1:] == (True,) for n in re.findall(r"v\d+", c.statement))),
    ),
    Explained(
        "comparisons with views of conjugates",
        "Such a view is of a subclass, which Python asks first where an operator compares: the result lies as the second operand does.",
        lambda c: c.kind == "strides" and _compared(c),
    ),
    Explained(
        "conjugates of what was turned in place",
        "PyTorch makes the history of such a view anew from the base as it lies by now: where that was turned since, gradients come to other elements.",
        lambda c: "value" in c.kind and re.search(r"grad|backward", c.statement + c.kind) is not None
        and any(re.search(rf"\b{base}\.(t_|transpose_|swapdims_|swapaxes_|moveaxis_)\(", c.before[at:])
                for at, base in ((m.end(), m[1]) for m in re.finditer(r"\bv\d+ = (v\d+)(?:\.conj\(\)|\._neg_view\(\)|\.mH)", c.before))),
    ),
    Explained(
        "losses of stretched conjugates",
        "PyTorch's losses stretch their operands first, and compute the conjugates that a stretched view shows: the result lies as that does, in C order.",
        lambda c: c.kind == "strides" and "_loss(" in c.statement and _shown(c),
    ),
    Explained(
        "two faults of complex operands",
        "Of a call with complex numbers that the op does not take and shapes or memory that do not fit the one or the other is named.",
        lambda c: c.kind == "error type" and re.search("not (implemented|supported) for .*[Cc]omplex", c.mine + c.theirs)
        and re.search("must match|size|shape|dim|single memory location", c.mine + c.theirs),
    ),
    Explained(
        "conjugates of functionalize",
        "PyTorch's functionalize returns what a view was changed to, here the view is returned.",
        lambda c: (c.kind == "marks" and "functionalize(" in c.text)
        or (c.kind == "not refused" and "Can't call numpy() on Tensor that has conjugate bit set" in c.theirs and "functionalize(" in c.before
            and _of_apart(c)),
    ),
)
