"""Calls that write into what they are given are repeated too: the first, the second and the third are PyTorch's, and so is what comes between.

Walks over all ops of PyTorch's database that have a form in place, or take ``out=``.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import autograd_nb as ours  # noqa: E402
from autograd_nb.graph import recurring  # noqa: E402
from autograd_nb.random import fork_rng  # noqa: E402

from ..recurring import verified_calls  # noqa: E402
from . import opdb  # noqa: E402

MOST = 2  #: samples of a dtype
CALLS = 5  #: of one kind: the third is noted, the next are repeated
KINDS = (torch.float32, torch.int64, torch.complex64)


def in_place(op: Any) -> tuple[Any, Any] | None:
    """PyTorch's and this library's form in place of an op."""
    found = [(theirs, mine) for what, theirs, mine in opdb.spellings(op) if what == "in place"]
    return found[0] if found and found[0][1] is not None else None


# (`as_strided` reads what lies beside its operand, which a copy does not have)
IN_PLACE = [op for op in op_db if not opdb.outside(opdb.title(op)) and op.name != "as_strided" and in_place(op)]
WITH_OUT = [op for op in op_db if not opdb.outside(opdb.title(op)) and op.supports_out and opdb.find(op)]


def samples(op: Any) -> Any:
    for dtype in KINDS:
        if dtype in op.dtypes:
            for sample in list(op.sample_inputs("cpu", dtype))[:MOST]:
                if isinstance(sample.input, torch.Tensor):
                    yield dtype, sample


# ------------------------------------------------------------------------------------------------------------ what is written into

Operands = tuple[Any, tuple[Any, ...]]  #: the first, and the others


def _columns(lib: Any, x: Any, args: Any) -> Operands:
    wide = lib.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype)
    wide[..., ::2].copy_(x)
    return wide[..., ::2], args


def _with_history(lib: Any, x: Any, args: Any) -> Operands:
    return x.requires_grad_() * 1, args


def _floats_with_gradients(lib: Any, x: Any, args: Any) -> Operands:
    for a in args:
        if isinstance(a, lib.Tensor) and (a.dtype.is_floating_point or a.dtype.is_complex):
            a.requires_grad_()
    return x, args


def _made_in_inference_mode(lib: Any, x: Any, args: Any) -> Operands:
    with lib.inference_mode():
        return x.clone(), args


def _one_memory(lib: Any, x: Any, args: Any) -> Operands:
    """The first other operand of the same shape lies where the first one does, one element on."""
    like = next((k for k, a in enumerate(args) if isinstance(a, lib.Tensor) and a.shape == x.shape and a.dtype is x.dtype), None)
    if like is None:
        raise LookupError
    memory = lib.zeros(x.numel() + 1, dtype=x.dtype)
    parts = memory[:-1].view(x.shape), memory[1:].view(x.shape)
    parts[0].copy_(x)
    return parts[0], (*args[:like], parts[1], *args[like + 1 :])


def _itself(lib: Any, x: Any, args: Any) -> Operands:
    like = next((k for k, a in enumerate(args) if isinstance(a, lib.Tensor) and a.shape == x.shape and a.dtype is x.dtype), None)
    if like is None:
        raise LookupError
    return x, (*args[:like], x, *args[like + 1 :])


#: how operands may have become others meanwhile
CHANGED = {
    "as before": lambda lib, x, args: (x, args),
    "a view": lambda lib, x, args: (x.view(x.shape), args),
    "a part": lambda lib, x, args: (lib.stack([x, x])[1], args),
    "columns": _columns,
    "turned": lambda lib, x, args: (x.mT.contiguous().mT, args),
    "double": lambda lib, x, args: (x.to(lib.complex128 if x.dtype.is_complex else lib.float64), args),
    "expanded": lambda lib, x, args: (x.reshape(-1)[:1].clone().expand(x.shape), args),
    "without elements": lambda lib, x, args: (x[:0], args),
    "a leaf": lambda lib, x, args: (x.requires_grad_(), args),
    "computed": _with_history,
    "a view of what is computed": lambda lib, x, args: ((x.requires_grad_() * 1).view(x.shape), args),
    "a view of a leaf": lambda lib, x, args: (x.requires_grad_().view(x.shape), args),
    "one of several views": lambda lib, x, args: (lib.stack([x, x]).requires_grad_().mul(1).unbind()[1], args),
    "with others that require grad": _floats_with_gradients,
    "made in inference mode": _made_in_inference_mode,
    "overlapping": _one_memory,
    "itself": _itself,
    "conjugated": lambda lib, x, args: (x.conj(), args),
    "a parameter": lambda lib, x, args: (lib.nn.Parameter(x), args),
}  # fmt: skip
MODES = {"": lambda lib: contextlib.nullcontext(), "no_grad": lambda lib: lib.no_grad(), "inference_mode": lambda lib: lib.inference_mode()}


def outcome(call: Any, lib: Any, changed: str, mode: str, given: Any) -> dict[str, Any]:
    """What a call comes to: its error, or what it leaves of its operands."""
    x, args, options = given
    with fork_rng() if lib is ours else torch.random.fork_rng():
        lib.manual_seed(0)
        x, args = CHANGED[changed](lib, x, args)
        seen = [t for t in (x, *args) if isinstance(t, lib.Tensor)]
        before = [opdb.plain(t).tobytes() for t in seen]
        found: dict[str, Any] = {"error": "", "text": ""}
        with MODES[mode](lib):
            try:
                y = call(x, *args, **options)
            except (*opdb.ERRORS, AssertionError) as error:
                found.update(error=type(error).__name__, text=str(error).partition("recorded at")[0])
                found["unchanged"] = before == [opdb.plain(t).tobytes() for t in seen]
            else:
                found["itself"] = y is x
                found["requires grad"] = y.requires_grad, type(y.grad_fn).__name__ if lib is torch else y.grad_fn and y.grad_fn.name()
    found["versions"] = [None if t.is_inference() else t._version for t in seen]
    found["layouts"] = [(tuple(t.shape), t.stride(), str(t.dtype).rpartition(".")[2]) for t in seen]
    found["values"] = [opdb.plain(t).tobytes() for t in seen]
    found["tensors"] = seen
    return found


def given(sample: Any, lib: Any) -> Any:
    """A sample's operands, in this library's memory of their own, or in PyTorch's."""
    if lib is ours:
        return opdb.ours(sample.input), opdb.ours(sample.args), opdb.ours(sample.kwargs)
    own = lambda t: t.clone() if isinstance(t, torch.Tensor) else t
    return own(sample.input), tuple(own(a) for a in sample.args), {k: own(v) for k, v in sample.kwargs.items()}


