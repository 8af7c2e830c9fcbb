"""Every op with operands of every kind: ``python -m tests.fuzz.sweep [op …] [--kinds leaf turned …]``.

Where `generate` draws, this walks: each template of `ops.txt` with operands that are leaves, views, of mixed dtypes, of other ranks.
What is compared is as in drawn programs: values, dtypes, shapes, strides, what requires grad, gradients, errors; and whether the result
shares memory with an operand, by changing the operand afterwards.
"""

from __future__ import annotations

import argparse
import ast
import collections
import re
import time
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
    "int64": "make({k}, {shape}, 'int64')",
    "bool": "make({k}, {shape}, 'bool')",
    "complex": "make({k}, {shape}, 'complex128').requires_grad_() * 1",
    "empty": "make({k}, {empty}).requires_grad_() * 1",
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


def operand(kind: str, k: int, shape: tuple[int, ...]) -> str:
    n = len(shape)
    return KINDS[kind].format(
        k=k, shape=shape, turned=shape[::-1], dims=", ".join(map(str, range(n)[::-1])) if n else "()", gaps=(*shape, 2), one=(1,) * n,
        bits=32 if k % 2 else 64, empty=(0, *shape[1:]) if shape else (), first=() if k == 1 else shape, more=(2, *shape), less=shape[1:],
    )  # fmt: skip


def program(template: str, kind: str) -> Program | None:
    """The template's program, None where it has no operands to vary."""
    statements: list[str] = []

    def hole(match: re.Match) -> str:
        k = len(statements) + 1
        statements.append(f"v{k} = {operand(kind, k, ast.literal_eval(match[1]))}")
        return f"v{k}"

    text = re.sub(r"\{a:(\([^}]*\))\}", hole, template).replace("{s}", "7")
    if not statements and kind != "leaf":
        return None
    return Program((*statements, f"r = {text}", *(s.replace("{sum}", SUM) for s in AFTER[: 2 if statements else 0])))


def sweep(names: list[str], kinds: list[str], most: int = 1 << 30, show: Any = print) -> collections.Counter:
    """Count programs and differences; each difference is shown."""
    from .check import compared

    counts: collections.Counter = collections.Counter()
    for name, templates in ops.templates():
        if names and name not in names:
            continue
        for template in templates[:most]:
            for kind in kinds:
                drawn = program(template, kind)
                if drawn is None:
                    continue
                counts["programs"] += 1
                left, found, _ = compared(drawn)
                if found is not None:
                    counts[found.kind] += 1
                    show(f"{name} [{kind}] {found}\n    " + "\n    ".join(left.statements))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sweep", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--most", type=int, default=1 << 30, help="templates of an op")
    options = parser.parse_args()
    began = time.time()
    print(dict(sweep(options.names, options.kinds, options.most)), f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
