"""Differences where a tensor without elements takes part (see `case`)."""

from __future__ import annotations

import re

from .case import Explained

#: refusals for a dtype that PyTorch does not come to where there is nothing (found by walking all ops with such operands)
_UNSEEN = re.compile(
    r'"(lu_cpu|cholesky_cpu|ldl_(factor|solve)_kernel_cpu|linalg\.lu_solve_cpu|cdist|histogramdd|(log_)?softmax|adaptive_avg_pool[12]d|grid_sampler'
    r'|searchsorted_out_cpu|amax|amin|median_cpu|exponential_cpu)" not implemented for'
    r'|matrix_rank: (Low precision dtypes|Expected a floating)|\((bmm|einsum|matmul|cdist)\(\);|^\w+: grid_sampler\(|running_var of instance_norm\)'
    r"|matmul\(\): not implemented for 'Bool'"
    r"|(softmax_lastdim_kernel_impl\" not implemented|expected scalar type Float but found) .*scaled_dot_product_attention"
    r"|\"(sum|prod|cumsum|cumprod|(log_)?softmax)\" not implemented for 'ComplexHalf'"
)

NOTHING = (
    Explained(
        "what attention to nothing keeps",
        "Where there is no query PyTorch's keeps no operands.",
        lambda c: c.kind == "raised" and "modified by an inplace" in c.mine and "saved by ScaledDotProductAttention" in c.mine,
    ),
    Explained(
        "the gradient of nothing",
        "That of cummax and cummin is in PyTorch the operand itself, which requires grad; that of an attention to nothing has no history there.",
        lambda c: c.kind in ("requires_grad", "leaf", "history") and c.empty and re.search(r"cummax|cummin|block_diag|scaled_dot_product", c.before),
    ),
    Explained(
        "rows of nothing",
        "An empty operand of 1 dim is a row without columns of a block_diag, which PyTorch's derivative passes over: the gradients of operands behind it are "
        "those of rows before theirs.",
        lambda c: "value" in c.kind and re.search(r"backward\(|grad\(", c.statement) and re.search(r"block_diag\(.*\(0,\)", c.before),
    ),
    Explained(
        "pixels of nothing",
        "PyTorch's pixel_unshuffle of an empty tensor forgets to change the shape, which its derivative then refuses.",
        lambda c: (c.kind == "shape" and c.empty and re.search(r"(?i)pixel_?unshuffle", c.statement))
        or (c.kind == "not refused" and re.search(r"(?i)pixel_?unshuffle\(", c.before) and "pixel_shuffle expects its input's 'channel'" in c.theirs),
    ),
    Explained(
        "channels of averages",
        "PyTorch averages over windows of no channels, and refuses the derivative of that.",
        lambda c: c.kind == "not refused" and re.search(r"adaptive_avg_pool\dd_backward\(\): Expected grad_output to have non-zero size", c.theirs),
    ),
    Explained(
        "strides of nothing",
        "NumPy's strides of arrays without elements are 0; here they are those of C order.",
        lambda c: (c.empty or re.search(r"= make\(\d+, \(0,", c.before))
        and ((c.kind == "value" and "stride(" in c.statement) or "has a dimension with stride 0. gradcheck" in c.theirs
             or (c.kind == "not refused" and "must have a last dimension with stride 1" in c.theirs)),
    ),
    Explained(
        "sizes of nothing",
        "PyTorch does not look at the rank of bilinear's weight, nor at the last dims of an attention without queries, nor at how many values one has, "
        "nor at their batch.",
        lambda c: c.kind == "raised"
        and c.empty
        and ("Expected key and value to have the same length" in c.mine
             or ("bilinear" in c.statement and re.search(r"The size of tensor a \(0\)|weight must have 3 dims", c.mine))
             or "query and key to have the same last dim" in c.mine
             or ("scaled_dot_product_attention" in c.statement and "The size of tensor" in c.mine)),
    ),
    Explained(
        "heads of nothing",
        "PyTorch divides by the number of heads of keys and values, which may be 0: it ends in an exception of the processor, or does not look.",
        lambda c: c.kind == "raised" and c.empty and "must divide the number of heads in query" in c.mine,
    ),
    Explained(
        "batches of nothing",
        "PyTorch's attention to no keys has the batch of the queries, though that of the keys may be larger.",
        lambda c: c.kind == "shape" and c.empty and "scaled_dot_product_attention" in c.statement,
    ),
    Explained(
        "dtypes of nothing",
        "Where there is nothing to compute PyTorch's decompositions, distances, sums, products, samplers, draws, softmax, means of windows, amax, amin, "
        "medians and instance_norm do not look at dtypes that they refuse otherwise.",
        lambda c: (c.kind == "raised" or (c.kind == "error type" and "def step(" in c.statement))  # (a later line may be refused there)
        and c.empty and _UNSEEN.search(c.mine),
    ),
    Explained(
        "norms of nothing",
        "Of complex numbers none of which is there PyTorch refuses a vector_norm that is recorded.",
        lambda c: c.kind in ("error type", "not refused") and c.empty and "NormKernelImpl\" not implemented for 'Complex" in c.theirs,
    ),
    Explained(
        "channels of nothing",
        "Of running statistics without elements PyTorch takes the first, before it looks whether they require grad.",
        lambda c: "instance_norm" in c.statement and (
            (c.kind == "error type" and "select(): index 0 out of range for tensor of size [0]" in c.theirs)
            or (c.kind == "raised" and c.empty and "'native_batch_norm' is not differentiable with respect to argument 'running_" in c.mine)
        ),
    ),
    Explained(
        "samples of nothing",
        "A batch of vectors without elements is a matrix without elements in PyTorch, where index_add does not look at the index.",
        lambda c: c.kind == "raised" and c.empty and "vmap(" in c.statement and "index_add(): index out of range" in c.mine,
    ),
    Explained(
        "transforms of nothing",
        "PyTorch asks its library for transforms of no signals, which refuses some.",
        lambda c: c.kind == "not refused" and "MKL FFT error" in c.theirs and c.empty,
    ),
    Explained(
        "largest of nothing",
        "The largest norm of gradients counts tensors without elements as 0 here, where PyTorch has no answer.",
        lambda c: c.kind == "not refused" and "_foreach_norm cannot compute the infinity norm on an empty tensor" in c.theirs,
    ),
    Explained(
        "memory of nothing",
        "How much memory a tensor without elements has that was cut from another.",
        lambda c: c.kind == "value" and re.search(r"^v\d+ = v\d+\.untyped_storage\(\)\.nbytes\(\)$", c.statement) and c.empty,
    ),
    Explained(
        "offset of nothing",
        "A view without elements does not remember where in the storage it would begin.",
        lambda c: c.kind == "value" and re.search(r"storage_offset|as_strided", c.statement) and c.empty,
    ),
)
