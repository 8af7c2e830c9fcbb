"""Differences in forward mode, in batches and in what `torch.func` returns (see `case`)."""

from __future__ import annotations

import re
from typing import Any

from ..program import UNREADABLE
from .case import Case, Explained


def _tangents(case: Case) -> Any:
    """Whether a statement gives a primal and a tangent of different dtypes."""
    given = case.statement.partition("jvp(")[2]
    kinds = {getattr(case.known.get(name), "dtype", "") for name in re.findall(r"v\d+", given)}
    return len(kinds | set(re.findall(r"[\"'](float\d+|complex\d+)[\"']", given))) > 1


TRANSFORMS = (
    Explained(
        "rules that PyTorch lacks",
        "Batches go sample by sample where an op has no rule for them, and every derivative can be asked for in forward mode.",
        lambda c: (
            c.kind in ("not refused", "error type")
            and re.search(
                r"forward AD with|atching rule|fallback path|dynamic shape|vmap over torch|data-dependent control flow|ZeroTensors|no storage"
                r"|doesn't have storage|cannot have forward grad",
                c.theirs,
            )
        )
        or (c.kind == "raised" and "is not differentiable with respect to argument" in c.mine and "vmap(" in c.statement),
    ),
    Explained(
        "tangents that PyTorch lacks",
        "Of Bessel functions and of products by scatter_reduce PyTorch's are 0 without a word; those of cholesky_inverse read both triangles, of "
        "max_unpool they are one of those that a place has, of complex silu they are conjugates, and of means of nothing they are nan. Tangents "
        "of expanded tensors have memory of their own.",
        lambda c: (c.kind == "not refused" and "func.hessian(" in c.statement and "more than one element of the written-to tensor" in c.theirs
                   and any(0 in getattr(c.known.get(n), "strides", ()) for n in re.findall(r"v\d+", c.statement)))
        or ("jvp(" in c.statement and (
            (c.kind == "value" and re.search(r"bessel|scatter_reduce.*'prod'|cholesky_inverse|max_unpool", c.statement))
            or (c.kind == "value" and "silu" in c.statement and "j" in c.their_values)
            or (c.kind == "value" and "masked.logsumexp" in c.statement)  # (0 / 0 where all is masked)
            or (c.kind == "not refused" and "more than one element of the written-to tensor" in c.theirs)
            or (c.kind == "value" and c.empty and "nan" in c.their_values and re.search(r"mean|loss|kl_div|cross_entropy|logsumexp", c.statement))
            or (c.kind == "not refused" and re.search(r"scatter_reduce", c.statement) and "Expected a proper Tensor but got None" in c.theirs)
            or (c.kind == "not refused" and "batch_norm" in c.statement and "not implemented for 'Complex" in c.theirs)
            or (c.kind == "error type" and "more than one element of the written-to tensor" in c.theirs)
        )),
    ),
    Explained(
        "indices of batches",
        "PyTorch's index_select of a batch is a gather, which names an index out of range otherwise, and numbers that index_add takes are rows of one.",
        lambda c: c.kind == "error type" and "vmap(" in c.statement and "IndexError" in c.mine and (
            ("index_select" in c.statement and "out of bounds for dimension" in c.theirs)
            or ("index_add" in c.statement and "Number of indices" in c.theirs and "tensor has no dimensions" in c.mine)),
    ),
    Explained(
        "passes with zeros",
        "PyTorch's jacobian(vectorize=True) of several results asks for all of them at once, so that what is infinite in the derivative of one is nan in "
        "those of the others, by products with 0; without vectorize it gives what is given here.",
        lambda c: c.kind == "value" and "vectorize=True" in c.statement and "jacobian(" in c.statement and c.unbounded and "nan" in c.their_values,
    ),
    Explained(
        "changes without changes",
        "PyTorch's functionalize makes an op that returns its result of one in place, which need not fit into its operand then.",
        lambda c: c.kind == "raised" and "functionalize(" in c.statement and "can't be cast to the desired output type" in c.mine,
    ),
    Explained(
        "tangents of windows",
        "Where elements of a primal share memory, so do those of its tangent in PyTorch, whose Jacobian by forward mode is then not the one that its "
        "reverse mode and finite differences give, and this library.",
        lambda c: c.kind == "value" and c.windows and re.search(r"jvp\(|jacfwd\(|hessian\(|make_dual\(", c.statement),
    ),
    Explained(
        "curvature at infinities",
        "PyTorch's hessian multiplies tangents of 0 with infinite numbers; its own jacrev of jacrev is 0 there, as it is here.",
        lambda c: c.kind == "value" and c.unbounded and "func.hessian(" in c.statement and "nan" in c.their_values,
    ),
    Explained(
        "tangents of inference tensors",
        "PyTorch forgets without a word the tangent of what was made in inference mode, in ops that have no other operands.",
        lambda c: "inference_mode" in c.before and (
            (c.kind == "none" and re.search(r"make_dual|jvp\(|forward_ad", c.text))
            or (c.kind == "value" and ("linearize(" in c.statement or any(
                re.search(rf"\b{v}\(", c.statement) for v in re.findall(r"\b(v\d+) = torch\.func\.linearize\(.*\)$", c.before, re.M))))),
    ),
    Explained(
        "batches that are left behind",
        "Batched gradients of a tensor with retain_grad() are left in its .grad by PyTorch, which goes on computing with what is no "
        "tensor any more.",
        lambda c: (c.kind == "raised" and "A tensor that was made inside vmap was used after it had ended" in c.mine
        and re.search(r"retain_grad\(\)|backward\(inputs=\[", c.before) and "is_grads_batched=True" in c.before)
        # (of no elements, which a hook has kept)
        or (c.kind == "none" and "is_grads_batched=True" in c.statement and UNREADABLE in c.what
            and re.search(rf"register_hook\(.*\b{c.name.partition('[')[0]}\.(extend|append)\(", c.before)),
    ),
    Explained(
        "third derivatives of norms",
        "PyTorch's second derivatives of layer, batch and instance norm take mean and deviation for constants where they are differentiated again: its third "
        "ones are off by half of their size, as finite differences show.",
        lambda c: "value" in c.kind and re.search(r"(?i)(layer|batch|instance)_?norm(\dd)?\(", c.text) and c.text.count("create_graph=True") > 1
        and re.search(r"backward\(|grad\(", c.statement),
    ),
    Explained(
        "third derivatives of polynomials",
        "What a second derivative is differentiated by depends on no values for z³: nothing is kept that a change could spoil.",
        lambda c: c.kind == "not refused" and "has been modified by an inplace operation" in c.theirs
        and re.search(r"(hessian|grad\(lambda z: torch\.func\.grad)\(.*\*\* 3", c.before),
    ),
    Explained(
        "ties of batches",
        "Which of two dims with one stride comes first in a result depends on where the batch stands; PyTorch leaves it in its place until "
        "the mapped function returns.",
        lambda c: c.kind == "strides" and "vmap(" in c.statement and c.tied,
    ),
    Explained(
        "solutions of a batch",
        "A batch of vectors by vmap of linalg.solve lies in C order here; in PyTorch it does not, so that its contiguous() is a copy.",
        lambda c: c.kind == "raised" and "modified by an inplace" in c.mine and "saved by LinalgSolveEx" in c.mine
        and re.search(r"vmap\(torch\.linalg\.solve\)\(.*\)\.contiguous\(\)", c.before),
    ),
    Explained(
        "vectors beside batches of matrices",
        "PyTorch's rule of linalg.solve for batches takes one vector beside several matrices for a matrix, which does not fit; a map by hand gives what is "
        "given here.",
        lambda c: c.kind == "not refused" and "vmap(torch.linalg.solve)" in c.statement
        and re.search(r"linalg.solve: Incompatible shapes|must match the size of tensor", c.theirs),
    ),
    Explained(
        "results of transforms",
        "Those of jacrev and hessian are several views of one tensor in PyTorch, which then refuses to change them.",
        lambda c: c.kind in ("not refused", "error type") and "function that returns multiple views" in c.theirs and re.search(r"jac|hess", c.before),
    ),
    Explained(
        "maps over nothing",
        "PyTorch's vmap folds a batch of no samples into another dim, whose size it then cannot tell, or asks for the first sample of numbers.",
        lambda c: (c.kind == "not refused" and c.empty and "func.hessian(" in c.statement
                   and "select(): index 0 out of range for tensor of size [0" in c.theirs)
        or ("func.vmap(" in c.statement and re.search(r"= make\(\d+, \(0,", c.before)
        and (
            (c.kind == "not refused" and "select(): index 0 out of range for tensor of size [0" in c.theirs  # numbers, and means that are numbers
             and (re.search(r"= make\(\d+, \(0,\)", c.before)
                  or re.search(r"cross_entropy|nll_loss|multilabel_soft_margin|masked\.(mean|var|std)|\b(con)?cat", c.statement)))
            or (c.kind == "not refused" and re.search(r"cannot reshape tensor of 0 elements|non-positive groups", c.theirs))
            or (c.kind == "shape" and re.search(r"pool|norm|\.pad\(|interpolate|upsample|shuffle|grid_sample", c.statement))
        )),
    ),
    Explained(
        "maps that PyTorch takes apart",
        "PyTorch's rules for batches count a change that the map itself makes, write into expanded memory, do not change what as_strided_ is "
        "asked to, look for a dim that a number has not, and refuse complex numbers that the op itself takes.",
        lambda c: "func.vmap(" in c.text and (
            (c.kind == "not refused" and "has been modified by an inplace" in c.theirs
             and re.search(r"\.(cumprod|index_reduce|pow|float_power|ldexp|hypot)_\(", c.before))
            or (c.kind == "not refused" and re.search(r'(KernelImpl|batch_norm)" not implemented', c.theirs))
            or (c.kind == "raised" and (to := re.search(r"\b(v\d+)\.\w+_\(|batch_norm\(v1, (v2)|embedding_bag\((v1),.*max_norm=", c.statement))
             and re.search(rf"^{to[1] or to[2] or to[3]} = .*\.expand\(", c.before, re.M) and "more than one element of the written-to tensor" in c.mine)
            or (c.kind in ("raised", "shape") and ".as_strided_(" in c.statement)
            or (c.kind == "raised" and re.search(r"at least [12] dimension|zero-dimensional tensor|Got self\.shape = \[\]", c.mine))
            or (c.kind == "raised" and ".cumsum_(" in c.statement and "cumsum_out_cpu" in c.mine)
            or (c.kind == "not refused" and c.empty and (
                (re.search(r"\.pad\(|pool|unfold", c.statement) and re.search(r"non-batch dimension|batch mode", c.theirs))
                or ("block_diag(" in c.statement and "non-empty list" in c.theirs)
                or ("norm(" in c.statement and "at least one element" in c.theirs)
                or ("roll(" in c.statement and "Dimension out of range" in c.theirs)))
            or (c.kind == "raised" and "ldl_factor" in c.mine and "is zero: the matrix is singular" in c.mine)
        ),
    ),
    Explained(
        "what a refused jvp has come to",
        "A jvp that is refused for want of a derivative has run the function before, also what that changes in place.",
        lambda c: c.kind == "value" and "jvp(" in c.statement and re.search(r"floor_divide_|heaviside_", c.statement),
    ),
    Explained(
        "tangents of numbers",
        "PyTorch's tangent of a 0-d float32 is float64 where a rule multiplies it with a number.",
        lambda c: c.kind == "dtype" and "jvp(" in c.statement and re.search(r"v1 = make\(1, \(\), 'float32'", c.before),
    ),
    Explained(
        "dtypes of tangents",
        "Where a tangent has another dtype than its primal, the result's is what both promote to; in PyTorch it depends on the function.",
        lambda c: (c.kind == "dtype" or "expected both vectors to have same dtype" in c.theirs) and _tangents(c),
    ),
)
