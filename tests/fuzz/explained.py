"""Differences from PyTorch that are meant, each with its reason and a test that is as narrow as the reason.

A statement with such a difference is taken out of its program, and the rest is compared (`check.compared`), but for what only makes
a name unreadable: the name is passed over.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .trifling import TRIFLING


@dataclass(frozen=True)
class Case:
    """A difference at a statement: what was raised here and there (texts, empty where nothing was)."""

    kind: str
    statement: str
    mine: str
    theirs: str
    name: str = ""  #: of what differs
    before: str = ""  #: the statements before it
    known: dict[str, Any] = field(default_factory=dict)  #: what PyTorch's names stood for before it
    what: str = ""  #: the difference in words

    @property
    def their_values(self) -> str:
        """The values that PyTorch has instead."""
        return self.what.partition(" instead of ")[2]

    @property
    def empty(self) -> bool:
        """Whether a tensor without elements takes part, by name or written out."""
        named = (self.known.get(n) for n in re.findall(r"v\d+", self.statement))
        return bool(re.search(r"\(0,|, 0[,)]", self.statement)) or any(0 in getattr(s, "shape", ()) for s in named)

    @property
    def tied(self) -> bool:
        """Whether a tensor takes part of which two dims have one stride."""
        for found in (self.known.get(n) for n in re.findall(r"v\d+", self.statement)):
            strides = [s for s, n in zip(getattr(found, "strides", ()), getattr(found, "shape", ())) if n > 1]
            if len(set(strides)) < len(strides):
                return True
        return False

    def same(self, name: str, other: str) -> bool:
        """Whether two names stand for one tensor, as what a dropout of nothing returns."""
        a, b = self.known.get(name), self.known.get(other)
        return name == other or (a is not None and b is not None and a.leaf and b.leaf and a.requires_grad and b.requires_grad
                                 and a.values.shape == b.values.shape and a.values.tobytes() == b.values.tobytes())  # fmt: skip

    def array(self, name: str) -> Any:
        """Whether a name stands for an array of NumPy's."""
        seen = self.known.get(name)
        if getattr(seen, "shape", ()) == ():
            return re.search(rf"^{name} = .*\.numpy\(|^{name} = np\.asarray\(", self.before, re.M)
        return seen.strides == ()


@dataclass(frozen=True)
class Explained:
    name: str
    reason: str
    holds: Callable[[Case], Any]


#: calls whose result lies in another order (tests/parity/strides.py says why of those of the op database)
_ORDERS = re.compile(
    r"fft\.\w+\(|(diagonal|select)_scatter\(|lu_solve\(|conv_transpose3d\(|(rrelu|RReLU|einsum)\("
)


#: losses whose total PyTorch makes in the memory of what it sums
_LOSSES = r"(?i)smooth_?l1|mse_?loss|soft_?margin|binary_?cross_?entropy|bce"


#: a part of a tensor, a change of that and one of the part
_VIEW_OF_CHANGED = r"(v\d+) = (\w+)(\[|\.\w+\()(?s:.*)\n\s*\2(\.\w+_\(|\[.*\] [-+*/]?= )(?s:.*)\n\s*\1(\.\w+_\(|\[.*\] [-+*/]?= )"


@functools.cache
def _computed_anew() -> re.Pattern[str]:
    """An op that keeps other tensors than PyTorch's (tests/parity/exchanged.py names them), and a write to somebody's data after it."""
    from ..parity.exchanged import KNOWN

    names = {name.split(" ")[0].rsplit(".")[-1].replace("_", "") for name in KNOWN}
    return re.compile(rf"(?<![a-z])({'|'.join(sorted(names))})(\dd)?\(.*\.data[.\[]", re.DOTALL)


def _behind_the_graph(case: Case) -> Any:
    """Whether a gradient comes after values were changed which a node keeps here or there."""
    if "value" not in case.kind or not re.search(r"grad|backward", case.statement + case.kind):
        return False
    if re.search(r"kron\((?s:.)*(\w_\(|\] [-+*/]?= |\.data)", case.before):
        return True
    text = f"{case.before}\n{case.statement}"
    if ".data" in text and "create_graph=True" in text:  # what a recorded gradient's nodes keep is the rule's own affair: quotients, powers
        return True
    return re.search(r"\.data[.\[]", case.before) and _computed_anew().search(case.before.lower().replace("_", ""))


