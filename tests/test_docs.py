"""The examples in the pages under docs/ run, and print what the pages say."""

from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FOLDERS = sorted({path.parent for path in (ROOT / "autograd_nb").rglob("*.py")})
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


@pytest.mark.parametrize("name", ["tour.md", "user_ops.md", "compile.md"])
def test_page(name):
    found = doctest.testfile(str(DOCS / name), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert found.attempted > 10
    assert not found.failed


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_folder_has_a_readme(folder):
    """A README of about ten lines in each folder, that names no file which is gone."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert 3 <= len(text.splitlines()) <= 30
    for name in re.findall(r"`([\w/.]+(?:\.pyi?|\.md|/))`", text):
        if not any((above / name).exists() for above in (folder, folder.parent, ROOT / "autograd_nb", ROOT)):
            assert any(folder.rglob(name)), f"{folder.name}/README.md names {name}, which is not there"


ROOMS = ("func", "autograd", "optim", "nn", "utils", "serialization", "distributions")


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_of_public_functions_say_something(room):
    """The first paragraph has four words at least, and ends as a sentence does (one in parentheses may end it)."""
    short = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {first}"
        for path in (ROOT / "autograd_nb" / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        for first in [(ast.get_docstring(node) or "").split("\n\n")[0].strip()]
        if first and (len(first.split()) < 4 or not first.endswith((".", ":", ".)")))
    ]
    assert short == []
