"""What may be changed in place between forward and backward: PyTorch's answer and ours, for every tensor that an op reads or makes.

``python -m tests.parity.saved [name…]`` prints each pair (op and sample; operand or result) in which they differ, and how many
pairs were compared; ``--part K N`` walks one of N parts of the databases of ops and modules. The table is made live from PyTorch:
an op is called once, the version of one tensor is moved on as an in-place op would do it, and a backward pass either raises or not.
With ``--shown`` operands are views that show conjugates, or negatives, and only ops are walked.
"""

from __future__ import annotations

import builtins
import contextlib
import fnmatch
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db

import autograd_nb as ag

from . import moduledb
from .opdb import Unsupported, find, leaves, ours, outside, samples_of, spellings, title

PHRASE = "modified by an inplace operation"
ALONE = 4  #: samples of which each operand is also the only one that requires grad
MOST = 6  #: samples of an op in a walk over all; of those that take long without a compiler `SLOW` gives the number
SLOW = {"nn.functional.grid_sample": 1, "grid_sampler_2d": 1, "grid_sampler_3d": 0, "nn.functional.embedding_bag": 3,
        "nn.functional.multi_head_attention_forward": 2, "nn.functional.ctc_loss": 3}  # fmt: skip
SHOWN: list[bool] = []  #: holds something where operands are views that show conjugates or negatives
#: calls that PyTorch has and we have not
MISSING = {"nn.functional.silu (complex)": "takes no complex numbers here"}
#: entries of which something is known to differ: why, and what (as patterns, each of which has to be found)
KNOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "nn.functional.linear_cross_entropy (chunked)": (
        "PyTorch's computes its gradients in the forward pass and keeps only those",
        ("#*: operand ? wrongly refused", "#* (grad of ?): operand ? wrongly refused"),
    ),
}
#: the same where operands are views that show conjugates or negatives
KNOWN_SHOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "nn.functional.linear_cross_entropy (chunked)": (*KNOWN["nn.functional.linear_cross_entropy (chunked)"],),
    "put": ("what is put into such a view is copied before", ("*in place*: operand 2 wrongly allowed",)),
    **{f"nn.functional.conv{kind}{n}d": (
        "PyTorch computes those of complex numbers by parts, which are copies of such views", ("complex #*: operand ? wrongly refused",),
    ) for kind in ("", "_transpose") for n in (1, 2, 3)},
}


class Stop(Exception):
    """Our backward pass has checked everything and would begin to run."""


@dataclass
class Table:
    """What was compared for one op or module."""

    name: str
    pairs: int = 0
    known: int = 0  #: differences that the walk lists with their reasons
    differences: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def sort(self, known: Collection[str]) -> None:
        """Tell differences that are known (as patterns) from others; a pattern that none has any more is a failure."""
        found = {text for pattern in known for text in fnmatch.filter(self.differences, pattern)}
        if self.pairs:
            self.failures += [f"{p}: is known to differ, and does not" for p in known if not fnmatch.filter(self.differences, p)]
        self.known += len(found)
        self.differences = [text for text in self.differences if text not in found]


def stop(*_: Any) -> None:
    raise Stop


def grown(tree: Any, mask: Callable[[int], bool], count: list[int]) -> tuple[Any, list, list]:
    """(``tree`` with tensors that are no leaves of the graph, all of these, the leaves that require grad)."""
    if isinstance(tree, (torch.Tensor, ag.Tensor)):
        leaf = tree.detach().clone()
        if tree.requires_grad:
            count[0] += 1
            if mask(count[0] - 1):
                leaf.requires_grad_()
        t = leaf.clone()
        if SHOWN and (t.is_complex() or t.is_floating_point()):
            t = t.conj() if t.is_complex() else t._neg_view()
        return t, [t], [leaf] if leaf.requires_grad else []
    if isinstance(tree, (list, tuple)):
        found = [grown(v, mask, count) for v in tree]
        made: Any = [f[0] for f in found]
        if not isinstance(tree, list):
            made = tuple(made) if type(tree) is tuple else tree if not any(f[1] for f in found) else type(tree)(*made)
        return made, [t for f in found for t in f[1]], [t for f in found for t in f[2]]
    if isinstance(tree, dict):
        found = [grown(v, mask, count) for v in tree.values()]
        return (
            dict(zip(tree, [f[0] for f in found], strict=True)),
            [t for f in found for t in f[1]],
            [t for f in found for t in f[2]],
        )
    return tree, [], []


