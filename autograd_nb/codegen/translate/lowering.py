"""The second walk: LLVM code of a function whose types are known, by the rules with which Numba lowers its own.

Variables are places on the stack, which LLVM puts into registers. What is counted (an array that a kernel allocates, and what
looks into it) is owned by the variable that it is set to, until that is set again or the function returns; what an expression
makes and no variable takes is let go at the end of its statement. Variables that only ever hold arguments and parts of them own
nothing: counting in the midst of loops doubles their time.
"""

from __future__ import annotations

import ast
import types as pytypes
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, funcdesc, typing
from numba.core.ir import Loc
from numba.core.lowering import BaseLower
from numba.np.arrayobj import populate_array

from ..processor import LINE
from .inference import EMPTY, FILL, VIEW, Call, Inference, Known
from .marks import carries, changed_in_place, tell_independent, unknown
from .text import Untranslatable, names_of, tree_of

WORD: Any = ir.IntType(64)


class Translated(BaseLower):
    """Numba's lowering of a function, with a body that is written from its syntax tree."""

    tree: ast.FunctionDef
    found: Inference
    given: dict[str, Any]

    def __init__(self, *given: Any, tree: ast.FunctionDef, found: Inference, **more: Any):
        self.tree, self.found = tree, found
        super().__init__(*given, **more)

    def lower_normal_function(self, fndesc: Any) -> None:
        self.setup_function(fndesc)
        self.extract_function_arguments()
        self.pre_lower()
        tail, start = self.builder.block, self.function.append_basic_block("begin")
        self.builder.position_at_end(start)
        self.places: dict[str, Any] = {}
        self.owned: list[tuple[types.Type, Any]] = []  # places of what is counted, and its type
        self.passing: list[tuple[types.Type, Any]] = []  # what the statement under way has made
        self.apart: dict[str, Any] = {}  # addresses of arrays, to be written to as if they were others than those that are read
        self.loops: list[tuple[Any, Any]] = []  # where the loops around go on, and where they end
        self.given = dict(zip(fndesc.args, self.fnargs, strict=True))  # arguments that are never set
        for name, kind in zip(fndesc.args, fndesc.argtypes, strict=True):
            if name in self.found.assigned:
                self.set(name, kind, self.given.pop(name))
        self.block(self.tree.body)
        if not self.builder.block.is_terminated:
            if fndesc.restype == types.none:
                self.leave(types.none, None)
            else:
                self.builder.unreachable()
        self.post_lower()
        self.builder.position_at_end(tail)
        self.builder.branch(start)

    # ------------------------------------------------------------------------------------------ variables

    def counted(self, kind: types.Type) -> bool:
        return bool(self.context.data_model_manager[kind].contains_nrt_meminfo())

    def owns(self, name: str, kind: types.Type) -> bool:
        return name not in self.found.borrowing and self.counted(kind)

    def place(self, name: str, kind: types.Type) -> Any:
        found = self.places.get(name)
        if found is None:
            with self.builder.goto_block(self.entry_block):
                found = self.builder.alloca(self.context.get_value_type(kind), name=name)
                if self.owns(name, kind):
                    self.builder.store(ir.Constant(found.type.pointee, None), found)
                    self.owned.append((kind, found))
            self.places[name] = found
        return found

    def set(self, name: str, kind: types.Type, value: Any) -> None:
        place = self.place(name, kind)
        if self.owns(name, kind):
            self.context.nrt.incref(self.builder, kind, value)
            self.context.nrt.decref(self.builder, kind, self.builder.load(place))
        self.builder.store(value, place)

    def let_go(self) -> None:
        for kind, value in self.passing:
            self.context.nrt.decref(self.builder, kind, value)
        self.passing.clear()

    def made(self, kind: types.Type, value: Any) -> Any:
        """Take what a call has returned, which is ours."""
        if self.counted(kind):
            self.passing.append((kind, value))
        return value

    def only_here(self, value: Callable[[], Any]) -> Any:
        """Return what is computed on one of several ways; where it makes something to be let go there, Numba's front end must do it."""
        before = len(self.passing)
        found = value()
        if len(self.passing) > before:
            raise Untranslatable("an array made on one of several ways")
        return found

    def leave(self, kind: types.Type, value: Any) -> None:
        if self.counted(kind):
            self.context.nrt.incref(self.builder, kind, value)
        self.let_go()
        for owned, place in self.owned:
            self.context.nrt.decref(self.builder, owned, self.builder.load(place))
        value = self.context.get_dummy_value() if value is None else value
        self.call_conv.return_value(self.builder, self.context.get_return_value(self.builder, kind, value))

    # ------------------------------------------------------------------------------------------ statements

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.builder.block.is_terminated:
                return
            getattr(self, f"do_{type(statement).__name__}")(statement)
            if not self.builder.block.is_terminated:
                self.let_go()
            self.passing.clear()

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    do_Assert = do_Pass

    def do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def do_Break(self, node: ast.Break) -> None:
        self.builder.branch(self.loops[-1][1])

    def do_Continue(self, node: ast.Continue) -> None:
        self.builder.branch(self.loops[-1][0])

    def do_Return(self, node: ast.Return) -> None:
        result = self.fndesc.restype
        if node.value is None or result == types.none:
            self.leave(types.none, None)
        else:
            self.leave(result, self.cast(node.value, result))

    def do_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if not isinstance(target, ast.Tuple):
            kind, value = self.found.type(node.value), self.value(node.value)
            for each in node.targets:
                self.assign(each, kind, value)
        elif isinstance(node.value, ast.Tuple):
            values = [(self.found.type(v), self.value(v)) for v in node.value.elts]
            for t, (kind, value) in zip(target.elts, values, strict=True):
                self.assign(t, kind, value)
        else:
            whole, kinds = self.value(node.value), self.found.type(node.value)
            for i, (t, kind) in enumerate(zip(target.elts, kinds, strict=True)):
                self.assign(t, kind, self.builder.extract_value(whole, i))

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        read = self.found.read(node.target)
        call = self.found.calls[node]
        value = self.call(call, [(self.found.type(read), self.value(read)), (self.found.literal(node.value), self.value(node.value))])
        self.assign(node.target, call.signature.return_type, value)

    def assign(self, target: ast.expr, kind: types.Type, value: Any) -> None:
        if isinstance(target, ast.Name):
            wanted = self.found.variables[target.id]
            self.set(target.id, wanted, self.converted(value, kind, wanted))
            return
        assert isinstance(target, ast.Subscript)
        where = self.found.type(target.value)
        call = self.found.calls.get(target)
        if call is None:
            pointer = self.element(target, where, self.apart.get(target.value.id) if isinstance(target.value, ast.Name) else None)
            self.context.pack_value(self.builder, where.dtype, self.converted(value, kind, where.dtype), pointer)
            return
        if call == FILL:
            assert isinstance(target.slice, ast.Slice)
            part = self.window(where, self.value(target.value), target.slice)
            value = self.converted(value, kind, where.dtype)
            data = self.part(where, part, "data")
            with cgutils.for_range(self.builder, self.part(where, part, "nitems")) as loop:
                self.context.pack_value(self.builder, where.dtype, value, self.builder.gep(data, [loop.index]))
            return
        index = self.found.index(target.slice)
        self.call(call, [(where, self.value(target.value)), (index, self.index(target.slice)), (kind, value)])

    def do_If(self, node: ast.If) -> None:
        test = self.found.expression(node.test)
        if isinstance(test, Known):
            self.block(node.body if test.value else node.orelse)
            return
        holds = self.truth(node.test)
        self.let_go()
        body, after = (self.function.append_basic_block(n) for n in ("if", "after"))
        otherwise = self.function.append_basic_block("else") if node.orelse else after
        self.builder.cbranch(holds, body, otherwise)
        for start, statements in ((body, node.body), (otherwise, node.orelse)):
            if start is not after:
                self.builder.position_at_end(start)
                self.block(statements)
                if not self.builder.block.is_terminated:
                    self.builder.branch(after)
        self.builder.position_at_end(after)

    def do_While(self, node: ast.While) -> None:
        test, body, after = (self.function.append_basic_block(n) for n in ("while", "body", "after"))
        self.builder.branch(test)
        self.builder.position_at_end(test)
        known = self.found.expression(node.test)
        if isinstance(known, Known):
            self.builder.branch(body if known.value else after)
        else:
            self.builder.cbranch(self.only_here(partial(self.truth, node.test)), body, after)
        self.loop(node, body, test, after)

    def loop(self, node: ast.While | ast.For, body: Any, onward: Any, after: Any) -> None:
        self.builder.position_at_end(body)
        self.loops.append((onward, after))
        self.block(node.body)
        self.loops.pop()
        if not self.builder.block.is_terminated:
            self.builder.branch(onward)
        self.builder.position_at_end(after)

    def do_For(self, node: ast.For) -> None:
        builder = self.builder
        assert isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Name)
        bounds = [self.cast(a, types.int64) for a in node.iter.args]
        self.let_go()  # not in the loop, once for each of its rounds
        first = bounds[0] if len(bounds) > 1 else WORD(0)
        last = bounds[1] if len(bounds) > 1 else bounds[0]
        step = bounds[2] if len(bounds) > 2 else WORD(1)
        with builder.goto_block(self.entry_block):
            counter = builder.alloca(WORD)
        builder.store(first, counter)
        before, self.apart = self.apart, {name: unknown(builder, self.begin(name)) for name in changed_in_place(node)}
        test, body, onward, after = (self.function.append_basic_block(n) for n in ("for", "body", "onward", "after"))
        builder.branch(test)
        builder.position_at_end(test)
        here = builder.load(counter)
        builder.cbranch(self.within(here, last, step), body, after)
        builder.position_at_end(onward)
        builder.store(builder.add(builder.load(counter), step, flags=["nsw"]), counter)
        back = builder.branch(test)
        builder.position_at_end(body)
        self.set(node.target.id, types.int64, here)
        self.loop(node, body, onward, after)
        self.apart = before
        blocks = self.function.basic_blocks
        if not self.context.enable_boundscheck:
            tell_independent(self.function, body, [test, body, onward, *blocks[blocks.index(after) + 1 :]], back, not carries(node, self.tree))

    def begin(self, name: str) -> Any:
        """Return the address of the first element of a flat array, or of a row."""
        found = ast.Name(name, ast.Load())
        kind, array = self.found.type(found), self.value(found)
        return self.part(kind, array, "data") if isinstance(kind, types.Array) else array

    def within(self, here: Any, last: Any, step: Any) -> Any:
        builder = self.builder
        if isinstance(step, ir.Constant):
            return builder.icmp_signed("<" if step.constant > 0 else ">", here, last)
        forward = builder.icmp_signed(">", step, WORD(0))
        return builder.select(forward, builder.icmp_signed("<", here, last), builder.icmp_signed(">", here, last))

    # ------------------------------------------------------------------------------------------ expressions

    def converted(self, value: Any, kind: types.Type, wanted: types.Type) -> Any:
        return value if kind == wanted else self.context.cast(self.builder, value, kind, wanted)

    def cast(self, node: ast.expr, wanted: types.Type) -> Any:
        found = self.found.expression(node)
        if isinstance(found, Known) and wanted is types.int64:
            return WORD(int(found.value))
        return self.converted(self.value(node), self.found.type(node), wanted)

    def truth(self, node: ast.expr) -> Any:
        """Return whether an expression holds; what `and` and `or` join may be numbers too."""
        if isinstance(node, ast.BoolOp) and node in self.found.calls:
            return self.of_BoolOp(node)
        return self.context.is_true(self.builder, types.unliteral(self.found.type(node)), self.value(node))

    def value(self, node: ast.expr) -> Any:
        found = self.found.expression(node)
        if isinstance(found, Known):
            return self.constant(found.value)
        return getattr(self, f"of_{type(node).__name__}")(node)

    def constant(self, value: Any) -> Any:
        kind = self.found.context.resolve_value_type(value)
        if isinstance(kind, types.Integer | types.Boolean | types.Float):
            return self.context.get_constant(kind, value)
        if isinstance(kind, types.Opaque | types.Dummy):
            return self.context.get_dummy_value()
        return self.context.get_constant_generic(self.builder, kind, value)

    def call(self, call: Call, given: list[tuple[types.Type, Any]], self_value: Any = None) -> Any:
        """Return the value of a call with arguments of these types."""
        signature = call.signature
        values = [self.converted(v, k, w) for (k, v), w in zip(given, signature.args, strict=True)]
        if isinstance(call.target, types.ExternalFunction):
            return self.external(call.target, values)
        implementation = self.context.get_function(call.target, signature)
        if call.method:
            values.insert(0, self_value)
        return self.made(signature.return_type, implementation(self.builder, values, self.loc))

    def external(self, target: types.ExternalFunction, values: list[Any]) -> Any:
        described = funcdesc.ExternalFunctionDescriptor(target.symbol, target.sig.return_type, target.sig.args)
        function = self.context.declare_external_function(self.builder.module, described)
        return self.context.call_external_function(self.builder, function, described.argtypes, values)

    def of_Name(self, node: ast.Name) -> Any:
        found = self.given.get(node.id)
        return self.builder.load(self.places[node.id]) if found is None else found

    def of_Attribute(self, node: ast.Attribute) -> Any:
        kind = self.found.type(node.value)
        value = self.value(node.value)
        if isinstance(kind, types.Array) and node.attr == "size":
            return self.part(kind, value, "nitems")
        result = self.found.type(node)
        if isinstance(result, types.Opaque | types.Dummy):
            return self.context.get_dummy_value()
        implementation = self.context.get_getattr(kind, node.attr)
        if implementation is None:
            return self.context.get_dummy_value()
        return self.made(result, implementation(self.context, self.builder, kind, value, node.attr))

    def part(self, kind: types.Type, value: Any, name: str) -> Any:
        return self.context.data_model_manager[kind].get(self.builder, value, name)

    def of_BinOp(self, node: ast.BinOp) -> Any:
        return self.call(self.found.calls[node], [(self.found.literal(n), self.value(n)) for n in (node.left, node.right)])

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return self.builder.not_(self.truth(node.operand))
        return self.call(self.found.calls[node], [(self.found.literal(node.operand), self.value(node.operand))])

    def of_Compare(self, node: ast.Compare) -> Any:
        operands = [node.left, *node.comparators]
        values = [self.value(operands[0])]
        tests: list[Callable[[], Any]] = []
        for i, call in enumerate(self.found.calls[node]):

            def test(i: int = i, call: Call = call) -> Any:
                values.append(self.value(operands[i + 1]))
                return self.call(call, [(self.found.literal(operands[k]), values[k]) for k in (i, i + 1)])

            tests.append(test)
        return self.chain(tests, False)

    def of_BoolOp(self, node: ast.BoolOp) -> Any:
        return self.chain([partial(self.truth, n) for n in self.found.calls[node]], isinstance(node.op, ast.Or))

    def chain(self, tests: list[Callable[[], Any]], stops: bool) -> Any:
        """Return the value of tests that end where one is as ``stops`` says."""
        builder = self.builder
        value = tests[0]()
        if len(tests) == 1:
            return value
        end = self.function.append_basic_block("decided")
        ways = []
        for test in tests[1:]:
            ways.append(builder.block)
            onward = self.function.append_basic_block("and")
            builder.cbranch(value, end if stops else onward, onward if stops else end)
            builder.position_at_end(onward)
            value = self.only_here(test)
        last = builder.block
        builder.branch(end)
        builder.position_at_end(end)
        result = builder.phi(ir.IntType(1))
        for way in ways:
            result.add_incoming(ir.IntType(1)(stops), way)
        result.add_incoming(value, last)
        return result

    def of_IfExp(self, node: ast.IfExp) -> Any:
        builder, kind = self.builder, self.found.type(node)
        test = self.found.expression(node.test)
        if isinstance(test, Known):
            return self.value(node.body if test.value else node.orelse)
        holds = self.truth(node.test)
        if all(isinstance(n, ast.Name | ast.Constant) for n in (node.body, node.orelse)) and not self.counted(kind):
            return builder.select(holds, self.cast(node.body, kind), self.cast(node.orelse, kind))
        with builder.goto_block(self.entry_block):
            place = builder.alloca(self.context.get_value_type(kind))
        with builder.if_else(holds) as (then, otherwise):
            for way, value in ((then, node.body), (otherwise, node.orelse)):
                with way:
                    builder.store(self.only_here(partial(self.cast, value, kind)), place)
        return builder.load(place)

    def of_Tuple(self, node: ast.Tuple) -> Any:
        kind = self.found.type(node)
        return self.context.make_tuple(self.builder, kind, [self.cast(e, k) for e, k in zip(node.elts, kind, strict=True)])

    def of_Subscript(self, node: ast.Subscript) -> Any:
        kind = self.found.type(node.value)
        if isinstance(kind, types.BaseTuple):
            index = self.found.expression(node.slice)
            if isinstance(index, Known):
                return self.builder.extract_value(self.value(node.value), range(len(kind))[index.value])
        call = self.found.calls.get(node)
        if call is None and isinstance(node.slice, ast.Slice):
            return self.window(kind, self.value(node.value), node.slice)
        if call is None:
            return self.context.unpack_value(self.builder, kind.dtype, self.element(node, kind))
        return self.call(call, [(kind, self.value(node.value)), (self.found.index(node.slice), self.index(node.slice))])

    def element(self, node: ast.Subscript, kind: Any, data: Any = None) -> Any:
        """Return the address of an element of a flat array (which begins at ``data``), where a negative index counts from the end, or of a row."""
        builder, array = self.builder, self.value(node.value)
        index_kind = types.unliteral(self.found.type(node.slice))
        index = self.value(node.slice)
        if not isinstance(kind, types.Array):
            return builder.gep(array if data is None else data, [self.converted(index, index_kind, types.intp)])
        whole = self.converted(index, index_kind, types.uintp if not index_kind.signed else types.intp)
        known = self.found.expression(node.slice)
        if index_kind.signed and not (isinstance(known, Known) and known.value >= 0):
            negative = builder.icmp_signed("<", whole, WORD(0))
            whole = builder.select(negative, builder.add(whole, self.part(kind, array, "nitems")), whole)
        if self.context.enable_boundscheck:
            cgutils.do_boundscheck(self.context, builder, whole, self.part(kind, array, "nitems"), 0)
        return builder.gep(self.part(kind, array, "data") if data is None else data, [whole], inbounds=True)

    def index(self, node: ast.expr) -> Any:
        """Return what stands in brackets, for Numba's own rules."""
        if not isinstance(node, ast.Slice):
            return self.value(node)
        found = cgutils.create_struct_proxy(types.slice2_type)(self.context, self.builder)
        found.start = self.cast(node.lower, types.int64) if node.lower else WORD(0)
        found.stop = self.cast(node.upper, types.int64) if node.upper else WORD((1 << 63) - 1)
        found.step = WORD(1)
        return found._getvalue()

    def window(self, kind: Any, array: Any, bounds: ast.Slice) -> Any:
        """Return a part of a flat array, which shares its memory."""
        builder, model = self.builder, self.context.data_model_manager[kind]
        size = model.get(builder, array, "nitems")
        first = self.bound(bounds.lower, size) if bounds.lower else WORD(0)
        last = self.bound(bounds.upper, size) if bounds.upper else size
        length = builder.sub(last, first)
        length = builder.select(builder.icmp_signed("<", length, WORD(0)), WORD(0), length)
        data = builder.gep(model.get(builder, array, "data"), [first])
        for name, value in (("data", data), ("nitems", length), ("shape", cgutils.pack_array(builder, [length]))):
            array = model.set(builder, array, value, name)
        return array

    def bound(self, node: ast.expr, size: Any) -> Any:
        """Return a bound of a slice, counted from the start and within the array."""
        builder, at = self.builder, self.cast(node, types.int64)
        if not (isinstance(at, ir.Constant) and at.constant >= 0):
            negative = builder.icmp_signed("<", at, WORD(0))
            at = builder.select(negative, builder.add(at, size), at)
            at = builder.select(builder.icmp_signed("<", at, WORD(0)), WORD(0), at)
        return builder.select(builder.icmp_signed(">", at, size), size, at)

    def of_Call(self, node: ast.Call) -> Any:
        call = self.found.calls[node]
        if isinstance(call, str):
            return self.instruction(node, call)
        kind = call.signature.return_type
        if isinstance(call.target, types.NumberClass) and isinstance(kind, types.Number) and len(node.args) == 1:
            source = self.found.type(node.args[0])
            if isinstance(source, types.Number | types.Boolean):
                return self.converted(self.value(node.args[0]), types.unliteral(source), kind)
        given = [(self.found.literal(a), self.value(a)) for a in node.args]
        method = self.value(node.func.value) if call.method and isinstance(node.func, ast.Attribute) else None
        return self.call(*self.folded(call, given, node.keywords), method)

    def instruction(self, node: ast.Call, call: str) -> Any:
        if call == VIEW:
            assert isinstance(node.func, ast.Attribute)
            return self.builder.bitcast(self.value(node.func.value), self.context.get_value_type(self.found.type(node)))
        if call == EMPTY:
            return self.made(self.found.type(node), self.empty(self.found.type(node), self.cast(node.args[0], types.int64)))
        found, *others = [self.cast(a, types.int64) for a in node.args]
        for other in others:
            found = self.builder.select(self.builder.icmp_signed(call, found, other), found, other)
        return found

    def empty(self, kind: types.Array, size: Any) -> Any:
        """Return a new flat array, whose vectors lie in one line each; MemoryError where there is no room, ValueError for what is no size."""
        context, builder = self.context, self.builder
        width = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        itemsize = WORD(width)
        with cgutils.if_unlikely(builder, builder.icmp_unsigned(">", size, WORD((1 << 62) // width))):
            self.return_exception(ValueError, ("an array of a negative size, or one that is too big",))
        memory = context.nrt.meminfo_alloc_aligned(builder, builder.mul(size, itemsize), ir.IntType(32)(LINE))
        with cgutils.if_unlikely(builder, cgutils.is_null(builder, memory)):
            self.return_exception(MemoryError, ("Allocation failed (probably too large).",))
        array = context.make_array(kind)(context, builder)
        data = builder.bitcast(context.nrt.meminfo_data(builder, memory), context.get_data_type(kind.dtype).as_pointer())
        populate_array(array, data=data, shape=[size], strides=[itemsize], itemsize=itemsize, meminfo=memory)
        return array._getvalue()

    def folded(self, call: Call, given: list[Any], keywords: list[ast.keyword]) -> tuple[Call, list[Any]]:
        """Return the arguments of a call in the order of its parameters."""
        parameters = call.signature.pysig
        if parameters is None:
            return call, given
        default = self.context.get_constant_generic

        def constant(index: int, parameter: Any, value: Any) -> tuple[types.Type, Any]:
            kind = call.signature.args[index]
            return kind, default(self.builder, kind, value)

        def several(index: int, parameter: Any, values: Any) -> tuple[types.Type, Any]:
            kind = call.signature.args[index]
            parts = [self.converted(v, k, w) for (k, v), w in zip(values, kind, strict=True)]
            return kind, cgutils.make_anonymous_struct(self.builder, parts)

        named = {k.arg: (self.found.literal(k.value), self.value(k.value)) for k in keywords}
        return call, list(typing.fold_arguments(parameters, given, named, lambda i, p, v: v, constant, several))


def translated(state: Any, function: pytypes.FunctionType) -> Callable[..., Translated]:
    """Make the state of a compilation ready for lowering, and return what lowers; `Untranslatable` where Numba's front end must do it."""
    tree = tree_of(function)
    names = [a.arg for a in tree.args.args]
    defaults = any(isinstance(k, types.Omitted | types.StarArgTuple) for k in state.args)
    if defaults or len(names) != len(state.args) or tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs:
        raise Untranslatable("parameters")
    found = Inference(state.typingctx, tree, names_of(function), dict(zip(names, state.args, strict=True)))
    if state.return_type not in (None, found.result):
        raise Untranslatable("result")
    loc = Loc(function.__code__.co_filename, tree.lineno)
    state.func_ir = SimpleNamespace(func_id=state.func_id, arg_names=names, blocks={0: None}, generator_info=None, loc=loc)
    state.typemap = {f"arg.{n}": k for n, k in zip(names, state.args, strict=True)}
    state.calltypes, state.return_type, state.lifted = {}, found.result, ()
    return partial(Translated, tree=tree, found=found)
