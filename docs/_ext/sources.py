"""Make pages of what lies beside `docs/`: the project's own pages and the examples.

They are copied into `docs/generated/project/` with their links turned, so that README.md, SECURITY.md and their like read right in
the repository and on the site alike. Links out of `docs/` lead to the copies.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: file beside docs/ -> its page
PAGES = {"CONTRIBUTING.md": "contributing", "SECURITY.md": "security", "CHANGELOG.md": "changelog"}


def write(path: Path, text: str) -> None:
    """Write a generated page, unless it is as it was: Sphinx reads again what is newer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def turned(text: str) -> str:
    """Return a page's text with the links that lead out of `docs/` leading to pages of the site."""
    for name, page in PAGES.items():
        text = re.sub(rf"\]\((?:\.\./)*{re.escape(name)}(#[\w-]+)?\)", rf"](/generated/project/{page}.md\1)", text)
    text = re.sub(r"\]\((?:\.\./)*README\.md\)", "](/index.md)", text)
    text = re.sub(r"\]\((?:\.\./)*LICENSE\)", "](https://www.apache.org/licenses/LICENSE-2.0)", text)
    return re.sub(r"\]\((?:\.\./)*examples/(\w+)\.py\)", r"](/generated/examples/\1.rst)", text)


def project_pages(out: Path) -> None:
    """Write the pages of the files beside `docs/`, whose links to `docs/…` start at the root of the site."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        write(out / "project" / f"{page}.md", turned(re.sub(r"\]\(docs/", "](/", text)))


def example_pages(out: Path) -> None:
    """Write a page for each program in `examples/`: what its docstring says, and its text."""
    names = []
    for path in sorted((ROOT / "examples").glob("*.py")):
        names.append(path.stem)
        said = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0].replace("`", "``").replace("````", "``")
        title = f"{path.name}\n{'=' * len(path.name)}"
        text = f"{title}\n\n{said}\n\n.. literalinclude:: ../../../examples/{path.name}\n   :language: python\n"
        write(out / "examples" / f"{path.stem}.rst", text)
    toc = "\n".join(f"   {name}" for name in names)
    intro = "Whole programs, each done in under a minute. Copy one and change it."
    write(out / "examples" / "index.rst", f"Examples\n========\n\n{intro}\n\n.. toctree::\n   :maxdepth: 1\n\n{toc}\n")


def begin(app: Any) -> None:
    """Write all generated pages before Sphinx looks for sources."""
    out = Path(app.srcdir) / "generated"
    project_pages(out)
    example_pages(out)


def read(app: Any, docname: str, content: list[str]) -> None:
    """Turn the links of a page while it is read."""
    if not docname.startswith("generated/"):
        content[0] = turned(content[0])


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", begin)
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
