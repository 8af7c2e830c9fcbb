"""Every op with operands of every kind: ``python -m tests.fuzz.sweep [op …] [--kinds leaf turned …]``.

Where `generate` draws, this walks: each template of `ops.txt` with operands that are leaves, views, of mixed dtypes, of other ranks.
What is compared is as in drawn programs: values, dtypes, shapes, strides, what requires grad, gradients, errors; and whether the result
shares memory with an operand, by changing the operand afterwards. ``--way second``, ``tangent`` or ``mapped`` asks for second
derivatives, for forward mode (`func.jvp`) or for a batch of operands (`func.vmap`) instead.
"""

from __future__ import annotations

import argparse
import ast
import collections
import os
import pickle
import re
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import ops
from .program import Program

#: how an operand is made: text with {k} for a seed and {shape}
KINDS = {
    "leaf": "make({k}, {shape}).requires_grad_()",
    "computed": "make({k}, {shape}).requires_grad_() * 1.5",
    "turned": "make({k}, {turned}).permute({dims}).detach().requires_grad_()",
    "gaps": "make({k}, {gaps})[..., 0].detach().requires_grad_() * 1",
    "expanded": "make({k}, {one}).expand({shape}).detach()",
    "mixed": "make({k}, {shape}, 'float{bits}').requires_grad_() * 1",
    "half": "make({k}, {shape}).half().requires_grad_() * 1",
    "bfloat16": "make({k}, {shape}).bfloat16().requires_grad_() * 1",
    "int64": "make({k}, {shape}, 'int64')",
    "bool": "make({k}, {shape}, 'bool')",
    "complex": "make({k}, {shape}, 'complex128').requires_grad_() * 1",
    "empty": "make({k}, {empty}).requires_grad_() * 1",
    "empty complex": "make({k}, {empty}, 'complex128').requires_grad_() * 1",
    "empty bool": "make({k}, {empty}, 'bool')",
    "inference": "{inference}(make({k}, {shape}).requires_grad_())",
    "scalar": "make({k}, ()).requires_grad_() * 1",
    "first scalar": "make({k}, {first}).requires_grad_() * 1",
    "more": "make({k}, {more}).requires_grad_() * 1",
    "less": "make({k}, {less}).requires_grad_() * 1",
}
AFTER = (
    "{sum}.backward(retain_graph=True)",
    "v1.data.mul_(2)",
)
SUM = "sum(z.abs().sum() for z in (r if isinstance(r, (tuple, list)) else [r]) if isinstance(z, torch.Tensor) and z.requires_grad)"

TOGETHER = 300  #: programs that a process runs
HANG = 600  #: seconds that they may take
#: calls by which PyTorch writes past its memory: why, and a test of a program's statements
DIES: dict[str, Callable[[str], Any]] = {
    "addbmm_ does not see that its result is larger than what it is to be written to": lambda text: re.search(r"= v1\.addbmm_\(", text)
    and re.search(r"v1 = make\(1, \((2,)?\)", text),
    "pdist divides by the number of its rows": lambda text: "pdist(v1" in text and re.search(r"v1 = make\(1, \(0,", text),
}


def operand(kind: str, k: int, shape: tuple[int, ...]) -> str:
    n = len(shape)
    return KINDS[kind].format(
        k=k, shape=shape, turned=shape[::-1], dims=", ".join(map(str, range(n)[::-1])) if n else "()", gaps=(*shape, 2), one=(1,) * n,
bits=32 if k % 2 else 64, empty=(0, *shape[1:]) if shape else (), first=() if k == 1 else shape, more=(2, *shape), less=shape[1:],
        inference="torch.inference_mode()(lambda z: z * 1)" if k % 2 else "1 * ",
    )  # fmt: skip


def program(template: str, kind: str, way: str = "plain") -> Program | None:
    """The template's program, None where it has no operands to vary."""
    statements: list[str] = []

    def hole(match: re.Match) -> str:
        k, shape = len(statements) + 1, ast.literal_eval(match[1])
        statements.append(f"v{k} = {operand(kind, k, (2, *shape) if way == 'mapped' else shape)}")
        return f"v{k}"

    text = re.sub(r"\{a:(\([^}]*\))\}", hole, template).replace("{s}", "7")
    if not statements and (kind != "leaf" or way != "plain"):
        return None
    if way == "plain":
        return Program((*statements, f"r = {text}", *(s.replace("{sum}", SUM) for s in AFTER[: 2 if statements else 0])))
    return Program((*statements, *(s.replace("{sum}", SUM) for s in otherwise(text, len(statements), way))))


def otherwise(text: str, count: int, way: str) -> list[str]:
    """Statements that look at a template's derivatives, or at a batch of it; its operands are v1, v2, …"""
    names = [f"v{k + 1}" for k in range(count)]
    given = f"lambda {', '.join(names)}: {text}"
    if way == "mapped":
        return [f"r = torch.func.vmap({given})({', '.join(names)})", "{sum}.backward()"]
    if way == "tangent":
        primals, tangents = ("".join(f"{n}.detach(){f}, " for n in names) for f in ("", ".cos()"))
        return [f"r = torch.func.jvp({given}, ({primals}), ({tangents}))"]
    live = f"[v for v in [{', '.join(names)}] if v.requires_grad]"
    return [  # (copied, as PyTorch's zeros without memory cannot be looked at)
        f"r = {text}", f"gs = torch.autograd.grad({{sum}}, {live}, create_graph=True, allow_unused=True)",
        "gs = [g if g is None else g.clone() for g in gs]",
        "t = sum((g * g.detach().cos()).abs().sum() for g in gs if g is not None and g.requires_grad)",
        f"hs = [g.clone() for g in torch.autograd.grad(t, {live}, allow_unused=True, materialize_grads=True)]",
    ]  # fmt: skip


