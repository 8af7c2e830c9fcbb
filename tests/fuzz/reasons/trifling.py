"""Small differences that are meant: what each is, and a test of a `explained.Case` that is as narrow."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .graph import detached

WHOLE = ("int", "uint", "bool")


def _integers_that_require_grad(case: Any) -> Any:
    """PyTorch says so of integers into which values that require grad were copied."""
    if case.kind not in ("requires_grad", "history", "leaf") or not re.search(r"\] = |copy_\(", case.statement):
        return False
    return getattr(case.known.get(case.name), "dtype", "").startswith(WHOLE)


def _norms_of_nothing(case: Any) -> Any:
    """The gradient of a group norm's weight is nan in PyTorch where there is nothing to normalize, that of all other norms 0."""
    norms = re.search(r"(?i)group_?norm", case.text)
    return case.empty and "value" in case.kind and norms and re.fullmatch(r"\W*(nan\W*)+", case.their_values)


def _complex_numbers_over_zero(case: Any) -> Any:
    """Parts of a complex number over 0 are infinite or nan."""
    return case.kind == "value" and "addcdiv" in case.statement and "j" in case.their_values and re.search("nan|inf", case.their_values)


def _kept_results_of_second_derivatives(case: Any) -> Any:
    """The recorded derivative of logsumexp keeps what it has returned, which may not be changed before the next pass."""
    return case.kind == "raised" and "output 0 of LogsumexpBackward" in case.mine and "create_graph=True" in case.before


def _views_of_batches(case: Any) -> Any:
    """Whether what vmap returns is a view of what it had computed, and in which order of dims of 1 it lies."""
    mapped = set(re.findall(r"(v\d+)\b[^=\n]* = torch\.(?:func\.)?vmap\(", case.before))
    asked = re.findall(r"(v\d+)\._is_view\(\)", case.statement)
    if case.kind in ("raised", "not refused") and "Can't detach views in-place" in case.mine + case.theirs:
        mapped |= set(re.findall(r"(v\d+)\b[^=\n]* = torch\.(?:func\.)?vmap\(", case.statement))
        return not mapped.isdisjoint(detached(case.statement))
    if case.kind == "value" and asked:
        return mapped.issuperset(asked)
    if case.kind in ("requires_grad", "leaf", "history"):  # of a part of such a view, which is asked to require grad
        held = re.match(r"(v\d+)\.requires_grad_\(", case.statement)
        return held and held[1] in mapped and re.search(rf"^{case.name} = {held[1]}[.\[]", case.before, re.M)
    return case.kind == "strides" and "kron(" in case.statement and not mapped.isdisjoint(re.findall(r"v\d+", case.statement))


def _pivots_that_tie(case: Any) -> Any:
    """Which row comes first in a decomposition of a matrix that repeats its numbers, and whether a pivot of it is 0, is decided by rounding."""
    given = re.search(r"\.lu(?:_factor(?:_ex)?)?\(fit\((v\d+), \(([\d, ]+)\)", case.statement)
    values = getattr(case.known.get(given[1]), "values", None) if given else None
    return case.kind == "value" and given and values is not None and len(set(values.flat)) < math.prod(map(int, re.findall(r"\d+", given[2])))


def _assigning_to_no_elements(case: Any) -> Any:
    """``x[False] = v`` of a leaf that is a view changes nothing, and is refused here."""
    return case.kind == "raised" and "a view of a leaf Variable" in case.mine and re.match(r"v\d+\[False\] = ", case.statement)


def _leaves_of_another_shape(case: Any) -> Any:
    """After ``x.data = …`` of another shape PyTorch's accumulator keeps the old one as long as a graph holds it."""
    text = case.text
    if "invalid gradient" in case.theirs and "but expected shape compatible with" in case.theirs:
        return case.kind == "not refused" and re.search(r"\bv\d+\.data = ", text)
    asked = re.search(r"autograd\.grad\(.*?, \[?(v\d+)(?:, (v\d+))?\]?[,)]", case.statement)
    if case.kind == "shape" and asked:
        return any(n and re.search(rf"\b{n}\.data = ", case.before) for n in asked.groups())
    if case.kind == "shape" and (read := re.search(rf"\b{case.name} = (v\d+)\.grad\b", case.statement)):
        return re.search(rf"^{read[1]}\.data = ", case.before, re.M)
    if case.kind == "error type":  # of a pass over operands that do not fit any more
        told = re.search(r"(?i)size|shape|broadcast|dimension|expand", case.mine) and re.search(r"(?i)size|shape|broadcast|dimension|expand", case.theirs)
        return told and re.search(r"\bv\d+\.data = ", case.before) and re.search(r"backward\(|autograd\.grad\(", case.statement)
    if case.kind == "not refused" and re.search("attempting to assign a gradient (with dtype|of size)", case.theirs):  # to a copy
        return "deepcopy" in case.statement and re.search(r"\bv\d+\.data = ", case.before)
    return case.kind == "grad shape" and re.search(rf"\b{case.name}\.data = ", text)


