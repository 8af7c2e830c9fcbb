"""Whether a text is one that the generator of kernels can have written; anything else is refused before it is compiled.

What passes is a single function of loops over `range`, arithmetic, and calls of known functions: it cannot loop for ever without
counting, call itself, or reach what is not handed to it. Whether its indices lie inside of its arrays cannot be told by looking at
it, so `checked_source` makes the text that a kernel from a file is compiled from: the same, with every index tested as it is used.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ...checked.counting import Loops, beginning

_IMPORTS = {"import math", "import numpy as np", "from autograd_nb.codegen import iterative"}
_RUNTIME = {"advance", "copy", "entry", "independent", "pack", "position", "radd", "rmul", "rolled", "row", "scratch", "start", "steps", "turn", "wide"}
_BUILTINS = {"range", "min", "max", "abs", "float", "int", "bool", "len", "round", "complex"}
_INTEGERS = {f"{k}{n}" for k in ("int", "uint") for n in (8, 16, 32, 64)} | {"intp", "uintp"}
_NUMBERS = _INTEGERS | {"bool_", "float32", "float64", "complex64", "complex128"}
_NUMPY = _NUMBERS | {
    "array", "inf", "nan", "iinfo", "finfo", "sqrt", "floor", "ceil", "trunc", "rint", "copysign", "isnan", "abs", "fmod", "exp", "log",
    "sin", "cos", "power", "conj", "real", "imag", "nextafter", "gcd", "lcm",
}  # fmt: skip
_METHODS = {"size", "view", "type", "dtype", "real", "imag", "min", "max", "conjugate"}
_NODES = (
    ast.FunctionDef, ast.arguments, ast.arg, ast.Assign, ast.AugAssign, ast.For, ast.If, ast.IfExp, ast.Return, ast.Expr, ast.Name,
    ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Subscript, ast.Slice, ast.Tuple, ast.Call, ast.Attribute, ast.Load,
    ast.Store, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.Pass, ast.Break, ast.Continue,
)  # fmt: skip
_LONGEST = 1 << 18  #: characters of a text; the generator's longest are a tenth of it
_LOOPS = 6  #: of an iteration space, as `codegen.runtime` has it
_ROOM = 1 << 17  #: elements of all buffers on the stack
_LARGEST = 1 << 64  #: what no integer in a text reaches
_SECOND = "autograd_nb.checked.codegen"  #: where the functions are that look at bounds


class SourceError(ValueError):
    """A text that is not a generated kernel."""


def check_source(text: str) -> None:
    """Raise SourceError unless ``text`` uses only what generated kernels use."""
    _parsed(text)


def checked_source(text: str, argtypes: Sequence[str]) -> str:
    """Return the text of the kernel that does what ``text`` says while it stays inside of its arrays, and raises where it leaves them.

    Rows, places and buffers are those of `autograd_nb.checked`; the steps of all loops are counted against the size of the arrays; an
    integer that LLVM may call undefined is made one that it knows nothing of. SourceError as `check_source`.
    """
    tree = _parsed(text)
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom):
            assert statement.module is not None
            statement.module = statement.module.replace("autograd_nb.codegen", _SECOND)
        elif isinstance(statement, ast.FunctionDef):
            if len(statement.args.args) != len(argtypes):
                raise SourceError("not a kernel: its arguments are not those of its types")
            kinds = {a.arg: t for a, t in zip(statement.args.args, argtypes, strict=True)}
            _Counted().function(statement, kinds, _Walks(statement, kinds).needed)
    more = ast.parse(f"from {_SECOND}.runtime import needs as _needs, room as _room, settled as _settled, spent as _spent")
    tree.body[:0] = more.body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _parsed(text: str) -> ast.Module:
    """Return the syntax tree of a text that passes all checks."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise SourceError("not a kernel: its text is too long")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SourceError(f"not a kernel: {error}") from None
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    if len(functions) != 1 or functions[0].name != "kernel":
        raise SourceError("not a kernel: it must define one function, kernel")
    imported: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            imported |= _imported(statement)
        elif isinstance(statement, ast.Assign):
            _check_constant(statement)
        elif not isinstance(statement, ast.FunctionDef):
            raise SourceError(f"not a kernel: {ast.unparse(statement)[:80]}")
    for node in ast.walk(functions[0]):
        _check(node, functions[0], imported)
    return tree


def _imported(statement: ast.Import | ast.ImportFrom) -> set[str]:
    """Return the names that an import brings, which must be one of the generator's."""
    line = ast.unparse(statement)
    runtime = isinstance(statement, ast.ImportFrom) and statement.module == "autograd_nb.codegen.runtime" and not statement.level
    if line not in _IMPORTS and not (runtime and all(a.name in _RUNTIME and a.asname is None for a in statement.names)):
        raise SourceError(f"not a kernel: {line[:80]}")
    return {a.name for a in statement.names}


