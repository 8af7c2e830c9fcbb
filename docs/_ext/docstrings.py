"""Turn a docstring of this library into reStructuredText.

Docstrings here are plain sentences with examples, and are not written in a markup language. What is marked: ``code``, `names`,
a program after ``>>>``, lists with "- ", and paragraphs that begin with Args, Errors, Shapes, Example or Source.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Resolve = Callable[[str], str | None]

_TOKENS = re.compile(r"``(?P<code>[^`]+(?:`[^`]+)*)``|`(?P<name>[^`\n]+)`|(?P<url>https?://[^\s)>]+)")
_LABEL = re.compile(r"(Errors|Shapes?|Args|Arguments|Attributes|Returns?|Note|Notes|Dtypes|Derivatives?|Gradients?|Options|Raises):(?:\s+|$)")
_SOURCE = re.compile(r"\s*\bSource: (https?://\S+)")


def escaped(text: str) -> str:
    """Return plain text with what is markup in reStructuredText escaped."""
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def inline(text: str, resolve: Resolve) -> str:
    """Return one paragraph: code as code, names that have an entry as links, the rest as it is."""
    parts, at = [], 0
    for found in _TOKENS.finditer(text):
        parts.append(escaped(text[at : found.start()]))
        at = found.end()
        if found["url"]:
            url = found["url"].rstrip(".,;")
            parts.append(f"`{url} <{url}>`__" + found["url"][len(url) :])
            continue
        word = (found["code"] or found["name"]).strip()
        target = resolve(word) if found["name"] else None
        markup = f":py:obj:`{word} <{target}>`" if target else f"``{word}``"
        before, after = text[found.start() - 1 : found.start()], text[at : at + 1]
        parts.append(("" if not before or before.isspace() or before in "([{-/'\"" else "\\ ") + markup)
        parts.append("" if not after or not (after.isalnum() or after in "_·") else "\\ ")
    return "".join(parts) + escaped(text[at:])


def _program(lines: list[str]) -> list[str]:
    depth = len(lines[0]) - len(lines[0].lstrip())
    return ["", ".. code-block:: pycon", "", *(f"   {line[depth:]}".rstrip() for line in lines), ""]


def _items(lines: list[str], resolve: Resolve) -> list[str]:
    """Return ``name: what it is`` lines, and those that are more indented, as a definition list."""
    depth = min(len(line) - len(line.lstrip()) for line in lines)
    out: list[str] = []
    texts: list[str] = []
    for line in lines:
        if len(line) - len(line.lstrip()) == depth or not texts:
            texts.append(line.strip())
        else:
            texts[-1] += " " + line.strip()
    for text in texts:
        name, colon, what = text.partition(": ")
        if colon and re.fullmatch(r"[\w*., ]+", name):
            out += [f"- **{escaped(name)}**: {inline(what, resolve)}"]
        else:
            out += [f"- {inline(text.removeprefix('- '), resolve)}"]
    return ["", *out, ""]


def _paragraph(lines: list[str], resolve: Resolve) -> list[str]:
    """Return lines without a blank between them: a label with its items, a list, or a paragraph."""
    first = lines[0].strip()
    if first in ("Example:", "Examples:"):
        return _paragraph(lines[1:], resolve) if lines[1:] else []
    if first.endswith(":") and lines[1:] and re.fullmatch(r"[A-Z][\w ]*:", first):
        return ["", f"**{first[:-1]}**", *_items(lines[1:], resolve)]
    bullets = [k for k, line in enumerate(lines) if line.strip().startswith(("- ", "* "))]
    if bullets:
        before = _paragraph(lines[: bullets[0]], resolve) if bullets[0] else []
        return [*before, *_items([re.sub(r"^(\s*)\* ", r"\1- ", line) for line in lines[bullets[0] :]], resolve)]
    text = " ".join(line.strip() for line in lines)
    out = []
    # "Errors: …" stands out wherever a sentence begins with it
    for part in re.split(r"(?<=[.;)]) (?=(?:Errors|Shapes?|Derivatives?|Dtypes): )", text):
        label = _LABEL.match(part)
        out.append(f"**{label[1]}:** {inline(part[label.end() :], resolve)}" if label else inline(part, resolve))
        out.append("")
    return ["", *out]


def rst(text: str, resolve: Resolve) -> list[str]:
    """Return the docstring as lines of reStructuredText."""
    source = _SOURCE.search(text)
    text = _SOURCE.sub("", text)
    out: list[str] = []
    block: list[str] = []
    program = False
    for line in [*text.split("\n"), ""]:
        prompt = line.lstrip().startswith(">>>")
        if block and (not line.strip() or (prompt and not program)):
            out += _program(block) if program else _paragraph(block, resolve)
            block = []
        program = prompt if not block else program
        if line.strip():
            block.append(line.rstrip())
    if source:
        out += ["", f"The same in PyTorch: `{source[1].rsplit('/', 1)[-1].removesuffix('.html')} <{source[1]}>`__.", ""]
    return out
