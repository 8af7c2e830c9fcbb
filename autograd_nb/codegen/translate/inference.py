"""The first walk: the type of every expression, as Numba's own rules have it.

In a kernel a variable has one type wherever it is set, so that one walk in the order of the text knows them all. What is set
to two types goes to Numba's front end, which tells its uses apart.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core.typing.templates import Signature

from .text import Untranslatable

BINARY: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
UNARY: dict[type, Any] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_}
COMPARED: dict[type, Any] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
FOLDED = (int, float, bool)


class Known(NamedTuple):
    """The value of an expression that is known before the kernel runs."""

    value: Any


class Call(NamedTuple):
    """A call: what is called, on which types, and whether it is a method of the value before the dot."""

    target: Any
    signature: Signature
    method: bool = False


VIEW, LEAST, GREATEST, FILL, EMPTY = "view", "<", ">", "fill", "empty"  #: calls that are a few instructions each


class Inference:
    """The types of a function's expressions for the types of its arguments."""

    context: Any  # of Numba
    names: dict[str, Any]
    assigned: set[str]
    local: set[str]
    borrowing: set[str]

    def __init__(self, context: Any, tree: ast.FunctionDef, names: dict[str, Any], arguments: dict[str, types.Type]):
        self.context, self.names = context, names
        self.variables: dict[str, types.Type] = dict(arguments)
        self.calls: dict[ast.AST, Any] = {}
        self.of: dict[ast.AST, Any] = {}
        self.reads: dict[ast.AST, ast.expr] = {}
        self.result: types.Type | None = None
        self.assigned = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.local = self.assigned | set(arguments)
        self.borrowing = _borrowing(tree, set(arguments), self.assigned)
        self.block(tree.body)
        if self.result is None:
            self.result = types.none
        elif self.result != types.none and not _ends(tree.body):
            raise Untranslatable("a result at times")

    # ------------------------------------------------------------------------------------------ statements

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            visit = getattr(self, f"do_{type(statement).__name__}", None)
            if visit is None:
                raise Untranslatable(type(statement).__name__)
            visit(statement)

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Break(self, node: ast.Break) -> None:
        pass

    def do_Continue(self, node: ast.Continue) -> None:
        pass

    def do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.type(node.value)

    def do_Assert(self, node: ast.Assert) -> None:
        test = self.expression(node.test)
        if not (isinstance(test, Known) and test.value):
            raise Untranslatable("assert")

    def do_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if len(node.targets) > 1 and any(isinstance(t, ast.Tuple) for t in node.targets):
            raise Untranslatable("several targets")
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and len(target.elts) == len(node.value.elts):
            found = [self.type(v) for v in node.value.elts]
            for t, kind in zip(target.elts, found, strict=True):
                self.set(t, kind)
            return
        kind = self.type(node.value)
        if isinstance(target, ast.Tuple):
            if not isinstance(kind, types.BaseTuple) or len(kind) != len(target.elts):
                raise Untranslatable("unpacking")
            for t, part in zip(target.elts, kind, strict=True):
                self.set(t, part)
            return
        for each in node.targets:
            self.set(each, kind)

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        self.calls[node] = self.call(BINARY[type(node.op)], [self.type(self.read(target)), self.literal(node.value)])
        self.set(target, self.calls[node].signature.return_type)

    def read(self, target: ast.expr) -> ast.expr:
        """Return the expression that reads what an augmented assignment sets."""
        if isinstance(target, ast.Name):
            if not isinstance(self.of_Name(target), types.Number | types.Boolean):
                raise Untranslatable("augmented assignment")  # of an array it would change the array
            return self.reads.setdefault(target, ast.Name(target.id, ast.Load()))
        if any(isinstance(n, ast.Call) for n in ast.walk(target)) and not _is_plain(target):
            raise Untranslatable("augmented assignment")  # what is called would be called twice
        if not isinstance(target, ast.Subscript) or not self.reads_directly(self.type(target.value), self.index(target.slice)):
            raise Untranslatable("augmented assignment")
        return target

    def do_If(self, node: ast.If) -> None:
        test = self.truth(node.test)
        if isinstance(test, Known):
            self.block(node.body if test.value else node.orelse)
            return
        self.block(node.body)
        self.block(node.orelse)

    def do_While(self, node: ast.While) -> None:
        if node.orelse:
            raise Untranslatable("else")
        self.truth(node.test)
        self.block(node.body)

    def do_For(self, node: ast.For) -> None:
        call = node.iter
        if node.orelse or not isinstance(node.target, ast.Name) or not isinstance(call, ast.Call) or call.keywords:
            raise Untranslatable("for")
        if self.expression(call.func) != Known(range):
            raise Untranslatable("for")
        for bound in call.args:
            if types.unliteral(self.type(bound)) not in (types.int64, types.boolean, types.int32):
                raise Untranslatable("range")
        self.set(node.target, types.int64)
        self.block(node.body)

    def do_Return(self, node: ast.Return) -> None:
        kind = types.none if node.value is None else types.unliteral(self.type(node.value))
        if isinstance(kind, types.BaseTuple):
            kind = types.BaseTuple.from_types([types.unliteral(part) for part in kind])
        if self.result not in (None, kind):
            raise Untranslatable("results of several types")
        self.result = kind

    def set(self, target: ast.expr, kind: types.Type) -> None:
        if isinstance(target, ast.Subscript):
            place = self.type(target.value)
            index = self.index(target.slice)
            if self.reads_directly(place, index):
                return
            if isinstance(target.slice, ast.Slice) and self.is_flat(place) and isinstance(kind, types.Number):
                self.calls[target] = FILL
                return
            signature = self.context.resolve_setitem(place, types.unliteral(index), types.unliteral(kind))
            if signature is None:
                raise Untranslatable("item")
            setter = self.context.resolve_value_type(operator.setitem)
            self.calls[target] = Call(setter, setter.get_call_type(self.context, signature.args, {}))
            return
        if not isinstance(target, ast.Name):
            raise Untranslatable(type(target).__name__)
        kind = types.unliteral(kind)
        if isinstance(kind, types.BaseTuple):
            kind = types.BaseTuple.from_types([types.unliteral(part) for part in kind])
        before = self.variables.setdefault(target.id, kind)
        if before != kind:
            raise Untranslatable(f"{target.id}: {before} and {kind}")

    # ------------------------------------------------------------------------------------------ expressions

    def type(self, node: ast.expr) -> Any:
        """Return the type of an expression, where constants have their own."""
        found = self.expression(node)
        return found if isinstance(found, types.Type) else self.context.resolve_value_type(found.value)

    def literal(self, node: ast.expr) -> Any:
        """Return the type of an operand, where that of a constant tells its value."""
        found = self.expression(node)
        return found if isinstance(found, types.Type) else self.context.resolve_value_type_prefer_literal(found.value)

    def truth(self, node: ast.expr) -> Any:
        """Check that an expression can be asked whether it holds, and return its type, or what it is."""
        if isinstance(node, ast.BoolOp) and node not in self.of:
            self.of[node] = self.joined(node, self.truth)
        found = self.expression(node)
        if not isinstance(found, Known) and not isinstance(types.unliteral(found), types.Boolean | types.Number):
            raise Untranslatable("truth")
        return found

    def expression(self, node: ast.expr) -> Any:
        """Return the type of an expression, or what it is."""
        found = self.of.get(node)
        if found is None:
            visit = getattr(self, f"of_{type(node).__name__}", None)
            if visit is None:
                raise Untranslatable(type(node).__name__)
            found = self.of[node] = visit(node)
        return found

    def of_Constant(self, node: ast.Constant) -> Any:
        return Known(node.value)

    def of_Name(self, node: ast.Name) -> Any:
        if node.id in self.local:
            kind = self.variables.get(node.id)
            if kind is None:
                raise Untranslatable(f"{node.id} before it is set")
            return kind
        if node.id in self.names:
            return Known(self.names[node.id])
        return Known(getattr(builtins, node.id))

    def of_Attribute(self, node: ast.Attribute) -> Any:
        value = self.expression(node.value)
        if isinstance(value, Known):
            return Known(getattr(value.value, node.attr))
        kind = self.context.resolve_getattr(value, node.attr)
        if kind is None:
            raise Untranslatable(node.attr)
        return kind

    def of_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.expression(node.left), self.expression(node.right)
        function = BINARY.get(type(node.op))
        if function is None:
            raise Untranslatable(type(node.op).__name__)
        if isinstance(left, Known) and isinstance(right, Known) and type(left.value) in FOLDED and type(right.value) in FOLDED:
            try:
                return Known(function(left.value, right.value))
            except (ArithmeticError, TypeError, ValueError):
                pass
        return self.called(node, function, [self.literal(node.left), self.literal(node.right)])

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        function = UNARY[type(node.op)]
        if function is operator.not_:
            found = self.truth(node.operand)
            return Known(not found.value) if isinstance(found, Known) else types.boolean
        operand = self.expression(node.operand)
        if isinstance(operand, Known) and type(operand.value) in FOLDED:
            return Known(function(operand.value))
        return self.called(node, function, [self.literal(node.operand)])

    def of_Compare(self, node: ast.Compare) -> Any:
        operands = [node.left, *node.comparators]
        found = [self.expression(o) for o in operands]
        known = all(isinstance(f, Known) for f in found)
        calls = []
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            function = COMPARED.get(type(op))
            if function is None and not known:
                raise Untranslatable(type(op).__name__)
            if not known:
                calls.append(self.call(function, [self.literal(left), self.literal(right)]))
        if known:
            values = [f.value for f in found]
            return Known(all(_COMPARE[type(op)](a, b) for op, a, b in zip(node.ops, values, values[1:], strict=False)))
        if any(c.signature.return_type != types.boolean for c in calls):
            raise Untranslatable("comparison")
        self.calls[node] = calls
        return types.boolean

    def of_BoolOp(self, node: ast.BoolOp) -> Any:
        return self.joined(node, self.boolean)

    def boolean(self, node: ast.expr) -> None:
        if types.unliteral(self.type(node)) != types.boolean:
            raise Untranslatable("and, or")

    def joined(self, node: ast.BoolOp, look: Callable[[ast.expr], Any]) -> Any:
        """Return what `and` or `or` makes of its operands, of which those are left out that are known and change nothing."""
        stops = isinstance(node.op, ast.Or)
        kept: list[ast.expr] = []
        for value in node.values:
            found = None if isinstance(value, ast.BoolOp) else self.expression(value)
            if isinstance(found, Known):
                if bool(found.value) == stops and not kept:
                    return Known(stops)
                if bool(found.value) != stops:
                    continue
            look(value)
            kept.append(value)
        if not kept:
            return Known(not stops)
        self.calls[node] = kept
        return types.boolean

    def of_IfExp(self, node: ast.IfExp) -> Any:
        test = self.truth(node.test)
        if isinstance(test, Known):
            return self.expression(node.body if test.value else node.orelse)
        kinds = [types.unliteral(self.type(n)) for n in (node.body, node.orelse)]
        if kinds[0] == kinds[1]:
            return kinds[0]
        kind = self.context.unify_types(*kinds)
        if kind is None or not isinstance(kind, types.Number):
            raise Untranslatable("if else")
        return kind

    def of_Tuple(self, node: ast.Tuple) -> Any:
        found = [self.expression(e) for e in node.elts]
        if all(isinstance(f, Known) for f in found):
            return Known(tuple(f.value for f in found))
        return types.BaseTuple.from_types([types.unliteral(self.type(e)) for e in node.elts])

    def of_Subscript(self, node: ast.Subscript) -> Any:
        value = self.expression(node.value)
        if isinstance(value, Known):
            index = self.expression(node.slice) if not isinstance(node.slice, ast.Slice) else None
            if isinstance(index, Known):
                return Known(value.value[index.value])
            value = self.type(node.value)
        if isinstance(value, types.BaseTuple):
            index = self.expression(node.slice)
            if isinstance(index, Known):
                return value[index.value]
        index = self.index(node.slice)
        if self.reads_directly(value, index):
            return value.dtype
        if isinstance(node.slice, ast.Slice) and self.is_flat(value):
            return value
        return self.called(node, operator.getitem, [value, types.unliteral(index)])

    @staticmethod
    def is_flat(kind: Any) -> bool:
        return isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C" and kind.aligned

    def reads_directly(self, place: Any, index: Any) -> bool:
        """Return whether an element is one load from memory: of a flat array or a row, at a number."""
        return isinstance(types.unliteral(index), types.Integer) and (self.is_flat(place) or isinstance(place, types.CPointer))

    def index(self, node: ast.expr) -> Any:
        if not isinstance(node, ast.Slice):
            return self.type(node)
        if node.step is not None:
            raise Untranslatable("slice")
        for bound in (node.lower, node.upper):
            if bound is not None and types.unliteral(self.type(bound)) != types.int64:
                raise Untranslatable("slice")
        return types.slice2_type

    def of_Call(self, node: ast.Call) -> Any:
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            raise Untranslatable("*")
        function = self.expression(node.func)
        known = isinstance(function, Known)
        if known and function.value is print:  # which Numba lowers by itself
            raise Untranslatable("print")
        target = self.context.resolve_value_type(function.value) if known else function
        if isinstance(target, types.TypeRef):
            target = target.instance_type
        arguments = [self.literal(a) for a in node.args]
        keywords = {k.arg: self.literal(k.value) for k in node.keywords}
        if self.is_view(node):
            self.calls[node] = VIEW
            return arguments[0].dtype
        if known and function.value in (min, max) and not keywords and {types.unliteral(a) for a in arguments} == {types.int64}:
            self.calls[node] = LEAST if function.value is min else GREATEST
            return types.int64
        if known and function.value is np.empty:
            kinds = [*arguments, *keywords.values()]
            if len(kinds) == 2 and types.unliteral(kinds[0]) == types.int64 and set(keywords) <= {"dtype"}:
                self.calls[node] = EMPTY
                return types.Array(kinds[1].dtype, 1, "C")
        signature = self.context.resolve_function_type(target, tuple(arguments), keywords)
        if signature is None:
            raise Untranslatable(str(target))
        self.calls[node] = Call(target, signature, isinstance(target, types.BoundFunction))
        return signature.return_type

    def is_view(self, node: ast.Call) -> bool:
        """Return whether it is ``x.view(dtype)`` of a number: its bits as those of another type."""
        function = node.func
        if not (isinstance(function, ast.Attribute) and function.attr == "view" and len(node.args) == 1):
            return False
        value, kind = self.expression(function.value), self.type(node.args[0])
        return isinstance(value, types.Number) and isinstance(kind, types.NumberClass) and value.bitwidth == kind.dtype.bitwidth

    def called(self, node: ast.expr, function: Any, arguments: list[Any]) -> Any:
        self.calls[node] = found = self.call(function, arguments)
        return found.signature.return_type

    def call(self, function: Any, arguments: list[Any]) -> Call:
        target = self.context.resolve_value_type(function)
        signature = self.context.resolve_function_type(target, tuple(arguments), {})
        if signature is None:
            raise Untranslatable(str(function))
        return Call(target, signature)


