"""What goes with a release says the same as pyproject.toml: version, Pythons, dependencies, licence."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, BUILD = WHOLE["project"], WHOLE["build-system"]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_is_of_this_version():
    fields = dict(re.findall(r"^([\w-]+): (.*)$", text("CITATION.cff"), re.MULTILINE))
    assert fields["version"] == PROJECT["version"]
    assert fields["license"] == PROJECT["license"]
    assert fields["cff-version"] == "1.2.0"
    assert {"message", "title", "abstract"} <= fields.keys()
    assert re.search(r"^authors:\n  - name: \S", text("CITATION.cff"), re.MULTILINE)


def test_requirements_of_packages_are_pinned_and_nothing_else_stands_among_them():
    lines = text("tests/packages/requirements.txt").splitlines()
    found = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in found if not re.fullmatch(r"[A-Za-z0-9][\w.-]*(\[[\w,-]+\])?==\d[\w.+!]*( *#.*)?", line)] == []
    assert len({re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in found}) == len(found)


RECIPE = "packaging/conda/recipe.yaml"


def test_the_conda_recipe_asks_for_the_same():
    recipe = text(RECIPE)
    assert re.search(r'version: "(.*)"', recipe)[1] == PROJECT["version"]
    for part, asked in (("host", [*BUILD["requires"], "pip"]), ("run", PROJECT["dependencies"])):
        lines = re.search(rf"\n  {part}:\n((?:    - .*\n)+)", recipe)[1]
        found = {line.removeprefix("    - ").replace(" ", "") for line in lines.splitlines()}
        assert found == {*asked, "python" + PROJECT["requires-python"]}
    assert re.search(r"summary: (.*)", recipe)[1] == PROJECT["description"]


def test_the_conda_recipe_can_be_read_by_what_builds_it():
    """Only where the package py-rattler-build is installed."""
    rattler_build = pytest.importorskip("rattler_build")
    stage = rattler_build.Stage0Recipe.from_file(str(ROOT / RECIPE))
    (variant,) = stage.render(rattler_build.VariantConfig(), rattler_build.RenderConfig())
    made = variant.recipe.to_dict()
    assert made["package"] == {"name": PROJECT["name"], "version": PROJECT["version"]}
    assert made["build"]["noarch"] == "python" and len(made["tests"]) == 2


def test_the_image_is_made_of_a_python_that_we_support_and_copies_no_leftovers():
    python = re.search(r"^ARG PYTHON=(.*)$", text("packaging/Dockerfile"), re.MULTILINE)[1]
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
    left_out = set(text(".dockerignore").split())
    assert {".git", ".venv", "out", "build", "dist"} <= left_out
    assert not {"autograd_nb", "pyproject.toml", "README.md", "LICENSE", "hatch_build.py"} & left_out


@pytest.mark.parametrize("option", ["--usual", "--level"])
def test_the_image_names_options_that_the_command_has(option):
    assert option in text("packaging/Dockerfile")
    assert f'"{option}"' in "".join(path.read_text(encoding="utf-8") for path in (ROOT / "autograd_nb" / "cache").rglob("*.py"))


def test_the_changelog_has_a_place_for_what_is_not_released_and_each_kind_of_change_once():
    first, *versions = re.split(r"^## ", text("CHANGELOG.md"), flags=re.MULTILINE)[1:]
    assert first.startswith("[Unreleased]\n")
    for each in (first, *versions):
        kinds = re.findall(r"^### (.*)$", each, flags=re.MULTILINE)
        assert len(kinds) == len(set(kinds)), each[:20]


def test_the_package_says_its_version():
    assert f'\n__version__ = "{PROJECT["version"]}"\n' in text("autograd_nb/__init__.py")


def test_the_version_has_its_part_in_the_changelog_with_the_date_that_is_cited():
    dates = dict(re.findall(r"^## \[([\d.]+)\] - (\d{4}-\d\d-\d\d)$", text("CHANGELOG.md"), flags=re.MULTILINE))
    assert dates[PROJECT["version"]] == re.search(r"^date-released: (\S+)$", text("CITATION.cff"), re.MULTILINE)[1]
