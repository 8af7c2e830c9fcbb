"""Whether a text is one that the generator of kernels can have written; anything else is refused before it is compiled."""

from __future__ import annotations

import ast

_IMPORTS = {"import math", "import numpy as np", "from autograd_nb.codegen import iterative"}
_RUNTIME = {"advance", "entry", "pack", "position", "radd", "rmul", "row", "scratch", "start", "steps", "turn"}
_BUILTINS = {"range", "min", "max", "abs", "float", "int", "bool", "len", "round"}
_NUMPY = {
    "array", "empty", "zeros", "inf", "nan", "iinfo", "finfo", "intp", "uintp", "bool_", "sqrt", "floor", "ceil", "trunc", "rint",
    "copysign", "isnan", "abs", "fmod", *(f"{k}{n}" for k in ("int", "uint") for n in (8, 16, 32, 64)), "float32", "float64",
    "complex64", "complex128", "exp", "log", "sin", "cos", "power", "conj", "real", "imag",
}  # fmt: skip
_METHODS = {"size", "view", "type", "dtype", "real", "imag", "min", "max", "conjugate"}
_NODES = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Assign, ast.AugAssign, ast.For, ast.While, ast.If, ast.IfExp, ast.Return,
    ast.Expr, ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Subscript, ast.Slice, ast.Tuple, ast.List,
    ast.Call, ast.Attribute, ast.keyword, ast.Load, ast.Store, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.Pass, ast.Break,
    ast.Continue,
)  # fmt: skip


class SourceError(ValueError):
    """A text that is not a generated kernel."""


def check_source(text: str) -> None:
    """SourceError unless ``text`` uses only what generated kernels use."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise SourceError(f"not a kernel: {error}") from None
    defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    imported: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            line = ast.unparse(statement)
            runtime = isinstance(statement, ast.ImportFrom) and statement.module == "autograd_nb.codegen.runtime"
            if line not in _IMPORTS and not (runtime and all(a.name in _RUNTIME and a.asname is None for a in statement.names)):
                raise SourceError(f"not a kernel: {line}")
            imported |= {a.name for a in statement.names}
        elif not isinstance(statement, (ast.FunctionDef, ast.Assign)):
            raise SourceError(f"not a kernel: {ast.unparse(statement)[:80]}")
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            continue
        for node in ast.walk(statement):
            _check(node, defined, imported)


def _check(node: ast.AST, defined: set[str], imported: set[str]) -> None:
    if not isinstance(node, _NODES):
        raise SourceError(f"not a kernel: {type(node).__name__}")
    if isinstance(node, ast.FunctionDef) and (node.decorator_list or node.args.defaults or node.args.kw_defaults):
        raise SourceError("not a kernel: decorators or defaults")
    if isinstance(node, ast.Name) and node.id.startswith("__"):
        raise SourceError(f"not a kernel: {node.id}")
    if isinstance(node, ast.Constant) and not isinstance(node.value, (int, float, bool, complex, type(None))):
        raise SourceError(f"not a kernel: {node.value!r}")
    if isinstance(node, ast.Attribute):
        module = node.value.id if isinstance(node.value, ast.Name) else ""
        allowed = _NUMPY if module == "np" else None if module in ("math", "iterative") else _METHODS
        if node.attr.startswith("_") or (allowed is not None and node.attr not in allowed):
            raise SourceError(f"not a kernel: {ast.unparse(node)}")
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id not in _BUILTINS | (_RUNTIME & imported) | defined
    ):
        raise SourceError(f"not a kernel: {node.func.id}()")