_COMPARE: dict[type, Any] = {
    **COMPARED,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def _borrowing(tree: ast.FunctionDef, arguments: set[str], assigned: set[str]) -> set[str]:
    """Return the variables that are only ever set to arguments and to parts of them, which the caller holds: there is nothing to count."""
    values: dict[str, list[ast.expr | None]] = {name: [] for name in assigned}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                pairs = zip(target.elts, node.value.elts, strict=True) if several else [(target, node.value)]  # type: ignore[attr-defined]
                for each, value in pairs:
                    if isinstance(each, ast.Name):
                        values[each.id].append(value)
                    else:
                        for name in ast.walk(each):
                            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                                values[name.id].append(None)
    found = set(assigned)
    while True:
        held = found | (arguments - assigned)
        kept = {name for name in found if all(_is_part(value, held) for value in values[name])}
        if kept == found:
            return found
        found = kept


def _is_plain(target: ast.expr) -> bool:
    """Return whether an expression calls nothing but types of numbers, as in ``x[np.uintp(i)]``."""
    calls = [n.func for n in ast.walk(target) if isinstance(n, ast.Call)]
    return all(isinstance(f, ast.Attribute) and f.attr in ("uintp", "int64") for f in calls)


def _is_part(value: ast.expr | None, held: set[str]) -> bool:
    """Return whether an expression is one of these variables or a part of it."""
    if isinstance(value, ast.Name):
        return value.id in held
    if isinstance(value, ast.Subscript):
        return isinstance(value.slice, ast.Slice) and _is_part(value.value, held)
    return isinstance(value, ast.IfExp) and _is_part(value.body, held) and _is_part(value.orelse, held)


def _ends(statements: list[ast.stmt]) -> bool:
    """Return whether nothing after these statements is reached."""
    last = statements[-1] if statements else None
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    if isinstance(last, ast.While):
        return isinstance(last.test, ast.Constant) and bool(last.test.value) and not any(isinstance(n, ast.Break) for n in ast.walk(last))
    return isinstance(last, ast.Return)
