"""Programs whose backward passes and calls are replayed: ``python -m tests.fuzz --replays`` (see `graph.recurring`, `ops.core.known_calls`).

``python -m tests.fuzz.replays`` walks over all ops instead.

What is compared is this library with itself. A program runs without replays; then programs that are nearly the same run, so that what
they do is noted, and then the program again, twice, with replays of all that is taken to be alike. It must come to the same bits, the
same errors and the same counts of changes. Statements are compiled once, so that all these programs come to the same lines.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import gc
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

import autograd_nb as ours
from autograd_nb.graph import node, noted, recurring
from autograd_nb.ops.core import structured
from autograd_nb.ops.core.known_calls import NO_OPTIONS

from ..compiler import interpreted
from . import generate
from .compare import Difference, first_difference
from .program import Call, Calls, Program, call, trace

NEAR = 3  #: programs that run before
POISON = 0.731
REPLAYED = [0, 0]  #: passes, and calls of forward functions, that were replays
#: a result of a forward function that has parts which nobody writes or reads
UNWRITTEN = re.compile(r"ctc_loss")


def _poisoned(size: int, dtype: Any) -> np.ndarray:
    """Memory in which what nobody writes shows."""
    made = np.empty(size, dtype)
    made.fill(POISON if made.dtype.kind in "fc" else 1)
    return made


class _Anywhere:
    """A root without the line that recorded it."""

    is_leaf_edge, code, lasti = False, None, 0

    def __init__(self, root: Any):
        node = getattr(root, "node", root)
        self.is_leaf_edge, self.alike = root.is_leaf_edge, None if root.is_leaf_edge else node.alike


def _forget() -> None:
    recurring.forget()
    for op in structured.NAMED.values():
        op._known.clear()


@contextmanager
def replays(first: int) -> Iterator[None]:
    """Note the ``first``-th pass and call of each kind within the context; none for 0. What replays give is poisoned before."""
    before, recurring.FIRST = recurring.FIRST, first
    kind, recurring.kind = recurring.kind, lambda root, g, targets=None: kind(_Anywhere(root), g, targets)
    array, run, known = noted.np, recurring.Root.run, structured.Known.run
    noted.np = SimpleNamespace(ndarray=np.ndarray, empty=_poisoned)

    def counted(self: Any, *args: Any) -> Any:
        self.fresh = None  # what was noted last is on no trial
        done = run(self, *args)
        REPLAYED[0] += done is not None
        return done

    def called(self: Any, forward: Any, args: Any, options: Any = NO_OPTIONS) -> Any:
        self.fresh = None
        missed = self.missed
        out = known(self, forward, args, options)
        REPLAYED[1] += self.missed == missed
        return out

    recurring.Root.run, structured.Known.run = counted, called
    node._internal[__file__] = True  # what is recorded behind these is the program's
    _forget()
    try:
        yield
    finally:
        node._internal.pop(__file__)
        recurring.FIRST, noted.np, recurring.Root.run, structured.Known.run, recurring.kind = before, array, run, known, kind
        _forget()


# ------------------------------------------------------------------------------------------------------------ nearly the same

_MADE = re.compile(r"make\((\d+), (\([\d, ]*\)), (['\"]\w+['\"])\)")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(\.\d+)?(?![\w.])")
#: what is put between two statements
BETWEEN = [
    "{p}.requires_grad_(False)", "{p}.requires_grad_(True)", "{p}.grad = None", "{p}.grad = torch.ones_like({p})", "{p}.data = {p}.data * 1",
    "{p}.data = {p}.data.t().contiguous().t()", "{p} = {p}.clone()", "{p} = {p}.detach()", "{p}.grad = {q}.grad", "{p}.grad = {p}.detach()", "{p} = {q}",
    "{p}.register_hook(lambda g: g * 2)", "{p}.detach().add_(1)", "torch.set_grad_enabled(False)", "torch.set_default_dtype(torch.float64)",
    "{p} = {p}.double()", "{p} = {p}.float()", "{p} = {q}.detach()[...]", "{p}.data = {q}.data", "{p} = torch.from_numpy({p}.detach().numpy())",
    "{p} = {p}.t().contiguous().t()", "{p} = {p}.expand(2, *{p}.shape)[0]", "{p} = torch.nn.Parameter({p}.detach())", "{p}.mul_(1)",
    "{p}.register_post_accumulate_grad_hook(lambda z: None)", "{p} = torch.stack([{p}, {p}])[0]", "{p} = torch.stack([{p}, {q}], -1)[..., 0]",
]  # fmt: skip


def _statement(rng: random.Random, text: str) -> str:
    """A statement with other numbers, or a leaf of another kind."""
    def made(match: re.Match) -> str:
        seed, shape, dtype = match.groups()
        chance = rng.random()
        if chance < 0.08:
            dtype = rng.choice(["'float32'", "'float64'", "'int64'", "'complex128'"])
        elif chance < 0.14:
            shape = repr(tuple(n + 1 for n in ast.literal_eval(shape)))
        elif chance < 0.2:
            return f"make({int(seed) + 100}, {shape[:-1]}{'' if shape.endswith(',)') or shape == '()' else ','} 2), {dtype})[..., 0]"
        return f"make({int(seed) + rng.choice([0, 100])}, {shape}, {dtype})"

    if rng.random() < 0.3:  # another number
        numbers = list(_NUMBER.finditer(text))
        if numbers:
            k = rng.choice(numbers)
            text = text[: k.start()] + rng.choice(["0.75", "-0.5", "3.0"] if "." in k[0] else ["0", "1", "2", "-1"]) + text[k.end() :]
    return _MADE.sub(made, text)


def _varied(rng: random.Random, statements: tuple[str, ...]) -> tuple[str, ...]:
    """Statements of which some are left out, moved, or have others between them."""
    found = [_statement(rng, s) for s in statements]
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        k = rng.randrange(len(found) + 1)
        chance = rng.random()
        if chance < 0.3 and k < len(found):
            del found[k]
        elif chance < 0.45 and k + 1 < len(found):
            found[k], found[k + 1] = found[k + 1], found[k]
        elif chance < 0.55 and k < len(found):
            found.insert(k, found[k])
        else:
            names = sorted(set(re.findall(r"\bv\d+\b|\b[wbxy]\b|\bbuf\b", "\n".join(found[:k]))))
            if names:
                found.insert(k, rng.choice(BETWEEN).format(p=rng.choice(names), q=rng.choice(names)))
    return tuple(found)


def near(seed: str, program: Any) -> list[Any]:
    """Programs nearly the same as one."""
    rng = random.Random(f"{seed} near")
    if isinstance(program, Program):
        return [Program(_varied(rng, program.statements)) for _ in range(NEAR)]
    found: list[Any] = []
    for _ in range(2):
        calls = [
            Call(_varied(rng, c.before) if c.before else (), tuple(_statement(rng, g) for g in c.given), _varied(rng, c.after) if c.after else ())
            for c in program.calls
        ]
        rng.shuffle(calls)
        found.append(dataclasses.replace(program, setup=tuple(_statement(rng, s) for s in program.setup), calls=tuple(calls)))
    return found


# ------------------------------------------------------------------------------------------------------------------- comparing

def steps(program: Any) -> Any:
    ours.manual_seed(0)  # (modules draw their beginnings)
    try:
        return trace(program, ours) if isinstance(program, Program) else call(program, ours, False)
    finally:
        ours.set_default_dtype(ours.float32)
        ours.set_grad_enabled(True)


def difference(program: Any, before: list[Any]) -> Difference | None:
    """How a program differs if it and programs ``before`` it are replayed."""
    if UNWRITTEN.search(program.text("torch")):
        return None
    with replays(0):
        plain = steps(program)
    with replays(1):
        for other in before:
            steps(other)
        for _ in range(2):
            found = first_difference(steps(program), plain, own=True, exact=True)
            if found is not None:
                found.kind, found.explained = f"replayed {found.kind}", ""
                return found
    return None


def check(seed: str) -> tuple[Any, list[Any], Difference | None]:
    """The program of a seed (or a function that is called a few times), those before it, and how it differs."""
    program = random.Random(f"{seed} kind").choice((generate.calls, generate.program))(seed)
    before = near(seed, program)
    return program, before, difference(program, before)


def report(program: Any, before: list[Any], found: Difference) -> str:
    """The program and those before it, shrunk to what makes the difference."""
    from .shrink import shrink

    def fails(program: Any, before: list[Any]) -> bool:
        if isinstance(program, Calls) and not program.calls:
            return False
        other = difference(program, before)
        return other is not None and other.kind == found.kind

    for k in range(len(before) - 1, -1, -1):
        if fails(program, before[:k] + before[k + 1 :]):
            before = before[:k] + before[k + 1 :]
    program = shrink(program, lambda smaller: fails(smaller, before))
    for k in range(len(before)):
        before[k] = shrink(before[k], lambda smaller, k=k: fails(program, [*before[:k], smaller, *before[k + 1 :]]))
    texts = [p.text("autograd_nb").partition("# ---\n")[2] for p in [*before, program]]
    return f"{difference(program, before) or f'only once: {found}'}\n" + "# and then\n".join(texts)


# ---------------------------------------------------------------------------------------------------------------- a walk over ops


def walk(most: int, every: int = 1, first: int = 0) -> int:
    """Run each op's templates with operands of all kinds in turn, several times, replayed and not; how many differ."""
    from . import ops, sweep

    wrong = 0
    for number, (name, templates) in enumerate(ops.templates()):
        if number % every != first or UNWRITTEN.search(name):
            continue
        for template in templates[:most]:
            programs = [p for kind in sweep.KINDS if (p := sweep.program(template, kind)) is not None]
            programs = [p for p in programs if not any(dies("\n".join(p.statements)) for dies in sweep.DIES.values())]
            others = [Program(tuple(re.sub(r"make\((\d+)", r"make(1\1", s) for s in p.statements)) for p in programs]
            with replays(0):
                plain = [steps(p) for p in others]
                for p, wanted in zip(others, plain, strict=True):  # what has been called before goes a shorter way
                    wrong += _told(name, p, wanted)
            with replays(1):
                for p in programs:
                    steps(p)
                for p, wanted in [*zip(others, plain, strict=True), *zip(others[::-1], plain[::-1], strict=True)]:
                    wrong += _told(name, p, wanted)
        if number % 32 == 0:
            gc.freeze()
    return wrong


def _told(name: str, program: Program, wanted: list[Any]) -> bool:
    """Run an op's program, and tell whether and how it comes to something else than is wanted."""
    found = first_difference(steps(program), wanted, own=True, exact=True)
    if found is not None:
        print(f"{name}: {found}\n    " + "\n    ".join(program.statements), flush=True)
    return found is not None


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    interpreted.install()
    found = walk(options.most, options.every, options.first)
    print(f"{found} differ; {REPLAYED[0]} passes and {REPLAYED[1]} calls were replays")