def refused(outs: list, inputs: list, t: Any) -> bool:
    """Whether a backward pass is refused after ``t`` was changed; ``t`` is put back."""
    theirs = isinstance(t, torch.Tensor)
    library: Any = torch if theirs else ag
    with contextlib.ExitStack() as after:
        if theirs:
            version = t._version
            torch.autograd.graph.increment_version(t)
            after.callback(torch._C._autograd._unsafe_set_version_counter, (t,), (version,))
        else:
            counter = t._version_
            ag.autograd.graph.increment_version(t)
            after.callback(counter.__setitem__, 0, counter[0] - 1)
        try:
            library.autograd.grad(outs, inputs, [library.ones_like(y) for y in outs], retain_graph=True, allow_unused=True)
        except Stop:
            return False
        except RuntimeError as error:
            if PHRASE not in str(error):
                raise
            return True
    return False


def answers(
    call: Callable, args: Any, kwargs: Any, mask: Callable[[int], bool], own: Sequence[Any] = ()
) -> list[tuple[str, bool]]:
    """("operand 0", refused), … of one call; RuntimeError where even an untouched graph cannot be run backward.

    own: the tensors of a module, which are changed too.
    """
    (args, kwargs), operands, inputs = grown((args, kwargs), mask, [0])
    inputs = [*inputs, *[t for t in own if t.requires_grad]]
    made = [t for t in leaves(call(*args, **kwargs)) if isinstance(t, (torch.Tensor, ag.Tensor))]
    outs = [t for t in made if t.requires_grad]
    if not outs or not inputs:
        return []
    if isinstance(outs[0], ag.Tensor):
        for t in outs:
            t.register_hook(stop)
    else:
        torch.autograd.grad(outs, inputs, [torch.ones_like(y) for y in outs], retain_graph=True, allow_unused=True)
    found = [(f"operand {i}", t) for i, t in enumerate(operands)] + [(f"tensor {i} of the module", t) for i, t in enumerate(own)]
    found += [(f"result {i}", t) for i, t in enumerate(made) if not any(t is o for o in operands)]
    return [(name, refused(outs, inputs, t)) for name, t in found]


def compare(table: Table, what: str, theirs: list, mine: list) -> None:
    table.pairs += len(theirs)
    if [name for name, _ in theirs] != [name for name, _ in mine]:
        table.failures.append(f"{what}: {[name for name, _ in mine]} instead of {[name for name, _ in theirs]}")
        return
    for (name, expected), (_, got) in zip(theirs, mine, strict=True):
        if got is not expected:
            table.differences.append(f"{what}: {name} wrongly {'refused' if got else 'allowed'}")


def masks(count: int, alone: bool) -> Iterator[tuple[str, Callable[[int], bool]]]:
    """Which of ``count`` differentiable operands require grad: all, then one at a time."""
    yield "", lambda i: True
    if alone and 1 < count <= 4:
        for k in range(count):
            yield f" (grad of {k})", lambda i, k=k: i == k


def run_call(table: Table, what: str, theirs: Callable, mine: Callable, args: Any, kwargs: Any, alone: bool) -> None:
    """Compare one call for every choice of operands that require grad."""
    own_args, own_kwargs = ours((args, kwargs))
    count = sum(t.requires_grad for t in leaves((args, kwargs)))
    for which, mask in masks(count, alone):
        try:
            torch.manual_seed(0)
            expected = answers(theirs, args, kwargs, mask)
        except builtins.Exception:  # no derivative there
            continue
        if not expected:
            continue
        try:
            compare(table, what + which, expected, answers(mine, own_args, own_kwargs, mask))
        except builtins.Exception as error:
            table.failures.append(f"{what}{which}: {type(error).__name__}: {' '.join(str(error).split())[:160]}")


def calls_of(op: Any, most: int | None) -> Iterator[tuple[Any, int, str, Callable, Callable, Any, Any]]:
    """Dtype, number, "" or " in place", PyTorch's function and ours, arguments and keywords of an op's samples: ``most`` of them, two of complex
    numbers; none of an op without derivatives."""
    function = find(op)
    if function is None or not op.supports_autograd:
        return
    kinds = [("", op, function)]
    for what, theirs, mine in spellings(op):
        if what == "in place" and op.supports_inplace_autograd and mine is not None:
            kinds.append((" in place", theirs, mine))
    for dtype, count in ((torch.float64, most), (torch.complex128, 2)):
        if dtype not in op.supported_dtypes("cpu") or (dtype.is_complex and title(op) in MISSING):
            continue
        for k, sample in enumerate(samples_of(op, dtype, True)[:count]):
            for kind, theirs, mine in kinds:
                yield dtype, k, kind, theirs, mine, (sample.input, *sample.args), sample.kwargs


