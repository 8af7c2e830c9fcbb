"""The examples in the docstrings of `autograd_nb.distributed` and `nn.parallel`, as two ranks run them: ``rank`` is this one's number."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import autograd_nb as torch
import autograd_nb.distributed as dist

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


def check_examples_print_what_they_say():
    if dist.get_world_size() != 2:
        return
    said, tests = [], 0
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for module in sorted(m.name for package in (dist, torch.nn.parallel) for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")):
        globs = {"torch": torch, "dist": dist, "rank": dist.get_rank()}
        for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module), extraglobs=globs):
            if module.startswith(dist.__name__) or "dist." in test.docstring:
                tests += bool(test.examples)
                runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
    assert tests > 50