Named = tuple[str, Program]  #: an op and the kind of its operands, and a program


def drawn(names: list[str], kinds: list[str], most: int, every: int = 1, way: str = "plain") -> list[Named]:
    """The programs of ops (of all, where none is named), each ``every``-th, without those in which PyTorch destroys its own process."""
    wanted = [(name, template) for name, templates in ops.templates() if not names or name in names for template in templates[:most]]
    found = [(f"{name} [{kind}]", program(template, kind, way)) for name, template in wanted for kind in kinds]
    return [(name, p) for name, p in found[::every] if p is not None and not any(dies("\n".join(p.statements)) for dies in DIES.values())]


ONE_BY_ONE = """\
def _one_by_one(f, *operands):
    found = [f(*(t[i] for t in operands)) for i in range(len(operands[0]))]
    return torch.stack(found) if isinstance(found[0], torch.Tensor) else tuple(torch.stack(each) for each in zip(*found))"""


def alike_one_by_one(program: Program) -> bool:
    """Whether a program with a map agrees with what PyTorch comes to sample by sample: its own rules for batches take some ops apart."""
    import torch

    import autograd_nb as ours

    from .compare import first_difference
    from .program import trace

    looped = [re.sub(r"torch\.func\.vmap\((lambda .*)\)\(([^()]*)\)$", r"_one_by_one(\1, \2)", s) for s in program.statements]
    plain, theirs = trace(program, ours), trace(Program((ONE_BY_ONE, *looped)), torch)
    return first_difference(plain, theirs[1:], False) is None


def told(programs: list[Named]) -> list[tuple[str, str]]:
    """Kinds of differences and texts, and what has an explanation."""
    from .check import compared

    found = []
    for name, p in programs:
        left, difference, why = compared(p, strides=not re.search(r"func\.(vmap|jvp)|hs = ", "".join(p.statements[-2:])))
        found += [("explained", w) for w in set(why)]
        if difference is not None and "func.vmap" in "".join(left.statements) and alike_one_by_one(left):
            found.append(("explained", "as PyTorch sample by sample"))
        elif difference is not None:
            found.append((difference.kind, f"{name} {difference}\n    " + "\n    ".join(left.statements)))
    return found


def alone(work: Callable[[Any], Any], given: Any) -> Any:
    """What ``work`` returns in a process of its own; `Died` where that dies or hangs."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(HANG)
        try:
            with os.fdopen(writer, "wb") as file:
                pickle.dump(work(given), file)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        answer = file.read()
    status = os.waitpid(child, 0)[1]
    return Died(os.waitstatus_to_exitcode(status)) if status else pickle.loads(answer)


@dataclass
class Died:
    code: int

    def __str__(self) -> str:
        return signal.Signals(-self.code).name if self.code < 0 else f"exit {self.code}"


def differing(programs: list[Named]) -> list[tuple[str, str]]:
    """As `told`, in a process of its own; what kills that is a difference too."""
    found = alone(told, programs)
    if not isinstance(found, Died):
        return found
    if len(programs) > 1:
        half = len(programs) // 2
        parts = differing(programs[:half]) + differing(programs[half:])
        alike = any(kind == "died" for kind, _ in parts)
        return parts if alike else [*parts, ("died", f"{programs[0][0]} … {programs[-1][0]} together: {found}")]
    name, one = programs[0]
    return [("died", f"{name} {found}\n    " + "\n    ".join(one.statements))]


def sweep(
    names: list[str], kinds: list[str], most: int = 1 << 30, every: int = 1, show: Any = print, way: str = "plain"
) -> collections.Counter:
    """Count programs and differences; each difference is shown."""
    programs = drawn(names, kinds, most, every, way)
    told(programs[:1])  # what is loaded late is loaded before processes are forked
    counts: collections.Counter = collections.Counter(programs=len(programs))
    explained: collections.Counter = collections.Counter()
    for k in range(0, len(programs), TOGETHER):
        for kind, what in differing(programs[k : k + TOGETHER]):
            if kind == "explained":
                explained[what] += 1
            else:
                counts[kind] += 1
                show(what, flush=True)
    if explained:
        show(f"explained: {dict(explained)}")
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sweep", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--most", type=int, default=1 << 30, help="templates of an op")
    parser.add_argument("--every", type=int, default=1, help="run each so-and-so-many-th program")
    parser.add_argument("--way", default="plain", choices=["plain", "second", "tangent", "mapped"], help="what is asked of an op")
    options = parser.parse_args()
    began = time.time()
    counts = sweep(options.names, options.kinds, options.most, options.every, way=options.way)
    print(dict(counts), f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
