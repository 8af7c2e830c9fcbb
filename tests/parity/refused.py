"""Bad arguments of modules and optimizers, from PyTorch's databases: refused as there, in a few words, before anything has changed.

``python -m tests.parity.refused modules|optimizers [--every N] [name…]`` prints each call on which the libraries differ (`verdicts.CATEGORIES`):
one raises and the other does not, a handler of PyTorch's exception would not catch ours, the results differ, or a refused call is told in
too many words or none that help, has changed a parameter, or has taken too long.
"""

from __future__ import annotations

import builtins
import copy
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

import autograd_nb as ag

from .children import Case, Group
from .moduledb import RANDOM, copy_state, ours
from .mutants import SHAPES, copies, replaced
from .opdb import compare, leaves, plain
from .verdicts import arguments, report, run, said, verdict

#: what stands in the place of an argument
BAD: dict[str, Any] = {
    "-1": -1, "0": 0, "2**63": 2**63, "-2**63-1": -(2**63) - 1, "2.5": 2.5, "-0.5": -0.5, "nan": float("nan"), "inf": float("inf"), "1e40": 1e40,
    "None": None, "'x'": "x", "[]": [], "(-1,)": (-1,), "[1.5, 2]": [1.5, 2], "1j": 1j, "True": True, "a tensor": torch.ones(2), "object": object,
}  # fmt: skip
DTYPES = (torch.float64, torch.float16, torch.int64, torch.bool, torch.complex64)
MOST = 2  #: samples of a module


def module_of(library: Any, name: str, args: tuple, kwargs: dict) -> Any:
    return getattr(library.nn, name)(*args, **kwargs).eval()


def called(name: str, args: Any, kwargs: Any, given: Any, given_kwargs: Any) -> str:
    """How the libraries differ on a module that is made and called."""
    a, k = ours(copies((args, kwargs)))
    theirs = run("PyTorch", lambda: module_of(torch, name, *copies((args, kwargs))))
    mine = run("ours", lambda: module_of(ag, name, a, k))
    if mine[0] == "refused" and theirs[0] == "made":  # told when it is made, not when it is called
        module = theirs[1]
        theirs = run("PyTorch", lambda: module(*copies(given), **copies(given_kwargs)))
    text = verdict(theirs, mine)
    if text is not None:
        return text
    state = list(theirs[1].state_dict().items())
    if [(n, v.shape) for n, v in state] != [(n, tuple(v.shape)) for n, v in mine[1].state_dict().items()]:
        return "wrong: made with other parameters"
    copy_state(mine[1], theirs[1])
    inputs, input_kwargs = ours(copies((given, given_kwargs)))
    expected = run("PyTorch", lambda: theirs[1](*copies(given), **copies(given_kwargs)))
    got = run("ours", lambda: mine[1](*inputs, **input_kwargs))
    text = verdict(expected, got)
    if text is not None:
        return text
    try:
        compare(got[1], expected[1], "output", not name.startswith(RANDOM))
    except builtins.Exception as error:
        return f"wrong: {' '.join(str(error).split())[:200]}"
    return ""


def parameters(function: Any) -> list[str]:
    """The names of the arguments that a constructor takes, without those that say where and of what dtype."""
    found = inspect.signature(function).parameters.values()
    return [p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in ("self", "device", "dtype")]


def of_module(info: Any) -> Iterator[Case]:
    """Calls with each argument of the constructor replaced, and each input."""
    name = info.module_cls.__name__
    torch.manual_seed(0)
    samples = list(info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=False))
    own = parameters(info.module_cls.__init__)
    for s, sample in enumerate(samples[:MOST]):
        made, given = sample.constructor_input, sample.forward_input
        whole = {**dict(zip(own, made.args)), **made.kwargs}
        if len(whole) < len(made.args) + len(made.kwargs):  # sizes in a row
            continue
        for argument in own if not s else []:
            for what, v in BAD.items():
                changed = {**whole, argument: v}
                yield f"{argument}={what}", lambda c=changed, g=given: called(name, (), c, g.args, g.kwargs)
        for n, t in enumerate(leaves((given.args, given.kwargs))):
            changes = [(str(d)[6:], lambda t, d=d: t.to(d)) for d in DTYPES] + list(SHAPES.items())
            for what, make in [*changes, ("None", lambda t: None), ("a number", lambda t: 2.0), ("a word", lambda t: "x")]:
                new = make(t)
                same = isinstance(new, torch.Tensor) and new.dtype is t.dtype and new.shape == t.shape
                if same or (new is None and what != "None"):
                    continue
                a, k = replaced((given.args, given.kwargs), n, make)
                yield f"#{s}, input {n} {what}", lambda w=whole, a=a, k=k: called(name, (), w, a, k)


