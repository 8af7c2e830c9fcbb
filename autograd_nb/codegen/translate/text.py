"""The syntax tree of a function."""

from __future__ import annotations

import ast
import functools
import linecache
import types as pytypes
from collections.abc import Iterator


class Untranslatable(Exception):
    """The text says something that only Numba's own front end knows."""


def tree_of(function: pytypes.FunctionType) -> ast.FunctionDef:
    """Return the syntax tree of a function; `Untranslatable` where its text is not at hand, or is not what was compiled."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename)
    trees = _trees(code.co_filename, "".join(lines))
    found = trees.get(_bare(code))
    if found is None:
        raise Untranslatable("its text")
    return found


@functools.lru_cache(256)
def _trees(filename: str, text: str) -> dict[pytypes.CodeType, ast.FunctionDef]:
    """Return every function of a text by its code: a file may have changed since it was imported."""
    try:
        tree = ast.parse(text)
        codes = {c.co_firstlineno: _bare(c) for c in _codes(compile(tree, filename, "exec", dont_inherit=True))}
    except (SyntaxError, ValueError):
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            line = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if line in codes:
                found[codes[line]] = node
    return found


def _bare(code: pytypes.CodeType) -> pytypes.CodeType:
    """Return the code of a function without what the text around it decides: whether annotations are evaluated."""
    return code.replace(co_flags=0)


def _codes(code: pytypes.CodeType) -> Iterator[pytypes.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, pytypes.CodeType):
            yield constant
            yield from _codes(constant)


def names_of(function: pytypes.FunctionType) -> dict[str, object]:
    """Return what the free names of a function stand for."""
    found = dict(zip(function.__code__.co_freevars, (c.cell_contents for c in function.__closure__ or ()), strict=True))
    return {**function.__globals__, **found}
