"""The examples in the pages under docs/ run, and print what the pages say."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: what is not put elsewhere as it is
FOLDERS = sorted({path.parent for path in (ROOT / "autograd_nb").rglob("*.py")} - {ROOT / f"autograd_nb/compat/shim/{name}" for name in ("torch", "functorch")})
#: the sources of the site; what it generates is left out
PAGES = sorted(path for path in DOCS.rglob("*.md") if "generated" not in path.parts)
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


#: the rooms whose READMEs name every file; families of ops and modules are found by their names
MACHINERY = ("autograd", "codegen", "compiler", "graph", "ops/core")


@pytest.mark.parametrize("room", MACHINERY)
def test_readmes_of_the_machinery_name_every_file(room):
    missing = [
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        if folder.relative_to(ROOT / "autograd_nb").as_posix().startswith(room) and folder.name != "vecmath"
        for path in folder.glob("*.py")
        if not path.name.startswith("__") and f"`{path.name}`" not in (folder / "README.md").read_text(encoding="utf-8")
    ]
    assert missing == []


def test_the_first_program_prints_what_the_readme_shows():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    program, shown = re.search(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", text, re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "README.md", "exec"), {})
    assert printed.getvalue() == textwrap.dedent(shown)


def test_the_readme_is_one_screen_and_its_figures_are_those_of_the_benchmarks():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 45
    measured = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    models = measured[measured.index("## Models") : measured.index("## Overhead")]
    ratios = {row[1].strip(): row[4].strip() for row in (line.split("|") for line in models.splitlines() if line.count("|") > 5)}
    shown = re.findall(r"^\| (\S.*?) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert len(shown) > 4
    assert [(case, ratios[case], ratios[f"{case}, compiled"]) for case, _, _ in shown] == shown
    assert re.search(r"Machine: (\w+ \w+)", measured)[1] in text
    assert [link for link in re.findall(r"""(?:\]\(|src=")(?!http)([^)"#]+)[)"]""", text) if not (ROOT / link).exists()] == []


def test_commands_and_files_that_the_pages_name_are_there():
    pages = {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]}
    modules = {m.replace(".", "/") for text in pages.values() for m in re.findall(r"python -m ((?:bench|tests|autograd_nb)[\w.]*\w)", text)}
    assert len(modules) > 10
    assert [m for m in sorted(modules) if not (ROOT / f"{m}.py").exists() and not (ROOT / m / "__main__.py").exists()] == []
    files = {f for text in pages.values() for f in re.findall(r"`((?:tests|bench|codegen|kernels|ops|compiler|graph|nn|autograd)/[\w/]+\.py)`", text)}
    assert len(files) > 20
    assert [f for f in sorted(files) if not (ROOT / f).exists() and not (ROOT / "autograd_nb" / f).exists()] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {t for text in pages.values() for t in re.findall(r"`make ([a-z-]+)[` ]", text)}
    assert len(named) > 5 and named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_and_cells_of_a_page(page):
    """Links lead to files that are there, and the cells of a tutorial are Python. `make docs` runs them, and checks headings too."""
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        path = target.partition("#")[0]
        if not path or "://" in path or path.removeprefix("/").startswith(("inv:", "generated/reference/")):  # written by `make docs`
            continue
        if path.startswith("/generated/examples/"):
            assert (ROOT / "examples" / Path(path).with_suffix(".py").name).exists(), target
        else:
            assert (DOCS / path[1:] if path.startswith("/") else page.parent / path).exists(), target
    for listed in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        names = [line for line in listed.split() if not line.startswith((":", "generated/")) and not line.isdigit()]
        assert names, "a list without pages"
        assert [name for name in names if not (page.parent / f"{name}.md").exists()] == []
    cells = re.findall(r"^```\{code-cell\} python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert text.startswith("---\nfile_format: mystnb\n") == bool(cells)
    for cell in cells:
        compile(cell, str(page), "exec", flags=ast.PyCF_ONLY_AST)


def test_every_page_is_in_a_list_of_pages():
    listed = {
        (page.parent / line).resolve().with_suffix(".md")
        for page in PAGES
        for found in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        for line in found.split()
        if not line.startswith(":")
    }
    assert [page for page in PAGES if page.resolve() not in listed and page.name not in ("index.md", "README.md")] == []


def test_the_glossary_has_each_word_once_and_the_code_uses_it():
    """About forty words, sorted; each occurs in the package. A word for two things has the thing in brackets."""
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| (?!word|---)([^|]+?) \|", text, re.MULTILINE)
    assert words == sorted(words, key=str.lower) and len(words) == len(set(words)) and 35 <= len(words) <= 48
    package = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "autograd_nb").rglob("*.py")).lower()
    stems = {word: re.sub(r" \(.*\)", "", word).lower().replace(" ", "[ _]") for word in words}
    unused = [word for word, stem in stems.items() if not re.search(rf"(\b|_){stem}", package)]
    assert unused == []


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
