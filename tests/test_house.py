"""How the code is kept: one alias of the library in tests, functions that a screen shows."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

import autograd_nb
from autograd_nb.ops.core.registry import OPS

PACKAGE, TESTS = Path(autograd_nb.__file__).parent, Path(__file__).parent

#: lines of a function, its docstring among them, and of a file
SCREEN, SITTING = 60, 600


def test_the_library_has_one_alias():
    """``torch``, as in a program that moved here; ``ag`` where PyTorch itself is meant by torch."""
    found = [
        (path.relative_to(TESTS).as_posix(), alias)
        for path in TESTS.rglob("*.py")
        for alias in re.findall(r"^\s*import autograd_nb as (\w+)", path.read_text(), re.MULTILINE)
    ]
    other = [
        (path, a)
        for path, a in found
        if a not in ({"torch", "ag", "ours"} if path.startswith(("parity/", "fuzz/")) else {"torch"})
    ]
    assert not other


def test_a_function_fits_on_a_screen():
    """What is longer is taken apart."""
    long = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.end_lineno or 0) - node.lineno + 1 > SCREEN:
                long.add(f"{path.relative_to(PACKAGE).as_posix()}:{node.name}")
    assert not long


def test_a_file_is_read_in_one_sitting():
    """What is longer is split by what is in it."""
    lines = {path.relative_to(PACKAGE).as_posix(): path.read_text().count("\n") for path in PACKAGE.rglob("*.py")}
    assert not {name: n for name, n in lines.items() if n > SITTING}


#: what a docstring that lacks its verb begins with
FRAGMENTS = re.compile(r"(Of|For|To|In|By|From|What|How|Whose|Where) ")

#: what the docstring of a function begins with that names a thing and does not say what is done
PHRASES = re.compile(r"(The|An?|One|All|Whether|Each|Every|Which|Why|This|\w+Error)[ ,:]|[(`]")

#: the rooms whose docstrings are sentences, and those that begin with one of the words and have their verb
SENTENCES = (
    "compiler", "codegen", "graph", "autograd", "func", "ops", "nn",
    "optim", "distributions",
    "kernels", "utils", "serialization", "compat", "cache", "distributed", "viz.py", "profiler.py", "testing.py", "display.py",
    "launch", "tensor.py", "locks.py", "shapes.py", "strides.py", "dtypes.py", "config.py", "errors.py",
)  # fmt: skip
WITH_VERB = {"ops/core/recording.py:NotImplemented"}


def test_a_name_of_a_module_is_given_once():
    """A second constant of one name takes over the first one's readers without a word."""
    twice = []
    for path in Path(autograd_nb.__file__).parent.rglob("*.py"):
        seen: set[str] = set()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AnnAssign) and node.value
                else []
            )
            names = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            twice += [f"{path.name}: {name}" for name in sorted(names & seen)]
            seen |= names
    assert twice == []


def test_docstrings_are_sentences():
    """They say what is returned: "Return where …", not "Where …"; a class may be named by what it is."""
    fragments = set()
    for room in SENTENCES:
        for path in [PACKAGE / room] if room.endswith(".py") else (PACKAGE / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    continue
                text = ast.get_docstring(node) or ""
                if FRAGMENTS.match(text) or (isinstance(node, ast.FunctionDef) and PHRASES.match(text)):
                    fragments.add(f"{path.relative_to(PACKAGE).as_posix()}:{node.name}")
    assert fragments == WITH_VERB


#: the verbs that docstrings begin with; another one may be added
VERBS = re.compile(
    r"(Accept|Accepted|Accumulate|Add|Allow|Answer|Apply|Average|Become|Begin|Bind|Bring|Build|Call|Change|Check|Claim|Clamp|Clip|"
    r"Close|Collect|Compare|Compile|Compute|Conjugate|Contract|Convert|Copy|Count|Cut|Declare|Decorate|Decorator|Divide|Do|Draw|"
    r"Drop|End|Enter|Fail|Fill|Find|Finish|Fold|Forget|Give|Go|Have|Import|Join|Keep|Lay|Leave|Let|Load|Look|Make|Mark|Merge|Move|Multiply|Name|"
    r"Note|Observe|Offer|Open|Overwrite|Pack|Pad|Partition|Plan|Prune|Push|Put|Raise|Read|Receive|Reduce|Refresh|Refuse|Register|Rehearse|"
    r"Remember|Remove|Repeat|Replace|Resize|Return|Rewrite|Round|Run|Save|Say|Scale|Seed|Send|Serve|Set|Sort|Split|Stack|Stand|"
    r"Start|Step|Sum|Swap|Switch|Take|Tell|Turn|Undo|Update|Wait|Walk|Warn|Watch|Write|Yield|Zero)\b"
)


@pytest.mark.parametrize(
    "room",
    [
        "ops", "nn", "kernels", "codegen", "autograd", "graph", "compiler", "optim", "utils", "func",
        "distributions", "serialization", "distributed",
    ],
)  # fmt: skip
def test_docstrings_have_a_verb(room):
    """A docstring begins with what the function does ("Return the …"), or its first sentence is an equation ("y = max(x, 0)")."""
    without = set()
    for path in (PACKAGE / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            text = ast.get_docstring(node) or "" if isinstance(node, ast.FunctionDef) else ""
            first = re.split(r"[.;] |\n", text)[0]
            if text and "=" not in first and not VERBS.match(text):
                without.add(f"{path.relative_to(PACKAGE).as_posix()}:{node.name}: {first}")
    assert without == set()


def test_docstrings_of_ops_that_are_generated_have_a_verb():
    """Those too that a declaration writes: what `help` shows."""
    docs = {name: re.split(r"[.;] |\n", op.call.__doc__ or "")[0] for name, op in OPS.items()}
    assert {name: first for name, first in docs.items() if first and "=" not in first and not VERBS.match(first)} == {}


def _missing(path: Path) -> list[str]:
    """Which modules or names of the library a file imports that are not there."""
    missing = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            wanted = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            wanted = [(node.module or "", alias.name) for alias in node.names]
        else:
            continue
        for module, name in wanted:
            if module.split(".")[0] == "autograd_nb" and not _is_there(module, name):
                missing.append(f"{path.relative_to(TESTS.parent).as_posix()}:{node.lineno}: {module} {name}".rstrip())
    return missing


def _is_there(module: str, name: str) -> bool:
    try:
        found = importlib.import_module(module)
        return name in ("", "*") or hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}") is not None
    except ImportError:
        return False


@pytest.mark.parametrize("room", ["tests", "bench", "examples"])
def test_what_is_imported_is_there(room):
    """In functions too, which a test that is not run on every change would only find late."""
    assert not [line for path in sorted((TESTS.parent / room).rglob("*.py")) for line in _missing(path)]


def test_warnings_name_the_users_line():
    """A number of frames is right for one way to a warning only: `warn_user` looks where the package ends."""
    counted = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if "warnings.warn(" in path.read_text(encoding="utf-8")}
    assert counted == {"errors.py"}  # it has `warn_user`, and deprecations, which wrap what the user calls