def check(op: Any, most: int | None = None) -> Table:
    """All samples of an op, as a function and in place."""
    table = Table(title(op))
    for dtype, k, kind, theirs, mine, args, kwargs in calls_of(op, most):
        if not any(t.requires_grad for t in leaves((args, kwargs))):
            continue
        with warnings.catch_warnings(), contextlib.suppress(Unsupported):
            warnings.simplefilter("ignore")
            run_call(table, f"{'complex ' if dtype.is_complex else ''}#{k}{kind}", theirs, mine, args, kwargs, k < ALONE)
    return table


def check_module(info: Any, most: int | None = None) -> Table:
    """Inputs, parameters, buffers and outputs of a module, in training and evaluation."""
    name = info.module_cls.__name__
    table = Table(name)
    for training in (True, False):
        torch.manual_seed(0)
        samples = info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True, training=training)
        for k, sample in enumerate(list(samples)[:most]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with contextlib.suppress(Unsupported):
                    run_module(table, info, name, f"{'training' if training else 'evaluation'} #{k}", sample, training)
    return table


def run_module(table: Table, info: Any, name: str, what: str, sample: Any, training: bool) -> None:
    made, given = sample.constructor_input, sample.forward_input
    theirs = moduledb.cast(info.module_cls(*made.args, **made.kwargs), torch.float64).train(training)
    mine = moduledb.cast(getattr(ag.nn, name)(*moduledb.ours(made.args), **moduledb.ours(made.kwargs)), torch.float64).train(training)
    args, kwargs = moduledb.ours((given.args, given.kwargs))
    if info.is_lazy:
        theirs(*given.args, **given.kwargs), mine(*args, **kwargs)
    moduledb.copy_state(mine, theirs)
    own = [[t for _, t in [*m.named_parameters(), *m.named_buffers()]] for m in (theirs, mine)]
    try:
        expected = answers(theirs, given.args, given.kwargs, lambda i: True, own[0])
    except builtins.Exception:
        return
    try:
        compare(table, what, expected, answers(mine, args, kwargs, lambda i: True, own[1]))
    except builtins.Exception as error:
        table.failures.append(f"{what}: {type(error).__name__}: {' '.join(str(error).split())[:160]}")


def entries(names: list[str], part: int, parts: int, check: Callable[[Any], Table]) -> Iterator[Table]:
    """The tables of the ops of these names (of all: one of ``parts`` parts)."""
    for k, op in enumerate(op_db):
        if not outside(title(op)) and (op.name in names if names else k % parts == part):
            yield check(op)


def modules(names: list[str], part: int, parts: int) -> Iterator[Table]:
    """The same of modules."""
    for k, info in enumerate(module_db):
        if info.module_cls.__name__ in names if names else k % parts == part:
            yield check_module(info, None if names else 2)


def report(
    arguments: list[str], check: Callable[[Any], Table], known: Mapping[str, tuple[str, Collection[str]]], what: str,
    others: Callable[..., Iterator] = lambda *_: iter(()),
) -> int:  # fmt: skip
    """Walk the op database (``--part K N``: a part of it; names: these) and ``others``, print what differs; how the process ends.

    known: name of a table -> why it differs, and where, as patterns of the differences' texts.
    """
    part, parts = 0, 1
    if arguments[:1] == ["--part"]:
        part, parts, arguments = int(arguments[1]), int(arguments[2]), arguments[3:]
    tables = pairs = wrong = explained = 0
    for table in chain(entries(arguments, part, parts, check), others(arguments, part, parts)):
        reason, patterns = known.get(table.name, ("", ()))
        table.sort(patterns)
        tables, pairs, explained = tables + (table.pairs > 0), pairs + table.pairs, explained + table.known
        found = table.differences + table.failures
        wrong += len(found)
        if table.known:
            print(f"{table.name}: {table.known} of {table.pairs}, known: {reason}", flush=True)
        if found:
            print(f"{table.name}: {len(found)} of {table.pairs}", flush=True)
        for text in found if arguments else found[:30]:
            print("          ", text[:400], flush=True)
    print(f"{pairs} {what} of {tables} entries compared; {wrong} differ, {explained} are known to.")
    return 1 if wrong else 0


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--shown"]:
        SHOWN.append(True)
        return report(arguments[1:], lambda op: check(op, SLOW.get(op.name, 1)), KNOWN_SHOWN, "pairs")
    return report(
        arguments, lambda op: check(op, None if arguments[:1] not in ([], ["--part"]) else SLOW.get(op.name, MOST)),
        KNOWN, "pairs", modules,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
