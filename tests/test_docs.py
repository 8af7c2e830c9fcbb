"""The examples in the pages under docs/ run, and print what the pages say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


@pytest.mark.parametrize("name", ["tour.md", "user_ops.md", "compile.md"])
def test_page(name):
    found = doctest.testfile(str(DOCS / name), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert found.attempted > 10
    assert not found.failed