def _tensors_that_are_swapped(case: Any) -> Any:
    """`swap_tensors` refuses leaves of a graph at once."""
    return case.kind in ("raised", "error type") and "Expected use_count" in case.mine and "swap_tensors(" in case.statement  # (or a later line is refused)


def _given_gradients_that_are_kept(case: Any) -> Any:
    """PyTorch keeps the gradient that backward is given as a leaf's, a view of the leaf itself where that is given, and adds later ones to it."""
    return case.kind == "value" and re.search(r"backward\((v\d+), \1[,)]", case.before)


def _means_of_infinities(case: Any) -> Any:
    """PyTorch's var_mean comes to nan by taking infinities off one another; its mean does not."""
    return case.kind == "value" and re.search(r"(var|std)_mean\(", case.statement) and "inf" in case.what and "nan" in case.their_values


def _distributions_of_nothing(case: Any) -> Any:
    """PyTorch's distributions over vectors reshape parameters without elements in a way that is no shape."""
    return case.kind in ("not refused", "error type") and "size -1 can be any value and is ambiguous" in case.theirs and "distributions." in case.statement


def _decompositions_of_infinities(case: Any) -> Any:
    """What LAPACK's algorithms make of infinities and nan depends on which products with 0 they leave out, and in what order they go."""
    if case.kind == "raised":
        return case.unbounded and "non-finite values" in case.mine and re.search(r"svd|cond\(|norm\(|rank\(|pinv", case.statement)
    return case.kind == "value" and case.unbounded and re.search(
        r"linalg\.(?!\w*norm|cross|vec|multi_dot|matmul|diagonal|vander)|householder|lu_|cholesky|triangular|inverse|pinv|det\(|solve", case.statement
    )


def _polynomials_of_nan(case: Any) -> Any:
    """PyTorch's orthogonal polynomials of nan return what nothing was written to; here recurrences are float64's, in which less overflows to infinities
    that are taken off one another."""
    narrow = any(getattr(seen, "dtype", "") == "float32" and abs(seen.values).max(initial=0) > 9 for seen in case.known.values())
    return case.kind == "value" and "_polynomial_" in case.statement and (case.unbounded or (narrow and "inf" in case.what and "nan" in case.their_values))


def _sums_of_infinities(case: Any) -> Any:
    """Which parts of a transform of infinities are nan depends on the algorithm; a convolution here multiplies the padding with its weights,
    and an attention leaves out keys that are masked."""
    return case.kind == "value" and case.unbounded and re.search(r"fft\.|stft\(|(?i:conv|attention)", case.statement)


def _planned_sums(case: Any) -> Any:
    """The order of an einsum of three is planned by a package that PyTorch finds, with errors of its own."""
    return case.kind == "error type" and re.search("Einstein sum subscript|Size of label", case.theirs)


def _conditions_of_singular_matrices(case: Any) -> Any:
    """How far a least singular value that should be 0 is from it is rounding."""
    return case.kind == "value" and "linalg.cond(" in case.statement and re.search(r"inf|e\+(1[2-9]|[2-9]\d|\d{3})", case.what)


def evaluated(text: str, known: dict[str, Any]) -> Any:
    """What an expression is in PyTorch, of the values that names have."""
    from ..program import new_space

    space = new_space(torch)
    space.update({n: torch.from_numpy(seen.values) for n in re.findall(r"v\d+", text) if (seen := known.get(n)) is not None})
    return eval(text, space)


def is_singular(operand: str, known: dict[str, Any]) -> bool:
    """Whether a matrix that is written with `make`, `spd` and `fit` has a singular value of 0, but for rounding."""
    values = torch.linalg.svdvals(evaluated(operand, known).double())
    return bool((values.amin(-1) <= 1e-6 * values.amax(-1)).any())


def _singular_but_for_rounding(case: Any) -> Any:
    """Whether the last pivot of a matrix is 0, of numbers in a row, whose rank is 2, or of one whose singular values say so."""
    factored = re.search(r"lu_factor\((fit\(v\d+, \([\d, ]+\)\)|spd\(make\([^()]*\([^()]*\)[^()]*\)\))", case.statement)
    if case.kind in ("raised", "not refused") and factored and "is zero and using it on lu_solve" in case.mine + case.theirs:
        return is_singular(factored[1], case.known)
    given = re.search(r"(tensor)?(?:solve|inv|inverse)\((fit\(v\d+, \(([\d, ]+)\)\))", case.statement)
    if not given or case.kind not in ("raised", "not refused") or "singular" not in case.mine + case.theirs:
        return False
    side = math.isqrt(math.prod(map(int, re.findall(r"\d+", given[3]))))
    return is_singular(f"{given[2]}.reshape({side}, {side})" if given[1] else given[2], case.known)


def _slopes_of_singular_triangles(case: Any) -> Any:
    """The derivative of a QR decomposition divides by pivots, of which one should be 0 where the matrix is singular: it is what rounding makes of that."""
    given = re.search(r"\bqr\((fit\(v\d+, \([\d, ]+\)\)|v\d+)\)", case.statement)
    return "value" in case.kind and given and re.search(r"backward\(|grad\(", case.statement) and is_singular(given[1], case.known)


