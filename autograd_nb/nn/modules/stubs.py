"""The stub of module classes that are declared, not written out: ``make stubs`` writes ``declared.pyi`` for checkers and editors."""

from __future__ import annotations

import inspect
from pathlib import Path

from ...ops.signatures.parameters import TYPES
from . import activation, lazy
from .module import Module

FILE = Path(__file__).parent / "declared.pyi"

HEAD = '''"""Modules that `simple.declare` and `lazy` make. Written by `make stubs`: change their declarations, not this file."""

from typing import Any

from ...tensor import Tensor
from . import conv, normalization
from .module import Module
'''

_PLAIN = {"_int": "int", "_float": "float", "_str": "str", "_bool": "bool"}


def _parameter(p: inspect.Parameter) -> str:
    if p.annotation is not inspect.Parameter.empty:
        text = p.annotation
    elif isinstance(p.default, (bool, int, float, str)):
        text = type(p.default).__name__
    else:
        text = _PLAIN.get(TYPES.get(p.name, ""), "float")
        text += " | None" if p.default is None else ""
    return f"{p.name}: {text}" + ("" if p.default is inspect.Parameter.empty else f" = {p.default!r}")


def _class(name: str, cls: type, base: str) -> str:
    parameters = [_parameter(p) for p in inspect.signature(cls).parameters.values()]
    own = [f"    {text.partition(' = ')[0]}\n" for text in parameters] if base == "Module" else []
    return (
        f'class {name}({base}):\n    """{(cls.__doc__ or "").partition(chr(10))[0]}"""\n\n{"".join(own)}'
        f"    def __init__({', '.join(['self', *parameters])}) -> None: ...\n"
        + ("    def forward(self, input: Tensor) -> Tensor: ...\n" if base == "Module" else "")
    )


def text() -> str:
    """Return the stub as the declarations give it."""
    declared = {
        name: cls for name, cls in vars(activation).items()
        if isinstance(cls, type) and issubclass(cls, Module) and hasattr(cls.__init__, "__signature__")
    }  # fmt: skip
    made = {
        name: cls for name, cls in vars(lazy).items()
        if name.startswith("Lazy") and name != "LazyLinear" and isinstance(cls, type) and issubclass(cls, Module) and vars(cls).get("cls_to_become")
    }  # fmt: skip
    classes = [_class(name, cls, "Module") for name, cls in declared.items()]
    for name, cls in made.items():
        kind = vars(cls)["cls_to_become"]
        classes.append(_class(name, cls, f"{'conv' if 'Conv' in name else 'normalization'}.{kind.__name__}"))
    return HEAD + "\n\n" + "\n\n".join(classes)


def outdated() -> bool:
    """Return whether the stub on disk is another than the declarations give now."""
    return not FILE.exists() or FILE.read_text(encoding="utf-8") != text()


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
