"""Write the API reference: a page for each family of ops and for each namespace, an entry for each public name.

An entry has the signature from the stubs, the docstring (formula, derivative, shapes, errors), its example, which the tests run, the other
spellings, and for ops the declaration itself.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import answers
import docstrings
import observe
import walk
from sources import write
from sphinx.util.inspect import stringify_signature

from autograd_nb.ops.core.registry import DTYPES, OPS

#: folder of ops -> what its pages are called, in the order of the reference
FAMILIES = {
    "creation": "Making tensors", "elementwise": "Element by element", "shape": "Shapes and views", "indexing": "Indexing, gathering, sorting",
    "reduce": "Reductions and scans", "products": "Products", "linalg": "Linear algebra", "nn": "Layers and losses", "random": "Random numbers",
    "signal": "Fourier transforms and signals",
}  # fmt: skip
#: stub -> the namespace that it types
STUBS = {"torch": "autograd_nb", "functional": "autograd_nb.nn.functional", "linalg": "autograd_nb.linalg", "fft": "autograd_nb.fft",
         "special": "autograd_nb.special", "windows": "autograd_nb.signal.windows"}  # fmt: skip
#: words of `OpInfo.dtypes` as a reader says them
KINDS = {"half": "float16, bfloat16", "float": "float32, float64", "complex": "complex", "integer": "integers", "bool": "booleans"}


@cache
def typed() -> dict[str, list[str]]:
    """Return the signatures that the stubs give: full name -> one for each overload."""
    found: dict[str, list[str]] = defaultdict(list)
    for stub, space in STUBS.items():
        path = walk.PACKAGE / "ops" / "signatures" / f"{stub}.pyi"
        for node in ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else ():
            if isinstance(node, ast.FunctionDef):
                result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                text = f"({ast.unparse(node.args)}){result}"
                text = re.sub(r"\b_(bool|int|float|complex|str|size|dtype|device|layout|memory_format|return_types)\b", r"\1", text)
                found[f"{space}.{node.name}"].append(text)
    return found


def signatures(entry: walk.Entry) -> list[str]:
    """Return the signatures of an entry, of the stubs where they have them, else of the function itself."""
    if entry.name in typed():
        return typed()[entry.name]
    try:
        text = stringify_signature(inspect.signature(entry.thing), show_annotation=not isinstance(entry.thing, type))
    except (TypeError, ValueError):
        text = "()"
    return [re.sub(r"<[^<>]*(?:<[^<>]*>)?[^<>]*>", "...", text)]


def _indented(lines: list[str], depth: int = 3) -> list[str]:
    return [" " * depth + line if line else "" for line in lines]


def observed(name: str) -> str:
    """Return what the example of an op shows beside its numbers: shapes, and what a backward pass goes through; "" where it shows nothing."""
    seen = observe.written().get(name)
    if seen is None or "none" in seen:
        return ""
    given, results = (f"{', '.join(s[:4])}{', …' if len(s) > 4 else ''}" for s in seen["shapes"])
    text = f"{'shapes' if len(seen['shapes'][0]) > 1 else 'shape'} {given} → {results}"
    nodes = seen.get("nodes")
    if seen.get("same"):
        return f"{text}; the result is the operand itself"
    if nodes is None:
        return text
    if not nodes:
        return f"{text}; nothing is recorded for a backward pass"
    listed = ", ".join(f"``{node}``" for node in nodes[:6]) + (", …" if len(nodes) > 6 else "")
    return f"{text}; a backward pass goes through {listed}"


def _facts(entry: walk.Entry) -> list[str]:
    """Return what the table of ops knows of one: its spellings, numbers, gradient; and what was observed in its example."""
    short = [name.removeprefix("autograd_nb.") for name in entry.also]
    out = []
    if short:
        spelled = ", ".join(f"``x.{name[7:]}``" if name.startswith("Tensor.") else f"``torch.{name}``" for name in dict.fromkeys(short))
        out.append(f":Also spelled: {spelled}")
    if entry.op:
        op = OPS[entry.op]
        if op.dtypes != DTYPES:  # all kinds are said of those, too, of which nobody has said what they take
            out.append(f":Numbers: {', '.join(KINDS.get(kind, kind) for kind in op.dtypes.split())}")
        if (shapes := answers.rules(entry.op).get("Shapes")) and not re.search(r"\bShapes?:", entry.text):
            out.append(f":Shapes: {shapes}")
        if not op.differentiable:
            out.append(":Gradient: none")
        elif said := answers.derivative(entry):
            out.append(f":Derivative: {said}")
        if shown := observed(entry.op):
            out.append(f":In the example: {shown}")
    out += [f":{fact}: {text}" for fact, text in answers.errors(entry).items()]
    return ["", *out, ""] if out else []


def _declaration(entry: walk.Entry) -> list[str]:
    """Return the text that declares an op, folded away."""
    if not entry.op:
        return []
    short = entry.op.rsplit(".", 1)[-1]
    if short != entry.op and short in OPS:
        return []  # the declaration of that name is another op's
    path, text = walk.declarations().get(short, (None, ""))
    if path is None or not text.startswith("@") or len(text.splitlines()) > 40:
        return []
    text = re.sub(r'\n    (?:r?)""".*?"""', "", text, count=1, flags=re.DOTALL)
    where = path.relative_to(walk.PACKAGE.parent).as_posix()
    return [
        "", ".. raw:: html", "", f'   <details class="declaration"><summary>How it is declared, in <code>{where}</code></summary>', "",
        ".. code-block:: python", "", *_indented(text.splitlines()), "", ".. raw:: html", "", "   </details>", "",
    ]  # fmt: skip


def _methods(entry: walk.Entry, resolve: docstrings.Resolve) -> list[str]:
    """Return the methods of a class that have docstrings of their own and are no part of what all modules have."""
    out: list[str] = []
    for name, thing in vars(entry.thing).items():
        inner = thing.__func__ if isinstance(thing, staticmethod | classmethod) else thing
        if not _told(name, thing):
            continue
        full = f"{entry.name}.{name}"
        out += described("property" if isinstance(inner, property) else "method", walk.Entry(full, inner, entry.page), resolve)
    return out


def _told(name: str, thing: Any) -> bool:
    """Return whether the description of a class tells of a member."""
    inner = thing.__func__ if isinstance(thing, staticmethod | classmethod) else thing
    said = (inspect.isfunction(inner) or isinstance(inner, property)) and inspect.getdoc(inner)
    return bool(said) and not name.startswith("_") and name not in ("forward", "extra_repr", "reset_parameters")


def _of_class(entry: walk.Entry, resolve: docstrings.Resolve) -> docstrings.Resolve:
    """Return what finds names within a class: its own members first."""
    own = {name: f"{entry.name}.{name}" for name, thing in vars(entry.thing).items() if _told(name, thing)}
    return lambda word: own.get(word.removesuffix("()")) or resolve(word)


def described(kind: str, entry: walk.Entry, resolve: docstrings.Resolve) -> list[str]:
    """Return the whole description of an entry."""
    if kind == "class" and entry.name != "autograd_nb.Tensor":
        resolve = _of_class(entry, resolve)
    heads = [""] if kind == "property" else signatures(entry)
    if kind == "method" and entry.name not in typed():
        heads = [re.sub(r"^\((?:self|cls)(?:, |(?=\)))", "(", head) for head in heads]
    first = f".. py:{kind}:: {entry.name}"
    head = [first + heads[0], *(" " * (len(first) - len(entry.name)) + entry.name + more for more in heads[1:])]
    body = [*docstrings.rst(entry.text, resolve), *_facts(entry), *_declaration(entry)]
    if kind == "class" and entry.name != "autograd_nb.Tensor":  # its methods have a page
        body += _methods(entry, resolve)
    return ["", *head, "", *_indented(body), ""]


def _kind(entry: walk.Entry) -> str:
    if isinstance(entry.thing, property):
        return "property"
    if entry.name.startswith("autograd_nb.Tensor."):
        return "method"
    if isinstance(entry.thing, type) and entry.page != "names/answers":  # (a class that cannot be made is no type in signatures)
        return "exception" if issubclass(entry.thing, BaseException) else "class"
    return "function"


def _title(text: str) -> list[str]:
    return [text, "=" * len(text), ""]


def _page(title: str, intro: str, entries: list[walk.Entry], resolve: docstrings.Resolve) -> str:
    """Return a page: what it is about, a list of its names, and then each of them."""
    rows = []
    for entry in entries:
        first = docstrings.rst(entry.text.split("\n\n")[0], resolve)
        said = next((line for line in first if line.strip()), "")
        rows.append(f"* - :py:obj:`{entry.name.removeprefix('autograd_nb.')} <{entry.name}>`\n     - {said.strip()}")
    table = [".. list-table::", "   :widths: 30 70", "", *(f"   {row}" for row in rows), ""]
    body = [line for entry in entries for line in described(_kind(entry), entry, resolve)]
    return "\n".join([*_title(title), docstrings.inline(intro, resolve), "", *table, *body]) + "\n"


def _resolver(entries: list[walk.Entry]) -> docstrings.Resolve:
    """Return what finds the full name of an entry by what docstrings call it."""
    full = {entry.name for entry in entries}
    other = {name: entry.name for entry in entries for name in entry.also}
    short: dict[str, str] = {}
    for entry in entries:
        short.setdefault(entry.name.rsplit(".", 1)[-1], entry.name)

    def resolve(word: str) -> str | None:
        word = word.removesuffix("()").removeprefix("torch.").removeprefix("autograd_nb.")
        name = f"autograd_nb.{word}"
        return name if name in full else other.get(name) or short.get(word)

    return resolve


INTROS = {
    "root": ("The rest of the root", "What `autograd_nb` offers beside its ops: grad modes, compiling, dtypes, saving, switches."),
    "answers": ("Names that only answer", "Names that programs for PyTorch ask for (GPUs, other devices, old spellings): they say no, or do nothing."),
    "Tensor": ("Tensor", "Methods and properties of a tensor that are not ops. Each op is a method too: see its own entry."),
}


def pages() -> dict[str, str]:
    """Return the text of every page of the reference by its name below `generated/reference/`."""
    entries = walk.entries()
    resolve = _resolver(entries)
    grouped: dict[str, list[walk.Entry]] = defaultdict(list)
    for entry in entries:
        grouped[entry.page].append(entry)
    out = {}
    for page, group in grouped.items():
        kind, _, rest = page.partition("/")
        if kind == "ops":
            path = walk.PACKAGE / "ops" / f"{rest}.py"
            said = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0] if path.exists() else ""
            title = rest.rsplit("/", 1)[-1].replace("_", " ").capitalize()
        elif kind == "nn":
            title, said = rest.replace("_", " ").capitalize(), ""
        else:
            title, said = INTROS[rest] if rest in INTROS else (rest, (inspect.getdoc(walk.namespace(rest)) or "").split("\n\n")[0])
        out[page] = _page(title, " ".join(said.split()), sorted(group, key=lambda e: e.name.lower()), resolve)
    out |= _indexes(grouped)
    return out


def _toc(title: str, said: str, names: list[str], depth: int = 1) -> str:
    return "\n".join([*_title(title), said, "", ".. toctree::", f"   :maxdepth: {depth}", "", *(f"   {name}" for name in names), ""])


def _indexes(grouped: dict[str, list[walk.Entry]]) -> dict[str, str]:
    """Return the pages that list pages."""
    out = {}
    below = defaultdict(list)
    for page in grouped:
        if page.startswith("ops/"):
            below[page.split("/")[1]].append(page)
    for family, found in below.items():
        title = FAMILIES.get(family, family)
        out[f"ops/{family}/index"] = _toc(title, f"Ops that ``autograd_nb/ops/{family}/`` declares.", sorted(p.split("/")[2] for p in found))
    modules = sorted(page.split("/")[1] for page in grouped if page.startswith("nn/"))
    out["nn/index"] = _toc("Modules", "Layers and losses as objects with parameters: ``torch.nn``.", modules)
    order = [f"ops/{family}/index" for family in [*FAMILIES, *sorted(set(below) - set(FAMILIES))] if family in below]
    names = [page for page in grouped if page.startswith("names/")]
    order += ["names/Tensor", "nn/index", *(page for page in names if page not in ("names/Tensor", "names/answers")), "names/answers"]
    count = sum(map(len, grouped.values()))
    said = (f"{count} names. Each says what it computes (an op: its formula and its derivative), of which shapes, and "
            "what it refuses: these calls were tried. It has an example that the tests run. In all of them ``torch`` stands for this "
            "library: ``import autograd_nb as torch``. An op can also be unfolded: the "
            "few lines that declare it.")  # fmt: skip
    out["index"] = _toc("API reference", said, order)
    return out


def begin(app: Any) -> None:
    """Write the pages before Sphinx looks for sources, and remove those that are no more."""
    out = Path(app.srcdir) / "generated" / "reference"
    texts = pages()
    for name, text in texts.items():
        write(out / f"{name}.rst", text)
    for path in out.rglob("*.rst"):
        if path.relative_to(out).with_suffix("").as_posix() not in texts:
            path.unlink()


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", begin)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
