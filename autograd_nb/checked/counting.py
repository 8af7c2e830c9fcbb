"""Loops that are counted: the same function, which ends with an IndexError where a damaged number would let it go on and on.

What a kernel may do is measured by its arrays (`codegen.work`). Before each loop stands what it will take, in a ``while`` each step is
counted, and so are the elements of each buffer that is asked for.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import textwrap
import types
from collections.abc import Sequence

#: steps of a loop that are written in the text, and so need not be counted
_WRITTEN = 1 << 16
_BUFFERS = ("np.empty", "np.zeros")


class Loops(ast.NodeTransformer):
    """The loops, buffers and products of BLAS in a function, each with its count."""

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        self.generic_visit(node)
        return [*_counts(node.iter), node]

    def visit_While(self, node: ast.While) -> ast.stmt:
        self.generic_visit(node)
        node.body[:0] = _statements("_spent(0, 0, 1)")
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if ast.unparse(node.func) in _BUFFERS:
            shape = node.args[0]
            first, *others = shape.elts if isinstance(shape, ast.Tuple) else [shape]
            product = " * ".join(["1.0", *(f"np.float64({ast.unparse(n)})" for n in others)])
            first = _expression(f"_taken({ast.unparse(first)}, {product})")
            node.args[0] = ast.Tuple([first, *others], ast.Load()) if isinstance(shape, ast.Tuple) else first
        elif ast.unparse(node.func) == "_xxgemm":
            m, n, k = node.args[3:6]
            node.args[3] = _expression(f"_taken({ast.unparse(m)}, np.float64({ast.unparse(n)}) * np.float64({ast.unparse(k)}) / 64.0)")
        return node


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _statements(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def _counts(walked: ast.expr) -> list[ast.stmt]:
    """The statements that count a loop over ``walked``."""
    if isinstance(walked, ast.Tuple):
        return []
    if isinstance(walked, ast.IfExp):
        return [ast.If(walked.test, _counts(walked.body) or [ast.Pass()], _counts(walked.orelse))]
    if not isinstance(walked, ast.Call) or ast.unparse(walked.func) != "range":
        raise NotImplementedError(f"a kernel walks {ast.unparse(walked)}, of which nobody knows how long it is")
    given = walked.args
    if all(isinstance(a, ast.Constant) for a in given) and len(range(*(a.value for a in given))) <= _WRITTEN:  # type: ignore[attr-defined]
        return []
    begin, end, step = ["0", *map(ast.unparse, given), "1"][len(given) > 1 :][:3]
    return _statements(f"_spent({begin}, {end}, {step})")


def counted(function: types.FunctionType, argtypes: Sequence[str] | None = None) -> types.FunctionType:
    """``function`` with its loops counted; where ``argtypes`` are given it is a kernel, whose count begins anew in each call."""
    from .codegen import work

    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    before = ast.dump(definition)
    Loops().visit(definition)
    if argtypes is not None:
        definition.body[:0] = beginning(definition, argtypes)
    elif ast.dump(definition) == before:
        return function
    ast.increment_lineno(definition, function.__code__.co_firstlineno - 1)
    function.__globals__.update(_spent=work.spent, _room=work.room, _taken=work.taken)
    return _remade(function, definition)


def beginning(definition: ast.FunctionDef, argtypes: Sequence[str]) -> list[ast.stmt]:
    """What a kernel begins with: its count, by the sizes of its arrays."""
    arrays = [a.arg for a, kind in zip(definition.args.args, argtypes, strict=True) if kind.endswith("[:]")]
    return _statements(f"_room({' + '.join(['0', *(f'{a}.size' for a in arrays)])})")


def _remade(function: types.FunctionType, definition: ast.FunctionDef) -> types.FunctionType:
    """The function that the changed text of one defines."""
    code = function.__code__
    tree = ast.Module([definition], [])
    if code.co_freevars:  # names of a function around it
        arguments = ast.arguments([], [ast.arg(n) for n in code.co_freevars], None, [], [], None, [])
        tree.body = [ast.FunctionDef("around", arguments, [definition], [])]
        if "type_params" in ast.FunctionDef._fields:
            tree.body[0].type_params = []  # type: ignore[attr-defined]
    flags = code.co_flags & __future__.annotations.compiler_flag
    found: types.CodeType = compile(ast.fix_missing_locations(tree), code.co_filename, "exec", flags, dont_inherit=True)
    while found.co_name != code.co_name:
        found = next(c for c in found.co_consts if isinstance(c, types.CodeType))
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    made = types.FunctionType(found, function.__globals__, function.__name__, function.__defaults__, tuple(cells[n] for n in found.co_freevars))
    made.__kwdefaults__, made.__doc__, made.__module__ = function.__kwdefaults__, function.__doc__, function.__module__
    made.__qualname__ = function.__qualname__
    return made