def _imaginary_parts_of_rounding(case: Any) -> Any:
    """A complex number whose imaginary part should be 0, but for rounding, is no real one."""
    if case.kind == "not refused" and "value cannot be converted to type double without overflow" in case.theirs:
        asked = re.search(r"\bfloat\((.+)\)$", case.statement)
        value = complex(evaluated(asked[1], case.known)) if asked else 1j
        return abs(value.imag) < 1e-5 * max(1, abs(value))
    told = re.search(r"\(([-+.\de]+?)([-+][.\d]+(?:e[-+]\d+)?)j\) has an imaginary part", case.mine)
    return case.kind == "raised" and told and abs(float(told[2])) < 1e-9 * max(1, abs(float(told[1])))


def _versions_of_copies(case: Any) -> Any:
    """A clone of an inference tensor counts the write that fills it in PyTorch."""
    asked = re.search(r"(v\d+)\._version\b", case.statement)
    return case.kind == "value" and asked and "inference_mode" in case.before and re.search(rf"\b{asked[1]} = v\d+\.clone\(\)", case.before)


def _states_of_lbfgs(case: Any) -> Any:
    """Its state has numbers for what are tensors without dims in PyTorch's, in another order."""
    held = case.name.partition("[")[0]
    given = rf"LBFGS(?s:.*)\b{held} = v\d+\.state_dict\(\)" if "['state']" in case.name else r"LBFGS(?s:.*)\.state\.values\(\)"
    return case.kind in ("shape", "none", "value", "dtype") and re.search(given, case.text)


def _gradients_of_nan_of_logcumsumexp(case: Any) -> Any:
    """PyTorch takes logarithms of an incoming gradient where it is positive, and where it is negative, and leaves out what is nan."""
    return "value" in case.kind and "logcumsumexp" in case.before and "nan" in case.what and "nan" not in case.their_values


def _order_of_ties(case: Any) -> Any:
    """PyTorch's sort is stable where it is asked to be; into given tensors it need not be."""
    return case.kind == "value" and case.name.endswith("[1]") and re.search(r"sort\(.*out=", case.statement)


def _signs_of_triangles(case: Any) -> Any:
    """Which sign a row of a QR decomposition has depends on that of a 0 for one LAPACK, and not for another."""
    zeros = (getattr(case.known.get(n), "values", None) for n in re.findall(r"v\d+", case.statement))
    return case.kind == "value" and "linalg.qr(" in case.statement and any(
        z is not None and z.dtype.kind == "f" and bool((np.signbit(z) & (z == 0)).any()) for z in zeros
    )


def _retained_by_a_leaf(case: Any) -> Any:
    """What was asked to retain its gradient, and then detached in place, is a leaf, of which retains_grad is False by PyTorch's documentation."""
    asked = re.search(r"(v\d+)\.retains_grad", case.statement)
    return case.kind == "value" and asked and case.known[asked[1]].leaf and re.search(rf"\b{asked[1]}\.retain_grad\(", case.before)


def _two_faults_at_once(case: Any) -> Any:
    """Memory that overlaps, or a view that may not be looked at, beside an index or a dim that does not fit: one of them is named."""
    both = case.mine + case.theirs
    if case.kind == "error type" and "Trying to backward outside of the 'allow_mutation_on_saved_tensors'" in case.theirs:
        return "modified by an inplace" in case.mine
    if case.kind == "error type" and "post accumulate grad hooks should return None" in case.mine:  # a hook that returns what it may not, of no gradient
        return "'NoneType' object has no attribute 'mul_'" in case.theirs or "must be Tensor, not NoneType" in case.theirs
    if case.kind == "error type" and "\"bmm\" not implemented for 'Bool'" in case.theirs:  # (which it looks at first where matrices are small)
        return "expected m1 and m2 to have the same dtype" in case.mine
    if case.kind == "error type" and "size mismatch (got input: " in case.theirs:  # of a loss of one sample, in a batch of them
        return "vmap(" in case.statement and "match target batch_size" in case.mine
    return case.kind == "error type" and "IndexError" in both and re.search(
        r"refer to a single memory location|A view was created in|a function that returns multiple views", both
    )


TRIFLING: tuple[Callable[[Any], Any], ...] = (
    _integers_that_require_grad, _norms_of_nothing, _complex_numbers_over_zero, _kept_results_of_second_derivatives, _views_of_batches,
    _pivots_that_tie, _assigning_to_no_elements, _leaves_of_another_shape, _tensors_that_are_swapped,
    _given_gradients_that_are_kept, _means_of_infinities, _distributions_of_nothing,
    _decompositions_of_infinities, _polynomials_of_nan, _sums_of_infinities, _planned_sums,
    _conditions_of_singular_matrices, _singular_but_for_rounding, _slopes_of_singular_triangles, _imaginary_parts_of_rounding,
    _versions_of_copies, _states_of_lbfgs, _gradients_of_nan_of_logcumsumexp,
    _order_of_ties, _signs_of_triangles, _retained_by_a_leaf, _two_faults_at_once,
)  # fmt: skip
