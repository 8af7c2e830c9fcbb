"""Compiled modules against eager ones, for every module of PyTorch's database: none may run eagerly without a word.

``python -m tests.parity.compiled_modules [name…]`` calls each module, in training and in evaluation, by itself and in a training step,
compiled with ``fullgraph=True`` and in a copy that is not. It prints why calls were not captured, where a call that is like the one before
was captured anew, and which results, gradients, parameters and buffers differ. With ``NUMBA_DISABLE_JIT=1`` programs are run by Python.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_modules import module_db

import autograd_nb as ag

from ..compiler import interpreted
from .compiled import mapped
from .moduledb import ours
from .opdb import Unsupported, leaves

CALLS = 3
MOST = 2  #: samples of a module in training, and in evaluation
#: modules of which some calls run eagerly, and say so: why, and what they say
EAGER: dict[str, tuple[str, str]] = {
    "AdaptiveLogSoftmaxWithLoss": ("how many targets there are of each cluster decides about the sizes of what is multiplied", "reads values with item()"),
    "Unflatten": ("what it returns is a view of its argument that requires grad, whose history a program has not",
        "a result is a view of an argument that requires grad"),
}  # fmt: skip
#: modules that are not in the database: how one is made, and what it is called with
FURTHER: dict[str, tuple[str, str]] = {
    "AdaptiveLogSoftmaxWithLoss": ("4, 12, cutoffs=[3, 6]", "x(5, 4), ag.tensor([0, 3, 5, 7, 11])"),
    **dict.fromkeys(("AlphaDropout", "Dropout", "RReLU", "Hardsigmoid", "Identity", "Flatten"), ("", "x(3, 4)")),
    "Dropout1d": ("", "x(2, 3, 4)"), "Dropout2d": ("", "x(2, 3, 4, 4)"), "Dropout3d": ("", "x(2, 3, 2, 2, 2)"),
    "FeatureAlphaDropout": ("", "x(2, 3, 4)"), "ChannelShuffle": ("2", "x(1, 4, 2, 2)"), "CrossMapLRN2d": ("2", "x(1, 4, 3, 3)"),
    **dict.fromkeys(("CosineSimilarity", "PairwiseDistance"), ("", "x(3, 4), x(3, 4)")),
    "EmbeddingBag": ("6, 3", "ag.tensor([1, 2, 4, 5, 4]), ag.tensor([0, 2])"),
    "Fold": ("(3, 3), 2", "x(1, 4, 4)"), "Unfold": ("2", "x(1, 2, 3, 3)"),
    "LazyBatchNorm1d": ("", "x(4, 3)"), "LazyBatchNorm2d": ("", "x(2, 3, 2, 2)"), "LazyBatchNorm3d": ("", "x(2, 3, 2, 2, 2)"),
    "LazyInstanceNorm1d": ("", "x(2, 3, 4)"), "LazyInstanceNorm2d": ("", "x(2, 3, 2, 2)"), "LazyInstanceNorm3d": ("", "x(2, 3, 2, 2, 2)"),
    "LazyLinear": ("2", "x(3, 4)"),
    "MaxUnpool1d": ("2", "x(1, 1, 2), ag.tensor([[[1, 2]]])"), "MaxUnpool2d": ("2", "x(1, 1, 1, 2), ag.tensor([[[[1, 6]]]])"),
    "MaxUnpool3d": ("2", "x(1, 1, 1, 1, 2), ag.tensor([[[[[1, 6]]]]])"),
    "NLLLoss2d": ("", "x(1, 3, 2, 2), ag.zeros(1, 2, 2, dtype=ag.int64)"), "PixelShuffle": ("2", "x(1, 4, 2, 2)"),
    "PixelUnshuffle": ("2", "x(1, 1, 2, 2)"), "SyncBatchNorm": ("3", "x(4, 3)"),
    "Sequential": ("ag.nn.Linear(4, 3), ag.nn.ModuleList([ag.nn.Tanh()])[0], ag.nn.ModuleDict({'a': ag.nn.Linear(3, 2)})['a']", "x(5, 4)"),
    "TransformerDecoder": ("ag.nn.TransformerDecoderLayer(4, 2, 8), 2", "x(3, 2, 4), x(5, 2, 4)"),
    "TripletMarginLoss": ("", "x(3, 4), x(3, 4), x(3, 4)"), "TripletMarginWithDistanceLoss": ("", "x(3, 4), x(3, 4), x(3, 4)"),
    "Unflatten": ("1, (2, 2)", "x(3, 4)"), "Upsample": ("scale_factor=2", "x(1, 1, 2, 2)"),
    "UpsamplingBilinear2d": ("scale_factor=2", "x(1, 1, 2, 2)"), "UpsamplingNearest2d": ("scale_factor=2", "x(1, 1, 2, 2)"),
}  # fmt: skip
#: what only holds others, or that others are made of
HOLDERS = {"Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "RNNBase", "RNNCellBase", "DataParallel"}
#: the names of all, each with its entry in the database or None
ALL: dict[str, Any] = {**dict.fromkeys(FURTHER), **{i.module_cls.__name__: i for i in module_db}}


def further(name: str, training: bool) -> Iterator[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """A module of ours that is not in the database."""
    made, given = FURTHER[name]
    ag.manual_seed(0)
    names = {"ag": ag, "x": lambda *shape: ag.randn(*shape, requires_grad=True)}
    module = eval(f"ag.nn.{name}({made})", names).train(training)
    args = eval(f"({given},)", names)
    if name.startswith("Lazy"):
        module(*args)
    yield module, args, {}


def samples(info: Any, training: bool) -> Iterator[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """Modules and what they are called with."""
    torch.manual_seed(0)
    dtype = torch.float64 if info.module_cls.__name__.startswith("Fractional") else torch.float32  # (of which the places drawn are given)
    given = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    for sample in list(given)[:MOST]:
        with contextlib.suppress(Unsupported):
            made, called = sample.constructor_input, sample.forward_input
            ag.manual_seed(0)
            module = getattr(ag.nn, info.module_cls.__name__)(*ours(made.args), **ours(made.kwargs)).train(training)
            args, kwargs = ours((called.args, called.kwargs))
            if info.is_lazy:
                module(*args, **kwargs)
            yield module, args, kwargs


def forward(module: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: module(*args, **kwargs)


def training_step(module: Any) -> Callable[..., Any]:
    """A step of SGD by the squares of what the module returns; of one without parameters the gradients of its inputs."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    optimizer = ag.optim.SGD(parameters, lr=0.01) if parameters else None

    def step(*args: Any, **kwargs: Any) -> Any:
        inputs = [t for t in leaves((args, kwargs)) if t.requires_grad]
        if optimizer is not None:
            optimizer.zero_grad()
        found = [t for t in leaves(module(*args, **kwargs)) if t.requires_grad]
        loss = sum([(t.abs() ** 2).mean() for t in found])
        if optimizer is None:
            return ag.autograd.grad(loss, inputs, allow_unused=True) if found else ()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def constant(tree: Any) -> Any:
    """The arguments, of which none requires grad."""
    return mapped(tree, lambda t: t.detach())


