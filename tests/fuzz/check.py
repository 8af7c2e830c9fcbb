"""Run one program in each library and compare; report a failure as a short program."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import torch

import autograd_nb as ours
from autograd_nb.compiler.run import again

from . import explained, generate
from .compare import Difference, first_difference
from .program import (
    UNREADABLE,
    Calls,
    Program,
    Seen,
    Step,
    array_of,
    call,
    is_tensor,
    look,
    looked,
    loose,
    names_of,
    new_space,
    quiet,
    run,
    trace,
    unheard,
)
from .shrink import shrink

torch.set_num_threads(1)  # tensors are tiny


#: how far, relatively, numbers are moved to see what rounding decides (of float64; of float32 as much more as it is coarser)
JITTERS = (3e-12, -2e-12, 7e-12, -5e-12, 1e-12, -9e-12)
KEPT = again.SMALL
ALONE: list[str] = []  #: what was refused here alone, of the program that was checked last
AGAIN = 8  #: statements that are taken out of a program at most


COARSER = {torch.float64: 1, torch.complex128: 1, torch.float16: 1e8, torch.bfloat16: 1e9}  #: than float64; float32 is 1e5 times as coarse
#: what makes a derivative
DERIVATIVE = re.compile(r"autograd\.|torch\.func\.|\.grad\b|jvp|backward")
#: kinds of differences that a gradient in the memory of what a pass was given can make
GIVEN_SHOWS = re.compile("value|requires_grad|leaf|history")
REFUSALS = {"raised", "not refused", "error type", "error"}


def rounding(program: Program, theirs: list[Step], found: Difference) -> bool:
    """Whether PyTorch's own run differs so, and here first, if the numbers are a few units in the last place off, and nothing is drawn at random."""
    begun = Program(program.statements[: found.where + 1])

    def seeded(seed: int) -> list[Step]:
        torch.manual_seed(seed)
        return trace(begun, torch)

    first = seeded(1)
    if first_difference(seeded(1), first, False) is not None:
        return True  # where its memory lies decides
    if first_difference(seeded(2), first, False) is not None:
        return False
    for jitter in JITTERS:
        other = first_difference(trace(program, torch, jitter), theirs, False)
        if other is not None and other.where == found.where and (other.kind == found.kind or {other.kind, found.kind} <= REFUSALS):
            return True
    return any(rounded_there(program, theirs, found, jitter) for jitter in JITTERS)


def rounded_there(program: Program, theirs: list[Step], found: Difference, jitter: float) -> bool:
    """Whether a single statement differs so in PyTorch if what it finds is a little off."""
    space = new_space(torch)
    for statement in program.statements[: found.where]:
        run(statement, space)
    draws = torch.Generator().manual_seed(1)
    for name in names_of(space):
        for t in space["parts"](space[name]):
            if t.is_floating_point() or t.is_complex():
                off = torch.randn((), generator=draws, dtype=torch.float64).item()
                with contextlib.suppress(RuntimeError):  # several elements share memory, or there is none
                    t.data.mul_(1 + jitter * off * COARSER.get(t.dtype, 1e5))
    space |= {name: value for name, value in new_space(torch, jitter).items() if name in space["__own__"] and name != "torch"}
    error = run(program.statements[found.where], space)
    with quiet():
        step = Step(error, looked(space, names_of(space)))
    other = first_difference([step], [theirs[found.where]], False)
    return other is not None and (other.kind == found.kind or {other.kind, found.kind} <= REFUSALS)


def rounded_before(program: Program, mine: list[Step], where: int) -> bool:
    """Whether PyTorch does what this library did if it is given the numbers that this library had come to, which agree but for rounding."""
    if not where:
        return False
    space = new_space(torch)
    for statement in program.statements[:where]:
        run(statement, space)
    moved = False
    for name, seen in mine[where - 1].state.items():
        t = space.get(name)
        if is_tensor(t) and isinstance(seen, Seen) and (t.is_floating_point() or t.is_complex()) and array_of(t).tobytes() != seen.values.tobytes():
            try:
                t.data.copy_(torch.from_numpy(seen.values))
            except RuntimeError:  # several elements share memory
                return False
            moved = True
    if not moved:
        return False
    error = run(program.statements[where], space)
    with quiet():
        again = Step(error, looked(space, names_of(space)))
    return first_difference(mine[where : where + 1], [again]) is None


def by_copies(program: Program, mine: list[Step], where: int) -> bool | None:
    """Whether PyTorch comes to what this library did if its nodes keep copies of what they read; None where that cannot be told.

    What changes behind the graph's back (``x.data = …``) is then read as it was: either that, or what PyTorch reads, is right.
    """
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        theirs = trace(Program(program.statements[: where + 1]), torch)
    found = first_difference(mine[: where + 1], theirs, False, program.statements)
    return True if found is None or (found.explained and found.where == where) else None if found.where < where else False


