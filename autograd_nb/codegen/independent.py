"""Loops whose rounds do not depend on each other, and what LLVM is told of them.

Left to itself LLVM makes four pieces of a loop over elements: tests whether its arrays overlap, a body of several vectors, one of a
vector, and one of an element for what is left, of which the last serves those that overlap too. Told that rounds are independent it
needs no tests; told to take what is left by a mask it makes one body, which compiles in a fraction of the time and is as fast on
rows of some hundred elements.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config
from numba.core import types
from numba.extending import intrinsic

MARKS = "independent"  #: attribute of a function of LLVM: the blocks that `independent` stands in


@intrinsic
def _independent(typingctx):
    def codegen(context, builder, signature, args):
        builder.function.__dict__.setdefault(MARKS, []).append(builder.block)
        return context.get_dummy_value()

    return types.none(), codegen


class _Distinct(ir.MDValue):
    """Metadata that is equal to no other, which may name itself."""

    def descr(self, buf: list[str]) -> None:
        buf += ("distinct !{ ", ", ".join(o.get_reference() for o in self.operands), " }\n")

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def _distinct(module: Any, operands: list[Any]) -> Any:
    return _Distinct(module, operands, name=str(len(module.metadata)))


def tell(function: Any, body: Any, blocks: list[Any], back: Any) -> None:
    """Tell LLVM of a loop, if `independent` stands at its beginning: its body, all its blocks, and the branch back to its test."""
    if body not in getattr(function, MARKS, ()):
        return
    module, number = function.module, ir.IntType(32)
    group = _distinct(module, [])
    for block in blocks:
        for instruction in block.instructions:
            if isinstance(instruction, ir.LoadInstr | ir.StoreInstr | ir.CallInstr):
                instruction.set_metadata("llvm.access.group", group)
    known = [
        module.add_metadata(["llvm.loop.parallel_accesses", group]),
        module.add_metadata(["llvm.loop.vectorize.predicate.enable", ir.IntType(1)(1)]),
        module.add_metadata(["llvm.loop.vectorize.enable", ir.IntType(1)(1)]),
        module.add_metadata(["llvm.loop.interleave.count", number(1)]),
        module.add_metadata(["llvm.loop.unroll.disable"]),
    ]
    loop = _distinct(module, [])
    loop.operands = (loop, *known)
    back.set_metadata("llvm.loop", loop)


def independent() -> None:
    """To stand first in the body of a loop of which no round reads what another one writes."""


if not config.DISABLE_JIT:
    independent = _independent