def told(out: Any, module: Any, args: Any) -> list[Any]:
    """What a call has made and left."""
    tensors = [*leaves(out), *[t.grad for t in leaves(args) if t.requires_grad], *module.state_dict().values()]
    return [None if t is None else t.detach().numpy().copy() for t in tensors]


def unlike(mine: list[Any], theirs: list[Any]) -> bool:
    return len(mine) != len(theirs) or not all(
        (a is None) == (b is None) and (a is None or (a.dtype == b.dtype and np.allclose(a, b, 1e-4, 1e-5, equal_nan=True)))
        for a, b in zip(mine, theirs, strict=True)
    )


def check(way: Callable[[Any], Callable[..., Any]], module: Any, args: Any, kwargs: Any) -> Iterator[str]:
    """How calls differ from eager ones."""
    other = copy.deepcopy(module)
    if way is training_step and any(p.requires_grad for p in module.parameters()):
        args, kwargs = constant(args), constant(kwargs)
    compiled, eager = ag.compile(way(module), fullgraph=True), way(other)
    counts = []
    for k in range(CALLS):
        for t in leaves((args, kwargs)):
            t.grad = None
        seen = []
        for run, its in ((eager, other), (compiled, module)):
            ag.manual_seed(k)
            try:
                out = run(*args, **kwargs)
            except builtins.Exception as error:
                seen.append([])
                text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                if run is compiled:
                    yield text
                    return
                yield f"eager {text}"
                return
            seen.append(told(out, its, (args, kwargs)))
            for t in leaves((args, kwargs)):
                t.grad = None
        if unlike(seen[1], seen[0]):
            yield f"call {k} differs from the eager one"
            return
        counts.append(len(compiled.programs))
    if not counts[-1]:
        yield "runs eagerly without a word"
    elif counts[-1] != counts[-2]:
        yield f"is captured again: {compiled.programs[-1].reason}"


def main(names: list[str]) -> int:
    interpreted.install()
    part, parts = 0, 1
    if names[:1] == ["--part"]:
        part, parts, names = int(names[1]), int(names[2]), names[3:]
    modules = calls = wrong = 0
    missing = {n for n, m in vars(ag.nn).items() if isinstance(m, type) and issubclass(m, ag.nn.Module)} - HOLDERS - set(ALL)
    wrong += bool(missing)
    if missing:
        print(f"in neither list: {sorted(missing)}")
    for number, (name, info) in enumerate(ALL.items()):
        if name not in names if names else number % parts != part:
            continue
        modules += 1
        found = []
        for training in (True, False):
            for k, (module, args, kwargs) in enumerate(further(name, training) if info is None else samples(info, training)):
                for way in (forward, training_step)[: 1 + training]:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        calls += CALLS
                        told_why = EAGER.get(name, ("", "\0"))[1]
                        what = f"{'training' if training else 'evaluation'} #{k} {way.__name__}"
                        found += [f"{what}: {text}" for text in check(way, copy.deepcopy(module), args, kwargs) if told_why not in text]
        wrong += bool(found)
        for text in found if names else found[:4]:
            print(f"{name} {text}", flush=True)
    print(f"{modules} modules, {calls} calls; {wrong} modules differ.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
