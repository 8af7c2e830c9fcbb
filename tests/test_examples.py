"""The examples in docstrings run and print what they say, and every public name has one.

They run as Python, without compiled kernels, so that a thousand of them take seconds; the few that show machine code are compiled.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator

import autograd_nb
from autograd_nb.ops.core.registry import OPS

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL

#: where users look for names
NAMESPACES = (
    "", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations", "linalg", "fft",
    "special", "signal.windows", "optim", "optim.lr_scheduler", "autograd", "autograd.functional", "autograd.graph", "func", "distributions",
    "utils.data", "utils.checkpoint", "random", "serialization", "profiler", "testing", "Tensor",
)  # fmt: skip

#: the beginnings of names whose programs consist of machine code
COMPILED = ("autograd_nb.compiler.trace.", "autograd_nb.compiler.dispatch.Compiled.profile")

#: namespace -> names that have no example yet; none may be added
WITHOUT: dict[str, str] = {}


def public_names() -> Iterator[tuple[str, object]]:
    """Every callable of the library that a user can name, once, with its first name."""
    seen = set()
    for namespace in NAMESPACES:
        space = autograd_nb
        for part in filter(None, namespace.split(".")):
            space = getattr(space, part)
        for name in getattr(space, "__all__", None) or dir(space):
            thing = getattr(space, name, None)
            home = getattr(thing, "__module__", None) or "autograd_nb"
            ours = home.startswith(("autograd_nb", "torch")) and not (inspect.isfunction(thing) and home.startswith("autograd_nb.ops."))
            if callable(thing) and ours and not name.startswith("_") and id(thing) not in seen and not is_error(thing):
                seen.add(id(thing))
                yield f"{namespace}.{name}".strip("."), thing


#: how the docstrings begin of what is not here, does nothing, or is nothing by itself
NOTHING = (
    "Raise ", "The old constructor of", "Do nothing", "Change nothing", "Accepted for PyTorch's sake", "The base of", "Nothing is set", "Not available here",
    "A class to test against", "The function does nothing", "The function raises", "The answer is ",
)  # fmt: skip


def is_error(thing: object) -> bool:
    """Whether it is an exception, which nobody calls."""
    return isinstance(thing, type) and issubclass(thing, Exception)


def has_example(name: str, text: str) -> bool:
    """Whether a docstring shows a program, or says by one sentence which function with an example it is a form of."""
    if ">>>" in text or text.startswith(NOTHING):
        return True
    of = re.search(r"`(?:torch\.)?([\w.]+)`", text)
    return bool(of) and len(text.splitlines()) == 1 and of[1] != name


def test_every_public_name_has_an_example():
    without = {name for name, thing in public_names() if not has_example(name, inspect.getdoc(thing) or "")}
    listed = {f"{space}.{name}".strip(".") for space, names in WITHOUT.items() for name in names.split()}
    assert without == listed


#: modules with examples of several ranks, which name `dist`
OF_RANKS = ("autograd_nb.distributed.", "autograd_nb.nn.parallel.")


def docstrings(names: tuple[str, ...] = ()) -> Iterator[doctest.DocTest]:
    """The examples of every module, and of the functions that a declaration made, whose module is not where they were written.

    Those of several ranks are run by `tests.distributed.examples`.
    """
    finder, seen = doctest.DocTestFinder(exclude_empty=True), set()
    globs = {"torch": autograd_nb}
    for module in pkgutil.walk_packages(autograd_nb.__path__, "autograd_nb."):
        if module.name.startswith(("autograd_nb.checked", "autograd_nb.__main__")) or module.name.endswith(("tensorboard", "__main__")):
            continue
        for test in finder.find(importlib.import_module(module.name), extraglobs=globs):
            if test.examples and not (module.name.startswith(OF_RANKS) and "dist." in test.docstring):
                seen.add(test.docstring)
                yield test
    for name, op in OPS.items():
        if ">>>" in (op.call.__doc__ or "") and op.call.__doc__ not in seen:
            seen.add(op.call.__doc__)
            yield doctest.DocTestParser().get_doctest(op.call.__doc__, dict(globs), name, None, None)


def run(compiled: bool) -> None:
    """Run those examples that are compiled, or the others, and say how many there were."""
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    tests = 0
    for test in docstrings():
        if test.name.startswith(COMPILED) is compiled:
            tests += 1
            runner.run(test)
    print(f"{tests} docstrings, {runner.failures} failures")
    sys.exit(runner.failures > 0)


def test_examples_print_what_they_say():
    command = [sys.executable, "-c", "from tests.test_examples import run; run(compiled=False)"]
    done = subprocess.run(command, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) docstrings", done.stdout)[1]) > 600


def test_examples_of_machine_code_print_what_they_say():
    done = subprocess.run(
        [sys.executable, "-c", "from tests.test_examples import run; run(compiled=True)"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) docstrings", done.stdout)[1]) == 4