def _check_constant(statement: ast.Assign) -> None:
    """Refuse a statement beside the function, which Python would run, unless it names a number or an array of numbers."""
    if len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name) or not _allowed_name(statement.targets[0].id, _RUNTIME):
        raise SourceError(f"not a kernel: {ast.unparse(statement)[:80]}")
    value = statement.value
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "np.array" and value.args and isinstance(value.args[0], ast.List):
        kinds = [ast.unparse(k.value) for k in value.keywords] + [ast.unparse(a) for a in value.args[1:]]
        if len(kinds) <= 1 and all(k in {f"np.{n}" for n in _NUMBERS} for k in kinds) and all(map(_is_number, value.args[0].elts)):
            return
    elif _is_number(value):
        return
    raise SourceError(f"not a kernel: {ast.unparse(statement)[:80]}")


def _is_number(node: ast.AST) -> bool:
    """Return whether an expression is a number: as it is, negative, or of a NumPy type."""
    if isinstance(node, ast.Call):
        known = isinstance(node.func, ast.Attribute) and ast.unparse(node.func) in {f"np.{n}" for n in _NUMBERS}
        return known and not node.keywords and len(node.args) == 1 and _is_number(node.args[0])
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and _is_number(node.operand)
    if isinstance(node, ast.Attribute):
        return ast.unparse(node) in ("np.inf", "np.nan")
    return isinstance(node, ast.Constant) and _is_plain(node.value)


def _is_plain(value: object) -> bool:
    return isinstance(value, (float, bool, complex)) or (isinstance(value, int) and abs(value) < _LARGEST)


def _allowed_name(name: str, imported: set[str]) -> bool:
    """Return whether a text may give something this name."""
    return not name.startswith("_") and name not in _BUILTINS | imported | {"np", "math", "iterative", "kernel"}


def _check(node: ast.AST, function: ast.FunctionDef, imported: set[str]) -> None:
    """Raise SourceError for a node of the function that the generator does not write."""
    if not isinstance(node, _NODES) or (isinstance(node, ast.FunctionDef) and node is not function):
        raise SourceError(f"not a kernel: {type(node).__name__}")
    if isinstance(node, ast.FunctionDef) and (node.decorator_list or node.returns or getattr(node, "type_params", None)):
        raise SourceError("not a kernel: decorators or annotations")
    if isinstance(node, ast.arguments) and (
        node.defaults or node.kw_defaults or node.vararg or node.kwarg or node.kwonlyargs or node.posonlyargs
    ):
        raise SourceError("not a kernel: arguments with defaults or names")
    if isinstance(node, ast.arg) and (node.annotation or not _allowed_name(node.arg, imported)):
        raise SourceError(f"not a kernel: the argument {node.arg[:80]}")
    if isinstance(node, ast.Name):
        if node.id.startswith("__") or (isinstance(node.ctx, ast.Store) and node.id != "_" and not _allowed_name(node.id, imported)):
            raise SourceError(f"not a kernel: {node.id[:80]}")
    elif isinstance(node, ast.Constant) and not (node.value is None or _is_plain(node.value)):
        raise SourceError(f"not a kernel: {node.value!r:.80}")
    elif isinstance(node, ast.Attribute):
        module = node.value.id if isinstance(node.value, ast.Name) else ""
        allowed = _NUMPY if module == "np" else None if module in ("math", "iterative") else _METHODS
        if node.attr.startswith("_") or (allowed is not None and node.attr not in allowed):
            raise SourceError(f"not a kernel: {ast.unparse(node)[:80]}")
    elif isinstance(node, ast.Call):
        _check_call(node, imported)
    elif isinstance(node, ast.For) and not (_is_range(node.iter) and isinstance(node.target, ast.Name) and not node.orelse):
        raise SourceError(f"not a kernel: a loop over {ast.unparse(node.iter)[:80]}")
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.LShift, ast.RShift)):
        raise SourceError("not a kernel: a shift in place")


def _check_call(node: ast.Call, imported: set[str]) -> None:
    if node.keywords:
        raise SourceError(f"not a kernel: {ast.unparse(node)[:80]}")
    if isinstance(node.func, ast.Name):
        if node.func.id not in _BUILTINS | (_RUNTIME & imported):
            raise SourceError(f"not a kernel: {node.func.id[:80]}()")
    elif not isinstance(node.func, ast.Attribute):
        raise SourceError(f"not a kernel: {ast.unparse(node)[:80]}")


