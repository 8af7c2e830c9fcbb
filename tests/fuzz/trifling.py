"""Small differences that are meant: what each is, and a test of a `explained.Case` that is as narrow."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

WHOLE = ("int", "uint", "bool")


def _integers_that_require_grad(case: Any) -> Any:
    """PyTorch says so of integers into which values that require grad were copied."""
    if case.kind not in ("requires_grad", "history", "leaf") or not re.search(r"\] = |copy_\(", case.statement):
        return False
    return any(getattr(case.known.get(n), "dtype", "").startswith(WHOLE) for n in re.findall(r"v\d+", case.statement))


def _norms_of_nothing(case: Any) -> Any:
    """The gradient of a group norm's weight is nan in PyTorch where there is nothing to normalize, that of all other norms 0."""
    return case.empty and "value" in case.kind and re.search(r"(?i)group_?norm", case.before + case.statement)


def _complex_numbers_over_zero(case: Any) -> Any:
    """Parts of a complex number over 0 are infinite or nan."""
    return case.kind == "value" and "addcdiv" in case.statement and re.search("complex|int", case.statement + case.before)


def _kept_results_of_second_derivatives(case: Any) -> Any:
    """The recorded derivative of logsumexp keeps what it has returned, which may not be changed before the next pass."""
    return case.kind == "raised" and "output 0 of LogsumexpBackward" in case.mine and "create_graph=True" in case.before


def _views_of_batches(case: Any) -> Any:
    """Whether what vmap returns is a view of what it had computed, and in which order of dims of 1 it lies."""
    if "vmap(" not in case.before:
        return False
    return (case.kind == "value" and "_is_view()" in case.statement) or (case.kind == "strides" and "kron(" in case.statement)


def _pivots_that_tie(case: Any) -> Any:
    """Which row comes first in a decomposition of a matrix without full rank, and whether a pivot of it is 0, is decided by rounding."""
    return case.kind == "value" and re.search(r"linalg\.lu(_factor(_ex)?)?\(fit\(", case.statement)


def _assigning_to_no_elements(case: Any) -> Any:
    """``x[False] = v`` of a leaf that is a view changes nothing, and is refused here."""
    return case.kind == "raised" and "a view of a leaf Variable" in case.mine and "[False] = " in case.statement


def _leaves_of_another_shape(case: Any) -> Any:
    """After ``x.data = …`` of another shape PyTorch's accumulator keeps the old one as long as a graph holds it."""
    return re.search(r"\.data = ", case.statement + case.before) and (case.kind == "grad shape" or "invalid gradient" in case.theirs)


def _tensors_that_are_swapped(case: Any) -> Any:
    """`swap_tensors` refuses leaves of a graph at once, and memory that `set_` shares has one count of changes."""
    return case.kind == "raised" and ("Expected use_count" in case.mine or ".set_(" in case.before)


TRIFLING: tuple[Callable[[Any], Any], ...] = (
    _integers_that_require_grad, _norms_of_nothing, _complex_numbers_over_zero, _kept_results_of_second_derivatives, _views_of_batches,
    _pivots_that_tie, _assigning_to_no_elements, _leaves_of_another_shape, _tensors_that_are_swapped,
)  # fmt: skip