def same(mine: dict[str, Any], theirs: dict[str, Any], what: str) -> None:
    """Two outcomes here are the same, bit for bit."""
    for key in ("error", "text", "unchanged", "itself", "requires grad", "versions", "layouts", "values"):
        assert mine.get(key) == theirs.get(key), f"{what}: {key}"


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """The second call of a kind counts."""
    monkeypatch.setattr(recurring, "FIRST", 1)
    recurring.forget()
    yield
    recurring.forget()


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("op", IN_PLACE, ids=opdb.title)
@pytest.mark.filterwarnings("ignore")
def test_calls_in_place_that_recur(op):
    theirs, mine = in_place(op)
    random = any(r in op.name for r in opdb.RANDOM)
    for dtype, sample in samples(op):
        kinds = [(changed, mode) for changed in CHANGED for mode in MODES]
        alone = {}
        for changed, mode in kinds:
            try:
                recurring.forget()
                alone[changed, mode] = outcome(mine, ours, changed, mode, given(sample, ours))
            except (*opdb.ERRORS, LookupError, opdb.Unsupported):  # there is no such operand
                continue
        recurring.forget()
        for mode in ("", "no_grad"):
            for k in range(CALLS):
                what = f"{opdb.title(op)}, {dtype}, call {k + 1} {mode}"
                found = outcome(mine, ours, "as before", mode, given(sample, ours))
                same(found, alone["as before", mode], what)
                if not found["error"]:
                    wanted = outcome(theirs, torch, "as before", mode, given(sample, torch))
                    assert not wanted["error"], what
                    assert (found["itself"], found["versions"], found["layouts"]) == (wanted["itself"], wanted["versions"], wanted["layouts"]), what
                    opdb.compare(found["tensors"], wanted["tensors"], what, not random)
            for changed, other in alone:
                for _ in range(2):
                    same(outcome(mine, ours, changed, other, given(sample, ours)), alone[changed, other], f"{opdb.title(op)}, {dtype}, {changed} {other}")


@pytest.mark.parity
@pytest.mark.parametrize("op", IN_PLACE, ids=opdb.title)
@pytest.mark.filterwarnings("ignore")
def test_repetitions_in_place_are_the_call_that_was_noted(op):
    _, mine = in_place(op)
    for _, sample in samples(op):
        with contextlib.suppress(*opdb.ERRORS, opdb.Unsupported), verified_calls():
            x, args, options = given(sample, ours)
            for _ in range(3):
                mine(x, *args, **options)


@pytest.mark.parity
@pytest.mark.parametrize("op", WITH_OUT, ids=opdb.title)
@pytest.mark.filterwarnings("ignore")
def test_repetitions_with_out_are_the_call_that_was_noted(op):
    function = opdb.find(op)
    for _, sample in samples(op):
        with contextlib.suppress(*opdb.ERRORS, opdb.Unsupported), verified_calls():
            x, args, options = given(sample, ours)
            out = function(x, *args, **options)
            out = out if isinstance(out, ours.Tensor) else tuple(out)
            for _ in range(3):
                function(x, *args, **options, out=out)