def _is_range(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range" and 1 <= len(node.args) <= 3


class _Walks:
    """Walks tell what a kernel does with the functions that take literals, which are checked here: places, tables of sizes, and
    buffers.

    ``needed``: how many elements the arguments that are such tables must have.
    """

    def __init__(self, kernel: ast.FunctionDef, kinds: dict[str, str]):
        self.kinds = kinds
        self.needed: dict[str, int] = {}
        self.places: dict[str, int] = {}
        self.room = 0
        nodes = list(ast.walk(kernel))
        for node in nodes:
            if isinstance(node, ast.Assign) and _called(node.value) == "start":
                self._place(node)
        uses = 0  # of names of places: each must be one of the calls below
        for node in nodes:
            if isinstance(node, ast.Call):
                uses += self._call(_called(node), node.args)
        named = [n for n in nodes if isinstance(n, ast.Name) and n.id in self.places]
        starts = sum(_called(n) == "start" for n in nodes)
        if uses != len(named) - len(self.places) or starts != len(self.places):
            raise SourceError("not a kernel: a place is used otherwise than as a place")
        stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if stored & self.needed.keys():
            raise SourceError("not a kernel: a table of sizes is exchanged")

    def _place(self, node: ast.Assign) -> None:
        (target, *more), call = node.targets, node.value
        assert isinstance(call, ast.Call)
        if more or not isinstance(target, ast.Name) or target.id in self.places or len(call.args) != 1:
            raise SourceError("not a kernel: a place")
        self.places[target.id] = _literal(call.args[0], 1, 256)

    def _call(self, name: str, args: list[ast.expr]) -> int:
        """Check a call; how many places it names."""
        if name == "position":
            place, operand = _exactly(args, 2)
            _literal(operand, 0, self._operands(place) - 1)
            return 1
        if name == "advance":
            place, table, operands, first, last = _exactly(args, 5)
            n = self._operands(place)
            _literal(operands, n, n)
            _literal(first, 0, _literal(last, 0, _LOOPS))
            self._table(table, _LOOPS * (n + 1))
            return 1
        if name == "steps":
            table, first, last = _exactly(args, 3)
            _literal(first, 0, _literal(last, 1, _LOOPS) - 1)
            self._table(table, _LOOPS)
        elif name == "entry":
            table, k = _exactly(args, 2)
            self._table(table, _literal(k, 0, 4096) + 1)
        elif name == "scratch":
            size, kind = _exactly(args, 2)
            self.room += 16 * _literal(size, 1, _ROOM)
            if self.room > 16 * _ROOM or ast.unparse(kind) not in {f"np.{n}" for n in _NUMBERS}:
                raise SourceError("not a kernel: its buffers take too much room")
        return 0

    def _operands(self, place: ast.expr) -> int:
        found = self.places.get(place.id) if isinstance(place, ast.Name) else None
        if found is None:
            raise SourceError(f"not a kernel: {ast.unparse(place)[:80]} is no place")
        return found

    def _table(self, table: ast.expr, size: int) -> None:
        if not isinstance(table, ast.Name) or self.kinds.get(table.id) != "int64[:]":
            raise SourceError(f"not a kernel: {ast.unparse(table)[:80]} is no table of sizes")
        self.needed[table.id] = max(size, self.needed.get(table.id, 0))


def _called(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _exactly(args: list[ast.expr], n: int) -> list[ast.expr]:
    if len(args) != n:
        raise SourceError("not a kernel: a call with other arguments")
    return args


def _literal(node: ast.expr, least: int, most: int) -> int:
    """Return the value of an integer that stands in the text."""
    if not isinstance(node, ast.Constant) or type(node.value) is not int or not least <= node.value <= most:
        raise SourceError(f"not a kernel: {ast.unparse(node)[:80]}")
    return node.value


class _Counted(ast.NodeTransformer):
    """Puts the counts of steps, and what hides undefined integers from LLVM, into a kernel's function."""

    def function(self, kernel: ast.FunctionDef, kinds: dict[str, str], needed: dict[str, int]) -> None:
        """Rewrite the kernel's function in place, so that it checks what cannot be seen in the text."""
        self.generic_visit(kernel)
        Loops().visit(kernel)
        tables = ast.parse("\n".join(f"_needs({table}, {n})" for table, n in needed.items())).body
        kernel.body[:0] = [*tables, *beginning(kernel, list(kinds.values()))]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return an integer made of something, perhaps of a float that it does not hold."""
        viewed = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "view" else None
        if isinstance(viewed, ast.Call):  # Numba wants to see that it is a NumPy number
            self.generic_visit(viewed)
            return ast.Call(ast.Name("_settled", ast.Load()), [node], [])
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if name in ("int", "round") or name.startswith("math.") or name.removeprefix("np.") in _INTEGERS:
            return ast.Call(ast.Name("_settled", ast.Load()), [node], [])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Return a shift, perhaps by more than there are bits."""
        self.generic_visit(node)
        if isinstance(node.op, (ast.LShift, ast.RShift)):
            return ast.Call(ast.Name("_settled", ast.Load()), [node], [])
        return node