def modules(names: list[str]) -> Iterator[Group]:
    for info in module_db:
        if info.module_cls.__name__ in (names or [info.module_cls.__name__]) and not info.is_lazy:
            yield info.module_cls.__name__, lambda i=info: of_module(i)


# ------------------------------------------------------------------------------------------------------ optimizers


def start(library: Any, name: str) -> list[Any]:
    shapes = [(3, 2), (2, 3)] if name == "Muon" else [(3, 2), (2,)]
    return [library.nn.Parameter(library.linspace(-1.0, 1.0, int(np.prod(s))).reshape(s)) for s in shapes]


PARAMS: dict[str, Callable[[Any, list[Any]], Any]] = {
    "None": lambda t, p: None, "[]": lambda t, p: [], "a word": lambda t, p: "x", "a tensor": lambda t, p: p[0], "[1]": lambda t, p: [1],
    "[None]": lambda t, p: [None], "a result": lambda t, p: [p[0] * 2], "no grad": lambda t, p: [p[0].detach()], "twice": lambda t, p: [p[0], p[0]],
    "integers": lambda t, p: [t.ones(3, dtype=t.int64)], "{}": lambda t, p: [{}], "no params": lambda t, p: [{"lr": 0.1}],
    "a set": lambda t, p: set(p), "params a set": lambda t, p: [{"params": set(p)}], "params None": lambda t, p: [{"params": None}],
    "in two groups": lambda t, p: [{"params": p}, {"params": p[:1]}], "mixed": lambda t, p: [{"params": p[:1]}, p[1]],
    "names of some": lambda t, p: [("a", p[0]), p[1]], "names": lambda t, p: [("a", p[0]), ("b", p[1])], "names twice": lambda t, p: [("a", p[0]), ("a", p[1])],
    "lr a word": lambda t, p: [{"params": p, "lr": "x"}], "lr None": lambda t, p: [{"params": p, "lr": None}],
    "an unknown option": lambda t, p: [{"params": p, "what": 1}],
}  # fmt: skip
GRADS: dict[str, Callable[[Any, Any], Any]] = {
    "None": lambda t, p: None, "of another shape": lambda t, p: t.ones(5), "of another dtype": lambda t, p: t.ones(p.shape, dtype=t.float64),
    "of integers": lambda t, p: t.ones(p.shape, dtype=t.int64), "a number": lambda t, p: 2.0, "an array": lambda t, p: np.ones(p.shape),
    "nan": lambda t, p: t.full(p.shape, float("nan")), "itself": lambda t, p: p,
}  # fmt: skip


def stepped(library: Any, name: str, params: list[Any], given: Any, kwargs: dict[str, Any], grad: Any = None) -> Any:
    """The parameters after two steps."""
    optimizer = getattr(library.optim, name)(given, **kwargs)
    for k, p in enumerate(params):
        p.grad = (library.ones(p.shape) * 0.3) if grad is None or k else grad(library, p)
    for _ in range(2):
        optimizer.step(*[lambda: sum((p.detach() ** 2).sum() for p in params)] * (name == "LBFGS"))
    return params


def optimized(name: str, make: Callable[[Any, list[Any]], Any], kwargs: dict[str, Any], grad: Any = None) -> str:
    theirs, mine = start(torch, name), start(ag, name)
    before = [plain(p).copy() for p in mine]
    own = {k: ours(v) for k, v in kwargs.items()}
    a = run("PyTorch", lambda: stepped(torch, name, theirs, make(torch, theirs), copy.deepcopy(kwargs), grad))
    b = run("ours", lambda: stepped(ag, name, mine, make(ag, mine), own, grad))
    text = verdict(a, b)
    if b[0] == "refused" and any(not np.array_equal(plain(p), q) for p, q in zip(mine, before, strict=True)):
        if all(np.array_equal(plain(p), plain(q)) for p, q in zip(theirs, start(torch, name), strict=True)):
            return f"wrong: refused after it had changed a parameter: ours {said(b[1])}"
    if text is not None:
        return text
    try:
        compare(mine, theirs, "parameter")
    except AssertionError as error:
        return f"wrong: {' '.join(str(error).split())[:200]}"
    return ""