def overlapping(program: Program, where: int, strides: bool) -> bool:
    """Whether an op in place agrees with PyTorch's if that is given copies of what it reads."""
    copied = explained.read_first(program.statements[where])
    if copied == program.statements[where]:
        return False
    theirs = trace(Program((*program.statements[:where], copied)), torch)
    return first_difference(trace(Program(program.statements[: where + 1]), ours), theirs, strides) is None


def given(program: Program, mine: list[Step], where: int, strides: bool) -> bool:
    """Whether PyTorch comes to what this library did if passes, and tensors, are given copies of the gradients that the program gives them."""
    copied = tuple(map(explained.given_copied, program.statements[: where + 1]))
    if copied == program.statements[: where + 1]:
        return False
    found = first_difference(mine[: where + 1], trace(Program(copied), torch), strides, copied)
    return found is None or (found.explained != "" and found.where == where)


def given_to_calls(program: Calls, mine: list[Step], found: Difference, strides: bool) -> bool:
    """`given` for a function that is called a few times."""
    def copied(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(explained.given_copied, texts))

    calls = tuple(dataclasses.replace(c, before=copied(c.before), after=copied(c.after)) for c in program.calls)
    other = first_difference(mine, call(dataclasses.replace(program, body=copied(program.body), calls=calls), torch, False), strides)
    return other is None or other.where > found.where


@contextlib.contextmanager
def many_uses() -> Iterator[None]:
    """Nodes that saved nothing may run again, as in PyTorch."""
    before = ours.autograd.set_graph_reuse("torch")
    try:
        yield
    finally:
        ours.autograd.set_graph_reuse(before)


def single_use(program: Program, where: int) -> bool:
    """Whether a statement that this library refuses as a second pass runs where nodes that saved nothing may run again, as in PyTorch.

    Or whether there is a loose view, behind which nothing is asked for, so that PyTorch does not read what the nodes had saved.
    """
    with many_uses():
        error = trace(Program(program.statements[: where + 1]), ours)[where].error
    if error is None or "second time" not in str(error):
        return True
    space = new_space(torch)
    for statement in program.statements[:where]:
        run(statement, space)
    return loose(space)


def of_loose(program: Program, found: Difference) -> bool:
    """Whether what differs is the history of a derivative by a loose view or by what was made of one, behind which nothing is.

    Or a pass that PyTorch refuses where there is such a view, or what would keep an inference tensor for one, which depends on the op there.
    """
    statement = program.statements[found.where]
    space = new_space(torch)
    behind: set[str] = set()  # (a view whose base is changed later says no more of itself)
    for s in program.statements[: found.where]:
        run(s, space)
        behind |= {n for n in names_of(space) if unheard(space[n]) or any(map(unheard, space["parts"](space[n])))}
        made_of = not behind.isdisjoint(re.findall(r"v\d+", s))  # (a block of lines makes the view, and something of it)
        behind |= set(re.findall(r"\bv\d+\b(?=[^=;(]* = )", s)) if made_of else set()
    if found.kind in ("not refused", "raised") and "Inference tensors cannot be saved for backward" in found.what:
        return not behind.isdisjoint(re.findall(r"v\d+", statement))
    if found.kind == "not refused":
        changed = "has been modified by an inplace operation" in found.what or "its base or another view of its base has been modified" in found.what
        return changed and re.search(r"backward\(", statement) is not None and bool(behind)
    return (found.kind in ("requires_grad", "leaf", "history") and DERIVATIVE.search(statement) is not None
            and not behind.isdisjoint(re.findall(r"v\d+", statement)))  # fmt: skip


def freed(program: Program, theirs: list[Step], where: int) -> bool:
    """Whether PyTorch takes a second pass at a statement if the passes before it that it has refused are left out."""
    left = [s for s, step in zip(program.statements[:where], theirs) if step.error is None]
    return trace(Program((*left, program.statements[where])), torch)[-1].error is None


def constant(program: Program, found: Difference) -> bool:
    """Whether a derivative that says in one library only that it requires grad depends on no leaf there, or PyTorch has no derivative of it."""
    name = found.what.partition(":")[0]
    if not DERIVATIVE.search(program.statements[found.where]):
        return False
    for library in (torch, ours):
        space = new_space(library)
        for statement in program.statements[: found.where + 1]:
            run(statement, space)
        try:
            t = eval(name, space)
            if not t.numel():
                return "create_graph=True" in program.statements[found.where]  # a gradient of nothing
            if not t.requires_grad:
                continue
            leaves = [s for n in names_of(space) if is_tensor(s := space[n]) and look(s) is not UNREADABLE and s.requires_grad and s.is_leaf and s is not t]
            grads = library.autograd.grad((t * (t.detach() + 1.37)).sum() - (t * t).sum() / 2, leaves, allow_unused=True)
        except Exception as error:
            return library is torch and re.search("derivative for .* is not implemented|A view was created in", str(error)) is not None
        return all(g is None or not bool(g.detach().ne(0).any()) for g in grads)
    return False


