"""LLVM code on vectors of elements: what the inner loops of products (`tiles`) and convolutions (`lanes`) are written with.

Left to itself LLVM keeps the sums of such loops in memory, or vectorises the wrong loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import config
from numba.core import cgutils, types
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

from .processor import Sized
from .translate.marks import mark_block, widen

types.Literal.ctor_map[Sized] = lambda value: types.IntegerLiteral(int(value))  # type: ignore[assignment]


def _registers() -> tuple[int, int]:
    """Return how many bytes a vector register of the processor compiled for has, and how many registers it has."""
    given = config.CPU_FEATURES if config.CPU_FEATURES is not None else get_host_cpu_features()
    features = set(given.split(","))
    if "+avx512f" in features:
        return 64, 32
    if "+avx" in features:
        return 32, 16
    return 16, 32 if "+neon" in features else 16


BYTES, REGISTERS = (Sized(n, __name__) for n in _registers())
FIRST_CACHE, SECOND_CACHE = 3, 2  #: LLVM's numbers of locality


def int64(value: Any) -> Any:
    """Return a constant of a number, anything else as it is."""
    return ir.Constant(ir.IntType(64), value) if isinstance(value, int) else value


class Vectors:
    """Code for the vectors of the elements of one type of arrays."""

    context: Any  # of Numba
    builder: Any  # of llvmlite
    itemsize: int
    lanes: int
    type: Any  # of llvmlite
    zero: Any

    def __init__(self, context: Any, builder: Any, array_type: Any):
        self.context, self.builder = context, builder
        self.itemsize = array_type.dtype.bitwidth // 8
        self.lanes = BYTES // self.itemsize
        self.type = ir.VectorType(context.get_value_type(array_type.dtype), self.lanes)
        self.zero = ir.Constant(self.type, None)
        self._pointer = self.type.as_pointer()
        self._masks = ir.VectorType(ir.IntType(1), self.lanes)
        self._align = ir.Constant(ir.IntType(32), self.itemsize)
        self._whole_masks = BYTES == 32  # AVX2 has no registers for masks, but vectors whose elements are negative where they are set

    def _intrinsic(self, name: str, arguments: list[Any], suffix: str = "", result: Any = None) -> Any:
        name = f"llvm.{name}.v{self.lanes}f{self.itemsize * 8}{suffix}"
        return cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(result or self.type, arguments), name)

    # ------------------------------------------------------------------------------------------ scalars and places

    def data(self, array_type: Any, array: Any, *indices: Any) -> Any:
        """Return the address of an array's element (see `at`)."""
        return self.at(self.context.make_array(array_type)(self.context, self.builder, value=array).data, *indices)

    def at(self, pointer: Any, *indices: Any) -> Any:
        """Return the address so many elements beyond ``pointer``."""
        for i in indices:
            pointer = self.builder.gep(pointer, [int64(i)])
        return pointer

    def times(self, a: Any, b: Any) -> Any:
        return self.builder.mul(int64(a), int64(b))

    def minus(self, a: Any, b: Any) -> Any:
        return self.builder.sub(a, int64(b))

    def less(self, a: Any, b: Any) -> Any:
        return self.builder.icmp_signed("<", int64(a), b)

    def least(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.less(a, b), int64(a), b)

    # ------------------------------------------------------------------------------------------ vectors

    def spread(self, value: Any) -> Any:
        """Return the vector of one value over and over."""
        kind = ir.VectorType(value.type, self.lanes)
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), value, int64(0))
        return self.shuffle(one, ir.Constant(kind, ir.Undefined), [0] * self.lanes)

    def before(self, count: Any) -> Any:
        """Return the mask of the first ``count`` lanes."""
        if not self._whole_masks:
            order = ir.Constant(ir.VectorType(ir.IntType(64), self.lanes), list(range(self.lanes)))
            return self.builder.icmp_signed("<", order, self.spread(count))
        number = ir.IntType(8 * self.itemsize)
        order = ir.Constant(ir.VectorType(number, self.lanes), list(range(self.lanes)))
        count = self.least(self.lanes, self.builder.select(self.less(0, count), count, int64(0)))
        count = self.builder.trunc(count, number) if number.width < 64 else count
        mask = self.builder.sext(self.builder.icmp_signed("<", order, self.spread(count)), order.type)
        # else LLVM would compare anew in each round of a loop
        return self.builder.asm(ir.FunctionType(mask.type, [mask.type]), "", "=x,0", [mask], False)

    def if_so(self, condition: Any) -> Any:
        """Return the mask of all lanes or none."""
        return self.spread(self.builder.sext(condition, ir.IntType(8 * self.itemsize)) if self._whole_masks else condition)

    def load(self, pointer: Any, mask: Any = None) -> Any:
        """Return the vector that begins at any element; where there is a mask only what it has set is read, the rest is 0."""
        pointer = self.builder.bitcast(pointer, self._pointer)
        if mask is None:
            return self.builder.load(pointer, align=self.itemsize)
        if self._whole_masks:
            mask = self.builder.icmp_signed("<", mask, ir.Constant(mask.type, None))
        load = self._intrinsic("masked.load", [self._pointer, ir.IntType(32), self._masks, self.type], ".p0")
        return self.builder.call(load, [pointer, self._align, mask, self.zero])

    def store(self, value: Any, pointer: Any) -> None:
        """Write a vector from any element on."""
        self.builder.store(value, self.builder.bitcast(pointer, self._pointer), align=self.itemsize)

    def store_first(self, value: Any, pointer: Any, count: Any, often: bool = True) -> None:
        """Write the first ``count`` elements of a vector: none of them, some, or all; without ``often`` by less code.

        Only AVX-512 has masks that cost nothing: AMD's processors take some 15 cycles for a masked store of AVX2. So there a whole vector
        is written as such, and part of one in halves of halves.
        """
        if BYTES == 64:
            store = self._intrinsic("masked.store", [self.type, self._pointer, ir.IntType(32), self._masks], ".p0", ir.VoidType())
            self.builder.call(store, [value, self.builder.bitcast(pointer, self._pointer), self._align, self.before(count)])
            return
        if not often:
            self.builder.call(self._parts(), [value, pointer, count])
            return
        with self.builder.if_else(self.less(self.lanes - 1, count)) as (whole, part):
            with whole:
                self.store(value, pointer)
            with part:
                self.builder.call(self._parts(), [value, pointer, count])

    def _parts(self) -> Any:
        """Return the function of a module that writes the first elements of a vector: (vector, address, count)."""
        name = f"store_first.v{self.lanes}f{self.itemsize * 8}"
        module = self.builder.module
        if name in module.globals:
            return module.globals[name]
        element = self.type.element
        kind = ir.FunctionType(ir.VoidType(), [self.type, element.as_pointer(), ir.IntType(64)])
        function = ir.Function(module, kind, name)
        function.linkage = "linkonce_odr"
        function.attributes.add("noinline")
        builder = ir.IRBuilder(function.append_basic_block())
        value, pointer, count = function.args
        with builder.if_then(builder.icmp_signed("<=", count, int64(0))):
            builder.ret_void()
        with builder.if_then(builder.icmp_signed(">=", count, int64(self.lanes))):
            builder.store(value, builder.bitcast(pointer, self._pointer), align=self.itemsize)
            builder.ret_void()
        step = self.lanes // 2
        while step:
            first = ir.Constant(ir.VectorType(ir.IntType(32), step), list(range(step)))
            rest = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [(i + step) % self.lanes for i in range(self.lanes)])
            before, own = builder.block, builder.append_basic_block()
            after = builder.append_basic_block()
            builder.cbranch(builder.icmp_signed("!=", builder.and_(count, int64(step)), int64(0)), own, after)
            builder.position_at_end(own)
            part = builder.shuffle_vector(value, value, first)
            builder.store(part, builder.bitcast(pointer, part.type.as_pointer()), align=self.itemsize)
            shifted, further = builder.shuffle_vector(value, value, rest), builder.gep(pointer, [int64(step)])
            builder.branch(after)
            builder.position_at_end(after)
            pairs = []
            for old, new in ((value, shifted), (pointer, further)):
                phi = builder.phi(old.type)
                phi.add_incoming(old, before)
                phi.add_incoming(new, own)
                pairs.append(phi)
            value, pointer = pairs
            step //= 2
        builder.ret_void()
        return function

    def prefetch(self, pointer: Any, level: int) -> None:
        """Have the line of memory of an element brought into a cache, which nothing waits for."""
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0")
        to_read, data = number(0), number(1)
        self.builder.call(fetch, [self.builder.bitcast(pointer, byte), to_read, number(level), data])

    def shuffle(self, a: Any, b: Any, lanes: list[int]) -> Any:
        """Return the vector of these elements of a and b, one after the other."""
        return self.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), lanes))

    def evens(self, a: Any, b: Any) -> Any:
        """Return every other element of two vectors."""
        return self.shuffle(a, b, list(range(0, 2 * self.lanes, 2)))

    def transpose(self, rows: list[Any]) -> list[Any]:
        """Return the columns of as many rows as a vector has lanes."""
        half = self.lanes // 2
        halves = [[i // 2 + start + (self.lanes if i % 2 else 0) for i in range(self.lanes)] for start in (0, half)]
        for _ in range(half.bit_length()):  # each pass interleaves the first half of the rows with the second
            rows = [self.shuffle(rows[r // 2], rows[r // 2 + half], halves[r % 2]) for r in range(self.lanes)]
        return rows

    def fold(self, vectors: list[Any]) -> Any:
        """Return the vector of the sums over each of as many vectors as it has lanes: a transpose that adds as it goes."""
        step = self.lanes // 2
        while step:
            half, lanes = len(vectors) // 2, range(self.lanes)
            near = [i if not i & step else self.lanes + i - step for i in lanes]
            far = [i + step if not i & step else self.lanes + i for i in lanes]
            pairs = zip(vectors[:half], vectors[half:], strict=True)
            vectors = [self.builder.fadd(self.shuffle(a, b, near), self.shuffle(a, b, far)) for a, b in pairs]
            step //= 2
        return vectors[0]

    # ------------------------------------------------------------------------------------------ sums that stay in registers

    def sums(self, count: int) -> list[Any]:
        """Return variables that begin at 0."""
        found = [cgutils.alloca_once(self.builder, self.type) for _ in range(count)]
        for place in found:
            self.builder.store(self.zero, place)
        return found

    def add_product(self, place: Any, a: Any, b: Any) -> None:
        fma = self._intrinsic("fmuladd", [self.type] * 3)
        self.builder.store(self.builder.call(fma, [a, b, self.builder.load(place)]), place)

    # ------------------------------------------------------------------------------------------ loops

    @contextmanager
    def loop(self, stop: Any, step: int = 1) -> Iterator[Any]:
        """Let the code within be that of a loop over the index that it is given: every ``step``-th below ``stop``; it stays rolled."""
        with cgutils.for_range_slice(self.builder, int64(0), stop, int64(step), intp=ir.IntType(64)) as (index, _):
            stay_rolled(self.builder)
            yield index


def stay_rolled(builder: Any) -> None:
    """Put empty assembly in a loop's body: LLVM leaves the loop as it is.

    For some processors it unrolls short loops many times over, which makes compiling several times slower.
    """
    builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)


@intrinsic
def _rolled(typingctx):
    def codegen(context, builder, signature, args):
        stay_rolled(builder)
        return context.get_dummy_value()

    return types.none(), codegen


def rolled() -> None:
    """Stand in the body of a loop that is not worth being vectorised or unrolled."""


@intrinsic
def _one_copy(typingctx):
    def codegen(context, builder, signature, args):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), codegen


def one_copy() -> None:
    """Stand in a helper that is called from several places of a kernel, and does so much each time that one copy of it will do."""


@intrinsic
def _in_place(typingctx):
    def codegen(context, builder, signature, args):
        builder.function.attributes.add("alwaysinline")
        return context.get_dummy_value()

    return types.none(), codegen


def in_place() -> None:
    """Stand in a helper that belongs into the loop which calls it, however long it is, so that the loop is vectorised."""


@intrinsic
def _larger(typingctx, a, b):
    if a != b or not isinstance(a, types.Float):
        return None

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args, flags=("nnan", "nsz"))

    return a(a, b), codegen


def larger(a: float, b: float) -> float:
    """Return the larger of two floats, by a loop in any order; of no use where one is nan."""
    return a if a > b else b


# ------------------------------------------------------------------------------------------------ loops whose rounds are independent


@intrinsic
def _wide(typingctx):
    def codegen(context, builder, signature, args):
        widen(builder.function)
        return context.get_dummy_value()

    return types.none(), codegen


def wide() -> None:
    """Stand in a kernel whose loops over many elements take more arithmetic than memory: LLVM uses vectors as wide as the processor's.

    Left to itself it takes halves of what Intel's processors with AVX-512 have, as these once ran slower with whole ones. Sums that
    are added in vectors would have other lanes, so that a kernel that folds may not say this: bits are the same for any width.
    """


def _marking(masked: bool) -> Any:
    """Return the intrinsic that marks the block which it stands in."""

    @intrinsic
    def mark(typingctx):
        def codegen(context, builder, signature, args):
            # (smaller vectors have no masked stores; of small ones the counting takes as long as the work)
            mark_block(builder, masked and BYTES >= 32, 2 if BYTES < 64 else 1)
            return context.get_dummy_value()

        return types.none(), codegen

    return mark


def independent() -> None:
    """Stand first in the body of a loop of which no round reads or writes what another one writes.

    Left to itself LLVM makes four pieces of a loop over elements: tests of whether arrays overlap, a body of several vectors, one of
    a vector, and one of an element for what is left, or where arrays do overlap. With this it makes the second and the last one.
    """


def masked() -> None:
    """Do as `independent`, for a long body: what is left over is done by the body too, under a mask. That takes a few percent of a short one."""


if not config.DISABLE_JIT:
    rolled, one_copy, in_place, larger, wide = _rolled, _one_copy, _in_place, _larger, _wide
    independent, masked = _marking(False), _marking(True)
