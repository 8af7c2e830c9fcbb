"""How messages and pictures name the place where an op was recorded."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import autograd_nb as torch


def recorded(path):
    """Return the graph of an op that was recorded in a file of this path."""
    found = {"torch": torch}
    exec(compile("x = torch.ones(2, requires_grad=True)\ny = x * 3", path, "exec"), found)
    return str(torch.viz.graph(found["y"]))


def notebook(cells):
    """Return a module that stands for IPython's, with the cells of a notebook: file -> number."""
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=lambda path: ("Cell", f"In[{cells[path]}]") if path in cells else None))
    return SimpleNamespace(get_ipython=lambda: shell)


def test_a_file_is_known_by_its_name():
    assert "train.py:2" in recorded("/far/away/train.py")


def test_a_cell_of_a_notebook_is_known_by_its_number(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", notebook({"/tmp/ipykernel_7/3502754505.py": 3}))
    assert "In[3]:2" in recorded("/tmp/ipykernel_7/3502754505.py")
    assert "train.py:2" in recorded("/far/away/train.py")


def test_ipython_that_was_imported_and_does_not_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert "train.py:2" in recorded("/far/away/train.py")
