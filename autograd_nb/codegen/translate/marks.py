"""Marks of loops, and what LLVM is told of loops that have one: see `vectors.independent`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

MARKED = "marked"  #: attribute of a function of llvmlite: its blocks with a mark, and whether what is left of a loop is done under a mask


def mark_block(builder: Any, masked: bool) -> None:
    """Mark the block that is written just now."""
    builder.function.__dict__.setdefault(MARKED, []).append((builder.block, masked))


def widen(function: Any) -> None:
    """Let LLVM use a function's vectors as wide as the registers are."""
    set.add(function.attributes, '"prefer-vector-width"="512"')  # llvmlite's own `add` knows no attributes with values


class _Distinct(ir.MDValue):
    """Metadata that is equal to no other, and may name itself."""

    def descr(self, buf: list[str]) -> None:
        buf += ("distinct !{ ", ", ".join(o.get_reference() for o in self.operands), " }\n")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def tell_independent(function: Any, body: Any, blocks: list[Any], back: Any) -> None:
    """Tell LLVM about a loop, if `independent` or `masked` stands first in its body: all its blocks, and the branch back to its test."""
    found = dict(getattr(function, MARKED, ()))
    if body not in found:
        return
    module = function.module
    group = _Distinct(module, [], name=str(len(module.metadata)))
    for block in blocks:
        for instruction in block.instructions:
            if isinstance(instruction, ir.LoadInstr | ir.StoreInstr | ir.CallInstr):
                instruction.set_metadata("llvm.access.group", group)
    told = [["llvm.loop.parallel_accesses", group], ["llvm.loop.interleave.count", ir.IntType(32)(1)], ["llvm.loop.unroll.disable"]]
    if found[body]:
        told.append(["llvm.loop.vectorize.predicate.enable", ir.IntType(1)(1)])
    loop = _Distinct(module, [], name=str(len(module.metadata)))
    loop.operands = (loop, *map(module.add_metadata, told))
    back.set_metadata("llvm.loop", loop)
