"""The stub of the table's modules, for type checkers and editors: ``make stubs`` writes ``names.pyi``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from .more import MODULES
from .table import Answer, At, NoClass, Refuses, Returns, Says, Sets, Value

FILE = Path(__file__).parent / "names.pyi"

HEAD = '''"""The modules of `table`, as classes that hold their names. Written by `make stubs`: change the table, not this file."""

from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any, NoReturn
'''


_GENERIC: dict[type, str] = {list: "list[Any]", dict: "dict[str, Any]", tuple: "tuple[Any, ...]"}


def _own(where: str) -> str:
    """Return what the stub calls a thing of ours: no class has such a name, as `jit._fork`, which would hide it there."""
    return f"_{where.rpartition(':')[2]}_"


def _stub(name: str, answer: Answer) -> str:
    function = f"@staticmethod\ndef {name}(*args: Any, **kwargs: Any) -> "
    match answer:
        case At(where):
            module, _, own = where.partition(":")
            here = _own(where)
            # (what is called among stubs in a circle has no type that checkers can tell)
            static = inspect.isfunction(getattr(import_module(f"autograd_nb.{module}"), own)) and module != "nn.functional"
            return f"{name} = staticmethod({here})" if static else f"{name} = {here}"
        case NoClass():
            return f"class {name}: ..."
        case Says(value):
            return f"{function}{'None' if value is None else _GENERIC.get(type(value), type(value).__name__)}: ..."
        case Refuses():
            return function + "NoReturn: ..."
        case Returns():
            return function + "Any: ..."
        case Sets():
            return function + "AbstractContextManager[None]: ..."
        case Value(value):
            return f"{name}: {type(value).__name__ if isinstance(value, (bool, int, str)) or type(value).__name__ == 'SimpleNamespace' else 'Any'}"
    raise TypeError(f"no answer: {answer!r}")


def _module(name: str, indent: str = "") -> Iterator[str]:
    absent = MODULES[name]
    yield f"{indent}class {name.rpartition('.')[2]}:"
    yield f'{indent}    """{absent.doc}"""'
    for child in absent.submodules:
        yield from _module(f"{name}.{child}", indent + "    ")
    for own, answer in absent.names.items():
        yield "\n".join(f"{indent}    {line}" for line in _stub(own, answer).split("\n"))


def text() -> str:
    """Return the stub as the table gives it."""
    places = {a.where for absent in MODULES.values() for a in absent.names.values() if isinstance(a, At)}
    imports = [f"from autograd_nb.{place} import {w.partition(':')[2]} as {_own(w)}" for place, w in ((w.partition(":")[0], w) for w in sorted(places))]
    tops = ["\n".join(_module(name)) for name in MODULES if "." not in name]
    return HEAD + "\n".join(imports) + "\n\n" + "\n\n".join(tops) + "\n"


def outdated() -> bool:
    """Return whether the stub on disk is another than the table gives now."""
    return not FILE.exists() or FILE.read_text(encoding="utf-8") != text()


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
