"""Calls of PyTorch's op database, changed in one respect each: dtypes, sizes, overlap, what requires grad, numbers, ``out=``.

``python -m tests.parity.mutants KIND [--every N] [op…]`` prints each call on which the libraries differ (`verdicts.CATEGORIES`): one raises and
the other does not, the kinds of exception differ, or the results. KIND is one of `KINDS`; ``--every N`` tries one call in N.
"""

from __future__ import annotations

import builtins
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_nb as ag

from .children import Case, Group
from .opdb import RANDOM, TOLERANCE, compare, find, leaves, ours, outside, samples_of, title
from .verdicts import arguments, report, run, verdict

MOST = 4  #: samples of an op
#: ops that PyTorch computes on memory that is not theirs, which may end the process later; or that take long
DANGEROUS = {"shapes": {"lu_unpack"}, "numbers": {"bitwise_right_shift", "bitwise_left_shift"}}
SMALL = 60  #: elements of a sample's operands together, of an op that has such
LARGE = 3000  #: and of one that has not
Call = tuple[Callable, tuple, dict]
Mutant = tuple[str, Any, Any, tuple, dict]  #: what it is, PyTorch's function, ours, PyTorch's arguments


def copies(tree: Any) -> Any:
    """An argument tree with tensors of its own, of the same strides."""
    if isinstance(tree, torch.Tensor):
        memory = tree.detach().untyped_storage()
        if not tree.numel() or tree.layout is not torch.strided:
            return tree.detach().clone().requires_grad_(tree.requires_grad)
        flat = torch.empty(0, dtype=tree.dtype).set_(memory, 0, (memory.nbytes() // tree.element_size(),)).clone()
        return flat.as_strided(tree.shape, tree.stride(), tree.storage_offset()).detach().requires_grad_(tree.requires_grad)
    if isinstance(tree, (list, tuple)) and not hasattr(tree, "_fields"):
        return type(tree)(copies(v) for v in tree) if not isinstance(tree, torch.Size) else tree
    if isinstance(tree, dict):
        return {k: copies(v) for k, v in tree.items()}
    return tree


def gradients(value: Any, inputs: list) -> list | BaseException | None:
    live = [t for t in leaves(value) if t.requires_grad]
    if not live or not inputs:
        return None
    library: Any = torch if isinstance(live[0], torch.Tensor) else ag
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return list(library.autograd.grad(live, inputs, [library.ones_like(t) for t in live], allow_unused=True))
        except builtins.Exception as error:
            return error


def precision(tree: Any) -> dict[torch.dtype, tuple[float, float]]:
    """How near results have to be: as those of the least precise operand, where operands are of several dtypes."""
    found = {t.dtype.to_real() if t.dtype.is_complex else t.dtype for t in leaves(tree)}
    if torch.float16 in found:
        return dict.fromkeys(TOLERANCE, TOLERANCE[torch.float16])
    return {torch.float64: (1e-5, 1e-6)} if found >= {torch.float32, torch.float64} else {}


def same_gradients(got: Any, expected: Any, mine: Any, theirs: Any) -> None:
    """Gradients of the results in all operands that require them."""
    for x, y in zip(leaves(got), leaves(expected), strict=True):
        assert x.requires_grad == y.requires_grad, f"requires_grad is {x.requires_grad}"
    b = gradients(expected, [t for t in leaves(theirs) if t.requires_grad])
    a = gradients(got, [t for t in leaves(mine) if t.requires_grad])
    if isinstance(b, BaseException) or isinstance(a, BaseException):
        assert isinstance(a, BaseException) and isinstance(b, BaseException), f"backward: {a!r:.200} instead of {b!r:.200}"
    elif b is not None:
        for k, (x, y) in enumerate(zip(a or [], b, strict=True)):
            assert (x is None) == (y is None), f"gradient {k} is {x!r:.50} instead of {y!r:.50}"
            if y is not None:
                compare(x, y, f"gradient {k}")


def difference(theirs: Any, mine: Any, args: tuple, kwargs: dict, values: bool = True, grads: bool = False) -> str:
    """How the libraries differ on one call, with its category; "" where they agree. Unsupported for arguments that only PyTorch has."""
    if mine is None:
        return "refused: missing"
    given = copies((args, kwargs))
    own = ours(given)
    expected = run("PyTorch", lambda: theirs(*given[0], **given[1]))
    got = run("ours", lambda: mine(*own[0], **own[1]))
    text = verdict(expected, got)
    if text is not None:
        return text
    try:
        with mock.patch.dict(TOLERANCE, precision(given)):
            compare(got[1], expected[1], "result", values)
            for x, y in zip(leaves(own), leaves(given), strict=True) if values else ():
                if y._version:
                    compare(x, y, "operand")
                    assert x._version, "operand was not changed"
            if grads and values:
                same_gradients(got[1], expected[1], own, given)
    except AssertionError as error:
        return f"wrong: {' '.join(str(error).split())[:300]}"
    return ""


def groups_of(names: list[str], cases: Callable[[Any], Iterator[Case]]) -> Iterator[Group]:
    """Yield the cases of the ops of these names, or of all that no number makes dangerous."""
    for op in op_db:
        safe = op.name not in DANGEROUS["numbers"] and not outside(title(op))
        if op.name in names if names else safe and find(op) is not None:
            yield title(op), lambda o=op: cases(o)


def samples(op: Any, dtype: torch.dtype = torch.float32, most: int = MOST, several: bool = False) -> list[tuple[tuple, dict]]:
    """The first small samples of an op, as (arguments, keywords); ``several``: of those with more than one tensor."""
    if dtype not in op.supported_dtypes("cpu"):
        return []
    found: list[tuple[tuple, dict]] = []
    larger: list[tuple[int, tuple, dict]] = []
    for sample in samples_of(op, dtype, False):
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        tensors = list(leaves((args, kwargs)))
        size = sum(t.numel() for t in tensors)
        if len(tensors) > several and size <= SMALL:
            found.append((args, kwargs))
            if len(found) == most:
                break
        elif len(tensors) > several and not found:
            larger.append((size, args, kwargs))
    return found or [(args, kwargs) for size, args, kwargs in sorted(larger, key=lambda c: c[0])[:1] if size <= LARGE]


def replaced(tree: Any, index: int, new: Any, count: list[int] | None = None) -> Any:
    """An argument tree with its tensor number ``index`` replaced by ``new(tensor)``."""
    count = [0] if count is None else count
    if isinstance(tree, torch.Tensor):
        count[0] += 1
        return new(tree) if count[0] - 1 == index else tree
    if isinstance(tree, (list, tuple)) and not hasattr(tree, "_fields") and not isinstance(tree, torch.Size):
        return type(tree)(replaced(v, index, new, count) for v in tree)
    if isinstance(tree, dict):
        return {k: replaced(v, index, new, count) for k, v in tree.items()}
    return tree


OVERLAPS: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "expanded": lambda x: x.detach()[:1].clone().expand(x.shape) if x.ndim and x.shape[0] > 1 else None,
    "expanded, last": lambda x: x.detach()[..., :1].clone().expand(x.shape) if x.ndim > 1 and x.shape[-1] > 1 else None,
    "windows": lambda x: (
        x.detach().clone().flatten().as_strided(x.shape, [1] * x.ndim) if x.ndim > 1 and min(x.shape) > 1 and x.numel() > 3 else None
    ),
}


def overlapping(op: Any) -> Iterator[Mutant]:
    call = op.inplace_variant
    name = getattr(call, "__name__", "<lambda>")
    if call is None or name == "<lambda>" or not hasattr(torch.Tensor, name):
        return
    for dtype in (torch.float32, torch.int64):
        for k, (args, kwargs) in enumerate(samples(op, dtype)):
            for what, make in OVERLAPS.items():
                x = make(args[0]) if isinstance(args[0], torch.Tensor) else None
                if x is not None:
                    yield f"{name} #{k} {dtype} {what}", call, getattr(ag.Tensor, name, None), (x, *args[1:]), kwargs


MIXED = (torch.float64, torch.float16, torch.int64, torch.bool, torch.complex64)


def mixed(op: Any) -> Iterator[Mutant]:
    """One operand of another dtype."""
    for k, (args, kwargs) in enumerate(samples(op, several=True, most=3)):
        for n, t in enumerate(leaves((args, kwargs))):
            for d in MIXED:
                if d is not t.dtype:
                    a, kw = replaced((args, kwargs), n, lambda t, d=d: t.detach().to(d))
                    yield f"#{k} {[str(t.dtype)[6:] + str(list(t.shape)) for t in leaves((a, kw))]}", op, find(op), a, kw


def outs(op: Any) -> Iterator[Mutant]:
    """``out=`` of another dtype."""
    if not op.supports_out:
        return
    for dtype in (torch.float32, torch.int64):
        for k, (args, kwargs) in enumerate(samples(op, dtype, 1)):
            if sum(t.numel() for t in leaves((args, kwargs))) > SMALL:
                continue
            a, kw = copies((args, kwargs))
            how, made = run("PyTorch", lambda a=a, kw=kw: op(*a, **kw))
            if how != "made":
                continue
            several = isinstance(made, (tuple, list))
            if not isinstance(made, torch.Tensor) and not (several and all(isinstance(m, torch.Tensor) for m in made)):
                continue
            for n in range(len(made) if several else 1):
                for d in (torch.float64, torch.int64):
                    out: Any = tuple(torch.zeros_like(m, dtype=d if i == n else m.dtype) for i, m in enumerate(made if several else [made]))
                    out = out if several else out[0]
                    yield f"#{k} of {dtype}, out[{n}]={d}", op, find(op), args, {**kwargs, "out": out}


SHAPES: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "without its first dim": lambda t: t.detach()[0] if t.ndim and t.shape[0] else None,
    "without its last dim": lambda t: t.detach()[..., 0] if t.ndim > 1 and t.shape[-1] else None,
    "with a first dim": lambda t: t.detach()[None],
    "with a last dim": lambda t: t.detach()[..., None],
    "with a first dim of 2": lambda t: torch.stack([t.detach(), t.detach()]),
    "empty": lambda t: t.detach()[:0] if t.ndim else None,
    "empty at the end": lambda t: t.detach()[..., :0] if t.ndim > 1 else None,
    "shorter": lambda t: t.detach()[1:] if t.ndim and t.shape[0] > 1 else None,
    "shorter at the end": lambda t: t.detach()[..., 1:] if t.ndim > 1 and t.shape[-1] > 1 else None,
    "1 at the end": lambda t: t.detach()[..., :1] if t.ndim and t.shape[-1] > 1 else None,
    "1 at the front": lambda t: t.detach()[:1] if t.ndim > 1 and t.shape[0] > 1 else None,
    "0-d": lambda t: t.detach().flatten()[0] if t.ndim and t.numel() else None,
}


