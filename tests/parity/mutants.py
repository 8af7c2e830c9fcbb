"""Calls of PyTorch's op database, changed in one respect each: dtypes, sizes, overlap, what requires grad, numbers, ``out=``.

``python -m tests.parity.mutants KIND [op…]`` prints each call on which the libraries differ: one raises and the other does not, the
kinds of exception differ, or the results. KIND is one of `KINDS`.
"""

from __future__ import annotations

import builtins
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_nb as ag

from .opdb import RANDOM, Unsupported, compare, find, leaves, ours, outside, samples_of, title

MOST = 4  #: samples of an op
#: entries whose differences are known: of a walk, and why
KNOWN = {
    "outs": {
        "lu": "PyTorch converts even to what cannot hold the result",
        "bernoulli": "as lu",
        "native_batch_norm": "has no out= here",
        "linalg.lstsq": "has no out= here",
        "float_power": "whose out= is compared with float64 by PyTorch before anything else",
        "nansum": "PyTorch has no kernels for some dtypes",
        "nanmean": "as nansum",
        "linspace": "an out= of another dtype than dtype=",
        "logspace": "as linspace",
    }
}
#: ops of which some calls end PyTorch's process, or take long
DANGEROUS = {"shapes": {"lu_unpack"}, "numbers": {"bitwise_right_shift", "bitwise_left_shift"}}
SMALL = 60  #: elements of a sample's operands together, of an op that has such
LARGE = 3000  #: and of one that has not
BUILTIN = (NotImplementedError, IndexError, ValueError, TypeError, OverflowError, RuntimeError)

Call = tuple[Callable, tuple, dict]
Mutant = tuple[str, Any, Any, tuple, dict]  #: what it is, PyTorch's function, ours, PyTorch's arguments


def kind(error: BaseException) -> str:
    """The built-in exception that an exception is."""
    for e in BUILTIN:
        if isinstance(error, e):
            return e.__name__
    return type(error).__name__


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


def result(call: Callable, args: tuple, kwargs: dict) -> tuple[Any, BaseException | None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(*args, **kwargs), None
        except builtins.Exception as error:
            return None, error


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


def difference(theirs: Any, mine: Any, args: tuple, kwargs: dict, values: bool = True, grads: bool = False, kinds: bool = True) -> str:
    """How the libraries differ on one call; "" where they agree. Unsupported for arguments that only PyTorch has."""
    t_args, t_kwargs = copies((args, kwargs))
    m_args, m_kwargs = ours((t_args, t_kwargs))
    expected, refused = result(theirs, t_args, t_kwargs)
    got, error = result(mine, m_args, m_kwargs)
    if refused is not None or error is not None:
        if refused is None or error is None:
            said = f"refused ({kind(refused or error)}: {' '.join(str(refused or error).split())[:150]})"
            return f"PyTorch {said}" if error is None else f"ours {said}"
        if kinds and kind(refused) != kind(error):
            return f"{kind(error)} ({' '.join(str(error).split())[:90]}) instead of {kind(refused)} ({' '.join(str(refused).split())[:110]})"
        return ""
    try:
        compare(got, expected, "result", values)
        if values:
            for x, y in zip(leaves((m_args, m_kwargs)), leaves((t_args, t_kwargs)), strict=True):
                if y._version:
                    compare(x, y, "operand")
                    assert x._version, "operand was not changed"
        if grads and values:
            for x, y in zip(leaves(got), leaves(expected), strict=True):
                assert x.requires_grad == y.requires_grad, f"requires_grad is {x.requires_grad}"
            b = gradients(expected, [t for t in leaves((t_args, t_kwargs)) if t.requires_grad])
            a = gradients(got, [t for t in leaves((m_args, m_kwargs)) if t.requires_grad])
            if isinstance(b, BaseException) or isinstance(a, BaseException):
                assert isinstance(a, BaseException) and isinstance(b, BaseException), f"backward: {a!r:.200} instead of {b!r:.200}"
            elif b is not None:
                for k, (x, y) in enumerate(zip(a or [], b, strict=True)):
                    assert (x is None) == (y is None), f"gradient {k} is {x!r:.50} instead of {y!r:.50}"
                    if y is not None:
                        compare(x, y, f"gradient {k}")
    except AssertionError as text:
        return " ".join(str(text).split())[:300]
    return ""


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
            made, error = result(op, *copies((args, kwargs)))
            if error is not None:
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


def walk(which: str, op: Any) -> Iterator[str]:
    """The differences of one op, a line each."""
    values = which != "outs" and not any(r in op.name for r in RANDOM) and not op.name.endswith("multi_head_attention_forward")
    for what, theirs, mine, args, kwargs in KINDS[which](op):
        try:
            text = "missing" if mine is None else difference(theirs, mine, args, kwargs, values, which == "wanted", which == "shapes")
        except Unsupported:
            continue
        if text:
            yield f"{title(op)} {what}: {text}"


def main(which: str, names: list[str]) -> int:
    count = 0
    for op in op_db:
        if op.name in DANGEROUS.get(which, ()) or (not names and op.name in KNOWN.get(which, ())):
            continue
        if (op.name in names if names else not outside(title(op)) and find(op) is not None):
            print("@", title(op), file=sys.stderr, flush=True)
            for line in walk(which, op):
                count += 1
                print(line, flush=True)
    print(f"{count} differences")
    return count > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