def _alike(seen: Any) -> bool:
    """Whether a tensor holds the same number everywhere, but for rounding."""
    values = getattr(seen, "values", None)
    return values is not None and values.size > 1 and bool(abs(values - values.flat[0]).max() <= 1e-6 * abs(values).max())


def _tangents(case: Case) -> Any:
    """Whether a statement gives a primal and a tangent of different dtypes."""
    given = case.statement.partition("jvp(")[2]
    kinds = {getattr(case.known.get(name), "dtype", "") for name in re.findall(r"v\d+", given)}
    return len(kinds | set(re.findall(r"[\"'](float\d+|complex\d+)[\"']", given))) > 1


def _trifle(case: Case) -> Any:
    return any(holds(case) for holds in TRIFLING)


EXPLAINED = (
    Explained("trifles", "tests/fuzz/trifling.py says of each what it is.", _trifle),
    Explained(
        "order of other results",
        "PyTorch's order depends on which of its kernels runs, or on gaps that it copies (tests/parity/strides.py).",
        lambda c: c.kind == "strides" and _ORDERS.search(c.statement),
    ),
    Explained(
        "derivatives that PyTorch lacks",
        "Bessel functions of integer order and some in-place forms have derivatives here; where PyTorch has none it may only fail in backward.",
        lambda c: (c.kind == "requires_grad" and re.search(r"special\.\w*bessel", c.statement))
        or (c.kind == "not refused" and re.search(r"derivative for .* is not implemented", c.theirs))
        or (c.kind == "not refused" and "backward calculation is triggered with a negative slope" in c.theirs)
        or (c.kind == "not refused" and "scatter_reduce does not support automatic differentiation for outputs with complex" in c.theirs
        and "create_graph" in c.statement),
    ),
    Explained(
        "how far a refused pass has come",
        "The derivative by the first operand is refused by a node of its own, so that one by the second can be asked for; that has been added by then.",
        lambda c: c.kind == "grad none" and re.search(r"\b(igammac?|zeta)_?\(", c.before),
    ),
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
        lambda c: "jvp(" in c.statement
        and (
            (c.kind == "value" and re.search(r"bessel|scatter_reduce.*'prod'|cholesky_inverse|max_unpool|silu", c.statement))
            or (c.kind == "value" and "masked.logsumexp" in c.statement)  # (0 / 0 where all is masked)
            or (c.kind == "not refused" and "more than one element of the written-to tensor" in c.theirs)
            or (c.kind == "value" and c.empty and re.search(r"mean|loss|kl_div|cross_entropy|logsumexp", c.statement))
            or (c.kind == "not refused" and re.search(r"scatter_reduce", c.statement) and "Expected a proper Tensor but got None" in c.theirs)
            or (c.kind == "not refused" and "batch_norm" in c.statement and "not implemented for 'Complex" in c.theirs)
            or (c.kind == "error type" and "more than one element of the written-to tensor" in c.theirs)
        ),
    ),
    Explained(
        "tangents of inference tensors",
        "PyTorch forgets without a word the tangent of what was made in inference mode, in ops that have no other operands.",
        lambda c: c.kind == "none" and "inference_mode" in c.before and re.search(r"make_dual|jvp\(|forward_ad", c.before + c.statement),
    ),
    Explained(
        "checkpoints by a pass of their own",
        "What PyTorch's checkpoint with use_reentrant=True passes on has no history; here both ways can be differentiated again.",
        lambda c: re.search(r"(requires_grad|history|leaf)$", c.kind) and "use_reentrant=True" in c.before and "create_graph=True" in c.statement,
    ),
    Explained(
        "half precision that PyTorch lacks",
        "Special functions are formulas here, which are compiled for every precision.",
        lambda c: c.kind == "not refused" and re.search(r"_cpu\" not implemented for 'Half'", c.theirs) and "special." in c.statement,
    ),
    Explained(
        "what takes no part",
        "PyTorch's gradient of the largest and smallest counts the input among the ties also where include_self=False leaves it out "
        "(docs/design.md).",
        lambda c: "value" in c.kind and re.search(r"_reduce_?\(.*am(ax|in).*(include_self=)?False", c.before + c.statement)
        and re.search(r"grad|backward", c.statement),
    ),
    Explained(
        "as_strided_scatter's gradient",
        "PyTorch's is known to be wrong: it lets through what is overwritten (tests/parity/opdb.py, WRONG_THERE).",
        lambda c: "as_strided_scatter" in c.before + c.statement
        and (c.kind == "grad value" or (c.kind == "value" and re.search(r"autograd\.grad|backward\(", c.statement)) or "INTERNAL ASSERT" in c.theirs),
    ),
    Explained(
        "spacings of several dims",
        "PyTorch's gradient along several dims does not look at the number of coordinates.",
        lambda c: c.kind == "raised" and "torch.gradient expected each tensor to be the same size" in c.mine and re.search(r"dim=\(.*,.*\)", c.statement),
    ),
    Explained(
        "Airy functions",
        "From -3.2 to -2.09 PyTorch's airy_ai is off by up to 3e-6; SciPy's agrees with this one.",
        lambda c: c.kind == "value" and "airy_ai(" in c.statement,
    ),
    Explained(
        "what second derivatives keep",
        "A derivative that is recorded as one op keeps the gradient that it is given, where PyTorch keeps a product with that: changing what was "
        "given before the next pass is refused.",
        lambda c: c.kind == "raised" and "modified by an inplace" in c.mine
        and (given := re.search(r"autograd\.grad\([^()]*, (v\d+), .*create_graph=True", c.before))
        and (
            re.search(rf"^{given[1]}\b[^=\n]*(\w_\(|\] [-+*/]?= )", c.before, re.M)
            or re.search(rf"^{given[1]} = v\d+\.grad$(?s:.*)\.backward\(", c.before, re.M)  # a pass accumulated into it
        ),
    ),
    Explained(
        "faults of PyTorch",
        "It refuses what works but for a view that it makes inside, an empty list of gradients or a shape that it forgets.",
        lambda c: c.kind == "not refused"
        and (
            ("view size is not compatible" in c.theirs and "view" not in c.statement)
            or "nested_tensorlist" in c.theirs
            or ("expects a non-empty TensorList" in c.theirs and re.search(r"jacobian|hessian", c.statement))
            or re.search("(PixelShuffle|Scatter|ScatterAdd)Backward0 returned an invalid gradient", c.theirs)
            or ("can't be cast to the desired output type" in c.theirs and re.search("addc(div|mul)", c.before + c.statement))  # of integers
            or "INTERNAL ASSERT FAILED" in c.theirs
            or "input_is_complex == grad_is_complex" in c.theirs  # a derivative of its own gives a complex gradient of a real operand
            or ("A leaf node was passed to _will_engine_execute_node" in c.theirs and "register_multi_grad_hook" in c.before)
            or "use_reentrant=True, torch.utils.checkpoint is incompatible" in c.theirs  # (it tells the one pass from the other)
        ),
    ),
    Explained(
        "views that are made inside",
        "Results of repeat_interleave, einsum, pools along one dim and instance_norm may be views in PyTorch of what nobody else has: they say "
        "so, may not be detached in place, and a hook of such a node is lost when the result is changed in place.",
        lambda c: re.search(r"repeat_interleave|einsum|pool1d|instance_norm", c.before)
        and (
            "Can't detach views in-place" in c.theirs
            or (c.kind == "value" and "_is_view()" in c.statement)
            or ("value" in c.kind and re.search(r"grad_fn\.register_(pre)?hook", c.before))
        ),
    ),
    Explained(
        "what a loss keeps",
        "The fused cross_entropy keeps the logits themselves where PyTorch keeps a copy, their log_softmax (tests/parity/saved.py).",
        lambda c: c.kind == "raised" and "modified by an inplace" in c.mine and "cross_entropy" in c.before + c.statement,
    ),
    Explained(
        "views that nobody has looked at",
        "PyTorch refuses to change a view whose base has got a history since it was made, until somebody asks for the view's grad_fn.",
        lambda c: c.kind == "not refused" and "a leaf Variable that requires grad is being used in an in-place" in c.theirs
        and (re.search(rf"tied\.\w+_\(|{_VIEW_OF_CHANGED}", c.before + c.statement) or re.match(r"v\d+\[.*\] [-+*/%]+= ", c.statement)),
    ),
    Explained(
        "what attention to nothing keeps",
        "Where there is no query PyTorch's keeps no operands.",
        lambda c: c.kind == "raised" and "modified by an inplace" in c.mine and "scaled_dot_product" in c.before + c.statement and c.empty,
    ),
    Explained(
        "memory behind a loss",
        "PyTorch's sum of some losses lies in memory as large as the operands', which as_strided shows: nothing was written to it.",
        lambda c: "as_strided" in c.statement + c.before
        and re.search(_LOSSES, c.before)
        and c.kind in ("raised", "value"),
    ),
    Explained(
        "storages of losses",
        "So does what untyped_storage() says of its size.",
        lambda c: c.kind == "value" and "untyped_storage().nbytes()" in c.statement and re.search(_LOSSES, c.before),
    ),
    Explained(
        "gradients that are views",
        "What autograd.grad returns has memory of its own here; in PyTorch it may be a view that was made where nothing is recorded, which "
        "says so, and which what is recorded may not change.",
        lambda c: (made := re.match(r"(v\d+)\.\w+_\(", c.statement) or re.search(r"(v\d+)\._is_view\(\)", c.statement))
        and re.search(rf"\b{made[1]},?[^=]* = torch\.autograd\.grad\(", c.before)
        and (
            (c.kind == "not refused" and "A view was created in no_grad mode and is being modified inplace" in c.theirs)
            or (c.kind == "value" and "_is_view()" in c.statement)
        ),
    ),
    Explained(
        "batches that are left behind",
        "Batched gradients of a tensor with retain_grad() are left in its .grad by PyTorch, which goes on computing with what is no "
        "tensor any more.",
        lambda c: c.kind == "raised" and "A tensor that was made inside vmap was used after it had ended" in c.mine
        and "retain_grad()" in c.before and "is_grads_batched=True" in c.before,
    ),
    Explained(
        "third derivatives of polynomials",
        "What a Hessian is differentiated by depends on no values for z³: nothing is kept that a change could spoil.",
        lambda c: c.kind == "not refused" and "has been modified by an inplace operation" in c.theirs and re.search(r"hessian\(.*z \*\* 3", c.before),
    ),
    Explained(
        "ties of batches",
        "Which of two dims with one stride comes first in a result depends on where the batch stands; PyTorch leaves it in its place until "
        "the mapped function returns.",
        lambda c: c.kind == "strides" and "vmap(" in c.statement and c.tied,
    ),
    Explained(
        "signs of shrunk zeros",
        "PyTorch's softshrink makes zeros of the operand's sign in the last elements of a tensor and positive ones before, as its kernel "
        "with vectors does not do what the one without does; which shows where something divides by them.",
        lambda c: c.kind == "value"
        and re.search(r"(?i)softshrink", c.before)
        and re.search(r"solve|inv|angle|atan2|/|signbit|reciprocal", c.statement),
    ),
    Explained(
        "the gradient of nothing",
        "That of cummax and cummin is in PyTorch the operand itself, which requires grad.",
        lambda c: c.kind in ("requires_grad", "leaf", "history") and c.empty and re.search(r"cummax|cummin|block_diag", c.before),
    ),
    Explained(
        "pixels of nothing",
        "PyTorch's pixel_unshuffle of an empty tensor forgets to change the shape, which its derivative then refuses.",
        lambda c: (c.kind == "shape" and c.empty and re.search(r"(?i)pixel_?unshuffle", c.statement))
        or (c.kind == "not refused" and re.search(r"(?i)pixel_?unshuffle\(", c.before) and "pixel_shuffle expects its input's 'channel'" in c.theirs),
    ),
    Explained(
        "medians of expanded dims",
        "PyTorch reads memory that nothing was written to.",
        lambda c: c.kind == "value" and "median" in c.statement and re.search("expand|broadcast_to", c.before),
    ),
    Explained(
        "results of transforms",
        "Those of jacrev and hessian are several views of one tensor in PyTorch, which then refuses to change them.",
        lambda c: c.kind == "not refused" and "function that returns multiple views" in c.theirs and re.search(r"jac|hess", c.before),
    ),
    Explained(
        "order of gradients on their way",
        "PyTorch's gradients of what is no leaf may be expanded or lie as their operands did; those of leaves agree.",
        lambda c: (c.kind == "strides" and "grad" in c.statement and re.search(r"(autograd\.grad|vjp|func\.grad|register_)", c.statement))
        or (c.kind == "grad strides" and "retain_grad" in c.statement)
        or (c.kind == "strides" and "[" in c.name and "backward" in c.statement),
    ),
    Explained(
        "exchanged data",
        "Where x.data = … comes between the forward and the backward pass, gradients are here those of the values that the forward pass "
        "read; PyTorch reads the new ones, which is no derivative of anything, and forgets the leaf where its dtype was another.",
        lambda c: ("value" in c.kind or c.kind in ("raised", "not refused", "grad shape", "none", "grad none"))
        and re.search(r"\.data = |vector_to_parameters", c.before)
        and re.search(r"grad|backward", c.statement + c.kind),
    ),
    Explained(
        "what nodes keep",
        "Ops whose derivative reads other tensors than in PyTorch show it to programs that change values behind the graph's back "
        "(tests/parity/exchanged.py names them; kron keeps a view that has no version there).",
        _behind_the_graph,
    ),
    Explained(
        "hooks on where a pass begins",
        "A multi-grad hook counts the gradients that are to come, and in PyTorch forgets that of the one tensor that the pass begins with: "
        "the hook is called too early, or never.",
        lambda c: c.kind == "value"
        and (held := re.findall(r"register_multi_grad_hook\(\[(v\d+), (v\d+)\]", c.before))
        and (begun := re.search(r"(v\d+)\.backward\(|autograd\.grad\(\[?(v\d+),", c.statement))
        and any(c.same(n, m) for pair in held for m in pair for n in begun.groups() if n),
    ),
    Explained(
        "products of turned operands",
        "PyTorch's kron looks at its product as if that stood in C order, and refuses operands that make it lie otherwise.",
        lambda c: c.kind == "not refused" and "view size is not compatible" in c.theirs and "kron(" in c.statement,
    ),
    Explained(
        "conjugates are computed",
        "PyTorch's conj and its kin are views of their operand, which show what is done to that (docs/design.md).",
        lambda c: c.kind == "value" and re.search(r"conj|\.mH|adjoint", c.before) and "complex" in getattr(c.known.get(c.name), "dtype", ""),
    ),
    Explained(
        "what is left of a factor",
        "Where a matrix is not positive definite cholesky_ex leaves what its algorithm has come to.",
        lambda c: c.kind == "value" and "cholesky_ex" in c.statement and c.name.endswith("[0]") and "complex" in c.before,
    ),
    Explained(
        "inputs of nodes",
        "Which inputs a node has, and in what order, is the library's own business: PyTorch has none for numbers and masks. So are its results: "
        "a cell of a recurrent net is one node here, with the next state and others that nothing may come of.",
        lambda c: (c.kind == "raised" and "'NoneType' object has no attribute 'clone'" in c.mine and "for g in go)" in c.before and "Cell(" in c.before)
        or (c.kind == "value" and (held := c.name.partition("[")[0]) and f"{held}.append((len(gi)," in c.before),
    ),
    Explained(
        "integers that require grad",
        "Into which a tensor that requires grad was copied: in PyTorch they say that they require grad too, which nothing can come of.",
        lambda c: c.kind in ("requires_grad", "history", "leaf") and re.match(r"u?int|bool", getattr(c.known.get(c.name), "dtype", "")),
    ),
    Explained(
        "versions of results",
        "PyTorch writes some results piece by piece, or computes within them, which counts as changes of what nobody has changed yet.",
        lambda c: c.kind == "value"
        and (name := re.search(r" (v\d+)\._version", c.statement))
        and not re.search(rf"\b{name[1]}(\.\w+_\(|\[.*\] [-+*/%]?= | [-+*/%]= |\.data|.*out=)", c.before),
    ),
    Explained(
        "running statistics that share memory",
        "PyTorch updates mean and variance of a channel in turn.",
        lambda c: c.kind == "value" and re.search(r"running_mean=(fit.*running_var=fit|(v\d+), running_var=\2\b)", c.statement),
    ),
    Explained(
        "strides of nothing",
        "NumPy's strides of arrays without elements are 0; here they are those of C order.",
        lambda c: c.empty and ((c.kind == "value" and "stride()" in c.statement) or "has a dimension with stride 0. gradcheck" in c.theirs),
    ),
    Explained(
        "two faults of a change in inference mode",
        "PyTorch computes, writes and only then refuses to count a change of an inference tensor outside of the mode; here nothing is "
        "changed, so that what else is wrong with the call is not looked at.",
        lambda c: c.kind == "error type" and "Inplace update to inference tensor" in c.mine,
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
        "sizes of nothing",
        "PyTorch does not look at the rank of bilinear's weight, nor at the last dims of an attention without queries.",
        lambda c: c.kind == "raised"
        and c.empty
        and (("bilinear" in c.statement and "The size of tensor a (0)" in c.mine) or "query and key to have the same last dim" in c.mine),
    ),
    Explained(
        "batches of nothing",
        "PyTorch's attention to no keys has the batch of the queries, though that of the keys may be larger.",
        lambda c: c.kind == "shape" and c.empty and "scaled_dot_product_attention" in c.statement,
    ),
    Explained(
        "maps over nothing",
        "PyTorch's vmap folds a batch of no samples into another dim, whose size it then cannot tell, or asks for the first sample of numbers.",
        lambda c: "func.vmap(" in c.statement and re.search(r"= make\(\d+, \(0,", c.before)
        and (
            (c.kind == "not refused" and "select(): index 0 out of range for tensor of size [0" in c.theirs  # numbers, and means that are numbers
             and (re.search(r"= make\(\d+, \(0,\)", c.before) or re.search(r"cross_entropy|multilabel_soft_margin|\b(con)?cat", c.statement)))
            or (c.kind == "not refused" and re.search(r"cannot reshape tensor of 0 elements|non-positive groups", c.theirs))
            or (c.kind == "shape" and re.search(r"pool|norm|\.pad\(|interpolate|upsample|shuffle|grid_sample", c.statement))
        ),
    ),
    Explained(
        "maps that PyTorch takes apart",
        "PyTorch's rules for batches count a change that the map itself makes, write into expanded memory, do not change what as_strided_ is "
        "asked to, look for a dim that a number has not, and refuse complex numbers that the op itself takes.",
        lambda c: "func.vmap(" in f"{c.before}{c.statement}" and (
            (c.kind == "not refused" and "has been modified by an inplace" in c.theirs
             and re.search(r"\.(cumprod|index_reduce|pow|float_power|ldexp|hypot)_\(", c.before))
            or (c.kind == "not refused" and re.search(r'(KernelImpl|batch_norm)" not implemented', c.theirs))
            or (c.kind == "raised" and (to := re.search(r"\b(v\d+)\.\w+_\(|batch_norm\(v1, (v2)|embedding_bag\((v1),.*max_norm=", c.statement))
             and re.search(rf"^{to[1] or to[2] or to[3]} = .*\.expand\(", c.before, re.M) and "more than one element of the written-to tensor" in c.mine)
            or (c.kind in ("raised", "shape") and ".as_strided_(" in c.statement)
            or (c.kind == "raised" and re.search(r"at least [12] dimension|zero-dimensional tensor", c.mine))
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
        "zeros that nothing is multiplied with",
        "Derivatives of what is constant are zeros without memory in PyTorch, whose products are 0 also with nan: of the variance of one number.",
        lambda c: c.kind == "value" and re.search(r"\b(var|std)(_mean)?\(", c.before) and c.statement.startswith("hs = "),
    ),
    Explained(
        "results of numbers that are kept",
        "The rule of a product by index_reduce of 0-d tensors reads the result that the op made; in PyTorch the one that it was written to.",
        lambda c: c.kind == "value" and re.search(r"index_reduce_\(.*'prod'", c.before) and c.statement.startswith("hs = ")
        and re.search(r"v1 = make\(1, \(\)", c.before),
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
        "no arguments for no dims",
        "x.expand(*shape) and x.permute(*order) work for 0 dims too, where that passes no argument.",
        lambda c: c.kind == "not refused" and re.search(r"(expand|permute)\(\) missing 1 required positional arguments", c.theirs),
    ),
    Explained(
        "dtypes of tangents",
        "Where a tangent has another dtype than its primal, the result's is what both promote to; in PyTorch it depends on the function.",
        lambda c: (c.kind == "dtype" or "expected both vectors to have same dtype" in c.theirs) and _tangents(c),
    ),
    Explained(
        "dtypes of a triangular system",
        "PyTorch does not look at the dtypes of linalg.solve_triangular's operands, and reads the one's memory as the other's.",
        lambda c: c.kind == "raised" and "solve_triangular: Expected A and B to have the same dtype" in c.mine,
    ),
    Explained(
        "tensors detached in place",
        "PyTorch reads what a node saved by way of the tensor's own place in the graph, so that it refuses a pass after detach_(); "
        "here the pass runs.",
        lambda c: c.kind in ("not refused", "error type") and "has been detached in-place" in c.theirs,
    ),
    Explained(
        "dtypes of nothing",
        "Where there is nothing to compute PyTorch does not look at dtypes that it refuses otherwise.",
        lambda c: c.kind == "raised" and c.empty
        and re.search(r"same dtype|should be the same|expected scalar type|not implemented for|can't be cast|Low precision dtypes", c.mine),
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
        lambda c: c.kind == "not refused" and re.search(r"Found dtype \w+ but expected \w+", c.theirs)
        and re.search(r"backward|grad\(|jvp\(", c.statement) and re.search(r"(?i)huber_?loss\(", c.before + c.statement),
    ),
    Explained(
        "transforms of nothing",
        "PyTorch asks its library for transforms of no signals, which refuses some.",
        lambda c: c.kind == "not refused" and "MKL FFT error" in c.theirs and c.empty,
    ),
    Explained(
        "two faults of an index_put",
        "Where neither the index nor the shape of the values fits, PyTorch names the shape and this library the index.",
        lambda c: c.kind == "error type" and "index_put" in c.statement and "is out of bounds for dimension" in c.mine
        and "shape mismatch: value tensor" in c.theirs,
    ),
    Explained(
        "no decimals",
        "PyTorch rounds integers only if decimals is not given; 0, which is its default, is refused.",
        lambda c: c.kind == "not refused" and "round_vml_cpu" in c.theirs and "decimals=0" in c.statement,
    ),
    Explained(
        "offset of nothing",
        "A view without elements does not remember where in the storage it would begin.",
        lambda c: c.kind == "value" and re.search(r"storage_offset|as_strided", c.statement) and c.empty,
    ),
    Explained(
        "gradients can be written to",
        "What autograd.grad returns has memory of its own here; PyTorch may hand out an expanded view, which it refuses to change.",
        lambda c: (c.kind == "not refused" and "more than one element of the written-to tensor" in c.theirs and "grad" in c.statement)
        or (
            c.kind == "value"
            and (made := re.match(r"(v\d+)(\.view\(.*\))?\[.*\] = ", c.statement) or re.search(r"(v\d+)\.is_contiguous\(\)", c.statement))
            and re.search(rf"\b{made[1]},?[^=]* = torch\.autograd\.grad\(", c.before)
            and 0 in getattr(c.known.get(made[1]), "strides", ())
        ),
    ),
    Explained(
        "gradients that are asked for twice",
        "So has each gradient for one input that is named twice, where PyTorch hands out one tensor twice: what is written to it shows in both.",
        lambda c: c.kind == "value" and (both := re.search(r"(v\d+), (v\d+).* = .*torch\.autograd\.grad\(.*\[(v\d+), \3\]", c.before))
        and c.name in both.groups() and re.search(rf"\b({both[1]}|{both[2]})\b", c.statement),
    ),
    Explained(
        "strict single use",
        "A second backward pass through a graph is an error here also where its nodes saved nothing (docs/design.md).",
        lambda c: c.kind in ("raised", "error type") and "second time" in c.mine,
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
)
#: found without a statement to test
ATOMIC = "atomic errors"  # a backward pass that fails has changed no gradient here, in PyTorch it may have done a part
ROUNDING = "rounding decides"  # PyTorch's own run differs as much if the numbers made are moved by a few units in the last place
UNREADABLE = "unreadable views"  # PyTorch does not look at one of several views whose base was changed since; here it has values
LIMIT = "limits of compiled calls"  # docs/compile.md
LOOSE = "loose views"  # a function called a few times has views that say that they require grad, but lead nowhere
CONSTANT = "what depends on nothing"  # a derivative that is the same whatever it could depend on may have a history or none
OVERLAP = "reads come before writes"  # an op in place reads other elements of the memory that it writes: PyTorch may read them written
TRIFLES = "trifles"  # whether a gradient that depends on nothing (a second derivative of zeros) has a history


def read_first(statement: str) -> str:
    """An op in place with copies of what it reads besides; other statements as they are."""
    target = r"(?:v\d+ = )?(?:v\d+[^=(]*|fit\(v\d+, [^)]*\)\))\.\w+_\("
    found = re.match(rf"({target}|v\d+(?:\[.*\])? (?:[-+*/%]|//|\*\*)?= )(.*)", statement, re.S)
    if found is None or re.match(r"v\d+ = $", found[1]):
        return statement
    return found[1] + re.sub(r"\bv\d+\b", r"\g<0>.clone()", found[2])


def explanation(case: Case) -> str:
    """The name of what explains a difference, or nothing."""
    return next((e.name for e in EXPLAINED if e.holds(case)), "")