def compared(program: Program, strides: bool = True) -> tuple[Program, Difference | None, list[str]]:
    """A program without the statements whose difference is explained, how it differs then, and the explanations."""
    why: list[str] = []
    for _ in range(AGAIN):
        theirs = trace(program, torch)
        mine = trace(program, ours)
        found = first_difference(mine, theirs, strides, program.statements, why)
        if found is None:
            return program, None, why
        ALONE.extend([found.what] * (found.kind == "raised"))
        if not found.explained and (rounding(program, theirs, found) or rounded_before(program, mine, found.where)):
            found.explained = explained.ROUNDING
        if not found.explained and found.kind == "value" and overlapping(program, found.where, strides):
            found.explained = explained.OVERLAP
        if not found.explained and GIVEN_SHOWS.search(found.kind) and given(program, mine, found.where, strides):
            found.explained = explained.GIVEN
        if found.explained in explained.COPIED and "value" in found.kind and by_copies(program, mine, found.where) is False:
            found.explained = ""
        alone = found.kind != "error type"  # else PyTorch refuses it too, by what it comes to first
        if found.explained == "strict single use" and alone and not single_use(program, found.where):
            found.explained = ""
        if found.explained == "how far a refused pass has come" and found.kind == "not refused" and not freed(program, theirs, found.where):
            found.explained = ""
        if not found.explained and found.kind in ("requires_grad", "leaf", "history") and constant(program, found):
            found.explained = explained.CONSTANT
        if not found.explained and of_loose(program, found):
            found.explained = explained.LOOSE
        if not found.explained:
            return program, found, why
        why.append(found.explained)
        program = Program(program.statements[: found.where] + program.statements[found.where + 1 :])
    return program, None, why


def difference(program: Any, strides: bool = True, compiled: bool = True) -> Difference | None:
    """How a program differs from PyTorch; for functions first how the compiled one differs from the eager one."""
    if isinstance(program, Program):
        return compared(program, strides)[1]
    eager = call(program, ours, False)
    found = first_difference(call(program, ours, True), eager, strides, own=True) if compiled else None
    if found is not None and found.kind != "limit":
        found.kind, found.explained = f"compiled {found.kind}", ""
        return found
    theirs = call(program, torch, False)
    texts = [program.text("torch").partition("# ---\n")[2]] * len(theirs)
    found = first_difference(eager, theirs, strides, texts)
    if found is not None and found.kind == "raised":
        ALONE.append(found.what)
    if found is not None and found.explained == "strict single use":  # what else is there is seen where nodes that saved nothing may run again
        with many_uses():
            found = first_difference(call(program, ours, False), theirs, strides, texts)
    if found is not None:
        if not found.explained and any(
            (other := first_difference(call(program, torch, False, jitter), theirs, False)) is not None
            and other.where == found.where
            and other.kind == found.kind
            for jitter in JITTERS
        ):
            found.explained = explained.ROUNDING
        if not found.explained and GIVEN_SHOWS.search(found.kind) and given_to_calls(program, eager, found, strides):
            found.explained = explained.GIVEN
        found.kind = f"eager {found.kind}"
    return found


def check(seed: str, compiled: bool, strides: bool = True) -> tuple[Any, Difference | None, list[str]]:
    """The program of a seed, how it differs, and what is explained about it."""
    ALONE.clear()
    if not compiled:
        return compared(generate.program(seed), strides)
    program = generate.calls(seed)
    again.SMALL = Random(f"{seed} kept").choice((0, KEPT))  # of half of them nothing is kept for another run
    found = difference(program, strides)
    return (program, None, [found.explained]) if found is not None and found.explained else (program, found, [])


CORPUS = Path(__file__).with_name("corpus.txt")


def corpus() -> int:
    """Run the programs that were found to differ once; how many do now."""
    wrong = 0
    programs = [Program(tuple(_statements(text))) for text in CORPUS.read_text().strip().split("\n\n")]
    for program in programs:
        _, found, _ = compared(program)
        if found is not None:
            wrong += 1
            print(f"\n{found}\n" + "\n".join(program.statements), flush=True)
    print(f"{len(programs)} programs, {wrong} differ", flush=True)
    return wrong


def _statements(text: str) -> list[str]:
    """Lines, those that are indented with the one before."""
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            found[-1] += f"\n{line}"
        elif not line.startswith("#"):
            found.append(line)
    return found


def report(program: Any, found: Difference, strides: bool = True) -> str:
    """The program shrunk to what makes the difference, as text that runs with either library."""

    def fails(smaller: Any) -> bool:
        if isinstance(smaller, Calls) and not smaller.calls:
            return False
        other = difference(smaller, strides, found.kind.startswith("compiled"))
        return other is not None and other.kind == found.kind and not other.explained

    small = shrink(program, fails)
    _, _, body = small.text("autograd_nb").partition("# ---\n")
    return f"{difference(small, strides) or f'only once: {found}'}\n{body}"
