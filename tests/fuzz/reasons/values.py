"""Differences in values, dtypes, strides and refusals of single ops (see `case`)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .case import Case, Explained
from .trifling import is_singular

#: calls whose result lies in another order (tests/parity/strides.py says why of those of the op database)
_ORDERS = re.compile(
    r"fft\.\w+\(|ldl_solve\(|distributions\.Beta\(|(diagonal|select)_scatter\(|lu_solve\(|conv_transpose3d\(|(rrelu|RReLU|einsum)\("
)


#: losses whose total PyTorch makes in the memory of what it sums
_LOSSES = r"(?i:smooth_?l1|mse_?loss|soft_?margin|binary_?cross_?entropy|bce)"


def _singular(seen: Any) -> bool:
    """Whether a matrix has a singular value that is 0, but for rounding."""
    values = getattr(seen, "values", None)
    if values is None or values.ndim < 2 or not np.isfinite(values).all():
        return False
    found = np.linalg.svd(values, compute_uv=False)
    return bool((found < 1e-6 * found.max(initial=1.0)).any())


def _alike(seen: Any) -> bool:
    """Whether a tensor holds the same number everywhere, but for rounding."""
    values = getattr(seen, "values", None)
    return values is not None and values.size > 1 and bool(abs(values - values.flat[0]).max() <= 1e-6 * abs(values).max())


def _nan_of_infinities(c: Case) -> bool:
    """Whether what differs are complex numbers that are infinite here and nan there, in a part or in both."""
    texts = c.what.partition(": ")[2].split(" instead of ")
    mine, theirs = ([complex(n) for n in re.findall(r"\(([^()\s]+j)\)", text)] for text in (texts[0], texts[-1]))
    other = [(m, t) for m, t in zip(mine, theirs) if not np.isclose(m, t, rtol=1e-3, equal_nan=True)]
    return bool(other) and all(np.isinf(m) and np.isnan([t.real, t.imag]).any() and not np.isfinite([t.real, t.imag]).any() for m, t in other)


VALUES = (
    Explained(
        "sums of infinite complex numbers",
        "PyTorch adds complex numbers as a + 1·b, where ∞ as the second times 1 + 0j is nan, as 0·∞ is; here 1 + ∞ is ∞, as it is the other way round.",
        lambda c: "value" in c.kind and _nan_of_infinities(c),
    ),
    Explained(
        "order of other results",
        "PyTorch's order depends on which of its kernels runs, or on gaps that it copies (tests/parity/strides.py).",
        lambda c: c.kind == "strides" and _ORDERS.search(c.statement),
    ),
    Explained(
        "ranks in half precision",
        "Of two errors, that of the dtype and that of the decomposition within, PyTorch's depends on whether a tolerance is given.",
        lambda c: c.kind == "error type" and "matrix_rank: Low precision dtypes not supported" in c.mine and "linalg_svd_cpu" in c.theirs,
    ),
    Explained(
        "lines of one element",
        "Whether a batch of lines of one element looks like channels last to PyTorch depends on a dim that its pools add.",
        lambda c: c.kind == "strides" and (of := re.search(r"adaptive_avg_pool1d\((v\d+),", c.statement))
        and getattr(c.known.get(of[1]), "shape", (0,))[-1:] == (1,),
    ),
    Explained(
        "half precision that PyTorch lacks",
        "Special functions are formulas here, which are compiled for every precision; so are distances and weights of interpolations.",
        lambda c: c.kind == "not refused" and (
            (re.search(r"_cpu\" not implemented for '(Half|BFloat16)'", c.theirs) and re.search(r"special\.|polar\(", c.statement))
            or re.search(r"\"(pdist(_backward)?|i1e?_backward|avg_pool3d_out_frame|compute_index_ranges_weights|log_ndtr_cpu|ctc_loss_cpu"
                         r"|rrelu_with_noise_out_cpu)\" not implemented for '(Half|BFloat16)'", c.theirs)
        ),
    ),
    Explained(
        "exponentials of matrices of half precision",
        "PyTorch's are nan, whatever the matrix.",
        lambda c: c.kind == "value" and "matrix_exp(" in c.statement and re.fullmatch(r"[^\w]*(nan[^\w]*)+", c.their_values),
    ),
    Explained(
        "places of half precision",
        "PyTorch computes in half precision where grid_sample's points lie, so that the nearest element may be another.",
        lambda c: c.kind == "value" and "mode='nearest'" in c.statement and (of := re.search(r"grid_sample\((v\d+), ", c.statement))
        and getattr(c.known.get(of[1]), "dtype", "") in ("float16", "bfloat16"),
    ),
    Explained(
        "layers in a precision that a processor lacks",
        "PyTorch leaves a recurrent layer under autocast to a library that has none for bfloat16 on every processor.",
        lambda c: c.kind == "not refused" and "could not create a primitive descriptor" in c.theirs and "autocast" in c.text,
    ),
    Explained(
        "spacings of several dims",
        "PyTorch's gradient along several dims does not look at the number of coordinates.",
        lambda c: c.kind == "raised" and "torch.gradient expected each tensor to be the same size" in c.mine and re.search(r"dim=\(.*,.*\)", c.statement),
    ),
    Explained(
        "faults of PyTorch",
        "It refuses what works but for a view that it makes inside, an empty list of gradients, a shape that it forgets or a mark of negatives.",
        lambda c: (c.kind == "not refused" or (c.kind == "error type" and re.match("NameError|TypeError", c.mine)))  # (of a later line)
        and (
            ("view size is not compatible" in c.theirs and "view" not in c.statement)
            or "nested_tensorlist" in c.theirs
            or ("expects a non-empty TensorList" in c.theirs and re.search(r"jacobian|hessian", c.statement))
            or re.search("(PixelShuffle|Scatter|ScatterAdd)Backward0 returned an invalid gradient", c.theirs)
            or ("CopySlices returned an invalid gradient" in c.theirs and "scatter" in c.text)
            or ("can't be cast to the desired output type" in c.theirs and re.search("addc(div|mul)", c.text))  # of integers
            or "INTERNAL ASSERT FAILED" in c.theirs
            or re.search("DispatchKey (Negative|Conjugate) doesn't correspond to a device", c.theirs)  # of new_tensor
            or "input_is_complex == grad_is_complex" in c.theirs  # a derivative of its own gives a complex gradient of a real operand
            or ("A leaf node was passed to _will_engine_execute_node" in c.theirs and "register_multi_grad_hook" in c.before)
            or "use_reentrant=True, torch.utils.checkpoint is incompatible" in c.theirs  # (it tells the one pass from the other)
        ),
    ),
    Explained(
        "medians of stretched rows",
        "Along a stretched dim PyTorch's median and nanmedian read beyond the tensor's memory.",
        lambda c: c.kind == "value"
        and (found := re.search(r"(v\d+)\.(?:nan)?median\(", c.statement))
        and any(s == 0 and n > 1 for s, n in zip(getattr(c.known.get(found[1]), "strides", ()), getattr(c.known.get(found[1]), "shape", ()))),
    ),
    Explained(
        "outputs that grow",
        "Where an out= is resized to more than its memory holds, that grows in PyTorch for all tensors that share it; here out= gets memory of "
        "its own, and is no view any more (PyTorch warns that this will be refused).",
        lambda c: (c.kind == "value" and (out := re.search(r"out=(v\d+)\[", c.statement))
        and (c.name == out[1] or (c.name.startswith("found") and re.search(rf"\n    return .*\b{out[1]}\b", c.statement))))
        or (c.kind == "not refused" and "Can't detach views in-place" in c.theirs and re.search(r"(v\d+) = torch\.zeros\(8,.*\)\[::2\];.*out=\1\)", c.text)),
    ),
    Explained(
        "classes that there are not",
        "PyTorch's ctc_loss does not look whether its targets are classes, and reads past its memory.",
        lambda c: c.kind == "raised" and "ctc_loss: targets must be in" in c.mine,
    ),
    Explained(
        "values that there are not",
        "PyTorch's attention does not look at how many values there are, and reads what stands behind them.",
        lambda c: c.kind == "raised" and "Expected key and value to have the same length" in c.mine
        and re.search("scaled_dot_product_attention", c.statement),
    ),
    Explained(
        "singular values that vanish",
        "The vectors of singular values that should be 0 are what rounding makes of them, and so is the slope of their sum; PyTorch's second derivative "
        "is nan then (0 / 0), here it is not.",
        lambda c: "value" in c.kind and (of := re.search(r"svd(?:vals)?\((?:fit\()?(v\d+)(.*create_graph=True)?", c.statement))
        and (not of[2] or re.fullmatch(r"\W*(nan\W*)+", c.their_values))
        and (_singular(c.known.get(of[1])) or ((made := re.match(rf"{of[1]} = (.+?)\.detach\(\)\.requires_grad_\(\);", c.statement))
             and is_singular(made[1], c.known))),
    ),
    Explained(
        "memory behind a loss",
        "PyTorch's sum of some losses lies in memory as large as the operands', which as_strided shows: nothing was written to it.",
        lambda c: c.kind in ("raised", "value")
        and (of := re.search(r"(v\d+)\.as_strided", c.statement))
        and getattr(c.known.get(of[1]), "shape", None) in ((), (1,))
        and (of := re.search(rf"^{of[1]} = (v\d+)\.(?:reshape|view|detach)\(", c.before, re.M) or of)
        and re.search(rf"^.*(?:{_LOSSES}).*{of[1]}\b[^=\n]* = |{of[1]}\b[^=\n]* = .*(?:{_LOSSES})", c.before, re.M),
    ),
    Explained(
        "storages of losses",
        "So does what untyped_storage() says of its size, and of that of fold's result, which PyTorch makes as large as the operand first.",
        lambda c: c.kind == "value" and "untyped_storage().nbytes()" in c.statement and re.search(rf"{_LOSSES}|\bfold\(", c.before),
    ),
    Explained(
        "signs of shrunk zeros",
        "PyTorch's softshrink makes zeros of the operand's sign in the last elements of a tensor and positive ones before, as its kernel "
        "with vectors does not do what the one without does; which shows where something divides by them.",
        lambda c: c.kind == "value"
        and re.search(r"(?i)softshrink", c.before)
        and re.search(r"solve|inv|angle|atan2|/|signbit|reciprocal", c.statement)
        and re.search(r"inf|nan|3\.14|-0\.0|True|False", c.what),
    ),
    Explained(
        "medians of expanded dims",
        "PyTorch reads memory that nothing was written to.",
        lambda c: c.kind == "value" and "median" in c.statement and re.search("expand|broadcast_to", c.before),
    ),
    Explained(
        "products of turned operands",
        "PyTorch's kron looks at its product as if that stood in C order, and refuses operands that make it lie otherwise.",
        lambda c: c.kind == "not refused" and "view size is not compatible" in c.theirs and "kron(" in c.statement,
    ),
    Explained(
        "what is left of a factor",
        "Where a matrix is not positive definite cholesky_ex leaves what its algorithm has come to.",
        lambda c: c.kind == "value" and "cholesky_ex" in c.statement and c.name.endswith("[0]") and "complex" in c.before,
    ),
    Explained(
        "solutions that there are not",
        "What solve_ex leaves where a matrix is singular, as info says in both, is what LAPACK comes to: one divides 0 by a "
        "pivot of 0, another passes over it.",
        lambda c: c.kind == "value" and c.name.endswith("[0]") and (of := re.search(r"\bsolve_ex\((fit\(v\d+, \([\d, ]+\)\)|v\d+), ", c.statement)) is not None
        and is_singular(of[1], c.known),
    ),
    Explained(
        "running statistics that share memory",
        "PyTorch updates mean and variance of a channel in turn, and reads what it normalizes in between.",
        lambda c: c.kind == "value" and (
            re.search(r"running_mean=(fit.*running_var=fit|(v\d+), running_var=\2\b)", c.statement)
            or ((given := re.search(r"batch_norm\(fit\((v\d+), .*?\), fit\((v\d+), .*?\), fit\((v\d+), (.*)", c.statement))
                and len({*given.groups()[:3], *re.findall(r"v\d+", given[4])}) < 3 + len(re.findall(r"v\d+", given[4])))
        ),
    ),
    Explained(
        "statistics in half precision",
        "PyTorch keeps mean and deviation of a norm in the precision of its operand, so that in bfloat16 (under autocast, too) a gradient is off "
        "by a twelfth, and its sum, which is 0, by more; here they are float32.",
        lambda c: "value" in c.kind and re.search(r"backward\(|autograd\.grad\(|vjp|func\.grad", c.statement)
        and re.search(r"(layer|group|instance|batch)_norm\(.*(bfloat16|half)\(|autocast\((?s:.*)(layer|group|instance|batch)_norm\(", c.before),
    ),
    Explained(
        "second derivatives that overflow",
        "A second derivative of float16 is one formula of float32 numbers here; PyTorch rounds what stands in between, which is "
        "infinite from 65520 on.",
        lambda c: "value" in c.kind and "inf" in c.their_values and "inf" not in c.what.partition(" instead of ")[0]
        and re.search(r"float16|half\(", c.text) and "create_graph=True" in c.text,
    ),
    Explained(
        "distribution functions far out",
        "Where the cdf of a Gumbel distribution is 0 or 1 PyTorch says that its operand is not in the support, which is that of the uniform numbers within.",
        lambda c: c.kind == "not refused" and "to be within the support (Interval(" in c.theirs and re.search(r"Gumbel\(.*\.cdf\(", c.statement),
    ),
    Explained(
        "the power 0 of a complex 0",
        "PyTorch's is nan, the exponential of 0 times an infinite logarithm; here it is 1, as that of a real 0 is.",
        lambda c: c.kind == "value" and "nan" in c.their_values and "(1+0j)" in c.what.partition(" instead of ")[0]
        and (given := re.search(r"(v\d+) \*\* (v\d+)|pow\((v\d+), (v\d+)\)", c.statement)) is not None
        and all(not np.all(getattr(c.known.get(n), "values", 1)) for n in given.groups() if n),
    ),
    Explained(
        "curvature of powers of 0",
        "PyTorch's second derivative of 0 ** y, y > 0, by y is nan, 0 times the square of an infinite logarithm; it is 0.",
        lambda c: "value" in c.kind and "nan" in c.their_values and "nan" not in c.what.partition(" instead of ")[0]
        and re.search(r"\*\* |pow\(", c.text) and re.search(r"create_graph=True|hessian|func\.\w+\(.*func\.", c.text),
    ),
    Explained(
        "curvature of angles of 0",
        "PyTorch's second derivative of atan2(0, 0) is nan, as the first one is 0 by a mask over an infinite number; here it is 0.",
        lambda c: "value" in c.kind and "nan" in c.their_values and "nan" not in c.what.partition(" instead of ")[0]
        and re.search(r"\b(arctan2|atan2)_?\(", c.text) and re.search(r"create_graph=True|hessian|func\.\w+\(.*func\.", c.text),
    ),
    Explained(
        "slopes of von Mises distributions",
        "PyTorch's derivative by a large concentration (from e⁵ in float16 and e¹⁰ in float32 on) is nan: that of a polynomial which overflows where another "
        "one is taken.",
        lambda c: "value" in c.kind and c.their_values.count("nan") > c.what.partition(" instead of ")[0].count("nan")
        and re.search(r"VonMises\(.*\.log_prob\(", c.text) and re.search(r"backward\(|autograd\.grad\(", c.statement),
    ),
    Explained(
        "norms of equal numbers",
        "What is left of numbers that are all alike when their mean is taken off is rounding, here of a sum and in PyTorch of a running mean.",
        lambda c: c.kind == "value"
        and (given := re.search(r"(?:layer|group|instance|batch)_norm\((v\d+),", c.statement))
        and _alike(c.known.get(given[1])),
    ),
    Explained(
        "complex targets",
        "Of a complex target PyTorch computes this loss where nothing requires grad and no weight of positives is given; its derivative is refused.",
        lambda c: c.kind == "raised" and '"binary_cross_entropy_with_logits" not implemented for complex' in c.mine,
    ),
    Explained(
        "silu of complex numbers in place",
        "PyTorch refuses to differentiate silu of complex numbers, but not in place, where its derivative is wrong, as finite differences show.",
        lambda c: c.kind == "raised" and "silu does not support automatic differentiation for outputs with complex dtype" in c.mine
        and "inplace=True" in c.text,
    ),
    Explained(
        "dtypes of a triangular system",
        "PyTorch does not look at the dtypes of linalg.solve_triangular's operands, and reads the one's memory as the other's.",
        lambda c: c.kind == "raised" and "solve_triangular: Expected A and B to have the same dtype" in c.mine,
    ),
    Explained(
        "rows of nan",
        "PyTorch's unique sorts rows by a comparison that is no order where there are nan, so that equal rows may stay apart; here nan come last.",
        lambda c: c.kind in ("value", "shape") and (of := re.search(r"(v\d+)\.unique\(.*dim=|torch\.unique\((v\d+),.*dim=", c.statement)) is not None
        and bool(np.isnan(getattr(c.known.get(of[1] or of[2]), "values", np.zeros(1))).any()),
    ),
    Explained(
        "cov in place",
        "PyTorch's cov of a single observation with weights writes the centred value into its operand.",
        lambda c: c.kind == "value" and (held := re.search(r"torch\.cov\((v\d+),.*aweights=v", c.statement)) and held[1] == c.name
        and c.known[c.name].values.size == 1,
    ),
    Explained(
        "written into expanded memory",
        "PyTorch's baddbmm_ and max_norm do not look whether the elements that they write are different ones: what is left depends on the order.",
        lambda c: c.kind == "raised" and re.search(r"\.baddbmm_\(|max_norm=", c.statement) and "more than one element of the written-to tensor" in c.mine,
    ),
    Explained(
        "gradients of addr and logaddexp",
        "PyTorch's promote their operands, and their derivatives multiply and subtract them as they are, which is refused.",
        lambda c: c.kind == "not refused" and re.search(r"backward|grad\(", c.statement) and (
            ("addmv input tensors must have the same dtype" in c.theirs and re.search(r"\.addr_?\(", c.before))
            or ("with a bool tensor is not supported" in c.theirs and re.search(r"logaddexp2?\(", c.before))
        ),
    ),
    Explained(
        "huber_loss's gradient",
        "Of operands of different dtypes PyTorch computes the loss, and refuses its derivative.",
        lambda c: ((c.kind == "not refused" and re.search(r"Found dtype \w+ but expected \w+", c.theirs))
                   or (c.kind.startswith("grad ") and re.search(r"Found dtype \w+ but expected \w+", c.error)))  # (the first of several passes)
        and re.search(r"backward|grad\(|jvp\(", c.statement) and re.search(r"(?i)huber_?loss\(", c.text),
    ),
    Explained(
        "slopes of activations at nan",
        "PyTorch's kernels for whole vectors, of 8 elements and more, make 0 or nan of a gradient at nan, those for the rest of a tensor pass it on, as is "
        "done here.",
        lambda c: "value" in c.kind and re.search(r"backward|grad\(|jvp\(|jac|hess", c.statement)
        and re.search(r"(?i)(soft|hard)shrink|hardtanh|relu6|hardswish|(?<![rg])elu\b|selu|celu", c.text)
        and re.search("extreme|nan", c.text)
        and any(np.size(getattr(s, "values", 0)) >= 8 for s in c.known.values()),
    ),
    Explained(
        "two faults of a norm",
        "Where operands differ in dtype and the input is complex, PyTorch may name the one and this library the other.",
        lambda c: c.kind == "error type" and "mixed dtype (CPU)" in c.mine and "not implemented for 'Complex" in c.theirs,
    ),
    Explained(
        "two faults of an index_put",
        "Where neither the index nor the shape of the values fits, PyTorch names the shape and this library the index.",
        lambda c: c.kind == "error type" and "index_put" in c.statement and "is out of bounds for dimension" in c.mine
        and "shape mismatch: value tensor" in c.theirs,
    ),
    Explained(
        "lists that name a tensor twice",
        "What is changed twice by a _foreach op in place is differentiated by one of the changes in PyTorch.",
        lambda c: "value" in c.kind and re.search(r"_foreach_\w+_\(\[(v\d+), \1[],]", c.before),
    ),
    Explained(
        "whole numbers without a sign",
        "PyTorch's binary cross entropy takes 1 off an unsigned weight of positives, of which 0 becomes 255; so does the derivative of soft_margin_loss "
        "negate unsigned targets.",
        lambda c: "value" in c.kind and (
            re.search(r"pos_weight=[^=]*uint8", c.text)
            or (re.search(r"soft_margin_loss\(.*'uint8'", c.before) and re.search(r"backward\(|autograd\.grad\(", c.statement))
        ),
    ),
    Explained(
        "names of operands",
        "PyTorch's functions take NumPy's names of operands, x, a, x1 and x2, too; here those do which are called by way of another function, as no call is to "
        "pay for them.",
        lambda c: c.kind == "raised" and (named := re.search(r"\(\) got an unexpected keyword argument '(x|a|x1|x2)'", c.mine))
        and re.search(rf"\b{named[1]}=", c.statement),
    ),
    Explained(
        "no decimals",
        "PyTorch rounds integers only if decimals is not given; 0, which is its default, is refused.",
        lambda c: c.kind == "not refused" and "round_vml_cpu" in c.theirs and "decimals=0" in c.statement,
    ),
    Explained(
        "writes are computed before they land",
        "PyTorch refuses to read and write overlapping memory in one op; reads come before writes here.",
        lambda c: c.kind in ("not refused", "error type") and "some elements of the input tensor and the written-to tensor refer" in c.theirs,
    ),
    Explained(
        "memory can be resized",
        "Memory that came from NumPy can be exchanged for larger memory here.",
        lambda c: c.kind == "not refused" and "storage that is not resizable" in c.theirs,
    ),
    Explained(
        "arrays as operands",
        "PyTorch leaves tensor * array to NumPy, which cannot read a tensor that requires grad; here the array is taken as a tensor.",
        lambda c: (c.kind == "not refused" and "Can't call numpy()" in c.theirs and not re.search(r"numpy\(|np\.", c.statement))
        or (c.kind == "not refused" and "for *: 'numpy.ndarray' and 'Tensor'" in c.theirs)
        or (c.kind == "error type" and "operands could not be broadcast together" in c.theirs)
        or (c.kind == "error type" and "for *: 'numpy.ndarray' and 'Tensor'" in c.theirs)
        or (c.kind == "dtype" and (asked := re.search(r"np\.sin\((v\d+)", c.statement))
            and re.match(r"u?int|bool|float16", getattr(c.known.get(asked[1]), "dtype", "")))
        or (c.kind == "strides" and "np.sin(" in c.statement and c.tied)
        or (
            c.kind in ("strides", "dtype")
            and (both := re.search(r"(v\d+) \* (v\d+)$", c.statement))
            and any(c.array(name) for name in both.groups())
        ),
    ),
    Explained(
        "Airy functions",
        "From -3.2 to -2.09 PyTorch's airy_ai is off by up to 3e-6; SciPy's agrees with this one.",
        lambda c: c.kind == "value" and "airy_ai(" in c.statement,
    ),
    Explained(
        "gelu of infinities",
        "PyTorch's gelu of +∞ is nan where oneDNN computes it (float32 and bfloat16 of more than one element), ∞ in float64.",
        lambda c: c.kind == "value" and "inf" in c.what and "nan" in c.what
        and re.search(rf"(?i)gelu|\b{re.escape(c.name)}\b[^=\n]* = .*gelu", c.statement),
    ),
    Explained(
        "complex numbers of half precision",
        "What PyTorch has no kernel for is refused here too, but for a few ops that only move elements or compare them.",
        lambda c: c.kind in ("not refused", "error type") and "'ComplexHalf'" in c.theirs,
    ),
)
