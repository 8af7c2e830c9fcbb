"""What a function's code reads beside its arguments, told by its instructions."""

from __future__ import annotations

import dis
import importlib.util
import types
from collections.abc import Iterator

#: builtins through which code reads or sets names that its instructions do not tell
BLIND = frozenset({"__import__", "eval", "exec", "globals"})


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield code, and that of the functions and classes defined in it."""
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from codes(c)


def attributes(code: types.CodeType) -> set[str]:
    """Return the names of globals, modules and attributes in it."""
    return {name for c in codes(code) for name in c.co_names}


def globals_of(code: types.CodeType) -> set[str]:
    """Return the globals that it reads or sets; `co_names` has attributes too, of which some global may have the name by chance."""
    wanted = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")
    return {i.argval for c in codes(code) for i in dis.get_instructions(c) if i.opname in wanted}


def imports(code: types.CodeType, package: str) -> set[str]:
    """Return the modules that it imports when it runs."""
    found: set[str] = set()
    for c in codes(code):
        instructions = list(dis.get_instructions(c))
        for level, i in zip(instructions, instructions[2:], strict=False):
            if i.opname == "IMPORT_NAME":
                found.add(importlib.util.resolve_name("." * level.argval + i.argval, package) if level.argval else i.argval)
    return found


def tells_apart(code: types.CodeType) -> bool:
    """Return whether it asks if two objects are the same one, other than a constant."""
    if "id" in globals_of(code):
        return True
    for c in codes(code):
        before = ""
        for i in dis.get_instructions(c):
            if i.opname == "IS_OP" and before != "LOAD_CONST":
                return True
            before = i.opname
    return False