def shapes(op: Any) -> Iterator[Mutant]:
    """One operand of another shape."""
    for k, (args, kwargs) in enumerate(samples(op, most=3)):
        for n, t in enumerate(leaves((args, kwargs))):
            for what, make in SHAPES.items():
                if make(t) is not None:
                    a, kw = replaced((args, kwargs), n, make)
                    yield f"#{k}, operand {n} {what} {[list(t.shape) for t in leaves((a, kw))]} {shown(a, kw)}", op, find(op), a, kw


def shown(args: Any, kwargs: Any) -> str:
    rest = [v for v in args if not isinstance(v, torch.Tensor)]
    return f"{rest} { {k: v for k, v in kwargs.items() if not isinstance(v, torch.Tensor)} }"[:120]


NUMBERS: tuple[Any, ...] = (2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 1e40, -1e40, float("inf"), float("nan"), True, 300, -1, 0, 2.5, 1j)
DTYPES = (torch.float32, torch.float16, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool, torch.complex64)


def numbers(op: Any) -> Iterator[Mutant]:
    """A number of another kind or size."""
    for dtype in DTYPES:
        for k, (args, kwargs) in enumerate(samples(op, dtype, 3)):
            places = [(i, None) for i, v in enumerate(args) if isinstance(v, (int, float, complex))]
            places += [(None, name) for name, v in kwargs.items() if isinstance(v, (int, float, complex))]
            for i, name in places:
                if name in ("dim", "keepdim") or isinstance(args[i] if name is None else kwargs[name], bool):
                    continue
                for v in NUMBERS:
                    a = args if i is None else (*args[:i], v, *args[i + 1 :])
                    kw = kwargs if name is None else {**kwargs, name: v}
                    yield f"#{k} of {dtype} {[list(t.shape) for t in leaves((a, kw))]} {shown(a, kw)}", op, find(op), a, kw


