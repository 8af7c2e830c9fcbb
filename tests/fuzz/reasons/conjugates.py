"""Differences of views that show conjugates or negatives (see `case`)."""

from __future__ import annotations

import re

from .case import Case, Explained

#: what makes results that are not views and show conjugates in PyTorch
_COMPUTED = re.compile(r"(?:(?:vdot|fft\w*)\(|\.grad\b)")


def _given_to_data(c: Case) -> bool:
    """Whether a tensor takes part that was given the data of such a view."""
    found = re.findall(r"\bv\d+\.data = (\w+)", f"{c.before}\n{c.statement}")
    return ("value" in c.kind or c.kind == "marks") and any(any(getattr(c.known.get(name), "marks", ())[:2]) for name in found)


def _kept_as_views(c: Case) -> bool:
    """Whether a gradient is such a view in PyTorch."""
    given = re.search(r"\.grad = .*(?:conj\(|mH|_neg_view)", c.before)  # (to what is no leaf, of which it is not seen)
    return given is not None or any(any(getattr(getattr(seen, "grad", None), "marks", ())[:2]) for seen in c.known.values())


def _of_gradient(c: Case) -> bool:
    """Whether a gradient takes part that a transform or a pass has returned."""
    return any(re.search(rf"^{name}\b.* = .*(?:func\.(?:vjp|grad|jac\w+)\(|autograd\.grad\(|\.grad\b)", c.before, re.M)
               for name in re.findall(r"v\d+", c.statement)[1:])


def _of_product(c: Case) -> bool:
    """Whether the result of a vdot or an FFT takes part."""
    return any(re.search(rf"^{name} = .*(?:vdot|fft\w*)\(", c.before, re.M) for name in re.findall(r"v\d+", c.statement)[1:])


def _shown(c: Case) -> bool:
    """Whether such a view takes part."""
    named = (c.known.get(n) for n in re.findall(r"v\d+", c.statement))
    return re.search("conj|_neg_view|mH", c.statement) is not None or any(any(getattr(seen, "marks", ())[:2]) for seen in named)


def _handed_on(c: Case) -> bool:
    """Whether what differs was returned by `autograd.grad`, which was given such a view."""
    made = re.search(rf"\b{c.name.partition('[')[0]},?[^=\n]* = torch\.autograd\.grad\(.*", f"{c.before}\n{c.statement}")
    return made is not None and ("conj" in c.before + made[0] or "_neg_view" in c.before)


CONJUGATES = (
    Explained(
        "views of conjugates that are refused",
        "To give them other memory, by x.data = …, out= of another shape or an optimizer, is refused with what to do instead; what x.data is given "
        "of theirs is a copy.",
        lambda c: (c.kind == "raised" and re.search("shows? conjugates or negatives", c.mine)) or _given_to_data(c),
    ),
    Explained(
        "gradients that are views of conjugates",
        "A gradient has memory of its own here. In PyTorch it may show the conjugates of what a pass or x.grad was given, and changes with that.",
        lambda c: ("value" in c.kind and _kept_as_views(c)) or (c.kind in ("value", "requires_grad", "history", "leaf") and _handed_on(c))
        or (c.kind == "marks" and (re.search(r"\.grad\.", c.statement) or _of_gradient(c)))
        or (c.kind == "grad strides" and re.search(r"\.grad = |backward\(", c.statement) and _shown(c)),
    ),
    Explained(
        "parts of gradients that are views of conjugates",
        "PyTorch's Adam and its like do not take a gradient of complex numbers that is such a view.",
        lambda c: c.kind == "not refused" and "view_as_real doesn't work on unresolved conjugated tensors" in c.theirs and "step()" in c.statement,
    ),
    Explained(
        "lists with views of conjugates",
        "PyTorch does not change tensors of a list in place where one of them is such a view.",
        lambda c: c.kind == "not refused" and "fallback doesn't currently support mutable TensorLists with conjugate inputs" in c.theirs,
    ),
    Explained(
        "derivatives of parts that are set",
        "PyTorch does not differentiate slice_scatter and its like of complex numbers.",
        lambda c: c.kind == "not refused" and "does not support automatic differentiation for outputs with complex dtype" in c.theirs,
    ),
    Explained(
        "conjugates that are not computed yet",
        "Which results other than views show conjugates is PyTorch's own business: those of vdot, of its FFTs, gradients.",
        lambda c: (c.kind == "marks" and _of_product(c))
        or (c.kind == "raised" and "Can't call numpy() on Tensor that has conjugate bit set" in c.mine and _COMPUTED.search(c.before))
        or (c.kind == "value" and (re.search(r"\.is_(conj|neg)\(\)|_base is", c.statement) or (
            (of := re.search(r"(v\d+)\.resolve_(?:conj|neg)\(", c.before))
            and re.search(rf"^{of[1]}\b.* = .*{_COMPUTED.pattern}", c.before, re.M)))),
    ),
    Explained(
        "two faults of complex operands",
        "Of a call with complex numbers that the op does not take and shapes that do not fit the one or the other is named.",
        lambda c: c.kind == "error type" and re.search("not (implemented|supported) for .*[Cc]omplex", c.mine + c.theirs)
        and re.search("must match|size|shape|dim", c.mine + c.theirs),
    ),
    Explained(
        "conjugates of functionalize",
        "PyTorch's functionalize returns what a view was changed to, here the view is returned.",
        lambda c: c.kind == "marks" and "functionalize(" in c.before + c.statement,
    ),
)