def of_optimizer(info: Any) -> Iterator[Case]:
    """Calls with each option replaced, each kind of parameters and each kind of gradient."""
    whole: Callable[[Any, list[Any]], Any] = lambda t, p: p
    name, own = info.optim_cls.__name__, parameters(info.optim_cls.__init__)
    for argument in own:
        for what, v in BAD.items():
            if argument != "params":
                yield f"{argument}={what}", lambda c={argument: v}: optimized(name, whole, c)
    for argument in (a for a in ("betas", "etas", "step_sizes") if a in own):
        for v in ((0.9,), (0.9, 1.0), (-0.1, 0.5), (0.9, 0.99, 0.999), (float("nan"), 0.5), ("x", 0.9), (None, 0.9)):
            yield f"{argument}={v}", lambda c={argument: v}: optimized(name, whole, c)
    for what, make in PARAMS.items():
        yield f"params {what}", lambda m=make: optimized(name, m, {})
    for what, grad in GRADS.items():
        yield f"gradient {what}", lambda g=grad: optimized(name, whole, {}, g)
    yield "an unknown option", lambda: optimized(name, whole, {"what": 1})


def optimizers(names: list[str]) -> Iterator[Group]:
    for info in optim_db:
        if info.optim_cls.__name__ in (names or [info.optim_cls.__name__]) and not info.only_supports_sparse_grads:
            yield info.optim_cls.__name__, lambda i=info: of_optimizer(i)


WALKS: dict[str, Callable[[list[str]], Iterator[Group]]] = {"modules": modules, "optimizers": optimizers}
#: of a walk, (why, patterns of lines) of the differences that stay
KNOWN: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "modules": [
        ("both refuse, and PyTorch says first that it has no kernel (a NotImplementedError is a RuntimeError)",
         ("* kind: ours RuntimeError: *; PyTorch NotImplementedError: *",)),
        ("both refuse; here a tensor is no number, PyTorch gets as far as computing with it",
         ("* kind: ours TypeError: * must be Number, not Tensor*; PyTorch RuntimeError: *",)),
        ("both refuse sizes; PyTorch by the first of several faults", (
            "Bilinear in1_features=*: kind: *", "PReLU num_parameters=*", "BatchNorm* num_features=*: kind: *",
            "MultiheadAttention *dim=*: kind: *", "*0-d: kind: ours RuntimeError: *; PyTorch IndexError: *",
            "LinearCrossEntropyLoss options=object: kind: *", "Embedding padding_idx=nan: kind: *",
            "GaussianNLLLoss eps=None: kind: *", "Transformer* dropout=nan: kind: *")),
        ("losses and activations of complex numbers: PyTorch computes something by chance of what they are made of",
         ("*complex64: refused: ours NotImplementedError: *", "LocalResponseNorm *=1j: refused: *", "CTCLoss * complex64: refused: *")),
        ("PyTorch reads memory past its labels, or takes labels that are no integers",
         ("CTCLoss #*: refused: ours RuntimeError: ctc_loss: targets must be *",)),
        ("the states of a cell have one shape here", ("LSTMCell #*, input 2 *: refused: *",)),
        ("gates of float32 are rounded in their last bits, whatever state they meet", ("LSTMCell #*, input 2 float64: wrong: *",)),
        ("integers beyond 64 bits meet other conversions",
         ("*=-2**63-1: accepted: *", "LocalResponseNorm size=*2**63*: kind: *")),
        ("kernels for half precision, complex numbers and integers that PyTorch has not", (
            "*float16: accepted: PyTorch NotImplementedError: *", "InstanceNorm* complex64: accepted: *")),
    ],
    "optimizers": [
        ("numbers beyond float32 are infinite in its arithmetic, or meet others that are", (
            "*=1e40: accepted: PyTorch RuntimeError: value cannot be converted to type float without overflow", "Adafactor weight_decay=1e40: wrong: *",
            "ASGD lambd=-2**63-1: wrong: *")),
        ("a power or a conversion of Python's that overflows in PyTorch", (
            "ASGD alpha=*: accepted: PyTorch *Error: *", "LBFGS *=*2**63*: accepted: PyTorch OverflowError: *",
            "Muon eps=-2**63-1: accepted: PyTorch OverflowError: *")),
        ("an option that is no number is refused where the optimizer is made; PyTorch stumbles over it where it computes, or does not notice", (
            "ASGD alpha=1j: refused: *", "Rprop step_sizes=(None, 0.9): refused: *", "* kind: ours TypeError: an optimizer's option must be a number, *")),
        ("PyTorch asks for this flag only where there is weight decay", ("* decoupled_weight_decay=a tensor: refused: *",)),
        ("nan for a bound bounds nothing; in PyTorch it is the result", ("Rprop step_sizes=(nan, 0.5): wrong: *",)),
    ],
}


if __name__ == "__main__":
    walk, every, names = arguments(sys.argv[1:])
    sys.exit(report(list(WALKS[walk](names)), KNOWN.get(walk, ()), every, every == 1 and not names))