def wanted(op: Any) -> Iterator[Mutant]:
    """One operand alone that requires grad."""
    for k, (args, kwargs) in enumerate(samples(op, most=3)):
        every = list(leaves((args, kwargs)))
        for n, t in enumerate(every):
            if t.dtype.is_floating_point:
                a, kw = replaced((args, kwargs), n, lambda t: t.detach().clone().requires_grad_())
                yield f"#{k}, operand {n} of {len(every)} {shown(a, kw)}", op, find(op), a, kw


KINDS: dict[str, Callable[[Any], Iterator[Mutant]]] = {
    "overlapping": overlapping, "mixed": mixed, "outs": outs, "shapes": shapes, "numbers": numbers, "wanted": wanted,
}  # fmt: skip


#: of a walk, (why, patterns of lines) of the differences that stay
_CHUNKS = "PyTorch's chunks look at sizes and dtypes one after the other, and at some not at all"
KNOWN: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "overlapping": [
        ("PyTorch reads elements that the same call has written, in whatever order it goes; here all are read first",
         tuple(f"{name} windows: wrong: *" for name in ("addmm*", "renorm *", "tril *"))),
        ("what is written is read again and again, until it overflows or rounding shows", ("polygamma * windows: wrong: *", "tan * windows: wrong: *")),
    ],
    "mixed": [
        ("both refuse, and PyTorch says first that it has no kernel (a NotImplementedError is a RuntimeError)",
         ("* kind: ours RuntimeError: *; PyTorch NotImplementedError: *",)),
        (_CHUNKS, ("nn.functional.linear_cross_entropy (chunked*) * refused: *", "nn.functional.linear_cross_entropy (chunked*) * kind: *")),
        ("PyTorch's powers of e overflow in half precision", ("nn.functional.soft_margin_loss #* wrong: *inf location*",)),
        ("PyTorch looks at no dtype where there is nothing to compute", ("linalg.matrix_rank #*", "searchsorted #* refused: *")),
        ("losses and draws of complex numbers: PyTorch computes something by chance of what they are made of", (
            "nn.functional.binary_cross_entropy_with_logits * refused: *", "nn.functional.poisson_nll_loss * refused: *", "normal #* refused: *")),
        ("PyTorch's answer depends on which of its kernels runs", ("nn.functional.conv_transpose1d #2 * accepted: *",)),
        ("PyTorch takes truth values for indices", ("nn.functional.embedding_bag #* refused: *",)),
        ("PyTorch has no kernels for some dtypes", ("special.* accepted: PyTorch NotImplementedError: *", "masked.logaddexp #* accepted: *")),
    ],
    "shapes": [
        ("PyTorch looks at no sizes and reads past weights and statistics", ("native_batch_norm #*",)),
        ("PyTorch gathers past the operand's end where indices are expanded", ("take_along_dim #*: refused: *",)),
        ("PyTorch's result has memory that nobody has written", ("resize_as_ #*: wrong: *",)),
        ("the sign of an eigenvector is free", ("linalg.eigh #*: wrong: Not equal *",)),
        ("PyTorch's residuals of nothing are 0, and it broadcasts what it takes for vectors", ("linalg.lstsq* wrong: *", "linalg.lstsq* accepted: *")),
        ("PyTorch's product with nothing keeps the size 1 of what is added", ("addmv #*: wrong: *",)),
        ("statistics that nothing has changed have not changed", ("nn.functional.instance_norm #*: wrong: operand was not changed",)),
        (_CHUNKS,
         ("nn.functional.linear_cross_entropy* refused: *", "nn.functional.linear_cross_entropy* accepted: *", "nn.functional.linear_cross_entropy* kind: *")),
        ("PyTorch's FFT library refuses some transforms of nothing", ("fft.* accepted: PyTorch RuntimeError: MKL FFT error*",)),
        ("PyTorch fails an assertion of its own", ("index_put #*: accepted: PyTorch RuntimeError: ntensor *",)),
        ("pools and borders that leave nothing, attention to nothing", (
            "nn.functional.fractional_max_pool* refused: *", "nn.functional.pad (replicate_negative) *", "nn.functional.scaled_dot_product_attention #*")),
        ("both refuse, by another of two faults", (
            "index_put #*: kind: *", "nn.functional.batch_norm #*: kind: *",
            "nn.functional.fractional_max_pool* kind: *")),
        ("PyTorch looks at no weight where there is nothing to multiply", ("nn.functional.bilinear #0, operand 2 with a last dim * refused: *",)),
    ],
    "outs": [
        ("PyTorch converts even to what cannot hold the result", ("lu #*",)),
        ("has no out= here", ("native_batch_norm #*", "linalg.lstsq #*")),
        ("PyTorch has no kernels for some dtypes", ("nansum #*", "nanmean #*")),
    ],
    "numbers": [
        ("PyTorch multiplies a factorial that overflows by a zeta function that underflows in single precision", ("polygamma *: wrong: *nan location*",)),
        ("powers whose exponent single precision does not hold", ("renorm * [1e+40, *: wrong: *", "renorm * [300, *: wrong: *", "dist * [*1e+40] *: wrong: *")),
        ("inf times a complex number", ("addcdiv *{'value': inf}: wrong: *",)),
        ("PyTorch takes the least int for one that is not known yet", ("roll *-9223372036854775808*: accepted: *",)),
    ],
    "wanted": [
        ("PyTorch's gradient is known to be wrong", ("as_strided_scatter #*",)),
        ("the sign of an eigenvector is free", ("linalg.eigh #*",)),
        ("Bessel functions have derivatives here", ("special.*bessel_*: wrong: requires_grad is True",)),
        ("the statistics are functions of the input alone", ("native_group_norm #*: wrong: requires_grad is False",)),
        ("the difference of two equal numbers, rounded", ("nn.functional.layer_norm #2, operand 1 of 3 *",)),
        ("a copy of A has no history in b", ("triangular_solve #*, operand 0 *",)),
    ],
}


def cases(which: str, op: Any) -> Iterator[Case]:
    """The changed calls of an op."""
    values = which != "outs" and not any(r in op.name for r in RANDOM) and not op.name.endswith("multi_head_attention_forward")
    for what, theirs, mine, args, kwargs in KINDS[which](op):
        yield what, lambda t=theirs, m=mine, a=args, k=kwargs: difference(t, m, a, k, values, which == "wanted")


def groups(which: str, names: list[str]) -> Iterator[Group]:
    for op in op_db:
        safe = op.name not in DANGEROUS.get(which, ()) and not outside(title(op))
        if op.name in names if names else safe and find(op) is not None:
            yield title(op), lambda o=op: cases(which, o)


if __name__ == "__main__":
    walk, every, names = arguments(sys.argv[1:])
    sys.exit(report(list(groups(walk, names)), KNOWN.get(walk, ()), every, every == 1 and not names))
