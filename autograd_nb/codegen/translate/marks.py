"""Marks of loops, and what LLVM is told of loops that have one: see `vectors.independent`."""

from __future__ import annotations

import ast
from typing import Any

from llvmlite import ir

MARKED = "marked"  #: attribute of a function of llvmlite: its blocks with a mark, and what `mark_block` was told of them


def mark_block(builder: Any, masked: bool, beside: int) -> None:
    """Mark the block that is written just now. ``masked``: whether what is left of the loop is done under a mask, ``beside``: rounds, of a vector
    each, that are done together."""
    builder.function.__dict__.setdefault(MARKED, []).append((builder.block, (masked, beside)))


def widen(function: Any) -> None:
    """Let LLVM use a function's vectors as wide as the registers are."""
    set.add(function.attributes, '"prefer-vector-width"="512"')  # llvmlite's own `add` knows no attributes with values


def unknown(builder: Any, value: Any) -> Any:
    """Return the integer or the address ``value``, of which LLVM knows nothing from here on."""
    return builder.asm(ir.FunctionType(value.type, [value.type]), "", "=r,0", [value], False)


def changed_in_place(loop: ast.For) -> list[str]:
    """Return the arrays of which a loop with a mark reads elements and writes some: stores of what is partly as it was, `x if … else a[i]`,
    LLVM makes stores under a mask, for which some processors with AVX2 take ten times as long."""
    first = loop.body[0]
    if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Call) and isinstance(first.value.func, ast.Name)):
        return []
    if first.value.func.id not in ("independent", "masked"):
        return []
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    elements = [node for node in inside if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)]
    read, written = ({e.value.id for e in elements if isinstance(e.ctx, how)} for how in (ast.Load, ast.Store))  # type: ignore[attr-defined]
    assigned = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return sorted((read & written) - assigned)


class _Distinct(ir.MDValue):
    """Metadata that is equal to no other, and may name itself."""

    def descr(self, buf: list[str]) -> None:
        buf += ("distinct !{ ", ", ".join(o.get_reference() for o in self.operands), " }\n")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def carries(loop: ast.For, function: ast.FunctionDef) -> bool:
    """Return whether a loop sets variables that are set outside it too, as one that adds up does: several sums would be other bits than one."""
    inside = {node for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names = {node.id for node in inside}
    outside = [node for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in inside]
    return any(node.id in names for node in outside)


def tell_independent(function: Any, body: Any, blocks: list[Any], back: Any, alone: bool) -> None:
    """Tell LLVM about a loop, if `independent` or `masked` stands first in its body: all its blocks, and the branch back to its test.
    ``alone``: nothing is carried from round to round."""
    found = dict(getattr(function, MARKED, ()))
    if body not in found:
        return
    module = function.module
    masked, beside = found[body]
    group = _Distinct(module, [], name=str(len(module.metadata)))
    for block in blocks:
        for instruction in block.instructions:
            if isinstance(instruction, ir.LoadInstr | ir.StoreInstr | ir.CallInstr):
                instruction.set_metadata("llvm.access.group", group)
    told = [["llvm.loop.parallel_accesses", group], ["llvm.loop.interleave.count", ir.IntType(32)(beside if alone else 1)], ["llvm.loop.unroll.disable"]]
    if masked:
        told.append(["llvm.loop.vectorize.predicate.enable", ir.IntType(1)(1)])
    loop = _Distinct(module, [], name=str(len(module.metadata)))
    loop.operands = (loop, *map(module.add_metadata, told))
    back.set_metadata("llvm.loop", loop)
